// A statistic of a node over steps, one line for each rank.

import type { Series } from "../api";
import { numberText, toNumber } from "../numbers";
import { colours, seriesColour } from "../shell/colours";
import { VIEWER_WORDS } from "../words";
import { evenScale } from "./axes";
import type { Picture, Spot } from "./figure";
import { type Heat, numberCell } from "./heat";
import { axes, PLOT } from "./profile";

const MOST_NAMED = 12;

function sortedUnique(values: readonly number[]): number[] {
  return Array.from(new Set(values)).sort((a, b) => a - b);
}

export function seriesPicture(series: Series, go: (step: number, rank: number) => void): Picture {
  return {
    height: null,
    draw(pen, width, height) {
      const palette = colours();
      const known = series.points.flatMap(({ step, rank, number }) => {
        const value = toNumber(number);
        return value === null ? [] : [{ step, rank, value }];
      });
      const finite = known.filter(({ value }) => Number.isFinite(value));
      if (!known.length) {
        pen.text(VIEWER_WORDS.noSeries, width / 2, height / 2, { size: 14, colour: palette.soft, align: "center" });
        return [];
      }
      const steps = sortedUnique(known.map(({ step }) => step));
      const values = finite.map(({ value }) => value);
      let [low, high] = [Math.min(...values), Math.max(...values)];
      if (!values.length) [low, high] = [0, 1];
      if (low === high) {
        const some = Math.abs(low) * 0.1 || 1;
        low -= some;
        high += some;
      }
      const [first, last] = [steps[0], steps[steps.length - 1]];
      const some = first === last ? 1 : 0;
      const xs = evenScale(
        first - some,
        last + some,
        PLOT.LEFT + 14,
        width - PLOT.RIGHT - 14,
        Math.max(2, width / 90),
        true,
      );
      const ys = evenScale(low, high, height - PLOT.BOTTOM - 6, PLOT.TOP + 6, 6);
      axes(pen, width, height, xs.ticks, ys.ticks, xs.at, ys.at);
      pen.text(VIEWER_WORDS.step, width - PLOT.RIGHT, height - 6, { size: 11, colour: palette.soft, align: "right" });
      const spots: Spot[] = [];
      sortedUnique(known.map(({ rank }) => rank)).forEach((rank, place) => {
        const own = known.filter((point) => point.rank === rank).sort((a, b) => a.step - b.step);
        const colour = seriesColour(place);
        const drawn = own.filter(({ value }) => Number.isFinite(value));
        pen.line(
          drawn.map(({ step, value }) => [xs.at(step), ys.at(value)] as const),
          { stroke: colour, lineWidth: 1.5 },
        );
        for (const { step, value } of own) {
          const isFinite = Number.isFinite(value);
          const [x, y] = [xs.at(step), isFinite ? ys.at(value) : PLOT.TOP];
          pen.ellipse(x - 3.5, y - 3.5, 7, 7, { fill: isFinite ? colour : palette.redLine });
          spots.push({
            x: x - 4,
            y: y - 4,
            width: 8,
            height: 8,
            text: `${VIEWER_WORDS.rankStep(step, rank)}: ${numberText(value)}`,
            act: () => go(step, rank),
          });
        }
        if (place < MOST_NAMED) {
          const x = PLOT.LEFT + 8 + place * 66;
          pen.rect(x, 6, 10, 10, { fill: colour });
          pen.text(`rank ${rank}`, x + 14, 15, { size: 11, colour: palette.ink });
        }
      });
      return spots;
    },
  };
}

export function seriesHeat(series: Series, go: (step: number, rank: number) => void): Heat {
  const ranks = sortedUnique(series.points.map(({ rank }) => rank));
  const steps = sortedUnique(series.points.map(({ step }) => step));
  return {
    rows: ranks.map((rank) => `rank ${rank}`),
    columns: steps.map(String),
    rowTitle: VIEWER_WORDS.rank,
    columnTitle: VIEWER_WORDS.step,
    cells: series.points.map(({ step, rank, number }) => ({
      ...numberCell(ranks.indexOf(rank), steps.indexOf(step), number, VIEWER_WORDS.rankStep(step, rank)),
      act: () => go(step, rank),
    })),
  };
}
