// A grid of which only the visible rows are in the document.

import { beforeNextFrame, element } from "../../parts/dom";
import { WORDS } from "../../parts/words";
import { type Direction, isMissing, ROW_TONES, shortText, type Table, textOf, valueAt } from "./model";

const ROW_HEIGHT = 27;
// Browsers cannot scroll further than this; longer tables are scrolled in proportion.
const HIGHEST = 8000000;
const SPARE_ROWS = 12;

// What the owner of a grid wants to hear.
export interface GridEvents {
  sort(column: number): void;
  filter(column: number, text: string): void;
  choose(row: number): void;
  open(row: number): void;
  close(): void;
  copy(text: string): void;
}

export interface Sorting {
  column: number;
  direction: Direction;
}

export class Grid {
  rows = new Int32Array(0);
  readonly scroller = element("div", "grid");
  readonly empty = element("p", "empty", WORDS.none);
  readonly later = beforeNextFrame(() => this.draw());
  private columns: number[] = [];
  private readonly cursor = { at: -1, column: 0 };
  private readonly made = new Map<number, HTMLElement>();
  private readonly head = element("div", "head");
  private readonly canvas = element("div", "canvas");
  // How high all rows are together.
  private full = 0;

  constructor(
    private readonly table: Table,
    private readonly on: GridEvents,
  ) {
    this.scroller.tabIndex = 0;
    this.scroller.setAttribute("role", "grid");
    this.scroller.append(this.head, this.canvas, this.empty);
    this.scroller.addEventListener("scroll", () => this.later(), { passive: true });
    this.scroller.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.later()).observe(this.scroller);
  }

  showColumns(columns: number[], sort: Sorting, filters: Map<number, string>): void {
    this.columns = columns;
    this.cursor.column = Math.min(this.cursor.column, Math.max(0, columns.length - 1));
    const width = columns.reduce((sum, number) => sum + this.table.widths[number], 0);
    this.head.replaceChildren(...columns.map((number, place) => this.heading(number, place, sort, filters)));
    this.head.style.width = this.canvas.style.width = `${width}px`;
    this.clear();
  }

  private heading(number: number, place: number, sort: Sorting, filters: Map<number, string>): HTMLElement {
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
    filter.value = filters.get(number) ?? "";
    filter.setAttribute("aria-label", `${WORDS.filter}: ${this.table.headers[number]}`);
    filter.addEventListener("input", () => this.on.filter(number, filter.value));
    filter.addEventListener("keydown", (event) => event.stopPropagation());
    cell.append(name, filter);
    return cell;
  }

  showRows(rows: Int32Array): void {
    const chosen = this.rows.at(this.cursor.at < 0 ? Infinity : this.cursor.at);
    this.rows = rows as Int32Array<ArrayBuffer>;
    this.cursor.at = chosen === undefined ? -1 : rows.indexOf(chosen);
    this.full = rows.length * ROW_HEIGHT;
    this.canvas.style.height = `${Math.min(this.full, HIGHEST)}px`;
    this.empty.hidden = rows.length > 0;
    this.clear();
  }

  private clear(): void {
    this.canvas.replaceChildren();
    this.made.clear();
    this.later();
  }

  // How far down the rows begin that are in view, were there no limit to scrolling.
  private offset(): number {
    const view = this.scroller.clientHeight - this.head.offsetHeight;
    const reach = Math.min(this.full, HIGHEST) - view;
    if (this.full <= HIGHEST || reach <= 0) return this.scroller.scrollTop;
    return (Math.min(this.scroller.scrollTop, reach) / reach) * (this.full - view);
  }

  private draw(): void {
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
    const fresh: HTMLElement[] = [];
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

  private line(at: number): HTMLElement {
    const row = this.rows[at];
    const line = element("div", `row ${ROW_TONES[this.table.tones[row]]}`);
    line.dataset.at = String(at);
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

  private mark(line: HTMLElement, on: boolean): void {
    line.classList.toggle("chosen", on);
    const cell = line.children.item(this.cursor.column);
    cell?.classList.toggle("cursor", on);
  }

  private choose(at: number, column: number): void {
    if (!this.rows.length) return;
    const before = this.made.get(this.cursor.at);
    if (before) this.mark(before, false);
    this.cursor.at = Math.max(0, Math.min(this.rows.length - 1, at));
    this.cursor.column = Math.max(0, Math.min(this.columns.length - 1, column));
    this.bringIntoView();
    this.draw();
    const now = this.made.get(this.cursor.at);
    if (now) this.mark(now, true);
    this.on.choose(this.rows[this.cursor.at]);
  }

  // Chooses a row of the table, if it is among those shown.
  goTo(row: number): boolean {
    const at = this.rows.indexOf(row);
    if (at < 0) return false;
    this.centre(at);
    this.choose(at, this.cursor.column);
    return true;
  }

  private centre(at: number): void {
    const view = this.scroller.clientHeight - this.head.offsetHeight;
    this.scrollToOffset(at * ROW_HEIGHT - view / 2 + ROW_HEIGHT / 2);
  }

  private scrollToOffset(offset: number): void {
    const view = this.scroller.clientHeight - this.head.offsetHeight;
    const wanted = Math.max(0, Math.min(offset, this.full - view));
    const reach = HIGHEST - view;
    this.scroller.scrollTop = this.full <= HIGHEST ? wanted : (wanted / (this.full - view)) * reach;
  }

  private bringIntoView(): void {
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

  private click(event: MouseEvent): void {
    const cell = (event.target as Element).closest(".cell");
    const line = cell?.parentElement;
    if (!cell || !line) return;
    this.choose(Number(line.dataset.at), Array.prototype.indexOf.call(line.children, cell));
  }

  private key(event: KeyboardEvent): void {
    const { at, column } = this.cursor;
    const page = Math.max(1, Math.floor((this.scroller.clientHeight - this.head.offsetHeight) / ROW_HEIGHT) - 1);
    const far = event.ctrlKey || event.metaKey;
    const moves: Record<string, (() => void) | undefined> = {
      ArrowUp: () => this.choose(at - 1, column),
      ArrowDown: () => this.choose(at + 1, column),
      ArrowLeft: () => this.choose(at, column - 1),
      ArrowRight: () => this.choose(at, column + 1),
      PageUp: () => this.choose(at - page, column),
      PageDown: () => this.choose(at + page, column),
      Home: () => this.choose(far ? 0 : at, far ? column : 0),
      End: () => this.choose(far ? this.rows.length - 1 : at, far ? column : this.columns.length - 1),
      Enter: () => {
        if (at >= 0) this.on.open(this.rows[at]);
      },
      Escape: () => this.on.close(),
    };
    if (far && event.key.toLowerCase() === "c" && at >= 0 && !getSelection()?.toString()) {
      this.on.copy(textOf(valueAt(this.table.columns[this.columns[column]], this.rows[at])));
      event.preventDefault();
      return;
    }
    const move = moves[event.key];
    if (!move || event.target !== this.scroller) return;
    move();
    event.preventDefault();
  }
}
