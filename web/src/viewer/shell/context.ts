// What the parts of the viewer know of each other: where the reader is, how to go elsewhere, and whom to ask.

import type { Catalogue, GraphInfo, SideName } from "../api";
import type { ColourMode, Place } from "../place";
import type { Source, Spot } from "../sources/source";

export interface Context {
  readonly source: Source;
  readonly place: Place;
  readonly catalogue: Catalogue;
  // Of the graph that is open.
  readonly info: GraphInfo;
  // A new entry of the history, and everything shown anew.
  go(patch: Partial<Place>): void;
  // The same entry; nothing has to be shown anew.
  note(patch: Partial<Place>): void;
  // Waits for something, and tells the reader if it fails. What failed is undefined.
  attempt<T>(work: Promise<T>): Promise<T | undefined>;
  tell(text: string): void;
}

export function spotOf({ place }: Pick<Context, "place">, side: SideName = "target"): Spot {
  return { step: place.step ?? 0, rank: place.rank ?? 0, micro: place.micro, side, stats: place.stats.join(",") };
}

export function colourMode({ place, info }: Pick<Context, "place" | "info">): ColourMode {
  if (place.colour) return place.colour;
  if (info.hasVerdicts) return "verdict";
  if (info.kind === "compare") return "index";
  return info.overflowCheck ? "overflow" : "verdict";
}

export const otherSide = (side: SideName): SideName => (side === "target" ? "golden" : "target");
