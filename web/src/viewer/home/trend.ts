// A database of trends: one statistic of many targets over the steps of a rank, and one target over steps and ranks. What is
// chosen stands in the address.

import { button, element, searchField } from "../../parts/dom";
import type { Item, Series, TrendInfo, TrendMap, TrendQuestion } from "../api";
import { numberText } from "../numbers";
import { Figure } from "../pictures/figure";
import { heatPicture } from "../pictures/heat";
import { seriesHeat, seriesPicture } from "../pictures/series";
import type { Place } from "../place";
import type { Source } from "../sources/source";
import { VIEWER_WORDS } from "../words";

// The tag of an address is kept like a facet of a search.
const TAG = "tag";
const PREFERRED = "norm";

// What an address asks for; what it does not say, or what is not there, is as usual.
export function questionOf(info: TrendInfo, place: Place): TrendQuestion | null {
  const metric = info.metrics.find(({ name }) => name === place.value) ?? info.metrics.at(0);
  if (!metric) return null;
  const { statistics } = metric;
  const usual = statistics.includes(PREFERRED) ? PREFERRED : statistics.at(0);
  const statistic = statistics.includes(place.measure) ? place.measure : usual;
  if (statistic === undefined) return null;
  const rank = place.rank !== null && info.ranks.includes(place.rank) ? place.rank : (info.ranks.at(0) ?? 0);
  return { metric: metric.name, statistic, rank, tags: place.search.facets[TAG] ?? "", q: place.search.q };
}

export class TrendView {
  readonly body = element("section", "trend");
  readonly figures = {
    map: new Figure("trend_of_targets"),
    lines: new Figure("trend_of_target"),
    heat: new Figure("trend_of_ranks"),
  };
  private readonly choices = element("div", "bar");
  private readonly selects = element("div", "trend-choices");
  private readonly field: HTMLInputElement;
  private readonly said = element("p", "soft");
  private readonly one = element("section", "trend-one");
  private info: TrendInfo | null = null;
  private key = "";
  private lineKey = "";
  private typed = "";

  constructor(
    private readonly item: Item,
    private readonly source: Source,
    private readonly go: (patch: Partial<Place>) => void,
    private readonly attempt: <T>(work: Promise<T>) => Promise<T | undefined>,
  ) {
    this.field = searchField(VIEWER_WORDS.filterTargets, (typed) => {
      this.typed = typed;
      this.go({ search: { ...this.place.search, q: typed } });
    });
    this.choices.append(this.selects, this.field, this.said);
    this.one.hidden = true;
    this.body.append(this.choices, this.figures.map.body, this.one);
  }

  private place!: Place;

  async update(place: Place): Promise<void> {
    this.place = place;
    this.info ??= (await this.attempt(this.source.trend(this.item.id))) ?? null;
    if (!this.info || this.place !== place) return;
    const asked = questionOf(this.info, place);
    if (!asked) {
      this.said.textContent = VIEWER_WORDS.emptyMatrix;
      return;
    }
    // What is being typed is not taken away.
    if (asked.q !== this.typed) this.field.value = this.typed = asked.q;
    this.drawChoices(this.info, asked);
    await Promise.all([this.map(asked), this.lines(asked, place.node)]);
  }

  private drawChoices(info: TrendInfo, asked: TrendQuestion): void {
    const words = VIEWER_WORDS;
    const { search } = this.place;
    const choose = (
      label: string,
      name: string,
      values: [string, string][],
      now: string,
      act: (to: string) => void,
    ) => {
      const field = element("select");
      field.name = name;
      for (const [value, text] of values) field.append(new Option(text, value, false, value === now));
      field.addEventListener("change", () => act(field.value));
      const holder = element("label", "choice", label);
      holder.append(field);
      return holder;
    };
    const same = (names: readonly (string | number)[]) =>
      names.map((name) => [String(name), String(name)] as [string, string]);
    const tags = info.tags.filter(({ metric }) => metric === asked.metric);
    this.selects.replaceChildren(
      choose(words.metric, "metric", same(info.metrics.map(({ name }) => name)), asked.metric, (value) =>
        this.go({ value }),
      ),
      choose(
        words.statistic,
        "statistic",
        same(info.metrics.find(({ name }) => name === asked.metric)?.statistics ?? []),
        asked.statistic,
        (measure) => this.go({ measure }),
      ),
      choose(words.rank, "rank", same(info.ranks), String(asked.rank), (rank) => this.go({ rank: Number(rank) })),
      choose(
        words.tag,
        "tag",
        [["", words.all], ...tags.map(({ name, category }) => [name, `${category}: ${name}`] as [string, string])],
        asked.tags,
        (tag) => this.go({ search: { ...search, facets: tag ? { [TAG]: tag } : {} } }),
      ),
    );
  }

  private async map(asked: TrendQuestion): Promise<void> {
    const key = JSON.stringify(asked);
    if (key === this.key) return;
    this.key = key;
    const map = await this.attempt(this.source.trendMap(this.item.id, asked));
    if (map && key === this.key) this.drawMap(map, asked);
  }

  private drawMap({ rows, columns, cells, isCut, every }: TrendMap, { metric, statistic }: TrendQuestion): void {
    const words = VIEWER_WORDS;
    this.said.textContent = [
      words.targets(rows.length),
      isCut ? words.cut : "",
      every > 1 ? words.everyStep(every) : "",
    ]
      .filter(Boolean)
      .join(" · ");
    this.figures.map.show(
      heatPicture({
        rows: rows.map(({ label }) => label),
        columns: columns.map(String),
        rowTitle: `${metric}, ${statistic}`,
        columnTitle: words.step,
        cells: cells.map(([row, column, number]) => ({
          row,
          column,
          number,
          tone: null,
          label: numberText(number),
          text: `${rows[row].label}, ${words.step} ${columns[column]}: ${numberText(number)}`,
          act: () => this.go({ node: String(rows[row].id) }),
        })),
      }),
    );
  }

  private async lines(asked: TrendQuestion, target: string | null): Promise<void> {
    this.one.hidden = target === null;
    const { metric, statistic } = asked;
    const key = JSON.stringify([metric, statistic, target]);
    if (target === null || key === this.lineKey) return;
    this.lineKey = key;
    const series = await this.attempt(this.source.trendLines(this.item.id, asked, target));
    if (series && key === this.lineKey) this.drawLines(series, asked);
  }

  private drawLines(series: Series, { metric, statistic }: TrendQuestion): void {
    const title = element("h3", "group", `${series.node} · ${metric}, ${statistic} `);
    title.append(button("✕", VIEWER_WORDS.close, () => this.go({ node: null }), "link"));
    const hasRanks = new Set(series.points.map(({ rank }) => rank)).size > 1;
    const toRank = (_step: number, rank: number) => this.go({ rank });
    this.one.replaceChildren(title, this.figures.lines.body, ...(hasRanks ? [this.figures.heat.body] : []));
    this.figures.lines.show(seriesPicture(series, toRank));
    if (hasRanks) this.figures.heat.show(heatPicture(seriesHeat(series, toRank)));
  }
}
