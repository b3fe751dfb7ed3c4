// The findings of a step and rank in the order of calls: filtered, walked through, jumped to.

import { button, element } from "../../parts/dom";
import type { Findings, GraphInfo, NodeBrief } from "../api";
import { colourMode, type Context, spotOf } from "../shell/context";
import { VIEWER_WORDS } from "../words";
import { nodeRow } from "./rows";

const LIMIT = 500;
const COMPARED_KINDS = ["introduced", "inherited", "unmatched", "warning", "error", "pass"];
const OVERFLOW_KINDS = ["overflow", "medium", "high", "critical"];

// The kinds that are ranges of the index: those of the colours, and those an address still names.
function rangeKinds(info: GraphInfo, chosen: readonly string[]): { kind: string; hex: string | null }[] {
  const ranges = info.colours.flatMap(({ hex, range }) => (range.length === 2 ? [{ hex, range }] : []));
  const top = Math.max(...ranges.map(({ range }) => range[1]));
  const made = ranges.map(({ hex, range: [low, high] }) => ({
    kind: `index:${low}:${high}${high === top ? ":closed" : ""}`,
    hex,
  }));
  const others = chosen.filter((kind) => kind.startsWith("index:") && !made.some((one) => one.kind === kind));
  return [...made, ...others.map((kind) => ({ kind, hex: null }))];
}

function rangeText(kind: string): string {
  const [, low, high] = kind.split(":");
  return VIEWER_WORDS.ofRange(Number(low), Number(high));
}

export class FindingsPanel {
  readonly body = element("section", "side-panel findings");
  private readonly list = element("div", "node-list");
  private readonly count = element("span", "count");
  private readonly chips = element("div", "chips");
  private readonly jumps = element("div", "bar");
  private readonly answer = element("div", "rank-answer");
  private found: NodeBrief[] = [];
  private total = 0;
  private key = "";
  private asking: Promise<void> = Promise.resolve();

  constructor(private readonly context: Context) {
    const words = VIEWER_WORDS;
    this.jumps.append(
      button(words.firstDivergence, "f", () => void this.jump("first_divergence")),
      button(words.firstNan, "", () => void this.jump("first_nan")),
      button("‹", `${words.previousFinding} (p)`, () => void this.step(-1), "button previous"),
      button("›", `${words.nextFinding} (n)`, () => void this.step(1), "button next"),
    );
    this.body.append(this.answer, this.jumps, this.chips, this.list);
  }

  // What the file itself says of this step and rank.
  private drawAnswer(): void {
    const { place, info } = this.context;
    const own = info.answers.find(({ step, rank }) => step === place.step && rank === place.rank);
    this.answer.hidden = !own;
    if (!own) return;
    this.answer.className = `rank-answer toned ${own.tone}`;
    const { node } = own;
    this.answer.replaceChildren(
      node === null
        ? element("span", "", own.headline)
        : button(own.headline, node, () => this.context.go({ side: "target", node }), "link"),
    );
  }

  private drawChips(): void {
    const words = VIEWER_WORDS;
    const { place, info } = this.context;
    const kinds = [...(info.kind === "compare" ? COMPARED_KINDS : []), ...OVERFLOW_KINDS];
    const ranges = rangeKinds(info, place.kinds);
    // Where the colours are ranges, the ranges can be chosen.
    if (info.kind === "compare" && (colourMode(this.context) === "index" || ranges.some(({ hex }) => hex === null)))
      kinds.push(...ranges.map(({ kind }) => kind));
    const made = kinds.map((kind) => {
      const isOn = place.kinds.includes(kind);
      const chip = button(
        words.findingKinds[kind] ?? rangeText(kind),
        "",
        () => {
          const kept = isOn ? place.kinds.filter((other) => other !== kind) : [...place.kinds, kind];
          this.context.go({ kinds: kept });
        },
        "chip",
      );
      chip.dataset.kind = kind;
      chip.setAttribute("aria-pressed", String(isOn));
      const hex = ranges.find((range) => range.kind === kind)?.hex;
      if (hex) {
        const dot = element("span", "dot");
        dot.style.background = hex;
        chip.prepend(dot);
      }
      if (OVERFLOW_KINDS.includes(kind) && !info.overflowCheck) {
        chip.disabled = true;
        chip.title = words.noOverflowCheck;
      }
      return chip;
    });
    const leaves = element("label", "tick");
    const box = element("input");
    box.type = "checkbox";
    box.checked = place.leaves;
    box.addEventListener("change", () => this.context.go({ leaves: box.checked }));
    leaves.append(box, words.leaves);
    this.chips.replaceChildren(...made, leaves, this.count);
  }

  // Asks again only if something else is asked for.
  async update(): Promise<void> {
    const { place, info } = this.context;
    this.drawAnswer();
    this.drawChips();
    const key = JSON.stringify([info.id, place.step, place.rank, place.micro, place.kinds, place.leaves, place.stats]);
    if (key !== this.key) {
      this.key = key;
      this.asking = this.ask(null);
    }
    await this.asking;
    this.mark();
  }

  // After manual matches what was found may be wrong.
  forget(): void {
    this.key = "";
  }

  private async ask(after: number | null): Promise<void> {
    const { context, key } = this;
    const { source, info, place } = context;
    const { kinds, leaves } = place;
    const answer = await context.attempt(
      kinds.length
        ? source.findings(info.id, spotOf(context), { kinds, leaves, after, limit: LIMIT })
        : Promise.resolve<Findings>({ total: 0, findings: [] }),
    );
    if (!answer || key !== this.key) return;
    this.found = after === null ? answer.findings : [...this.found, ...answer.findings];
    this.total = answer.total;
    this.draw();
  }

  private draw(): void {
    const words = VIEWER_WORDS;
    this.count.textContent = words.countFound(this.found.length, this.total);
    const rows: HTMLElement[] = this.found.map((node) =>
      nodeRow(node, false, () => this.context.go({ side: "target", node: node.name })),
    );
    const last = this.found.at(-1);
    if (last && this.found.length < this.total)
      rows.push(button(words.moreFindings, "", () => void this.ask(last.order), "button more"));
    this.list.replaceChildren(...(rows.length ? rows : [element("p", "empty", words.noFindings)]));
    this.mark();
  }

  private mark(): void {
    const { node } = this.context.place;
    for (const row of Array.from(this.list.children) as HTMLElement[]) {
      const isChosen = row.dataset.name === node;
      row.classList.toggle("chosen", isChosen);
      if (isChosen && !this.body.hidden) row.scrollIntoView({ block: "nearest" });
    }
  }

  // The finding after or before the chosen node, around the ends.
  async step(by: 1 | -1): Promise<void> {
    await this.update();
    const { found, context } = this;
    if (!found.length) {
      context.tell(VIEWER_WORDS.noFindings);
      return;
    }
    const here = found.findIndex(({ name }) => name === context.place.node);
    const next = here < 0 ? (by > 0 ? 0 : found.length - 1) : (here + by + found.length) % found.length;
    if (by > 0 && here === found.length - 1 && found.length < this.total) {
      await this.ask(found[here].order);
      context.go({ side: "target", node: this.found[here + 1]?.name ?? found[0].name });
      return;
    }
    context.go({ side: "target", node: found[next].name });
  }

  // Over all ranks: communication may have brought it from another one.
  async jump(to: "first_divergence" | "first_nan"): Promise<void> {
    const { context } = this;
    const answer = await context.attempt(context.source.jump(context.info.id, to, context.place.step ?? 0, null));
    if (!answer) return;
    if (!answer.found) {
      context.tell(answer.why || VIEWER_WORDS.noJump);
      return;
    }
    const { step, rank, side, node } = answer.found;
    const isHere = step === context.place.step && rank === context.place.rank;
    context.go({ step, rank, side, node, ...(isHere ? {} : { open: { target: [], golden: [] } }) });
    if (answer.why) context.tell(answer.why);
  }
}
