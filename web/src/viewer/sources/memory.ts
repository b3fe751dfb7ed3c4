// Answers about graphs that are wholly in memory: those of an exported page.

import type {
  Children,
  Findings,
  GraphInfo,
  Jump,
  NodeBrief,
  NodeDetail,
  Pairs,
  Profile,
  SearchResult,
  Series,
  SideName,
} from "../api";
import { numberText, toNumber } from "../numbers";
import type { TableQuery } from "../place";
import { type FindingsQuestion, type PairsQuestion, Refusal, type SearchQuestion, type Spot } from "./source";

// One side of one step and rank.
export interface HeldGraph {
  step: number;
  rank: number;
  side: SideName;
  // In the order of calls; the root is the one without a parent.
  nodes: NodeBrief[];
  details: Record<string, NodeDetail | undefined>;
}

// Longer runs of points are thinned.
const MOST_POINTS = 4000;
const MOST_HITS = 10000;

// The kinds of a finding a node is.
export function kindsOf(brief: NodeBrief): string[] {
  const kinds: string[] = [];
  if (brief.verdict) kinds.push(brief.verdict);
  if (brief.tone === "bad") kinds.push("error");
  if (brief.tone === "warning") kinds.push("warning");
  if (brief.tone === "good") kinds.push("pass");
  if (brief.overflow) kinds.push("overflow", brief.overflow);
  return kinds;
}

// Whether it is of a kind: one of its words, or a range of the index as "index:low:high", ":closed" for the uppermost.
export function isOfKind(brief: NodeBrief, kinds: readonly string[]): boolean {
  const own = kindsOf(brief);
  return kinds.some((kind) => {
    const parts = kind.split(":");
    if (parts[0] !== "index") return own.includes(kind);
    const { index, partner, type } = brief;
    if (index === null || partner === null || type === "collection") return false;
    const [low, high] = [Number(parts[1]), Number(parts[2])];
    return index === low || (index >= low && index < high) || (parts[3] === "closed" && index === high);
  });
}

class Hierarchy {
  readonly byName = new Map<string, NodeBrief>();
  readonly childrenOf = new Map<string, NodeBrief[]>();
  readonly root: NodeBrief;

  constructor(readonly held: HeldGraph) {
    let root: NodeBrief | undefined;
    for (const node of held.nodes) {
      this.byName.set(node.name, node);
      if (node.parent === null) root ??= node;
      else {
        const siblings = this.childrenOf.get(node.parent);
        if (siblings) siblings.push(node);
        else this.childrenOf.set(node.parent, [node]);
      }
    }
    if (!root) throw new Refusal("this graph has no root", "export it again");
    this.root = root;
  }

  find(name: string | null): NodeBrief {
    const node = name === null ? this.root : this.byName.get(name);
    if (!node) throw new Refusal(`there is no node ${String(name)}`, "");
    return node;
  }

  inMicroStep(node: NodeBrief, micro: number): boolean {
    let top = node;
    while (top.parent !== null && top.parent !== this.root.name) top = this.find(top.parent);
    return micro < 0 || top === this.root || top.microStep === micro;
  }
}

export class HeldAnswers {
  private readonly hierarchies: Hierarchy[];

  constructor(
    readonly info: GraphInfo,
    held: HeldGraph[],
  ) {
    this.hierarchies = held.map((graph) => new Hierarchy(graph));
  }

  private at({ step, rank, side }: Omit<Spot, "micro">): Hierarchy {
    const found = this.hierarchies.find(({ held }) => held.step === step && held.rank === rank && held.side === side);
    if (!found) throw new Refusal(`step ${step}, rank ${rank} is not in this file`, "export it with a wider scope");
    return found;
  }

  children(spot: Spot, name: string | null, offset: number, limit: number): Children {
    const hierarchy = this.at(spot);
    const node = hierarchy.find(name);
    let all = hierarchy.childrenOf.get(node.name) ?? [];
    if (node === hierarchy.root && spot.micro >= 0) all = all.filter(({ microStep }) => microStep === spot.micro);
    return { node, children: all.slice(offset, offset + limit), total: all.length };
  }

  opened(spot: Spot, names: readonly string[]): Children[] {
    const { byName } = this.at(spot);
    return names.filter((name) => byName.has(name)).map((name) => this.children(spot, name, 0, 500));
  }

  path(spot: Spot, name: string): string[] {
    const hierarchy = this.at(spot);
    const path: string[] = [];
    for (let at: string | null = name; at !== null; at = hierarchy.find(at).parent) path.unshift(at);
    return path;
  }

  detail(spot: Spot, name: string): NodeDetail {
    const hierarchy = this.at(spot);
    const brief = hierarchy.find(name);
    const known = hierarchy.held.details[name];
    if (known) return known;
    return {
      brief,
      partner: null,
      values: [],
      stacks: [],
      mergeInfo: [],
      mergedShapes: [],
      peers: [],
      dataDir: null,
    };
  }

  findings(spot: Spot, { kinds, leaves, after, limit }: FindingsQuestion): Findings {
    const hierarchy = this.at(spot);
    const all = hierarchy.held.nodes.filter(
      (node) => (!leaves || node.children === 0) && isOfKind(node, kinds) && hierarchy.inMicroStep(node, spot.micro),
    );
    const first = after === null ? 0 : all.findIndex(({ order }) => order > after);
    return { total: all.length, findings: first < 0 ? [] : all.slice(first, first + limit) };
  }

  jump(to: "first_divergence" | "first_nan", step: number, rank: number | null): Jump {
    const isNan = (node: NodeBrief) => [node.errorIn, node.errorOut].some((error) => error === "NaN");
    const isIt = (node: NodeBrief) =>
      to === "first_nan" ? isNan(node) || node.overflow === "critical" : node.verdict === "introduced";
    for (const { held } of this.hierarchies) {
      if (held.step !== step || held.side !== "target" || (rank !== null && held.rank !== rank)) continue;
      const node = held.nodes.find((brief) => brief.children === 0 && isIt(brief));
      if (node) return { found: { step, rank: held.rank, side: "target", node: node.name }, why: node.verdict ?? to };
    }
    return { found: null, why: "" };
  }

  search({ q, regex, matchCase, facets, limit }: SearchQuestion): SearchResult {
    const begun = Date.now();
    let wanted: RegExp;
    try {
      const text = regex ? q : q.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
      wanted = new RegExp(text, matchCase ? "" : "i");
    } catch {
      throw new Refusal("this is not a regular expression", "switch the expression off to search for the text itself");
    }
    const facetOf = (node: NodeBrief, side: SideName): Record<string, string | null> => ({
      side,
      type: node.type,
      verdict: node.verdict,
      overflow: node.overflow,
    });
    const result: SearchResult = { total: 0, isCapped: false, hits: [], groups: [], facets: [], elapsedMs: 0 };
    const counts = new Map<string, Map<string, number>>();
    for (const { held } of this.hierarchies) {
      const { step, rank, side } = held;
      let count = 0;
      for (const node of held.nodes) {
        if (!wanted.test(node.name)) continue;
        const own = facetOf(node, side);
        const misses = Object.entries(facets).filter(([name, value]) => own[name] !== value);
        // A facet counts what the others leave.
        for (const [name, value] of Object.entries(own)) {
          if (value === null || misses.some(([other]) => other !== name)) continue;
          const known = counts.get(name) ?? new Map<string, number>();
          counts.set(name, known.set(value, (known.get(value) ?? 0) + 1));
        }
        if (misses.length) continue;
        count++;
        const { name, type, tone, verdict, index, overflow } = node;
        if (result.hits.length < Math.min(limit, MOST_HITS))
          result.hits.push({ step, rank, side, name, type, tone, verdict, index, overflow });
      }
      result.total += count;
      const group = result.groups.find((known) => known.step === step && known.rank === rank);
      if (group) group.count += count;
      else if (count) result.groups.push({ step, rank, count });
    }
    result.isCapped = result.hits.length < result.total;
    result.facets = Array.from(counts, ([name, values]) => ({
      name: name as SearchResult["facets"][number]["name"],
      values: Array.from(values, ([value, count]) => ({ value, count })).sort((a, b) => b.count - a.count),
    }));
    result.elapsedMs = Date.now() - begun;
    return result;
  }

  private rows(spot: Spot, { q, tones, sort, descending }: TableQuery): NodeBrief[] {
    const hierarchy = this.at(spot);
    const text = q.toLowerCase();
    const rows = hierarchy.held.nodes.filter(
      (node) =>
        node.parent !== null &&
        (!text || node.name.toLowerCase().includes(text)) &&
        (!tones.length || tones.includes(node.tone)) &&
        hierarchy.inMicroStep(node, spot.micro),
    );
    const key = (node: NodeBrief): string | number | null => {
      const value = (node as unknown as Record<string, unknown>)[sort];
      if (sort.startsWith("error") || sort === "tolerated") return toNumber(value as number | null);
      return typeof value === "string" || typeof value === "number" ? value : null;
    };
    // What is not known comes last, NaN before all numbers.
    const size = (value: string | number | null) =>
      typeof value === "number" && Number.isNaN(value) ? Infinity : value;
    const way = descending ? -1 : 1;
    return rows.sort((a, b) => {
      const [x, y] = [size(key(a)), size(key(b))];
      if (x === null || y === null) return Number(x === null) - Number(y === null) || a.order - b.order;
      return (x < y ? -way : x > y ? way : 0) || a.order - b.order;
    });
  }

  pairs(spot: Spot, question: PairsQuestion): Pairs {
    const rows = this.rows(spot, question);
    const place = question.node === null ? -1 : rows.findIndex(({ name }) => name === question.node);
    return {
      total: rows.length,
      rows: rows.slice(question.offset, question.offset + question.limit),
      place: place < 0 ? null : place,
    };
  }

  csv(spot: Spot, question: TableQuery): string {
    const cell = (value: string) => (/[",\n]/.test(value) ? `"${value.replace(/"/g, '""')}"` : value);
    const lines = this.rows(spot, question).map((node) =>
      [
        String(node.order),
        node.name,
        node.partner ?? "",
        node.verdict ?? "",
        node.index === null ? "" : String(node.index),
        numberText(node.errorIn),
        numberText(node.errorOut),
        numberText(node.tolerated),
        node.overflow ?? "",
      ]
        .map(cell)
        .join(","),
    );
    return ["order,name,partner,verdict,precision_index,error_in,error_out,tolerated,overflow", ...lines].join("\n");
  }

  profile(step: number, rank: number): Profile {
    const { held } = this.at({ step, rank, side: "target" });
    const calls = held.nodes.filter((node) => node.children === 0 && (node.errorOut !== null || node.index !== null));
    const culprit = this.info.answers.find((answer) => answer.step === step && answer.rank === rank)?.node ?? null;
    const stretch = Math.ceil(calls.length / MOST_POINTS);
    const points = [];
    for (let first = 0; first < calls.length; first += stretch) {
      const worth = (node: NodeBrief) => (node.name === culprit ? Infinity : (toNumber(node.errorOut) ?? 0));
      points.push(calls.slice(first, first + stretch).reduce((a, b) => (worth(b) > worth(a) ? b : a)));
    }
    return { points, culprit, isThinned: stretch > 1 };
  }

  series(name: string, side: SideName, value: string, measure: string): Series {
    const series: Series = { node: name, values: [], measures: [], points: [] };
    for (const { held } of this.hierarchies) {
      if (held.side !== side) continue;
      const rows = (held.details[name]?.values ?? []).flatMap(({ direction, columns, rows: all }) =>
        all.filter((row) => row.side === side).map((row, place) => ({ id: `${direction}.${place}`, columns, row })),
      );
      if (!rows.length) continue;
      if (!series.values.length) series.values = rows.map(({ id }) => id);
      const chosen = rows.find(({ id }) => id === (value || series.values[0]));
      if (!chosen) continue;
      const isNumber = (cell: string | null) => cell !== null && cell !== "" && /^-?(\d|nan|inf)/i.test(cell);
      if (!series.measures.length)
        series.measures = chosen.columns.filter((_, column) => isNumber(chosen.row.cells[column]));
      const cell = chosen.row.cells[chosen.columns.indexOf(measure || series.measures[0])] as string | null | undefined;
      const number = isNumber(cell ?? null) ? parseFloat(cell!.replace(/^inf$/i, "Infinity")) : null;
      series.points.push({ step: held.step, rank: held.rank, number });
    }
    return series;
  }
}
