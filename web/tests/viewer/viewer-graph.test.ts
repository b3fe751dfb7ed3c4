// The viewer in a browser over graphs in memory: boxes, their details, moving and colours.

import assert from "node:assert/strict";
import { test } from "node:test";

import { coloursOf, eventually, frames, NARROW, screenshot } from "../browser";
import { clickBox, drawn, isInView, openBox, openNames, placeNow, until, untilPlace } from "./driver";
import { CULPRIT } from "./graphs";
import { ATTENTION, BAD, BLOCK, camera, mock, viewer } from "./setup";

test("boxes are opened lazily, both sides together, and the address says so", async () => {
  await viewer({ file: "small" }, async (page) => {
    await drawn(page);
    await drawn(page, "golden");
    // The worst answer is where it begins.
    await untilPlace(page, ({ step, rank }) => step === 1 && rank === 0, "the worst step and rank");
    assert.ok(!mock.asked.some((one) => one.includes("children") && one.includes("layers")));
    await openBox(page, "target", BLOCK);
    await until(async () => (await openNames(page, "golden")).includes(BLOCK), "the partner opens");
    assert.ok(mock.asked.some((one) => one.includes("/children") && one.includes("Block")));
    await untilPlace(page, ({ open }) => open.target.includes(BLOCK), "what is open");
    await openBox(page, "target", BLOCK);
    await until(async () => !(await openNames(page, "golden")).includes(BLOCK), "the partner closes");
    // Without the switch only one side opens.
    await page.getByRole("button", { name: "Open both sides" }).click();
    await openBox(page, "target", BLOCK);
    await until(async () => (await openNames(page, "target")).includes(BLOCK), "it opens");
    await eventually(async () => assert.deepEqual(await openNames(page, "golden"), []));
    await eventually(async () => assert.ok((await coloursOf(page, ".boxes")) > 8));
    await page.getByRole("button", { name: "Close all" }).click();
    await eventually(async () => assert.deepEqual(await openNames(page, "target"), []));
  });
});

test("choosing a node shows its partner, its values, stacks and the rest", async () => {
  await viewer({ ...BAD, open: { target: [BLOCK, ATTENTION], golden: [] } }, async (page) => {
    await drawn(page);
    await clickBox(page, "target", CULPRIT);
    await untilPlace(page, ({ node }) => node === CULPRIT, "the node");
    // The other side was closed; it opens to show the partner.
    await until(async () => (await openNames(page, "golden")).includes(ATTENTION), "the partner is shown");
    await eventually(async () => assert.ok(await isInView(page, "golden", CULPRIT)));
    const rows = page.locator(".values tbody tr");
    await rows.first().waitFor();
    await eventually(async () =>
      assert.deepEqual(
        await page
          .locator(".values")
          .first()
          .locator("tbody tr")
          .evaluateAll((all) => all.map((row) => (row as HTMLElement).getAttribute("class"))),
        ["target", "golden"],
      ),
    );
    await eventually(async () => assert.equal(await page.locator(".match-dot.matched").count(), 4));
    await eventually(async () =>
      assert.equal(await page.locator("th.explained").first().getAttribute("title"), "the largest value of the tensor"),
    );
    await screenshot(page, "viewer-graph");

    await page.locator(".details-bar .tab", { hasText: "Call stacks" }).click();
    const lines = page.locator(".stacks tr");
    await lines.nth(1).waitFor();
    // Own code first; what differs is marked.
    await eventually(async () => assert.match(await lines.nth(1).locator("td").first().innerText(), /train\.py/));
    await eventually(async () => assert.equal(await page.locator(".stacks .differs").count(), 1));
    await page.getByRole("button", { name: "Own code first" }).click();
    await eventually(async () => assert.match(await lines.nth(1).locator("td").first().innerText(), /functional\.py/));
    await page.locator(".details-bar .tab", { hasText: "Node" }).click();
    await eventually(async () => assert.match(await page.locator(".about-node").innerText(), /introduced/));
    await page.locator(".about-node .link", { hasText: ATTENTION }).click();
    await untilPlace(page, ({ node }) => node === ATTENTION, "the parent");
    await eventually(async () =>
      assert.match(await page.locator(".about-node").innerText(), /merged from ranks 0 and 1/),
    );

    // The panel is higher when its handle is dragged, and gone when it is closed.
    const height = async () => (await page.locator(".details-panel").boundingBox())!.height;
    const before = await height();
    const handle = (await page.locator(".handle.rows").boundingBox())!;
    await page.mouse.move(handle.x + 200, handle.y + 2);
    await page.mouse.down();
    await page.mouse.move(handle.x + 200, handle.y - 98);
    await page.mouse.up();
    await eventually(async () => assert.ok((await height()) > before + 60));
    await page.locator(".details-bar .close").click();
    await eventually(async () => assert.equal(await page.locator(".details-panel").isVisible(), false));
    await page.keyboard.press("v");
    await page.locator(".details-panel").waitFor();
  });
});

test("the picture is moved and zoomed by wheel, drag, keys and its small picture", async () => {
  await viewer({ ...BAD, open: { target: [BLOCK, ATTENTION], golden: [] } }, async (page) => {
    await drawn(page);
    const box = (await page.locator(".boxes").first().boundingBox())!;
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    const first = await camera(page);
    await page.mouse.move(x, y);
    await page.mouse.wheel(0, 120);
    await until(async () => (await camera(page)).y > first.y, "the wheel moves it");
    // One turn after the other: turns that wait would overtake what is done next.
    const turned = async (by: number) => {
      const { scale } = await camera(page);
      await page.mouse.wheel(0, by);
      await eventually(async () => assert.notEqual((await camera(page)).scale, scale));
      return (await camera(page)).scale;
    };
    await page.keyboard.down("Control");
    // In and out beyond any use.
    let scale = 1;
    while (scale < 50) scale = await turned(-400);
    while (scale > 0.01) scale = await turned(400);
    await page.keyboard.up("Control");
    await page.getByRole("button", { name: "Fit width" }).click();
    await eventually(async () => assert.ok((await camera(page)).scale > 0.1));
    const fitted = await camera(page);
    await page.mouse.move(x, y);
    await page.mouse.down();
    await page.mouse.move(x + 60, y + 30, { steps: 4 });
    await page.mouse.up();
    await eventually(async () => {
      const { x: left, y: top } = await camera(page);
      assert.ok(left < fitted.x && top < fitted.y);
    });
    await frames(page);
    const dragged = await camera(page);
    assert.equal(placeNow(page).node, null, "a drag chooses nothing");
    await page.keyboard.press("w");
    await eventually(async () => assert.ok((await camera(page)).scale > dragged.scale));
    await page.keyboard.press("s");
    await eventually(async () => assert.ok(Math.abs((await camera(page)).scale - dragged.scale) < 1e-9));
    const before = (await camera(page)).x;
    await page.keyboard.press("d");
    await eventually(async () => assert.ok((await camera(page)).x > before));
    await page.keyboard.press("a");
    await page.keyboard.press("0");
    // Where all of the graph is in view, the small picture gives way; further in, it is there.
    await page.locator(".pane").first().locator(".minimap.idle").waitFor({ state: "attached" });
    for (let turn = 0; turn < 6; turn++) await page.keyboard.press("w");
    await page.locator(".pane").first().locator(".minimap:not(.idle)").waitFor();
    const near = await camera(page);
    const map = (await page.locator(".minimap").first().boundingBox())!;
    await eventually(async () => assert.ok((await coloursOf(page, ".minimap")) > 3));
    await page.mouse.click(map.x + 20, map.y + 40);
    await eventually(async () => assert.notDeepEqual(await camera(page), near));
    // Of one side, and of both.
    const maps = () => page.locator(".minimap").evaluateAll((all) => all.map((map) => (map as HTMLElement).hidden));
    await page.locator(".map-switch").first().click();
    await eventually(async () => assert.deepEqual(await maps(), [true, false]));
    await page.locator(".map-switch").first().click();
    await eventually(async () => assert.deepEqual(await maps(), [false, false]));
    await page.getByRole("button", { name: "Minimaps" }).click();
    await eventually(async () => assert.deepEqual(await maps(), [true, true]));
    // The splitter gives one side more room.
    const width = async () => (await page.locator(".pane").first().boundingBox())!.width;
    const wide = await width();
    const splitter = (await page.locator(".handle.columns").boundingBox())!;
    await page.mouse.move(splitter.x + 2, splitter.y + 50);
    await page.mouse.down();
    await page.mouse.move(splitter.x + 150, splitter.y + 50);
    await page.mouse.up();
    await eventually(async () => assert.ok((await width()) > wide + 100));
    await page.locator(".handle.columns").focus();
    await page.keyboard.press("ArrowLeft");
    await until(async () => (await width()) < wide + 140, "keys move it too");
  });
});

test("two fingers zoom", async () => {
  await viewer(
    { ...BAD, panel: "none" },
    async (page) => {
      await drawn(page);
      const before = await camera(page);
      const client = await page.context().newCDPSession(page);
      const box = (await page.locator(".boxes").first().boundingBox())!;
      const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
      const touch = (type: "touchStart" | "touchMove" | "touchEnd", apart: number) =>
        client.send("Input.dispatchTouchEvent", {
          type,
          touchPoints:
            type === "touchEnd"
              ? []
              : [
                  { x: x - apart, y, id: 1 },
                  { x: x + apart, y, id: 2 },
                ],
        });
      await touch("touchStart", 20);
      for (const apart of [30, 40, 50, 60]) await touch("touchMove", apart);
      await touch("touchEnd", 0);
      await until(async () => (await camera(page)).scale > before.scale * 1.5, "it zooms");
    },
    { hasTouch: true, viewport: NARROW },
  );
});

test("colours follow the answer, the reference's index or overflow, and its ranges can be changed", async () => {
  await viewer(BAD, async (page) => {
    await drawn(page);
    const pixels = async () =>
      page
        .locator(".boxes")
        .first()
        .evaluate((canvas) => (canvas as HTMLCanvasElement).toDataURL());
    await page.locator(".legend", { hasText: "Introduced" }).waitFor();
    const verdict = await pixels();
    const select = page.locator(".choice", { hasText: "Colour by" }).locator("select");
    await select.selectOption("index");
    await page.locator(".legend", { hasText: "0.2 – 0.6" }).waitFor();
    await until(async () => (await pixels()) !== verdict, "other colours");
    const index = await pixels();
    await untilPlace(page, ({ colour }) => colour === "index", "the colours");
    await page.getByRole("button", { name: "Edit the ranges" }).click();
    const low = page.locator("dialog.ranges .range-row").nth(1).locator("input.number").first();
    await low.fill("0.1");
    await page.locator("dialog").getByRole("button", { name: "Apply" }).click();
    await eventually(async () => assert.match(await page.locator("dialog .fault").innerText(), /not overlap/));
    await low.fill("0.25");
    await page.locator("dialog .range-row").nth(2).locator("input[type=color]").fill("#00ff00");
    await page.locator("dialog").getByRole("button", { name: "Apply" }).click();
    await page.locator(".legend", { hasText: "0.25 – 0.6" }).waitFor();
    await until(async () => (await pixels()) !== index, "the new range is drawn");
    await select.selectOption("overflow");
    await page.locator(".legend", { hasText: "Critical" }).waitFor();
    await page.goBack();
    await page.locator(".legend", { hasText: "0.25 – 0.6" }).waitFor();
  });
});

test("micro steps are chosen", async () => {
  await viewer(BAD, async (page) => {
    await drawn(page);
    const blocks = () =>
      page.evaluate(() => window.msprobe!.workspace!.graph.trees.target?.root?.children.map(({ name }) => name) ?? []);
    const all = (await blocks()).length;
    await page.locator(".choice", { hasText: "Micro step" }).locator("select").selectOption("1");
    await until(async () => (await blocks()).length < all, "fewer blocks");
    await eventually(async () => assert.ok((await blocks()).every((name) => /layers\.[135]\.|Apis/.test(name))));
    await untilPlace(page, ({ micro }) => micro === 1, "the micro step");
  });
});
