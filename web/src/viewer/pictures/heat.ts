// A matrix of coloured cells: ranks and steps, layers and steps, keys and steps.

import type { Tone } from "../../parts/tones";
import type { Num } from "../api";
import { numberText, toNumber } from "../numbers";
import { areaOf, colours, inkOn, mixed } from "../shell/colours";
import { VIEWER_WORDS } from "../words";
import type { Picture, Spot } from "./figure";
import { fitted, textWidth } from "./pen";

export interface HeatCell {
  row: number;
  column: number;
  number: Num | null;
  tone: Tone | null;
  // What stands in it where there is room, and what is said when it is pointed at.
  label: string;
  text: string;
  act?: () => void;
}

export interface Heat {
  rows: string[];
  columns: string[];
  rowTitle: string;
  columnTitle: string;
  cells: HeatCell[];
}

const TOP = 34;

export function heatPicture(heat: Heat): Picture {
  const { rows, columns, cells } = heat;
  const rowHeight = rows.length > 200 ? 8 : rows.length > 40 ? 15 : 24;
  return {
    height: Math.max(120, TOP + rows.length * rowHeight + 30),
    draw(pen, width) {
      const palette = colours();
      if (!cells.length) {
        pen.text(VIEWER_WORDS.emptyMatrix, width / 2, 70, { size: 14, colour: palette.soft, align: "center" });
        return [];
      }
      const size = Math.min(12, rowHeight - 2);
      const left = Math.min(width * 0.4, Math.max(...rows.map((row) => textWidth(row, size)), 40) + 16);
      const cellWidth = Math.min(220, Math.max(2, (width - left - 12) / columns.length));
      pen.text(`${heat.rowTitle} × ${heat.columnTitle}`, 8, 14, { size: 11, colour: palette.soft });
      const every = Math.ceil(46 / cellWidth);
      columns.forEach((column, place) => {
        if (place % every === 0)
          pen.text(fitted(column, cellWidth * every - 4, 11), left + (place + 0.5) * cellWidth, TOP - 5, {
            size: 11,
            colour: palette.soft,
            align: "center",
          });
      });
      const everyRow = Math.max(1, Math.ceil(11 / rowHeight));
      rows.forEach((row, place) => {
        if (place % everyRow === 0)
          pen.text(fitted(row, left - 12, size), left - 6, TOP + (place + 0.5) * rowHeight + size * 0.36, {
            size,
            colour: palette.ink,
            align: "right",
          });
      });
      const numbers = cells
        .map(({ number }) => toNumber(number))
        .filter((value): value is number => value !== null && Number.isFinite(value));
      const low = numbers.reduce((a, b) => Math.min(a, b), Infinity);
      const high = numbers.reduce((a, b) => Math.max(a, b), -Infinity);
      const spots: Spot[] = [];
      const gap = cellWidth > 6 && rowHeight > 8 ? 1 : 0;
      for (const cell of cells) {
        const value = toNumber(cell.number);
        const share = value === null ? 0 : (value - low) / (high - low || 1);
        const area = cell.tone
          ? areaOf(cell.tone)
          : value === null
            ? palette.grey
            : Number.isFinite(value)
              ? mixed(palette.blue, palette.accent, share)
              : palette.redLine;
        const x = left + cell.column * cellWidth;
        const y = TOP + cell.row * rowHeight;
        pen.rect(x, y, cellWidth - gap, rowHeight - gap, { fill: area });
        const label = rowHeight >= 15 && cellWidth > 34 ? fitted(cell.label, cellWidth - 6, 11) : "";
        if (label) {
          const colour = cell.tone ? inkOn(area) : share > 0.55 ? palette.card : palette.ink;
          pen.text(label, x + cellWidth / 2, y + rowHeight / 2 + 4, { size: 11, colour, align: "center" });
        }
        spots.push({ x, y, width: cellWidth - gap, height: rowHeight - gap, text: cell.text, act: cell.act });
      }
      return spots;
    },
  };
}

export function numberCell(row: number, column: number, number: Num | null, where: string): HeatCell {
  return { row, column, number, tone: null, label: numberText(number), text: `${where}: ${numberText(number)}` };
}
