// What was written into an exported page. It can be read like a server's answers, and not changed.

import type { Catalogue, Changed, GraphInfo, ItemTables, Matrix } from "../api";
import type { TimelineDescription } from "../../parts/views";
import type { TableQuery } from "../place";
import { HeldAnswers, type HeldGraph } from "./memory";
import {
  type FindingsQuestion,
  type PairsQuestion,
  Refusal,
  type SearchQuestion,
  type Source,
  type Spot,
} from "./source";

// A graph, or why it could not be read.
type EmbeddedGraph =
  | { info: GraphInfo; graphs: HeldGraph[]; timelines?: Record<string, TimelineDescription | undefined> }
  | { error: string; hint: string | null };

export interface Embedded {
  catalogue: Catalogue;
  graphs: Record<string, EmbeddedGraph | undefined>;
  // Of items that are no graphs; the matrix is that of gradients and key data.
  tables?: Record<string, { tables: ItemTables["tables"]; matrix: Matrix | null } | undefined>;
}

const refused = () => new Refusal("an exported page cannot be changed", "open the file with `msprobe view`");

export class EmbeddedSource implements Source {
  readonly isReadOnly = true;
  private readonly answers = new Map<string, HeldAnswers>();

  constructor(private readonly embedded: Embedded) {}

  private held(id: string): HeldAnswers {
    const graph = this.embedded.graphs[id];
    if (!graph) throw new Refusal("this graph is not in the exported page", "export it with a wider scope");
    if ("error" in graph) throw new Refusal(graph.error, graph.hint ?? "");
    const known = this.answers.get(id) ?? new HeldAnswers({ ...graph.info, writable: false }, graph.graphs);
    this.answers.set(id, known);
    return known;
  }

  catalogue = () => Promise.resolve(this.embedded.catalogue);
  graph = async (id: string) => Promise.resolve(this.held(id).info);
  children = async (id: string, spot: Spot, node: string | null, offset: number, limit: number) =>
    Promise.resolve(this.held(id).children(spot, node, offset, limit));
  open = async (id: string, spot: Spot, nodes: string[]) =>
    Promise.resolve({ opened: this.held(id).opened(spot, nodes) });
  path = async (id: string, spot: Spot, node: string) => Promise.resolve(this.held(id).path(spot, node));
  node = async (id: string, spot: Spot, node: string) => Promise.resolve(this.held(id).detail(spot, node));
  findings = async (id: string, spot: Spot, question: FindingsQuestion) =>
    Promise.resolve(this.held(id).findings(spot, question));
  jump: Source["jump"] = async (id, to, step, rank) => Promise.resolve(this.held(id).jump(to, step, rank));
  search = async (id: string, question: SearchQuestion) => Promise.resolve(this.held(id).search(question));
  pairs = async (id: string, spot: Spot, question: PairsQuestion) =>
    Promise.resolve(this.held(id).pairs(spot, question));
  pairsCsv = async (id: string, spot: Spot, question: TableQuery) =>
    Promise.resolve(new Blob([this.held(id).csv(spot, question)], { type: "text/csv" }));
  profile: Source["profile"] = async (id, { step, rank }) => Promise.resolve(this.held(id).profile(step, rank));
  series: Source["series"] = async (id, node, side, value, measure) =>
    Promise.resolve(this.held(id).series(node, side, value, measure));

  async timeline(id: string, step: number): Promise<TimelineDescription> {
    const empty = { name: "", count: 0, note: "", lanes: [], links: [], legend: [] };
    const graph = this.embedded.graphs[id];
    const known = graph && "timelines" in graph ? graph.timelines?.[String(step)] : undefined;
    return Promise.resolve(known ?? empty);
  }

  suggestions = () => Promise.resolve({ suggestions: [] });
  edits = (): Promise<Changed> =>
    Promise.resolve({
      edition: 0,
      pairs: 0,
      failed: 0,
      isUnsaved: false,
      canUndo: false,
      canRedo: false,
      text: "",
    });
  match = () => Promise.reject(refused());
  unmatch = () => Promise.reject(refused());
  undo = () => Promise.reject(refused());
  redo = () => Promise.reject(refused());
  save = () => Promise.reject(refused());
  saveConfig = () => Promise.reject(refused());
  applyConfig = () => Promise.reject(refused());

  convert = () => Promise.reject(refused());
  conversion = () => Promise.reject(refused());

  async matrix(_kind: "gradients" | "keydata", id: string): Promise<Matrix> {
    return Promise.resolve(this.embedded.tables?.[id]?.matrix ?? { rows: [], columns: [], cells: [], limit: null });
  }

  trend = () => Promise.reject(refused());
  trendMap = () => Promise.reject(refused());
  trendLines = () => Promise.reject(refused());

  async tables(id: string): Promise<ItemTables> {
    return Promise.resolve({ tables: this.embedded.tables?.[id]?.tables ?? [] });
  }

  reportAddress = () => null;
}

// What the page holds, if it is an exported one.
export function embeddedIn(page: Document): Embedded | null {
  const script = page.getElementById("embedded");
  if (!(script instanceof HTMLScriptElement)) return null;
  const embedded = JSON.parse(script.textContent) as Embedded;
  script.remove();
  return embedded;
}
