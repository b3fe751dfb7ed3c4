import assert from "node:assert/strict";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { gunzipSync } from "node:zlib";

import type { Browser, Page } from "playwright-core";

import {
  coloursOf,
  columnTexts,
  compared,
  eventually,
  frames,
  golden,
  launch,
  NARROW,
  openTab,
  pageOf,
  scratch,
  screenshot,
  textOfFile,
  withPage,
} from "./browser";

let browser: Browser;
before(async () => {
  browser = await launch();
});
after(async () => {
  await browser.close();
});

// The pages, each made once.
const made = new Map<string, string>();
function once(name: string, make: () => string): string {
  const known = made.get(name) ?? make();
  made.set(name, known);
  return known;
}

const comparison = () =>
  once("comparison", () => {
    const of = (side: string) => golden("compare/tensor_real_l1_stack", side);
    return compared(of("npu"), of("bench"));
  });

const longComparison = () =>
  once("long comparison", () => {
    const folder = scratch();
    const sides = ["npu", "bench"].map((side) => {
      const file = path.join(folder, side, "dump.json");
      mkdirSync(path.dirname(file));
      writeFileSync(file, gunzipSync(readFileSync(golden("compare/medium_500_apis", side, "dump.json.gz"))));
      return file;
    });
    return compared(sides[0], sides[1]);
  });

const gradients = () =>
  once("gradients", () => {
    const output = path.join(scratch(), "out");
    const of = (run: string) => golden("grad_probe/compare_two_runs", run);
    return pageOf(output, "grad", "compare", of("run_a"), of("run_b"), "-o", output, "--pictures", "none");
  });

const overflow = () =>
  once("overflow", () => {
    const output = path.join(scratch(), "out");
    return pageOf(output, "overflow_check", "-i", golden("nan_analyze/p2p_pipeline/input"), "-o", output);
  });

const keyData = () =>
  once("key data", () => {
    const output = path.join(scratch(), "out");
    const of = (run: string) => golden("rl_collect/grpo_two_ranks", run);
    return pageOf(output, "rl", "compare", of("dump_a"), of("dump_b"), "-o", output, "--format", "html");
  });

const PAGES = { comparison, gradients, overflow, keyData };

const shownRows = async (page: Page): Promise<string> => (await page.locator(".count").textContent()) ?? "";

test("a comparison begins with its answer and the evidence", async () => {
  await withPage(browser, comparison(), {}, async (page) => {
    await page.locator(".verdict .paragraphs p").first().waitFor();
    await eventually(async () => assert.match(await page.locator("h1").innerText(), /comparison of two dumps/));
    await eventually(async () => assert.ok((await page.locator(".row").count()) > 5));
    await eventually(async () => assert.equal(await page.locator(".row.evidence.chosen").count(), 1));
    // The panel beside the grid shows the call stack of that row.
    await eventually(async () => assert.match(await page.locator("aside.details pre").first().innerText(), /line \d+/));
    await screenshot(page, "comparison");
    await page.locator("aside .close").click();
    await eventually(async () => assert.equal(await page.locator("aside.details").isVisible(), false));
    // Closing gives the keys to the grid.
    await page.keyboard.press("Enter");
    await page.locator("aside.details").waitFor();
    await page.keyboard.press("Escape");
    await eventually(async () => assert.equal(await page.locator("aside.details").isVisible(), false));
  });
});

test("rows are sorted, filtered and exported", async () => {
  await withPage(browser, longComparison(), {}, async (page) => {
    const all = await shownRows(page);
    assert.match(all, /^[\d,]+ rows$/);
    const total = Number(all.replace(/\D/g, ""));
    assert.ok(total > 1000);
    // No more rows in the document than fit the window.
    await eventually(async () => assert.ok((await page.locator(".row").count()) < 120));

    const before = await columnTexts(page, "NPU Name");
    const header = page.locator(".head .name", { hasText: "NPU Name" });
    await header.click();
    await page.locator(".head [aria-sort=ascending]").waitFor();
    let upwards: string[] = [];
    const key = (text: string) => text.toLowerCase().replace(/\d+/g, (digits) => digits.padStart(10, "0"));
    await eventually(async () => {
      upwards = await columnTexts(page, "NPU Name");
      assert.deepEqual(
        upwards.map(key),
        upwards.map(key).sort((a, b) => (a < b ? -1 : a > b ? 1 : 0)),
      );
    });
    await header.click();
    await page.locator(".head [aria-sort=descending]").waitFor();
    await eventually(async () => assert.ok(key((await columnTexts(page, "NPU Name"))[0]) > key(upwards[0])));
    await page.getByRole("button", { name: "Reset" }).click();
    await eventually(async () => assert.deepEqual((await columnTexts(page, "NPU Name"))[0], before[0]));

    await page.locator(".search").fill("conv2d");
    await page.locator(".count", { hasText: " of " }).waitFor();
    await eventually(async () => {
      for (const name of await columnTexts(page, "NPU Name")) assert.match(name, /conv2d/i);
    });
    await page.locator(".search").fill("");
    await page.locator(".count", { hasText: all }).waitFor();

    await page.getByLabel("filter: NPU Name").fill("=nobody is called so");
    await page.locator(".empty", { hasText: "No rows match" }).waitFor();
    await page.getByRole("button", { name: "Reset" }).click();

    // One colour less, and what is left is what is exported.
    const chip = page.locator(".chip:enabled").first();
    const without = total - Number((await chip.locator("b").innerText()).replace(/\D/g, ""));
    await chip.click();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Export csv" }).click(),
    ]);
    const csv = textOfFile(await download.path());
    assert.ok(csv.startsWith("\ufeffAnswer,"));
    assert.ok(csv.trimEnd().split("\n").length >= without + 1);

    // To the last row.
    await page.getByRole("button", { name: "Reset" }).click();
    await page.locator(".grid").focus();
    await page.keyboard.press("Control+End");
    await page.locator(`.row[data-at="${total - 1}"].chosen`).waitFor();
    await screenshot(page, "comparison-long");
  });
});

test("columns are switched on and off", async () => {
  await withPage(browser, comparison(), {}, async (page) => {
    const headers = () => page.locator(".head .label").allTextContents();
    await eventually(async () => assert.ok(!(await headers()).includes("Bench Name")));
    await page.locator(".menu summary").click();
    await page.locator(".menu label", { hasText: "Bench Name" }).first().locator("input").check();
    await eventually(async () => assert.ok((await headers()).includes("Bench Name")));
    await page.locator(".menu").getByRole("button", { name: "Default" }).click();
    await eventually(async () => assert.ok(!(await headers()).includes("Bench Name")));
    await page.locator("h1").click();
    await eventually(async () => assert.equal(await page.locator(".menu .list").isVisible(), false));
  });
});

test("curves are drawn, searched and enlarged", async () => {
  await withPage(browser, gradients(), {}, async (page) => {
    await page.locator(".card canvas").first().waitFor();
    await eventually(async () => assert.ok((await coloursOf(page, ".card canvas")) > 5));
    const cards = await page.locator(".card").count();
    assert.ok(cards > 1);
    const name = await page.locator(".card .called").last().innerText();
    await page.locator(".search").fill(name);
    await page.locator(".count", { hasText: " of " }).waitFor();
    await eventually(async () => assert.ok((await page.locator(".card").count()) < cards));
    await page.locator(".search").fill("");
    await page.locator(".count", { hasText: /^\d+ curves$/ }).waitFor();
    await page.getByRole("button", { name: "Same scale" }).click();
    await eventually(async () =>
      assert.equal(await page.getByRole("button", { name: "Same scale" }).getAttribute("aria-pressed"), "true"),
    );
    await screenshot(page, "gradients");

    await page.locator(".card").first().click();
    await page.locator("dialog[open] canvas").waitFor();
    await eventually(async () => assert.ok((await coloursOf(page, "dialog canvas")) > 5));
    await page.keyboard.press("ArrowRight");
    await eventually(async () => assert.match(await page.locator(".reading").innerText(), /^steps \d+: /));
    await screenshot(page, "gradients-enlarged");
    const first = await page.locator("dialog h2").innerText();
    await page.keyboard.press("ArrowDown");
    await eventually(async () => assert.notEqual(await page.locator("dialog h2").innerText(), first));
    await page.keyboard.press("Escape");
    await eventually(async () => assert.equal(await page.locator("dialog[open]").count(), 0));
    await openTab(page, "Parameters");
    await eventually(async () => assert.ok((await page.locator(".row").count()) > 1));
  });
});

test("a timeline is drawn, zoomed and followed", async () => {
  await withPage(browser, overflow(), {}, async (page) => {
    await page.locator(".picture .spot.origin").first().waitFor();
    await eventually(async () => assert.equal(await page.locator(".picture .lane-name").count(), 3));
    await eventually(async () => assert.ok((await page.locator(".picture .link").count()) > 0));
    await screenshot(page, "overflow");
    const shown = () => page.locator(".axis .shown").getAttribute("width");
    await page.getByRole("button", { name: "Show all" }).click();
    let whole = -1;
    // What is drawn twice alike is there to stay.
    await eventually(async () => {
      const last = whole;
      whole = Number(await shown());
      assert.ok(whole > 0 && whole === last);
    });
    await page.locator(".bar button", { hasText: "+" }).click();
    await page.waitForFunction(
      (width) => Number(document.querySelector(".axis .shown")?.getAttribute("width")) < width - 1,
      whole,
    );
    await page.keyboard.press("Tab");
    await page.getByRole("button", { name: "Next origin" }).click();
    await page.locator("aside.details h2").waitFor();
    await eventually(async () => assert.match(await page.locator("aside.details .place").innerText(), /origin/));
    await eventually(async () => assert.ok((await page.locator(".picture.choosing .link.lit").count()) > 0));
    // To where it went.
    const before = await page.locator("aside.details h2").innerText();
    await page.locator("aside .ends .button").first().click();
    await eventually(async () => assert.notEqual(await page.locator("aside.details h2").innerText(), before));
    await screenshot(page, "overflow-chosen");
  });
});

test("a tree is opened, closed and searched", async () => {
  await withPage(browser, overflow(), {}, async (page) => {
    await openTab(page, "Spread by origin");
    const nodes = page.locator(".tree summary, .tree li > p");
    await nodes.first().waitFor();
    const all = await nodes.count();
    assert.ok(all > 2);
    await screenshot(page, "overflow-tree");
    await page.locator(".tree summary").first().click();
    await eventually(async () => assert.ok((await page.locator(".tree summary:visible").count()) < all));
    await page.locator(".tree summary").first().click();
    const last = await nodes.last().locator("b").innerText();
    await page.locator(".search").fill(last);
    await page.locator(".count", { hasText: " of " }).waitFor();
    await page.locator(".tree b", { hasText: last }).first().waitFor();
    await page.locator(".search").fill("nobody is called so");
    await page.locator(".tree .empty").waitFor();
  });
});

test("key data are tables in Chinese and English", async () => {
  await withPage(browser, keyData(), {}, async (page) => {
    await openTab(page, "Rows");
    await eventually(async () =>
      assert.ok((await page.locator(".head .label").allTextContents()).some((label) => /[\u4e00-\u9fff]/.test(label))),
    );
    await eventually(async () => assert.ok((await page.locator(".row.bad").count()) > 0));
    await screenshot(page, "key-data");
  });
  await withPage(browser, keyData(), { locale: "zh-CN" }, async (page) => {
    await eventually(async () =>
      assert.match((await page.locator(".search").getAttribute("placeholder")) ?? "", /搜索/),
    );
    await eventually(async () => assert.equal(await page.locator("html").getAttribute("lang"), "zh"));
  });
});

for (const [name, make] of Object.entries(PAGES)) {
  test(`${name}: every tab fits a narrow window, and the dark`, async () => {
    await withPage(browser, make(), { viewport: NARROW, colorScheme: "dark" }, async (page) => {
      const tabs = await page.locator(".tab").count();
      for (let at = 0; at < tabs; at++) {
        await page.locator(".tab").nth(at).click();
        await page.locator(".tab[aria-selected=true]").nth(0).waitFor();
        await frames(page);
        await eventually(async () => {
          const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
          assert.ok(wide <= 0, `tab ${at} is ${wide} pixels too wide`);
        });
        await page.locator(".holder").scrollIntoViewIfNeeded();
        await screenshot(page, `${name}-narrow-${at}`);
      }
      const back = await page.evaluate(() =>
        getComputedStyle(document.body).backgroundColor.match(/\d+/g)?.map(Number),
      );
      assert.ok(back && Math.max(...back.slice(0, 3)) < 80, "the page is dark");
    });
    await withPage(browser, make(), { colorScheme: "dark" }, async (page) => {
      await page.locator(".tab").first().click();
      await frames(page);
      await screenshot(page, `${name}-dark`);
    });
  });

  test(`${name}: the answer is there without scripts, and on paper`, async () => {
    await withPage(browser, make(), { javaScriptEnabled: false }, async (page) => {
      await eventually(async () => assert.ok(await page.locator(".verdict .paragraphs p").first().isVisible()));
      await eventually(async () => assert.ok(await page.locator(".noscript").isVisible()));
      for (const words of await page.locator(".in-words").all()) assert.ok(await words.isVisible());
    });
    await withPage(browser, make(), {}, async (page) => {
      await page.emulateMedia({ media: "print" });
      await eventually(async () => assert.ok(await page.locator(".verdict .paragraphs p").first().isVisible()));
      for (const words of await page.locator(".in-words").all()) assert.ok(await words.isVisible());
    });
  });
}

test("names are shown as they are and never become markup", async () => {
  const folder = scratch();
  const nasty = "</script><img src=x onerror=document.title='caught'>权重&amp;";
  const sides = ["npu", "bench"].map((side) => {
    const to = path.join(folder, side);
    cpSync(golden("compare/tensor_real_l1_stack", side), to, { recursive: true });
    const file = path.join(to, "dump.json");
    writeFileSync(file, textOfFile(file).replaceAll("Functional.relu.0", `Functional.${nasty}.0`));
    return to;
  });
  await withPage(browser, compared(sides[0], sides[1]), {}, async (page) => {
    await page.locator(".search").fill("权重");
    await page.locator(".count", { hasText: " of " }).waitFor();
    await eventually(async () => {
      for (const name of await columnTexts(page, "NPU Name")) assert.ok(name.includes(nasty), name);
    });
    await eventually(async () => assert.match(await page.title(), /^msprobe/));
    await eventually(async () => assert.equal(await page.locator("img").count(), 0));
  });
});
