// What a view is to the page that shows it, and the descriptions of the views that several pages have.

import type { Tone } from "./tones";

// A view of a page, shown on a tab of its own.
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

export interface TimelineDescription extends Described {
  note: string;
  // Name, length, note, stretches (from, to, tone, label), marks (at, tone, label, detail, whether it is an origin).
  lanes: [string, number, string, [number, number, Tone, string][], [number, Tone, string, string, 0 | 1][]][];
  // Lane and mark of both ends, tone, label.
  links: [number, number, number, number, Tone, string][];
  legend: [Tone, string][];
}
