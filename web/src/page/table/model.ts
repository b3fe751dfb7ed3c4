// Tables without a page: reading blocks, parsing numbers, sorting, filtering, csv. Nothing here touches the document.

import type { Tone } from "../../parts/tones";
import type { TableDescription } from "../views";

// A cell. Whole numbers beyond 2^53 and what is not finite come as text.
export type Value = string | number | null;

// A column of a block: its values, or distinct ones with an index per row, or one for all rows.
export type BlockColumn = Value[] | { v: Value[]; i?: number[] };

// A stretch of rows as it is written: their number, a digit of `ROW_TONES` each where any has a tone, and the columns.
export interface RowBlock {
  n: number;
  f?: string;
  c: BlockColumn[];
}

export const ROW_TONES: readonly Tone[] = ["plain", "warning", "bad", "unknown"];

export interface Column {
  values: Value[];
  index: Int32Array;
  // Made when it is first sorted by.
  ranks?: Int32Array;
}

interface ColumnInMaking extends Column {
  known: Map<Value, number>;
}

export interface Table extends TableDescription {
  columns: Column[];
  // Per row a place in `ROW_TONES`.
  tones: Uint8Array;
  widths: number[];
  numeric: boolean[];
}

export type Direction = 1 | 0 | -1;

export interface Filters {
  search: string;
  perColumn: Map<number, string>;
  // Per place in `ROW_TONES` whether it is shown.
  tones: boolean[];
}

// Joins blocks to columns of distinct values with an index per row.
export function readColumns(
  columnCount: number,
  rowCount: number,
  blocks: Iterable<RowBlock>,
): { columns: Column[]; tones: Uint8Array } {
  const columns = Array.from({ length: columnCount }, (): ColumnInMaking => ({
    values: [],
    index: new Int32Array(rowCount),
    known: new Map(),
  }));
  const tones = new Uint8Array(rowCount);
  let start = 0;
  for (const block of blocks) {
    if (block.f) {
      for (let row = 0; row < block.n; row++) tones[start + row] = block.f.charCodeAt(row) - 48;
    }
    columns.forEach((column, number) => addBlock(column, block.c[number], start, block.n));
    start += block.n;
  }
  return { columns: columns.map(({ values, index }) => ({ values, index })), tones };
}

export function addBlock(column: ColumnInMaking, data: BlockColumn, start: number, count: number): void {
  if (Array.isArray(data)) {
    // Hardly anything repeats: looking values up would cost more than it saves.
    const offset = column.values.length;
    for (let row = 0; row < count; row++) {
      column.values.push(data[row]);
      column.index[start + row] = offset + row;
    }
    return;
  }
  const numbers = data.v.map((value) => {
    let number = column.known.get(value);
    if (number === undefined) {
      number = column.values.length;
      column.values.push(value);
      column.known.set(value, number);
    }
    return number;
  });
  for (let row = 0; row < count; row++) {
    column.index[start + row] = numbers[data.i ? data.i[row] : 0];
  }
}

export function valueAt(column: Column, row: number): Value {
  return column.values[column.index[row]];
}

export function textOf(value: Value): string {
  return value === null ? "" : String(value);
}

// A value in the grid, on one line: numbers to seven digits, more of them next to 1, where a cosine must not look perfect.
export function shortText(value: Value): string {
  if (typeof value !== "number") return textOf(value).replace(/[\r\n]+/g, " ⏎ ");
  if (Number.isInteger(value)) return String(value);
  const rounded = Number(value.toPrecision(7));
  return String(rounded === 1 ? Number(value.toPrecision(12)) : rounded);
}

// A call stack as lines, where it is written as a Python list of strings; other text as it is.
export function stackText(value: Value): string {
  const text = textOf(value);
  if (!/^\[['"][^]*['"]\]$/.test(text)) return text;
  const escapes: Record<string, string> = { n: "\n", t: "\t", "'": "'", '"': '"', "\\": "\\" };
  const items: string[] = [];
  const pattern = /\s*(['"])((?:\\[^]|(?!\1)[^\\])*)\1\s*(,|$)/y;
  const inner = text.slice(1, -1);
  while (pattern.lastIndex < inner.length) {
    const found = pattern.exec(inner);
    if (!found) return text;
    items.push(found[2].replace(/\\([^])/g, (all: string, letter: string) => escapes[letter] ?? all));
  }
  return items.join("\n");
}

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?%?$/i;
const MISSING = new Set(["", "n/a", "na", "nan", "none", "null", "-", "unsupported", "*"]);

// The number a value stands for, or null. Percentages and infinities count.
export function numberOf(value: Value): number | null {
  if (typeof value === "number") return value;
  if (typeof value !== "string") return null;
  const text = value.trim();
  if (NUMBER.test(text)) {
    return text.endsWith("%") ? parseFloat(text) / 100 : parseFloat(text);
  }
  const infinity = /^([+-]?)inf(inity)?$/i.exec(text);
  if (infinity) return infinity[1] === "-" ? -Infinity : Infinity;
  return null;
}

export function isMissing(value: Value): boolean {
  return value === null || (typeof value === "string" && MISSING.has(value.trim().toLowerCase()));
}

// Text in an order people expect: numbers within it count as numbers.
export function textKey(text: string): string {
  return text.toLowerCase().replace(/\d+/g, (digits) => digits.padStart(10, "0"));
}

// A rank per distinct value: numbers first, then text; what is missing has none (-1) and comes last either way.
export function ranks(values: readonly Value[]): Int32Array {
  const entries: { number: number; key: string | number; kind: 0 | 1 }[] = [];
  const result = new Int32Array(values.length).fill(-1);
  values.forEach((value, number) => {
    if (isMissing(value)) return;
    const parsed = numberOf(value);
    entries.push(parsed === null ? { number, key: textKey(textOf(value)), kind: 1 } : { number, key: parsed, kind: 0 });
  });
  entries.sort((a, b) => a.kind - b.kind || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  let rank = -1;
  let last: (typeof entries)[number] | null = null;
  for (const entry of entries) {
    if (last === null || last.kind !== entry.kind || last.key !== entry.key) rank++;
    result[entry.number] = rank;
    last = entry;
  }
  return result;
}

// Rows in the order of a column; direction 1 is upwards, -1 downwards, 0 as they were. Equal rows keep their order.
export function sortRows(rows: Int32Array, column: Column | undefined, direction: Direction): Int32Array {
  if (!direction || !column) return rows;
  const rank = (column.ranks ??= ranks(column.values));
  const sorted = Array.from(rows);
  sorted.sort((a, b) => {
    const left = rank[column.index[a]];
    const right = rank[column.index[b]];
    if (left === right) return a - b;
    if (left < 0) return 1;
    if (right < 0) return -1;
    return (left - right) * direction;
  });
  return Int32Array.from(sorted);
}

// A test for values from what was typed: `>1`, `<=2`, `=x`, `!x`, or text to be found.
export function valueTest(typed: string): (value: Value) => boolean {
  const query = typed.trim();
  const comparison = /^(>=|<=|>|<)\s*(.+)$/.exec(query);
  if (comparison) {
    const limit = numberOf(comparison[2]);
    if (limit !== null) {
      const compare = {
        ">": (number: number) => number > limit,
        "<": (number: number) => number < limit,
        ">=": (number: number) => number >= limit,
        "<=": (number: number) => number <= limit,
      }[comparison[1] as ">" | "<" | ">=" | "<="];
      return (value) => {
        const number = numberOf(value);
        return number !== null && compare(number);
      };
    }
  }
  if (query.length > 1 && query[0] === "=") {
    const wanted = query.slice(1).trim().toLowerCase();
    const number = numberOf(wanted);
    return (value) => textOf(value).trim().toLowerCase() === wanted || (number !== null && numberOf(value) === number);
  }
  if (query.length > 1 && query[0] === "!") {
    const unwanted = query.slice(1).trim().toLowerCase();
    return (value) => !textOf(value).toLowerCase().includes(unwanted);
  }
  const wanted = query.toLowerCase();
  // Digits of a number are looked at only where they can match: that saves writing out millions of them.
  const numeric = /^[\d.e+-]+$/.test(wanted);
  return (value) =>
    typeof value === "number"
      ? numeric && String(value).includes(wanted)
      : value !== null && value.toLowerCase().includes(wanted);
}

// Which distinct values pass, one byte each.
export function passing(column: Column, test: (value: Value) => boolean): Uint8Array {
  const result = new Uint8Array(column.values.length);
  for (let number = 0; number < result.length; number++) result[number] = test(column.values[number]) ? 1 : 0;
  return result;
}

// Rows that pass: `search` in any column, `perColumn` (number of column to text) each in its own, `tones` by colour.
export function filterRows(table: Pick<Table, "columns" | "tones">, { search, perColumn, tones }: Filters): Int32Array {
  const count = table.tones.length;
  let keep = new Uint8Array(count).fill(1);
  if (search.trim()) {
    const query = search.trim().toLowerCase();
    const test = valueTest(query);
    keep = new Uint8Array(count);
    for (const column of table.columns) {
      const pass = passing(column, test);
      if (!pass.includes(1)) continue;
      for (let row = 0; row < count; row++) keep[row] |= pass[column.index[row]];
    }
  }
  for (const [number, typed] of perColumn) {
    const column = table.columns[number];
    if (!typed.trim()) continue;
    const pass = passing(column, valueTest(typed));
    for (let row = 0; row < count; row++) keep[row] &= pass[column.index[row]];
  }
  if (!tones.every(Boolean)) {
    for (let row = 0; row < count; row++) if (!tones[table.tones[row]]) keep[row] = 0;
  }
  let kept = 0;
  for (let row = 0; row < count; row++) kept += keep[row];
  const rows = new Int32Array(kept);
  for (let row = 0, at = 0; row < count; row++) if (keep[row]) rows[at++] = row;
  return rows;
}

// A cell of csv: quoted where it must be, and never a formula.
export function csvCell(value: Value): string {
  let text = textOf(value);
  if (/^[=+\-@＝＋－＠\t\r]/.test(text) && numberOf(text) === null) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

export function csvOf(
  table: Pick<Table, "columns" | "headers">,
  rows: Iterable<number>,
  columns: readonly number[],
): string {
  const lines = [columns.map((number) => csvCell(table.headers[number])).join(",")];
  for (const row of rows) {
    lines.push(columns.map((number) => csvCell(valueAt(table.columns[number], row))).join(","));
  }
  return `${lines.join("\n")}\n`;
}

// Widths in characters from some of the values, and whether most of them are numbers.
export function measure(header: string, column: Column): { chars: number; numeric: boolean } {
  const step = Math.max(1, Math.floor(column.values.length / 200));
  const lengths: number[] = [];
  let numbers = 0;
  let present = 0;
  for (let at = 0; at < column.values.length; at += step) {
    const value = column.values[at];
    lengths.push(displayLength(shortText(value)));
    if (!isMissing(value)) {
      present++;
      if (numberOf(value) !== null) numbers++;
    }
  }
  lengths.sort((a, b) => a - b);
  const numeric = numbers * 2 > present;
  // A few long texts may be cut, numbers should not be.
  const usual = lengths.length ? lengths[Math.floor((lengths.length - 1) * (numeric ? 1 : 0.95))] : 0;
  return { chars: Math.min(48, Math.max(displayLength(header) + 3, usual, 5)), numeric };
}

// Wide characters count twice.
export function displayLength(text: string): number {
  let length = 0;
  for (const character of text.slice(0, 64)) length += character.codePointAt(0)! > 0x2e7f ? 2 : 1;
  return length;
}
