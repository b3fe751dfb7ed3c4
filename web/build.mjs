// Builds what the Rust crates embed. `--check` builds into memory and compares with what is committed; `--tests` bundles
// the tests into .build/, because node reads no TypeScript.

import { build } from "esbuild";
import { readFile, readdir, rm } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const assets = path.join(here, "../crates/report/src/html/assets");

// A later page or viewer is one more line here.
const entries = { page: path.join(here, "src/page/main.ts") };

const options = {
  entryPoints: entries,
  outdir: assets,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2021",
  charset: "utf8",
  legalComments: "none",
  logLevel: "warning",
};

async function check() {
  const { outputFiles } = await build({ ...options, write: false });
  const stale = [];
  for (const { path: file, text } of outputFiles) {
    const committed = await readFile(file, "utf8").catch(() => undefined);
    if (committed !== text) stale.push(path.relative(process.cwd(), file));
  }
  const built = new Set(outputFiles.map(({ path: file }) => path.basename(file)));
  for (const name of await readdir(assets)) if (!built.has(name)) stale.push(`${name} (nobody builds it)`);
  if (stale.length) {
    console.error(`error: not what the sources in web/ give: ${stale.join(", ")}\nhint: run \`make web\` and commit`);
    process.exitCode = 1;
  }
}

async function tests() {
  const folder = path.join(here, "tests");
  const outdir = path.join(here, ".build/tests");
  await rm(outdir, { recursive: true, force: true });
  const names = (await readdir(folder)).filter((name) => name.endsWith(".test.ts"));
  await build({
    entryPoints: names.map((name) => path.join(folder, name)),
    outdir,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    packages: "external",
    platform: "node",
    format: "esm",
    target: "node20",
    sourcemap: "inline",
    logLevel: "warning",
  });
}

if (process.argv.includes("--check")) await check();
else if (process.argv.includes("--tests")) await tests();
else await build(options);
