// The pictures of a graph: error along the calls, ranks and steps, a statistic over both, and the timeline of ranks.

import { button, element } from "../../parts/dom";
import { TimelineView } from "../../parts/timeline/view";
import type { Series } from "../api";
import { PICTURES, type PictureName } from "../place";
import type { Context } from "../shell/context";
import { VIEWER_WORDS } from "../words";
import { answersHeat } from "./answers";
import { Figure } from "./figure";
import { heatPicture } from "./heat";
import { profilePicture } from "./profile";
import { seriesHeat, seriesPicture } from "./series";
import { timelineTools } from "./timeline";

export class PicturesView {
  readonly body = element("section", "pictures");
  readonly figures: Record<"profile" | "matrix" | "lines" | "heat", Figure>;
  private readonly tabs = element("nav", "tabs");
  private readonly holder = element("div", "pictures-holder");
  private readonly series = element("div", "series");
  private readonly choices = element("div", "bar");
  private key = "";
  private asked = 0;

  constructor(private readonly context: Context) {
    this.tabs.setAttribute("role", "tablist");
    for (const name of PICTURES) {
      const tab = button(VIEWER_WORDS.pictures[name], "", () => context.go({ picture: name }), "tab");
      tab.setAttribute("role", "tab");
      tab.dataset.picture = name;
      this.tabs.append(tab);
    }
    this.figures = {
      profile: new Figure("error_along_calls"),
      matrix: new Figure("ranks_and_steps"),
      lines: new Figure("series"),
      heat: new Figure("series_heat_map"),
    };
    this.series.append(
      this.choices,
      element("h3", "group", VIEWER_WORDS.lines),
      this.figures.lines.body,
      element("h3", "group", VIEWER_WORDS.heat),
      this.figures.heat.body,
    );
    this.body.append(this.tabs, this.holder);
  }

  forget(): void {
    this.key = "";
  }

  async update(): Promise<void> {
    const { place, info } = this.context;
    for (const tab of Array.from(this.tabs.children) as HTMLElement[])
      tab.setAttribute("aria-selected", String(tab.dataset.picture === place.picture));
    const { step, rank, node, side, value, measure, picture, stats } = place;
    const about: Record<PictureName, unknown[]> = {
      profile: [step, rank, node, stats],
      matrix: [step, rank],
      series: [node, side, value, measure],
      timeline: [step],
    };
    const key = JSON.stringify([info.id, picture, about[picture]]);
    if (key === this.key) return;
    this.key = key;
    const asked = ++this.asked;
    const isCurrent = () => asked === this.asked;
    if (picture === "profile") await this.profile(isCurrent);
    else if (picture === "matrix") this.matrix();
    else if (picture === "series") await this.seriesOf(isCurrent);
    else await this.timeline(isCurrent);
  }

  private readonly openCell = (step: number, rank: number, node?: string | null) =>
    this.context.go({ step, rank, ...(node ? { node, side: "target" as const, screen: "graph" as const } : {}) });

  private async profile(isCurrent: () => boolean): Promise<void> {
    const { context } = this;
    const { step, rank, node } = context.place;
    this.holder.replaceChildren(this.figures.profile.body);
    const profile = await context.attempt(
      context.source.profile(context.info.id, {
        step: step ?? 0,
        rank: rank ?? 0,
        stats: context.place.stats.join(","),
      }),
    );
    if (!profile || !isCurrent()) return;
    this.figures.profile.show(
      profilePicture(profile, node, (name) => context.go({ side: "target", node: name, screen: "graph" })),
    );
  }

  private matrix(): void {
    this.holder.replaceChildren(this.figures.matrix.body);
    this.figures.matrix.show(heatPicture(answersHeat(this.context.info.answers, this.openCell)));
  }

  private async seriesOf(isCurrent: () => boolean): Promise<void> {
    const { context } = this;
    const { node, side, value, measure } = context.place;
    if (node === null) {
      this.holder.replaceChildren(element("p", "empty", VIEWER_WORDS.noSeries));
      return;
    }
    const series = await context.attempt(context.source.series(context.info.id, node, side, value, measure));
    if (!series || !isCurrent()) return;
    this.holder.replaceChildren(this.series);
    this.drawChoices(series);
    this.figures.lines.show(seriesPicture(series, (step, rank) => this.openCell(step, rank)));
    this.figures.heat.show(heatPicture(seriesHeat(series, (step, rank) => this.openCell(step, rank))));
  }

  private drawChoices(series: Series): void {
    const { place } = this.context;
    const choose = (label: string, names: string[], current: string, act: (name: string) => void) => {
      const field = element("select");
      for (const name of names) field.append(new Option(name, name, false, name === current));
      field.addEventListener("change", () => act(field.value));
      const holder = element("label", "choice", label);
      holder.append(field);
      return holder;
    };
    this.choices.replaceChildren(
      element("b", "node-name", series.node),
      choose(VIEWER_WORDS.value, series.values, place.value, (value) => this.context.go({ value, measure: "" })),
      choose(VIEWER_WORDS.measure, series.measures, place.measure, (measure) => this.context.go({ measure })),
    );
  }

  private async timeline(isCurrent: () => boolean): Promise<void> {
    const { context } = this;
    const described = await context.attempt(context.source.timeline(context.info.id, context.place.step ?? 0));
    if (!described || !isCurrent()) return;
    const view = new TimelineView(described);
    view.body.querySelector(".bar")?.append(...timelineTools(view.body));
    this.holder.replaceChildren(view.body);
    view.shown();
  }
}
