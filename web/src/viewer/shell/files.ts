// Handing files to the reader and taking them.

import { element, penOf } from "../../parts/dom";

export function handOut(content: Blob, name: string): void {
  const link = element("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export function handOutSvg(svg: string, name: string): void {
  handOut(new Blob([svg], { type: "image/svg+xml" }), `${name}.svg`);
}

// Twice as fine as it is shown, for screens and print.
const FINE = 2;

// A picture that is drawn on a canvas, as PNG.
export async function handOutPng(
  width: number,
  height: number,
  draw: (pen: CanvasRenderingContext2D) => void,
  name: string,
): Promise<void> {
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(width * FINE);
  canvas.height = Math.round(height * FINE);
  const pen = penOf(canvas);
  pen.scale(FINE, FINE);
  draw(pen);
  const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/png"));
  if (blob) handOut(blob, `${name}.png`);
}

// A text file the reader chooses.
export function takeFile(accept: string, taken: (text: string) => void): void {
  const field = element("input", "offscreen");
  field.type = "file";
  field.accept = accept;
  field.addEventListener("change", () => {
    const file = field.files?.[0];
    if (file) void file.text().then(taken);
    field.remove();
  });
  document.body.append(field);
  field.click();
}
