// A grid of which only the visible rows are in the document.

const ROW_HEIGHT = 27;
// Browsers cannot scroll further than this; longer tables are scrolled in proportion.
const HIGHEST = 8000000;
const SPARE_ROWS = 12;
const FILL_NAMES = ["", "yellow", "red", "blue"];

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

class Grid {
  // `on` has what the owner wants to hear: sort(column), filter(column, text), choose(row), copy(text).
  constructor(table, on) {
    this.later = beforeNextFrame(() => this.draw());
    this.table = table;
    this.on = on;
    this.rows = new Int32Array(0);
    this.columns = [];
    this.cursor = { at: -1, column: 0 };
    this.made = new Map();
    this.scroller = element("div", "grid");
    this.scroller.tabIndex = 0;
    this.scroller.setAttribute("role", "grid");
    this.head = element("div", "head");
    this.canvas = element("div", "canvas");
    this.empty = element("p", "empty", WORDS.none);
    this.scroller.append(this.head, this.canvas, this.empty);
    this.scroller.addEventListener("scroll", () => this.later(), { passive: true });
    this.scroller.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.later()).observe(this.scroller);
  }

  showColumns(columns, sort, filters) {
    this.columns = columns;
    this.cursor.column = Math.min(this.cursor.column, Math.max(0, columns.length - 1));
    this.width = columns.reduce((sum, number) => sum + this.table.widths[number], 0);
    this.head.replaceChildren(...columns.map((number, place) => this.heading(number, place, sort, filters)));
    this.head.style.width = this.canvas.style.width = `${this.width}px`;
    this.clear();
  }

  heading(number, place, sort, filters) {
    const cell = element("div", `cell${place === 0 ? " first" : ""}${this.table.numeric[number] ? " numeric" : ""}`);
    cell.style.width = `${this.table.widths[number]}px`;
    const name = element("button", "name");
    name.type = "button";
    name.title = `${this.table.headers[number]}\n${WORDS.sortHint}`;
    name.append(element("span", "label", this.table.headers[number]));
    const direction = sort.column === number ? sort.direction : 0;
    name.append(element("span", "arrow", direction > 0 ? "▲" : direction < 0 ? "▼" : ""));
    cell.setAttribute("aria-sort", direction > 0 ? "ascending" : direction < 0 ? "descending" : "none");
    name.addEventListener("click", () => this.on.sort(number));
    const filter = element("input", "filter");
    filter.type = "text";
    filter.placeholder = WORDS.filter;
    filter.title = WORDS.filterHint;
    filter.value = filters[number] || "";
    filter.setAttribute("aria-label", `${WORDS.filter}: ${this.table.headers[number]}`);
    filter.addEventListener("input", () => this.on.filter(number, filter.value));
    filter.addEventListener("keydown", (event) => event.stopPropagation());
    cell.append(name, filter);
    return cell;
  }

  showRows(rows) {
    const chosen = this.rows[this.cursor.at];
    this.rows = rows;
    this.cursor.at = chosen === undefined ? -1 : rows.indexOf(chosen);
    this.full = rows.length * ROW_HEIGHT;
    this.canvas.style.height = `${Math.min(this.full, HIGHEST)}px`;
    this.empty.hidden = rows.length > 0;
    this.clear();
  }

  clear() {
    this.canvas.replaceChildren();
    this.made.clear();
    this.later();
  }

  // How far down the rows begin that are in view, were there no limit to scrolling.
  offset() {
    const view = this.scroller.clientHeight - this.head.offsetHeight;
    const reach = Math.min(this.full, HIGHEST) - view;
    if (this.full <= HIGHEST || reach <= 0) return this.scroller.scrollTop;
    return (Math.min(this.scroller.scrollTop, reach) / reach) * (this.full - view);
  }

  draw() {
    const view = Math.max(0, this.scroller.clientHeight - this.head.offsetHeight);
    const offset = this.offset();
    const shift = this.scroller.scrollTop - offset;
    const first = Math.max(0, Math.floor(offset / ROW_HEIGHT) - SPARE_ROWS);
    const last = Math.min(this.rows.length, Math.ceil((offset + view) / ROW_HEIGHT) + SPARE_ROWS);
    for (const [at, line] of this.made) {
      if (at < first || at >= last) {
        line.remove();
        this.made.delete(at);
      }
    }
    const fresh = [];
    for (let at = first; at < last; at++) {
      let line = this.made.get(at);
      if (!line) {
        line = this.line(at);
        this.made.set(at, line);
        fresh.push(line);
      }
      line.style.transform = `translateY(${at * ROW_HEIGHT + shift}px)`;
    }
    this.canvas.append(...fresh);
  }

  line(at) {
    const row = this.rows[at];
    const line = element("div", `row ${FILL_NAMES[this.table.fills[row]]}`);
    line.dataset.at = at;
    line.setAttribute("role", "row");
    if (row === this.table.first) line.classList.add("evidence");
    if (at % 2) line.classList.add("odd");
    this.columns.forEach((number, place) => {
      const value = valueAt(this.table.columns[number], row);
      const text = shortText(value);
      const cell = element("div", "cell", text);
      if (place === 0) cell.classList.add("first");
      if (this.table.numeric[number]) cell.classList.add("numeric");
      if (isMissing(value)) cell.classList.add("missing");
      cell.style.width = `${this.table.widths[number]}px`;
      const full = textOf(value);
      if (full !== text || text.length * 7 > this.table.widths[number] - 16) cell.title = full.slice(0, 2000);
      line.append(cell);
    });
    if (at === this.cursor.at) this.mark(line, true);
    return line;
  }

  mark(line, on) {
    line.classList.toggle("chosen", on);
    const cell = line.children[this.cursor.column];
    if (cell) cell.classList.toggle("cursor", on);
  }

  choose(at, column, quiet) {
    if (!this.rows.length) return;
    const before = this.made.get(this.cursor.at);
    if (before) this.mark(before, false);
    this.cursor.at = Math.max(0, Math.min(this.rows.length - 1, at));
    this.cursor.column = Math.max(0, Math.min(this.columns.length - 1, column));
    this.bringIntoView();
    this.draw();
    const now = this.made.get(this.cursor.at);
    if (now) this.mark(now, true);
    if (!quiet) this.on.choose(this.rows[this.cursor.at]);
  }

  // Chooses a row of the table, if it is among those shown.
  goTo(row) {
    const at = this.rows.indexOf(row);
    if (at < 0) return false;
    this.centre(at);
    this.choose(at, this.cursor.column);
    return true;
  }

  centre(at) {
    const view = this.scroller.clientHeight - this.head.offsetHeight;
    this.scrollToOffset(at * ROW_HEIGHT - view / 2 + ROW_HEIGHT / 2);
  }

  scrollToOffset(offset) {
    const view = this.scroller.clientHeight - this.head.offsetHeight;
    const wanted = Math.max(0, Math.min(offset, this.full - view));
    const reach = HIGHEST - view;
    this.scroller.scrollTop = this.full <= HIGHEST ? wanted : (wanted / (this.full - view)) * reach;
  }

  bringIntoView() {
    const view = this.scroller.clientHeight - this.head.offsetHeight;
    const offset = this.offset();
    const top = this.cursor.at * ROW_HEIGHT;
    if (top < offset) this.scrollToOffset(top);
    else if (top + ROW_HEIGHT > offset + view) this.scrollToOffset(top + ROW_HEIGHT - view);
    const widths = this.columns.map((number) => this.table.widths[number]);
    const left = widths.slice(0, this.cursor.column).reduce((sum, width) => sum + width, 0);
    const fixed = this.cursor.column > 0 ? widths[0] : 0;
    const right = left + (widths[this.cursor.column] || 0);
    if (left - fixed < this.scroller.scrollLeft) this.scroller.scrollLeft = left - fixed;
    else if (right > this.scroller.scrollLeft + this.scroller.clientWidth) {
      this.scroller.scrollLeft = right - this.scroller.clientWidth;
    }
  }

  click(event) {
    const cell = event.target.closest(".cell");
    if (!cell) return;
    const line = cell.parentElement;
    this.choose(Number(line.dataset.at), Array.prototype.indexOf.call(line.children, cell));
  }

  key(event) {
    const { at, column } = this.cursor;
    const page = Math.max(1, Math.floor((this.scroller.clientHeight - this.head.offsetHeight) / ROW_HEIGHT) - 1);
    const far = event.ctrlKey || event.metaKey;
    const moves = {
      ArrowUp: () => this.choose(at - 1, column),
      ArrowDown: () => this.choose(at + 1, column),
      ArrowLeft: () => this.choose(at, column - 1),
      ArrowRight: () => this.choose(at, column + 1),
      PageUp: () => this.choose(at - page, column),
      PageDown: () => this.choose(at + page, column),
      Home: () => this.choose(far ? 0 : at, far ? column : 0),
      End: () => this.choose(far ? this.rows.length - 1 : at, far ? column : this.columns.length - 1),
      Enter: () => at >= 0 && this.on.open(this.rows[at]),
      Escape: () => this.on.close(),
    };
    if (far && event.key.toLowerCase() === "c" && at >= 0 && !String(getSelection())) {
      this.on.copy(textOf(valueAt(this.table.columns[this.columns[column]], this.rows[at])));
    } else if (moves[event.key] && event.target === this.scroller) {
      moves[event.key]();
    } else {
      return;
    }
    event.preventDefault();
  }
}
