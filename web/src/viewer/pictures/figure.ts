// A picture with its buttons: drawn on a canvas when it has room, and again as PNG or SVG when it is kept. Pictures say
// where things are that can be pointed at.

import { beforeNextFrame, button, element, penOf } from "../../parts/dom";
import { colours, whenColoursChange } from "../shell/colours";
import { handOutPng, handOutSvg } from "../shell/files";
import { VIEWER_WORDS } from "../words";
import { CanvasPen, type Pen, SvgPen } from "./pen";

export interface Spot {
  x: number;
  y: number;
  width: number;
  height: number;
  text: string;
  act?: () => void;
}

export interface Picture {
  // As high as it has to be for a width; null: as there is room.
  height: number | null;
  draw(pen: Pen, width: number, height: number): Spot[];
}

const LEAST_HEIGHT = 180;

export class Figure {
  readonly body = element("figure", "figure");
  private readonly canvas = element("canvas");
  private readonly tip = element("figcaption", "reading");
  private readonly frame = element("div", "figure-frame");
  private readonly later = beforeNextFrame(() => this.draw());
  private picture: Picture | null = null;
  private spots: Spot[] = [];
  private at = -1;

  constructor(private readonly name: string) {
    const words = VIEWER_WORDS;
    const bar = element("div", "figure-tools");
    bar.append(
      this.tip,
      button(words.keepPng, words.keepPngHint, () => void this.png(), "button keep-png"),
      button(words.keepSvg, words.keepSvgHint, () => this.svg(), "button keep-svg"),
    );
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.frame.append(this.canvas);
    this.body.append(bar, this.frame);
    new ResizeObserver(() => this.later()).observe(this.frame);
    whenColoursChange(() => this.later());
    this.canvas.addEventListener("pointermove", (event) => this.point(this.spotUnder(event)));
    this.canvas.addEventListener("pointerleave", () => this.point(-1));
    this.canvas.addEventListener("click", (event) => this.spots.at(this.spotUnder(event))?.act?.());
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  show(picture: Picture): void {
    this.picture = picture;
    this.at = -1;
    this.later();
  }

  private size(): { width: number; height: number } {
    const width = Math.max(200, this.frame.clientWidth);
    const height = this.picture?.height ?? Math.max(LEAST_HEIGHT, this.frame.clientHeight - 4);
    return { width, height };
  }

  private draw(): void {
    if (!this.picture || !this.frame.clientWidth) return;
    const { width, height } = this.size();
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const pen = penOf(this.canvas);
    pen.scale(ratio, ratio);
    this.spots = this.paint(new CanvasPen(pen), width, height);
    const spot = this.at < 0 ? undefined : this.spots.at(this.at);
    if (spot) {
      pen.strokeStyle = colours().ink;
      pen.lineWidth = 2;
      pen.strokeRect(spot.x - 1, spot.y - 1, spot.width + 2, spot.height + 2);
    }
    this.canvas.dataset.spots = String(this.spots.length);
  }

  private paint(pen: Pen, width: number, height: number): Spot[] {
    pen.rect(0, 0, width, height, { fill: colours().card });
    return this.picture?.draw(pen, width, height) ?? [];
  }

  // The nearest one, if it is near; -1 otherwise.
  private spotUnder(event: MouseEvent): number {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let best = -1;
    let least = 8;
    this.spots.forEach((spot, place) => {
      const dx = Math.max(spot.x - x, 0, x - spot.x - spot.width);
      const dy = Math.max(spot.y - y, 0, y - spot.y - spot.height);
      const far = Math.hypot(dx, dy);
      if (far < least) {
        least = far;
        best = place;
      }
    });
    return best;
  }

  private point(place: number): void {
    if (place === this.at) return;
    this.at = place;
    const spot = place < 0 ? undefined : this.spots.at(place);
    this.tip.textContent = spot?.text ?? "";
    this.canvas.classList.toggle("pointing", Boolean(spot?.act));
    this.later();
  }

  private key(event: KeyboardEvent): void {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by && this.spots.length) this.point((this.at + by + this.spots.length) % this.spots.length);
    else if (event.key === "Enter" && this.at >= 0) this.spots.at(this.at)?.act?.();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // Where something is on the screen; tests ask.
  spotPlace(part: string): { x: number; y: number } | null {
    const spot = this.spots.find(({ text }) => text.includes(part));
    const box = this.canvas.getBoundingClientRect();
    return spot ? { x: box.left + spot.x + spot.width / 2, y: box.top + spot.y + spot.height / 2 } : null;
  }

  private svg(): void {
    const { width, height } = this.size();
    const pen = new SvgPen(width, height);
    this.paint(pen, width, height);
    handOutSvg(pen.toString(), this.name);
  }

  private async png(): Promise<void> {
    const { width, height } = this.size();
    await handOutPng(width, height, (pen) => this.paint(new CanvasPen(pen), width, height), this.name);
  }
}
