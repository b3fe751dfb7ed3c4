// The viewer in a browser over graphs in memory: table, pictures, what is kept of them, and a million nodes.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { Page } from "playwright-core";

import { eventually, screenshot, textOfFile } from "../browser";
import { boxPlace, clickBox, drawn, isInView, until, untilPlace } from "./driver";
import { CULPRIT, HOSTILE } from "./graphs";
import { BAD, COLLECTION, mock, viewer } from "./setup";

test("the table sorts, filters, exports, and goes with the graph both ways", async () => {
  await viewer({ ...BAD, screen: "table", node: "Functional.linear.60.forward" }, async (page) => {
    // What is chosen in the graph is shown here.
    await page.locator(".pairs-row.chosen", { hasText: "Functional.linear.60.forward" }).waitFor();
    await eventually(async () => assert.ok((await page.locator(".pairs-row").count()) < 70));
    await page.locator(".pairs-head .errorOut").click();
    await page.locator('.pairs-head .errorOut[aria-sort="descending"]').waitFor();
    await page.locator(".pairs-scroller").evaluate((scroller) => (scroller.scrollTop = 0));
    await page.locator('.pairs-row[data-place="0"] .errorOut', { hasText: "0.04" }).waitFor();
    await page.locator(".pairs-head .errorOut").click();
    await page.locator(".pairs-scroller").evaluate((scroller) => (scroller.scrollTop = 0));
    await page.locator('.pairs-row[data-place="0"] .errorOut', { hasText: "2.00e-7" }).waitFor();
    await page.locator(".pairs-table .chip.bad").click();
    await page.locator(".pairs-table .count", { hasText: /^1 row$/ }).waitFor();
    const [download] = await Promise.all([page.waitForEvent("download"), page.locator(".export-csv").click()]);
    assert.equal(download.suggestedFilename(), "pairs_step1_rank0.csv");
    const csv = textOfFile(await download.path());
    assert.equal(csv.trim().split("\n").length, 2);
    assert.match(csv, /introduced/);
    await page.locator(".pairs-row").click();
    await untilPlace(page, ({ node }) => node === CULPRIT, "the row");
    await page.locator(".values").first().waitFor();
    await screenshot(page, "viewer-table");
    await page.locator(".pairs-row").dblclick();
    await untilPlace(page, ({ screen }) => screen === "graph", "the graph");
    await eventually(async () => assert.ok(await isInView(page, "target", CULPRIT)));
    await page.keyboard.press("t");
    await page.locator(".pairs-table .chip.bad").click();
    await page.locator(".pairs-table .search").fill("attention");
    await page.locator(".pairs-table .count", { hasText: /^6 rows$/ }).waitFor();
    // The back button takes the filter away.
    await page.goBack();
    await page.locator(".pairs-table .count", { hasText: /^\d\d+ rows$/ }).waitFor();
    await page.locator(".pairs-scroller").focus();
    await page.keyboard.press("ArrowDown");
    await until(async () => (await page.locator(".pairs-row.chosen").count()) === 1, "keys choose rows");
  });
});

test("the table stands beside the graph, and each follows the other", async () => {
  await viewer(BAD, async (page) => {
    await drawn(page);
    await page.keyboard.press("b");
    await untilPlace(page, ({ panel }) => panel === "pairs", "the table");
    await page.locator(".details-panel .pairs-row.toned").first().waitFor();
    await page.locator(".details-panel .pairs-head .errorOut").click();
    await page.locator('.details-panel .pairs-row[data-place="0"] .errorOut', { hasText: "0.04" }).waitFor();
    // A row shows its box, which is not in view before, and a box its row.
    await page.locator(".details-panel .pairs-table .search").fill("linear.60");
    await page.locator(".pairs-table .count", { hasText: /^1 row$/ }).waitFor();
    await page.locator('.details-panel .pairs-row[data-place="0"]').click();
    await untilPlace(
      page,
      ({ node, screen }) => node === "Functional.linear.60.forward" && screen === "graph",
      "the row",
    );
    await eventually(async () => assert.ok(await isInView(page, "target", "Functional.linear.60.forward")));
    await page.locator(".details-panel .pairs-table .search").fill("");
    await page.locator(".pairs-table .count", { hasText: /^\d\d+ rows$/ }).waitFor();
    await clickBox(page, "target", "Functional.linear.61.forward");
    await page.locator(".details-panel .pairs-row.chosen", { hasText: "Functional.linear.61.forward" }).waitFor();
    await screenshot(page, "viewer-docked");
    // As a screen it is not there twice.
    await page.keyboard.press("t");
    await page.locator(".table-screen .pairs-row.chosen").waitFor();
    await eventually(async () => assert.equal(await page.locator(".pairs-table").count(), 1));
    await page.keyboard.press("g");
    await page.locator(".details-panel .pairs-row.chosen").waitFor();
    await page.keyboard.press("b");
    await page.locator(".details-panel .values").first().waitFor();
  });
});

const keptFiles = async (page: Page, holder: string): Promise<{ svg: string; png: string }> => {
  const kept: string[] = [];
  for (const name of [".keep-svg", ".keep-png"]) {
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.locator(`${holder} ${name}`).first().click(),
    ]);
    kept.push(await download.path());
  }
  return { svg: kept[0], png: kept[1] };
};

test("pictures are drawn, pointed at, clicked and kept", async () => {
  await viewer({ ...BAD, screen: "pictures" }, async (page) => {
    await page.locator(".figure canvas[data-spots]").waitFor();
    const spot = (figure: "profile" | "matrix" | "lines" | "heat", text: string) =>
      page.evaluate(([which, part]) => window.msprobe!.workspace!.pictures.figures[which].spotPlace(part), [
        figure,
        text,
      ] as const);
    await until(async () => (await spot("profile", CULPRIT)) !== null, "the profile");
    await screenshot(page, "viewer-profile");
    const { svg, png } = await keptFiles(page, ".figure");
    const text = textOfFile(svg);
    assert.match(text, /^<svg /);
    assert.match(text, /culprit: Functional\.linear\.5\.forward/);
    assert.match(text, /tolerated/);
    assert.equal(textOfFile(png).slice(1, 4), "PNG");
    let at = (await spot("profile", CULPRIT))!;
    await page.mouse.move(at.x, at.y);
    await page.locator(".reading", { hasText: CULPRIT }).waitFor();
    await page.mouse.click(at.x, at.y);
    await untilPlace(page, ({ screen, node }) => screen === "graph" && node === CULPRIT, "the culprit");
    await page.goBack();

    await page.locator(".pictures .tab", { hasText: "Ranks × steps" }).click();
    await page.locator(".figure canvas[data-spots='6']").waitFor();
    assert.match(textOfFile((await keptFiles(page, ".figure")).svg), /rank 2/);
    at = (await spot("matrix", "step 1, rank 0"))!;
    await page.mouse.click(at.x, at.y);
    await untilPlace(page, ({ node }) => node === CULPRIT, "the cell's culprit");

    await page.keyboard.press("Control+k");
    await page.keyboard.type("over steps and");
    await page.keyboard.press("Enter");
    await page.locator(".series .figure").first().waitFor();
    await page.locator(".choice", { hasText: "Value" }).locator("select").selectOption("output.0");
    await untilPlace(page, ({ value }) => value === "output.0", "the value");
    await page.locator(".choice", { hasText: "Measure" }).locator("select").selectOption("Norm");
    await untilPlace(page, ({ measure }) => measure === "Norm", "the measure");
    await until(async () => (await spot("lines", "step 1, rank 2: 2")) !== null, "lines");
    await until(async () => (await spot("heat", "step 1, rank 2: 2")) !== null, "heat map");
    assert.equal(textOfFile((await keptFiles(page, ".series .figure")).png).slice(1, 4), "PNG");
    await screenshot(page, "viewer-series");

    await page.locator(".pictures .tab", { hasText: "Timeline" }).click();
    await page.locator(".picture .spot.origin").first().waitFor();
    await eventually(async () => assert.equal(await page.locator(".picture .lane-name").count(), 3));
    const kept = await keptFiles(page, ".timeline");
    assert.match(textOfFile(kept.svg), /rank 2/);
    assert.equal(textOfFile(kept.png).slice(1, 4), "PNG");
    await screenshot(page, "viewer-timeline");
  });
});

test("the graph is kept as PNG and SVG, with names as text", async () => {
  await viewer({ ...BAD, open: { target: [COLLECTION], golden: [] } }, async (page) => {
    await drawn(page);
    await boxPlace(page, "target", HOSTILE);
    const keep = async (name: string) => {
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        page.locator(".graph-tools").getByRole("button", { name, exact: true }).click(),
      ]);
      return textOfFile(await download.path());
    };
    const svg = await keep("SVG");
    assert.match(svg, /<rect /);
    assert.match(svg, /<ellipse /);
    assert.ok(!svg.includes("<img"));
    assert.equal((await keep("PNG")).slice(1, 4), "PNG");
    // Nor is it markup anywhere else.
    await clickBox(page, "target", HOSTILE);
    await page.locator(".details-name", { hasText: "<img" }).waitFor();
    await eventually(async () => assert.equal(await page.locator("img").count(), 0));
  });
});

// Frame times while a picture is moved by a few pixels again and again.
const movedFrames = (page: Page, scale: number) =>
  page.evaluate(async (zoom) => {
    const pane = window.msprobe!.workspace!.graph.panes.target;
    pane.fitAll();
    pane.zoom(zoom / pane.camera.scale, 0, 0);
    const nextFrame = () => new Promise<number>((resolve) => requestAnimationFrame(resolve));
    const times: number[] = [];
    const draws: number[] = [];
    await nextFrame();
    let last = await nextFrame();
    for (let at = 0; at < 90; at++) {
      pane.pan(at % 2 ? 3 : -3, at % 30 < 15 ? 4 : -4);
      const now = await nextFrame();
      times.push(now - last);
      draws.push(pane.lastDrawMs);
      last = now;
    }
    const middle = (all: number[]) => all.sort((a, b) => a - b)[Math.floor(all.length / 2)];
    return { boxes: pane.drawn.boxes, frame: middle(times), draw: middle(draws), worst: Math.max(...times) };
  }, scale);

test("a million nodes: the first paint asks for one chunk, and moving is measured", async () => {
  await viewer(
    { file: "huge", panel: "none", left: "none" },
    async (page) => {
      await drawn(page);
      const paint = await page.evaluate(
        () => performance.getEntriesByName("first-contentful-paint").at(0)?.startTime ?? performance.now(),
      );
      assert.equal(mock.asked.filter((one) => one.includes("/children")).length, 1);
      await page.evaluate(async () => {
        const names = Array.from({ length: 60 }, (_, at) => `n.0.${at}`);
        await window.msprobe!.workspace!.graph.trees.target!.openAll(["n.0", ...names]);
      });
      // As many as are told apart, and as many as are read.
      const many = await movedFrames(page, 0.08);
      await screenshot(page, "viewer-huge");
      const read = await movedFrames(page, 0.5);
      assert.ok(many.boxes >= 2000, `${many.boxes} boxes`);
      assert.ok(read.boxes >= 100, `${read.boxes} boxes`);
      for (const { boxes, frame, draw, worst } of [many, read])
        process.stdout.write(
          `viewer: first paint ${paint.toFixed(0)} ms; ${boxes} boxes: median frame ${frame.toFixed(1)} ms, drawing ${draw.toFixed(1)} ms, worst frame ${worst.toFixed(0)} ms\n`,
        );
    },
    { viewport: { width: 1360, height: 1300 } },
  );
});
