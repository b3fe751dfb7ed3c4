// Pages made by the real binary from recorded dumps, opened in a real browser.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";

// npm runs scripts in the folder of package.json.
const root = path.resolve("..");
export const golden = (...parts: string[]): string => path.join(root, "tests/golden", ...parts);

const screens = path.resolve(".build/screens");

export function binary(): string {
  const found = [process.env.MSPROBE_BIN, path.join(root, "target/release/msprobe")].find(
    (file) => file && existsSync(file),
  );
  assert.ok(found, "there is no target/release/msprobe: run `make build`, or name another one by MSPROBE_BIN");
  return found;
}

// A folder that is gone after the tests.
export function scratch(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "msprobe-web-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

// Runs the binary and returns the page it leaves in `output`.
export function pageOf(output: string, ...args: string[]): string {
  const run = spawnSync(binary(), args, { encoding: "utf8" });
  const pages = existsSync(output) ? readdirSync(output).filter((name) => name.endsWith(".html")) : [];
  assert.equal(pages.length, 1, `msprobe ${args.join(" ")} left ${pages.length} pages\n${run.stdout}\n${run.stderr}`);
  return path.join(output, pages[0]);
}

export function compared(target: string, bench: string): string {
  const output = path.join(scratch(), "out");
  return pageOf(output, "compare", target, bench, "-o", output, "--format", "html");
}

export async function launch(): Promise<Browser> {
  // A fresh profile each time: that is what `launch` gives.
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

// How long something is waited for: a machine may be busy with other things, and nobody waits for what is there.
export const PATIENCE_MS = 60000;

export const DESKTOP = { width: 1360, height: 860 };
export const NARROW = { width: 390, height: 800 };

// Opens a page, does something with it, and makes sure that it complained of nothing and asked nobody.
export async function withPage(
  browser: Browser,
  file: string,
  options: BrowserContextOptions,
  act: (page: Page) => Promise<void>,
): Promise<void> {
  const context = await browser.newContext({ viewport: DESKTOP, locale: "en-US", ...options });
  const complaints: string[] = [];
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => {
    if (!/^(file|data|blob):/.test(request.url())) complaints.push(`asks for ${request.url()}`);
  });
  await page.goto(`file://${file}`);
  await act(page);
  await context.close();
  assert.deepEqual(complaints, []);
}

// A page shows what was done to it a moment later: what is expected is looked for again until it is there.
export async function eventually(expectation: () => Promise<void>): Promise<void> {
  const patience = Date.now() + PATIENCE_MS;
  for (;;) {
    try {
      await expectation();
      return;
    } catch (error) {
      if (Date.now() > patience) throw error;
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
  }
}

// Waits until what was asked for so far is drawn.
export async function frames(page: Page): Promise<void> {
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}

export async function screenshot(page: Page, name: string): Promise<void> {
  mkdirSync(screens, { recursive: true });
  await page.screenshot({ path: path.join(screens, `${name}.png`) });
}

export async function openTab(page: Page, name: string): Promise<void> {
  await page.locator(".tab", { hasText: name }).click();
}

// Texts of the first rows of a column of the grid that is shown.
export async function columnTexts(page: Page, header: string): Promise<string[]> {
  const headers = await page.locator(".head .label").allTextContents();
  const place = headers.indexOf(header);
  assert.ok(place >= 0, `no column ${header} in ${headers.join(", ")}`);
  return page
    .locator(".row")
    .evaluateAll(
      (rows, at) =>
        (rows as HTMLElement[])
          .sort((a, b) => Number(a.dataset.at) - Number(b.dataset.at))
          .map((row) => row.children[at].textContent),
      place,
    );
}

// How many different colours a canvas shows: one where nothing is drawn.
export async function coloursOf(page: Page, selector: string): Promise<number> {
  return page
    .locator(selector)
    .first()
    .evaluate((canvas) => {
      const { width, height } = canvas as HTMLCanvasElement;
      const pixels = (canvas as HTMLCanvasElement).getContext("2d")?.getImageData(0, 0, width, height).data;
      return new Set(new Uint32Array(pixels?.buffer ?? new ArrayBuffer(0))).size;
    });
}

export const textOfFile = (file: string): string => readFileSync(file, "utf8");
