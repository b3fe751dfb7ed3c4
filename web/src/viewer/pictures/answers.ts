// Ranks and steps with the first culprit of each, as cells.

import type { Tone } from "../../parts/tones";
import { VIEWER_WORDS } from "../words";
import type { Heat } from "./heat";

export interface AnswerCell {
  step: number;
  rank: number;
  status: string;
  tone: Tone;
  culprit: string | null;
  node?: string | null;
}

const unique = (values: number[]) => Array.from(new Set(values)).sort((a, b) => a - b);

export function answersHeat(
  answers: readonly AnswerCell[],
  open: (step: number, rank: number, node?: string | null) => void,
): Heat {
  const ranks = unique(answers.map(({ rank }) => rank));
  const steps = unique(answers.map(({ step }) => step));
  const rowOf = new Map(ranks.map((rank, place) => [rank, place]));
  const columnOf = new Map(steps.map((step, place) => [step, place]));
  return {
    rows: ranks.map((rank) => `rank ${rank}`),
    columns: steps.map((step) => `step ${step}`),
    rowTitle: VIEWER_WORDS.rank,
    columnTitle: VIEWER_WORDS.step,
    cells: answers.map(({ step, rank, status, tone, culprit, node }) => {
      const said = VIEWER_WORDS.status[status] ?? status;
      return {
        row: rowOf.get(rank)!,
        column: columnOf.get(step)!,
        number: null,
        tone,
        label: culprit ?? said,
        text: `${VIEWER_WORDS.rankStep(step, rank)}: ${said}${culprit ? ` · ${VIEWER_WORDS.culprit}: ${culprit}` : ""}`,
        act: () => open(step, rank, node),
      };
    }),
  };
}
