// One way to draw, two things to draw on: a canvas, and an SVG that can be kept. Everything that is a picture in the viewer
// is drawn through a Pen, so that what is exported is what was seen.

export interface Shape {
  fill?: string | null;
  stroke?: string | null;
  lineWidth?: number;
  dash?: number[];
  radius?: number;
}

export interface TextShape {
  size: number;
  colour: string;
  align?: "left" | "center" | "right";
  bold?: boolean;
  // Around its place, clockwise.
  turned?: number;
}

export interface Pen {
  rect(x: number, y: number, width: number, height: number, shape: Shape): void;
  ellipse(x: number, y: number, width: number, height: number, shape: Shape): void;
  line(points: readonly (readonly [number, number])[], shape: Shape): void;
  // The baseline is at y.
  text(text: string, x: number, y: number, shape: TextShape): void;
}

export const FONT =
  'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "PingFang SC", "Microsoft YaHei", sans-serif';

export class CanvasPen implements Pen {
  private font = "";

  constructor(private readonly pen: CanvasRenderingContext2D) {}

  private finish({ fill, stroke, lineWidth = 1, dash }: Shape): void {
    const { pen } = this;
    if (fill) {
      pen.fillStyle = fill;
      pen.fill();
    }
    if (!stroke) return;
    pen.strokeStyle = stroke;
    pen.lineWidth = lineWidth;
    if (dash) pen.setLineDash(dash);
    pen.stroke();
    if (dash) pen.setLineDash([]);
  }

  rect(x: number, y: number, width: number, height: number, shape: Shape): void {
    const { pen } = this;
    if (!shape.radius && !shape.dash) {
      // Without a path, which is what most boxes of a large picture are.
      if (shape.fill) {
        pen.fillStyle = shape.fill;
        pen.fillRect(x, y, width, height);
      }
      if (shape.stroke) {
        pen.strokeStyle = shape.stroke;
        pen.lineWidth = shape.lineWidth ?? 1;
        pen.strokeRect(x, y, width, height);
      }
      return;
    }
    pen.beginPath();
    pen.roundRect(x, y, width, height, Math.min(shape.radius ?? 0, width / 2, height / 2));
    this.finish(shape);
  }

  ellipse(x: number, y: number, width: number, height: number, shape: Shape): void {
    this.pen.beginPath();
    this.pen.ellipse(x + width / 2, y + height / 2, width / 2, height / 2, 0, 0, Math.PI * 2);
    this.finish(shape);
  }

  line(points: readonly (readonly [number, number])[], shape: Shape): void {
    this.pen.beginPath();
    points.forEach(([x, y], place) => (place ? this.pen.lineTo(x, y) : this.pen.moveTo(x, y)));
    this.finish(shape);
  }

  text(text: string, x: number, y: number, { size, colour, align = "left", bold, turned }: TextShape): void {
    const { pen } = this;
    const font = `${bold ? "600 " : ""}${size}px ${FONT}`;
    if (font !== this.font) {
      pen.font = font;
      this.font = font;
    }
    pen.fillStyle = colour;
    pen.textAlign = align;
    if (!turned) {
      pen.fillText(text, x, y);
      return;
    }
    pen.save();
    pen.translate(x, y);
    pen.rotate((turned * Math.PI) / 180);
    pen.fillText(text, 0, 0);
    pen.restore();
  }
}

const NAMED: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

// Text in a file of markup; control characters are none.
export function escaped(text: string): string {
  return text
    .replace(/[&<>"]/g, (sign) => NAMED[sign])
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd");
}

const short = (number: number): string => String(Math.round(number * 100) / 100);

export class SvgPen implements Pen {
  private readonly parts: string[] = [];

  constructor(
    private readonly width: number,
    private readonly height: number,
  ) {}

  private look({ fill, stroke, lineWidth = 1, dash }: Shape): string {
    let look = ` fill="${fill ? escaped(fill) : "none"}"`;
    if (stroke) look += ` stroke="${escaped(stroke)}" stroke-width="${short(lineWidth)}"`;
    if (dash) look += ` stroke-dasharray="${dash.map(short).join(" ")}"`;
    return look;
  }

  rect(x: number, y: number, width: number, height: number, shape: Shape): void {
    const round = shape.radius ? ` rx="${short(shape.radius)}"` : "";
    this.parts.push(
      `<rect x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}"${round}${this.look(shape)}/>`,
    );
  }

  ellipse(x: number, y: number, width: number, height: number, shape: Shape): void {
    const [rx, ry] = [width / 2, height / 2];
    this.parts.push(
      `<ellipse cx="${short(x + rx)}" cy="${short(y + ry)}" rx="${short(rx)}" ry="${short(ry)}"${this.look(shape)}/>`,
    );
  }

  line(points: readonly (readonly [number, number])[], shape: Shape): void {
    const path = points.map(([x, y]) => `${short(x)},${short(y)}`).join(" ");
    this.parts.push(`<polyline points="${path}"${this.look(shape)}/>`);
  }

  text(text: string, x: number, y: number, { size, colour, align = "left", bold, turned }: TextShape): void {
    const anchor = { left: "start", center: "middle", right: "end" }[align];
    const weight = bold ? ' font-weight="600"' : "";
    const turn = turned ? ` transform="rotate(${short(turned)} ${short(x)} ${short(y)})"` : "";
    this.parts.push(
      `<text x="${short(x)}" y="${short(y)}" font-size="${short(size)}" text-anchor="${anchor}"${weight}${turn} fill="${escaped(colour)}">${escaped(text)}</text>`,
    );
  }

  toString(): string {
    const size = `width="${short(this.width)}" height="${short(this.height)}" viewBox="0 0 ${short(this.width)} ${short(this.height)}"`;
    return `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="${escaped(FONT)}">${this.parts.join("")}</svg>\n`;
  }
}

// Widths of text without asking the browser for each: those of single letters are measured once.
const widths = new Map<string, number>();
let ruler: CanvasRenderingContext2D | null = null;

function letterWidth(letter: string): number {
  let width = widths.get(letter);
  if (width === undefined) {
    if (typeof document !== "undefined") ruler ??= document.createElement("canvas").getContext("2d");
    if (ruler) ruler.font = `100px ${FONT}`;
    width = (ruler?.measureText(letter).width ?? 55) / 100;
    widths.set(letter, width);
  }
  return width;
}

export function textWidth(text: string, size: number): number {
  let width = 0;
  for (const letter of text) width += letterWidth(letter);
  return width * size;
}

// As much of a text as fits: its beginning and its end, which tell names apart.
export function fitted(text: string, room: number, size: number): string {
  if (textWidth(text, size) <= room) return text;
  const letters = Array.from(text);
  let left = room - letterWidth("…") * size;
  let [head, tail] = [0, 0];
  while (head + tail < letters.length) {
    const isTail = tail <= head;
    left -= letterWidth(isTail ? letters[letters.length - 1 - tail] : letters[head]) * size;
    if (left < 0) break;
    if (isTail) tail++;
    else head++;
  }
  return head + tail ? `${letters.slice(0, head).join("")}…${letters.slice(letters.length - tail).join("")}` : "";
}
