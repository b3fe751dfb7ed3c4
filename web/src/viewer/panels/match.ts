// Matching by hand: one unmatched node of each side, suggestions, undo and redo, and writing it all down.

import { button, element } from "../../parts/dom";
import type { Changed, NodeBrief, SideName } from "../api";
import { type Context, otherSide, spotOf } from "../shell/context";
import { takeFile } from "../shell/files";
import { VIEWER_WORDS } from "../words";
import { nodeRow } from "./rows";

// What is to be chosen next, and what the graph has to know of it.
export interface MatchEvents {
  chosen(target: string | null, golden: string | null): void;
  // Pairs changed: everything that was shown of them has to be asked for again.
  changed(): void;
}

export class MatchPanel {
  readonly body = element("section", "side-panel matching");
  private readonly picks: Record<SideName, NodeBrief | null> = { target: null, golden: null };
  private edits: Changed | null = null;
  private isDeep = true;
  private suggested: { node: NodeBrief; reason: string }[] = [];
  private node: NodeBrief | null = null;
  private where = "";
  private asked = 0;

  constructor(
    private readonly context: Context,
    private readonly on: MatchEvents,
  ) {}

  // Takes the chosen node: unmatched ones become one of the pair.
  async update(): Promise<void> {
    const { context } = this;
    const { place, info, source } = context;
    const asked = ++this.asked;
    const where = JSON.stringify([info.id, place.step, place.rank]);
    if (where !== this.where) {
      this.where = where;
      this.picks.target = this.picks.golden = null;
      this.edits = null;
    }
    this.edits ??= (await context.attempt(source.edits(info.id))) ?? null;
    if (asked !== this.asked) return;
    this.node = null;
    this.suggested = [];
    if (place.node !== null && info.kind === "compare") {
      const spot = spotOf(context, place.side);
      const detail = await context.attempt(source.node(info.id, spot, place.node));
      if (asked !== this.asked || !detail) return;
      this.node = detail.brief;
      if (!detail.brief.partner && detail.brief.parent !== null) {
        this.picks[place.side] = detail.brief;
        const answer = await context.attempt(source.suggestions(info.id, spot, place.node));
        if (asked !== this.asked) return;
        this.suggested = answer?.suggestions ?? [];
      }
    }
    this.draw();
  }

  private draw(): void {
    const words = VIEWER_WORDS;
    const { context } = this;
    const { picks, edits, node } = this;
    this.on.chosen(picks.target?.name ?? null, picks.golden?.name ?? null);
    if (!context.info.writable || context.info.kind !== "compare") {
      this.body.replaceChildren(element("p", "empty", words.readOnly));
      return;
    }
    const parts: (HTMLElement | string)[] = [element("p", "soft", words.matchHint)];
    for (const side of ["target", "golden"] as const) {
      const pick = picks[side];
      const row = element("div", "pick");
      row.dataset.side = side;
      row.append(
        element("b", "", words[side]),
        element("span", "node-name", pick?.name ?? (side === "target" ? words.chooseTarget : words.chooseGolden)),
      );
      if (pick)
        row.append(
          button(
            "✕",
            words.close,
            () => {
              picks[side] = null;
              this.draw();
            },
            "link",
          ),
        );
      parts.push(row);
    }
    const deep = element("label", "tick");
    const box = element("input");
    box.type = "checkbox";
    box.checked = this.isDeep;
    box.addEventListener("change", () => (this.isDeep = box.checked));
    deep.append(box, words.descendants);
    const pair = button(words.matchPair, "", () => void this.match(), "button match-pair");
    pair.disabled = !picks.target || !picks.golden || picks.target.type !== picks.golden.type;
    const unpair = button(words.unmatchPair, "", () => void this.unmatch(), "button unmatch-pair");
    unpair.disabled = !node?.partner;
    const act = element("div", "bar");
    act.append(pair, unpair, deep);
    parts.push(act);
    if (picks.target && picks.golden && picks.target.type !== picks.golden.type)
      parts.push(element("p", "fault", words.otherType));
    if (node?.partner) parts.push(element("p", "soft", `${node.name} ${words.matchedAlready}: ${node.partner}`));
    const journal = element("div", "bar journal");
    const { source } = context;
    const at = () => ({ step: context.place.step ?? 0, rank: context.place.rank ?? 0 });
    const { id } = context.info;
    const tool = (text: string, hint: string, isOn: boolean, ask: () => Promise<Changed>) => {
      const made = button(text, hint, () => void this.change(ask()));
      made.disabled = !isOn;
      return made;
    };
    journal.append(
      tool(words.undo, "Ctrl+Z", edits?.canUndo ?? false, () => source.undo(id, at())),
      tool(words.redo, "Ctrl+Shift+Z", edits?.canRedo ?? false, () => source.redo(id, at())),
      tool(words.save, words.saveHint, edits?.isUnsaved ?? false, () => source.save(id)),
      button(words.saveConfig, ".vis.config", () => void this.saveConfig()),
      button(words.applyConfig, ".vis.config", () => takeFile(".config,.json", (text) => void this.applyConfig(text))),
      element("span", "count", edits?.isUnsaved ? words.unsaved : ""),
    );
    parts.push(journal);
    if (node && !node.partner) {
      parts.push(element("h3", "group", words.suggestions));
      const other = otherSide(context.place.side);
      for (const { node: brief, reason } of this.suggested) {
        const row = nodeRow(brief, picks[other]?.name === brief.name, () => {
          picks[other] = brief;
          this.draw();
        });
        row.classList.add("suggestion");
        row.append(element("span", "node-note", reason));
        parts.push(row);
      }
      if (!this.suggested.length) parts.push(element("p", "soft", words.noSuggestions));
    }
    this.body.replaceChildren(...parts);
  }

  private async change(work: Promise<Changed>): Promise<void> {
    const changed = await this.context.attempt(work);
    if (!changed) return;
    this.edits = changed;
    this.picks.target = this.picks.golden = null;
    this.context.tell(changed.text || VIEWER_WORDS.changedPairs(changed.pairs, changed.failed));
    this.on.changed();
    await this.update();
  }

  async match(): Promise<void> {
    const { target, golden } = this.picks;
    const { source, info, place } = this.context;
    if (!target || !golden || target.type !== golden.type) return;
    const at = { step: place.step ?? 0, rank: place.rank ?? 0 };
    await this.change(source.match(info.id, at, target.name, golden.name, this.isDeep));
  }

  async unmatch(): Promise<void> {
    const { source, info, place } = this.context;
    const { node } = this;
    if (!node?.partner) return;
    const target = place.side === "target" ? node.name : node.partner;
    await this.change(source.unmatch(info.id, { step: place.step ?? 0, rank: place.rank ?? 0 }, target, this.isDeep));
  }

  async undo(): Promise<void> {
    const { source, info, place } = this.context;
    if (this.edits?.canUndo) await this.change(source.undo(info.id, { step: place.step ?? 0, rank: place.rank ?? 0 }));
  }

  async redo(): Promise<void> {
    const { source, info, place } = this.context;
    if (this.edits?.canRedo) await this.change(source.redo(info.id, { step: place.step ?? 0, rank: place.rank ?? 0 }));
  }

  private async saveConfig(): Promise<void> {
    const { source, info, place } = this.context;
    const at = { step: place.step ?? 0, rank: place.rank ?? 0 };
    const path = await this.context.attempt(source.saveConfig(info.id, at));
    if (path !== undefined) this.context.tell(VIEWER_WORDS.configWritten(path));
  }

  private async applyConfig(text: string): Promise<void> {
    const { source, info, place } = this.context;
    const at = { step: place.step ?? 0, rank: place.rank ?? 0 };
    const read = (async () => {
      const pairs = JSON.parse(text) as Record<string, string>;
      return source.applyConfig(info.id, at, pairs);
    })();
    await this.change(read);
  }
}
