// Driving the viewer in a browser: opening it, finding boxes on its canvases, and reading its address.

import assert from "node:assert/strict";

import type { Browser, BrowserContextOptions, Page } from "playwright-core";

import type { App } from "../../src/viewer/app";
import type { SideName } from "../../src/viewer/api";
import { emptyPlace, type Place, placeFromHash, placeToHash } from "../../src/viewer/place";
import { DESKTOP, eventually, frames, PATIENCE_MS } from "../browser";

declare global {
  interface Window {
    msprobe?: App;
    // Everything the page told its reader in passing.
    told?: string[];
  }
}

export const hashOf = (patch: Partial<Place>): string => `#${placeToHash({ ...emptyPlace(), ...patch })}`;

// Opens the viewer, does something with it, and makes sure that it complained of nothing and asked nobody else.
export async function withViewer(
  browser: Browser,
  address: string,
  patch: Partial<Place>,
  act: (page: Page) => Promise<void>,
  options: BrowserContextOptions & { allowed?: RegExp } = {},
): Promise<void> {
  const { allowed, ...more } = options;
  const context = await browser.newContext({ viewport: DESKTOP, locale: "en-US", ...more });
  const complaints: string[] = [];
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.addInitScript(listenToToasts);
  page.on("console", (message) => {
    const text = message.text();
    if (["error", "warning"].includes(message.type()) && !allowed?.test(text)) complaints.push(text);
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => {
    if (!request.url().startsWith(address) && !/^(data|blob|file):/.test(request.url()))
      complaints.push(`asks for ${request.url()}`);
  });
  await page.goto(address.startsWith("file:") ? `${address}${hashOf(patch)}` : `${address}/${hashOf(patch)}`);
  try {
    await act(page);
  } catch (error) {
    if (error instanceof Error && complaints.length) error.message += `\nthe page said: ${complaints.join("\n")}`;
    throw error;
  } finally {
    await context.close();
  }
  assert.deepEqual(complaints, []);
}

// Small messages are gone before a busy machine looks for them.
function listenToToasts(): void {
  const told: string[] = [];
  window.told = told;
  new MutationObserver((changes) => {
    for (const { addedNodes } of changes)
      for (const node of Array.from(addedNodes))
        if (node instanceof HTMLElement && node.classList.contains("toast")) told.push(node.innerText);
  }).observe(document, { childList: true, subtree: true });
}

export async function told(page: Page, what: RegExp): Promise<void> {
  await eventually(async () => assert.match(((await page.evaluate(() => window.told)) ?? []).join("\n"), what));
}

export const placeNow = (page: Page): Place => placeFromHash(new URL(page.url()).hash);

// Waits until the address says something.
export async function untilPlace(page: Page, is: (place: Place) => boolean, what: string): Promise<Place> {
  for (const patience = Date.now() + PATIENCE_MS; Date.now() < patience;) {
    const place = placeNow(page);
    if (is(place)) return place;
    await page.waitForTimeout(50);
  }
  throw new Error(`the address never said ${what}: ${page.url()}`);
}

export async function drawn(page: Page, side: SideName = "target"): Promise<void> {
  await page.waitForFunction((which) => {
    const { workspace } = window.msprobe ?? {};
    return Boolean(workspace?.graph.trees[which]?.root && workspace.graph.panes[which].drawn.boxes > 0);
  }, side);
}

// Where a box is on the screen, once it is there; whether it is in view.
export async function boxPlace(page: Page, side: SideName, name: string): Promise<{ x: number; y: number }> {
  await page.waitForFunction(
    ([which, wanted]) => {
      const graph = window.msprobe?.workspace?.graph;
      const tree = graph?.trees[which];
      let node = tree?.byName.get(wanted);
      if (!node || !graph || window.msprobe?.working) return false;
      for (node = node.parent ?? undefined; node; node = node.parent ?? undefined) if (!node.isOpen) return false;
      return true;
    },
    [side, name] as const,
  );
  // Drawn after everything that was asked for.
  await frames(page);
  return page.evaluate(
    ([which, wanted]) => {
      const { panes, trees } = window.msprobe!.workspace!.graph;
      return panes[which].screenPlace(trees[which]!.byName.get(wanted)!);
    },
    [side, name] as const,
  );
}

// As a reader would scroll there first.
async function inViewPlace(page: Page, side: SideName, name: string): Promise<{ x: number; y: number }> {
  if (!(await isInView(page, side, name)))
    await page.evaluate(
      ([which, wanted]) => {
        const { panes, trees } = window.msprobe!.workspace!.graph;
        panes[which].centre(trees[which]!.byName.get(wanted)!);
      },
      [side, name] as const,
    );
  return boxPlace(page, side, name);
}

export async function clickBox(
  page: Page,
  side: SideName,
  name: string,
  button: "left" | "right" = "left",
): Promise<void> {
  const { x, y } = await inViewPlace(page, side, name);
  await page.mouse.click(x, y, { button });
}

export async function openBox(page: Page, side: SideName, name: string): Promise<void> {
  const { x, y } = await inViewPlace(page, side, name);
  await page.mouse.dblclick(x, y);
}

export async function openNames(page: Page, side: SideName): Promise<string[]> {
  return page.evaluate((which) => window.msprobe!.workspace!.graph.trees[which]!.openNames(), side);
}

// Searches for names, and waits until those that are listed are the ones that were asked for.
export async function searchFor(page: Page, text: string): Promise<void> {
  await page.keyboard.press("/");
  await page.locator(".searching .search").fill(text);
  await untilPlace(page, ({ search }) => search.q === text, "what is searched for");
  await eventually(async () => {
    const names = await page.locator(".searching .node-name").allTextContents();
    assert.ok(names.length > 0 && names.every((name) => name.toLowerCase().includes(text.toLowerCase())), text);
  });
}

export async function isInView(page: Page, side: SideName, name: string): Promise<boolean> {
  const { x, y } = await boxPlace(page, side, name);
  // Neither outside nor below something else.
  return page.evaluate(
    ([left, top, place]) => document.elementFromPoint(left, top) === document.querySelectorAll(".boxes")[place],
    [x, y, side === "target" ? 0 : 1] as const,
  );
}

// Waits until something holds that a canvas gives no event for.
export async function until(is: () => Promise<boolean>, what: string): Promise<void> {
  for (const patience = Date.now() + PATIENCE_MS; Date.now() < patience;) {
    if (await is()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`never: ${what}`);
}
