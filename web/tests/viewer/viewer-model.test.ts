// Parts of the viewer that need no browser: the address, the tree, its layout, call stacks, pens, answers in memory.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { Opened } from "../../src/viewer/api";
import { arrange, eachIn, LEAVES_IN_ROW, nodeAt, type Rect, rectOf, sizeOf } from "../../src/viewer/graph/layout";
import { questionOf } from "../../src/viewer/home/trend";
import { rangesFit } from "../../src/viewer/graph/legend";
import { rangeOf } from "../../src/viewer/graph/painter";
import { SideTree, type TreeLoader, type TreeNode } from "../../src/viewer/graph/tree";
import { numberText } from "../../src/viewer/numbers";
import { alignFrames, userFirst } from "../../src/viewer/panels/frames";
import { logScale } from "../../src/viewer/pictures/axes";
import { escaped, SvgPen } from "../../src/viewer/pictures/pen";
import { emptyPlace, packNames, type Place, placeFromHash, placeToHash, unpackNames } from "../../src/viewer/place";
import { worth } from "../../src/viewer/shell/commands";
import { HeldAnswers, isOfKind } from "../../src/viewer/sources/memory";
import { brief, CULPRIT, heldGraphs, HUGE, hugeChildren, hugePath, infoOf, LONELY_TARGET, ROOT } from "./graphs";

const hugeLoader = (asked: string[] = []): TreeLoader => ({
  children: (node, offset, limit) => {
    asked.push(`${node ?? ""} ${offset}`);
    return Promise.resolve(hugeChildren(node, offset, limit));
  },
  open: (nodes): Promise<Opened> => Promise.resolve({ opened: nodes.map((node) => hugeChildren(node, 0, 500)) }),
  path: (node) => Promise.resolve(hugePath(node)),
});

async function hugeTree(asked?: string[]): Promise<SideTree> {
  const tree = new SideTree("target", hugeLoader(asked), () => undefined);
  await tree.begin();
  return tree;
}

const everything: Rect = { x: -1e9, y: -1e9, width: 2e9, height: 2e9 };

function visible(tree: SideTree, view: Rect = everything): TreeNode[] {
  const seen: TreeNode[] = [];
  eachIn(tree.root!, view, (node) => {
    seen.push(node);
    return true;
  });
  return seen;
}

test("an address says all of a place and is read as it was written", () => {
  const place: Place = {
    ...emptyPlace(),
    file: "a b/ü&=#.vis",
    screen: "table",
    step: 3,
    rank: 12,
    micro: 1,
    side: "golden",
    node: "Module.layers.0.Block<x>&y=~!.forward.0",
    colour: "overflow",
    kinds: ["introduced"],
    leaves: true,
    panel: "stacks",
    left: "search",
    picture: "series",
    value: "output.0",
    measure: "Max",
    search: { q: "a+b", regex: true, matchCase: true, facets: { type: "api", side: "golden" } },
    table: { q: "x", tones: ["bad", "warning"], sort: "errorOut", descending: true },
    open: { target: ["Module.a.0", "Module.a.1", "odd~!name"], golden: ["Module.b"] },
  };
  assert.deepEqual(placeFromHash(`#${placeToHash(place)}`), place);
  assert.deepEqual(placeFromHash(""), emptyPlace());
  assert.equal(placeToHash(emptyPlace()), "");
});

test("what a hostile address says is left out", () => {
  const place = placeFromHash("#screen=nonsense&step=1e9x&rank=--1&side=left&open=zzzz.zzzz.x&micro=abc&panel=<b>");
  assert.deepEqual(place, emptyPlace());
});

test("names are packed to what is new in them", () => {
  const names = Array.from({ length: 200 }, (_, layer) => `Module.layers.${layer}.Block.forward.0`);
  const packed = packNames(names);
  assert.ok(packed.length < 200 * 10, `${packed.length} letters`);
  assert.deepEqual(unpackNames(packed), names);
  // Too many for an address: the first ones stay.
  const many = Array.from({ length: 5000 }, (_, at) => `${at}.${"x".repeat(at % 40)}.${at * 7919}`);
  const kept = unpackNames(packNames(many));
  assert.ok(kept.length > 100 && kept.length < 5000);
  assert.deepEqual(kept, many.slice(0, kept.length));
});

test("boxes lie within their parents and beside each other, each once and in order", async () => {
  const tree = await hugeTree();
  await tree.open(tree.byName.get("n.3")!);
  await tree.open(tree.byName.get("n.3.4")!);
  await tree.open(tree.byName.get("n.60")!);
  const nodes = visible(tree);
  assert.equal(new Set(nodes.map(({ name }) => name)).size, nodes.length);
  assert.equal(nodes.length, 1 + HUGE * 4);
  for (const node of nodes) {
    if (!node.isOpen) continue;
    const outer = rectOf(node);
    let before: Rect | null = null;
    for (const child of node.children) {
      const inner = rectOf(child);
      assert.ok(inner.x >= outer.x && inner.y >= outer.y, `${child.name} begins outside`);
      assert.ok(inner.x + inner.width <= outer.x + outer.width, `${child.name} is too wide`);
      assert.ok(inner.y + inner.height <= outer.y + outer.height, `${child.name} is too high`);
      // Below the one before, or to its right.
      if (before)
        assert.ok(inner.y >= before.y + before.height || inner.x >= before.x + before.width, `${child.name} overlaps`);
      before = inner;
    }
  }
});

test("calls without insides stand five in a row, modules one below the other", async () => {
  const tree = await hugeTree();
  await tree.open(tree.byName.get("n.0")!);
  await tree.open(tree.byName.get("n.0.0")!);
  sizeOf(tree);
  const calls = tree.byName.get("n.0.0")!;
  assert.equal(calls.rows.length, HUGE / LEAVES_IN_ROW);
  assert.equal(new Set(calls.children.slice(0, LEAVES_IN_ROW).map(({ y }) => y)).size, 1);
  assert.equal(tree.byName.get("n.0")!.rows.length, HUGE);
});

test("only what is in view is visited, and what did not change is not measured again", async () => {
  const tree = await hugeTree();
  for (const name of ["n.0", "n.1", "n.2"]) await tree.open(tree.byName.get(name)!);
  const size = sizeOf(tree);
  const seen = visible(tree, { x: 0, y: size.height / 2, width: size.width, height: 200 });
  assert.ok(seen.length < 15, `${seen.length} boxes`);
  const still = tree.byName.get("n.2")!;
  assert.equal(still.isStale, false);
  tree.close(tree.byName.get("n.0")!);
  assert.equal(tree.root!.isStale, true);
  assert.equal(still.isStale, false);
  arrange(tree.root!);
  assert.ok(sizeOf(tree).height < size.height);
});

test("a point finds the innermost box", async () => {
  const tree = await hugeTree();
  await tree.open(tree.byName.get("n.5")!);
  sizeOf(tree);
  for (const name of ["n.5.7", "n.4", "n.5"]) {
    const { x, y, width } = rectOf(tree.byName.get(name)!);
    assert.equal(nodeAt(tree.root!, x + width / 2, y + 5)?.node.name, name);
  }
  assert.equal(nodeAt(tree.root!, -50, -50), null);
});

test("a node that is hidden is revealed by opening what is around it", async () => {
  const asked: string[] = [];
  const tree = await hugeTree(asked);
  const node = await tree.reveal("n.70.20.99");
  assert.equal(node?.name, "n.70.20.99");
  assert.deepEqual(tree.openNames(), ["n.70", "n.70.20"]);
  assert.deepEqual(asked, [" 0", "n.70 0", "n.70.20 0"]);
  // Closed by the reader, opened again without asking.
  tree.close(tree.byName.get("n.70")!);
  assert.deepEqual(tree.openNames(), []);
  await tree.reveal("n.70.20.98");
  assert.equal(asked.length, 3);
  assert.deepEqual(tree.openNames(), ["n.70", "n.70.20"]);
});

test("an address' open nodes are opened with one question, whatever their order", async () => {
  const tree = await hugeTree();
  await tree.openAll(["n.1.2", "n.1", "n.9"]);
  assert.deepEqual(tree.openNames(), ["n.1", "n.1.2", "n.9"]);
});

test("what is known later of the boxes in view is asked for again, with one question", async () => {
  const tree = await hugeTree();
  await tree.open(tree.byName.get("n.4")!);
  tree.byName.get("n.4.7")!.brief = { ...tree.byName.get("n.4.7")!.brief, tone: "plain" };
  await tree.refresh();
  assert.notEqual(tree.byName.get("n.4.7")!.brief.tone, "plain");
  assert.deepEqual(tree.openNames(), ["n.4"]);
});

test("opening all below ends where it becomes too much", async () => {
  const tree = await hugeTree();
  assert.equal(await tree.openBelow(tree.root!), false);
  const small = await hugeTree();
  assert.equal(await small.openBelow(small.byName.get("n.0") ?? small.root!), false);
  await small.reveal("n.1.1.1");
  small.closeBelow(small.byName.get("n.1")!);
  assert.ok(!small.openNames().some((name) => name.startsWith("n.1.")));
});

test("arrow keys follow what is seen", async () => {
  const tree = await hugeTree();
  await tree.open(tree.byName.get("n.0")!);
  const order: string[] = [];
  for (let at: TreeNode | null = tree.root; at; at = tree.next(at)) order.push(at.name);
  assert.deepEqual(
    order,
    visible(tree).map(({ name }) => name),
  );
  const back: string[] = [];
  for (let at: TreeNode | null = tree.byName.get(order.at(-1)!)!; at; at = tree.previous(at)) back.unshift(at.name);
  assert.deepEqual(back, order);
});

test("a parent with more children than a chunk asks for the rest when it is looked at", async () => {
  const total = 1300;
  const made = (offset: number, limit: number) =>
    Array.from({ length: Math.max(0, Math.min(limit, total - offset)) }, (_, at) => ({
      ...hugeChildren(ROOT, 0, 1).children[0],
      name: `c${offset + at}`,
      parent: ROOT,
    }));
  const tree = new SideTree(
    "target",
    {
      children: (_, offset, limit) =>
        Promise.resolve({ node: hugeChildren(null, 0, 0).node, children: made(offset, limit), total }),
      open: () => Promise.resolve({ opened: [] }),
      path: (node) => Promise.resolve([ROOT, node]),
    },
    () => undefined,
  );
  await tree.begin();
  assert.equal(tree.root!.children.length, 500);
  await Promise.all([tree.more(tree.root!), tree.more(tree.root!)]);
  assert.equal(tree.root!.children.length, 1000);
  assert.equal((await tree.reveal("c1299"))?.name, "c1299");
  assert.equal(tree.root!.children.length, total);
  assert.equal(tree.root!.hasMore, false);
});

test("frames of two stacks stand beside each other where they are the same", () => {
  const frame = (text: string, isUser = false) => ({ text, isUser });
  const lines = alignFrames(
    [frame("File /a/x.py, line 1"), frame("only here"), frame("File /a/z.py, line 3")],
    [frame("File /b/x.py, line 1"), frame("File /b/z.py, line 3"), frame("last")],
  );
  assert.deepEqual(
    lines.map(({ isSame, target, golden }) => [isSame, target?.text ?? null, golden?.text ?? null]),
    [
      [true, "File /a/x.py, line 1", "File /b/x.py, line 1"],
      [false, "only here", null],
      [true, "File /a/z.py, line 3", "File /b/z.py, line 3"],
      [false, null, "last"],
    ],
  );
  assert.deepEqual(
    userFirst([frame("a"), frame("b", true), frame("c"), frame("d", true)]).map(({ text }) => text),
    ["b", "d", "a", "c"],
  );
});

test("an index on the border of two ranges belongs to the upper one, and the last one is closed", () => {
  const { colours } = infoOf("x", 1, 1);
  assert.equal(rangeOf(0.2, colours)?.description, "some");
  assert.equal(rangeOf(0, colours)?.description, "small");
  assert.equal(rangeOf(1, colours)?.description, "large");
  assert.equal(rangeOf(null, colours), undefined);
  const md5 = [
    { hex: "#000000", range: [1, 1] as [number, number], description: "same" },
    { hex: "#ffffff", range: [0, 0] as [number, number], description: "different" },
  ];
  assert.equal(rangeOf(0, md5)?.description, "different");
  assert.equal(rangeOf(1, md5)?.description, "same");
});

test("ranges a reader types are held against the rules", () => {
  const made = (...ranges: [number, number][]) => ranges.map((range) => ({ hex: "#ffffff", range, description: "" }));
  assert.ok(rangesFit(made([0, 0.2], [0.2, 1])));
  assert.ok(!rangesFit(made([0, 0.5], [0.4, 1])));
  assert.ok(!rangesFit(made([0.5, 0.1])));
  assert.ok(!rangesFit(made([0, 1.5])));
  assert.ok(!rangesFit(made([0, 0.1234567])));
  assert.ok(!rangesFit(made([0, 0.1], [0.1, 0.2], [0.2, 0.3], [0.3, 0.4], [0.4, 0.5], [0.5, 0.6])));
  assert.ok(!rangesFit([]));
});

test("an exported picture holds names as text", () => {
  const pen = new SvgPen(100, 50);
  pen.text('<script>alert("x")</script>&\u0000', 1, 2, { size: 10, colour: "#000" });
  pen.rect(0, 0, 10, 10, { fill: "#fff", stroke: "#000", dash: [1, 2], radius: 3 });
  const svg = pen.toString();
  assert.ok(!svg.includes("<script"));
  assert.ok(svg.includes("&lt;script&gt;"));
  assert.equal(escaped("a<b"), "a&lt;b");
});

test("errors are placed by their logarithm, zero at the bottom and NaN at the top", () => {
  const scale = logScale([1e-6, 1e-2, 0, NaN, Infinity], 100, 0);
  assert.equal(scale.at(0), 100);
  assert.equal(scale.at(NaN), 0);
  assert.equal(scale.at(Infinity), 0);
  assert.ok(scale.at(1e-4) < scale.at(1e-6) && scale.at(1e-4) > scale.at(1e-2));
  assert.equal(numberText("NaN"), "NaN");
  assert.equal(numberText(null), "–");
  assert.equal(numberText(0.00001234), "1.23e-5");
});

test("commands are found by what was typed, the nearest first", () => {
  assert.ok(worth("First divergence", "first") > worth("Go to the first", "first"));
  assert.ok(worth("First divergence", "fdiv") > 0);
  assert.equal(worth("First divergence", "zzz"), 0);
});

test("graphs in memory answer like a server", () => {
  const answers = new HeldAnswers(infoOf("small", 2, 2), heldGraphs(2, 2));
  const spot = { step: 1, rank: 0, side: "target" as const, micro: -1 };
  assert.equal(answers.jump("first_divergence", 1, null).found?.node, CULPRIT);
  assert.equal(answers.jump("first_divergence", 0, null).found, null);
  const question = { kinds: ["introduced"], leaves: true, after: null, limit: 10 };
  assert.deepEqual(
    answers.findings(spot, question).findings.map(({ name }) => name),
    [CULPRIT],
  );
  assert.deepEqual(answers.path(spot, CULPRIT).slice(0, 2), [ROOT, "Module.layers.0.Block.forward.0"]);
  assert.ok(answers.children({ ...spot, micro: 1 }, null, 0, 100).total < answers.children(spot, null, 0, 100).total);
  const found = answers.search({
    q: "^functional\\.linear\\.5\\.",
    regex: true,
    matchCase: false,
    facets: {},
    limit: 100,
  });
  assert.equal(found.total, 8);
  assert.equal(found.groups.length, 4);
  const narrowed = answers.search({
    q: "linear",
    regex: false,
    matchCase: false,
    facets: { verdict: "introduced" },
    limit: 100,
  });
  assert.equal(narrowed.total, 2);
  assert.ok(narrowed.facets.find(({ name }) => name === "verdict")!.values.length > 1);
  const table = { q: "", tones: [], sort: "errorOut", descending: true };
  const rows = answers.pairs(spot, { ...table, offset: 0, limit: 500, node: LONELY_TARGET });
  assert.equal(rows.rows[0].errorOut, 4e-2);
  // What has no error comes last.
  assert.equal(rows.rows.at(-1)!.errorOut, null);
  assert.equal(rows.rows[rows.place!].name, LONELY_TARGET);
  assert.equal(answers.csv(spot, table).split("\n").length, rows.total + 1);
  assert.equal(answers.profile(1, 0).culprit, CULPRIT);
  const series = answers.series(CULPRIT, "target", "", "");
  assert.deepEqual(series.values, ["input.0", "output.0"]);
  assert.equal(series.points.length, 4);
  assert.ok(series.measures.includes("Max"));
});

test("findings of a range of the index: from its first number on, and with its last one if it is closed", () => {
  const of = (index: number | null, kind: string) => isOfKind(brief("a", "b", { index, partner: "a" }), [kind]);
  assert.ok(of(0.2, "index:0.2:0.6") && of(0.59, "index:0.2:0.6") && !of(0.6, "index:0.2:0.6"));
  assert.ok(of(1, "index:0.6:1:closed") && !of(1, "index:0.6:1") && of(1, "index:1:1"));
  assert.ok(!of(null, "index:0:1:closed") && !isOfKind(brief("a", "b", { index: 0.5 }), ["index:0:1:closed"]));
});

test("what an address does not say of a trend, or says of what is not there, is as usual", () => {
  const info = {
    metrics: [
      { name: "exp_avg", statistics: ["max", "norm"] },
      { name: "other", statistics: ["mean"] },
    ],
    tags: [],
    ranks: [3, 5],
    targets: 1,
  };
  const usual = { metric: "exp_avg", statistic: "norm", rank: 3, tags: "", q: "" };
  assert.deepEqual(questionOf(info, emptyPlace()), usual);
  assert.deepEqual(questionOf(info, { ...emptyPlace(), value: "gone", measure: "gone", rank: 4 }), usual);
  const said = { ...emptyPlace(), value: "other", measure: "max", rank: 5 };
  assert.deepEqual(questionOf(info, said), { ...usual, metric: "other", statistic: "mean", rank: 5 });
  assert.equal(questionOf({ ...info, metrics: [] }, emptyPlace()), null);
});
