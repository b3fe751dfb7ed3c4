// Everything about the chosen node: values of both sides with their metrics, call stacks beside each other, and the rest.

import { button, copyText, element } from "../../parts/dom";
import type { NodeDetail, SideName } from "../api";
import { numberText } from "../numbers";
import { PANELS, type PanelName } from "../place";
import { type Context, otherSide, spotOf } from "../shell/context";
import { handle } from "../shell/handles";
import { keep, recall } from "../shell/storage";
import { VIEWER_WORDS } from "../words";
import { alignFrames, type Frame, userFirst } from "./frames";

// A stack that is longer is cut when it is compared; nobody reads on there.
const MOST_FRAMES = 400;

export class DetailsPanel {
  readonly body = element("section", "details-panel");
  private readonly content = element("div", "details-content");
  private readonly tabs = element("nav", "tabs");
  private readonly title = element("span", "details-name");
  private detail: NodeDetail | null = null;
  private asked = 0;
  private readonly table: HTMLElement | null;
  private height = Number(recall("panel") ?? 230) || 230;

  // The table of pairs is shown here, beside the graph, unless it has a screen of its own.
  constructor(
    private readonly context: Context,
    table: HTMLElement,
  ) {
    this.table = context.info.kind === "compare" ? table : null;
    const bar = element("div", "details-bar");
    this.tabs.setAttribute("role", "tablist");
    this.title.setAttribute("aria-live", "polite");
    for (const name of PANELS) {
      if (name === "none" || (name === "pairs" && !this.table)) continue;
      const tab = button(VIEWER_WORDS[name], "", () => this.context.go({ panel: name }), "tab");
      tab.setAttribute("role", "tab");
      tab.dataset.panel = name;
      this.tabs.append(tab);
    }
    bar.append(
      this.tabs,
      this.title,
      button("✕", VIEWER_WORDS.close, () => context.go({ panel: "none" }), "button close"),
    );
    this.body.append(
      handle(
        "rows",
        VIEWER_WORDS.panelHandle,
        ({ y }) => this.resize(this.body.getBoundingClientRect().bottom - y),
        (by) => this.resize(this.height - by * 24),
      ),
      bar,
      this.content,
    );
    this.resize(this.height);
  }

  private resize(height: number): void {
    this.height = Math.round(Math.max(70, Math.min(height, window.innerHeight * 0.75)));
    keep("panel", String(this.height));
    this.body.style.height = `${this.height}px`;
  }

  // The chosen node or the tab may be another one.
  async update(): Promise<void> {
    const { context } = this;
    const { place, source, info } = context;
    const asked = ++this.asked;
    const panel = this.panel;
    this.body.hidden = panel === "none";
    for (const tab of Array.from(this.tabs.children) as HTMLElement[]) {
      tab.setAttribute("aria-selected", String(tab.dataset.panel === panel));
      tab.hidden = tab.dataset.panel === "pairs" && place.screen === "table";
    }
    if (panel === "none") return;
    const table = panel === "pairs" ? this.table : null;
    this.content.classList.toggle("docked", table !== null);
    // Without a node there is a sentence to say, which needs no room of its own.
    this.body.classList.toggle("bare", place.node === null && !table);
    this.title.textContent = place.node ?? (table ? "" : VIEWER_WORDS.noNode);
    if (table) {
      this.detail = null;
      if (this.content.firstChild !== table) this.content.replaceChildren(table);
      return;
    }
    if (place.node === null) {
      this.detail = null;
      this.content.replaceChildren();
      return;
    }
    const detail = await context.attempt(source.node(info.id, spotOf(context, place.side), place.node));
    if (asked !== this.asked) return;
    this.detail = detail ?? null;
    this.show(panel);
  }

  // Which tab is shown: a table that is the screen is not shown twice.
  private get panel(): PanelName {
    const { panel, screen } = this.context.place;
    return panel === "pairs" && (screen === "table" || !this.table) ? "values" : panel;
  }

  private show(panel: PanelName): void {
    const { detail } = this;
    if (!detail) {
      this.content.replaceChildren();
      return;
    }
    if (panel === "values") this.content.replaceChildren(...this.values(detail));
    else if (panel === "stacks") this.content.replaceChildren(...this.stacks(detail));
    else this.content.replaceChildren(this.about(detail));
    this.content.scrollTop = 0;
  }

  private values({ values }: NodeDetail): HTMLElement[] {
    const words = VIEWER_WORDS;
    const { toolTips, kind } = this.context.info;
    const parts: HTMLElement[] = [];
    for (const { direction, columns, rows } of values) {
      if (!rows.length) continue;
      const table = element("table", "values");
      table.append(element("caption", "", words[direction]));
      const head = element("tr");
      for (const column of ["", words.name, ...columns]) {
        const cell = element("th", "", column);
        cell.scope = "col";
        const hint = toolTips[column];
        if (hint) {
          cell.title = hint;
          cell.classList.add("explained");
        }
        head.append(cell);
      }
      const first = element("thead");
      first.append(head);
      const body = element("tbody");
      for (const { side, name, isMatched, cells } of rows) {
        const row = element("tr", side);
        const mark = element("td", "side-cell");
        const dot = element("span", `match-dot ${isMatched ? "matched" : "not-matched"}`);
        dot.title = isMatched ? words.matched : words.notMatched;
        if (kind === "compare") mark.append(dot);
        mark.append(words[side]);
        row.append(mark, element("td", "value-name", name));
        for (const cell of cells) row.append(element("td", cell === null ? "missing" : "", cell ?? "–"));
        body.append(row);
      }
      table.append(first, body);
      parts.push(table);
    }
    return parts.length ? parts : [element("p", "empty", words.noValues)];
  }

  private stacks({ stacks }: NodeDetail): HTMLElement[] {
    const words = VIEWER_WORDS;
    const framesOf = (side: SideName): Frame[] => {
      const frames = stacks.find((stack) => stack.side === side)?.frames.slice(0, MOST_FRAMES) ?? [];
      return recall("frames") === "recorded" ? frames : userFirst(frames);
    };
    if (!stacks.some(({ frames }) => frames.length)) return [element("p", "empty", words.noStack)];
    const bar = element("div", "bar");
    const order = button(words.userFrames, "", () => {
      keep("frames", recall("frames") === "recorded" ? "user" : "recorded");
      this.show("stacks");
    });
    order.setAttribute("aria-pressed", String(recall("frames") !== "recorded"));
    bar.append(order);
    const sides = (["target", "golden"] as const).filter((side) => stacks.some((stack) => stack.side === side));
    const table = element("table", "stacks");
    const head = element("tr");
    for (const side of sides) {
      const cell = element("th", "", words[side]);
      const text = () =>
        (stacks.find((stack) => stack.side === side)?.frames ?? []).map((frame) => frame.text).join("\n");
      cell.append(button(words.copy, "", () => void copyText(text()), "link"));
      head.append(cell);
    }
    table.append(head);
    for (const line of alignFrames(framesOf("target"), framesOf("golden"))) {
      const row = element("tr", sides.length > 1 && !line.isSame ? "differs" : "");
      for (const side of sides) {
        const frame = line[side];
        row.append(element("td", frame?.isUser ? "own" : "", frame?.text ?? ""));
      }
      table.append(row);
    }
    return [bar, table];
  }

  private about(detail: NodeDetail): HTMLElement {
    const words = VIEWER_WORDS;
    const { context } = this;
    const { brief, partner } = detail;
    const { side } = context.place;
    const list = element("dl", "about-node");
    const fact = (name: string, value: string | HTMLElement | null) => {
      if (value === null || value === "") return;
      const text = element("dd");
      text.append(value);
      list.append(element("dt", "", name), text);
    };
    const jump = (to: string, where: SideName) =>
      button(to, "", () => context.go({ side: where, node: to, screen: "graph" }), "link");
    fact(words.name, brief.name);
    fact(words.type, brief.type);
    fact(words.order, String(brief.order));
    fact(words.children, brief.children ? String(brief.children) : null);
    fact(words.parent, brief.parent && jump(brief.parent, side));
    fact(words.orphan, brief.orphan);
    fact(words.partner, partner && jump(partner.name, otherSide(side)));
    fact(words.verdict, brief.verdict && (words.verdicts[brief.verdict] ?? brief.verdict));
    fact(words.index, brief.index === null ? null : String(brief.index));
    fact(words.errorIn, brief.errorIn === null ? null : numberText(brief.errorIn));
    fact(words.errorOut, brief.errorOut === null ? null : numberText(brief.errorOut));
    fact(words.tolerated, brief.tolerated === null ? null : numberText(brief.tolerated));
    fact(words.overflow, brief.overflow && words.overflows[brief.overflow]);
    fact(words.microStep, brief.microStep >= 0 ? String(brief.microStep) : null);
    if (detail.mergeInfo.length) {
      const lines = element("ul");
      for (const line of detail.mergeInfo) lines.append(element("li", "", line));
      fact(words.mergeInfo, lines);
    }
    if (detail.mergedShapes.length) {
      const lines = element("ul");
      for (const { value, shape, note } of detail.mergedShapes)
        lines.append(element("li", "", `${value}: ${shape}${note ? ` (${note})` : ""}`));
      fact(words.mergedShapes, lines);
    }
    if (detail.peers.length) {
      const lines = element("ul", "peers");
      for (const { rank, node, way } of detail.peers) {
        const line = element("li");
        line.append(
          button(
            words.peerOf(way, rank, node),
            "",
            () => context.go({ rank, side, node, screen: "graph", open: { target: [], golden: [] } }),
            "link",
          ),
        );
        lines.append(line);
      }
      fact(words.peersTitle, lines);
    }
    fact(words.dataDir, detail.dataDir);
    return list;
  }
}
