// What the views of a page have in common, and how they come by their data.

import type { Tone } from "../parts/tones";
import type { Described } from "../parts/views";

export interface TableDescription extends Described {
  headers: string[];
  // Columns of long text, shown beside the grid.
  details: number[];
  // Columns that are switched off at first.
  hidden: number[];
  // The row the answer rests on.
  first: number | null;
}

export interface CurvesDescription extends Described {
  xLabel: string;
  xs: number[];
}

export interface TreeDescription extends Described {
  note: string;
  // Parent (-1 for a root; always before its children), tone, label, note, detail.
  nodes: [number, Tone, string, string, string][];
}

// The pieces a long view was written in, one at a time. The text of each is let go of when it was read.
export function* piecesOf(view: number): Generator {
  for (const script of Array.from(document.querySelectorAll(`script.piece[data-view="${view}"]`))) {
    yield JSON.parse(script.textContent);
    script.remove();
  }
}
