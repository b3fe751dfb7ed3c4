// The section with the timeline: moving in time, pointing, choosing, and the panel about what is chosen.

const ZOOM_STEP = 1.6;
const DRAG_LEAST = 4;
const TIP_LINES = 9;
// A sheet of paper, with some smaller text.
const PRINT_WIDTH = 1000;
const PRINT_HEIGHT = 1180;

class TimelineView {
  constructor(described) {
    this.later = beforeNextFrame(() => this.draw());
    this.described = described;
    this.timeline = readTimeline(described);
    this.window = firstWindow(this.timeline);
    const empty = this.timeline.lanes.filter(({ marks }) => !marks.length).length;
    this.emptyLanes = empty === this.timeline.lanes.length ? 0 : empty;
    this.hiding = this.emptyLanes > 0 && this.timeline.lanes.length > SEVERAL_LANES;
    this.ruler = new Ruler();
    // The page asks what it shows to draw itself again.
    this.grid = this;
    this.body = element("section", "table timeline");
    this.body.append(this.bar(), this.words(), this.chart());
    new ResizeObserver(() => this.later()).observe(this.scroller);
    window.addEventListener("beforeprint", () => this.draw(PRINT_WIDTH));
    window.addEventListener("afterprint", () => this.later());
  }

  begin() {}

  bar() {
    const { lanes, marks, links, origins } = this.timeline;
    const bar = element("div", "bar");
    bar.append(
      button("+", WORDS.zoomIn, () => this.zoom(1 / ZOOM_STEP)),
      button("−", WORDS.zoomOut, () => this.zoom(ZOOM_STEP)),
      button(WORDS.showAll, WORDS.showAllHint, () => this.show(wholeOf(this.timeline.end))),
    );
    if (marks.length) bar.append(button(WORDS.showMarks, WORDS.showMarksHint, () => this.show(extentOf(marks, this.timeline.end))));
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
  words() {
    const words = element("div", "about");
    if (this.described.note) words.append(element("p", "", this.described.note));
    const legend = element("ul", "legend");
    const entry = (mark, text) => {
      const item = element("li");
      const sign = vector("svg", "", { width: 20, height: 20, viewBox: "0 0 20 20", "aria-hidden": "true" });
      sign.append(markShape(mark, 10, 10, `spot ${mark.tone}${mark.origin ? " origin" : ""}`));
      item.append(sign, text);
      legend.append(item);
    };
    if (this.timeline.origins.length) entry({ origin: true, tone: worstTone(this.timeline.origins) }, WORDS.origin);
    for (const [tone, text] of this.described.legend) entry({ tone }, text);
    if (legend.children.length) words.append(legend);
    words.hidden = !words.children.length;
    return words;
  }

  chart() {
    this.scroller = element("div", "lanes");
    this.scroller.tabIndex = 0;
    this.scroller.setAttribute("role", "application");
    this.scroller.setAttribute("aria-label", WORDS.timelineKeys);
    this.axis = vector("svg", "axis", { "aria-hidden": "true" });
    this.picture = vector("svg", "picture", { "aria-hidden": "true" });
    this.scroller.append(this.axis, this.picture);
    if (!this.timeline.lanes.length) this.scroller.replaceChildren(element("p", "empty", WORDS.noLanes));
    this.tip = element("div", "tip");
    this.tip.hidden = true;
    this.spoken = element("p", "spoken");
    this.spoken.setAttribute("aria-live", "polite");
    this.panel = element("aside", "details");
    this.panel.hidden = true;
    this.listen();
    const area = element("div", "area");
    area.append(this.scroller, this.panel, this.tip, this.spoken);
    this.area = area;
    return area;
  }

  listen() {
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
    const jump = (event) => {
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

  draw(printWidth) {
    const width = printWidth || this.scroller.clientWidth;
    const { lanes } = this.timeline;
    if (width < 50 || !lanes.length) return;
    const shown = this.hiding ? lanes.filter(({ marks }) => marks.length) : lanes;
    const scene = {
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
      this.scrollTo(shown.indexOf(this.timeline.origins[0]?.lane) / shown.length);
    }
  }

  // Brings what is at this share of the picture's height to the middle, where not everything fits.
  scrollTo(share) {
    const { scrollHeight, clientHeight } = this.scroller;
    if (share > 0 && scrollHeight > clientHeight) this.scroller.scrollTop = share * scrollHeight - clientHeight / 2;
  }

  show(part) {
    this.window = withinTime(part, this.timeline.end);
    this.hideTip();
    this.later();
  }

  // Around a point of the picture, or around its middle.
  zoom(factor, x) {
    if (!this.drawing) return;
    const { from, to } = this.window;
    const inside = this.cursor && this.cursor.at >= from && this.cursor.at <= to;
    const fixed = x !== undefined ? this.drawing.at(x) : inside ? this.cursor.at : (from + to) / 2;
    this.show({ from: fixed - (fixed - from) * factor, to: fixed + (to - fixed) * factor });
  }

  move(share) {
    const by = (this.window.to - this.window.from) * share;
    this.show({ from: this.window.from + by, to: this.window.to + by });
  }

  wheel(event) {
    if (event.ctrlKey || event.metaKey) {
      this.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 120), this.placeOf(event).x);
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      this.move((event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX) / 1200);
    } else return;
    event.preventDefault();
  }

  placeOf(event) {
    const box = this.picture.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  grab(event) {
    if (event.button !== 0) return;
    this.drag = { x: event.clientX, window: this.window, moved: false };
    this.picture.setPointerCapture(event.pointerId);
  }

  pointed(event) {
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
    this.picture.classList.toggle("pointing", Boolean(found));
    if (found) this.showTip(this.markWords(found.mark, found.others), x, y);
    else if (event.target.link) this.showTip(this.linkWords(event.target.link), x, y);
    else {
      const { lane, spans } = this.drawing.spansAt(x, y);
      if (lane && (spans.length || x < this.drawing.left)) this.showTip(this.laneWords(lane, spans), x, y);
      else this.hideTip();
    }
  }

  letGo(event) {
    const { drag } = this;
    this.drag = undefined;
    if (!drag || drag.moved) return;
    const { x, y } = this.placeOf(event);
    const found = this.drawing && this.drawing.nearest(x, y);
    if (found) this.choose(found.mark);
    else this.close();
  }

  markWords(mark, others) {
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

  linkWords({ from, to, tone, label }) {
    return { tone, title: label, place: `${from.lane.name} → ${to.lane.name}`, detail: `${from.label}\n→ ${to.label}`, more: "" };
  }

  laneWords(lane, spans) {
    const place = lane.note ? `${lane.note} · ${WORDS.events(lane.length)}` : WORDS.events(lane.length);
    return { tone: spans.length ? spans[spans.length - 1].tone : "", title: lane.name, place, detail: spans.map(({ label }) => label).join("\n"), more: "" };
  }

  // Beside a point of the picture, where there is room.
  showTip({ tone, title, place, detail, more }, x, y) {
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

  hideTip() {
    this.tip.hidden = true;
  }

  // Brings a mark into view, in time and among the lanes.
  reveal(mark) {
    const { from, to } = this.window;
    const size = to - from;
    if (mark.at < from + size * 0.02 || mark.at > to - size * 0.05) this.show({ from: mark.at - size / 2, to: mark.at + size / 2 });
    this.draw();
    const y = this.drawing?.lineOf.get(mark.lane);
    if (y === undefined) return;
    const { height } = this.drawing.shape;
    const room = this.scroller.clientHeight - AXIS_HEIGHT;
    if (y - height < this.scroller.scrollTop) this.scroller.scrollTop = y - height;
    else if (y + height / 2 > this.scroller.scrollTop + room) this.scroller.scrollTop = y + height / 2 - room;
  }

  pointAt(mark) {
    this.cursor = mark;
    this.reveal(mark);
    const words = this.markWords(mark, 0);
    this.spoken.textContent = `${words.title}, ${words.place}. ${words.detail}`;
    if (this.panel.hidden) this.showTip(words, this.drawing.x(mark.at), this.drawing.lineOf.get(mark.lane));
    else this.choose(mark);
  }

  choose(mark) {
    this.cursor = mark;
    this.chosen = mark;
    this.chain = chainOf(mark);
    this.hideTip();
    this.fillPanel(mark);
    this.panel.hidden = false;
    this.reveal(mark);
    this.later();
  }

  close() {
    if (!this.chosen) return;
    this.chosen = this.chain = undefined;
    this.panel.hidden = true;
    this.later();
  }

  fillPanel(mark) {
    const step = (by) => mark.lane.marks[mark.place + by];
    const title = element("div", "title");
    const [previous, next] = [-1, 1].map((by) => {
      const made = button(by < 0 ? "‹" : "›", by < 0 ? WORDS.previousMark : WORDS.nextMark, () => this.choose(step(by)));
      made.disabled = !step(by);
      return made;
    });
    const shut = () => {
      this.close();
      this.scroller.focus();
    };
    title.append(element("h2", "", mark.label), previous, next, button("✕", WORDS.close, shut, "plain close"));
    const content = element("div", "content");
    content.append(element("p", "place", this.markWords(mark, 0).place));
    if (mark.detail.trim()) content.append(element("pre", "", mark.detail));
    if (this.chain.links.size) {
      const lanes = new Set(Array.from(this.chain.marks, ({ lane }) => lane));
      const fit = () => this.show(extentOf(Array.from(this.chain.marks), this.timeline.end));
      const line = element("p", "chain", WORDS.chain(this.chain.marks.size, lanes.size));
      line.append(button(WORDS.showChain, WORDS.showChainHint, fit));
      content.append(line);
    }
    for (const [heading, links, end] of [[WORDS.incoming, mark.ins, "from"], [WORDS.outgoing, mark.outs, "to"]]) {
      if (!links.length) continue;
      const list = element("ul", "ends");
      for (const link of links) {
        const item = element("li");
        const go = button("", "", () => this.choose(link[end]), `plain ${link.tone}`);
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

  nextOrigin() {
    const { origins } = this.timeline;
    if (!origins.length) return;
    const at = origins.indexOf(this.cursor);
    this.choose(origins[(at + 1) % origins.length]);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.drawing || event.target !== this.scroller) return;
    const { lanes } = this.drawing;
    const here = this.cursor && lanes.includes(this.cursor.lane) ? this.cursor : undefined;
    const along = (by) => (here ? here.lane.marks[here.place + by] : this.timeline.origins[0] || this.timeline.marks[0]);
    // The nearest in time on the next lane that has any.
    const across = (by) => {
      if (!here) return along(0);
      for (let row = lanes.indexOf(here.lane) + by; row >= 0 && row < lanes.length; row += by) {
        const { marks } = lanes[row];
        if (marks.length) return marks.reduce((a, b) => (Math.abs(b.at - here.at) < Math.abs(a.at - here.at) ? b : a));
      }
      return undefined;
    };
    const go = (mark) => mark && this.pointAt(mark);
    const acts = {
      ArrowLeft: () => (event.shiftKey ? this.move(-0.2) : go(along(-1))),
      ArrowRight: () => (event.shiftKey ? this.move(0.2) : go(along(1))),
      ArrowUp: () => go(across(-1)),
      ArrowDown: () => go(across(1)),
      Home: () => go(here && here.lane.marks[0]),
      End: () => go(here && here.lane.marks[here.lane.marks.length - 1]),
      Enter: () => here && this.choose(here),
      " ": () => here && this.choose(here),
      Escape: () => (this.hideTip(), this.close()),
      "+": () => this.zoom(1 / ZOOM_STEP),
      "=": () => this.zoom(1 / ZOOM_STEP),
      "-": () => this.zoom(ZOOM_STEP),
      0: () => this.show(wholeOf(this.timeline.end)),
      o: () => this.nextOrigin(),
    };
    if (!acts[event.key]) return;
    acts[event.key]();
    event.preventDefault();
  }
}
