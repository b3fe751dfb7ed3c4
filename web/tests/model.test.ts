import assert from "node:assert/strict";
import { test } from "node:test";

import { rangeOf, thinned } from "../src/page/curves/chart";
import {
  csvOf,
  type Filters,
  filterRows,
  numberOf,
  readColumns,
  shortText,
  sortRows,
  stackText,
  type Value,
  valueTest,
} from "../src/page/table/model";
import { chainOf, firstWindow, readTimeline, shortened, withinTime } from "../src/parts/timeline/lanes";
import { niceTicks } from "../src/parts/ticks";

const filters = (some: Partial<Filters>): Filters => ({
  search: "",
  perColumn: new Map(),
  tones: [true, true, true, true],
  ...some,
});

const twoBlocks = () =>
  readColumns(2, 5, [
    { n: 3, f: "012", c: [["b", "a", "c"], { v: [1], i: undefined }] },
    {
      n: 2,
      c: [
        { v: ["a", "d"], i: [1, 0] },
        { v: [2.5, "nan"], i: [0, 1] },
      ],
    },
  ]);

test("blocks become columns", () => {
  const { columns, tones } = twoBlocks();
  const values = columns.map(({ values, index }) => Array.from(index, (at) => values[at]));
  assert.deepEqual(values, [
    ["b", "a", "c", "d", "a"],
    [1, 1, 1, 2.5, "nan"],
  ]);
  assert.deepEqual(Array.from(tones), [0, 1, 2, 0, 0]);
});

test("rows are sorted stably, numbers before text, missing ones last either way", () => {
  const { columns } = twoBlocks();
  const all = Int32Array.from([0, 1, 2, 3, 4]);
  assert.deepEqual(Array.from(sortRows(all, columns[0], 1)), [1, 4, 0, 2, 3]);
  assert.deepEqual(Array.from(sortRows(all, columns[1], -1)), [3, 0, 1, 2, 4]);
  assert.deepEqual(Array.from(sortRows(all, undefined, 1)), [0, 1, 2, 3, 4]);
  const names = readColumns(1, 3, [{ n: 3, c: [["layer.10", "layer.9", "Layer.1"]] }]).columns[0];
  assert.deepEqual(Array.from(sortRows(Int32Array.from([0, 1, 2]), names, 1)), [2, 1, 0]);
});

test("filters are text, comparisons and colours", () => {
  const table = twoBlocks();
  const rows = (some: Partial<Filters>) => Array.from(filterRows(table, filters(some)));
  assert.deepEqual(rows({}), [0, 1, 2, 3, 4]);
  assert.deepEqual(rows({ search: "A" }), [1, 4]);
  assert.deepEqual(rows({ perColumn: new Map([[1, ">1"]]) }), [3]);
  assert.deepEqual(rows({ perColumn: new Map([[0, "!a"]]) }), [0, 2, 3]);
  assert.deepEqual(rows({ tones: [false, true, true, true] }), [1, 2]);
  const passes = (typed: string, value: Value) => valueTest(typed)(value);
  assert.ok(passes(">=50%", "0.5") && passes("<1", "-inf") && passes("=1.0", 1) && !passes("> 1", "none"));
});

test("numbers, stacks and csv", () => {
  assert.deepEqual(["1e-3", "12%", "-Infinity", "1.2.3", ""].map(numberOf), [0.001, 0.12, -Infinity, null, null]);
  assert.equal(shortText(0.99999999), "0.99999999");
  assert.equal(shortText("two\nlines"), "two ⏎ lines");
  assert.equal(stackText(`['File "a.py", line 1', "it\\'s"]`), 'File "a.py", line 1\nit\'s');
  assert.equal(stackText("['broken"), "['broken");
  const { columns } = readColumns(2, 2, [
    {
      n: 2,
      c: [
        ["=1+1", "-1"],
        ['say "a,b"', null],
      ],
    },
  ]);
  const csv = csvOf({ headers: ["x", "y"], columns }, [0, 1], [0, 1]);
  assert.equal(csv, `x,y\n'=1+1,"say ""a,b"""\n-1,\n`);
});

test("axes and curves", () => {
  assert.deepEqual(niceTicks(0, 1, 4, false), [0, 0.25, 0.5, 0.75, 1]);
  assert.deepEqual(niceTicks(3, 3, 4, true), []);
  const range = rangeOf([{ values: [0.2, null, "inf", 0.8], limits: [[0, 3, 0.9]] }]);
  assert.ok(range.low < 0.2 && range.high > 0.9 && range.high < 1);
  const values = Array.from({ length: 10_000 }, (_, at) => (at === 5000 ? 7 : 0));
  const kept = thinned(
    values,
    values.map((_, at) => at / 100),
    100,
  );
  assert.ok(kept.length < 500 && kept.includes(5000));
});

test("a chain leads both ways, and no window leaves time", () => {
  const timeline = readTimeline({
    name: "t",
    count: 3,
    note: "",
    lanes: [
      [
        "a",
        10,
        "",
        [],
        [
          [9, "bad", "late", "", 0],
          [1, "bad", "early", "", 1],
        ],
      ],
      ["b", 20, "", [], [[5, "bad", "middle", "", 0]]],
    ],
    links: [
      [0, 1, 1, 0, "bad", ""],
      [1, 0, 0, 0, "bad", ""],
    ],
    legend: [],
  });
  const middle = timeline.lanes[1].marks[0];
  assert.deepEqual(Array.from(chainOf(middle).marks, ({ label }) => label).sort(), ["early", "late", "middle"]);
  assert.deepEqual(
    timeline.lanes[0].marks.map(({ label }) => label),
    ["early", "late"],
  );
  const { from, to } = withinTime({ from: -100, to: 1000 }, timeline.end);
  assert.ok(from >= -1 && to <= 21 && firstWindow(timeline).to <= 21);
  assert.equal(shortened("a very long name of a layer", 11), "a ver…layer");
});
