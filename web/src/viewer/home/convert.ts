// Making a graph file of dumps: a form over the options of graph_visualize, how far it is, what it said, and the result.

import { button, element } from "../../parts/dom";
import type { Catalogue, Conversion, ConvertQuestion, Item, Strategy } from "../api";
import type { Source } from "../sources/source";
import { VIEWER_WORDS } from "../words";

// Between two looks at how far it is.
const LOOK_AGAIN_MS = 250;

const NUMBERS = ["rankSize", "tp", "pp", "vpp", "cp", "ep"] as const;

// The fields that say how the ranks of one side share the work.
class StrategyFields {
  readonly body = element("fieldset", "strategy");
  private readonly fields = new Map<string, HTMLInputElement>();

  constructor(side: "target" | "golden") {
    const words = VIEWER_WORDS;
    this.body.dataset.side = side;
    this.body.append(element("legend", "", words.mergeOf(words[side])));
    for (const name of [...NUMBERS, "order"] as const) {
      const field = element("input", name === "order" ? "order" : "number");
      field.name = name;
      if (name === "order") field.placeholder = "tp-cp-ep-dp-pp";
      else field.inputMode = "numeric";
      this.fields.set(name, field);
      const label = element("label", "choice", words.strategy[name]);
      label.append(field);
      this.body.append(label);
    }
  }

  private text(name: string): string {
    return this.fields.get(name)?.value.trim() ?? "";
  }

  get isFilled(): boolean {
    return Array.from(this.fields.keys()).some((name) => this.text(name) !== "");
  }

  // What is left out is 1; what has to be there and is not is no number, and the form says so.
  read(): Strategy | null {
    const number = (name: string, usual: number) => (this.text(name) === "" ? usual : Number(this.text(name)));
    const strategy = {
      rankSize: number("rankSize", NaN),
      tp: number("tp", NaN),
      pp: number("pp", NaN),
      vpp: number("vpp", 1),
      cp: number("cp", 1),
      ep: number("ep", 1),
      order: this.text("order"),
    };
    return NUMBERS.every((name) => Number.isInteger(strategy[name]) && strategy[name] > 0) ? strategy : null;
  }
}

export class ConvertView {
  readonly body = element("main", "convert");
  private readonly target = element("select");
  private readonly golden = element("select");
  private readonly output = element("input");
  private readonly mapping = element("select");
  private readonly mappingFile = element("input");
  private readonly fuzzy = element("input");
  private readonly overflow = element("input");
  private readonly strategies = { target: new StrategyFields("target"), golden: new StrategyFields("golden") };
  private readonly start: HTMLButtonElement;
  private readonly bar = element("progress");
  private readonly said = element("p", "convert-said");
  private readonly log = element("ul", "convert-log");
  private readonly result = element("div", "bar convert-result");
  // Somebody else's view may be shown by now.
  private isLooking = false;

  constructor(
    catalogue: Catalogue,
    private readonly source: Source,
    private readonly open: (id: string) => void,
    private readonly attempt: <T>(work: Promise<T>) => Promise<T | undefined>,
  ) {
    const words = VIEWER_WORDS;
    const dumps = catalogue.items.filter(({ kind, error }) => kind === "dump" && error === null);
    this.start = button(words.convertStart, "", () => void this.begin(), "button primary convert-start");
    this.body.append(element("h1", "", words.convert), element("p", "soft", words.convertHint));
    if (!dumps.length) {
      this.body.append(element("p", "empty", words.noDumps));
      return;
    }
    this.body.append(this.form(dumps), this.said, this.bar, this.log, this.result);
    this.bar.max = 100;
    this.bar.hidden = true;
    this.said.setAttribute("role", "status");
    void this.look();
  }

  private form(dumps: Item[]): HTMLElement {
    const words = VIEWER_WORDS;
    const form = element("form", "convert-form");
    const labelled = (text: string, name: string, field: HTMLInputElement | HTMLSelectElement) => {
      field.name = name;
      const label = element("label", "choice", text);
      label.append(field);
      return label;
    };
    const tick = (text: string, name: string, field: HTMLInputElement) => {
      field.type = "checkbox";
      field.name = name;
      const label = element("label", "tick");
      label.append(field, text);
      return label;
    };
    for (const { id, path } of dumps) {
      this.target.append(new Option(path, id));
      this.golden.append(new Option(path, id));
    }
    this.golden.prepend(new Option(words.onlyBuild, "", true, true));
    this.output.value = "graph_output";
    for (const how of ["none", "names", "file"] as const) this.mapping.append(new Option(words.mappings[how], how));
    this.mappingFile.placeholder = words.mappingFile;
    this.mappingFile.hidden = true;
    this.mapping.addEventListener("change", () => (this.mappingFile.hidden = this.mapping.value !== "file"));
    this.strategies.golden.body.hidden = true;
    this.golden.addEventListener("change", () => (this.strategies.golden.body.hidden = !this.golden.value));
    const more = element("details");
    more.append(element("summary", "", words.mergeRanks), this.strategies.target.body, this.strategies.golden.body);
    form.append(
      labelled(words.target, "target", this.target),
      labelled(words.golden, "golden", this.golden),
      labelled(words.convertOutput, "output", this.output),
      labelled(words.layerMapping, "mapping", this.mapping),
      this.mappingFile,
      tick(words.fuzzyMatch, "fuzzy", this.fuzzy),
      tick(words.overflowCheck, "overflow", this.overflow),
      more,
      this.start,
    );
    form.addEventListener("submit", (event) => event.preventDefault());
    return form;
  }

  // What the form asks for; null if a number is missing.
  private question(): ConvertQuestion | null {
    const golden = this.golden.value || null;
    const sides = golden === null ? (["target"] as const) : (["target", "golden"] as const);
    const merge: Strategy[] = [];
    if (sides.some((side) => this.strategies[side].isFilled))
      for (const side of sides) {
        const strategy = this.strategies[side].read();
        if (!strategy) return null;
        merge.push(strategy);
      }
    const mappings: Record<string, string | null> = { none: null, names: "", file: this.mappingFile.value.trim() };
    return {
      target: this.target.value,
      golden,
      output: this.output.value.trim(),
      fuzzy: this.fuzzy.checked,
      overflowCheck: this.overflow.checked,
      mapping: mappings[this.mapping.value] ?? null,
      merge,
    };
  }

  private async begin(): Promise<void> {
    const asked = this.question();
    if (!asked) {
      this.said.textContent = VIEWER_WORDS.badStrategy;
      this.said.className = "convert-said fault";
      return;
    }
    this.start.disabled = true;
    const begun = await this.attempt(this.source.convert(asked));
    if (begun) await this.look();
    else this.start.disabled = false;
  }

  // Looks until it is over, or until nobody looks any more.
  private async look(): Promise<void> {
    if (this.isLooking) return;
    this.isLooking = true;
    for (;;) {
      const now = await this.attempt(this.source.conversion());
      if (now) this.draw(now);
      if (now?.state !== "running") break;
      await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
      if (!this.body.isConnected) break;
    }
    this.isLooking = false;
  }

  private draw({ state, percent, messages, error, hint, headline, path, item }: Conversion): void {
    const words = VIEWER_WORDS;
    this.body.dataset.state = state;
    this.start.disabled = state === "running";
    this.bar.hidden = state !== "running";
    this.bar.value = percent;
    this.said.className = `convert-said${state === "failed" ? " fault" : ""}`;
    this.said.textContent =
      state === "running" ? words.converting(percent) : [error, hint, headline].filter(Boolean).join("\n");
    this.log.replaceChildren(...messages.map((text) => element("li", "", text)));
    this.result.replaceChildren();
    if (state === "done" && item !== null)
      this.result.append(
        element("code", "", path ?? ""),
        button(words.convertOpen, "", () => this.open(item), "button primary convert-open"),
      );
  }
}
