// A server that answers the contract over graphs in memory, with the headers of the real one: what the front-end does is
// tested against it without a binary, and on graphs no binary makes in a moment.

import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";

import type { Changed, Item, NodeBrief } from "../../src/viewer/api";
import { HeldAnswers, type HeldGraph } from "../../src/viewer/sources/memory";
import { Refusal, type Spot } from "../../src/viewer/sources/source";
import {
  brief,
  catalogueOf,
  CULPRIT,
  heldGraphs,
  hugeChildren,
  hugePath,
  infoOf,
  itemOf,
  LONELY_GOLDEN,
  LONELY_TARGET,
  ROOT,
  timelineOf,
} from "./graphs";

const ASSETS = path.resolve("../crates/viewer/assets");
export const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'";

const STEPS = 2;
const RANKS = 3;

interface Edit {
  step: number;
  rank: number;
  target: string;
  golden: string;
  isMatch: boolean;
}

export interface Mock {
  address: string;
  asked: string[];
  // What the catalogue says.
  items: Item[];
  saved: number;
  configs: unknown[];
  // The next questions about a graph are answered "not yet".
  notYet: number;
  close(): void;
}

function items(): Item[] {
  const cells = (steps: number, ranks: number) =>
    Array.from({ length: steps * ranks }, (_, place) => {
      const [step, rank] = [Math.floor(place / ranks), place % ranks];
      const bad = step === 1 && rank === 0;
      return {
        step,
        rank,
        status: bad ? "diverged" : "within_tolerance",
        tone: bad ? ("bad" as const) : ("good" as const),
        culprit: bad ? CULPRIT : null,
      };
    });
  const answer = {
    schema: 1,
    command: "graph",
    status: "diverged",
    headline: `Diverged at ${CULPRIT}`,
    culprit: { name: CULPRIT, kind: "computes", direction: "forward", facts: [{ label: "Step", text: "1" }] },
    evidence: [],
    not_compared: [],
    next_step: "look at it",
    files: [],
  };
  const all = (count: number) => Array.from({ length: count }, (_, place) => place);
  return [
    itemOf("small", "graph", {
      answer,
      tone: "bad",
      steps: all(STEPS),
      ranks: all(RANKS),
      cells: cells(STEPS, RANKS),
      report: "r1",
    }),
    itemOf("wide", "graph", { answer, tone: "bad", steps: all(4), ranks: all(64), cells: cells(4, 64) }),
    itemOf("huge", "graph", { tone: "good" }),
    itemOf("raw", "dump", {}),
    itemOf("compared", "comparison", { answer: { ...answer, command: "compare" }, tone: "bad", report: "r1" }),
    itemOf("grads", "gradients", { tone: "warning" }),
    itemOf("keys", "keydata", { tone: "good" }),
    itemOf("trends", "trend", { steps: all(5), ranks: all(RANKS) }),
    itemOf("broken", "trend", { error: "file is not a database" }),
  ];
}

class State implements Pick<Mock, "saved" | "configs" | "notYet"> {
  saved = 0;
  configs: unknown[] = [];
  notYet = 0;
  readonly held: HeldGraph[] = heldGraphs(STEPS, RANKS);
  private done: Edit[] = [];
  private undone: Edit[] = [];
  private edition = 0;
  private isUnsaved = false;

  answers(): HeldAnswers {
    return new HeldAnswers(infoOf("small", STEPS, RANKS), this.held);
  }

  private find(edit: Pick<Edit, "step" | "rank">, side: "target" | "golden", name: string): NodeBrief | undefined {
    const held = this.held.find((one) => one.step === edit.step && one.rank === edit.rank && one.side === side);
    return held?.nodes.find((node) => node.name === name);
  }

  private set({ step, rank, target, golden }: Edit, on: boolean): void {
    for (const [side, name, other] of [
      ["target", target, golden],
      ["golden", golden, target],
    ] as const) {
      const node = this.find({ step, rank }, side, name);
      if (!node) continue;
      node.partner = on ? other : null;
      node.verdict = on ? "within_tolerance" : "unmatched";
      node.tone = on ? "good" : "unknown";
      node.modified = true;
    }
  }

  changed(text: string, pairs = 0): Changed {
    return {
      edition: this.edition,
      pairs,
      failed: 0,
      isUnsaved: this.isUnsaved,
      canUndo: this.done.length > 0,
      canRedo: this.undone.length > 0,
      text,
    };
  }

  edit(edit: Edit): Changed {
    this.set(edit, edit.isMatch);
    this.done.push(edit);
    this.undone = [];
    this.edition++;
    this.isUnsaved = true;
    return this.changed("", 1);
  }

  unmatch(step: number, rank: number, target: string): Changed {
    const golden = this.find({ step, rank }, "target", target)?.partner;
    if (!golden) throw new Refusal("this node has no partner", "");
    return this.edit({ step, rank, target, golden, isMatch: false });
  }

  undo(): Changed {
    const edit = this.done.pop();
    if (edit) {
      this.set(edit, !edit.isMatch);
      this.undone.push(edit);
      this.edition++;
    }
    return this.changed("undone");
  }

  redo(): Changed {
    const edit = this.undone.pop();
    if (edit) {
      this.set(edit, edit.isMatch);
      this.done.push(edit);
      this.edition++;
    }
    return this.changed("redone");
  }

  save(): Changed {
    this.saved++;
    this.isUnsaved = false;
    return this.changed("saved");
  }
}

function matrix() {
  const rows = ["layer.0.weight", "layer.1.weight", "layer.2.weight"];
  const columns = ["0", "1", "2", "3"];
  const cells = rows.flatMap((_, row) =>
    columns.map((_name, column) => {
      const number = 1 - (row * column) / 8;
      return {
        row,
        column,
        number,
        tone: number < 0.6 ? "bad" : "good",
        text: `${rows[row]}, step ${column}: ${number.toFixed(3)}`,
      };
    }),
  );
  return { rows, columns, cells, limit: 0.6 };
}

const TARGETS = ["0.mlp.weight", "0.mlp.bias", "1.mlp.weight", "<b>odd</b>"];

// Targets with a number for each step and rank; the last one diverges at the end.
function trend(what: string, query: URLSearchParams): unknown {
  const steps = Array.from({ length: 5 }, (_, step) => step);
  const number = (target: number, step: number, rank: number) =>
    target === 3 && step === 4
      ? "Infinity"
      : target + step / 10 + rank / 100 + (query.get("statistic") === "max" ? 10 : 0);
  if (what === "")
    return {
      metrics: [
        { name: "exp_avg", statistics: ["norm", "max"] },
        { name: "other", statistics: ["mean"] },
      ],
      tags: [{ name: "weight", category: "module", metric: "exp_avg" }],
      ranks: [0, 1, 2],
      targets: TARGETS.length,
    };
  if (what === "/lines") {
    const target = Number(query.get("target"));
    const points = [0, 1, 2].flatMap((rank) =>
      steps.map((step) => ({ step, rank, number: number(target, step, rank) })),
    );
    return { node: TARGETS[target], values: [], measures: [], points };
  }
  const wanted = TARGETS.map((label, id) => ({ id, label })).filter(
    ({ label }) => label.includes(query.get("q") ?? "") && label.includes(query.get("tags") ?? ""),
  );
  const rank = Number(query.get("rank"));
  return {
    rows: wanted,
    columns: steps,
    cells: wanted.flatMap(({ id }, row) => steps.map((step) => [row, step, number(id, step, rank)])),
    isCut: false,
    every: 1,
  };
}

export async function startMock(): Promise<Mock> {
  const state = new State();
  const asked: string[] = [];
  const known = items();

  const graph = (id: string, what: string, query: URLSearchParams, body: Record<string, unknown>): unknown => {
    const number = (key: string) => Number(query.get(key) ?? body[key] ?? 0);
    const spot: Spot = {
      step: number("step"),
      rank: number("rank"),
      micro: Number(query.get("micro") ?? body.micro ?? -1),
      side: (query.get("side") ?? body.side ?? "target") === "golden" ? "golden" : "target",
    };
    const text = (key: string) => query.get(key) ?? "";
    const node = query.get("node");
    if (id === "huge") return huge(what, query, body);
    if (id === "wide") id = "small";
    const answers = state.answers();
    const table = {
      q: text("q"),
      tones: text("tones").split(",").filter(Boolean),
      sort: text("sort") || "order",
      descending: text("descending") === "1",
    };
    switch (what) {
      case "":
        return id === "raw"
          ? infoOf("raw", 1, 1, { kind: "build", hasVerdicts: false, microSteps: 1, answers: [], writable: false })
          : answers.info;
      case "/children":
        return answers.children(spot, node, number("offset"), number("limit"));
      case "/open":
        return { opened: answers.opened(spot, body.nodes as string[]) };
      case "/path":
        return { path: answers.path(spot, node ?? ROOT) };
      case "/node": {
        const detail = answers.detail(spot, node ?? ROOT);
        return { ...detail, brief: { ...detail.brief } };
      }
      case "/findings": {
        const after = query.get("after");
        return answers.findings(spot, {
          kinds: text("kinds").split(","),
          leaves: text("leaves") === "1",
          after: after === null ? null : Number(after),
          limit: number("limit"),
        });
      }
      case "/jump":
        return answers.jump(text("to") as "first_nan", number("step"), query.has("rank") ? number("rank") : null);
      case "/search": {
        const facets: Record<string, string> = {};
        for (const name of ["side", "type", "verdict", "overflow", "dtype"])
          if (query.get(name)) facets[name] = text(name);
        return answers.search({
          q: text("q"),
          regex: text("regex") === "1",
          matchCase: text("case") === "1",
          facets,
          limit: number("limit"),
        });
      }
      case "/pairs":
        return answers.pairs(spot, { ...table, offset: number("offset"), limit: number("limit"), node });
      case "/pairs.csv":
        return answers.csv(spot, table);
      case "/profile":
        return answers.profile(number("step"), number("rank"));
      case "/series":
        return answers.series(node ?? "", spot.side, text("value"), text("measure"));
      case "/timeline":
        return timelineOf(RANKS);
      case "/suggestions": {
        const other = spot.side === "target" ? LONELY_GOLDEN : LONELY_TARGET;
        return { suggestions: [{ node: brief(other, "Apis_Between_Modules.0"), reason: "same class and shape" }] };
      }
      case "/edits":
        return state.changed("");
      case "/match":
        return state.edit({ ...(body as unknown as Edit), isMatch: true });
      case "/unmatch":
        return state.unmatch(number("step"), number("rank"), body.target as string);
      case "/undo":
        return state.undo();
      case "/redo":
        return state.redo();
      case "/save":
        return state.save();
      case "/config/save":
        return { path: "small.vis.config" };
      case "/config/apply":
        state.configs.push(body.pairs);
        return state.changed("applied", 1);
      default:
        throw new Refusal(`no such question: ${what}`, "");
    }
  };

  const huge = (what: string, query: URLSearchParams, body: Record<string, unknown>): unknown => {
    const node = query.get("node");
    switch (what) {
      case "":
        return infoOf("huge", 1, 1, { kind: "build", microSteps: 1, nodes: 1010101, answers: [] });
      case "/children":
        return hugeChildren(node, Number(query.get("offset")), Number(query.get("limit")));
      case "/open":
        return { opened: (body.nodes as string[]).map((name) => hugeChildren(name, 0, 500)) };
      case "/path":
        return { path: hugePath(node ?? ROOT) };
      case "/node":
        return {
          brief: hugeChildren(node, 0, 0).node,
          partner: null,
          values: [],
          stacks: [],
          mergeInfo: [],
          mergedShapes: [],
          peers: [],
          dataDir: null,
        };
      case "/findings":
        return { total: 0, findings: [] };
      case "/pairs":
        return { total: 0, rows: [] };
      default:
        throw new Refusal(`no such question: ${what}`, "");
    }
  };

  const mock: Mock = {
    address: "",
    asked,
    items: known,
    get saved() {
      return state.saved;
    },
    get configs() {
      return state.configs;
    },
    get notYet() {
      return state.notYet;
    },
    set notYet(count: number) {
      state.notYet = count;
    },
    close: () => server.close(),
  };

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://localhost");
    asked.push(`${request.method ?? ""} ${url.pathname}${url.search}`);
    const send = (status: number, type: string, body: string | Buffer, headers: Record<string, string> = {}) =>
      response.writeHead(status, { "content-type": type, "content-security-policy": POLICY, ...headers }).end(body);
    const file = { "/": "index.html", "/viewer.js": "viewer.js", "/viewer.css": "viewer.css" }[url.pathname];
    if (file) {
      const type = { html: "text/html", js: "text/javascript", css: "text/css" }[file.split(".")[1]] ?? "";
      send(200, `${type}; charset=utf-8`, readFileSync(path.join(ASSETS, file)));
      return;
    }
    if (url.pathname === "/favicon.ico") {
      response.writeHead(204).end();
      return;
    }
    if (url.pathname.startsWith("/report/")) {
      send(200, "text/html", "<!doctype html><title>report</title><h1>The report</h1>", {
        "content-security-policy": "sandbox allow-scripts",
      });
      return;
    }
    let raw = "";
    for await (const chunk of request) raw += String(chunk);
    try {
      const body = raw ? (JSON.parse(raw) as Record<string, unknown>) : {};
      const trends = /^\/api\/trend\/([^/]+)(.*)$/.exec(url.pathname);
      const parts = /^\/api\/graph\/([^/]+)(.*)$/.exec(url.pathname);
      let said: unknown;
      if (url.pathname === "/api/catalogue") said = catalogueOf(known);
      else if (parts && state.notYet > 0) {
        state.notYet--;
        send(
          503,
          "application/json",
          JSON.stringify({ error: "it is being prepared", hint: null, preparing: { done: 1, total: 4 } }),
        );
        return;
      } else if (parts) said = graph(decodeURIComponent(parts[1]), parts[2], url.searchParams, body);
      else if (trends) {
        if (trends[1] === "broken") throw new Refusal("file is not a database", "make it again");
        said = trend(trends[2], url.searchParams);
      } else if (/^\/api\/(gradients|keydata)\//.test(url.pathname)) said = matrix();
      else if (/^\/api\/item\//.test(url.pathname))
        said = {
          tables: [
            {
              name: "findings",
              headers: ["name", "error"],
              rows: [["<b>not bold</b>", 0.5]],
              tones: ["bad"],
              isCut: false,
            },
          ],
        };
      else throw new Refusal("nothing here", "look elsewhere");
      if (typeof said === "string") send(200, "text/csv", said);
      else send(200, "application/json", JSON.stringify(said));
    } catch (error) {
      const hint = error instanceof Refusal ? error.hint : "";
      send(400, "application/json", JSON.stringify({ error: (error as Error).message, hint }));
    }
  }

  const server: Server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  mock.address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return mock;
}
