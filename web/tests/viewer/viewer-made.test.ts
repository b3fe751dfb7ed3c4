// What a reader does with the viewer as users have it: making a graph, judging it by statistics, keeping pictures, in other
// colours, languages and windows.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";

import type { Page } from "playwright-core";

import { binary, coloursOf, eventually, frames, NARROW, scratch, screenshot, textOfFile } from "../browser";
import { drawn, isInView, told, until, untilPlace, withViewer } from "./driver";
import { itemIn, madeResults, serve, type Served } from "./served";
import { openBrowser } from "./setup";

const NET = "Module.net.Net.forward.0";
const SHAPE = "Torch.shape.0.forward";
const WRONG = "Torch.wrong.0.forward";

let results: string;
let served: Served;
before(async () => {
  results = madeResults();
  served = await serve(results);
});
after(async () => {
  await (served as Served | undefined)?.close();
});

const open = (
  folder: string,
  patch: Parameters<typeof withViewer>[2],
  act: (page: Page) => Promise<void>,
  options: Parameters<typeof withViewer>[4] = {},
) => withViewer(openBrowser(), served.address, { file: itemIn(served, folder).id, ...patch }, act, options);

// A rank with one module; the largest value of one of its calls is given, its mean is not touched by that.
function writeDump(folder: string, max: number): void {
  mkdirSync(folder, { recursive: true });
  const tensor = (top: number) => ({
    type: "torch.Tensor",
    dtype: "torch.float32",
    shape: [2, 2],
    Max: top,
    Min: -1,
    Mean: 0.5,
    Norm: top,
    requires_grad: false,
  });
  const call = (top: number) => ({ input_args: [tensor(2)], input_kwargs: {}, output: [tensor(top)] });
  const data = { "Torch.first.0.forward": call(2), [WRONG]: call(max), [NET]: call(max) };
  const construct = { "Torch.first.0.forward": NET, [WRONG]: NET, [NET]: null };
  const stack = Object.fromEntries(Object.keys(data).map((name) => [name, ["File a.py, line 1, in f"]]));
  const dump = { task: "statistics", level: "mix", framework: "pytorch", dump_data_dir: null, data };
  for (const [name, content] of Object.entries({ dump, construct, stack }))
    writeFileSync(path.join(folder, `${name}.json`), JSON.stringify(content));
}

const indexOf = (page: Page, name: string) =>
  page.evaluate((node) => window.msprobe!.workspace!.graph.trees.target?.byName.get(node)?.brief.index ?? null, name);

const pixelsOf = (page: Page) =>
  page
    .locator(".boxes")
    .first()
    .evaluate((canvas) => (canvas as HTMLCanvasElement).toDataURL());

test("a graph is made of two dumps in the browser, and judged by the statistics a reader chooses", async () => {
  const folder = path.join(scratch(), "runs");
  writeDump(path.join(folder, "own", "rank0"), 9);
  writeDump(path.join(folder, "other", "rank0"), 3);
  const own = await serve(folder);
  try {
    await withViewer(
      openBrowser(),
      own.address,
      {},
      async (page) => {
        await page.locator(".to-convert").click();
        await untilPlace(page, ({ screen }) => screen === "convert", "the form");
        const select = async (name: string, folderName: string) => {
          const id = own.items.find(({ path: where }) => where.endsWith(folderName))!.id;
          await page.locator(`.convert-form select[name=${name}]`).selectOption(id);
        };
        await select("target", "own");
        await select("golden", "other");
        // What is refused is told, and nothing is lost.
        await page.locator(".convert-form input[name=output]").fill("../away");
        await page.locator(".convert-start").click();
        await told(page, /no name for a directory/);
        // A mistake in the numbers of ranks ends in the log of errors.
        await page.locator(".convert-form summary").click();
        for (const side of ["target", "golden"])
          for (const [name, number] of [
            ["rankSize", "4"],
            ["tp", "4"],
            ["pp", "1"],
          ])
            await page.locator(`.strategy[data-side=${side}] input[name=${name}]`).fill(number);
        await page.locator(".convert-form input[name=output]").fill("graphs");
        await page.locator(".convert-start:enabled").click();
        await page.locator('.convert[data-state="failed"] .convert-said.fault').waitFor();
        for (const field of await page.locator(".strategy input.number").all()) await field.fill("");
        await page.locator(".convert-start:enabled").click();
        await page.locator('.convert[data-state="done"]').waitFor();
        await screenshot(page, "real-convert");
        assert.equal(readdirSync(path.join(folder, "graphs")).filter((name) => name.endsWith(".vis.db")).length, 1);
        await page.locator(".convert-open").click();
        await drawn(page);
        await page.getByRole("button", { name: "First divergence" }).click();
        await untilPlace(page, ({ node }) => node === WRONG, "the wrong call");
        await eventually(async () => assert.equal(await indexOf(page, WRONG), 1));
        await page.locator(".statistics summary", { hasText: "the file" }).click();
        await page.locator('.statistics input[data-statistic="Mean"]').check();
        const { file } = await untilPlace(
          page,
          ({ stats, colour }) => stats.join() === "Mean" && colour === "index",
          "the choice",
        );
        await eventually(async () => assert.equal(await indexOf(page, WRONG), 0));
        await eventually(async () => assert.ok(await isInView(page, "target", WRONG), "what is open stays so"));
        await frames(page);
        const agreeing = await pixelsOf(page);
        // Another window is not concerned, and one with the address is.
        await withViewer(openBrowser(), own.address, { file, node: WRONG }, async (other) => {
          await drawn(other);
          await eventually(async () => assert.equal(await indexOf(other, WRONG), 1));
        });
        await withViewer(openBrowser(), own.address, { file, node: WRONG, stats: ["Mean"] }, async (other) => {
          await drawn(other);
          await eventually(async () => assert.equal(await indexOf(other, WRONG), 0));
          await eventually(async () =>
            assert.ok(await other.locator('.statistics input[data-statistic="Mean"]').isChecked()),
          );
        });
        await page.locator(".statistics summary", { hasText: "Judge by: Mean" }).waitFor();
        await page.locator('.statistics input[data-statistic="Max"]').check();
        await untilPlace(page, ({ stats }) => stats.join() === "Max,Mean", "both");
        await eventually(async () => assert.equal(await indexOf(page, WRONG), 1));
        await eventually(async () => assert.notEqual(await pixelsOf(page), agreeing, "another colour"));
        await page.locator(".findings .node-row", { hasText: "wrong.0" }).waitFor();
        await page.goBack();
        await untilPlace(page, ({ stats }) => stats.join() === "Mean", "back");
        await eventually(async () => assert.equal(await indexOf(page, WRONG), 0));
      },
      { allowed: /400|503/ },
    );
  } finally {
    await own.close();
  }
});

test("the first NaN of a dump is jumped to", async () => {
  await open(
    "dump",
    {},
    async (page) => {
      await drawn(page);
      await page.getByRole("button", { name: "First NaN" }).click();
      const { node } = await untilPlace(page, (place) => place.node !== null, "the first NaN");
      await eventually(async () => assert.ok(await isInView(page, "target", node!)));
      await eventually(async () => assert.match(await page.locator(".values").last().innerText(), /nan|inf/i));
    },
    { allowed: /503/ },
  );
});

test("graph and pictures are kept as PNG and SVG", async () => {
  const kept = async (page: Page, holder: string, name: "PNG" | "SVG") => {
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.locator(holder).getByRole("button", { name }).first().click(),
    ]);
    return download.path();
  };
  const isPng = (file: string) => assert.deepEqual([...readFileSync(file).subarray(1, 4)], [...Buffer.from("PNG")]);
  await open("ranks", {}, async (page) => {
    await drawn(page);
    isPng(await kept(page, ".graph-tools", "PNG"));
    assert.match(textOfFile(await kept(page, ".graph-tools", "SVG")), /^<svg [^]*DefaultModel/);
    await page.locator('.tab[data-screen="pictures"]').click();
    for (const picture of ["profile", "matrix", "timeline"]) {
      await page.locator(`.tab[data-picture="${picture}"]`).click();
      await page.locator(".pictures .keep-png:visible").first().waitFor();
      isPng(await kept(page, ".pictures-holder", "PNG"));
      assert.match(textOfFile(await kept(page, ".pictures-holder", "SVG")), /^<svg /);
    }
  });
});

test("other colours, Chinese, and a phone", async () => {
  await open("ranks", {}, async (page) => {
    await drawn(page);
    const usual = await pixelsOf(page);
    await page.locator(".distinct").click();
    await eventually(async () => assert.notEqual(await pixelsOf(page), usual));
    const light = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    // System, light, dark.
    await page.locator(".theme").click();
    await page.locator(".theme").click();
    await eventually(async () =>
      assert.notEqual(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), light),
    );
    await eventually(async () => assert.ok((await coloursOf(page, ".boxes")) > 3));
    await page.locator(".language").click();
    await page.locator(".tab", { hasText: "对比详情" }).waitFor();
    await drawn(page);
    await page.locator(".home-button").click();
    await page.locator(".to-convert", { hasText: "生成图" }).waitFor();
  });
  await open(
    "ranks",
    {},
    async (page) => {
      await drawn(page);
      await eventually(async () => assert.equal(await page.locator("html").getAttribute("lang"), "zh"));
    },
    { locale: "zh-CN" },
  );
  await open(
    "ranks",
    {},
    async (page) => {
      await drawn(page);
      await eventually(async () =>
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)),
      );
      await page.locator('.tab[data-screen="table"]').click();
      await page.locator(".pairs-row.toned").first().waitFor();
      // Headers go with their columns.
      await page.locator(".pairs-scroller").evaluate((scroller) => (scroller.scrollLeft = 300));
      await eventually(async () => {
        const head = (await page.locator(".pairs-head .verdict").boundingBox())!;
        const cell = (await page.locator(".pairs-row .verdict").first().boundingBox())!;
        assert.ok(Math.abs(head.x - cell.x) < 3, `${head.x} above ${cell.x}`);
      });
      await page.locator(".home-button").click();
      await page.locator(".item-title").first().waitFor();
      await eventually(async () =>
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)),
      );
    },
    { viewport: NARROW, hasTouch: true },
  );
});

test("pairs of a config file are applied", async () => {
  await open("reference", { left: "match", open: { target: [NET], golden: [NET] } }, async (page) => {
    await drawn(page);
    const [chooser] = await Promise.all([
      page.waitForEvent("filechooser"),
      page.getByRole("button", { name: "Apply config file" }).click(),
    ]);
    const pairs = { [SHAPE]: SHAPE, "Torch.nothing.0.forward": SHAPE };
    await chooser.setFiles({
      name: "a.vis.config",
      mimeType: "application/json",
      buffer: Buffer.from(JSON.stringify(pairs)),
    });
    await told(page, /1 of 2 pairs/);
    await until(
      () =>
        page.evaluate(
          (name) => window.msprobe!.workspace!.graph.trees.target?.byName.get(name)?.brief.partner === name,
          SHAPE,
        ),
      "they are a pair",
    );
  });
});

test("an exported page has the timeline of ranks", async () => {
  const file = path.join(scratch(), "report.html");
  const run = spawnSync(binary(), ["view", path.join(results, "ranks"), "--export", file], { encoding: "utf8" });
  assert.equal(run.status, 0, run.stderr);
  await withViewer(openBrowser(), `file://${file}`, {}, async (page) => {
    await page.locator(".item-title").first().waitFor();
    assert.equal(await page.locator(".to-convert").count(), 0, "nothing is made without a server");
    await page.locator(".item-title").first().click();
    await drawn(page);
    await page.locator('.tab[data-screen="pictures"]').click();
    await page.locator('.tab[data-picture="timeline"]').click();
    await eventually(async () => assert.ok((await page.locator(".picture .lane-name").count()) >= 2));
  });
});
