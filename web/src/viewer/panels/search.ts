// Search by name over all steps, ranks and sides of a graph, narrowed by facets, grouped by rank.

import { button, element, searchField } from "../../parts/dom";
import type { SearchResult } from "../api";
import type { SearchQuery } from "../place";
import type { Context } from "../shell/context";
import { VIEWER_WORDS } from "../words";
import { nodeRow } from "./rows";

const LIMIT = 200;

// The values of facets are identifiers.
function facetText(facet: string, value: string): string {
  const words = VIEWER_WORDS;
  if (value === "none") return words.none;
  if (facet === "verdict") return words.verdicts[value] ?? value;
  if (facet === "overflow") return (words.overflows as Record<string, string | undefined>)[value] ?? value;
  return value === "target" || value === "golden" ? words[value] : value;
}

export class SearchPanel {
  readonly body = element("section", "side-panel searching");
  private readonly field: HTMLInputElement;
  private readonly regex = element("input");
  private readonly matchCase = element("input");
  private readonly facets = element("div", "facets");
  private readonly said = element("p", "said");
  private readonly list = element("div", "node-list");
  private key = "";
  private typed = "";
  private asked = 0;

  constructor(private readonly context: Context) {
    const words = VIEWER_WORDS;
    this.field = searchField(words.searchAll, () => this.ask({}));
    this.field.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown") this.list.querySelector<HTMLButtonElement>(".node-row")?.focus();
    });
    this.list.addEventListener("keydown", (event) => {
      const rows = Array.from(this.list.querySelectorAll<HTMLButtonElement>(".node-row"));
      const at = rows.indexOf(document.activeElement as HTMLButtonElement);
      if (event.key === "ArrowDown") rows.at(at + 1)?.focus();
      else if (event.key === "ArrowUp") (at > 0 ? rows[at - 1] : this.field).focus();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    const ticks = element("div", "ticks");
    for (const [box, text, key] of [
      [this.regex, words.regex, "regex"],
      [this.matchCase, words.matchCase, "matchCase"],
    ] as const) {
      box.type = "checkbox";
      box.addEventListener("change", () => this.ask({ [key]: box.checked }));
      const label = element("label", "tick");
      label.append(box, text);
      ticks.append(label);
    }
    this.said.setAttribute("aria-live", "polite");
    this.body.append(this.field, ticks, this.facets, this.said, this.list);
  }

  focus(): void {
    this.field.focus();
    this.field.select();
  }

  private ask(patch: Partial<SearchQuery>): void {
    this.typed = this.field.value;
    this.context.note({ search: { ...this.context.place.search, q: this.typed, ...patch } });
    void this.update();
  }

  async update(): Promise<void> {
    const { context } = this;
    const { search } = context.place;
    // What is being typed is not taken away.
    if (search.q !== this.typed) this.field.value = this.typed = search.q;
    this.regex.checked = search.regex;
    this.matchCase.checked = search.matchCase;
    const key = JSON.stringify([context.info.id, search]);
    if (key === this.key) return;
    this.key = key;
    const asked = ++this.asked;
    if (!search.q && !Object.keys(search.facets).length) {
      this.said.textContent = "";
      this.list.replaceChildren();
      this.facets.replaceChildren();
      return;
    }
    const result = await context.attempt(
      context.source.search(context.info.id, { ...search, limit: LIMIT, stats: context.place.stats.join(",") }),
    );
    if (asked !== this.asked || !result) return;
    this.draw(result);
  }

  private draw(result: SearchResult): void {
    const words = VIEWER_WORDS;
    const { context } = this;
    const { facets } = context.place.search;
    this.said.textContent = result.total
      ? `${words.hits(result.total, result.elapsedMs)}${result.isCapped ? ` · ${words.firstHits(result.hits.length)}` : ""}`
      : words.noHits;
    this.facets.replaceChildren(
      ...result.facets
        .filter(({ name, values }) => values.length > 1 || facets[name])
        .map(({ name, values }) => {
          const row = element("div", "facet");
          row.append(element("span", "facet-name", words.facets[name] ?? name));
          for (const { value, count } of values) {
            const isOn = facets[name] === value;
            const chip = button(
              facetText(name, value),
              "",
              () => {
                const others = Object.entries(facets).filter(([other]) => other !== name);
                this.ask({ facets: Object.fromEntries(isOn ? others : [...others, [name, value]]) });
              },
              "chip",
            );
            chip.append(element("b", "", String(count)));
            chip.setAttribute("aria-pressed", String(isOn));
            row.append(chip);
          }
          return row;
        }),
    );
    const parts: HTMLElement[] = [];
    for (const { step, rank, count } of result.groups) {
      const head = element("h3", "group", words.rankStep(step, rank));
      head.append(element("span", "badge", String(count)));
      const hits = result.hits.filter((hit) => hit.step === step && hit.rank === rank);
      if (!hits.length) continue;
      parts.push(head);
      for (const hit of hits) {
        const isHere = context.place.step === step && context.place.rank === rank;
        const row = nodeRow({ ...hit, overflow: hit.overflow as "medium" | null }, false, () =>
          context.go({
            step,
            rank,
            side: hit.side,
            node: hit.name,
            ...(isHere ? {} : { open: { target: [], golden: [] } }),
          }),
        );
        row.prepend(element("span", "side-mark", hit.side === "target" ? "T" : "G"));
        parts.push(row);
      }
    }
    this.list.replaceChildren(...parts);
  }
}
