// What was found, grouped by kind, each with its answer. A run of many ranks and steps is one line with one small picture.

import { button, element, searchField } from "../../parts/dom";
import type { Catalogue, Item, ItemKind } from "../api";
import { bytesText } from "../numbers";
import { emptyPlace, type Place } from "../place";
import { VIEWER_WORDS } from "../words";
import { cellsPicture } from "./cells";

const KINDS: readonly ItemKind[] = ["graph", "comparison", "overflow", "gradients", "keydata", "trend", "dump"];

export const isGraph = ({ kind }: Item): boolean => kind === "graph" || kind === "dump";

// Where an item is looked at first.
export function placeOfItem(item: Item): Place {
  const place = { ...emptyPlace(), file: item.id };
  if (isGraph(item)) return place;
  return { ...place, screen: ["gradients", "keydata", "trend"].includes(item.kind) ? "pictures" : "tables" };
}

export class Home {
  readonly body = element("main", "home");
  private readonly list = element("div", "items");
  private readonly count = element("span", "count");
  private wanted = "";

  constructor(
    private readonly catalogue: Catalogue,
    private readonly go: (place: Place) => void,
    canConvert: boolean,
  ) {
    const bar = element("div", "bar");
    const field = searchField(VIEWER_WORDS.filterItems, (typed) => {
      this.wanted = typed.toLowerCase();
      this.draw();
    });
    bar.append(field, this.count, element("span", "soft roots", catalogue.roots.join(" · ")));
    if (canConvert)
      bar.append(
        button(
          VIEWER_WORDS.convert,
          VIEWER_WORDS.convertHint,
          () => this.go({ ...emptyPlace(), screen: "convert" }),
          "button to-convert",
        ),
      );
    this.body.append(bar, this.list);
    this.draw();
  }

  draw(): void {
    const words = VIEWER_WORDS;
    const { items, notes } = this.catalogue;
    const shown = items.filter((item) =>
      [item.title, item.path, item.kind, item.answer?.status ?? "", item.answer?.culprit?.name ?? ""].some((text) =>
        text.toLowerCase().includes(this.wanted),
      ),
    );
    this.count.textContent = words.items(shown.length);
    const parts: HTMLElement[] = [];
    for (const kind of KINDS) {
      const own = shown.filter((item) => item.kind === kind);
      if (!own.length) continue;
      const group = element("section", "kind");
      group.dataset.kind = kind;
      const head = element("h2", "", words.kinds[kind]);
      head.append(element("span", "badge", String(own.length)));
      group.append(head, ...own.map((item) => this.line(item)));
      parts.push(group);
    }
    if (!items.length) parts.push(element("p", "empty", `${words.nothing}. ${words.nothingHint}`));
    if (notes.length) {
      const group = element("details", "notes");
      group.append(element("summary", "", `${words.notRead} (${notes.length})`));
      for (const { path, text } of notes) group.append(element("p", "", `${path}: ${text}`));
      parts.push(group);
    }
    this.list.replaceChildren(...parts);
  }

  private line(item: Item): HTMLElement {
    const words = VIEWER_WORDS;
    const line = element("article", `item toned ${item.tone}`);
    line.dataset.id = item.id;
    const open = (patch: Partial<Place> = {}) => this.go({ ...placeOfItem(item), ...patch });
    const title = button(item.title, item.path, () => open(), "item-title");
    const facts = element("p", "item-facts");
    const fact = (text: string, className = "") => facts.append(element("span", className, text));
    if (item.answer) fact(words.status[item.answer.status] ?? item.answer.status, `status ${item.tone}`);
    if (item.ranks.length || item.steps.length)
      fact(words.ranksSteps(Math.max(1, item.ranks.length), Math.max(1, item.steps.length)));
    const when = new Date(item.modified);
    fact(Number.isNaN(when.getTime()) ? item.modified : when.toLocaleString());
    fact(bytesText(item.bytes));
    const words1 = element("div", "item-words");
    words1.append(title, facts);
    const { answer } = item;
    if (answer?.headline) words1.append(element("p", "item-headline", answer.headline));
    const culprit = answer?.culprit?.name ?? item.cells.find((cell) => cell.culprit)?.culprit;
    if (culprit) {
      const said = element("p", "item-culprit");
      said.append(element("span", "soft", `${words.culprit}: `), element("code", "", culprit));
      words1.append(said);
    }
    if (item.error) words1.append(element("p", "fault", item.error));
    line.append(words1);
    if (item.cells.length > 1)
      line.append(
        cellsPicture(item, (step, rank) => {
          const cell = item.cells.find((one) => one.step === step && one.rank === rank);
          open({ step, rank, ...(isGraph(item) && cell?.culprit ? { node: cell.culprit } : {}) });
        }),
      );
    if (item.report) line.append(button(words.openReport, "", () => open({ screen: "report" }), "button report"));
    line.addEventListener("click", (event) => {
      if (event.target === line || (event.target as Element).closest("p")) open();
    });
    return line;
  }
}
