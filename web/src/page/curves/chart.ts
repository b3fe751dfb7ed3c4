// A line chart on a canvas: its scales, its numbers, and the drawing itself.

import { penOf } from "../../parts/dom";
import { niceTicks } from "../../parts/ticks";
import type { Tone } from "../../parts/tones";
import { WORDS } from "../../parts/words";
import { shortText } from "../table/model";

// Missing values are null; infinities are words, to be read but not drawn.
export type CurveValue = number | string | null;

export interface Curve {
  name: string;
  note: string;
  tone: Tone;
  values: CurveValue[];
  flagged: number[];
  // From, to, level.
  limits: [number, number, number][];
  // What a search looks at.
  words: string;
}

export interface Range {
  low: number;
  high: number;
}

export interface ChartShape {
  width: number;
  height: number;
  large: boolean;
  range: Range;
  xs: readonly number[];
  // The place that is pointed at.
  cursor?: number;
}

interface Palette {
  ink: string;
  soft: string;
  line: string;
  accent: string;
  bad: string;
  warning: string;
  card: string;
  font: string;
}

type Point = readonly [number, number];

function isDrawn(value: CurveValue): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

// The levels a curve is held against at one place.
export function limitsAt({ limits }: Pick<Curve, "limits">, at: number): number[] {
  return limits.filter(([from, to]) => from <= at && at <= to).map(([, , level]) => level);
}

// The vertical range of some curves: all values that can be drawn, the limits some value is below, and some room.
export function rangeOf(curves: readonly Pick<Curve, "values" | "limits">[]): Range {
  let low = Infinity;
  let high = -Infinity;
  for (const { values, limits } of curves) {
    for (const [from, to, level] of limits) {
      const isBelow = values.slice(from, to + 1).some((value) => isDrawn(value) && value < level);
      if (isBelow && level > high) high = level;
    }
    for (const value of values) {
      if (!isDrawn(value)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  if (low > high) [low, high] = [0, 1];
  const room = high > low ? (high - low) * 0.06 : Math.abs(low) * 0.05 || 0.05;
  return { low: low - room, high: high + room };
}

// Which values to join, so that a long series costs no more than its width: per pixel the first, lowest, highest, last.
export function thinned(values: readonly CurveValue[], places: readonly number[], width: number): number[] {
  const all = values.map((_, at) => at);
  if (values.length <= width * 4) return all;
  const kept: number[] = [];
  for (let at = 0; at < values.length;) {
    const column = Math.floor(places[at]);
    let low = at;
    let high = at;
    let missing = -1;
    const first = at;
    for (; at < values.length && Math.floor(places[at]) === column; at++) {
      const value = values[at];
      if (!isDrawn(value)) missing = at;
      else {
        const [lowest, highest] = [values[low], values[high]];
        if (!(isDrawn(lowest) && lowest <= value)) low = at;
        if (!(isDrawn(highest) && highest >= value)) high = at;
      }
    }
    const chosen = new Set([first, low, high, at - 1]);
    // A gap stays one.
    if (missing >= 0) chosen.add(missing);
    kept.push(...Array.from(chosen).sort((a, b) => a - b));
  }
  return kept;
}

// A number for people, as the tables write it.
export function readable(value: CurveValue | undefined): string {
  return value === null || value === undefined ? WORDS.missing : shortText(value);
}

// The colours of the page, which may be light or dark.
export function palette(): Palette {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: of("ink"),
    soft: of("soft"),
    line: of("line"),
    accent: of("accent"),
    bad: of("bad"),
    warning: of("warning"),
    card: of("card"),
    font: getComputedStyle(document.body).fontFamily,
  };
}

// Draws a curve and returns where its values stand.
export function drawChart(canvas: HTMLCanvasElement, curve: Curve, shape: ChartShape, colours: Palette): number[] {
  const { width, height, large, range, xs } = shape;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = penOf(canvas);
  pen.scale(ratio, ratio);
  pen.font = `${large ? 12 : 10}px ${colours.font}`;
  const levels = niceTicks(range.low, range.high, large ? 7 : 3, false);
  const labels = levels.map((level) => String(level));
  const left = Math.min(width / 2, Math.max(...labels.map((label) => pen.measureText(label).width), 8) + 10);
  const box = { left, right: width - (large ? 18 : 8), top: 6, bottom: height - (large ? 22 : 16) };
  const first = xs.at(0) ?? 0;
  const last = xs.at(-1) ?? 0;
  const xOf = (x: number) =>
    last > first ? box.left + ((x - first) / (last - first)) * (box.right - box.left) : (box.left + box.right) / 2;
  const yOf = (value: number) => box.bottom - ((value - range.low) / (range.high - range.low)) * (box.bottom - box.top);
  const places = xs.map(xOf);

  pen.lineWidth = 1;
  pen.strokeStyle = colours.line;
  pen.fillStyle = colours.soft;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  levels.forEach((level, at) => {
    const y = Math.round(yOf(level)) + 0.5;
    stroke(pen, [
      [box.left, y],
      [box.right, y],
    ]);
    pen.fillText(labels[at], box.left - 5, y);
  });
  pen.textBaseline = "top";
  let free = -Infinity;
  for (const x of last > first ? niceTicks(first, last, large ? 10 : 5, true) : [first]) {
    const half = pen.measureText(String(x)).width / 2;
    const middle = Math.max(half, Math.min(width - half, xOf(x)));
    if (middle - half < free) continue;
    free = middle + half + 10;
    pen.textAlign = "center";
    pen.fillText(String(x), middle, box.bottom + 4);
  }

  pen.globalAlpha = 0.18;
  pen.fillStyle = colours.bad;
  for (const at of curve.flagged) pen.fillRect(places[at] - 1.5, box.top, 3, box.bottom - box.top);
  pen.globalAlpha = 1;
  pen.strokeStyle = colours.warning;
  pen.setLineDash([5, 4]);
  for (const [from, to, level] of curve.limits) {
    if (level < range.low || level > range.high) continue;
    const half = from === to ? 8 : 0;
    stroke(pen, [
      [Math.max(box.left, places[from] - half), yOf(level)],
      [Math.min(box.right, places[to] + half), yOf(level)],
    ]);
  }
  pen.setLineDash([]);
  drawLine(pen, curve.values, places, yOf, box.right - box.left, {
    colour: colours.accent,
    thickness: large ? 2 : 1.5,
  });
  pen.fillStyle = colours.bad;
  for (const at of curve.flagged) {
    const value = curve.values[at];
    if (isDrawn(value)) disc(pen, places[at], yOf(value), large ? 4 : 2.5);
  }
  if (shape.cursor !== undefined) {
    pen.lineWidth = 1;
    pen.strokeStyle = colours.soft;
    const x = Math.round(places[shape.cursor]) + 0.5;
    stroke(pen, [
      [x, box.top],
      [x, box.bottom],
    ]);
    const value = curve.values[shape.cursor];
    if (isDrawn(value)) {
      pen.fillStyle = colours.card;
      disc(pen, places[shape.cursor], yOf(value), 6);
      pen.fillStyle = curve.flagged.includes(shape.cursor) ? colours.bad : colours.accent;
      disc(pen, places[shape.cursor], yOf(value), 4.5);
    }
  }
  return places;
}

export function drawLine(
  pen: CanvasRenderingContext2D,
  values: readonly CurveValue[],
  places: readonly number[],
  yOf: (value: number) => number,
  width: number,
  { colour, thickness }: { colour: string; thickness: number },
): void {
  pen.strokeStyle = pen.fillStyle = colour;
  pen.lineWidth = thickness;
  pen.lineJoin = "round";
  let run: Point[] = [];
  const finish = () => {
    // A point between two gaps would not be seen.
    if (run.length === 1) disc(pen, run[0][0], run[0][1], thickness + 0.5);
    else stroke(pen, run);
    run = [];
  };
  for (const at of thinned(values, places, width)) {
    const value = values[at];
    if (isDrawn(value)) run.push([places[at], yOf(value)]);
    else finish();
  }
  finish();
}

export function stroke(pen: CanvasRenderingContext2D, points: readonly Point[]): void {
  pen.beginPath();
  for (const [x, y] of points) pen.lineTo(x, y);
  pen.stroke();
}

export function disc(pen: CanvasRenderingContext2D, x: number, y: number, radius: number): void {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fill();
}
