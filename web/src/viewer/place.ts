// Where the reader is: everything that stands in the address, and how it is written there. Pure; nothing here looks at
// the browser. What is as usual is left out, so that links stay short.

import type { SideName } from "./api";

export const SCREENS = ["graph", "table", "pictures", "report", "tables", "convert"] as const;
export type Screen = (typeof SCREENS)[number];
export const COLOUR_MODES = ["verdict", "index", "overflow"] as const;
export type ColourMode = (typeof COLOUR_MODES)[number];
export const STATISTICS = ["Max", "Min", "Mean", "Norm"] as const;
export type Statistic = (typeof STATISTICS)[number];
export const PANELS = ["values", "stacks", "about", "pairs", "none"] as const;
export type PanelName = (typeof PANELS)[number];
export const LEFT_PANELS = ["findings", "search", "match", "none"] as const;
export type LeftPanel = (typeof LEFT_PANELS)[number];
export const PICTURES = ["profile", "matrix", "series", "timeline"] as const;
export type PictureName = (typeof PICTURES)[number];

export interface SearchQuery {
  q: string;
  regex: boolean;
  matchCase: boolean;
  // By the name of the facet.
  facets: Record<string, string>;
}

export interface TableQuery {
  q: string;
  tones: string[];
  sort: string;
  descending: boolean;
}

export interface Place {
  file: string | null;
  screen: Screen;
  step: number | null;
  rank: number | null;
  // -1: all
  micro: number;
  side: SideName;
  node: string | null;
  colour: ColourMode | null;
  // By which nodes are judged; none: as the file says.
  stats: Statistic[];
  kinds: string[];
  leaves: boolean;
  panel: PanelName;
  left: LeftPanel | null;
  picture: PictureName;
  value: string;
  measure: string;
  search: SearchQuery;
  table: TableQuery;
  open: Record<SideName, string[]>;
}

export const USUAL_KINDS = ["introduced", "inherited", "unmatched", "warning", "error", "overflow"];

export function emptyPlace(): Place {
  return {
    file: null,
    screen: "graph",
    step: null,
    rank: null,
    micro: -1,
    side: "target",
    node: null,
    colour: null,
    stats: [],
    kinds: USUAL_KINDS,
    leaves: false,
    panel: "values",
    left: null,
    picture: "profile",
    value: "",
    measure: "",
    search: { q: "", regex: false, matchCase: false, facets: {} },
    table: { q: "", tones: [], sort: "order", descending: false },
    open: { target: [], golden: [] },
  };
}

// Addresses longer than this are cut by some programs they are sent with.
const LONGEST_OPEN = 6000;

// Names, each told by what it shares with the one before: how many letters at its beginning, how many at its end, and
// what is between. Names of neighbours differ by a number in their middle.
export function packNames(names: readonly string[]): string {
  let previous = "";
  let packed = "";
  for (const name of names) {
    const most = Math.min(name.length, previous.length);
    let head = 0;
    while (head < most && name[head] === previous[head]) head++;
    let tail = 0;
    while (tail < most - head && name[name.length - 1 - tail] === previous[previous.length - 1 - tail]) tail++;
    const middle = name.slice(head, name.length - tail).replace(/[~!]/g, (sign) => `!${sign === "~" ? "t" : "e"}`);
    const piece = `${packed ? "~" : ""}${head.toString(36)}.${tail.toString(36)}.${middle}`;
    if (packed.length + piece.length > LONGEST_OPEN) break;
    packed += piece;
    previous = name;
  }
  return packed;
}

export function unpackNames(packed: string): string[] {
  if (!packed) return [];
  const names: string[] = [];
  let previous = "";
  for (const piece of packed.split("~")) {
    const parts = /^([0-9a-z]{1,4})\.([0-9a-z]{1,4})\.([^]*)$/.exec(piece);
    if (!parts) return names;
    const head = parseInt(parts[1], 36);
    const tail = parseInt(parts[2], 36);
    if (head + tail > previous.length) return names;
    const middle = parts[3].replace(/!([te])/g, (_, sign) => (sign === "t" ? "~" : "!"));
    previous = previous.slice(0, head) + middle + (tail ? previous.slice(-tail) : "");
    names.push(previous);
  }
  return names;
}

export function placeToHash(place: Place): string {
  const usual = emptyPlace();
  const said = new URLSearchParams();
  const say = (key: string, value: string | number | null, usually: string | number | null) => {
    if (value !== null && value !== usually) said.set(key, String(value));
  };
  say("file", place.file, null);
  say("screen", place.screen, usual.screen);
  say("step", place.step, null);
  say("rank", place.rank, null);
  say("micro", place.micro, -1);
  say("side", place.side, usual.side);
  say("node", place.node, null);
  say("colour", place.colour, null);
  say("stats", place.stats.join(","), "");
  say("kinds", place.kinds.join(","), USUAL_KINDS.join(","));
  say("leaves", place.leaves ? 1 : 0, 0);
  say("panel", place.panel, usual.panel);
  say("left", place.left, null);
  say("picture", place.picture, usual.picture);
  say("value", place.value, "");
  say("measure", place.measure, "");
  say("q", place.search.q, "");
  say("regex", place.search.regex ? 1 : 0, 0);
  say("case", place.search.matchCase ? 1 : 0, 0);
  for (const [facet, value] of Object.entries(place.search.facets)) say(`by-${facet}`, value, "");
  say("rows", place.table.q, "");
  say("tones", place.table.tones.join(","), "");
  say("sort", place.table.sort, usual.table.sort);
  say("descending", place.table.descending ? 1 : 0, 0);
  say("open", packNames(place.open.target), "");
  say("open-golden", packNames(place.open.golden), "");
  return said.toString();
}

export function placeFromHash(hash: string): Place {
  const said = new URLSearchParams(hash.replace(/^#/, ""));
  const place = emptyPlace();
  const one = <T extends string, U>(key: string, known: readonly T[], usual: U): T | U =>
    known.find((name) => name === said.get(key)) ?? usual;
  const whole = (key: string): number | null => {
    const text = said.get(key);
    return text !== null && /^-?\d{1,15}$/.test(text) ? Number(text) : null;
  };
  const list = (key: string): string[] | undefined => {
    const text = said.get(key);
    return text === null ? undefined : text.split(",").filter((part) => part);
  };
  place.file = said.get("file");
  place.screen = one("screen", SCREENS, place.screen);
  place.step = whole("step");
  place.rank = whole("rank");
  place.micro = whole("micro") ?? -1;
  place.side = one("side", ["target", "golden"], place.side);
  place.node = said.get("node");
  place.colour = one("colour", COLOUR_MODES, null);
  place.stats = STATISTICS.filter((name) => list("stats")?.includes(name));
  place.kinds = list("kinds") ?? place.kinds;
  place.leaves = said.get("leaves") === "1";
  place.panel = one("panel", PANELS, place.panel);
  place.left = one("left", LEFT_PANELS, null);
  place.picture = one("picture", PICTURES, place.picture);
  place.value = said.get("value") ?? "";
  place.measure = said.get("measure") ?? "";
  place.search = {
    q: said.get("q") ?? "",
    regex: said.get("regex") === "1",
    matchCase: said.get("case") === "1",
    facets: {},
  };
  for (const [key, value] of said) if (key.startsWith("by-")) place.search.facets[key.slice(3)] = value;
  place.table = {
    q: said.get("rows") ?? "",
    tones: list("tones") ?? [],
    sort: said.get("sort") ?? place.table.sort,
    descending: said.get("descending") === "1",
  };
  place.open = {
    target: unpackNames(said.get("open") ?? ""),
    golden: unpackNames(said.get("open-golden") ?? ""),
  };
  return place;
}
