// The section with the timeline: moving in time, pointing, choosing, and the panel about what is chosen.

import "./timeline.css";

import { beforeNextFrame, button, element, vector } from "../dom";
import { type Tone, worstTone } from "../tones";
import { WORDS } from "../words";
import type { TimelineDescription, View } from "../views";
import { AXIS_HEIGHT, LanesDrawing, markShape, Ruler, type Scene } from "./drawing";
import {
  type Chain,
  chainOf,
  extentOf,
  firstWindow,
  type Lane,
  type Link,
  type Mark,
  readTimeline,
  SEVERAL_LANES,
  type Span,
  type Timeline,
  type TimeWindow,
  wholeOf,
  withinTime,
} from "./lanes";

// What stands beside the pointer.
interface Tip {
  tone: Tone;
  title: string;
  place: string;
  detail: string;
  more: string;
}

const ZOOM_STEP = 1.6;
const DRAG_LEAST = 4;
const TIP_LINES = 9;
// A sheet of paper, with some smaller text.
const PRINT_WIDTH = 1000;
const PRINT_HEIGHT = 1180;

export class TimelineView implements View {
  readonly body = element("section", "table timeline");
  private readonly timeline: Timeline;
  private readonly ruler = new Ruler();
  private readonly later = beforeNextFrame(() => this.draw());
  private readonly scroller = element("div", "lanes");
  private readonly axis = vector("svg", "axis", { "aria-hidden": "true" });
  private readonly picture = vector("svg", "picture", { "aria-hidden": "true" });
  private readonly area = element("div", "area");
  private readonly tip = element("div", "tip");
  private readonly spoken = element("p", "spoken");
  private readonly panel = element("aside", "details");
  private readonly emptyLanes: number;
  private hiding: boolean;
  private window: TimeWindow;
  private drawing: LanesDrawing | undefined;
  private hasBegun = false;
  // The mark the keys are at, the mark the panel is about, and what hangs together with it.
  private cursor: Mark | undefined;
  private chosen: Mark | undefined;
  private chain: Chain | undefined;
  private drag: { x: number; window: TimeWindow; moved: boolean } | undefined;

  constructor(private readonly described: TimelineDescription) {
    this.timeline = readTimeline(described);
    this.window = firstWindow(this.timeline);
    const empty = this.timeline.lanes.filter(({ marks }) => !marks.length).length;
    this.emptyLanes = empty === this.timeline.lanes.length ? 0 : empty;
    this.hiding = this.emptyLanes > 0 && this.timeline.lanes.length > SEVERAL_LANES;
    this.body.append(this.bar(), this.words(), this.chart());
    new ResizeObserver(() => this.later()).observe(this.scroller);
    window.addEventListener("beforeprint", () => this.draw(PRINT_WIDTH));
    window.addEventListener("afterprint", () => this.later());
  }

  shown(): void {
    this.later();
  }

  private bar(): HTMLElement {
    const { lanes, marks, links, origins } = this.timeline;
    const bar = element("div", "bar");
    bar.append(
      button("+", WORDS.zoomIn, () => this.zoom(1 / ZOOM_STEP)),
      button("−", WORDS.zoomOut, () => this.zoom(ZOOM_STEP)),
      button(WORDS.showAll, WORDS.showAllHint, () => this.show(wholeOf(this.timeline.end))),
    );
    if (marks.length)
      bar.append(button(WORDS.showMarks, WORDS.showMarksHint, () => this.show(extentOf(marks, this.timeline.end))));
    if (origins.length) bar.append(button(WORDS.nextOrigin, WORDS.nextOriginHint, () => this.nextOrigin()));
    if (this.emptyLanes) {
      const hide = button(WORDS.hideEmpty(this.emptyLanes), "", () => {
        this.hiding = !this.hiding;
        hide.setAttribute("aria-pressed", String(this.hiding));
        this.later();
      });
      hide.setAttribute("aria-pressed", String(this.hiding));
      bar.append(hide);
    }
    bar.append(element("span", "count", WORDS.lanes(lanes.length, marks.length, links.length)));
    return bar;
  }

  // The note of the timeline and what its colours mean.
  private words(): HTMLElement {
    const words = element("div", "about");
    if (this.described.note) words.append(element("p", "", this.described.note));
    const legend = element("ul", "legend");
    const entry = (mark: { origin: boolean; tone: Tone }, text: string) => {
      const item = element("li");
      const sign = vector("svg", "", { width: 20, height: 20, viewBox: "0 0 20 20", "aria-hidden": "true" });
      sign.append(markShape(mark, 10, 10, `spot ${mark.tone}${mark.origin ? " origin" : ""}`));
      item.append(sign, text);
      legend.append(item);
    };
    if (this.timeline.origins.length) entry({ origin: true, tone: worstTone(this.timeline.origins) }, WORDS.origin);
    for (const [tone, text] of this.described.legend) entry({ origin: false, tone }, text);
    if (legend.children.length) words.append(legend);
    words.hidden = !words.children.length;
    return words;
  }

  private chart(): HTMLElement {
    this.scroller.tabIndex = 0;
    this.scroller.setAttribute("role", "application");
    this.scroller.setAttribute("aria-label", WORDS.timelineKeys);
    this.scroller.append(this.axis, this.picture);
    if (!this.timeline.lanes.length) this.scroller.replaceChildren(element("p", "empty", WORDS.noLanes));
    this.tip.hidden = true;
    this.spoken.setAttribute("aria-live", "polite");
    this.panel.hidden = true;
    this.listen();
    this.area.append(this.scroller, this.panel, this.tip, this.spoken);
    return this.area;
  }

  private listen(): void {
    const { scroller, picture, axis } = this;
    picture.addEventListener("pointerdown", (event) => this.grab(event));
    picture.addEventListener("pointermove", (event) => this.pointed(event));
    picture.addEventListener("pointerup", (event) => this.letGo(event));
    picture.addEventListener("pointercancel", () => (this.drag = undefined));
    picture.addEventListener("pointerleave", () => this.hideTip());
    picture.addEventListener("dblclick", (event) => this.zoom(1 / (ZOOM_STEP * ZOOM_STEP), this.placeOf(event).x));
    scroller.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    scroller.addEventListener("keydown", (event) => this.key(event));
    scroller.addEventListener("blur", () => this.hideTip());
    scroller.addEventListener("scroll", () => this.hideTip(), { passive: true });
    const jump = (event: PointerEvent) => {
      if (!(event.buttons & 1) || !this.drawing) return;
      const half = (this.window.to - this.window.from) / 2;
      const middle = this.drawing.overviewAt(event.clientX - axis.getBoundingClientRect().left);
      this.show({ from: middle - half, to: middle + half });
    };
    axis.addEventListener("pointerdown", (event) => {
      axis.setPointerCapture(event.pointerId);
      jump(event);
    });
    axis.addEventListener("pointermove", jump);
  }

  private draw(printWidth?: number): void {
    const width = printWidth ?? this.scroller.clientWidth;
    const { lanes } = this.timeline;
    if (width < 50 || !lanes.length) return;
    const shown = this.hiding ? lanes.filter(({ marks }) => marks.length) : lanes;
    const scene: Scene = {
      timeline: this.timeline,
      lanes: shown,
      window: this.window,
      width,
      room: printWidth ? Math.min(PRINT_HEIGHT, shown.length * 110) : this.scroller.clientHeight - AXIS_HEIGHT - 2,
      onPaper: Boolean(printWidth),
      cursor: this.cursor,
      chosen: this.chosen,
      chain: this.chain,
    };
    this.drawing = new LanesDrawing(scene, this.ruler);
    this.drawing.drawAxis(this.axis);
    this.drawing.draw(this.picture);
    if (!this.hasBegun && !printWidth) {
      this.hasBegun = true;
      const first = this.timeline.origins.at(0);
      if (first) this.scrollTo(shown.indexOf(first.lane) / shown.length);
    }
  }

  // Brings what is at this share of the picture's height to the middle, where not everything fits.
  private scrollTo(share: number): void {
    const { scrollHeight, clientHeight } = this.scroller;
    if (share > 0 && scrollHeight > clientHeight) this.scroller.scrollTop = share * scrollHeight - clientHeight / 2;
  }

  private show(part: TimeWindow): void {
    this.window = withinTime(part, this.timeline.end);
    this.hideTip();
    this.later();
  }

  // Around a point of the picture, or around its middle.
  private zoom(factor: number, x?: number): void {
    if (!this.drawing) return;
    const { from, to } = this.window;
    const cursor = this.cursor && this.cursor.at >= from && this.cursor.at <= to ? this.cursor : undefined;
    const fixed = x !== undefined ? this.drawing.at(x) : (cursor?.at ?? (from + to) / 2);
    this.show({ from: fixed - (fixed - from) * factor, to: fixed + (to - fixed) * factor });
  }

  private move(share: number): void {
    const by = (this.window.to - this.window.from) * share;
    this.show({ from: this.window.from + by, to: this.window.to + by });
  }

  private wheel(event: WheelEvent): void {
    if (event.ctrlKey || event.metaKey) {
      this.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 120), this.placeOf(event).x);
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      this.move((event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX) / 1200);
    } else return;
    event.preventDefault();
  }

  private placeOf(event: MouseEvent): { x: number; y: number } {
    const box = this.picture.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  private grab(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.drag = { x: event.clientX, window: this.window, moved: false };
    this.picture.setPointerCapture(event.pointerId);
  }

  private pointed(event: PointerEvent): void {
    if (!this.drawing) return;
    if (this.drag) {
      const by = event.clientX - this.drag.x;
      if (!this.drag.moved && Math.abs(by) < DRAG_LEAST) return;
      this.drag.moved = true;
      const { from, to } = this.drag.window;
      const shift = (by / (this.drawing.right - this.drawing.left)) * (to - from);
      this.show({ from: from - shift, to: to - shift });
      return;
    }
    const { x, y } = this.placeOf(event);
    const found = this.drawing.nearest(x, y);
    const link = this.drawing.linkAt(event.target);
    this.picture.classList.toggle("pointing", Boolean(found));
    if (found) this.showTip(this.markWords(found.mark, found.others), x, y);
    else if (link) this.showTip(this.linkWords(link), x, y);
    else {
      const { lane, spans } = this.drawing.spansAt(x, y);
      if (lane && (spans.length || x < this.drawing.left)) this.showTip(this.laneWords(lane, spans), x, y);
      else this.hideTip();
    }
  }

  private letGo(event: PointerEvent): void {
    const { drag } = this;
    this.drag = undefined;
    if (!drag || drag.moved) return;
    const { x, y } = this.placeOf(event);
    const found = this.drawing?.nearest(x, y);
    if (found) this.choose(found.mark);
    else this.close();
  }

  private markWords(mark: Mark, others: number): Tip {
    const lines = mark.detail.split("\n");
    const detail = lines.slice(0, TIP_LINES).join("\n");
    return {
      tone: mark.tone,
      title: mark.label,
      place: `${mark.lane.name} · ${WORDS.position(mark.at)}${mark.origin ? ` · ${WORDS.origin}` : ""}`,
      detail: lines.length > TIP_LINES ? `${detail}\n… ${WORDS.moreLines}` : detail,
      more: others > 0 ? WORDS.more(others) : "",
    };
  }

  private linkWords({ from, to, tone, label }: Link): Tip {
    return {
      tone,
      title: label,
      place: `${from.lane.name} → ${to.lane.name}`,
      detail: `${from.label}\n→ ${to.label}`,
      more: "",
    };
  }

  private laneWords(lane: Lane, spans: readonly Span[]): Tip {
    const place = lane.note ? `${lane.note} · ${WORDS.events(lane.length)}` : WORDS.events(lane.length);
    return {
      tone: spans.at(-1)?.tone ?? "plain",
      title: lane.name,
      place,
      detail: spans.map(({ label }) => label).join("\n"),
      more: "",
    };
  }

  // Beside a point of the picture, where there is room.
  private showTip({ tone, title, place, detail, more }: Tip, x: number, y: number): void {
    const { tip } = this;
    tip.className = `tip ${tone}`;
    tip.replaceChildren(element("b", "", title), element("span", "soft", place));
    if (detail.trim()) tip.append(element("pre", "", detail));
    if (more) tip.append(element("span", "soft", more));
    tip.hidden = false;
    const area = this.area.getBoundingClientRect();
    const picture = this.picture.getBoundingClientRect();
    const [left, top] = [picture.left - area.left + x, picture.top - area.top + y];
    const beside = left + 16 + tip.offsetWidth < area.width ? left + 16 : left - 16 - tip.offsetWidth;
    const below = top + 16 + tip.offsetHeight < area.height ? top + 16 : top - 16 - tip.offsetHeight;
    tip.style.left = `${Math.max(4, Math.min(beside, area.width - tip.offsetWidth - 4))}px`;
    tip.style.top = `${Math.max(4, Math.min(below, area.height - tip.offsetHeight - 4))}px`;
  }

  private hideTip(): void {
    this.tip.hidden = true;
  }

  // Brings a mark into view, in time and among the lanes.
  private reveal(mark: Mark): void {
    const { from, to } = this.window;
    const size = to - from;
    if (mark.at < from + size * 0.02 || mark.at > to - size * 0.05)
      this.show({ from: mark.at - size / 2, to: mark.at + size / 2 });
    this.draw();
    const y = this.drawing?.lineOf.get(mark.lane);
    if (!this.drawing || y === undefined) return;
    const { height } = this.drawing.shape;
    const room = this.scroller.clientHeight - AXIS_HEIGHT;
    if (y - height < this.scroller.scrollTop) this.scroller.scrollTop = y - height;
    else if (y + height / 2 > this.scroller.scrollTop + room) this.scroller.scrollTop = y + height / 2 - room;
  }

  private pointAt(mark: Mark): void {
    this.cursor = mark;
    this.reveal(mark);
    const words = this.markWords(mark, 0);
    this.spoken.textContent = `${words.title}, ${words.place}. ${words.detail}`;
    const y = this.drawing?.lineOf.get(mark.lane);
    if (!this.panel.hidden) this.choose(mark);
    else if (this.drawing && y !== undefined) this.showTip(words, this.drawing.x(mark.at), y);
  }

  private choose(mark: Mark): void {
    this.cursor = mark;
    this.chosen = mark;
    this.chain = chainOf(mark);
    this.hideTip();
    this.fillPanel(mark, this.chain);
    this.panel.hidden = false;
    this.reveal(mark);
    this.later();
  }

  private close(): void {
    if (!this.chosen) return;
    this.chosen = this.chain = undefined;
    this.panel.hidden = true;
    this.later();
  }

  private fillPanel(mark: Mark, chain: Chain): void {
    const step = (by: number): Mark | undefined => mark.lane.marks[mark.place + by];
    const title = element("div", "title");
    const [previous, next] = [-1, 1].map((by) => {
      const made = button(by < 0 ? "‹" : "›", by < 0 ? WORDS.previousMark : WORDS.nextMark, () => {
        const other = step(by);
        if (other) this.choose(other);
      });
      made.disabled = !step(by);
      return made;
    });
    const shut = () => {
      this.close();
      this.scroller.focus();
    };
    title.append(element("h2", "", mark.label), previous, next, button("✕", WORDS.close, shut, "button close"));
    const content = element("div", "content");
    content.append(element("p", "place", this.markWords(mark, 0).place));
    if (mark.detail.trim()) content.append(element("pre", "", mark.detail));
    if (chain.links.size) {
      const lanes = new Set(Array.from(chain.marks, ({ lane }) => lane));
      const fit = () => this.show(extentOf(Array.from(chain.marks), this.timeline.end));
      const line = element("p", "chain", WORDS.chain(chain.marks.size, lanes.size));
      line.append(button(WORDS.showChain, WORDS.showChainHint, fit));
      content.append(line);
    }
    for (const [heading, links, end] of [
      [WORDS.incoming, mark.ins, "from"],
      [WORDS.outgoing, mark.outs, "to"],
    ] as const) {
      if (!links.length) continue;
      const list = element("ul", "ends");
      for (const link of links) {
        const item = element("li");
        const go = button("", "", () => this.choose(link[end]), `button ${link.tone}`);
        go.append(element("b", "", link[end].lane.name), ` ${link[end].label}`);
        if (link.label) go.append(element("span", "soft", link.label));
        item.append(go);
        list.append(item);
      }
      content.append(element("h3", "", heading), list);
    }
    this.panel.className = `details ${mark.tone}`;
    this.panel.replaceChildren(title, content);
  }

  private nextOrigin(): void {
    const { origins } = this.timeline;
    if (!origins.length) return;
    const at = this.cursor ? origins.indexOf(this.cursor) : -1;
    this.choose(origins[(at + 1) % origins.length]);
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.drawing || event.target !== this.scroller) return;
    const { lanes } = this.drawing;
    const here = this.cursor && lanes.includes(this.cursor.lane) ? this.cursor : undefined;
    const along = (by: number): Mark | undefined =>
      here ? here.lane.marks[here.place + by] : (this.timeline.origins.at(0) ?? this.timeline.marks.at(0));
    // The nearest in time on the next lane that has any.
    const across = (by: number): Mark | undefined => {
      if (!here) return along(0);
      for (let row = lanes.indexOf(here.lane) + by; row >= 0 && row < lanes.length; row += by) {
        const { marks } = lanes[row];
        if (marks.length) return marks.reduce((a, b) => (Math.abs(b.at - here.at) < Math.abs(a.at - here.at) ? b : a));
      }
      return undefined;
    };
    const go = (mark: Mark | undefined) => {
      if (mark) this.pointAt(mark);
    };
    const open = () => {
      if (here) this.choose(here);
    };
    const acts: Record<string, (() => void) | undefined> = {
      ArrowLeft: () => (event.shiftKey ? this.move(-0.2) : go(along(-1))),
      ArrowRight: () => (event.shiftKey ? this.move(0.2) : go(along(1))),
      ArrowUp: () => go(across(-1)),
      ArrowDown: () => go(across(1)),
      Home: () => go(here?.lane.marks.at(0)),
      End: () => go(here?.lane.marks.at(-1)),
      Enter: open,
      " ": open,
      Escape: () => {
        this.hideTip();
        this.close();
      },
      "+": () => this.zoom(1 / ZOOM_STEP),
      "=": () => this.zoom(1 / ZOOM_STEP),
      "-": () => this.zoom(ZOOM_STEP),
      0: () => this.show(wholeOf(this.timeline.end)),
      o: () => this.nextOrigin(),
    };
    const act = acts[event.key];
    if (!act) return;
    act();
    event.preventDefault();
  }
}
