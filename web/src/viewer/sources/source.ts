// Where the viewer's data comes from: the server, or what was written into an exported page. Both answer the same questions.

import type {
  Catalogue,
  Changed,
  Children,
  Conversion,
  ConvertQuestion,
  Findings,
  GraphInfo,
  ItemTables,
  Jump,
  Matrix,
  NodeDetail,
  Opened,
  Pairs,
  Profile,
  SearchResult,
  Series,
  SideName,
  Suggestions,
  TrendInfo,
  TrendMap,
  TrendQuestion,
} from "../api";
import type { TimelineDescription } from "../../parts/views";
import type { SearchQuery, TableQuery } from "../place";

// One hierarchy of a graph.
export interface Spot {
  step: number;
  rank: number;
  side: SideName;
  micro: number;
  // Statistics by which nodes are judged, between commas; that of the file without them.
  stats?: string;
}

export type StepRank = Pick<Spot, "step" | "rank">;

export interface SearchQuestion extends SearchQuery {
  limit: number;
  stats?: string;
}

export interface PairsQuestion extends TableQuery {
  // Whose place among the rows is asked for.
  node: string | null;
  offset: number;
  limit: number;
}

export interface FindingsQuestion {
  kinds: string[];
  leaves: boolean;
  after: number | null;
  limit: number;
}

export interface Source {
  // Whether manual matches can be made at all.
  readonly isReadOnly: boolean;
  catalogue(): Promise<Catalogue>;
  graph(id: string): Promise<GraphInfo>;
  children(id: string, spot: Spot, node: string | null, offset: number, limit: number): Promise<Children>;
  open(id: string, spot: Spot, nodes: string[]): Promise<Opened>;
  path(id: string, spot: Spot, node: string): Promise<string[]>;
  node(id: string, spot: Spot, node: string): Promise<NodeDetail>;
  findings(id: string, spot: Spot, question: FindingsQuestion): Promise<Findings>;
  jump(id: string, to: "first_divergence" | "first_nan", step: number, rank: number | null): Promise<Jump>;
  search(id: string, question: SearchQuestion): Promise<SearchResult>;
  pairs(id: string, spot: Spot, question: PairsQuestion): Promise<Pairs>;
  // The rows of the same question as csv, all of them.
  pairsCsv(id: string, spot: Spot, question: TableQuery): Promise<Blob>;
  profile(id: string, at: StepRank & Pick<Spot, "stats">): Promise<Profile>;
  series(id: string, node: string, side: SideName, value: string, measure: string): Promise<Series>;
  timeline(id: string, step: number): Promise<TimelineDescription>;
  suggestions(id: string, spot: Spot, node: string): Promise<Suggestions>;
  edits(id: string): Promise<Changed>;
  match(id: string, at: StepRank, target: string, golden: string, descendants: boolean): Promise<Changed>;
  unmatch(id: string, at: StepRank, target: string, descendants: boolean): Promise<Changed>;
  undo(id: string, at: StepRank): Promise<Changed>;
  redo(id: string, at: StepRank): Promise<Changed>;
  save(id: string): Promise<Changed>;
  saveConfig(id: string, at: StepRank): Promise<string>;
  applyConfig(id: string, at: StepRank, pairs: Record<string, string>): Promise<Changed>;
  convert(asked: ConvertQuestion): Promise<Conversion>;
  conversion(): Promise<Conversion>;
  matrix(kind: "gradients" | "keydata", id: string): Promise<Matrix>;
  trend(id: string): Promise<TrendInfo>;
  trendMap(id: string, question: TrendQuestion): Promise<TrendMap>;
  trendLines(id: string, question: TrendQuestion, target: string): Promise<Series>;
  tables(id: string): Promise<ItemTables>;
  // Where the html report of an item is, if it can be shown.
  reportAddress(id: string): string | null;
}

// An answer that says what to do about it.
export class Refusal extends Error {
  constructor(
    message: string,
    readonly hint: string,
  ) {
    super(message);
  }
}
