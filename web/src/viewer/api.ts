// What the server of the viewer (crates/viewer) answers, as types. One contract, two sides: the Rust structs that are
// written here as JSON have the same names. Names are camelCase on the wire; numbers that are not finite are the strings
// "NaN", "Infinity", "-Infinity"; what is not known is null, never left out.
//
// All GETs but /api/export are pure: the server keeps no selection, so windows are independent. An error is
// {error, hint} with status 4xx or 5xx; 503 with {preparing} means "ask again": a graph is being made of a dump.

import type { Tone } from "../parts/tones";

export type Num = number | "NaN" | "Infinity" | "-Infinity";
export type SideName = "target" | "golden";

// GET /api/catalogue
export interface Catalogue {
  version: string;
  roots: string[];
  items: Item[];
  // What was met and could not be read, or was not looked at (links, too many entries).
  notes: { path: string; text: string }[];
}

export type ItemKind = "graph" | "dump" | "comparison" | "keydata" | "gradients" | "overflow" | "trend";

export interface Item {
  // Stable for a path below the same root: it stands in links.
  id: string;
  kind: ItemKind;
  title: string;
  path: string;
  modified: string; // RFC 3339
  bytes: number;
  steps: number[];
  ranks: number[];
  // The answer as in docs/answers.md, if the item has one.
  answer: Answer | null;
  tone: Tone;
  // One cell for each step and rank that has an answer of its own.
  cells: { step: number; rank: number; status: string; tone: Tone; culprit: string | null }[];
  // Id of an html report of a command that stands beside it, to be shown at /report/{id} (sandboxed).
  report: string | null;
  error: string | null;
}

export interface Answer {
  schema: number;
  command: string;
  status: string;
  headline: string;
  culprit: { name: string; kind: string; direction: string | null; facts: { label: string; text: string }[] } | null;
  evidence: {
    record: string;
    value: string | null;
    measure: string;
    target: unknown;
    golden: unknown;
    measured: unknown;
    tolerated: unknown;
  }[];
  not_compared: { kind: string; count: number; text: string; first: { name: string; reason: string }[] }[];
  next_step: string | null;
  files: string[];
}

// GET /api/graph/{id}  (graphs: .vis, .vis.db, and dumps, of which a graph is made when it is asked for)
export interface GraphInfo {
  id: string;
  title: string;
  kind: "build" | "compare";
  task: string; // summary | md5 | all | structure | ""
  // Help texts of the reference for its columns.
  toolTips: Record<string, string>;
  // The colours of the reference: hex -> range of precision_index and what it means; [] is "unmatched".
  colours: { hex: string; range: [number, number] | []; description: string }[];
  microSteps: number;
  overflowCheck: boolean;
  // Whether our own verdicts are in the file; if not, colours come from precision_index.
  hasVerdicts: boolean;
  writable: boolean;
  steps: number[];
  ranks: number[];
  answers: RankAnswer[];
  nodes: number;
}

export interface RankAnswer {
  step: number;
  rank: number;
  status: string;
  tone: Tone;
  headline: string;
  culprit: string | null;
  // Node of the target.
  node: string | null;
}

// Where a node stands. Every node question has ?step=&rank=&side=&micro= (micro -1 or absent: all).
export interface NodeBrief {
  name: string;
  // Without what it shares with its parent.
  label: string;
  type: "module" | "api" | "collection" | "multi";
  order: number;
  children: number;
  parent: string | null;
  microStep: number;
  // precision_index of the reference
  index: number | null;
  // introduced | inherited | within_tolerance | equal | not_comparable | unmatched … ; null where nothing was compared
  verdict: string | null;
  tone: Tone;
  errorIn: Num | null;
  errorOut: Num | null;
  tolerated: Num | null;
  overflow: "medium" | "high" | "critical" | null;
  partner: string | null;
  worst: { name: string; tone: Tone; index: number | null; verdict: string | null; overflow: string | null } | null;
  orphan: string | null;
  hasPeers: boolean;
  modified: boolean;
}

// GET /api/graph/{id}/children?…&node=NAME&offset=0&limit=500   (node absent: the root)
export interface Children {
  node: NodeBrief;
  children: NodeBrief[];
  total: number;
}

// POST /api/graph/{id}/open {step, rank, side, micro, nodes: string[]}: what an expanded set shows, in one question.
// Names that are not there are left out.
export interface Opened {
  opened: Children[];
}

// GET /api/graph/{id}/path?…&node=NAME -> names from the root down to it
export interface PathTo {
  path: string[];
}

// GET /api/graph/{id}/node?…&node=NAME
export interface NodeDetail {
  brief: NodeBrief;
  partner: NodeBrief | null;
  // Rows of both sides interleaved: target, golden, target, golden; columns in the order of the file.
  values: {
    direction: "input" | "output";
    columns: string[];
    rows: { side: SideName; name: string; isMatched: boolean; cells: (string | null)[] }[];
  }[];
  // Frames, outermost last as in the file; isUser: outside of torch, the framework and msprobe.
  stacks: { side: SideName; frames: { text: string; isUser: boolean }[] }[];
  mergeInfo: string[];
  mergedShapes: { value: string; shape: string; note: string | null }[];
  peers: { rank: number; node: string; way: string; index: string }[];
  dataDir: string | null;
}

// GET /api/graph/{id}/findings?…&kinds=introduced,inherited,unmatched,warning,error,overflow&leaves=1
// In the order of calls, the target's; at most `limit` (default 2000) from `after` (an order).
export interface Findings {
  total: number;
  findings: NodeBrief[];
}

// GET /api/graph/{id}/jump?to=first_divergence|first_nan&step=&rank=   (without rank: over all, by communication links)
export interface Jump {
  found: { step: number; rank: number; side: SideName; node: string } | null;
  why: string;
}

// GET /api/graph/{id}/search?q=&regex=0|1&case=0|1&step=&rank=&side=&type=&verdict=&overflow=&dtype=&limit=200
// Absent filters mean all. Facets count what the other filters leave.
export interface SearchResult {
  total: number;
  isCapped: boolean;
  hits: {
    step: number;
    rank: number;
    side: SideName;
    name: string;
    type: string;
    tone: Tone;
    verdict: string | null;
    index: number | null;
    overflow: string | null;
  }[];
  groups: { step: number; rank: number; count: number }[];
  facets: { name: "side" | "type" | "verdict" | "overflow" | "dtype"; values: { value: string; count: number }[] }[];
  elapsedMs: number;
}

// GET /api/graph/{id}/pairs?…&q=&tones=bad,warning&sort=errorOut&descending=1&offset=0&limit=200   and /pairs.csv with the same filters
export interface Pairs {
  total: number;
  rows: NodeBrief[];
  // Where the node of &node= stands, see the notes below.
  place?: number | null;
}

// GET /api/graph/{id}/profile?step=&rank=   error along the order of calls; long runs are thinned, keeping the worst of each stretch
export interface Profile {
  points: {
    order: number;
    name: string;
    errorIn: Num | null;
    errorOut: Num | null;
    tolerated: Num | null;
    index: number | null;
    tone: Tone;
  }[];
  culprit: string | null;
  isThinned: boolean;
}

// GET /api/graph/{id}/series?node=NAME&side=&value=output.0&measure=Max     all steps and ranks
export interface Series {
  node: string;
  values: string[]; // which values the node has
  measures: string[]; // which measures this value has
  points: { step: number; rank: number; number: Num | null }[];
}

// GET /api/graph/{id}/timeline?step=   lanes of ranks with communication: the description of web/src/parts/views.ts
// (TimelineDescription), so that the page's drawing shows it.

// POST /api/graph/{id}/match {step, rank, target, golden, descendants: bool}
// POST /api/graph/{id}/unmatch {step, rank, target, descendants: bool}
// Both answer what changed; /undo and /redo {step, rank} answer the same. Nothing is written to the file before /save.
// (a journal in memory per graph; independent windows see the same edits after asking again: `edition` grows)
export interface Changed {
  edition: number;
  pairs: number;
  failed: number;
  isUnsaved: boolean;
  canUndo: boolean;
  canRedo: boolean;
  text: string;
}
// GET /api/graph/{id}/edits -> Changed
// POST /api/graph/{id}/save -> Changed; .vis.db: UPDATE … modified=1; .vis rewritten whole
// POST /api/graph/{id}/config/save {step, rank} -> {path}: writes {tag}.vis.config / {tag}_{step}_{rank}.vis.config; /config/apply {step, rank, pairs: {target: golden}} -> Changed
// GET /api/graph/{id}/suggestions?…&node=NAME -> partners for a node without one
export interface Suggestions {
  suggestions: { node: NodeBrief; reason: string }[];
}

// POST /api/convert: begins to make a graph file of dumps, one at a time; GET /api/convert: how far that is
export interface ConvertQuestion {
  // Ids of dumps.
  target: string;
  golden: string | null;
  // Name of a directory below the path the target was found under.
  output: string;
  fuzzy: boolean;
  overflowCheck: boolean;
  // A file below that path; "" to go by names alone.
  mapping: string | null;
  // Of each side, to merge ranks.
  merge: Strategy[];
}
export interface Strategy {
  rankSize: number;
  tp: number;
  pp: number;
  vpp: number;
  cp: number;
  ep: number;
  order: string;
}
export interface Conversion {
  state: "idle" | "running" | "done" | "failed";
  percent: number;
  messages: string[];
  error: string | null;
  hint: string | null;
  headline: string | null;
  path: string | null;
  item: string | null;
}

// GET /api/gradients/{id}: similarity, layers x steps
// GET /api/keydata/{id}: per step and key
export interface Matrix {
  rows: string[];
  columns: string[];
  cells: { row: number; column: number; number: Num | null; tone: Tone; text: string }[];
  limit: Num | null;
}
// GET /api/trend/{id}: what a database of trends has numbers of
export interface TrendInfo {
  metrics: { name: string; statistics: string[] }[];
  tags: { name: string; category: string; metric: string }[];
  ranks: number[];
  targets: number;
}
// GET /api/trend/{id}/map?metric=&statistic=&rank=&tags=a,b&q=: targets x steps of a rank. Several tags are all meant.
export interface TrendQuestion {
  metric: string;
  statistic: string;
  rank: number;
  tags: string;
  q: string;
}
export interface TrendMap {
  rows: { id: number; label: string }[];
  columns: number[];
  // Row, column, number.
  cells: [number, number, Num][];
  // There are more targets, and more steps: each `every`-th is there.
  isCut: boolean;
  every: number;
}
// GET /api/trend/{id}/lines?metric=&statistic=&target=: Series of one target over all steps and ranks

// GET /api/item/{id}/tables: the tables an item stands for (findings of verdict.json, rows of csv), bounded
export interface ItemTables {
  tables: { name: string; headers: string[]; rows: (string | number | null)[][]; tones: Tone[]; isCut: boolean }[];
}

// Notes
// - stats=Max,Min,Mean,Norm (any of them) with children, open, node, findings, search, pairs and profile: index and tone are
//   those of the relative errors of these statistics of results. Only where statistics were compared (task "summary").
// - TimelineDescription stands in web/src/parts/views.ts now (the timeline is shared by pages and viewer).
// - Served files: GET / is index.html, which asks for /viewer.css and /viewer.js (crates/viewer/assets). The page keeps its
//   place in the hash (#file=…&step=…), so that one path serves all. Exported pages hold the same three inline.
// - The page needs: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self';
//   frame-src 'self'. Styles of single elements are set through CSSOM.
// - findings: `kinds` may also hold "pass", "medium", "high", "critical" (spec 9, precision and overflow filters).
//   Ranges of precision_index are kinds, too: "index:0.2:0.6" from the first number on and below the second one, with
//   ":closed" at the end up to and with it.
// - POSTs carry content-type application/json and a body that is an object, {} where nothing is said.
// - /open answers at most 500 children of each node (total says how many there are), parents before children where possible.
// - pairs: with &node=NAME the answer has `place`: where that node stands among the rows that were asked for (before offset
//   and limit), null if it is not among them. Without it the page looks for the row itself, page by page.
// - 503 says {preparing: {done, total}}: so much of so much is done.
