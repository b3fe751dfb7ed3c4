// `msprobe view` itself: started over a folder of results that the binary made, and ended after the tests.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { cpSync, mkdirSync } from "node:fs";
import path from "node:path";

import type { Catalogue, Item } from "../../src/viewer/api";
import { binary, golden, scratch } from "../browser";

export interface Served {
  address: string;
  items: Item[];
  close(): Promise<void>;
}

// Exit codes tell what was found, so that they say nothing here; what is missing is missed by the tests.
function run(...args: string[]): void {
  const { error, signal } = spawnSync(binary(), args, { encoding: "utf8" });
  assert.ok(!error && !signal, `msprobe ${args.join(" ")}: ${String(error ?? signal)}`);
}

// A folder with something of every kind.
export function madeResults(): string {
  const folder = path.join(scratch(), "results");
  const into = (name: string) => path.join(folder, name);
  mkdirSync(folder);
  const sides = (name: string) => [
    "-tp",
    golden("graph", name, "npu_dump"),
    "-gp",
    golden("graph", name, "bench_dump"),
  ];
  run("graph_visualize", ...sides("multi_rank_distributed_compare"), "-o", into("ranks"), "-oc");
  run("graph_visualize", ...sides("visdb_verdicts"), "-o", into("verdicts"));
  // A file of the reference.
  mkdirSync(into("reference"));
  const vis = "compare_20250101000000.vis";
  cpSync(golden("graph/visdb_verdicts/out_g1", vis), path.join(into("reference"), vis));
  cpSync(golden("graph/overflow_check_build/npu_dump"), path.join(into("dump"), "step0", "rank0"), { recursive: true });
  const compared = golden("compare/tensor_real_l1_stack");
  run(
    "compare",
    path.join(compared, "npu"),
    path.join(compared, "bench"),
    "-o",
    into("compared"),
    "--format",
    "html,json",
  );
  const grads = golden("grad_probe/compare_two_runs");
  run(
    "grad",
    "compare",
    path.join(grads, "run_a"),
    path.join(grads, "run_b"),
    "-o",
    into("grads"),
    "--pictures",
    "none",
  );
  const keys = golden("rl_collect/grpo_two_ranks");
  run("rl", "compare", path.join(keys, "dump_a"), path.join(keys, "dump_b"), "-o", into("keys"));
  run("overflow_check", "-i", golden("nan_analyze/p2p_pipeline/input"), "-o", into("overflow"));
  return folder;
}

export async function serve(...args: string[]): Promise<Served> {
  const child = spawn(binary(), ["view", ...args, "--no-open"], { stdio: ["ignore", "pipe", "pipe"] });
  // A test that fails before it closes the server must not be waited for by it.
  process.on("exit", () => child.kill("SIGKILL"));
  let said = "";
  const address = await new Promise<string>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`msprobe view said no address: ${said}`)), 30000);
    const hear = (chunk: Buffer) => {
      said += chunk.toString();
      const found = /http:\/\/[\w.:[\]]+:\d+/.exec(said);
      if (!found) return;
      clearTimeout(timer);
      resolve(found[0]);
    };
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    child.on("exit", (code) => {
      clearTimeout(timer);
      reject(new Error(`msprobe view ended with ${String(code)}: ${said}`));
    });
  });
  // What is below the paths may still be looked through.
  let items: Item[] = [];
  for (let tries = 0; tries < 100; tries++) {
    const response = await fetch(`${address}/api/catalogue`);
    if (response.ok) {
      ({ items } = (await response.json()) as Catalogue);
      break;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return {
    address,
    items,
    close: () =>
      new Promise((resolve) => {
        child.on("exit", () => resolve());
        child.kill("SIGINT");
      }),
  };
}

export function itemIn({ items }: Served, folder: string): Item {
  const found = items.filter(({ path: where }) => where.includes(folder));
  assert.ok(found.length >= 1, `nothing of ${folder} among ${items.map(({ path: where }) => where).join(", ")}`);
  return found[0];
}
