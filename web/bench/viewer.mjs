// What a reader of a large graph waits for, measured in Chromium: `node bench/viewer.mjs ADDRESS FILE NODE…` opens a graph of a
// viewer that is served, opens the nodes in it, moves the picture, and prints what that took as JSON. Asked by bench/viewer.py.

import { chromium } from "playwright-core";

const [address, file, ...nodes] = process.argv.slice(2);
if (!address || !file) throw new Error("give the address of a viewer and the id of a graph");

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"],
});
try {
  const page = await browser.newPage({ viewport: { width: 1360, height: 1500 } });
  page.setDefaultTimeout(120000);
  await page.goto(`${address}#file=${file}&panel=none&left=none&colour=index`);
  const drawn = await page.waitForFunction(() => {
    const graph = window.msprobe?.workspace?.graph;
    return graph?.panes.target.drawn.boxes > 0 && graph.panes.golden.drawn.boxes > 0 ? performance.now() : 0;
  });
  const firstGraphMs = await drawn.jsonValue();
  const firstPaintMs = await page.evaluate(
    () => performance.getEntriesByName("first-contentful-paint").at(0)?.startTime ?? null,
  );
  const openMs = await page.evaluate(async (names) => {
    const begun = performance.now();
    await window.msprobe.workspace.graph.trees.target.openAll(names);
    return performance.now() - begun;
  }, nodes);
  // As many boxes as are told apart, and as many as are read.
  const moved = {};
  for (const [name, scale] of [
    ["many", 0.08],
    ["readable", 0.5],
  ])
    moved[name] = await page.evaluate(async (zoom) => {
      const pane = window.msprobe.workspace.graph.panes.target;
      pane.fitAll();
      pane.zoom(zoom / pane.camera.scale, 0, 0);
      const nextFrame = () => new Promise((resolve) => requestAnimationFrame(resolve));
      await nextFrame();
      let last = await nextFrame();
      const times = [];
      for (let at = 0; at < 200; at++) {
        pane.pan(at % 2 ? 3 : -3, at % 30 < 15 ? 4 : -4);
        const now = await nextFrame();
        times.push(now - last);
        last = now;
      }
      times.sort((a, b) => a - b);
      return { boxes: pane.drawn.boxes, medianMs: times[100], p95Ms: times[190], worstMs: times[199] };
    }, scale);
  process.stdout.write(`${JSON.stringify({ firstPaintMs, firstGraphMs, openMs, ...moved })}\n`);
} finally {
  await browser.close();
}
