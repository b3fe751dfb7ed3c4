// A browser for the tests of a file, and a server of its own for each of them: matches made by one are no other's.

import assert from "node:assert/strict";
import { after, before } from "node:test";

import type { Browser, Page } from "playwright-core";

import { launch } from "../browser";
import { withViewer } from "./driver";
import { type Mock, startMock } from "./mock";

export const BLOCK = "Module.layers.0.Block.forward.0";
export const ATTENTION = "Module.layers.0.attention.Attention.forward.0";
export const COLLECTION = "Apis_Between_Modules.0";
export const BAD = { file: "small", step: 1, rank: 0 };

let browser: Browser | undefined;
export let mock: Mock;
before(async () => {
  browser = await launch();
});
after(async () => {
  await browser?.close();
});

export function openBrowser(): Browser {
  assert.ok(browser, "there is no browser");
  return browser;
}

export async function viewer(
  patch: Parameters<typeof withViewer>[2],
  act: (page: Page) => Promise<void>,
  options: Parameters<typeof withViewer>[4] = {},
): Promise<void> {
  mock = await startMock();
  try {
    await withViewer(openBrowser(), mock.address, patch, act, options);
  } finally {
    mock.close();
  }
}

export const camera = (page: Page, side: "target" | "golden" = "target") =>
  page.evaluate((which) => ({ ...window.msprobe!.workspace!.graph.panes[which].camera }), side);
