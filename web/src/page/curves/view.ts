// The section of curves: small charts of which only the visible ones are in the document, and a large one to read.

import "./curves.css";

import { beforeNextFrame, button, element, searchField } from "../../parts/dom";
import type { Tone } from "../../parts/tones";
import { thousands, WORDS } from "../../parts/words";
import type { View } from "../../parts/views";
import { type CurvesDescription, piecesOf } from "../views";
import {
  type ChartShape,
  type Curve,
  type CurveValue,
  drawChart,
  limitsAt,
  palette,
  type Range,
  rangeOf,
  readable,
} from "./chart";

const CARD_WIDTH = 270;
const CARD_HEIGHT = 172;
const CARD_GAP = 10;
const SPARE_LINES = 1;
const TONES: readonly Tone[] = ["bad", "warning", "good", "unknown", "plain"];
// These are offered even where there is none.
const USUAL_TONES = TONES.slice(0, 3);

type CurveBlock = [string, string, Tone, CurveValue[], number[], [number, number, number][]][];

function loadCurves(view: number): Curve[] {
  const curves: Curve[] = [];
  for (const block of piecesOf(view) as Generator<CurveBlock>) {
    for (const [name, note, tone, values, flagged, limits] of block) {
      curves.push({ name, note, tone, values, flagged, limits, words: `${name}\n${note}`.toLowerCase() });
    }
  }
  return curves;
}

// Curves with every word of the search in their name or note, of the tones that are switched on.
function filterCurves(curves: readonly Curve[], search: string, tones: Set<Tone>): Curve[] {
  const wanted = search.toLowerCase().split(/\s+/).filter(Boolean);
  return curves.filter(({ words, tone }) => tones.has(tone) && wanted.every((word) => words.includes(word)));
}

// Cards in lines, as many beside each other as there is room for.
class Cards {
  curves: readonly Curve[] = [];
  readonly scroller = element("div", "cards");
  readonly later = beforeNextFrame(() => this.draw());
  private readonly made = new Map<number, HTMLElement>();
  private readonly canvas = element("div", "canvas");
  private readonly empty = element("p", "empty", WORDS.noCurves);
  private width = 0;
  private beside = 0;

  constructor(private readonly view: CurvesView) {
    this.scroller.append(this.canvas, this.empty);
    this.scroller.addEventListener("scroll", () => this.later(), { passive: true });
    new ResizeObserver(() => this.later()).observe(this.scroller);
  }

  show(curves: readonly Curve[]): void {
    this.curves = curves;
    this.empty.hidden = curves.length > 0;
    this.scroller.scrollTop = 0;
    this.again();
  }

  again(): void {
    this.canvas.replaceChildren();
    this.made.clear();
    this.later();
  }

  private draw(): void {
    const room = this.scroller.clientWidth - CARD_GAP;
    if (room <= 0) return;
    const beside = Math.max(1, Math.floor(room / (CARD_WIDTH + CARD_GAP)));
    const width = Math.floor(room / beside) - CARD_GAP;
    if (width !== this.width || beside !== this.beside) {
      [this.width, this.beside] = [width, beside];
      this.canvas.replaceChildren();
      this.made.clear();
    }
    const line = CARD_HEIGHT + CARD_GAP;
    this.canvas.style.height = `${Math.ceil(this.curves.length / beside) * line + CARD_GAP}px`;
    const top = this.scroller.scrollTop;
    const first = Math.max(0, Math.floor(top / line) - SPARE_LINES) * beside;
    const last = Math.min(
      this.curves.length,
      (Math.ceil((top + this.scroller.clientHeight) / line) + SPARE_LINES) * beside,
    );
    for (const [at, card] of this.made) {
      if (at < first || at >= last) {
        card.remove();
        this.made.delete(at);
      }
    }
    const colours = palette();
    for (let at = first; at < last; at++) {
      if (this.made.has(at)) continue;
      const card = this.card(at, width, colours);
      card.style.left = `${CARD_GAP + (at % beside) * (width + CARD_GAP)}px`;
      card.style.top = `${CARD_GAP + Math.floor(at / beside) * line}px`;
      this.made.set(at, card);
      this.canvas.append(card);
    }
  }

  private card(at: number, width: number, colours: ReturnType<typeof palette>): HTMLElement {
    const curve = this.curves[at];
    const card = button("", `${curve.name}\n${curve.note}`, () => this.view.enlarge(at), `card ${curve.tone}`);
    card.style.width = `${width}px`;
    card.style.height = `${CARD_HEIGHT}px`;
    const chart = document.createElement("canvas");
    const shape = this.view.shape(curve, width - 14, CARD_HEIGHT - 56, false);
    drawChart(chart, curve, shape, colours);
    card.append(element("span", "called", curve.name), element("span", "note", curve.note), chart);
    return card;
  }
}

export class CurvesView implements View {
  readonly body = element("section", "table");
  private readonly all: Curve[];
  private readonly tones = new Set(TONES);
  private readonly cards = new Cards(this);
  private readonly search = searchField(WORDS.searchCurves, () => this.refilter());
  private readonly count = element("span", "count");
  // Whether all charts have one vertical axis, and which.
  private same = false;
  private common: Range | undefined;
  // The large chart: its parts, the curve it shows, and the place that is pointed at.
  private readonly dialog = element("dialog", "reader");
  private readonly called = element("h2");
  private readonly note = element("p", "note");
  private readonly chart = element("canvas");
  private readonly reading = element("p", "reading");
  private at = 0;
  private cursor: number | undefined;
  private places: number[] = [];

  constructor(
    private readonly described: CurvesDescription,
    number: number,
  ) {
    this.all = loadCurves(number);
    this.fillReader();
    this.body.append(this.bar(), this.cards.scroller, this.dialog);
    // Canvases do not follow when the page turns dark.
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.cards.again();
      if (this.dialog.open) this.redraw();
    });
    this.refilter();
  }

  shown(): void {
    this.cards.later();
  }

  private bar(): HTMLElement {
    const bar = element("div", "bar");
    const chips = element("div", "colours");
    for (const tone of TONES) {
      const count = this.all.filter((curve) => curve.tone === tone).length;
      if (!count && !USUAL_TONES.includes(tone)) continue;
      const toggle = () => {
        if (!this.tones.delete(tone)) this.tones.add(tone);
        chip.setAttribute("aria-pressed", String(this.tones.has(tone)));
        this.refilter();
      };
      const chip = button("", WORDS.tones, toggle, `chip ${tone}`);
      chip.append(element("span", "dot"), `${WORDS.curveTones[tone]} `, element("b", "", thousands(count)));
      chip.setAttribute("aria-pressed", "true");
      chip.disabled = count === 0;
      chips.append(chip);
    }
    const scale = button(WORDS.sameScale, WORDS.sameScaleHint, () => {
      this.same = !this.same;
      scale.setAttribute("aria-pressed", String(this.same));
      this.cards.again();
    });
    scale.setAttribute("aria-pressed", "false");
    this.count.setAttribute("aria-live", "polite");
    bar.append(this.search, chips, scale, this.count);
    return bar;
  }

  private refilter(): void {
    const shown = filterCurves(this.all, this.search.value, this.tones);
    this.count.textContent = WORDS.curves(shown.length, this.all.length);
    this.cards.show(shown);
  }

  shape(curve: Curve, width: number, height: number, large: boolean): ChartShape {
    const { xs } = this.described;
    const range = this.same ? (this.common ??= rangeOf(this.all)) : rangeOf([curve]);
    return { width, height, large, xs, range };
  }

  // The large chart, which is filled when a card is clicked.
  private fillReader(): void {
    const { dialog } = this;
    const title = element("div", "title");
    title.append(
      this.called,
      button("‹", WORDS.previous, () => this.enlarge(this.at - 1)),
      button("›", WORDS.next, () => this.enlarge(this.at + 1)),
      button("✕", WORDS.close, () => dialog.close()),
    );
    this.chart.tabIndex = 0;
    this.reading.setAttribute("aria-live", "polite");
    this.chart.addEventListener("pointermove", (event) => this.read(this.nearest(event.offsetX)));
    this.chart.addEventListener("pointerleave", () => this.read(undefined));
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog) dialog.close();
    });
    dialog.addEventListener("keydown", (event) => this.key(event));
    window.addEventListener("resize", () => {
      if (dialog.open) this.redraw();
    });
    dialog.append(title, this.note, this.chart, this.reading);
  }

  enlarge(at: number): void {
    const { curves } = this.cards;
    if (!curves.length) return;
    this.at = Math.max(0, Math.min(curves.length - 1, at));
    const curve = curves[this.at];
    this.called.textContent = curve.name;
    this.note.textContent = curve.note;
    this.dialog.className = `reader ${curve.tone}`;
    if (!this.dialog.open) this.dialog.showModal();
    this.chart.focus();
    this.read(undefined);
  }

  private redraw(): void {
    const width = Math.max(200, Math.min(window.innerWidth - 80, 1100));
    const height = Math.max(160, Math.min(window.innerHeight - 220, 460));
    const curve = this.cards.curves[this.at];
    const shape = { ...this.shape(curve, width, height, true), cursor: this.cursor };
    this.places = drawChart(this.chart, curve, shape, palette());
  }

  private nearest(x: number): number | undefined {
    let best: number | undefined;
    this.places.forEach((place, at) => {
      if (best === undefined || Math.abs(place - x) < Math.abs(this.places[best] - x)) best = at;
    });
    return best;
  }

  private read(cursor: number | undefined): void {
    this.cursor = cursor;
    this.redraw();
    const { xs, xLabel } = this.described;
    if (cursor === undefined) {
      this.reading.textContent = WORDS.readHint;
      return;
    }
    const curve = this.cards.curves[this.at];
    const levels = limitsAt(curve, cursor).map((level) => readable(level));
    const limit = levels.length ? ` · ${WORDS.threshold} ${levels.join(", ")}` : "";
    const flag = curve.flagged.includes(cursor) ? ` · ${WORDS.flagged}` : "";
    this.reading.textContent = `${xLabel} ${xs[cursor]}: ${readable(curve.values[cursor])}${flag}${limit}`;
  }

  private key(event: KeyboardEvent): void {
    const count = this.described.xs.length;
    const moves: Record<string, (() => void) | undefined> = {
      ArrowLeft: () => this.read(Math.max(0, (this.cursor ?? count) - 1)),
      ArrowRight: () => this.read(Math.min(count - 1, (this.cursor ?? -1) + 1)),
      ArrowUp: () => this.enlarge(this.at - 1),
      ArrowDown: () => this.enlarge(this.at + 1),
    };
    const move = moves[event.key];
    if (!move || !count) return;
    move();
    event.preventDefault();
  }
}
