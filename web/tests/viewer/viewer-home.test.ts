// The viewer in a browser over graphs in memory: home, items that are no graphs, links, keys, themes and languages.

import assert from "node:assert/strict";
import { test } from "node:test";

import { coloursOf, eventually, frames, NARROW, screenshot, textOfFile } from "../browser";
import { clickBox, drawn, isInView, openNames, placeNow, told, until, untilPlace } from "./driver";
import { CULPRIT, itemOf, ROOT } from "./graphs";
import { ATTENTION, BAD, BLOCK, mock, viewer } from "./setup";

test("home shows what was found, by kind, with answers; many ranks are one line and one picture", async () => {
  await viewer({}, async (page) => {
    await page.locator(".kind").first().waitFor();
    const kinds = await page.locator(".kind").evaluateAll((all) => all.map((one) => (one as HTMLElement).dataset.kind));
    assert.deepEqual(kinds, ["graph", "comparison", "gradients", "keydata", "trend", "dump"]);
    const wide = page.locator('.item[data-id="wide"]');
    await eventually(async () => assert.match(await wide.innerText(), /Diverged.*64 ranks × 4 steps/s));
    await eventually(async () =>
      assert.match(await wide.locator("code").innerText(), new RegExp(CULPRIT.replaceAll(".", "\\."))),
    );
    await eventually(async () => assert.ok((await coloursOf(page, '.item[data-id="wide"] canvas')) >= 2));
    await eventually(async () =>
      assert.match(await page.locator('.item[data-id="broken"]').innerText(), /not a database/),
    );
    await page.locator(".notes summary").click();
    await eventually(async () => assert.match(await page.locator(".notes").innerText(), /a link, not followed/));
    await screenshot(page, "viewer-home");
    // A cell opens its rank and step, at the culprit.
    const cells = page.locator('.item[data-id="small"] canvas');
    await cells.scrollIntoViewIfNeeded();
    const box = (await cells.boundingBox())!;
    await page.mouse.click(box.x + 3, box.y + box.height - 3);
    const place = await untilPlace(page, ({ file }) => file === "small", "small");
    assert.deepEqual([place.step, place.rank, place.node], [1, 0, CULPRIT]);
    await page.goBack();
    await page.locator(".kind").first().waitFor();
    // What was made since is there when one comes back.
    mock.items.push(itemOf("later", "keydata"));
    await page.locator(".home-button").click();
    await page.locator('.item[data-id="later"]').waitFor();
    mock.items.pop();
    await page.locator(".home-button").click();
    await page.locator('.item[data-id="later"]').waitFor({ state: "detached" });
    await page.locator(".search").fill("keydata");
    await page.locator(".count", { hasText: /^1 item$/ }).waitFor();
  });
});

test("reports, matrices and tables of items that are no graphs", async () => {
  await viewer({}, async (page) => {
    await page.locator('.item[data-id="compared"] .report').click();
    await page.frameLocator("iframe.report-frame").locator("h1", { hasText: "The report" }).waitFor();
    assert.equal(await page.locator("iframe").getAttribute("sandbox"), "allow-scripts allow-downloads");
    await page.locator(".tab", { hasText: "Tables" }).click();
    await page.locator(".plain-table td", { hasText: "<b>not bold</b>" }).waitFor();
    await eventually(async () => assert.match(await page.locator(".answer").innerText(), /Diverged at/));
    await page.goBack();
    await page.locator("iframe").waitFor();
    await page.locator(".home-button").click();
    await page.locator('.item[data-id="grads"] .item-title').click();
    await page.locator(".figure canvas[data-spots='12']").waitFor();
    await eventually(async () => assert.ok((await coloursOf(page, ".figure canvas")) > 4));
    await page.locator(".figure canvas").focus();
    await page.keyboard.press("ArrowRight");
    await eventually(async () =>
      assert.match(await page.locator(".reading").innerText(), /layer\.0\.weight, step 0: 1\.000/),
    );
    const kept = async () => {
      const files: string[] = [];
      for (const name of [".keep-svg", ".keep-png"]) {
        const [download] = await Promise.all([page.waitForEvent("download"), page.locator(`.figure ${name}`).click()]);
        files.push(textOfFile(await download.path()));
      }
      assert.match(files[0], /^<svg [^]*layer\.0\.weight/);
      assert.equal(files[1].slice(1, 4), "PNG");
    };
    await kept();
    await page.locator(".home-button").click();
    await page.locator('.item[data-id="keys"] .item-title').click();
    await page.locator(".figure canvas[data-spots='12']").waitFor();
    await kept();
  });
});

test("trends of training: targets over steps, and one of them over steps and ranks", async () => {
  await viewer(
    {},
    async (page) => {
      await page.locator('.item[data-id="trends"]', { hasText: "3 ranks × 5 steps" }).waitFor();
      await page.locator('.item[data-id="trends"] .item-title').click();
      const map = page.locator(".trend > .figure");
      await map.locator("canvas[data-spots='20']").waitFor();
      await eventually(async () => assert.ok((await coloursOf(page, ".trend > .figure canvas")) > 4));
      // Another statistic, only what has a tag, only some names; all of it stands in the address.
      await page.locator(".trend select[name=statistic]").selectOption("max");
      await untilPlace(page, ({ measure }) => measure === "max", "the statistic");
      await page.locator(".trend select[name=rank]").selectOption("2");
      await page.locator(".trend select[name=tag]").selectOption("weight");
      await map.locator("canvas[data-spots='10']").waitFor();
      await page.locator(".trend .search").fill("1.mlp");
      await map.locator("canvas[data-spots='5']").waitFor();
      await map.locator("canvas").focus();
      await page.keyboard.press("ArrowRight");
      await map.locator(".reading", { hasText: "1.mlp.weight, Step 0: 12.02" }).waitFor();
      await page.keyboard.press("Enter");
      const { rank, node, measure, search } = await untilPlace(page, (place) => place.node !== null, "the target");
      assert.deepEqual([rank, node, measure, search.q, search.facets.tag], [2, "2", "max", "1.mlp", "weight"]);
      await page.locator(".trend-one .figure canvas[data-spots='15']").first().waitFor();
      await eventually(async () => assert.equal(await page.locator(".trend-one .figure").count(), 2));
      await screenshot(page, "viewer-trend");
      for (const name of ["SVG", "PNG"]) {
        const [download] = await Promise.all([
          page.waitForEvent("download"),
          page.locator(".trend-one .figure").first().getByRole("button", { name }).click(),
        ]);
        assert.match(textOfFile(await download.path()), name === "SVG" ? /^<svg [^]*rank 2/ : /^.PNG/);
      }
      const other = await page.context().newPage();
      await other.goto(page.url());
      await other.locator(".trend-one h3", { hasText: "1.mlp.weight · exp_avg, max" }).waitFor();
      await other.locator(".trend > .figure canvas[data-spots='5']").waitFor();
      await page.goBack();
      await page.locator(".trend-one").waitFor({ state: "hidden" });
      // Names are text; what cannot be read says why.
      await page.locator(".trend .search").fill("odd");
      await map.locator("canvas[data-spots='0'], canvas[data-spots='5']").waitFor();
      await eventually(async () => assert.equal(await page.locator("b", { hasText: "odd" }).count(), 0));
      await page.locator(".home-button").click();
      await page.locator('.item[data-id="broken"] .item-title').click();
      await told(page, /not a database\s+make it again/);
    },
    { allowed: /400/ },
  );
});

test("all of it by keys, with a palette and a page of keys", async () => {
  await viewer({ file: "small", step: 0, rank: 0 }, async (page) => {
    await drawn(page);
    await page.keyboard.press("ArrowDown");
    await untilPlace(page, ({ node }) => node === ROOT, "the root");
    await page.keyboard.press("ArrowDown");
    await untilPlace(page, ({ node }) => node === BLOCK, "the first block");
    await page.keyboard.press("Enter");
    await untilPlace(page, ({ open }) => open.target.includes(BLOCK), "it opens");
    await page.keyboard.press("ArrowRight");
    await untilPlace(page, ({ node }) => node === ATTENTION, "inside");
    await page.keyboard.press("ArrowLeft");
    await untilPlace(page, ({ node }) => node === BLOCK, "outside");
    await page.keyboard.press("ArrowLeft");
    await untilPlace(page, ({ open }) => !open.target.includes(BLOCK), "closed");
    await page.keyboard.press("]");
    await untilPlace(page, ({ step }) => step === 1, "the next step");
    await page.keyboard.press("[");
    await untilPlace(page, ({ step }) => step === 0, "the step before");
    await page.keyboard.press("}");
    await untilPlace(page, ({ rank }) => rank === 1, "the next rank");
    await page.keyboard.press("{");
    await untilPlace(page, ({ rank }) => rank === 0, "the rank before");
    await page.keyboard.press("?");
    await page.locator("dialog.help", { hasText: "Next finding" }).waitFor();
    await page.keyboard.press("Escape");
    await eventually(async () => assert.equal(await page.locator("dialog").count(), 0));
    await page.keyboard.press("Control+k");
    await page.keyboard.type("first div");
    await page.keyboard.press("Enter");
    await told(page, /./);
    await page.keyboard.press("Control+k");
    await page.keyboard.type("linear.77");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.locator(".said", { hasText: /found/ }).waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("h");
    await page.locator(".kind").first().waitFor();
  });
});

test("a link shows the same to another window, and windows are independent", async () => {
  await viewer(
    {
      ...BAD,
      open: { target: [BLOCK, ATTENTION], golden: [BLOCK] },
      node: CULPRIT,
      colour: "index",
      panel: "stacks",
      left: "search",
      search: { q: "mlp", regex: false, matchCase: false, facets: { side: "target" } },
    },
    async (page) => {
      await drawn(page);
      await page.locator(".stacks").waitFor();
      await page.locator(".said", { hasText: /found/ }).waitFor();
      const other = await page.context().newPage();
      await other.goto(page.url());
      await drawn(other);
      await eventually(async () => assert.ok(await isInView(other, "target", CULPRIT)));
      await eventually(async () => assert.deepEqual(await openNames(other, "target"), [BLOCK, ATTENTION]));
      await eventually(async () => {
        await frames(page);
        assert.deepEqual({ ...placeNow(other), open: null }, { ...placeNow(page), open: null });
      });
      await other.keyboard.press("}");
      await untilPlace(other, ({ rank }) => rank === 1, "rank 1");
      await frames(page);
      assert.equal(placeNow(page).rank, 0);
      // Back: rank, then nodes, then what was open.
      await other.goBack();
      await untilPlace(other, ({ rank }) => rank === 0, "rank 0 again");
      await clickBox(page, "target", ATTENTION);
      await untilPlace(page, ({ node }) => node === ATTENTION, "another node");
      await page.goBack();
      await untilPlace(page, ({ node }) => node === CULPRIT, "the node before");
      await page.locator(".details-name", { hasText: CULPRIT }).waitFor();
      await page.goForward();
      await page.locator(".details-name", { hasText: ATTENTION }).waitFor();
    },
  );
});

test("a graph that is being made is waited for; one that cannot be read says why", async () => {
  await viewer(
    {},
    async (page) => {
      await page.locator('.item[data-id="raw"]').waitFor();
      mock.notYet = Infinity;
      await page.locator('.item[data-id="raw"] .item-title').click();
      await page.locator(".waiting", { hasText: "25 %" }).waitFor();
      mock.notYet = 0;
      await drawn(page);
      // One side only, and nothing to match.
      await eventually(async () => assert.equal(await page.locator(".pane:visible").count(), 1));
    },
    { allowed: /503/ },
  );
});

test("light and dark, colours for all eyes, Chinese, a small screen and a phone", async () => {
  await viewer({ ...BAD, node: CULPRIT }, async (page) => {
    await drawn(page);
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await ground();
    await page.locator(".theme").click();
    await page.locator(".theme").click();
    await until(async () => (await ground()) !== light, "dark by the switch");
    await screenshot(page, "viewer-dark");
    const red = await page.evaluate(() => document.documentElement.style.getPropertyValue("--red-line"));
    await page.locator(".distinct").click();
    await eventually(async () =>
      assert.notEqual(await page.evaluate(() => document.documentElement.style.getPropertyValue("--red-line")), red),
    );
    await screenshot(page, "viewer-distinct");
    await page.locator(".language").click();
    await page.locator(".tab", { hasText: "对比详情" }).waitFor();
    await drawn(page);
    await eventually(async () => assert.ok(await isInView(page, "target", CULPRIT)));
  });
  await viewer(
    { ...BAD, node: CULPRIT },
    async (page) => {
      await drawn(page);
      await page.locator(".values").first().waitFor();
      await eventually(async () => assert.equal(await page.locator("html").getAttribute("lang"), "zh"));
      await screenshot(page, "viewer-chinese");
    },
    { locale: "zh-CN" },
  );
  await viewer(
    { ...BAD, node: CULPRIT },
    async (page) => {
      await drawn(page);
      await page.locator(".values").first().waitFor();
      await eventually(async () => {
        const box = (await page.locator(".boxes").first().boundingBox())!;
        assert.ok(box.height > 300 && box.width > 350, `${box.width} x ${box.height}`);
      });
      await eventually(async () =>
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)),
      );
      // Every screen can be gone to without moving the bar.
      await eventually(async () => {
        const tab = (await page.locator('.tab[data-screen="pictures"]').boundingBox())!;
        const bar = (await page.locator(".top-bar").boundingBox())!;
        assert.ok(tab.x >= bar.x && tab.x + tab.width <= bar.x + bar.width, "the tabs are in view");
        assert.ok((await page.locator(".top").boundingBox())!.height < 60, "one row");
      });
      await screenshot(page, "viewer-1366");
    },
    { viewport: { width: 1366, height: 768 }, colorScheme: "dark" },
  );
  await viewer(
    { ...BAD, node: CULPRIT },
    async (page) => {
      await drawn(page);
      await page.locator(".values").first().waitFor();
      await eventually(async () =>
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)),
      );
      await screenshot(page, "viewer-phone");
      await page.locator(".home-button").click();
      await page.locator(".item").first().waitFor();
      await eventually(async () =>
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)),
      );
      await screenshot(page, "viewer-phone-home");
    },
    { viewport: NARROW, hasTouch: true },
  );
});
