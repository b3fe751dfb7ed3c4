// Draws a part of a timeline as SVG, and remembers where its marks stand.

import { element, penOf, vector, vectorText } from "../dom";
import { niceTicks } from "../ticks";
import { isWorse, type Tone, worstTone } from "../tones";
import { thousands, WORDS } from "../words";
import {
  BUNDLE_GAP,
  bundled,
  type Chain,
  curveAt,
  curvePath,
  type CurvePoints,
  fanPath,
  isFan,
  LABEL_CHARS,
  labelPlace,
  type Lane,
  type Limits,
  type Link,
  linkCurve,
  type Mark,
  type MarkPlace,
  type Point,
  rowShape,
  type RowShape,
  shortened,
  type Span,
  Taken,
  type Timeline,
  type TimeWindow,
  wholeOf,
} from "./lanes";

// What is to be drawn.
export interface Scene {
  timeline: Timeline;
  // The visible ones.
  lanes: Lane[];
  window: TimeWindow;
  width: number;
  room: number;
  onPaper: boolean;
  cursor: Mark | undefined;
  chosen: Mark | undefined;
  chain: Chain | undefined;
}

export const AXIS_HEIGHT = 44;
export const OVERVIEW_HEIGHT = 14;
export const MOST_LINK_LABELS = 60;
// Links can be pointed at where there are not too many of them.
export const MOST_WIDE_LINKS = 900;

// Widths of text, kept because the same labels are measured in every frame.
export class Ruler {
  private readonly pen = penOf(element("canvas"));
  private readonly family = getComputedStyle(document.body).fontFamily;
  private readonly known = new Map<string, number>();

  width(text: string, bold = false): number {
    const key = bold ? `*${text}` : text;
    let width = this.known.get(key);
    if (width === undefined) {
      this.pen.font = `${bold ? 650 : 400} 12px ${this.family}`;
      width = Math.ceil(this.pen.measureText(text).width);
      this.known.set(key, width);
    }
    return width;
  }

  // As much of the text as there is room for.
  fitted(text: string, room: number, bold = false): string {
    let most = Math.min(80, Array.from(text).length);
    while (most > 2 && this.width(shortened(text, most), bold) > room) most--;
    return shortened(text, most);
  }
}

// Heads of arrows. Their tips end before the mark.
export function arrowHeads(): SVGDefsElement {
  const heads = vector("defs");
  for (const tone of ["plain", "good", "unknown", "warning", "bad"]) {
    const head = vector("marker", `tip ${tone}`, {
      id: `tip-${tone}`,
      viewBox: "0 0 10 10",
      refX: 17,
      refY: 5,
      markerWidth: 9,
      markerHeight: 9,
      markerUnits: "userSpaceOnUse",
      orient: "auto",
    });
    head.append(vector("path", "", { d: "M0 0.6 L10 5 L0 9.4 Z" }));
    heads.append(head);
  }
  return heads;
}

// The shape of a mark: where things begin a diamond, otherwise by tone a disc, a square or a ring.
export function markShape(mark: { origin: boolean; tone: Tone }, x: number, y: number, className: string): SVGElement {
  if (mark.origin) {
    return vector("path", className, { d: `M${x} ${y - 9} L${x + 9} ${y} L${x} ${y + 9} L${x - 9} ${y} Z` });
  }
  if (mark.tone === "warning") return vector("rect", className, { x: x - 4, y: y - 4, width: 8, height: 8 });
  return vector("circle", className, { cx: x, cy: y, r: mark.tone === "bad" ? 4.5 : 4 });
}

export class LanesDrawing {
  readonly left: number;
  readonly right: number;
  readonly shape: RowShape;
  readonly lineOf: Map<Lane, number>;
  private readonly height: number;
  private readonly whole: TimeWindow;
  private readonly labels = vector("g", "labels");
  private readonly marksLayer = vector("g", "marks");
  private readonly places = new Map<Lane, MarkPlace[]>();
  private readonly curves: { link: Link; points: CurvePoints; isLit: boolean }[] = [];
  // The wide lines that stand for links where they are pointed at.
  private readonly linkOf = new Map<EventTarget, Link>();

  constructor(
    private readonly scene: Scene,
    private readonly ruler: Ruler,
  ) {
    const { lanes, room, onPaper, width } = scene;
    this.shape = rowShape(lanes.length, room, onPaper);
    this.whole = wholeOf(scene.timeline.end);
    const cap = Math.min(190, width * 0.24);
    const widest = Math.max(
      0,
      ...lanes.map(({ name, note }) => Math.max(ruler.width(name, true), this.shape.low ? 0 : ruler.width(note))),
    );
    this.left = Math.round(Math.max(64, Math.min(cap, widest + 24)));
    this.right = width - 10;
    this.height = this.shape.height * lanes.length;
    this.lineOf = new Map(lanes.map((lane, row) => [lane, row * this.shape.height + this.shape.line]));
  }

  get lanes(): readonly Lane[] {
    return this.scene.lanes;
  }

  x(at: number): number {
    const { from, to } = this.scene.window;
    return this.left + ((at - from) / (to - from)) * (this.right - this.left);
  }

  at(x: number): number {
    const { from, to } = this.scene.window;
    return from + ((x - this.left) / (this.right - this.left)) * (to - from);
  }

  // Far outside numbers are of no use to a browser.
  private clamped(at: number): number {
    return Math.max(this.left - 60, Math.min(this.right + 60, this.x(at)));
  }

  private isShown(at: number): boolean {
    return at >= this.scene.window.from && at <= this.scene.window.to;
  }

  private isLit(mark: Mark): boolean {
    return this.scene.chain?.marks.has(mark) ?? false;
  }

  private sized(picture: SVGSVGElement, height: number): void {
    const { width, chain, timeline } = this.scene;
    picture.setAttribute("width", String(width));
    picture.setAttribute("height", String(height));
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    picture.classList.toggle("choosing", Boolean(chain));
    picture.classList.toggle("crowded", timeline.links.length > 60);
  }

  // Numbers of time and, above them, all of time with the part that is shown.
  drawAxis(picture: SVGSVGElement): void {
    const { timeline, window: shown, width } = this.scene;
    this.sized(picture, AXIS_HEIGHT);
    const parts: SVGElement[] = [
      vectorText("soft small", 12, AXIS_HEIGHT - 8, this.ruler.fitted(WORDS.order, this.left - 16)),
    ];
    parts.push(
      vector("rect", "overview", { x: this.left, y: 4, width: this.right - this.left, height: OVERVIEW_HEIGHT, rx: 3 }),
    );
    const ticks = new Map<number, { origin: boolean; tone: Tone }>();
    for (const { at, origin, tone } of timeline.marks) {
      const x = Math.round(this.overviewX(at));
      const known = ticks.get(x);
      if (!known || (origin && !known.origin) || isWorse(tone, known.tone)) {
        ticks.set(x, { tone, origin: origin || Boolean(known?.origin) });
      }
    }
    for (const [x, mark] of ticks) {
      const [top, height] = mark.origin ? [3, OVERVIEW_HEIGHT + 2] : [8, OVERVIEW_HEIGHT - 8];
      parts.push(
        vector("rect", `tick ${mark.tone}${mark.origin ? " origin" : ""}`, {
          x: x - (mark.origin ? 1.5 : 0.5),
          y: top,
          width: mark.origin ? 3 : 1,
          height,
        }),
      );
    }
    const from = Math.max(this.left, this.overviewX(shown.from));
    const to = Math.min(this.right, this.overviewX(shown.to));
    parts.push(
      vector("rect", "shown", { x: from, y: 3, width: Math.max(4, to - from), height: OVERVIEW_HEIGHT + 2, rx: 3 }),
    );
    let free = this.left - 4;
    for (const at of this.ticks()) {
      const x = this.x(at);
      parts.push(vector("line", "rule", { x1: x, x2: x, y1: AXIS_HEIGHT - 5, y2: AXIS_HEIGHT }));
      const text = thousands(at);
      const half = this.ruler.width(text) / 2;
      if (x - half < free || x + half > width) continue;
      free = x + half + 8;
      parts.push(vectorText("soft small middle", x, AXIS_HEIGHT - 9, text));
    }
    picture.replaceChildren(...parts);
  }

  private overviewX(at: number): number {
    const { from, to } = this.whole;
    return this.left + ((at - from) / (to - from)) * (this.right - this.left);
  }

  // The time at a point of the overview.
  overviewAt(x: number): number {
    const { from, to } = this.whole;
    return from + ((x - this.left) / (this.right - this.left)) * (to - from);
  }

  private ticks(): number[] {
    const { from, to } = this.scene.window;
    return niceTicks(
      Math.max(0, from),
      Math.min(to, this.scene.timeline.end),
      Math.max(2, Math.floor((this.right - this.left) / 110)),
      true,
    );
  }

  draw(picture: SVGSVGElement): void {
    const { lanes, cursor } = this.scene;
    this.sized(picture, Math.max(1, this.height));
    const clip = vector("clipPath", "", { id: "plot" });
    clip.append(
      vector("rect", "", {
        x: this.left - 10,
        y: 0,
        width: Math.max(1, this.right - this.left + 20),
        height: Math.max(1, this.height),
      }),
    );
    const heads = arrowHeads();
    heads.append(clip);
    const plot = vector("g", "", { "clip-path": "url(#plot)" });
    const names = vector("g", "names");
    for (const at of this.ticks())
      plot.append(vector("line", "rule", { x1: this.x(at), x2: this.x(at), y1: 0, y2: this.height }));
    lanes.forEach((lane, row) => this.drawLane(lane, row, plot, names));
    for (const lane of lanes) this.drawMarks(lane);
    plot.append(this.drawLinks(), this.marksLayer);
    this.drawLabels();
    plot.append(this.labels);
    const cy = cursor && this.lineOf.get(cursor.lane);
    if (cursor && cy !== undefined && this.isShown(cursor.at)) {
      plot.append(vector("circle", "cursor", { cx: this.x(cursor.at), cy, r: 12 }));
    }
    picture.replaceChildren(heads, names, plot);
  }

  private drawLane(lane: Lane, row: number, plot: SVGElement, names: SVGElement): void {
    const { window: shown, width } = this.scene;
    const { height, line, low } = this.shape;
    const top = row * height;
    const y = top + line;
    if (row % 2) names.append(vector("rect", "stripe", { x: 0, y: top, width, height }));
    const middle = low ? y + 4 : y - 2;
    names.append(vectorText("lane-name", 12, middle, this.ruler.fitted(lane.name, this.left - 22, true)));
    if (!low && lane.note)
      names.append(vectorText("soft small", 12, middle + 15, this.ruler.fitted(lane.note, this.left - 22)));
    plot.append(vector("line", "lane", { x1: this.clamped(0), x2: this.clamped(lane.end), y1: y, y2: y }));
    for (const span of lane.spans) {
      if (span.to < shown.from || span.from > shown.to) continue;
      const [from, to] = [this.clamped(span.from), this.clamped(span.to)];
      const thick = { plain: 4, good: 4, unknown: 8, warning: 8, bad: 12 }[span.tone];
      plot.append(
        vector("rect", `span ${span.tone}`, {
          x: from,
          y: y - thick / 2,
          width: Math.max(2, to - from),
          height: thick,
          rx: 2,
        }),
      );
      const begin = Math.max(from, this.left) + 4;
      const room = Math.min(to, this.right) - begin;
      if (height - line >= 22 && room > 40) {
        const text = this.ruler.fitted(span.label, room);
        // At its end: where a stretch begins there are often marks and arrows.
        if (this.ruler.width(text) <= room)
          plot.append(vectorText("soft small closing", begin + room - 4, y + 19, text));
      }
    }
  }

  // Marks that would cover each other become a bar; origins and what is lit are on top of it.
  private drawMarks(lane: Lane): void {
    const y = this.lineOf.get(lane)!;
    const places = lane.marks.filter(({ at }) => this.isShown(at)).map((mark) => ({ x: this.x(mark.at), mark }));
    this.places.set(lane, places);
    const above: [Mark, number][] = [];
    for (const run of bundled(places)) {
      const marks = run.map(({ mark }) => mark);
      if (run.length > 1) {
        const lit = marks.some((mark) => this.isLit(mark)) ? " lit" : "";
        this.marksLayer.append(
          vector("rect", `bundle ${worstTone(marks)}${lit}`, {
            x: run[0].x - 5,
            y: y - 5,
            width: run.at(-1)!.x - run[0].x + 10,
            height: 10,
            rx: 5,
          }),
        );
      }
      for (const { x, mark } of run) {
        if (mark.origin || run.length === 1) above.push([mark, x]);
        else if (this.isLit(mark) || mark.ins.length || mark.outs.length) {
          this.marksLayer.append(vector("circle", `end${this.isLit(mark) ? " lit" : ""}`, { cx: x, cy: y, r: 2 }));
        }
      }
    }
    above.sort((a, b) => Number(a[0].origin) - Number(b[0].origin));
    for (const [mark, x] of above) {
      const kind = `spot ${mark.tone}${mark.origin ? " origin" : ""}${this.isLit(mark) ? " lit" : ""}${mark === this.scene.chosen ? " chosen" : ""}`;
      this.marksLayer.append(markShape(mark, x, y, kind));
    }
  }

  private drawLinks(): SVGElement {
    const layer = vector("g", "links");
    const { timeline, chain } = this.scene;
    const { from, to } = this.scene.window;
    const seen = new Set<string>();
    const wide = timeline.links.length <= MOST_WIDE_LINKS;
    const lit: SVGElement[] = [];
    for (const link of timeline.links) {
      const [low, high] = [Math.min(link.from.at, link.to.at), Math.max(link.from.at, link.to.at)];
      if (high < from || low > to) continue;
      const [y1, y2] = [this.lineOf.get(link.from.lane), this.lineOf.get(link.to.lane)];
      if (y1 === undefined || y2 === undefined) continue;
      const isLit = chain?.links.has(link) ?? false;
      const [x1, x2] = [this.clamped(link.from.at), this.clamped(link.to.at)];
      // Links that lie on each other are drawn once.
      const key = `${Math.round(x1)} ${y1} ${Math.round(x2)} ${y2} ${link.tone} ${String(isLit)}`;
      if (seen.has(key) || (y1 === y2 && Math.abs(x1 - x2) < 3)) continue;
      seen.add(key);
      const ends: [Point, Point] = [
        { x: x1, y: y1 },
        { x: x2, y: y2 },
      ];
      const { path, points } = isFan(link, x2 - x1, y2 - y1)
        ? fanPath(...ends)
        : curvePath(linkCurve(...ends, this.shape.height - this.shape.line));
      const line = vector("path", `link ${link.tone}${isLit ? " lit" : ""}`, { d: path });
      if (Math.hypot(x2 - x1, y2 - y1) >= 22) line.setAttribute("marker-end", `url(#tip-${link.tone})`);
      const parts = [line];
      if (wide) {
        const area = vector("path", "wide", { d: path });
        parts.unshift(area);
        this.linkOf.set(area, link);
      }
      if (isLit) lit.push(...parts);
      else layer.append(...parts);
      this.curves.push({ link, points, isLit });
    }
    // On top of the others.
    layer.append(...lit);
    return layer;
  }

  // First what the reader asked for, then where things begin, then ends of links, then the rest where there is room. In
  // low rows and among many marks the rest has no labels, and a label that stands right above is not said again.
  private drawLabels(): void {
    const { cursor, chosen, width } = this.scene;
    const taken = new Taken(this.shape.height);
    const rank = (mark: Mark) =>
      mark === chosen || mark === cursor
        ? 0
        : this.isLit(mark)
          ? 1
          : mark.origin
            ? 2
            : mark.ins.length || mark.outs.length
              ? 3
              : 4;
    const limits: Limits = { left: this.left - 8, right: width - 2 };
    const most = width < 800 ? 28 : LABEL_CHARS;
    let above = new Map<string, number>();
    for (const [lane, places] of this.places) {
      const y = this.lineOf.get(lane)!;
      const said = new Map<string, number>();
      const last = this.shape.low || places.length > 40 ? 3 : 4;
      for (const { x, mark, rank: order } of places
        .map((place) => ({ ...place, rank: rank(place.mark) }))
        .sort((a, b) => a.rank - b.rank)) {
        const text = shortened(mark.label, most);
        if (!text || order > last) continue;
        said.set(text, x);
        if (this.shape.low && order === 3 && Math.abs((above.get(text) ?? Infinity) - x) < 9) continue;
        const place = labelPlace(taken, x, y, this.ruler.width(text, mark.origin), this.shape.levels, limits);
        if (!place) continue;
        const kind = `word${mark.origin ? ` origin ${mark.tone}` : ""}${this.isLit(mark) ? " lit" : ""}`;
        if (place.level > 0)
          this.labels.append(
            vector("line", `leader${this.isLit(mark) ? " lit" : ""}`, {
              x1: x,
              x2: x,
              y1: place.baseline + 3,
              y2: y - 6,
            }),
          );
        this.labels.append(vectorText(kind, place.left, place.baseline, text));
      }
      above = said;
    }
    if (this.shape.height >= 64) this.drawLinkLabels(taken, limits);
  }

  // Half way between the lanes before the head. One is enough where a mark has many links that say the same.
  private drawLinkLabels(taken: Taken, limits: Limits): void {
    const said = new Map<Mark, Set<string>>();
    let count = 0;
    for (const { link, points, isLit } of this.curves) {
      const text = shortened(link.label, 30);
      const key = said.get(link.from) ?? new Set();
      said.set(link.from, key);
      if (!text || key.has(text) || link.from.lane === link.to.lane || count >= MOST_LINK_LABELS) continue;
      const end = points[3];
      const width = this.ruler.width(text);
      for (const share of [0.5, 0.62, 0.38]) {
        const y = end.y + (points[0].y < end.y ? -1 : 1) * this.shape.height * share;
        const x = curveAt(points, y);
        const left = [x + 7, x - 7 - width].find((start) => {
          const box = { left: start - 2, right: start + width + 2, top: y - 9, bottom: y + 5 };
          const fits = box.left >= limits.left && box.right <= limits.right && taken.isFree(box);
          if (fits) taken.take(box);
          return fits;
        });
        if (left === undefined) continue;
        key.add(text);
        count++;
        this.labels.append(vectorText(`word soft${isLit ? " lit" : ""}`, left, y + 2, text));
        break;
      }
    }
  }

  // The mark nearest to a point, and how many others are as good as on it.
  nearest(x: number, y: number): { mark: Mark; others: number } | undefined {
    const lane = this.laneAt(y);
    if (!lane || Math.abs(y - this.lineOf.get(lane)!) > 14) return undefined;
    const near = (this.places.get(lane) ?? []).filter((place) => Math.abs(place.x - x) <= 11);
    if (!near.length) return undefined;
    const cost = (place: MarkPlace) => Math.abs(place.x - x) - (place.mark.origin ? 6 : 0);
    const best = near.reduce((a, b) => (cost(b) < cost(a) ? b : a));
    return { mark: best.mark, others: near.filter((place) => Math.abs(place.x - best.x) < BUNDLE_GAP).length - 1 };
  }

  // The link a line of the picture stands for.
  linkAt(target: EventTarget | null): Link | undefined {
    return target ? this.linkOf.get(target) : undefined;
  }

  laneAt(y: number): Lane | undefined {
    return this.scene.lanes.at(Math.max(0, Math.floor(y / this.shape.height)));
  }

  // The stretches at a point.
  spansAt(x: number, y: number): { lane: Lane | undefined; spans: Span[] } {
    const lane = this.laneAt(y);
    if (!lane) return { lane, spans: [] };
    const at = this.at(x);
    return {
      lane,
      spans:
        x < this.left || Math.abs(y - this.lineOf.get(lane)!) > 8
          ? []
          : lane.spans.filter(({ from, to }) => at >= from && at <= to),
    };
  }
}
