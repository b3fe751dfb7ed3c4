// The lanes of a timeline: reading them, following chains, and deciding what stands where. Nothing here draws.

import type { Tone } from "../tones";
import type { TimelineDescription } from "../views";

export interface Span {
  from: number;
  to: number;
  tone: Tone;
  label: string;
}

export interface Lane {
  name: string;
  length: number;
  note: string;
  spans: Span[];
  // In the order of time.
  marks: Mark[];
  end: number;
}

export interface Mark {
  lane: Lane;
  // Among the marks of its lane.
  place: number;
  at: number;
  tone: Tone;
  label: string;
  detail: string;
  origin: boolean;
  ins: Link[];
  outs: Link[];
}

export interface Link {
  from: Mark;
  to: Mark;
  tone: Tone;
  label: string;
}

export interface Timeline {
  lanes: Lane[];
  marks: Mark[];
  links: Link[];
  origins: Mark[];
  end: number;
}

export interface Chain {
  marks: Set<Mark>;
  links: Set<Link>;
}

// The part of time that is shown.
export interface TimeWindow {
  from: number;
  to: number;
}

export interface RowShape {
  height: number;
  line: number;
  low: boolean;
  levels: number;
}

export interface MarkPlace {
  x: number;
  mark: Mark;
}

export interface Point {
  x: number;
  y: number;
}

export type CurvePoints = [Point, Point, Point, Point];

export interface LinkPath {
  path: string;
  points: CurvePoints;
}

export interface Limits {
  left: number;
  right: number;
}

interface Box extends Limits {
  top: number;
  bottom: number;
}

// Marks nearer to each other than this are drawn as one.
export const BUNDLE_GAP = 7;
export const LABEL_LINE = 14;
export const LABEL_CHARS = 44;
// Some room at both ends of time, so that the first and the last mark are whole.
export const END_ROOM = 0.02;
export const SEVERAL_LANES = 12;

// Marks know their lane, their place in it by time, and their links.
export function readTimeline(described: TimelineDescription): Timeline {
  const marks: Mark[] = [];
  // As the page counts them, which is how links name them.
  const given: Mark[][] = [];
  const lanes = described.lanes.map(([name, length, note, spans, own]) => {
    const lane: Lane = {
      name,
      length,
      note,
      spans: spans.map(([from, to, tone, label]) => ({ from, to, tone, label })),
      marks: [],
      end: 0,
    };
    const made = own.map(([at, tone, label, detail, origin]): Mark => ({
      lane,
      place: 0,
      at,
      tone,
      label,
      detail,
      origin: origin === 1,
      ins: [],
      outs: [],
    }));
    given.push(made);
    lane.marks = made.slice().sort((a, b) => a.at - b.at);
    lane.marks.forEach((mark, place) => (mark.place = place));
    lane.end = Math.max(length, ...lane.spans.map(({ to }) => to), lane.marks.at(-1)?.at ?? 0);
    marks.push(...lane.marks);
    return lane;
  });
  const links = described.links.map(([fromLane, fromMark, toLane, toMark, tone, label]) => {
    const link: Link = { from: given[fromLane][fromMark], to: given[toLane][toMark], tone, label };
    link.from.outs.push(link);
    link.to.ins.push(link);
    return link;
  });
  const origins = marks.filter(({ origin }) => origin).sort((a, b) => a.at - b.at);
  return { lanes, marks, links, origins, end: Math.max(1, ...lanes.map(({ end }) => end)) };
}

// Everything from which a mark can be reached by links, and everything that can be reached from it.
export function chainOf(mark: Mark): Chain {
  const chain: Chain = { marks: new Set([mark]), links: new Set() };
  for (const [next, end] of [
    ["outs", "to"],
    ["ins", "from"],
  ] as const) {
    const seen = new Set([mark]);
    const waiting = [mark];
    for (let here = waiting.pop(); here; here = waiting.pop()) {
      for (const link of here[next]) {
        chain.links.add(link);
        if (seen.has(link[end])) continue;
        seen.add(link[end]);
        chain.marks.add(link[end]);
        waiting.push(link[end]);
      }
    }
  }
  return chain;
}

// The part of time that holds some marks, with room for the label of the last.
export function extentOf(marks: readonly Mark[], end: number): TimeWindow {
  if (!marks.length) return wholeOf(end);
  let first = Infinity;
  let last = -Infinity;
  for (const { at } of marks) {
    if (at < first) first = at;
    if (at > last) last = at;
  }
  const room = Math.max((last - first) * 0.08, 4);
  return { from: first - room, to: last + room * 2 };
}

export function wholeOf(end: number): TimeWindow {
  return { from: -end * END_ROOM, to: end * (1 + END_ROOM) };
}

// A part of time that is neither outside of all time nor too small to tell two events apart.
export function withinTime({ from, to }: TimeWindow, end: number): TimeWindow {
  const whole = wholeOf(end);
  const most = whole.to - whole.from;
  const size = Math.min(most, Math.max(to - from, Math.min(most, 6), end * 1e-9));
  const middle = (from + to) / 2;
  const start = Math.max(whole.from, Math.min(middle - size / 2, whole.to - size));
  return { from: start, to: start + size };
}

// What is shown at first: all of time, or the marks where they are a small part of it.
export function firstWindow(timeline: Timeline): TimeWindow {
  const whole = wholeOf(timeline.end);
  const marks = withinTime(extentOf(timeline.marks, timeline.end), timeline.end);
  return marks.to - marks.from < (whole.to - whole.from) * 0.3 ? marks : whole;
}

// How high a row is, where its line is, and how many labels fit above each other.
// A sheet of paper cannot be scrolled, so that rows are lower there.
export function rowShape(count: number, room: number, onPaper: boolean): RowShape {
  const least = onPaper ? 17 : count > SEVERAL_LANES ? 32 : 46;
  const height = Math.max(least, Math.min(160, Math.floor(room / Math.max(1, count))));
  const low = height < 46;
  const line = low ? height - Math.min(9, Math.round(height * 0.4)) : Math.round(Math.min(height * 0.68, height - 20));
  return { height, line, low, levels: Math.max(1, Math.min(4, Math.floor((line - 8) / LABEL_LINE))) };
}

// Names have their meaning at both ends.
export function shortened(text: string, most: number): string {
  const line = text.replace(/\s+/g, " ").trim();
  const letters = Array.from(line);
  if (letters.length <= most) return line;
  const tail = Math.floor((most - 1) * 0.55);
  return `${letters.slice(0, most - 1 - tail).join("")}…${letters.slice(-tail).join("")}`;
}

// Neighbours that would lie on each other, as runs of `{ x, mark }` in order.
export function bundled(places: readonly MarkPlace[]): MarkPlace[][] {
  const runs: MarkPlace[][] = [];
  for (const place of places) {
    const run = runs.at(-1);
    if (run && place.x - run[run.length - 1].x < BUNDLE_GAP) run.push(place);
    else runs.push([place]);
  }
  return runs;
}

// Rectangles that are taken. Rows are looked at one by one, so that many labels cost little.
export class Taken {
  private readonly rows = new Map<number, Box[]>();

  constructor(private readonly rowHeight: number) {}

  isFree(box: Box): boolean {
    for (let row = this.row(box.top); row <= this.row(box.bottom); row++) {
      for (const other of this.rows.get(row) ?? []) {
        if (box.left < other.right && box.right > other.left && box.top < other.bottom && box.bottom > other.top)
          return false;
      }
    }
    return true;
  }

  take(box: Box): void {
    for (let row = this.row(box.top); row <= this.row(box.bottom); row++) {
      const known = this.rows.get(row);
      if (known) known.push(box);
      else this.rows.set(row, [box]);
    }
  }

  private row(y: number): number {
    return Math.floor(y / this.rowHeight);
  }
}

// A free place for the label of a mark: above its line, beginning at it or ending at it. `limits` has left and right.
export function labelPlace(
  taken: Taken,
  x: number,
  lineY: number,
  width: number,
  levels: number,
  limits: Limits,
): { left: number; baseline: number; level: number } | undefined {
  for (let level = 0; level < levels; level++) {
    const bottom = lineY - 9 - level * LABEL_LINE;
    for (const left of [x - 4, x + 4 - width]) {
      const box = { left: left - 3, right: left + width + 5, top: bottom - LABEL_LINE + 1, bottom };
      if (box.left < limits.left || box.right > limits.right) continue;
      if (!taken.isFree(box)) continue;
      taken.take(box);
      return { left, baseline: bottom - 3, level };
    }
  }
  return undefined;
}

// How a link runs: four points of a curve. Links that stand upright are bent the more the further they go, so that one
// across several lanes is not taken for steps from lane to lane. Those within a lane run below it: labels are above.
export function linkCurve(from: Point, to: Point, roomBelow: number): CurvePoints {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  if (dy === 0) {
    const fall = Math.min(26, 12 + Math.abs(dx) / 12, roomBelow * 1.2);
    return [from, { x: from.x + dx * 0.2, y: from.y + fall }, { x: to.x - dx * 0.2, y: to.y + fall }, to];
  }
  if (Math.abs(dx) < 30) {
    const bend = Math.min(46, 5 + Math.abs(dy) / 14);
    return [from, { x: from.x + bend, y: from.y + dy * 0.25 }, { x: to.x + bend, y: to.y - dy * 0.25 }, to];
  }
  const reach = Math.min(Math.abs(dx) / 2, 90) * Math.sign(dx);
  return [from, { x: from.x + reach, y: from.y + dy * 0.15 }, { x: to.x - reach, y: to.y - dy * 0.15 }, to];
}

// Many upright links of one mark share a trunk beside it.
export const FAN_LEAST = 5;

export function isFan({ from, to }: Link, dx: number, dy: number): boolean {
  return dy !== 0 && Math.abs(dx) < 30 && Math.max(from.outs.length, to.ins.length) >= FAN_LEAST;
}

// As `linkCurve`, but along the trunk; the points are those of its upright part.
export function fanPath(from: Point, to: Point): LinkPath {
  const trunk = Math.max(from.x, to.x) + 13;
  const turn = Math.sign(to.y - from.y) * 8;
  const path = `M${from.x.toFixed(1)} ${from.y} Q${trunk.toFixed(1)} ${from.y} ${trunk.toFixed(1)} ${from.y + turn} V${to.y - turn} Q${trunk.toFixed(1)} ${to.y} ${to.x.toFixed(1)} ${to.y}`;
  const along = (share: number) => ({ x: trunk, y: from.y + (to.y - from.y) * share });
  return { path, points: [along(0), along(1 / 3), along(2 / 3), along(1)] };
}

export function curvePath(points: CurvePoints): LinkPath {
  const [a, b, c, d] = points.map(({ x, y }) => `${x.toFixed(1)} ${y.toFixed(1)}`);
  return { path: `M${a} C${b} ${c} ${d}`, points };
}

// Where a curve passes a height.
export function curveAt(points: CurvePoints, y: number): number {
  const at = (t: number, axis: "x" | "y") => {
    const [a, b, c, d] = points.map((point) => point[axis]);
    const s = 1 - t;
    return s * s * s * a + 3 * s * s * t * b + 3 * s * t * t * c + t * t * t * d;
  };
  let best = 0;
  for (let step = 0; step <= 40; step++) {
    if (Math.abs(at(step / 40, "y") - y) < Math.abs(at(best, "y") - y)) best = step / 40;
  }
  return at(best, "x");
}
