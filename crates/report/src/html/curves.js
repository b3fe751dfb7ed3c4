// The section of curves: small charts of which only the visible ones are in the document, and a large one to read.

const CARD_WIDTH = 270;
const CARD_HEIGHT = 172;
const CARD_GAP = 10;
const SPARE_LINES = 1;
const TONES = ["bad", "warning", "good"];

// Reads the blocks, and lets go of their text.
function loadCurves() {
  const curves = [];
  for (const script of document.querySelectorAll("script.curves")) {
    for (const [name, note, tone, values, flagged, limits] of JSON.parse(script.textContent)) {
      curves.push({ name, note, tone, values, flagged, limits, words: `${name}\n${note}`.toLowerCase() });
    }
    script.remove();
  }
  return curves;
}

// Curves with every word of the search in their name or note, of the tones that are switched on.
function filterCurves(curves, search, tones) {
  const wanted = search.toLowerCase().split(/\s+/).filter(Boolean);
  return curves.filter(({ words, tone }) => tones.has(tone) && wanted.every((word) => words.includes(word)));
}

// Cards in lines, as many beside each other as there is room for.
class Cards {
  constructor(view) {
    this.later = beforeNextFrame(() => this.draw());
    this.view = view;
    this.curves = [];
    this.made = new Map();
    this.scroller = element("div", "cards");
    this.canvas = element("div", "canvas");
    this.empty = element("p", "empty", WORDS.noCurves);
    this.scroller.append(this.canvas, this.empty);
    this.scroller.addEventListener("scroll", () => this.later(), { passive: true });
    new ResizeObserver(() => this.later()).observe(this.scroller);
  }

  show(curves) {
    this.curves = curves;
    this.empty.hidden = curves.length > 0;
    this.scroller.scrollTop = 0;
    this.again();
  }

  again() {
    this.canvas.replaceChildren();
    this.made.clear();
    this.later();
  }

  draw() {
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
    const last = Math.min(this.curves.length, (Math.ceil((top + this.scroller.clientHeight) / line) + SPARE_LINES) * beside);
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

  card(at, width, colours) {
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

class CurvesView {
  constructor(described) {
    this.described = described;
    this.all = loadCurves();
    this.tones = new Set(TONES);
    this.same = false;
    this.grid = new Cards(this);
    this.body = element("section", "table");
    this.body.append(this.bar(), this.grid.scroller);
    this.dialog = this.reader();
    this.body.append(this.dialog);
    // Canvases do not follow when the page turns dark.
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.grid.again();
      if (this.dialog.open) this.redraw();
    });
    this.refilter();
  }

  begin() {}

  bar() {
    const bar = element("div", "bar");
    this.search = element("input", "search");
    this.search.type = "search";
    this.search.placeholder = WORDS.searchCurves;
    this.search.setAttribute("aria-label", WORDS.searchCurves);
    this.search.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.refilter(), TYPING_PAUSE_MS);
    });
    const chips = element("div", "colours");
    for (const tone of TONES) {
      const count = this.all.filter((curve) => curve.tone === tone).length;
      const chip = button("", WORDS.tones, () => {
        if (!this.tones.delete(tone)) this.tones.add(tone);
        chip.setAttribute("aria-pressed", String(this.tones.has(tone)));
        this.refilter();
      }, `chip ${tone}`);
      chip.append(element("span", "dot"), `${WORDS[tone]} `, element("b", "", thousands(count)));
      chip.setAttribute("aria-pressed", "true");
      chip.disabled = count === 0;
      chips.append(chip);
    }
    const scale = button(WORDS.sameScale, WORDS.sameScaleHint, () => {
      this.same = !this.same;
      scale.setAttribute("aria-pressed", String(this.same));
      this.grid.again();
    });
    scale.setAttribute("aria-pressed", "false");
    this.count = element("span", "count");
    this.count.setAttribute("aria-live", "polite");
    bar.append(this.search, chips, scale, this.count);
    return bar;
  }

  refilter() {
    const shown = filterCurves(this.all, this.search.value, this.tones);
    this.count.textContent = WORDS.curves(shown.length, this.all.length);
    this.grid.show(shown);
  }

  shape(curve, width, height, large) {
    const { xs } = this.described;
    if (this.same) this.common ||= rangeOf(this.all);
    return { width, height, large, xs, range: this.same ? this.common : rangeOf([curve]) };
  }

  // The large chart, which is filled when a card is clicked.
  reader() {
    const dialog = element("dialog", "reader");
    const title = element("div", "title");
    this.called = element("h2");
    title.append(
      this.called,
      button("‹", WORDS.previous, () => this.enlarge(this.at - 1)),
      button("›", WORDS.next, () => this.enlarge(this.at + 1)),
      button("✕", WORDS.close, () => dialog.close()),
    );
    this.note = element("p", "note");
    this.chart = document.createElement("canvas");
    this.chart.tabIndex = 0;
    this.reading = element("p", "reading");
    this.reading.setAttribute("aria-live", "polite");
    this.chart.addEventListener("pointermove", (event) => this.read(this.nearest(event.offsetX)));
    this.chart.addEventListener("pointerleave", () => this.read(undefined));
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
    dialog.addEventListener("keydown", (event) => this.key(event));
    window.addEventListener("resize", () => dialog.open && this.redraw());
    dialog.append(title, this.note, this.chart, this.reading);
    return dialog;
  }

  enlarge(at) {
    const { curves } = this.grid;
    if (!curves.length) return;
    this.at = Math.max(0, Math.min(curves.length - 1, at));
    const curve = (this.curve = curves[this.at]);
    this.called.textContent = curve.name;
    this.note.textContent = curve.note;
    this.dialog.className = `reader ${curve.tone}`;
    if (!this.dialog.open) this.dialog.showModal();
    this.chart.focus();
    this.read(undefined);
  }

  redraw() {
    const width = Math.max(200, Math.min(window.innerWidth - 80, 1100));
    const height = Math.max(160, Math.min(window.innerHeight - 220, 460));
    const shape = { ...this.shape(this.curve, width, height, true), cursor: this.cursor };
    this.places = drawChart(this.chart, this.curve, shape, palette());
  }

  nearest(x) {
    let best;
    this.places.forEach((place, at) => {
      if (best === undefined || Math.abs(place - x) < Math.abs(this.places[best] - x)) best = at;
    });
    return best;
  }

  read(cursor) {
    this.cursor = cursor;
    this.redraw();
    const { xs, xLabel } = this.described;
    if (cursor === undefined) {
      this.reading.textContent = WORDS.readHint;
      return;
    }
    const levels = limitsAt(this.curve, cursor).map((level) => readable(level));
    const limit = levels.length ? ` · ${WORDS.threshold} ${levels.join(", ")}` : "";
    const flag = this.curve.flagged.includes(cursor) ? ` · ${WORDS.flagged}` : "";
    this.reading.textContent = `${xLabel} ${xs[cursor]}: ${readable(this.curve.values[cursor])}${flag}${limit}`;
  }

  key(event) {
    const count = this.described.xs.length;
    const moves = {
      ArrowLeft: () => this.read(Math.max(0, (this.cursor ?? count) - 1)),
      ArrowRight: () => this.read(Math.min(count - 1, (this.cursor ?? -1) + 1)),
      ArrowUp: () => this.enlarge(this.at - 1),
      ArrowDown: () => this.enlarge(this.at + 1),
    };
    if (!moves[event.key] || !count) return;
    moves[event.key]();
    event.preventDefault();
  }
}
