// All pairs as a table, sorted and filtered by the server. Rows come in pages when they are scrolled to, and only those in
// view are in the document.

import { beforeNextFrame, button, element, searchField } from "../../parts/dom";
import type { NodeBrief } from "../api";
import { numberText } from "../numbers";
import type { TableQuery } from "../place";
import { type Context, spotOf } from "../shell/context";
import { handOut } from "../shell/files";
import { VIEWER_WORDS } from "../words";

const ROW_HEIGHT = 26;
const PAGE = 200;
const SPARE = 8;
// Browsers cannot scroll further than this; longer tables are scrolled in proportion.
const HIGHEST = 8000000;
// A server that does not tell the place of a row is asked for so many pages.
const MOST_LOOKED_THROUGH = 50;

const COLUMNS = [
  "order",
  "name",
  "partner",
  "verdict",
  "index",
  "errorIn",
  "errorOut",
  "tolerated",
  "overflow",
] as const;
type Column = (typeof COLUMNS)[number];
const NUMERIC: readonly Column[] = ["order", "index", "errorIn", "errorOut", "tolerated"];

function cellText(row: NodeBrief, column: Column): string {
  const words = VIEWER_WORDS;
  switch (column) {
    case "order":
      return String(row.order);
    case "name":
      return row.name;
    case "partner":
      return row.partner ?? "–";
    case "verdict":
      return row.verdict === null ? "–" : (words.verdicts[row.verdict] ?? row.verdict);
    case "overflow":
      return row.overflow ? words.overflows[row.overflow] : "–";
    default:
      return numberText(row[column]);
  }
}

export class TableView {
  readonly body = element("section", "pairs-table");
  private readonly field: HTMLInputElement;
  private readonly tones = element("div", "chips");
  private readonly count = element("span", "count");
  private readonly head = element("div", "pairs-head");
  private readonly scroller = element("div", "pairs-scroller");
  private readonly room = element("div", "pairs-room");
  private readonly later = beforeNextFrame(() => this.draw());
  private pages = new Map<number, NodeBrief[] | "asked">();
  private total = 0;
  private key = "";
  private typed = "";
  private chosen: string | null = null;
  // Where it stood when it was last brought up to date: what is moved forgets how far it was scrolled.
  private holder: Element | null = null;

  constructor(private readonly context: Context) {
    const words = VIEWER_WORDS;
    this.field = searchField(words.filterPairs, () => this.ask({}));
    const bar = element("div", "bar");
    bar.append(
      this.field,
      this.tones,
      button(words.exportCsv, "", () => void this.exportCsv(), "button export-csv"),
      this.count,
    );
    this.scroller.tabIndex = 0;
    this.scroller.setAttribute("role", "grid");
    this.scroller.append(this.room);
    this.scroller.addEventListener(
      "scroll",
      () => {
        // In a narrow window headers stay above their columns.
        this.head.style.transform = `translateX(${-this.scroller.scrollLeft}px)`;
        this.later();
      },
      { passive: true },
    );
    this.scroller.addEventListener("keydown", (event) => this.keydown(event));
    new ResizeObserver(() => this.later()).observe(this.scroller);
    this.body.append(bar, this.head, this.scroller);
  }

  private get query(): TableQuery {
    return this.context.place.table;
  }

  private ask(patch: Partial<TableQuery>): void {
    this.typed = this.field.value;
    this.context.go({ table: { ...this.query, q: this.typed, ...patch } });
  }

  forget(): void {
    this.key = "";
  }

  async update(): Promise<void> {
    const { context } = this;
    const { place, info } = context;
    // What is being typed is not taken away.
    if (this.query.q !== this.typed) this.field.value = this.typed = this.query.q;
    this.drawTones();
    this.drawHead();
    const key = JSON.stringify([info.id, place.step, place.rank, place.micro, place.stats, this.query]);
    const isOther = key !== this.key;
    if (this.holder !== this.body.parentElement) {
      this.holder = this.body.parentElement;
      this.chosen = null;
    }
    if (isOther) {
      this.key = key;
      this.pages = new Map();
      this.total = 0;
      await this.page(0);
      if (this.key !== key) return;
    }
    if (isOther || place.node !== this.chosen) await this.scrollToChosen();
    this.later();
  }

  private drawTones(): void {
    const { tones } = this.query;
    this.tones.replaceChildren(
      ...(["bad", "warning", "good", "unknown", "plain"] as const).map((tone) => {
        const isOn = tones.includes(tone);
        const chip = button(
          "",
          VIEWER_WORDS.tones[tone],
          () => this.ask({ tones: isOn ? tones.filter((other) => other !== tone) : [...tones, tone] }),
          `chip ${tone}`,
        );
        chip.append(element("span", "dot"), VIEWER_WORDS.shortTones[tone]);
        chip.setAttribute("aria-pressed", String(isOn));
        return chip;
      }),
    );
  }

  private drawHead(): void {
    const { sort, descending } = this.query;
    this.head.replaceChildren(
      ...COLUMNS.map((column) => {
        const isSorted = sort === column;
        const cell = button(
          VIEWER_WORDS[column],
          "",
          () =>
            this.ask({
              sort: column,
              descending: isSorted ? !descending : NUMERIC.includes(column) && column !== "order",
            }),
          `pairs-cell ${column}`,
        );
        cell.setAttribute("aria-sort", isSorted ? (descending ? "descending" : "ascending") : "none");
        if (isSorted) cell.append(descending ? " ↓" : " ↑");
        return cell;
      }),
    );
  }

  private async page(number: number): Promise<void> {
    if (this.pages.has(number)) return;
    this.pages.set(number, "asked");
    const { context, key, pages } = this;
    const answer = await context.attempt(
      context.source.pairs(context.info.id, spotOf(context), {
        ...this.query,
        offset: number * PAGE,
        limit: PAGE,
        node: null,
      }),
    );
    if (key !== this.key || pages !== this.pages) return;
    if (!answer) {
      pages.delete(number);
      return;
    }
    pages.set(number, answer.rows);
    this.total = answer.total;
    this.count.textContent = VIEWER_WORDS.rows(answer.total);
    this.later();
  }

  private rowAt(place: number): NodeBrief | undefined {
    const page = this.pages.get(Math.floor(place / PAGE));
    return page === "asked" ? undefined : page?.at(place % PAGE);
  }

  // Of the target; a golden node stands in the row of its partner.
  private async wantedName(): Promise<string | null> {
    const { context } = this;
    const { node, side } = context.place;
    if (node === null || side === "target") return node;
    const detail = await context.attempt(context.source.node(context.info.id, spotOf(context, "golden"), node));
    return detail?.brief.partner ?? null;
  }

  private async scrollToChosen(): Promise<void> {
    const { context } = this;
    this.chosen = context.place.node;
    const name = await this.wantedName();
    if (name === null) return;
    const answer = await context.attempt(
      context.source.pairs(context.info.id, spotOf(context), { ...this.query, offset: 0, limit: 1, node: name }),
    );
    let place = answer?.place;
    if (place === undefined) place = await this.lookFor(name);
    if (place === null) return;
    const { scrollHeight, clientHeight, scrollTop } = this.scroller;
    const top = this.topOf(place);
    if (top < scrollTop || top > scrollTop + clientHeight - ROW_HEIGHT)
      this.scroller.scrollTop = Math.min(scrollHeight, Math.max(0, top - clientHeight / 2));
  }

  private async lookFor(name: string): Promise<number | null> {
    for (let number = 0; number < MOST_LOOKED_THROUGH && number * PAGE < this.total; number++) {
      await this.page(number);
      const page = this.pages.get(number);
      const at = Array.isArray(page) ? page.findIndex((row) => row.name === name) : -1;
      if (at >= 0) return number * PAGE + at;
    }
    return null;
  }

  private get height(): number {
    return Math.min(HIGHEST, this.total * ROW_HEIGHT);
  }

  // Where a row is in the room that is scrolled.
  private topOf(place: number): number {
    return (place / Math.max(1, this.total)) * this.height;
  }

  private draw(): void {
    const { scroller, total } = this;
    this.room.style.height = `${this.height}px`;
    if (!total) {
      const isKnown = Array.isArray(this.pages.get(0));
      this.room.replaceChildren(...(isKnown ? [element("p", "empty", VIEWER_WORDS.noRows)] : []));
      return;
    }
    const first = Math.max(0, Math.floor((scroller.scrollTop / this.height) * total) - SPARE);
    const last = Math.min(total, first + Math.ceil(scroller.clientHeight / ROW_HEIGHT) + 2 * SPARE);
    const origin = scroller.scrollTop - ((scroller.scrollTop / this.height) * total - first) * ROW_HEIGHT;
    const rows: HTMLElement[] = [];
    for (let place = first; place < last; place++) {
      const row = element("div", "pairs-row");
      row.style.top = `${Math.round(origin + (place - first) * ROW_HEIGHT)}px`;
      const brief = this.rowAt(place);
      if (brief) this.fill(row, brief, place);
      else void this.page(Math.floor(place / PAGE));
      rows.push(row);
    }
    this.room.replaceChildren(...rows);
  }

  private fill(row: HTMLElement, brief: NodeBrief, place: number): void {
    const { side, node } = this.context.place;
    const isChosen = node !== null && (side === "target" ? brief.name === node : brief.partner === node);
    row.className = `pairs-row toned ${brief.tone}${isChosen ? " chosen" : ""}`;
    row.dataset.place = String(place);
    row.dataset.name = brief.name;
    row.setAttribute("role", "row");
    for (const column of COLUMNS) {
      const cell = element("span", `pairs-cell ${column}`, cellText(brief, column));
      if (column === "name" || column === "partner") cell.title = cell.textContent;
      row.append(cell);
    }
    row.addEventListener("click", () => this.choose(brief));
    row.addEventListener("dblclick", () => this.context.go({ side: "target", node: brief.name, screen: "graph" }));
  }

  private choose(brief: NodeBrief): void {
    // It is in view already.
    this.chosen = brief.name;
    this.context.go({ side: "target", node: brief.name });
  }

  private keydown(event: KeyboardEvent): void {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter" && this.context.place.node !== null) {
      this.context.go({ screen: "graph" });
    } else if (by) {
      const here = this.room.querySelector<HTMLElement>(".pairs-row.chosen");
      const next = this.rowAt(here ? Number(here.dataset.place) + by : 0);
      if (next) this.context.go({ side: "target", node: next.name });
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  private async exportCsv(): Promise<void> {
    const { context } = this;
    const csv = await context.attempt(context.source.pairsCsv(context.info.id, spotOf(context), this.query));
    if (csv) handOut(csv, `pairs_step${context.place.step ?? 0}_rank${context.place.rank ?? 0}.csv`);
  }
}
