// What the views of a page have in common, and how they come by their data.

import type { Tone } from "../parts/tones";

// A view of the page, shown on a tab of its own.
export interface View {
  readonly body: HTMLElement;
  // It is in the document now, where it has a size: whenever its tab is opened.
  shown(): void;
}

// What the page says of every view: its name and how many things it holds.
export interface Described {
  name: string;
  count: number;
}

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

export interface TimelineDescription extends Described {
  note: string;
  // Name, length, note, stretches (from, to, tone, label), marks (at, tone, label, detail, whether it is an origin).
  lanes: [string, number, string, [number, number, Tone, string][], [number, Tone, string, string, 0 | 1][]][];
  // Lane and mark of both ends, tone, label.
  links: [number, number, number, number, Tone, string][];
  legend: [Tone, string][];
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
