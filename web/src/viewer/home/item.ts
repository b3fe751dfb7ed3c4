// An item that is no graph: its answer, its matrix, its tables and its report.

import { button, element } from "../../parts/dom";
import type { Answer, Item, ItemTables, Matrix } from "../api";
import { numberText } from "../numbers";
import { Figure } from "../pictures/figure";
import { heatPicture } from "../pictures/heat";
import type { Place, Screen } from "../place";
import type { Source } from "../sources/source";
import { VIEWER_WORDS } from "../words";
import { TrendView } from "./trend";

// What a person wants to know first.
export function answerBox(answer: Answer, tone: string): HTMLElement {
  const words = VIEWER_WORDS;
  const box = element("section", `answer toned ${tone}`);
  box.append(element("h2", "", answer.headline));
  const facts = element("dl");
  const fact = (name: string, text: string) => facts.append(element("dt", "", name), element("dd", "", text));
  if (answer.culprit) {
    fact(words.culprit, answer.culprit.name);
    for (const { label, text } of answer.culprit.facts) fact(label, text);
  }
  for (const { text } of answer.not_compared) fact(words.notRead, text);
  if (answer.next_step) fact(words.nextStep, answer.next_step);
  box.append(facts);
  return box;
}

export function reportFrame(source: Source, report: string): HTMLElement {
  const address = source.reportAddress(report);
  if (!address) return element("p", "empty", VIEWER_WORDS.failed);
  const frame = element("iframe", "report-frame");
  // Scripts of the report run, apart from this page and its server.
  frame.setAttribute("sandbox", "allow-scripts allow-downloads");
  frame.src = address;
  frame.title = VIEWER_WORDS.screens.report;
  return frame;
}

const TABLE_ROWS = 1000;

function tablesOf({ tables }: ItemTables): HTMLElement[] {
  return tables.map(({ name, headers, rows, tones, isCut }) => {
    const holder = element("section", "item-table");
    holder.append(element("h3", "", name));
    const table = element("table", "plain-table");
    const head = element("tr");
    for (const header of headers) head.append(element("th", "", header));
    table.append(head);
    rows.slice(0, TABLE_ROWS).forEach((row, place) => {
      const line = element("tr", `toned ${tones[place] ?? "plain"}`);
      for (const cell of row)
        line.append(element("td", typeof cell === "number" ? "number" : "", cell === null ? "–" : String(cell)));
      table.append(line);
    });
    const scroller = element("div", "table-scroller");
    scroller.append(table);
    holder.append(scroller);
    if (isCut || rows.length > TABLE_ROWS) holder.append(element("p", "soft", VIEWER_WORDS.cut));
    return holder;
  });
}

export class ItemView {
  readonly body = element("main", "item-view");
  private readonly tabs = element("nav", "tabs");
  private readonly holder = element("div", "item-holder");
  private readonly figure: Figure;
  private readonly trend: TrendView | null;
  private shown: Screen | null = null;

  constructor(
    private readonly item: Item,
    private readonly source: Source,
    private readonly go: (patch: Partial<Place>) => void,
    private readonly attempt: <T>(work: Promise<T>) => Promise<T | undefined>,
  ) {
    this.figure = new Figure(item.kind);
    this.trend = item.kind === "trend" ? new TrendView(item, source, go, attempt) : null;
    const screens: Screen[] = [];
    if (this.hasMatrix || this.trend) screens.push("pictures");
    if (!this.trend) screens.push("tables");
    if (item.report) screens.push("report");
    for (const screen of screens) {
      const tab = button(VIEWER_WORDS.screens[screen], "", () => this.go({ screen }), "tab");
      tab.dataset.screen = screen;
      this.tabs.append(tab);
    }
    if (item.answer) this.body.append(answerBox(item.answer, item.tone));
    if (item.error) this.body.append(element("p", "fault", item.error));
    this.body.append(this.tabs, this.holder);
  }

  private get hasMatrix(): boolean {
    return this.item.kind === "gradients" || this.item.kind === "keydata";
  }

  async update(place: Place): Promise<void> {
    const { screen } = place;
    if (this.trend) {
      if (!this.trend.body.isConnected) this.holder.replaceChildren(this.trend.body);
      this.body.classList.add("with-trend");
      this.tabs.hidden = true;
      await this.trend.update(place);
      return;
    }
    for (const tab of Array.from(this.tabs.children) as HTMLElement[])
      tab.setAttribute("aria-selected", String(tab.dataset.screen === screen));
    if (this.shown === screen) return;
    this.shown = screen;
    this.body.classList.toggle("with-report", screen === "report");
    const { item, source } = this;
    if (screen === "report" && item.report) this.holder.replaceChildren(reportFrame(source, item.report));
    else if (screen === "pictures" && this.hasMatrix) {
      this.holder.replaceChildren(this.figure.body);
      const matrix = await this.attempt(source.matrix(item.kind as "gradients", item.id));
      if (matrix) this.drawMatrix(matrix);
    } else {
      const tables = await this.attempt(source.tables(item.id));
      if (tables) {
        const made = tablesOf(tables);
        this.holder.replaceChildren(...(made.length ? made : [element("p", "empty", VIEWER_WORDS.noRows)]));
      }
    }
  }

  private drawMatrix({ rows, columns, cells, limit }: Matrix): void {
    const said = limit === null ? "" : ` · ${VIEWER_WORDS.limit} ${numberText(limit)}`;
    this.figure.show(
      heatPicture({
        rows,
        columns,
        rowTitle: VIEWER_WORDS.kinds[this.item.kind],
        columnTitle: `${VIEWER_WORDS.step}${said}`,
        cells: cells.map(({ row, column, number, tone, text }) => ({
          row,
          column,
          number,
          tone,
          label: number === null ? text : numberText(number),
          text: text || `${rows[row]} · ${columns[column]}: ${numberText(number)}`,
        })),
      }),
    );
  }
}
