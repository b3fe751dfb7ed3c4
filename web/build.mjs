// Builds what the Rust crates embed. `--check` builds into memory and compares with what is committed; `--tests` bundles
// the tests into .build/, because node reads no TypeScript.

import { build } from "esbuild";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
// What each crate embeds: one script and one style for each entry, and files that are taken as they are.
const targets = [
  { outdir: path.join(here, "../crates/report/src/html/assets"), entries: { page: "src/page/main.ts" }, files: {} },
  {
    outdir: path.join(here, "../crates/viewer/assets"),
    entries: { viewer: "src/viewer/main.ts" },
    files: { "index.html": "src/viewer/index.html" },
  },
];

const options = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2021",
  charset: "utf8",
  legalComments: "none",
  logLevel: "warning",
  write: false,
};

// The text of every file of a folder of assets, by its name.
async function made({ outdir, entries, files }) {
  const { outputFiles } = await build({ ...options, entryPoints: entries, outdir });
  const texts = new Map(outputFiles.map(({ path: file, text }) => [path.basename(file), text]));
  for (const [name, from] of Object.entries(files)) texts.set(name, await readFile(path.join(here, from), "utf8"));
  return texts;
}

async function write() {
  for (const target of targets) {
    await mkdir(target.outdir, { recursive: true });
    for (const [name, text] of await made(target)) await writeFile(path.join(target.outdir, name), text);
  }
}

async function check() {
  const stale = [];
  for (const target of targets) {
    const texts = await made(target);
    for (const [name, text] of texts) {
      const file = path.join(target.outdir, name);
      const committed = await readFile(file, "utf8").catch(() => undefined);
      if (committed !== text) stale.push(path.relative(process.cwd(), file));
    }
    const found = await readdir(target.outdir).catch(() => []);
    for (const name of found) if (!texts.has(name)) stale.push(`${name} (nobody builds it)`);
  }
  if (stale.length) {
    console.error(`error: not what the sources in web/ give: ${stale.join(", ")}\nhint: run \`make web\` and commit`);
    process.exitCode = 1;
  }
}

async function tests() {
  const folder = path.join(here, "tests");
  const outdir = path.join(here, ".build/tests");
  await rm(outdir, { recursive: true, force: true });
  const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(".test.ts"));
  await build({
    entryPoints: names.map((name) => path.join(folder, name)),
    entryNames: "[name]",
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
else await write();
