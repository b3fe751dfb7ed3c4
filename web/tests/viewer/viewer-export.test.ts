// An exported page: everything in one file, read from the disk without a server.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { eventually, scratch, textOfFile } from "../browser";
import { drawn, isInView, told, untilPlace, withViewer } from "./driver";
import { catalogueOf, CULPRIT, heldGraphs, HOSTILE, infoOf, itemOf } from "./graphs";
import { BAD, openBrowser } from "./setup";

// As the server writes it: style, data and program inline.
function exported(): string {
  const asset = (name: string) => readFileSync(path.resolve("../crates/viewer/assets", name), "utf8");
  const data = {
    catalogue: catalogueOf([itemOf("small", "graph"), itemOf("broken", "graph"), itemOf("compared", "comparison")]),
    graphs: {
      small: { info: infoOf("small", 2, 2), graphs: heldGraphs(2, 2) },
      broken: { error: "file is not a database", hint: null },
    },
    tables: {
      compared: { tables: [{ name: "t", headers: ["a"], rows: [["1"]], tones: ["bad"], isCut: false }], matrix: null },
    },
  };
  const policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:";
  const page = asset("index.html")
    .replace(/<link [^>]*viewer\.css[^>]*>/, "")
    .replace(/<script [^>]*viewer\.js[^>]*><\/script>/, "")
    .replace(
      "</head>",
      () =>
        `<meta http-equiv="Content-Security-Policy" content="${policy}"><style>${asset("viewer.css")}</style></head>`,
    )
    .replace(
      "</body>",
      () =>
        `<script type="application/json" id="embedded">${JSON.stringify(data).replaceAll("<", "\\u003c")}</script><script type="module">${asset("viewer.js").replaceAll("</script", "<\\/script")}</script></body>`,
    );
  const file = path.join(scratch(), "export.html");
  writeFileSync(file, page);
  return file;
}

test("an exported page shows graph, table, search and pictures, and changes nothing", async () => {
  await withViewer(openBrowser(), `file://${exported()}`, { ...BAD, node: CULPRIT }, async (page) => {
    await drawn(page);
    await eventually(async () => assert.ok(await isInView(page, "target", CULPRIT)));
    await page.locator(".values").first().waitFor();
    await page.keyboard.press("}");
    await untilPlace(page, ({ rank }) => rank === 1, "rank 1");
    await page.goBack();
    await untilPlace(page, ({ rank }) => rank === 0, "rank 0");
    await page.keyboard.press("/");
    await page.keyboard.type("linear.5.");
    await page.locator(".said", { hasText: /^8 found/ }).waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("t");
    await page.locator(".pairs-row.chosen", { hasText: CULPRIT }).waitFor();
    const [download] = await Promise.all([page.waitForEvent("download"), page.locator(".export-csv").click()]);
    assert.ok(textOfFile(await download.path()).includes(HOSTILE));
    await page.keyboard.press("i");
    await page.locator(".figure canvas[data-spots]").waitFor();
    await page.keyboard.press("m");
    await page.locator(".matching", { hasText: "cannot be changed" }).waitFor();
    await page.locator(".home-button").click();
    await page.locator('.item[data-id="compared"] .item-title').click();
    await page.locator(".plain-table td").first().waitFor();
    await page.locator(".home-button").click();
    await page.locator('.item[data-id="broken"] .item-title').click();
    await told(page, /not a database/);
  });
});
