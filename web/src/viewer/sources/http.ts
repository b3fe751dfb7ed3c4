// The server's answers.

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
  PathTo,
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
import type { TableQuery } from "../place";
import {
  type FindingsQuestion,
  type PairsQuestion,
  Refusal,
  type SearchQuestion,
  type Source,
  type Spot,
  type StepRank,
} from "./source";

type Asked = Record<string, string | number | boolean | null | undefined>;

// What a server says that does not answer.
interface Said {
  error?: string;
  hint?: string | null;
  preparing?: { done: number; total: number };
}

// Between two questions about a graph that is being made of a dump.
const ASK_AGAIN_MS = 400;

function query(asked: Asked): string {
  const said = new URLSearchParams();
  for (const [key, value] of Object.entries(asked)) {
    if (value === null || value === undefined || value === "") continue;
    said.set(key, typeof value === "boolean" ? (value ? "1" : "0") : String(value));
  }
  const text = said.toString();
  return text ? `?${text}` : "";
}

const at = ({ step, rank, side, micro, stats }: Spot): Asked => ({ step, rank, side, micro, stats });

const paired = ({ q, tones, sort, descending }: TableQuery): Asked => ({ q, tones: tones.join(","), sort, descending });

export class HttpSource implements Source {
  readonly isReadOnly = false;

  // Told how much of what is waited for is done, and null when it is there.
  constructor(private readonly preparing: (share: number | null) => void) {}

  private async ask(address: string, body?: unknown): Promise<Response> {
    for (;;) {
      const response = await fetch(
        address,
        body === undefined
          ? {}
          : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) },
      ).catch(() => {
        throw new Refusal("the server does not answer", "is `msprobe view` still running?");
      });
      if (response.ok) {
        this.preparing(null);
        return response;
      }
      const said = (await response.json().catch(() => ({}))) as Said;
      if (response.status === 503 && said.preparing) {
        this.preparing(said.preparing.done / Math.max(1, said.preparing.total));
        await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
        continue;
      }
      this.preparing(null);
      throw new Refusal(said.error ?? `the server answered ${response.status}`, said.hint ?? "");
    }
  }

  private async get<T>(address: string, asked: Asked = {}): Promise<T> {
    return (await (await this.ask(address + query(asked))).json()) as T;
  }

  private async post<T>(address: string, body: unknown): Promise<T> {
    return (await (await this.ask(address, body)).json()) as T;
  }

  private about(id: string, what: string): string {
    return `/api/graph/${encodeURIComponent(id)}${what}`;
  }

  catalogue(): Promise<Catalogue> {
    return this.get("/api/catalogue");
  }

  graph(id: string): Promise<GraphInfo> {
    return this.get(this.about(id, ""));
  }

  children(id: string, spot: Spot, node: string | null, offset: number, limit: number): Promise<Children> {
    return this.get(this.about(id, "/children"), { ...at(spot), node, offset, limit });
  }

  open(id: string, spot: Spot, nodes: string[]): Promise<Opened> {
    return this.post(this.about(id, "/open"), { ...spot, nodes });
  }

  async path(id: string, spot: Spot, node: string): Promise<string[]> {
    return (await this.get<PathTo>(this.about(id, "/path"), { ...at(spot), node })).path;
  }

  node(id: string, spot: Spot, node: string): Promise<NodeDetail> {
    return this.get(this.about(id, "/node"), { ...at(spot), node });
  }

  findings(id: string, spot: Spot, { kinds, leaves, after, limit }: FindingsQuestion): Promise<Findings> {
    return this.get(this.about(id, "/findings"), { ...at(spot), kinds: kinds.join(","), leaves, after, limit });
  }

  jump(id: string, to: "first_divergence" | "first_nan", step: number, rank: number | null): Promise<Jump> {
    return this.get(this.about(id, "/jump"), { to, step, rank });
  }

  search(id: string, { q, regex, matchCase, facets, limit, stats }: SearchQuestion): Promise<SearchResult> {
    return this.get(this.about(id, "/search"), { q, regex, case: matchCase, ...facets, limit, stats });
  }

  pairs(id: string, spot: Spot, question: PairsQuestion): Promise<Pairs> {
    const { offset, limit, node } = question;
    return this.get(this.about(id, "/pairs"), { ...at(spot), ...paired(question), offset, limit, node });
  }

  async pairsCsv(id: string, spot: Spot, question: TableQuery): Promise<Blob> {
    return (await this.ask(this.about(id, "/pairs.csv") + query({ ...at(spot), ...paired(question) }))).blob();
  }

  profile(id: string, { step, rank, stats }: StepRank & Pick<Spot, "stats">): Promise<Profile> {
    return this.get(this.about(id, "/profile"), { step, rank, stats });
  }

  series(id: string, node: string, side: SideName, value: string, measure: string): Promise<Series> {
    return this.get(this.about(id, "/series"), { node, side, value, measure });
  }

  timeline(id: string, step: number): Promise<TimelineDescription> {
    return this.get(this.about(id, "/timeline"), { step });
  }

  suggestions(id: string, spot: Spot, node: string): Promise<Suggestions> {
    return this.get(this.about(id, "/suggestions"), { ...at(spot), node });
  }

  edits(id: string): Promise<Changed> {
    return this.get(this.about(id, "/edits"));
  }

  match(id: string, place: StepRank, target: string, golden: string, descendants: boolean): Promise<Changed> {
    return this.post(this.about(id, "/match"), { ...place, target, golden, descendants });
  }

  unmatch(id: string, place: StepRank, target: string, descendants: boolean): Promise<Changed> {
    return this.post(this.about(id, "/unmatch"), { ...place, target, descendants });
  }

  undo(id: string, place: StepRank): Promise<Changed> {
    return this.post(this.about(id, "/undo"), place);
  }

  redo(id: string, place: StepRank): Promise<Changed> {
    return this.post(this.about(id, "/redo"), place);
  }

  save(id: string): Promise<Changed> {
    return this.post(this.about(id, "/save"), {});
  }

  async saveConfig(id: string, place: StepRank): Promise<string> {
    return (await this.post<{ path: string }>(this.about(id, "/config/save"), place)).path;
  }

  applyConfig(id: string, place: StepRank, pairs: Record<string, string>): Promise<Changed> {
    return this.post(this.about(id, "/config/apply"), { ...place, pairs });
  }

  convert(asked: ConvertQuestion): Promise<Conversion> {
    return this.post("/api/convert", asked);
  }

  conversion(): Promise<Conversion> {
    return this.get("/api/convert");
  }

  matrix(kind: "gradients" | "keydata", id: string): Promise<Matrix> {
    return this.get(`/api/${kind}/${encodeURIComponent(id)}`);
  }

  trend(id: string): Promise<TrendInfo> {
    return this.get(`/api/trend/${encodeURIComponent(id)}`);
  }

  trendMap(id: string, question: TrendQuestion): Promise<TrendMap> {
    return this.get(`/api/trend/${encodeURIComponent(id)}/map`, { ...question });
  }

  trendLines(id: string, { metric, statistic }: TrendQuestion, target: string): Promise<Series> {
    return this.get(`/api/trend/${encodeURIComponent(id)}/lines`, { metric, statistic, target });
  }

  tables(id: string): Promise<ItemTables> {
    return this.get(`/api/item/${encodeURIComponent(id)}/tables`);
  }

  reportAddress(id: string): string {
    return `/report/${encodeURIComponent(id)}`;
  }
}
