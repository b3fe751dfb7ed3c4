// A small picture of all steps and ranks of an item: one line for each step, one cell for each rank.

import { element, penOf } from "../../parts/dom";
import type { Item } from "../api";
import { colours, lineOf } from "../shell/colours";
import { VIEWER_WORDS } from "../words";

const WIDEST = 420;
const HIGHEST = 120;

export function cellsPicture(item: Item, open: (step: number, rank: number) => void): HTMLCanvasElement {
  const unique = (values: number[]) => Array.from(new Set(values)).sort((a, b) => a - b);
  const ranks = unique(item.cells.map(({ rank }) => rank));
  const steps = unique(item.cells.map(({ step }) => step));
  const size = (count: number, room: number) => Math.max(1, Math.min(12, Math.floor(room / Math.max(1, count))));
  const side = Math.min(size(ranks.length, WIDEST), Math.max(3, size(steps.length, HIGHEST)));
  const canvas = element("canvas", "cells");
  const ratio = 2;
  const [width, height] = [Math.min(WIDEST, ranks.length * side), Math.min(HIGHEST, steps.length * side)];
  const [cellWidth, cellHeight] = [width / ranks.length, height / steps.length];
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", VIEWER_WORDS.ranksSteps(ranks.length, steps.length));
  const pen = penOf(canvas);
  pen.scale(ratio, ratio);
  pen.fillStyle = colours().hover;
  pen.fillRect(0, 0, width, height);
  const gap = cellWidth > 4 && cellHeight > 4 ? 1 : 0;
  for (const { step, rank, tone } of item.cells) {
    pen.fillStyle = lineOf(tone);
    pen.fillRect(ranks.indexOf(rank) * cellWidth, steps.indexOf(step) * cellHeight, cellWidth - gap, cellHeight - gap);
  }
  const cellAt = (event: MouseEvent) => {
    const box = canvas.getBoundingClientRect();
    const rank = ranks.at(Math.floor((event.clientX - box.left) / cellWidth));
    const step = steps.at(Math.floor((event.clientY - box.top) / cellHeight));
    return item.cells.find((cell) => cell.rank === rank && cell.step === step);
  };
  canvas.addEventListener("pointermove", (event) => {
    const cell = cellAt(event);
    canvas.title = cell
      ? `${VIEWER_WORDS.rankStep(cell.step, cell.rank)}: ${VIEWER_WORDS.status[cell.status] ?? cell.status}${cell.culprit ? ` · ${cell.culprit}` : ""}`
      : "";
  });
  canvas.addEventListener("click", (event) => {
    const cell = cellAt(event);
    if (cell) open(cell.step, cell.rank);
    event.stopPropagation();
  });
  return canvas;
}
