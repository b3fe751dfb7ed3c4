// The error along the order of calls, by its logarithm, with what is tolerated and the culprit.

import type { Profile } from "../api";
import { numberText, toNumber } from "../numbers";
import { colours, lineOf } from "../shell/colours";
import { VIEWER_WORDS } from "../words";
import { evenScale, logScale } from "./axes";
import type { Picture, Spot } from "./figure";
import { fitted, type Pen } from "./pen";

const LEFT = 62;
const RIGHT = 18;
const TOP = 26;
const BOTTOM = 34;

type Point = Profile["points"][number];

export function profilePicture(profile: Profile, chosen: string | null, go: (name: string) => void): Picture {
  // Without errors of our own there is the reference's index.
  const hasErrors = profile.points.some(({ errorOut }) => errorOut !== null);
  const valueOf = (point: Point): number | null => toNumber(hasErrors ? point.errorOut : point.index);
  return {
    height: null,
    draw(pen, width, height) {
      const palette = colours();
      const words = VIEWER_WORDS;
      const { points } = profile;
      if (!points.length) {
        pen.text(words.noProfile, width / 2, height / 2, { size: 14, colour: palette.soft, align: "center" });
        return [];
      }
      const orders = points.map(({ order }) => order);
      const xs = evenScale(
        orders[0],
        orders[orders.length - 1],
        LEFT + 6,
        width - RIGHT,
        Math.max(2, width / 120),
        true,
      );
      const values = points.map(valueOf);
      const limits = points.map(({ tolerated }) => toNumber(tolerated));
      const known = [...values, ...limits].filter((value): value is number => value !== null);
      const bottom = height - BOTTOM;
      const ys = hasErrors ? logScale(known, bottom, TOP) : evenScale(0, 1, bottom, TOP, 5);
      axes(pen, width, height, xs.ticks, ys.ticks, xs.at, ys.at);
      pen.text(hasErrors ? words.profileError : words.profileIndex, 8, 14, { size: 11, colour: palette.soft });
      pen.text(words.profileAxis, width - RIGHT, height - 6, { size: 11, colour: palette.soft, align: "right" });
      tolerated(pen, points, xs.at, ys.at);
      const spots: Spot[] = [];
      const dot = (point: Point, value: number, large: boolean) => {
        const [x, y] = [xs.at(point.order), ys.at(value)];
        const size = large ? 11 : 5;
        const shape = { fill: lineOf(point.tone), stroke: large ? palette.ink : null, lineWidth: 2 };
        pen.ellipse(x - size / 2, y - size / 2, size, size, shape);
        return { x: x - 4, y: y - 4, width: 8, height: 8 };
      };
      points.forEach((point, place) => {
        const value = values[place];
        if (value === null) return;
        pen.line(
          [
            [xs.at(point.order), bottom],
            [xs.at(point.order), ys.at(value)],
          ],
          { stroke: lineOf(point.tone), lineWidth: points.length > 400 ? 0.4 : 1 },
        );
        const box = dot(point, value, false);
        const text = `${point.name} · ${words.errorIn} ${numberText(point.errorIn)} · ${words.errorOut} ${numberText(point.errorOut)} · ${words.tolerated} ${numberText(point.tolerated)}`;
        spots.push({ ...box, text, act: () => go(point.name) });
      });
      const mark = (name: string | null, text: string, colour: string) => {
        const place = points.findIndex((point) => point.name === name);
        const value = place < 0 ? null : values[place];
        if (value === null) return;
        dot(points[place], value, true);
        const x = xs.at(points[place].order);
        const isRight = x > width * 0.6;
        const label = fitted(`${text}: ${name ?? ""}`, width * 0.55, 12);
        pen.line(
          [
            [x, TOP - 6],
            [x, ys.at(value)],
          ],
          { stroke: colour, lineWidth: 1, dash: [2, 2] },
        );
        pen.text(label, x + (isRight ? -4 : 4), TOP - 8, {
          size: 12,
          colour,
          align: isRight ? "right" : "left",
          bold: true,
        });
      };
      if (chosen !== profile.culprit && chosen !== null) dotChosen(points, values, chosen, dot);
      mark(profile.culprit, words.culpritMark, palette.bad);
      if (profile.isThinned) pen.text(words.thinned, LEFT + 6, height - 6, { size: 11, colour: palette.soft });
      return spots;
    },
  };
}

function dotChosen(
  points: readonly Point[],
  values: readonly (number | null)[],
  chosen: string,
  dot: (point: Point, value: number, large: boolean) => void,
): void {
  const place = points.findIndex(({ name }) => name === chosen);
  const value = place < 0 ? null : values[place];
  if (value !== null) dot(points[place], value, true);
}

function tolerated(pen: Pen, points: readonly Point[], x: (at: number) => number, y: (at: number) => number): void {
  const { blueLine } = colours();
  const line: [number, number][] = [];
  for (const point of points) {
    const limit = toNumber(point.tolerated);
    if (limit !== null) line.push([x(point.order), y(limit)]);
  }
  if (!line.length) return;
  if (line.length === 1) line.push([line[0][0] + 20, line[0][1]]);
  pen.line(line, { stroke: blueLine, lineWidth: 1.5, dash: [6, 3] });
  const [endX, endY] = line[line.length - 1];
  pen.text(VIEWER_WORDS.toleratedLine, endX, endY - 5, { size: 11, colour: blueLine, align: "right" });
}

// Two axes with their numbers and faint lines.
export function axes(
  pen: Pen,
  width: number,
  height: number,
  xTicks: readonly { value: number; text: string }[],
  yTicks: readonly { value: number; text: string }[],
  x: (at: number) => number,
  y: (at: number) => number,
): void {
  const { line, soft } = colours();
  const bottom = height - BOTTOM;
  for (const { value, text } of yTicks) {
    pen.line(
      [
        [LEFT, y(value)],
        [width - RIGHT, y(value)],
      ],
      { stroke: line, lineWidth: 1 },
    );
    pen.text(text, LEFT - 6, y(value) + 4, { size: 11, colour: soft, align: "right" });
  }
  for (const { value, text } of xTicks)
    pen.text(text, x(value), bottom + 15, { size: 11, colour: soft, align: "center" });
  pen.line(
    [
      [LEFT, TOP],
      [LEFT, bottom],
      [width - RIGHT, bottom],
    ],
    { stroke: soft, lineWidth: 1 },
  );
}

export const PLOT = { LEFT, RIGHT, TOP, BOTTOM };
