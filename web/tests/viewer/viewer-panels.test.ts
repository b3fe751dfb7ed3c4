// The viewer in a browser over graphs in memory: menu, findings, search and matching by hand.

import assert from "node:assert/strict";
import { test } from "node:test";

import { eventually, frames, screenshot } from "../browser";
import { clickBox, drawn, isInView, openNames, told, until, untilPlace } from "./driver";
import { CULPRIT, LONELY_GOLDEN, LONELY_TARGET, REDUCE } from "./graphs";
import { ATTENTION, BAD, BLOCK, COLLECTION, mock, viewer } from "./setup";

test("the menu of a box: partner, worst inside, peers of other ranks, open and close below, name", async () => {
  await viewer(
    { ...BAD, open: { target: [COLLECTION], golden: [] } },
    async (page) => {
      await drawn(page);
      const choose = async (name: string, text: string) => {
        await clickBox(page, "target", name, "right");
        await page.locator(".menu-item", { hasText: text }).click();
      };
      await choose(BLOCK, "Go to the worst inside");
      await untilPlace(page, ({ node }) => node === CULPRIT, "the culprit");
      await choose(BLOCK, "Go to the partner");
      await untilPlace(page, ({ node, side }) => node === BLOCK && side === "golden", "the partner");
      await choose(LONELY_TARGET, "nearest matched");
      await untilPlace(page, ({ node, side }) => node === COLLECTION && side === "golden", "the nearest partner");
      await choose(BLOCK, "Open everything below");
      await until(async () => (await openNames(page, "target")).includes(ATTENTION), "all below is open");
      await choose(BLOCK, "Close everything below");
      await until(async () => !(await openNames(page, "target")).includes(BLOCK), "all below is closed");
      await choose(BLOCK, "Copy the name");
      await eventually(async () => assert.equal(await page.evaluate(() => navigator.clipboard.readText()), BLOCK));
      // To the other end of a communication, on another rank.
      await choose(REDUCE, "Sends to");
      await page.locator(".menu-item", { hasText: "rank 2" }).click();
      await untilPlace(page, ({ rank, node }) => rank === 2 && node === REDUCE, "the peer");
      await page.locator(".details-name", { hasText: REDUCE }).waitFor();
      await eventually(async () => assert.ok(await isInView(page, "target", REDUCE)));
      // And from the panel back to rank 0.
      await page.locator(".details-bar .tab", { hasText: "Node" }).click();
      await page.locator(".peers .link", { hasText: "rank 0" }).click();
      await untilPlace(page, ({ rank }) => rank === 0, "rank 0");
      // Menus close with Escape.
      await clickBox(page, "target", REDUCE, "right");
      await page.keyboard.press("Escape");
      await eventually(async () => assert.equal(await page.locator(".context-menu").count(), 0));
    },
    { permissions: ["clipboard-read", "clipboard-write"] },
  );
});

test("findings are filtered and walked through; first divergence and first NaN are jumped to", async () => {
  await viewer({ file: "small", step: 1, rank: 2 }, async (page) => {
    await drawn(page);
    await page.getByRole("button", { name: "First divergence" }).click();
    await untilPlace(page, ({ rank, node }) => rank === 0 && node === CULPRIT, "the culprit on rank 0");
    await eventually(async () => assert.ok(await isInView(page, "target", CULPRIT)));
    await page.locator(".findings .node-row.chosen", { hasText: CULPRIT }).waitFor();
    await page.locator(".boxes").first().focus();
    await page.keyboard.press("n");
    await untilPlace(page, ({ node }) => node === "Functional.linear.6.forward", "the next finding");
    await page.keyboard.press("p");
    await untilPlace(page, ({ node }) => node === CULPRIT, "the one before");
    await page.getByRole("button", { name: "First NaN" }).click();
    await untilPlace(page, ({ node }) => node === "Functional.linear.40.forward", "the first NaN");
    // Only unmatched ones.
    for (const kind of ["introduced", "inherited", "warning", "error", "overflow"])
      await page.locator(`.findings .chip[data-kind=${kind}]`).click();
    await eventually(async () => assert.equal(await page.locator(".findings .node-row").count(), 1));
    await page.locator(".findings .node-row", { hasText: LONELY_TARGET }).click();
    await untilPlace(page, ({ node }) => node === LONELY_TARGET, "the unmatched one");
    await page.locator(".findings .chip[data-kind=high]").click();
    await page.locator(".findings .node-row", { hasText: "Module.layers.2" }).first().waitFor();
    await page.locator(".findings .tick input").check();
    await until(async () => (await page.locator(".findings .node-row").count()) === 1, "only leaves");
    await untilPlace(
      page,
      ({ kinds, leaves }) => leaves && kinds.slice().sort().join() === "high,unmatched",
      "what is listed",
    );
    // Where colours are ranges of the index, these can be listed: what is introduced is in the uppermost.
    await page.locator(".choice", { hasText: "Colour by" }).locator("select").selectOption("index");
    await page.locator(".findings .chip[data-kind=high]").click();
    await page.locator(".findings .chip[data-kind=unmatched]").click();
    await page.locator(".findings .chip[data-kind='index:0.6:1:closed']").click();
    await eventually(async () =>
      assert.deepEqual(await page.locator(".findings .node-name").allTextContents(), [CULPRIT]),
    );
    await page.locator(".findings .chip[data-kind='index:0.2:0.6']").click();
    await eventually(async () => assert.ok((await page.locator(".findings .node-row").count()) > 20));
  });
});

test("search looks at all ranks, steps and sides, by expression and facets", async () => {
  await viewer(
    { file: "small" },
    async (page) => {
      await drawn(page);
      await page.keyboard.press("/");
      await page.keyboard.type("linear.5.");
      await page.locator(".said", { hasText: /^12 found/ }).waitFor();
      await eventually(async () => assert.equal(await page.locator(".searching .group").count(), 6));
      await page.locator(".tick", { hasText: "Regular expression" }).locator("input").check();
      await page.locator(".searching .search").fill("^torch\\.add\\.\\d");
      await page.locator(".facet", { hasText: "Side" }).locator(".chip", { hasText: "golden" }).click();
      await page.locator(".said", { hasText: /^6 found/ }).waitFor();
      await page.locator(".searching .search").fill("[");
      await told(page, /not a regular expression/);
      await Promise.all([
        page.waitForResponse((response) => response.url().includes("search?q=add")),
        page.locator(".searching .search").fill("add"),
      ]);
      await frames(page);
      await page.locator(".searching .node-row").last().click();
      const place = await untilPlace(page, ({ node }) => node === LONELY_GOLDEN, "the hit");
      assert.deepEqual([place.side, place.step, place.rank], ["golden", 1, 2]);
      assert.equal(place.search.q, "add");
      await eventually(async () => assert.ok(await isInView(page, "golden", LONELY_GOLDEN)));
      // By the keys from the field into the list.
      await page.locator(".searching .search").focus();
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("Enter");
      await untilPlace(page, ({ step, rank }) => step === 0 && rank === 0, "the first hit");
      await screenshot(page, "viewer-search");
    },
    { allowed: /400/ },
  );
});

test("nodes are matched by hand, undone, done again, saved and written down", async () => {
  await viewer({ ...BAD, open: { target: [COLLECTION], golden: [COLLECTION] } }, async (page) => {
    await drawn(page);
    await drawn(page, "golden");
    await page.keyboard.press("m");
    await page.locator(".matching .pick").first().waitFor();
    await clickBox(page, "target", LONELY_TARGET);
    await page.locator('.pick[data-side="target"]', { hasText: LONELY_TARGET }).waitFor();
    // Suggested, and chosen from there.
    await page.locator(".suggestion", { hasText: LONELY_GOLDEN }).click();
    await page.locator('.pick[data-side="golden"]', { hasText: LONELY_GOLDEN }).waitFor();
    await page.locator('.pick[data-side="golden"] .link').click();
    await eventually(async () => assert.equal(await page.locator(".match-pair").isEnabled(), false));
    await clickBox(page, "golden", LONELY_GOLDEN);
    await page.locator(".match-pair:enabled").click();
    await page.locator(".journal", { hasText: "Not saved yet" }).waitFor();
    const partnerOf = () =>
      page.evaluate(
        (name) => window.msprobe!.workspace!.graph.trees.target?.byName.get(name)?.brief.partner,
        LONELY_TARGET,
      );
    await until(async () => (await partnerOf()) === LONELY_GOLDEN, "they are a pair");
    await screenshot(page, "viewer-match");
    await page.locator(".journal").getByRole("button", { name: "Undo" }).click();
    await until(async () => (await partnerOf()) === null, "undone");
    await page.locator(".journal").getByRole("button", { name: "Redo" }).click();
    await until(async () => (await partnerOf()) === LONELY_GOLDEN, "done again");
    await page.locator(".journal").getByRole("button", { name: "Save", exact: true }).click();
    await until(() => Promise.resolve(mock.saved === 1), "saved");
    await page.getByRole("button", { name: "Write config file" }).click();
    await told(page, /small\.vis\.config/);
    const [chooser] = await Promise.all([
      page.waitForEvent("filechooser"),
      page.getByRole("button", { name: "Apply config file" }).click(),
    ]);
    await chooser.setFiles({ name: "a.vis.config", mimeType: "application/json", buffer: Buffer.from('{"a":"b"}') });
    await until(() => Promise.resolve(mock.configs.length === 1), "applied");
    assert.deepEqual(mock.configs, [{ a: "b" }]);
    await clickBox(page, "target", LONELY_TARGET);
    await page.locator(".unmatch-pair:enabled").click();
    await until(async () => (await partnerOf()) === null, "unmatched");
    await page.locator(".boxes").first().focus();
    await page.keyboard.press("Control+z");
    await until(async () => (await partnerOf()) === LONELY_GOLDEN, "undone by its key");
  });
});
