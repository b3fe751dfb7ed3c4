// Handles between two parts that share some room: dragged, or moved by arrow keys.

import { element } from "../../parts/dom";

export function handle(
  way: "columns" | "rows",
  hint: string,
  moved: (pointer: { x: number; y: number }) => void,
  stepped: (by: number) => void,
): HTMLElement {
  const bar = element("div", `handle ${way}`);
  bar.tabIndex = 0;
  bar.title = hint;
  bar.setAttribute("role", "separator");
  bar.setAttribute("aria-label", hint);
  bar.setAttribute("aria-orientation", way === "columns" ? "vertical" : "horizontal");
  bar.addEventListener("pointerdown", (event) => {
    bar.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  bar.addEventListener("pointermove", (event) => {
    if (bar.hasPointerCapture(event.pointerId)) moved({ x: event.clientX, y: event.clientY });
  });
  bar.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (!by) return;
    stepped(by);
    event.preventDefault();
    event.stopPropagation();
  });
  return bar;
}
