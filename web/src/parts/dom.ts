// Small helpers around the document. Text always becomes text, never markup.

import { WORDS } from "./words";

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className?: string,
  text?: string,
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

export function button(text: string, hint: string, act: () => void, className = "button"): HTMLButtonElement {
  const made = element("button", className, text);
  made.type = "button";
  if (hint) made.title = hint;
  made.addEventListener("click", act);
  return made;
}

// A field to search in, which tells what was typed once the reader pauses.
const TYPING_PAUSE_MS = 180;

export function searchField(label: string, changed: (typed: string) => void): HTMLInputElement {
  const field = element("input", "search");
  field.type = "search";
  field.placeholder = label;
  field.setAttribute("aria-label", label);
  const later = afterTyping(() => changed(field.value));
  field.addEventListener("input", later);
  return field;
}

export function afterTyping(act: () => void): () => void {
  let timer: number | undefined;
  return () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(act, TYPING_PAUSE_MS);
  };
}

export function vector<K extends keyof SVGElementTagNameMap>(
  tag: K,
  className = "",
  attributes: Record<string, string | number> = {},
): SVGElementTagNameMap[K] {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  if (className) made.setAttribute("class", className);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  return made;
}

export function vectorText(className: string, x: number, y: number, text: string): SVGTextElement {
  const made = vector("text", className, { x, y });
  made.textContent = text;
  return made;
}

// The pen of a canvas. Only a browser without canvases has none.
export function penOf(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
  const pen = canvas.getContext("2d");
  if (!pen) throw new Error("this browser cannot draw on a canvas");
  return pen;
}

// A function that has something drawn before the next frame, once however often it is called.
export function beforeNextFrame(draw: () => void): () => void {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
  };
}

export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Older browsers, and files opened from a disk in some newer ones.
    const area = element("textarea", "offscreen");
    area.value = text;
    document.body.append(area);
    area.select();
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- nothing else works there
    document.execCommand("copy");
    area.remove();
  }
  toast(WORDS.copied);
}

function toast(text: string): void {
  const note = element("div", "toast", text);
  document.body.append(note);
  setTimeout(() => note.remove(), 1200);
}
