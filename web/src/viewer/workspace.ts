// An open graph: the bar with what is looked at, the side panel, graph, table or pictures, and the details below.

import { button, copyText, element } from "../parts/dom";
import type { GraphInfo, Item, SideName } from "./api";
import { GraphView } from "./graph/view";
import { reportFrame } from "./home/item";
import { DetailsPanel } from "./panels/details";
import { FindingsPanel } from "./panels/findings";
import { MatchPanel } from "./panels/match";
import { SearchPanel } from "./panels/search";
import { PicturesView } from "./pictures/view";
import { COLOUR_MODES, LEFT_PANELS, type LeftPanel, type Place, type Screen, STATISTICS } from "./place";
import type { Command } from "./shell/commands";
import { colourMode, type Context } from "./shell/context";
import { TableView } from "./table/view";
import { VIEWER_WORDS } from "./words";

// Narrower windows are read with one thing at a time.
const NARROW = "(max-width: 800px)";

export class Workspace {
  readonly body = element("main", "workspace");
  readonly bar = element("div", "work-bar");
  readonly graph: GraphView;
  private readonly table: TableView;
  readonly pictures: PicturesView;
  private readonly details: DetailsPanel;
  private readonly findings: FindingsPanel;
  private readonly search: SearchPanel;
  private readonly match: MatchPanel;
  private readonly left = element("aside", "left");
  private readonly leftTabs = element("nav", "tabs");
  private readonly centre = element("div", "centre");
  private readonly tableScreen = element("div", "table-screen");
  private readonly screens: Partial<Record<Screen, HTMLElement>>;
  private readonly tabs = element("nav", "tabs screens");
  private readonly statistics = new Map<string, HTMLInputElement>();
  private readonly judgedBy = element("summary");
  private readonly selects: {
    step: HTMLSelectElement;
    rank: HTMLSelectElement;
    micro: HTMLSelectElement;
    colour: HTMLSelectElement;
  };

  constructor(
    private readonly context: Context,
    private readonly item: Item,
  ) {
    const words = VIEWER_WORDS;
    this.graph = new GraphView(context, () => void this.match.update());
    this.table = new TableView(context);
    this.pictures = new PicturesView(context);
    this.details = new DetailsPanel(context, this.table.body);
    this.findings = new FindingsPanel(context);
    this.search = new SearchPanel(context);
    this.match = new MatchPanel(context, {
      chosen: (target, golden) => {
        Object.assign(this.graph.chosen, { target, golden });
        this.graph.changed();
      },
      changed: () => void this.afterEdit(),
    });
    this.screens = { graph: this.graph.body, table: this.tableScreen, pictures: this.pictures.body };
    if (item.report) this.screens.report = element("div", "report-holder");
    this.selects = {
      step: this.select(words.step, context.info.steps.map(String), (value) => this.goTo({ step: Number(value) })),
      rank: this.select(words.rank, context.info.ranks.map(String), (value) => this.goTo({ rank: Number(value) })),
      micro: this.select(
        words.microStep,
        ["-1", ...Array.from({ length: context.info.microSteps }, (_, step) => String(step))],
        (value) => context.go({ micro: Number(value), node: null }),
        (value) => (value === "-1" ? words.all : value),
      ),
      colour: this.select(
        words.colourBy,
        COLOUR_MODES.filter((mode) => this.hasMode(mode, context.info)),
        (value) => context.go({ colour: value as Place["colour"] }),
        (value) => words.modes[value as "verdict"],
      ),
    };
    this.drawStatistics();
    this.selects.micro.parentElement!.hidden = context.info.microSteps < 2;
    for (const screen of Object.keys(this.screens) as Screen[]) {
      const tab = button(words.screens[screen], "", () => context.go({ screen }), "tab");
      tab.setAttribute("role", "tab");
      tab.dataset.screen = screen;
      this.tabs.append(tab);
    }
    this.bar.prepend(this.tabs);
    this.drawLeft();
    this.centre.append(...Object.values(this.screens), this.details.body);
    this.body.append(this.left, this.centre);
  }

  private hasMode(mode: (typeof COLOUR_MODES)[number], info: GraphInfo): boolean {
    if (mode === "overflow") return info.overflowCheck;
    if (mode === "index") return info.kind === "compare";
    return true;
  }

  private select(
    label: string,
    values: readonly string[],
    changed: (value: string) => void,
    say: (value: string) => string = (value) => value,
  ): HTMLSelectElement {
    const field = element("select");
    for (const value of values) field.append(new Option(say(value), value));
    field.addEventListener("change", () => {
      changed(field.value);
      field.blur();
    });
    const holder = element("label", "choice", label);
    holder.append(field);
    this.bar.append(holder);
    return field;
  }

  // By which statistics of results nodes are judged, where statistics were compared and somebody can do that.
  private drawStatistics(): void {
    const { context } = this;
    if (context.info.kind !== "compare" || context.info.task !== "summary" || context.source.isReadOnly) return;
    const words = VIEWER_WORDS;
    const holder = element("details", "statistics");
    holder.title = words.statisticsHint;
    const list = element("div", "statistics-list");
    holder.append(this.judgedBy, list);
    // Nothing of it may be cut by the bar it stands in.
    holder.addEventListener("toggle", () => {
      const { left, bottom } = this.judgedBy.getBoundingClientRect();
      list.style.left = `${Math.min(left, window.innerWidth - list.offsetWidth - 8)}px`;
      list.style.top = `${bottom + 2}px`;
    });
    document.addEventListener("pointerdown", (event) => {
      if (!holder.contains(event.target as Node)) holder.open = false;
    });
    holder.addEventListener("keydown", (event) => {
      if (event.key === "Escape") holder.open = false;
    });
    for (const name of STATISTICS) {
      const box = element("input");
      box.type = "checkbox";
      box.dataset.statistic = name;
      box.addEventListener("change", () => {
        const stats = STATISTICS.filter((other) => this.statistics.get(other)?.checked);
        this.graph.noteOpen();
        context.go({ stats, colour: stats.length ? "index" : null });
      });
      this.statistics.set(name, box);
      const label = element("label", "tick");
      label.append(box, name);
      list.append(label);
    }
    this.bar.append(holder);
  }

  private drawLeft(): void {
    const words = VIEWER_WORDS;
    for (const name of LEFT_PANELS) {
      if (name === "none") continue;
      const tab = button(words[name], "", () => this.openLeft(name, true), "tab");
      tab.dataset.left = name;
      this.leftTabs.append(tab);
    }
    this.leftTabs.append(button("✕", words.close, () => this.context.go({ left: "none" }), "button close"));
    this.left.append(this.leftTabs, this.findings.body, this.search.body, this.match.body);
  }

  // Findings at first, where there is room for them.
  private get leftPanel(): LeftPanel {
    return this.context.place.left ?? (matchMedia(NARROW).matches ? "none" : "findings");
  }

  private openLeft(name: LeftPanel, isToggled = false): void {
    this.context.go({ left: isToggled && this.leftPanel === name ? "none" : name });
  }

  openSearch(typed?: string): void {
    if (typed !== undefined) this.context.note({ search: { ...this.context.place.search, q: typed } });
    this.context.go({ left: "search" });
    this.search.focus();
  }

  // The same nodes stay open on another step or rank.
  private goTo(patch: { step?: number; rank?: number }): void {
    this.context.go(patch);
  }

  private stepBy(what: "step" | "rank", by: number): void {
    const all = this.context.info[`${what}s`];
    const at = all.indexOf(this.context.place[what] ?? all[0]);
    const next = all[(at + by + all.length) % all.length];
    if (next !== this.context.place[what]) this.goTo({ [what]: next });
  }

  async update(previous: Place | null, isBack: boolean): Promise<void> {
    const { context } = this;
    const { place } = context;
    const isOther =
      previous?.file !== place.file ||
      previous.step !== place.step ||
      previous.rank !== place.rank ||
      previous.micro !== place.micro ||
      previous.stats.join() !== place.stats.join();
    for (const [name, box] of this.statistics) box.checked = place.stats.some((chosen) => chosen === name);
    this.judgedBy.textContent = `${VIEWER_WORDS.statistics}: ${place.stats.join(", ") || VIEWER_WORDS.asInFile}`;
    this.selects.step.value = String(place.step);
    this.selects.rank.value = String(place.rank);
    this.selects.micro.value = String(place.micro);
    this.selects.colour.value = colourMode(context);
    for (const tab of Array.from(this.tabs.children) as HTMLElement[])
      tab.setAttribute("aria-selected", String(tab.dataset.screen === place.screen));
    for (const [screen, body] of Object.entries(this.screens)) body.hidden = screen !== place.screen;
    this.showLeft();
    if (place.screen === "report" && this.item.report && !this.screens.report?.children.length)
      this.screens.report?.append(reportFrame(context.source, this.item.report));
    this.details.body.classList.toggle("off", place.screen === "report");
    if (previous && previous.colour !== place.colour && !isOther) {
      this.graph.drawLegend();
      this.graph.changed();
    }
    if (place.screen === "table") this.tableScreen.append(this.table.body);
    if (isOther) await context.attempt(this.graph.load());
    else if (isBack) await context.attempt(this.graph.restoreOpen());
    await Promise.all([
      this.showNode(previous, isOther || isBack),
      this.details.update(),
      this.leftPanel === "findings" ? this.findings.update() : undefined,
      this.leftPanel === "search" ? this.search.update() : undefined,
      this.leftPanel === "match" ? this.match.update() : undefined,
      this.isTableShown ? this.table.update() : undefined,
      place.screen === "pictures" ? this.pictures.update() : undefined,
    ]);
  }

  // As a screen, or beside the graph.
  private get isTableShown(): boolean {
    const { screen, panel } = this.context.place;
    return screen === "table" || panel === "pairs";
  }

  private async showNode(previous: Place | null, isAnyway: boolean): Promise<void> {
    const { place } = this.context;
    const isSame = previous?.node === place.node && previous.side === place.side && previous.screen === place.screen;
    if (isSame && !isAnyway) return;
    // A hidden canvas has no size to centre anything in.
    if (place.screen === "graph") await this.context.attempt(this.graph.showSelection());
  }

  private showLeft(): void {
    const panel = this.leftPanel;
    this.left.classList.toggle("closed", panel === "none");
    for (const tab of Array.from(this.leftTabs.children) as HTMLElement[])
      tab.setAttribute("aria-selected", String(tab.dataset.left === panel));
    this.findings.body.hidden = panel !== "findings";
    this.search.body.hidden = panel !== "search";
    this.match.body.hidden = panel !== "match";
    if (panel !== "match" && (this.graph.chosen.target ?? this.graph.chosen.golden) !== null) {
      this.graph.chosen.target = this.graph.chosen.golden = null;
      this.graph.changed();
    }
  }

  // Pairs changed: what is shown of them is asked for again, and what is open stays so.
  private async afterEdit(): Promise<void> {
    const { context } = this;
    this.graph.noteOpen();
    this.findings.forget();
    this.table.forget();
    this.pictures.forget();
    await context.attempt(this.graph.load());
    await Promise.all([
      context.place.screen === "graph" ? context.attempt(this.graph.showSelection()) : undefined,
      this.isTableShown ? this.table.update() : undefined,
      this.details.update(),
    ]);
  }

  commands(): Command[] {
    const words = VIEWER_WORDS;
    const { context } = this;
    const selected =
      (act: (side: SideName, node: NonNullable<ReturnType<GraphView["selected"]>>["node"]) => void) => () => {
        const here = this.graph.selected();
        if (here) act(here.side, here.node);
      };
    const screens: [Screen, string][] = [
      ["graph", "g"],
      ["table", "t"],
      ["pictures", "i"],
    ];
    return [
      { title: words.search, key: "/", act: () => this.openSearch() },
      { title: words.nextFinding, key: "n", act: () => void this.findings.step(1) },
      { title: words.previousFinding, key: "p", act: () => void this.findings.step(-1) },
      { title: words.firstDivergence, key: "f", act: () => void this.findings.jump("first_divergence") },
      { title: words.firstNan, key: "x", act: () => void this.findings.jump("first_nan") },
      { title: words.match, key: "m", act: () => this.openLeft("match") },
      { title: words.previousStep, key: "[", act: () => this.stepBy("step", -1) },
      { title: words.goNextStep, key: "]", act: () => this.stepBy("step", 1) },
      { title: words.previousRank, key: "{", act: () => this.stepBy("rank", -1) },
      { title: words.nextRank, key: "}", act: () => this.stepBy("rank", 1) },
      ...screens.map(([screen, key]) => ({
        title: words.screens[screen],
        key,
        act: () => context.go({ screen }),
      })),
      { title: words.findings, key: "l", act: () => this.openLeft("findings", true) },
      {
        title: words.details,
        key: "v",
        act: () => context.go({ panel: context.place.panel === "none" ? "values" : "none" }),
      },
      ...(context.info.kind === "compare"
        ? [
            {
              title: words.tableBeside,
              key: "b",
              act: () => context.go({ panel: context.place.panel === "pairs" ? "values" : "pairs" }),
            },
          ]
        : []),
      { title: words.locatePartner, key: "o", act: selected((side, node) => this.graph.locatePartner(side, node)) },
      {
        title: words.openBelow,
        key: "e",
        act: selected((side, node) => void context.attempt(this.graph.openBelow(side, node))),
      },
      { title: words.closeBelow, key: "c", act: selected((side, node) => this.graph.closeBelow(side, node)) },
      { title: words.closeAll, act: () => this.graph.closeAll() },
      { title: words.copyName, key: "y", act: selected((_, node) => void copyText(node.name)) },
      { title: words.copyLink, key: "Y", act: () => void copyText(location.href) },
      { title: words.seriesOf, act: () => context.go({ screen: "pictures", picture: "series" }) },
      { title: words.pictures.profile, act: () => context.go({ screen: "pictures", picture: "profile" }) },
      { title: words.pictures.matrix, act: () => context.go({ screen: "pictures", picture: "matrix" }) },
      { title: words.pictures.timeline, act: () => context.go({ screen: "pictures", picture: "timeline" }) },
      { title: words.undo, key: "Ctrl+Z", act: () => void this.match.undo() },
      { title: words.redo, key: "Ctrl+Shift+Z", act: () => void this.match.redo() },
      ...COLOUR_MODES.filter((mode) => this.hasMode(mode, context.info)).map((mode) => ({
        title: `${words.colourBy}: ${words.modes[mode]}`,
        act: () => context.go({ colour: mode }),
      })),
    ];
  }

  key(event: KeyboardEvent): boolean {
    return this.context.place.screen === "graph" && this.graph.key(event);
  }
}
