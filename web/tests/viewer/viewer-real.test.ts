// The viewer as users have it: the binary serves what the binary made, in a real browser.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import path from "node:path";
import { after, before, test } from "node:test";

import type { Page } from "playwright-core";

import { binary, eventually, scratch, screenshot, textOfFile } from "../browser";
import { clickBox, drawn, isInView, openNames, searchFor, told, until, untilPlace, withViewer } from "./driver";
import { itemIn, madeResults, serve, type Served } from "./served";
import { openBrowser } from "./setup";

const NET = "Module.net.Net.forward.0";
const REDUCE = "Distributed.all_reduce.0.forward";
// Neither side of the reference's file has a partner for it.
const SHAPE = "Torch.shape.0.forward";

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

const partnerOf = (page: Page, name: string) =>
  page.evaluate((node) => window.msprobe!.workspace!.graph.trees.target?.byName.get(node)?.brief.partner ?? null, name);

test("home shows everything that was made, by kind", async () => {
  await withViewer(openBrowser(), served.address, {}, async (page) => {
    await page.locator(".kind").first().waitFor();
    const kinds = await page.locator(".kind").evaluateAll((all) => all.map((one) => (one as HTMLElement).dataset.kind));
    for (const kind of ["graph", "dump", "comparison", "gradients", "keydata", "overflow"])
      assert.ok(kinds.includes(kind), `${kind} is missing in ${kinds.join(", ")}`);
    await eventually(async () => assert.ok((await page.locator(".item .status.bad").count()) >= 2));
    await screenshot(page, "real-home");
  });
});

test("a graph of several ranks: findings, partner, peers, back", async () => {
  await open("ranks", {}, async (page) => {
    await drawn(page);
    await drawn(page, "golden");
    await page.getByRole("button", { name: "First divergence" }).click();
    const found = await untilPlace(page, ({ node }) => node !== null, "a divergence");
    await eventually(async () => assert.ok(await isInView(page, "target", found.node!)));
    await page.locator(".values tbody tr").first().waitFor();
    await eventually(async () => assert.ok((await page.locator(".match-dot").count()) > 0));
    await screenshot(page, "real-graph");
    await page.locator(".boxes").first().focus();
    await page.keyboard.press("n");
    await untilPlace(page, ({ node }) => node !== null && node !== found.node, "another finding");
    // Through a communication to another rank.
    await searchFor(page, REDUCE);
    await page.locator(".searching .node-row").first().click();
    const here = await untilPlace(page, ({ node }) => node === REDUCE, "the communication");
    await page.locator(".details-bar .tab", { hasText: "Node" }).click();
    await page.locator(".peers .link").first().click();
    await untilPlace(page, ({ rank, node }) => rank !== here.rank && node !== null, "another rank");
    await drawn(page);
    await page.goBack();
    await untilPlace(page, ({ rank }) => rank === here.rank, "the rank before");
    await page.locator(".details-bar .tab", { hasText: "Call stacks" }).click();
    await page.locator(".stacks td, .details-content .empty").first().waitFor();
  });
});

test("search with facets over all ranks and both sides", async () => {
  await open("ranks", {}, async (page) => {
    await drawn(page);
    await searchFor(page, "distributed");
    await page.locator(".said", { hasText: /found/ }).waitFor();
    await eventually(async () => assert.ok((await page.locator(".searching .group").count()) >= 2));
    await page.locator(".facet", { hasText: "Side" }).locator(".chip", { hasText: "golden" }).click();
    await until(async () => !(await page.locator(".side-mark").allTextContents()).includes("T"), "only golden ones");
    await page.locator(".tick", { hasText: "Regular expression" }).locator("input").check();
    await page.locator(".searching .search").fill("all_reduce\\.\\d+\\.forward$");
    await until(
      async () =>
        (await page.locator(".searching .node-name").allTextContents()).every((name) => /all_reduce\.\d/.test(name)),
      "only those",
    );
  });
});

test("the table of pairs is sorted, filtered and exported", async () => {
  await open("verdicts", { screen: "table" }, async (page) => {
    await page.locator(".pairs-row.toned").first().waitFor();
    const count = async () =>
      Number(((await page.locator(".pairs-table .count").textContent()) ?? "").replace(/\D/g, ""));
    await until(async () => (await count()) >= 15, "all rows");
    const all = await count();
    await page.locator(".pairs-head .index").click();
    await page.locator('.pairs-row[data-place="0"] .index', { hasText: /^1$/ }).waitFor();
    await page.locator(".pairs-table .search").fill("nan");
    await until(async () => (await count()) < all, "fewer rows");
    let shown = -1;
    await eventually(async () => {
      const last = shown;
      shown = await count();
      assert.equal(shown, last);
    });
    const [download] = await Promise.all([page.waitForEvent("download"), page.locator(".export-csv").click()]);
    assert.equal(
      textOfFile(await download.path())
        .trim()
        .split("\n").length,
      shown + 1,
    );
    await page.locator(".pairs-row.toned").first().dblclick();
    const place = await untilPlace(page, ({ screen, node }) => screen === "graph" && node !== null, "the graph");
    await eventually(async () => assert.ok(await isInView(page, "target", place.node!)));
  });
});

test("pictures of a real comparison are drawn and kept", async () => {
  await open("ranks", { screen: "pictures", node: "Functional.linear.0.forward" }, async (page) => {
    const spots = async () => Number(await page.locator(".figure canvas").first().getAttribute("data-spots"));
    await until(
      async () => (await page.locator(".figure canvas[data-spots]").count()) > 0 && (await spots()) > 0,
      "points",
    );
    await screenshot(page, "real-profile");
    const [download] = await Promise.all([page.waitForEvent("download"), page.locator(".keep-svg").first().click()]);
    assert.match(textOfFile(await download.path()), /^<svg /);
    await page.locator(".pictures .tab", { hasText: "Ranks × steps" }).click();
    await until(async () => (await spots()) >= 2, "a cell for each rank");
    await page.locator(".pictures .tab", { hasText: "Over steps and ranks" }).click();
    await page
      .locator(".choice", { hasText: "Measure" })
      .locator("select option")
      .first()
      .waitFor({ state: "attached" });
    await until(async () => (await spots()) >= 2, "a point for each rank");
    await page.locator(".pictures .tab", { hasText: "Timeline" }).click();
    await page.locator(".picture .lane-name").first().waitFor();
    await eventually(async () => assert.ok((await page.locator(".picture .lane-name").count()) >= 2));
    await screenshot(page, "real-timeline");
  });
});

test("a dump becomes a graph when it is opened", async () => {
  await open(
    "dump",
    {},
    async (page) => {
      await drawn(page);
      await eventually(async () => assert.equal(await page.locator(".pane:visible").count(), 1));
      await clickBox(page, "target", NET);
      await untilPlace(page, ({ node }) => node === NET, "the module");
      await page.keyboard.press("Enter");
      await until(async () => (await openNames(page, "target")).length > 0, "something is open");
      await page.locator(".details-name", { hasText: /\w/ }).waitFor();
    },
    { allowed: /503/ },
  );
});

test("matches by hand in a file of the reference are undone, saved, and still there for the next viewer", async () => {
  await open("reference", { left: "match", open: { target: [NET], golden: [NET] } }, async (page) => {
    await drawn(page);
    await drawn(page, "golden");
    await clickBox(page, "target", SHAPE);
    await page.locator('.pick[data-side="target"]', { hasText: SHAPE }).waitFor();
    await clickBox(page, "golden", SHAPE);
    await page.locator(".match-pair:enabled").click();
    await until(async () => (await partnerOf(page, SHAPE)) === SHAPE, "they are a pair");
    await page.locator(".journal").getByRole("button", { name: "Undo" }).click();
    await until(async () => (await partnerOf(page, SHAPE)) === null, "undone");
    await page.locator(".journal").getByRole("button", { name: "Redo" }).click();
    await until(async () => (await partnerOf(page, SHAPE)) === SHAPE, "done again");
    await page.locator(".journal").getByRole("button", { name: "Save", exact: true }).click();
    await page.locator(".journal").getByRole("button", { name: "Save", exact: true, disabled: true }).waitFor();
    await page.getByRole("button", { name: "Write config file" }).click();
    await told(page, /\.vis\.config/);
    await screenshot(page, "real-match");
  });
  const config = JSON.parse(textOfFile(path.join(results, "reference/compare_20250101000000.vis.config"))) as object;
  assert.ok(Object.keys(config).includes(SHAPE));
  const again = await serve(path.join(results, "reference"));
  try {
    const place = { file: again.items[0].id, open: { target: [NET], golden: [] } };
    await withViewer(openBrowser(), again.address, place, async (page) => {
      await drawn(page);
      await until(async () => (await partnerOf(page, SHAPE)) === SHAPE, "still a pair");
    });
  } finally {
    await again.close();
  }
});

test("a pair of a database is taken apart and saved, as the reference's plugin marks it", async () => {
  const same = "Torch.same.0.forward";
  const stateOf = (page: Page) =>
    page.evaluate((name) => {
      const node = window.msprobe!.workspace!.graph.trees.target?.byName.get(name);
      return node ? { partner: node.brief.partner, isModified: node.brief.modified } : null;
    }, same);
  const place = { left: "match" as const, node: same };
  await open("verdicts", place, async (page) => {
    await drawn(page);
    await page.locator(".unmatch-pair:enabled").click();
    await until(async () => (await stateOf(page))?.partner === null, "no pair any more");
    await page.locator(".journal").getByRole("button", { name: "Save", exact: true }).click();
    await page.locator(".journal").getByRole("button", { name: "Save", exact: true, disabled: true }).waitFor();
  });
  const again = await serve(path.join(results, "verdicts"));
  try {
    await withViewer(openBrowser(), again.address, { file: again.items[0].id, ...place }, async (page) => {
      await drawn(page);
      await until(async () => (await stateOf(page)) !== null, "it is there");
      await eventually(async () => assert.deepEqual(await stateOf(page), { partner: null, isModified: true }));
      // Suggested, and a pair again.
      await page.locator(".suggestion", { hasText: same }).first().click();
      await page.locator(".match-pair:enabled").click();
      await until(async () => (await stateOf(page))?.partner === same, "a pair again");
    });
  } finally {
    await again.close();
  }
});

test("gradients, key data, a comparison with its report, and an overflow report", async () => {
  for (const folder of ["grads", "keys"])
    await open(folder, { screen: "pictures" }, async (page) => {
      await until(
        async () =>
          Number(
            await page
              .locator(".figure canvas")
              .getAttribute("data-spots")
              .catch(() => 0),
          ) > 0,
        `cells of ${folder}`,
      );
      await screenshot(page, `real-${folder}`);
    });
  await open("compared", { screen: "tables" }, async (page) => {
    await page.locator(".answer h2").waitFor();
    await page.locator(".plain-table td").first().waitFor();
    await page.locator(".tab", { hasText: "Report" }).click();
    await page.frameLocator("iframe.report-frame").locator("h1").waitFor();
  });
  await open("overflow", { screen: "tables" }, async (page) => {
    await page.locator(".answer h2").waitFor();
  });
});

test("an exported page is read without a server", async () => {
  const file = path.join(scratch(), "report.html");
  const run = spawnSync(binary(), ["view", path.join(results, "ranks"), "--export", file], { encoding: "utf8" });
  assert.equal(run.status, 0, run.stderr);
  await withViewer(openBrowser(), `file://${file}`, {}, async (page) => {
    await page.locator(".item-title").first().click();
    await drawn(page);
    await drawn(page, "golden");
    await page.getByRole("button", { name: "First divergence" }).click();
    await untilPlace(page, ({ node }) => node !== null, "a divergence");
    await page.locator(".values tbody tr").first().waitFor();
    await eventually(async () =>
      assert.match((await page.locator(".top-title").textContent()) ?? "", /^compare_\d+\.vis\.db$/),
    );
  });
});
