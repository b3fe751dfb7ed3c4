// A table: the bar above its grid, the grid, and the panel with the details of a row.

import { afterTyping, button, copyText, element, penOf, searchField } from "../../parts/dom";
import { thousands, WORDS } from "../../parts/words";
import type { View } from "../../parts/views";
import { piecesOf, type TableDescription } from "../views";
import { Grid, type Sorting } from "./grid";
import {
  csvOf,
  type Filters,
  filterRows,
  isMissing,
  measure,
  readColumns,
  ROW_TONES,
  type RowBlock,
  sortRows,
  stackText,
  type Table,
  textOf,
  valueAt,
} from "./model";

// The order of the chips: what is wrong first.
const CHIPS = ["bad", "warning", "unknown", "plain"] as const;

// Width of a digit in the grid, whatever font there is.
function digitWidth(): number {
  const pen = penOf(document.createElement("canvas"));
  pen.font = `13px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText("0123456789").width / 10;
}

// Reads the blocks of a table when it is first looked at.
function loadTable(described: TableDescription, number: number): Table {
  const blocks = piecesOf(number) as Generator<RowBlock>;
  const read = readColumns(described.headers.length, described.count, blocks);
  const width = digitWidth();
  const measured = read.columns.map((column, at) => measure(described.headers[at], column));
  const widths = measured.map(({ chars }) => Math.round(chars * width) + 24);
  // Room for the mark of the evidence.
  if (widths.length) widths[0] += 16;
  return { ...described, ...read, widths, numeric: measured.map(({ numeric }) => numeric) };
}

function noFilters(): Filters {
  return { search: "", perColumn: new Map(), tones: ROW_TONES.map(() => true) };
}

export class TableView implements View {
  readonly body = element("section", "table");
  private readonly table: Table;
  private readonly grid: Grid;
  private readonly panel = element("aside", "details");
  private readonly count = element("span", "count");
  private readonly search: HTMLInputElement;
  private readonly chips: HTMLButtonElement[] = [];
  // Columns of the grid: all of them, and those shown at first.
  private readonly all: number[];
  private readonly usual: number[];
  private visible: Set<number>;
  private sort: Sorting = { column: -1, direction: 0 };
  private filters = noFilters();
  private filtered: Int32Array = new Int32Array(0);
  private hasBegun = false;
  private readonly filterLater = afterTyping(() => this.refilter());

  constructor(described: TableDescription, number: number) {
    this.table = loadTable(described, number);
    const all = this.table.headers.map((_, at) => at).filter((at) => !this.table.details.includes(at));
    this.usual = all.filter((at) => !this.table.hidden.includes(at));
    this.all = all;
    this.visible = new Set(this.usual);
    this.grid = new Grid(this.table, {
      sort: (column) => this.sortBy(column),
      filter: (column, text) => {
        this.filters.perColumn.set(column, text);
        this.filterLater();
      },
      choose: (row) => {
        if (!this.panel.hidden || this.table.details.length) this.showDetails(row);
      },
      open: (row) => this.showDetails(row),
      close: () => this.hideDetails(),
      copy: (text) => void copyText(text),
    });
    this.panel.hidden = true;
    this.search = searchField(WORDS.search, (typed) => {
      this.filters.search = typed;
      this.refilter();
    });
    const area = element("div", "area");
    area.append(this.grid.scroller, this.panel);
    this.body.append(this.bar(), area);
    if (!this.table.count) this.grid.empty.textContent = WORDS.noRows;
    this.refreshColumns();
    this.refilter();
  }

  shown(): void {
    this.grid.later();
    if (this.hasBegun) return;
    this.hasBegun = true;
    if (this.table.first !== null) this.goToEvidence(this.table.first);
  }

  private bar(): HTMLElement {
    const bar = element("div", "bar");
    this.count.setAttribute("aria-live", "polite");
    bar.append(this.search, this.colours(), this.columnMenu());
    const { first } = this.table;
    if (first !== null) {
      bar.append(button(WORDS.evidence, WORDS.evidenceHint, () => this.goToEvidence(first)));
    }
    bar.append(
      button(WORDS.reset, WORDS.resetHint, () => this.reset()),
      button(WORDS.exportCsv, WORDS.exportHint, () => this.exportCsv()),
      this.count,
    );
    return bar;
  }

  private colours(): HTMLElement {
    const counts = ROW_TONES.map(() => 0);
    for (const tone of this.table.tones) counts[tone]++;
    const group = element("div", "colours");
    for (const name of CHIPS) {
      const tone = ROW_TONES.indexOf(name);
      const toggle = () => {
        this.filters.tones[tone] = !this.filters.tones[tone];
        this.refilter();
      };
      const chip = button("", WORDS.colours, toggle, `chip ${name}`);
      chip.append(element("span", "dot"), `${WORDS.rowTones[name]} `, element("b", "", thousands(counts[tone])));
      chip.disabled = counts[tone] === 0;
      this.chips[tone] = chip;
      group.append(chip);
    }
    return group;
  }

  private columnMenu(): HTMLElement {
    const menu = element("details", "menu");
    menu.append(element("summary", "", WORDS.columns));
    const list = element("div", "list");
    const set = (columns: number[]) => {
      this.visible = new Set(columns);
      boxes.forEach((box, place) => (box.checked = this.visible.has(this.all[place])));
      this.refreshColumns();
    };
    const tools = element("div", "tools");
    tools.append(
      button(WORDS.allColumns, "", () => set(this.all)),
      button(WORDS.usualColumns, "", () => set(this.usual)),
    );
    list.append(tools);
    const boxes = this.all.map((number) => {
      const label = element("label");
      const box = element("input");
      box.type = "checkbox";
      box.checked = this.visible.has(number);
      box.addEventListener("change", () => {
        if (box.checked) this.visible.add(number);
        else this.visible.delete(number);
        this.refreshColumns();
      });
      label.append(box, element("span", "", this.table.headers[number]));
      list.append(label);
      return box;
    });
    menu.append(list);
    document.addEventListener("click", (event) => {
      if (!menu.contains(event.target as Node)) menu.open = false;
    });
    return menu;
  }

  private columnsShown(): number[] {
    return this.all.filter((number) => this.visible.has(number));
  }

  private refreshColumns(): void {
    this.grid.showColumns(this.columnsShown(), this.sort, this.filters.perColumn);
  }

  private refilter(): void {
    this.filtered = filterRows(this.table, this.filters);
    this.chips.forEach((chip, tone) => chip.setAttribute("aria-pressed", String(this.filters.tones[tone])));
    this.count.textContent = WORDS.rows(this.filtered.length, this.table.count);
    this.order();
  }

  private order(): void {
    const column = this.sort.column < 0 ? undefined : this.table.columns[this.sort.column];
    this.grid.showRows(sortRows(this.filtered, column, this.sort.direction));
  }

  // Upwards, downwards, as it was.
  private sortBy(column: number): void {
    const { column: last, direction } = this.sort;
    const next = last !== column ? 1 : direction === 1 ? -1 : 0;
    this.sort = { column: next ? column : -1, direction: next };
    this.refreshColumns();
    this.order();
    this.grid.scroller.scrollTop = 0;
  }

  private reset(): void {
    this.search.value = "";
    this.filters = noFilters();
    this.sort = { column: -1, direction: 0 };
    this.refreshColumns();
    this.refilter();
  }

  private goToEvidence(row: number): void {
    if (!this.grid.goTo(row)) {
      this.reset();
      this.grid.goTo(row);
    }
  }

  private exportCsv(): void {
    const columns = this.columnsShown().concat(this.table.details);
    const blob = new Blob(["\ufeff", csvOf(this.table, this.grid.rows, columns)], { type: "text/csv" });
    const link = element("a");
    link.href = URL.createObjectURL(blob);
    link.download = `${this.table.name.replace(/[^\p{L}\p{N}_-]+/gu, "_") || "table"}.csv`;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  private showDetails(row: number): void {
    const { table } = this;
    const title = element("div", "title");
    const copy = () =>
      void copyText(table.columns.map((column) => textOf(valueAt(column, row)).replace(/[\t\r\n]+/g, " ")).join("\t"));
    title.append(
      element("h2", "", WORDS.row(row + 1)),
      button(WORDS.copyRow, "", copy),
      button("✕", WORDS.close, () => this.hideDetails(), "button close"),
    );
    const content = element("div", "content");
    for (const number of table.details) {
      const value = valueAt(table.columns[number], row);
      content.append(
        element("h3", "", table.headers[number]),
        element("pre", isMissing(value) ? "missing" : "", stackText(value) || "–"),
      );
    }
    const list = element("dl");
    for (const number of this.all) list.append(...this.detail(number, row));
    content.append(list);
    this.panel.className = `details ${ROW_TONES[table.tones[row]]}`;
    const scrolled = this.panel.querySelector(".content")?.scrollTop ?? 0;
    this.panel.replaceChildren(title, content);
    if (this.panel.hidden) {
      this.panel.hidden = false;
      this.grid.later();
    }
    content.scrollTop = scrolled;
  }

  private detail(number: number, row: number): HTMLElement[] {
    const value = valueAt(this.table.columns[number], row);
    return [
      element("dt", "", this.table.headers[number]),
      element("dd", isMissing(value) ? "missing" : "", textOf(value) || "–"),
    ];
  }

  private hideDetails(): void {
    this.panel.hidden = true;
    this.grid.scroller.focus();
    this.grid.later();
  }
}
