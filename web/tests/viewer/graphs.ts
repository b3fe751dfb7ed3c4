// Graphs made for tests: small ones with everything in them, and one of a million nodes of which nothing exists before it
// is asked for.

import type { Catalogue, Children, GraphInfo, Item, NodeBrief, NodeDetail, SideName } from "../../src/viewer/api";
import type { HeldGraph } from "../../src/viewer/sources/memory";
import type { TimelineDescription } from "../../src/parts/views";

export const ROOT = "DefaultModel";
export const CULPRIT = "Functional.linear.5.forward";
// Neither has a partner until somebody matches them.
export const LONELY_TARGET = "Torch.add.0.forward";
export const LONELY_GOLDEN = "Torch.add.9.forward";
export const REDUCE = "Distributed.all_reduce.0.forward";
// A name that would be markup, were it not text.
export const HOSTILE = "Functional.<img src=x onerror=alert(1)>.0.forward";

export const LAYERS = 6;

export function brief(name: string, parent: string | null, more: Partial<NodeBrief> = {}): NodeBrief {
  return {
    name,
    label: name.replace(/^(Module|Functional|Torch|Distributed)\./, ""),
    type: "api",
    order: 0,
    children: 0,
    parent,
    microStep: -1,
    index: null,
    verdict: null,
    tone: "plain",
    errorIn: null,
    errorOut: null,
    tolerated: null,
    overflow: null,
    partner: null,
    worst: null,
    orphan: null,
    hasPeers: false,
    modified: false,
    ...more,
  };
}

const VERDICTS: Record<string, Partial<NodeBrief>> = {
  good: { tone: "good", verdict: "within_tolerance", index: 0.01, errorIn: 1e-7, errorOut: 2e-7, tolerated: 1e-4 },
  bad: { tone: "bad", verdict: "introduced", index: 0.9, errorIn: 1e-7, errorOut: 3e-2, tolerated: 1e-4 },
  warning: { tone: "warning", verdict: "inherited", index: 0.3, errorIn: 3e-2, errorOut: 4e-2, tolerated: 1e-4 },
  lonely: { tone: "unknown", verdict: "unmatched" },
};

function detailOf(node: NodeBrief, partner: NodeBrief | null, rank: number, step: number, ranks: number): NodeDetail {
  const columns = ["type", "dtype", "shape", "Max", "Min", "Mean", "Norm", "MaxRelativeErr"];
  const number = (Math.abs(Math.sin(node.order + 1)) * (1 + step) + rank * 0.1).toFixed(6);
  const row = (side: SideName, name: string) => ({
    side,
    name,
    isMatched: partner !== null,
    cells: ["torch.Tensor", "torch.float32", "[4, 8]", number, "-1.0", "0.5", "2.0", side === "target" ? "0.1%" : null],
  });
  const values = (["input", "output"] as const).map((direction) => ({
    direction,
    columns,
    rows: [row("target", `${node.name}.${direction}.0`), row("golden", `${partner?.name ?? node.name}.${direction}.0`)],
  }));
  const frames = (side: SideName) => [
    { text: `File /usr/lib/torch/nn/functional.py, line 10, in ${node.label}`, isUser: false },
    { text: `File /home/${side}/train.py, line ${side === "target" ? 41 : 42}, in forward`, isUser: true },
    { text: "File /home/x/main.py, line 7, in <module>", isUser: true },
  ];
  return {
    brief: node,
    partner,
    values,
    stacks: [
      { side: "target", frames: frames("target") },
      { side: "golden", frames: partner ? frames("golden") : [] },
    ],
    mergeInfo: node.type === "module" ? ["merged from ranks 0 and 1"] : [],
    mergedShapes: [],
    peers: node.hasPeers
      ? Array.from({ length: ranks }, (_, other) => other)
          .filter((other) => other !== rank)
          .map((other) => ({ rank: other, node: node.name, way: "send_receive", index: String(node.index) }))
      : [],
    dataDir: null,
  };
}

// One side of one step and rank, with the culprit on rank 0 only.
function side(which: SideName, step: number, rank: number, ranks: number): { nodes: NodeBrief[] } {
  const nodes: NodeBrief[] = [];
  const add = (name: string, parent: string | null, more: Partial<NodeBrief> = {}) => {
    const made = brief(name, parent, { order: nodes.length, ...more });
    nodes.push(made);
    return made;
  };
  add(ROOT, null, { type: "module", label: ROOT });
  let calls = 0;
  const bad = rank === 0 && step === 1;
  const judged = (place: number): Partial<NodeBrief> =>
    !bad || place < 5 ? VERDICTS.good : place === 5 ? VERDICTS.bad : VERDICTS.warning;
  for (let layer = 0; layer < LAYERS; layer++) {
    const block = `Module.layers.${layer}.Block.forward.0`;
    add(block, ROOT, { type: "module", microStep: layer % 2, partner: block });
    for (const part of ["attention.Attention", "mlp.Mlp"]) {
      const name = `Module.layers.${layer}.${part}.forward.0`;
      add(name, block, { type: "module", partner: name, overflow: bad && layer === 2 ? "high" : null });
      for (let at = 0; at < 7; at++) {
        const call = `Functional.linear.${calls}.forward`;
        add(call, name, { partner: call, ...judged(calls), overflow: bad && calls === 40 ? "critical" : null });
        calls++;
      }
    }
  }
  const collection = "Apis_Between_Modules.0";
  add(collection, ROOT, { type: "collection", microStep: 1, partner: collection });
  add(REDUCE, collection, { partner: REDUCE, hasPeers: ranks > 1, ...judged(100) });
  add(HOSTILE, collection, { partner: HOSTILE, ...judged(101) });
  if (which === "target") add(LONELY_TARGET, collection, VERDICTS.lonely);
  else add(LONELY_GOLDEN, collection, VERDICTS.lonely);
  const byName = new Map(nodes.map((node) => [node.name, node]));
  const rankOf = { plain: 0, good: 1, unknown: 2, warning: 3, bad: 4 };
  for (const node of nodes) if (node.parent !== null) byName.get(node.parent)!.children++;
  for (const node of nodes.slice().reverse()) {
    const parent = node.parent === null ? undefined : byName.get(node.parent);
    if (!parent) continue;
    const { name, tone, index, verdict, overflow } = node;
    for (const one of [{ name, tone, index, verdict, overflow }, node.worst])
      if (one && rankOf[one.tone] >= rankOf[parent.worst?.tone ?? "plain"]) parent.worst = one;
  }
  return { nodes };
}

export function heldGraphs(steps: number, ranks: number): HeldGraph[] {
  const graphs: HeldGraph[] = [];
  for (let step = 0; step < steps; step++)
    for (let rank = 0; rank < ranks; rank++) {
      const both = { target: side("target", step, rank, ranks), golden: side("golden", step, rank, ranks) };
      for (const which of ["target", "golden"] as const) {
        const other = new Map(both[which === "target" ? "golden" : "target"].nodes.map((node) => [node.name, node]));
        const details: HeldGraph["details"] = {};
        for (const node of both[which].nodes) {
          const partner = node.partner === null ? null : (other.get(node.partner) ?? null);
          details[node.name] = detailOf(node, partner, rank, step, ranks);
        }
        graphs.push({ step, rank, side: which, nodes: both[which].nodes, details });
      }
    }
  return graphs;
}

export function infoOf(id: string, steps: number, ranks: number, more: Partial<GraphInfo> = {}): GraphInfo {
  const all = (count: number) => Array.from({ length: count }, (_, place) => place);
  return {
    id,
    title: id,
    kind: "compare",
    task: "summary",
    toolTips: { Max: "the largest value of the tensor" },
    colours: [
      { hex: "#ffffff", range: [0, 0.2], description: "small" },
      { hex: "#ffedbe", range: [0.2, 0.6], description: "some" },
      { hex: "#ff704d", range: [0.6, 1], description: "large" },
      { hex: "#c7c7c7", range: [], description: "unmatched" },
    ],
    microSteps: 2,
    overflowCheck: true,
    hasVerdicts: true,
    writable: true,
    steps: all(steps),
    ranks: all(ranks),
    answers: all(steps).flatMap((step) =>
      all(ranks).map((rank) => {
        const bad = step === 1 && rank === 0;
        return {
          step,
          rank,
          status: bad ? "diverged" : "within_tolerance",
          tone: bad ? ("bad" as const) : ("good" as const),
          headline: bad ? `Diverged at ${CULPRIT}` : "Within tolerance",
          culprit: bad ? CULPRIT : null,
          node: bad ? CULPRIT : null,
        };
      }),
    ),
    nodes: 111,
    ...more,
  };
}

export function itemOf(id: string, kind: Item["kind"], more: Partial<Item> = {}): Item {
  return {
    id,
    kind,
    title: id,
    path: `/data/${id}`,
    modified: "2026-11-18T10:00:00Z",
    bytes: 123456,
    steps: [],
    ranks: [],
    answer: null,
    tone: "plain",
    cells: [],
    report: null,
    error: null,
    ...more,
  };
}

export function catalogueOf(items: Item[]): Catalogue {
  return { version: "0", roots: ["/data"], items, notes: [{ path: "/data/link", text: "a link, not followed" }] };
}

export function timelineOf(ranks: number): TimelineDescription {
  return {
    name: "Timeline",
    count: ranks,
    note: "Ranks in the order of calls",
    lanes: Array.from({ length: ranks }, (_, rank) => [
      `rank ${rank}`,
      100,
      "",
      [[10, 30, "good", "before"]],
      [
        [35, rank ? "warning" : "bad", "all_reduce", "communication", rank ? 0 : 1],
        [80, "warning", "all_reduce.1", "communication", 0],
      ],
    ]),
    links: Array.from({ length: ranks - 1 }, (_, rank) => [0, 0, rank + 1, 0, "bad", "sent"]),
    legend: [["warning", "received"]],
  };
}

// A million nodes: a hundred blocks of a hundred modules of a hundred calls, made when somebody asks.
export const HUGE = 100;

export function hugeChildren(name: string | null, offset: number, limit: number): Children {
  const parts = (name ?? ROOT) === ROOT ? [] : name!.split(".").slice(1).map(Number);
  const own = (at: number[]): NodeBrief => {
    const order = at.reduce((sum, place) => sum * HUGE + place, 0);
    const isLeaf = at.length === 3;
    const called = at.length ? `n.${at.join(".")}` : ROOT;
    const parent = at.length === 0 ? null : at.length === 1 ? ROOT : `n.${at.slice(0, -1).join(".")}`;
    return brief(called, parent, {
      type: isLeaf ? "api" : "module",
      label: called,
      order,
      children: isLeaf ? 0 : HUGE,
      partner: null,
      ...(order % 97 === 3 ? VERDICTS.bad : order % 13 === 1 ? VERDICTS.warning : VERDICTS.good),
    });
  };
  const node = own(parts);
  const children = Array.from({ length: Math.max(0, Math.min(limit, node.children - offset)) }, (_, place) =>
    own([...parts, offset + place]),
  );
  return { node, children, total: node.children };
}

export function hugePath(name: string): string[] {
  const parts = name === ROOT ? [] : name.split(".").slice(1);
  return [ROOT, ...parts.map((_, place) => `n.${parts.slice(0, place + 1).join(".")}`)];
}
