// The graph: one hierarchy, or both sides beside each other. Which nodes are open and which one is chosen stands in the
// address; this part brings the trees to what it says.

import { button, element } from "../../parts/dom";
import type { SideName } from "../api";
import { CanvasPen } from "../pictures/pen";
import { areaOf, whenColoursChange } from "../shell/colours";
import { colourMode, type Context, otherSide, spotOf } from "../shell/context";
import { handOutPng, handOutSvg } from "../shell/files";
import { handle } from "../shell/handles";
import { type Choice, showMenu } from "../shell/menu";
import { keep, recall } from "../shell/storage";
import { copyText } from "../../parts/dom";
import { VIEWER_WORDS } from "../words";
import { editRanges, legend } from "./legend";
import { drawTree, rangeOf } from "./painter";
import { GraphPane } from "./pane";
import { MOST_OPENED, SideTree, type TreeNode } from "./tree";

// Beyond so many nodes a server answers before it knows everything.
const LARGE = 20000;

const SIDES: readonly SideName[] = ["target", "golden"];

export class GraphView {
  readonly body = element("section", "graph");
  readonly panes: Record<SideName, GraphPane>;
  trees: Partial<Record<SideName, SideTree>> = {};
  // Nodes chosen to be matched by hand.
  readonly chosen: Record<SideName, string | null> = { target: null, golden: null };
  private readonly sides = element("div", "sides");
  private readonly keys = element("div", "legend-holder");
  private partner: { side: SideName; name: string } | null = null;
  private share = Number(recall("share") ?? 0.5) || 0.5;
  private loads = 0;
  // The side that was clicked on stays where it is.
  private clicked: SideName | null = null;
  // Nothing of it was shown yet.
  private isFresh = true;
  private readonly splitter: HTMLElement;

  constructor(
    private readonly context: Context,
    private readonly editMatch: () => void,
  ) {
    const words = VIEWER_WORDS;
    const pane = (side: SideName) =>
      new GraphPane(
        words[side],
        () => ({
          mode: colourMode(context),
          info: context.info,
          side,
          selected: context.place.side === side ? context.place.node : null,
          partner: this.partner?.side === side ? this.partner.name : null,
          chosen: this.chosen[side],
        }),
        {
          select: (node) => {
            if (context.place.side === side && context.place.node === node.name) return;
            this.clicked = side;
            context.go({ side, node: node.name });
          },
          toggle: (node) => void context.attempt(this.toggle(side, node)),
          menu: (node, x, y) => this.menu(side, node, x, y),
          more: (node) => void context.attempt(this.trees[side]?.more(node) ?? Promise.resolve()),
        },
      );
    this.panes = { target: pane("target"), golden: pane("golden") };
    this.splitter = handle(
      "columns",
      words.splitter,
      ({ x, y }) => {
        const box = this.sides.getBoundingClientRect();
        // In narrow windows they stand below each other.
        const isStacked = getComputedStyle(this.sides).flexDirection === "column";
        this.split(isStacked ? (y - box.top) / box.height : (x - box.left) / box.width);
      },
      (by) => this.split(this.share + by * 0.04),
    );
    this.sides.append(this.panes.target.body, this.splitter, this.panes.golden.body);
    this.body.append(this.tools(), this.sides);
    whenColoursChange(() => {
      this.drawLegend();
      this.changed();
    });
  }

  private split(share: number): void {
    this.share = Math.max(0.08, Math.min(0.92, share));
    keep("share", this.share.toFixed(3));
    this.panes.target.body.style.flexGrow = String(this.share);
    this.panes.golden.body.style.flexGrow = String(1 - this.share);
  }

  get isSynced(): boolean {
    return recall("sync") !== "no";
  }

  private tools(): HTMLElement {
    const words = VIEWER_WORDS;
    const bar = element("div", "graph-tools");
    const toggle = (text: string, hint: string, isOn: () => boolean, set: (on: boolean) => void) => {
      const made = button(text, hint, () => {
        set(!isOn());
        made.setAttribute("aria-pressed", String(isOn()));
      });
      made.setAttribute("aria-pressed", String(isOn()));
      return made;
    };
    bar.append(
      button(words.fit, "0", () => this.eachPane((pane) => pane.fit())),
      button(words.fitAll, "9", () => this.eachPane((pane) => pane.fitAll())),
      toggle(
        words.syncOpen,
        words.syncOpenHint,
        () => this.isSynced,
        (on) => keep("sync", on ? "yes" : "no"),
      ),
      toggle(
        words.minimaps,
        words.minimap,
        () => this.panes.target.isMapShown,
        (on) => this.eachPane((pane) => (pane.isMapShown = on)),
      ),
      button(words.closeAll, "", () => this.closeAll()),
      button(words.keepSvg, words.keepSvgHint, () => this.keepSvg()),
      button(words.keepPng, words.keepPngHint, () => void this.keepPng()),
      this.keys,
    );
    return bar;
  }

  drawLegend(): void {
    this.keys.replaceChildren(
      legend(this.context, () =>
        editRanges(this.context.info, (ranges) => {
          if (ranges) this.context.info.colours = ranges;
          else this.context.go({});
          this.drawLegend();
          this.changed();
        }),
      ),
    );
  }

  private eachPane(act: (pane: GraphPane) => void): void {
    for (const side of this.shownSides()) act(this.panes[side]);
  }

  shownSides(): readonly SideName[] {
    return this.context.info.kind === "compare" ? SIDES : ["target"];
  }

  changed(): void {
    for (const side of SIDES) this.panes[side].changed();
  }

  // Another file, step, rank or micro step: what is open there is what the address says.
  async load(): Promise<void> {
    const load = ++this.loads;
    const { context } = this;
    const { source, place, info } = context;
    const isCompare = info.kind === "compare";
    this.panes.golden.body.hidden = this.splitter.hidden = !isCompare;
    if (isCompare) this.split(this.share);
    this.trees = {};
    this.isFresh = true;
    this.partner = null;
    this.chosen.target = this.chosen.golden = null;
    this.drawLegend();
    const made = this.shownSides().map(async (side) => {
      const spot = spotOf(context, side);
      const tree = new SideTree(
        side,
        {
          children: (node, offset, limit) => source.children(info.id, spot, node, offset, limit),
          open: (nodes) => source.open(info.id, spot, nodes),
          path: (node) => source.path(info.id, spot, node),
        },
        () => this.panes[side].changed(),
      );
      const wanted = place.open[side];
      await tree.begin();
      if (load !== this.loads) return;
      this.trees[side] = tree;
      await tree.openAll(wanted);
      if (load !== this.loads) return;
      this.panes[side].show(tree);
    });
    await Promise.all(made);
    if (info.nodes > LARGE && load === this.loads) void context.attempt(this.completeLater(load));
  }

  // The worst of what closed boxes hold is known once the lists of a large graph are.
  private async completeLater(load: number): Promise<void> {
    const { source, info } = this.context;
    const question = { kinds: ["introduced"], leaves: true, after: null, limit: 1 };
    for (const side of this.shownSides()) {
      await source.findings(info.id, spotOf(this.context, side), question);
      if (load !== this.loads) return;
      await this.trees[side]?.refresh();
    }
  }

  // After the back button: what is open is what the address says, no more and no less.
  async restoreOpen(): Promise<void> {
    for (const side of this.shownSides()) {
      const tree = this.trees[side];
      if (!tree) continue;
      const wanted = new Set(this.context.place.open[side]);
      for (const name of tree.openNames().reverse()) {
        const node = tree.byName.get(name);
        if (node && !wanted.has(name)) tree.close(node);
      }
      await tree.openAll(Array.from(wanted));
    }
  }

  // Shows the chosen node and its partner.
  async showSelection(): Promise<void> {
    const { side, node: name } = this.context.place;
    const { clicked, isFresh } = this;
    this.clicked = null;
    this.isFresh = false;
    this.partner = null;
    const tree = this.trees[side];
    if (name !== null && tree) {
      const node = await tree.reveal(name);
      if (node && this.context.place.node === name) {
        if (isFresh) this.panes[side].fitFresh();
        if (clicked === side) this.panes[side].later();
        else this.panes[side].reveal(node);
        await this.showPartner(side, node);
      } else if (!node) this.context.tell(`${VIEWER_WORDS.noHits}: ${name}`);
    }
    this.noteOpen();
    this.eachPane((pane) => pane.later());
  }

  private async showPartner(side: SideName, node: TreeNode): Promise<void> {
    const other = otherSide(side);
    const tree = this.trees[other];
    if (!node.brief.partner || !tree) return;
    const partner = await tree.reveal(node.brief.partner);
    if (!partner) return;
    this.partner = { side: other, name: partner.name };
    // Beside each other at one size.
    this.panes[other].camera.scale = this.panes[side].camera.scale;
    this.panes[other].centre(partner);
  }

  noteOpen(): void {
    const { target, golden } = this.trees;
    this.context.note({ open: { target: target?.openNames() ?? [], golden: golden?.openNames() ?? [] } });
  }

  async toggle(side: SideName, node: TreeNode): Promise<void> {
    const tree = this.trees[side];
    if (!tree || node.brief.children === 0) return;
    const isOpening = !node.isOpen;
    if (isOpening) await tree.open(node);
    else tree.close(node);
    const other = this.trees[otherSide(side)];
    if (this.isSynced && other && node.brief.partner) {
      const partner = await other.reveal(node.brief.partner);
      if (partner && isOpening) await other.open(partner);
      else if (partner) other.close(partner);
    }
    this.noteOpen();
  }

  selected(): { side: SideName; node: TreeNode; tree: SideTree } | null {
    const { side, node: name } = this.context.place;
    const tree = this.trees[side];
    const node = name === null ? undefined : tree?.byName.get(name);
    return tree && node ? { side, node, tree } : null;
  }

  // The partner, or that of the nearest node around it that has one.
  locatePartner(side: SideName, node: TreeNode): void {
    for (let at: TreeNode | null = node; at; at = at.parent) {
      const root = this.trees[otherSide(side)]?.root;
      const partner = at.brief.partner ?? (at.parent === null && root ? root.name : null);
      if (!partner) continue;
      this.context.go({ side: otherSide(side), node: partner });
      return;
    }
    this.context.tell(VIEWER_WORDS.noPartner);
  }

  private menu(side: SideName, node: TreeNode, x: number, y: number): void {
    const words = VIEWER_WORDS;
    const { context } = this;
    const { brief } = node;
    const choices: Choice[] = [];
    if (context.info.kind === "compare")
      choices.push({
        text: brief.partner ? words.locatePartner : words.locateNearest,
        act: () => this.locatePartner(side, node),
      });
    if (brief.worst && brief.worst.name !== node.name)
      choices.push({
        text: words.toWorst,
        tone: brief.worst.tone,
        act: () => context.go({ side, node: brief.worst!.name }),
      });
    if (brief.hasPeers) choices.push({ text: `${words.peers} …`, act: () => void this.peersMenu(side, node, x, y) });
    choices.push(
      {
        text: words.openBelow,
        isOff: brief.children === 0,
        act: () => void context.attempt(this.openBelow(side, node)),
      },
      { text: words.closeBelow, isOff: brief.children === 0, act: () => this.closeBelow(side, node) },
      { text: words.showInTable, act: () => context.go({ side, node: node.name, screen: "table" }) },
      {
        text: words.seriesOf,
        act: () => context.go({ side, node: node.name, screen: "pictures", picture: "series" }),
      },
    );
    if (context.info.kind === "compare" && context.info.writable)
      choices.push({
        text: words.matchThis,
        act: () => {
          context.go({ side, node: node.name, left: "match" });
          this.editMatch();
        },
      });
    choices.push({ text: words.copyName, act: () => void copyText(node.name) });
    showMenu(x, y, node.name, choices);
  }

  // The other ends of a node's communication, each with the rank it leads to.
  private async peersMenu(side: SideName, node: TreeNode, x: number, y: number): Promise<void> {
    const { context } = this;
    const detail = await context.attempt(context.source.node(context.info.id, spotOf(context, side), node.name));
    if (!detail) return;
    const choices = detail.peers.map(({ rank, node: name, way, index }) => ({
      text: VIEWER_WORDS.peerOf(way, rank, name),
      tone: "plain",
      colour: rangeOf(/^[\d.]+$/.test(index) ? Number(index) : null, context.info.colours)?.hex,
      act: () => context.go({ rank, side, node: name, open: { target: [], golden: [] } }),
    }));
    showMenu(x, y, VIEWER_WORDS.peers, choices);
  }

  async openBelow(side: SideName, node: TreeNode): Promise<void> {
    const isAll = await this.trees[side]?.openBelow(node);
    if (isAll === false) this.context.tell(VIEWER_WORDS.openedSome(MOST_OPENED));
    this.noteOpen();
  }

  closeBelow(side: SideName, node: TreeNode): void {
    this.trees[side]?.closeBelow(node);
    this.noteOpen();
  }

  closeAll(): void {
    for (const side of this.shownSides()) {
      const tree = this.trees[side];
      if (tree?.root) tree.closeBelow(tree.root);
      this.panes[side].fit();
    }
    this.noteOpen();
  }

  // Keys of the graph. Tells whether it had one for this.
  key(event: KeyboardEvent): boolean {
    const { context } = this;
    const { side } = context.place;
    const here = this.selected();
    const go = (node: TreeNode | null | undefined) => {
      if (node) context.go({ side, node: node.name });
    };
    const acts: Record<string, (() => void) | undefined> = {
      ArrowDown: () => go(here ? here.tree.next(here.node) : this.trees[side]?.root),
      ArrowUp: () => go(here ? here.tree.previous(here.node) : this.trees[side]?.root),
      ArrowRight: () => {
        if (!here) return;
        if (here.node.isOpen) go(here.node.children.at(0));
        else void context.attempt(this.toggle(side, here.node));
      },
      ArrowLeft: () => {
        if (!here) return;
        if (here.node.isOpen && here.node.parent) void context.attempt(this.toggle(side, here.node));
        else go(here.node.parent);
      },
      Enter: () => here && void context.attempt(this.toggle(side, here.node)),
      Tab: undefined,
    };
    const act = acts[event.key];
    if (act) act();
    else return this.panes[side].key(event.key);
    return true;
  }

  private pictureSize(): { width: number; height: number; parts: { pane: GraphPane; side: SideName; left: number }[] } {
    let left = 0;
    const parts = this.shownSides().map((side) => {
      const pane = this.panes[side];
      const part = { pane, side, left };
      left += pane.body.clientWidth;
      return part;
    });
    return { width: left, height: this.sides.clientHeight, parts };
  }

  private keepSvg(): void {
    const { width, height, parts } = this.pictureSize();
    const inner = parts.map(({ pane, left }) => pane.svg().replace("<svg ", `<svg x="${left}" `)).join("");
    handOutSvg(
      `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">${inner}</svg>\n`,
      "graph",
    );
  }

  private async keepPng(): Promise<void> {
    const { width, height, parts } = this.pictureSize();
    await handOutPng(
      width,
      height,
      (pen) => {
        pen.fillStyle = areaOf("plain");
        pen.fillRect(0, 0, width, height);
        for (const { pane, side, left } of parts) {
          const tree = this.trees[side];
          if (!tree) continue;
          pen.save();
          pen.beginPath();
          pen.rect(left, 0, pane.body.clientWidth, height);
          pen.clip();
          pen.translate(left, 0);
          drawTree(new CanvasPen(pen), tree, pane.camera, pane.body.clientWidth, height, pane.currentLook());
          pen.restore();
        }
      },
      "graph",
    );
  }
}
