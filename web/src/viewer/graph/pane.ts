// One side of the graph on a canvas: moving and zooming by wheel, drag, pinch and keys, pointing, choosing, and the small
// picture of all of it.

import { beforeNextFrame, button, element, penOf } from "../../parts/dom";
import { CanvasPen, SvgPen } from "../pictures/pen";
import { colours } from "../shell/colours";
import { VIEWER_WORDS } from "../words";
import { nodeAt, rectOf, sizeOf } from "./layout";
import { Minimap } from "./minimap";
import { type Camera, drawTree, type Drawn, type Look } from "./painter";
import type { SideTree, TreeNode } from "./tree";

export interface PaneEvents {
  select(node: TreeNode): void;
  toggle(node: TreeNode): void;
  menu(node: TreeNode, x: number, y: number): void;
  // "And n more" came into view.
  more(node: TreeNode): void;
}

// Room at the left and at the top, where the name of the side is.
const EDGE = 12;
const TOP_EDGE = 30;
// What the small picture covers.
const MAP_ROOM = { width: 124, height: 164 };
const DRAG_LEAST = 4;
const PAN_STEP = 40;
const ZOOM_STEP = 1.2;
// Only so far that numbers stay numbers.
const SCALES = { least: 1e-6, most: 1e4 };
// A second tap of a finger within this time opens a box.
const DOUBLE_TAP_MS = 350;

export class GraphPane {
  readonly body = element("div", "pane");
  readonly canvas = element("canvas", "boxes");
  readonly camera: Camera = { x: 0, y: 0, scale: 1 };
  readonly later = beforeNextFrame(() => this.draw());
  drawn: Drawn = { boxes: 0, wanting: [] };
  // What drawing the last frame took, for measuring.
  lastDrawMs = 0;
  private readonly map: Minimap;
  private readonly mapSwitch: HTMLButtonElement;
  private tree: SideTree | null = null;
  private pointed: TreeNode | null = null;
  private readonly pointers = new Map<number, { x: number; y: number }>();
  private drag: { x: number; y: number; moved: boolean } | null = null;
  private lastTap = { at: 0, name: "" };
  private isTouch = false;
  private isFitted = false;
  private readonly pen: CanvasRenderingContext2D;

  constructor(
    title: string,
    private readonly look: () => Omit<Look, "pointed">,
    private readonly on: PaneEvents,
  ) {
    // Nothing shines through it, which browsers without a graphics card are glad of.
    this.pen = this.canvas.getContext("2d", { alpha: false }) ?? penOf(this.canvas);
    this.map = new Minimap((x, y) => this.moveTo(x, y));
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "tree");
    this.canvas.setAttribute("aria-label", `${title}. ${VIEWER_WORDS.graphKeys}`);
    this.mapSwitch = button("◱", VIEWER_WORDS.minimapHere, () => (this.isMapShown = !this.isMapShown), "map-switch");
    this.mapSwitch.setAttribute("aria-label", `${VIEWER_WORDS.minimapHere}: ${title}`);
    this.mapSwitch.setAttribute("aria-pressed", "true");
    this.body.append(this.canvas, element("span", "pane-title", title), this.map.body, this.mapSwitch);
    new ResizeObserver(() => {
      if (!this.isFitted) this.fit();
      this.later();
    }).observe(this.body);
    this.listen();
  }

  private get width(): number {
    return this.body.clientWidth;
  }

  private get height(): number {
    return this.body.clientHeight;
  }

  show(tree: SideTree): void {
    this.tree = tree;
    this.isFitted = false;
    this.pointed = null;
    this.changed();
  }

  // The tree or its colours are not what was drawn.
  changed(): void {
    this.map.spoil();
    if (!this.isFitted) this.fit();
    this.later();
  }

  get isMapShown(): boolean {
    return !this.map.body.hidden;
  }

  set isMapShown(shown: boolean) {
    this.map.body.hidden = !shown;
    this.mapSwitch.setAttribute("aria-pressed", String(shown));
    this.later();
  }

  private draw(): void {
    const begun = performance.now();
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [this.width, this.height];
    if (!width || !height) return;
    const { canvas } = this;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const pen = this.pen;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = colours().page;
    pen.fillRect(0, 0, width, height);
    if (!this.tree) return;
    const look = { ...this.look(), pointed: this.pointed };
    this.drawn = drawTree(new CanvasPen(pen), this.tree, this.camera, width, height, look);
    this.map.draw(this.tree, this.camera, width, height, look);
    for (const node of this.drawn.wanting) this.on.more(node);
    this.lastDrawMs = performance.now() - begun;
    canvas.dataset.boxes = String(this.drawn.boxes);
  }

  // The whole width, and as much of the height as can be read.
  fit(): void {
    if (!this.tree?.root || !this.width) return;
    const size = sizeOf(this.tree);
    this.isFitted = true;
    const scale = Math.min(1, (this.width - 24) / size.width);
    this.camera.scale = Math.max(scale, 0.05);
    this.camera.x = -EDGE / this.camera.scale;
    this.camera.y = -TOP_EDGE / this.camera.scale;
    this.later();
  }

  // Before anybody moved it: all of the width, if that can still be read.
  fitFresh(): void {
    if (!this.tree?.root || (this.width - 24) / sizeOf(this.tree).width < 0.6) return;
    this.fit();
  }

  fitAll(): void {
    if (!this.tree?.root || !this.width) return;
    const size = sizeOf(this.tree);
    this.camera.scale = Math.min(1, (this.width - 24) / size.width, (this.height - TOP_EDGE - EDGE) / size.height);
    this.camera.x = -EDGE / this.camera.scale;
    this.camera.y = -TOP_EDGE / this.camera.scale;
    this.later();
  }

  centre(node: TreeNode): void {
    if (!this.tree) return;
    sizeOf(this.tree);
    const rect = rectOf(node);
    const least = 0.55;
    if (this.camera.scale < least) this.camera.scale = least;
    const { scale } = this.camera;
    // The left edge stays where it is as long as the node can be seen with it.
    const atEdge = -EDGE / scale;
    // In a low pane the small picture covers the middle, too.
    const room = this.width - (this.isMapShown && this.height / 2 < MAP_ROOM.height ? MAP_ROOM.width : 0);
    const fits = rect.x + Math.min(rect.width, 140) < atEdge + (room - EDGE) / scale;
    this.camera.x = fits ? atEdge : rect.x + Math.min(rect.width, 140) / 2 - room / scale / 2;
    // Of a high box its head is what was meant.
    const middle = rect.y + Math.min(rect.height, this.height / scale / 2) / 2 - this.height / scale / 2;
    // Nothing is above the root.
    this.camera.y = Math.max(middle, -TOP_EDGE / scale);
    this.isFitted = true;
    this.later();
  }

  // Moves only if the node is not in view.
  reveal(node: TreeNode): void {
    if (!this.tree) return;
    sizeOf(this.tree);
    const rect = rectOf(node);
    const { x, y, scale } = this.camera;
    const isIn =
      rect.x >= x &&
      rect.y >= y &&
      rect.x + Math.min(rect.width, 60) <= x + this.width / scale &&
      rect.y + 22 <= y + this.height / scale;
    const isCovered =
      this.isMapShown &&
      (rect.y - y) * scale < MAP_ROOM.height &&
      (rect.x + Math.min(rect.width, 60) - x) * scale > this.width - MAP_ROOM.width;
    if (isIn && !isCovered && scale > 0.4) this.later();
    else this.centre(node);
  }

  private moveTo(shareX: number, shareY: number): void {
    if (!this.tree) return;
    const { x, y } = this.map.worldAt(this.tree, shareX, shareY);
    this.camera.x = x - this.width / this.camera.scale / 2;
    this.camera.y = y - this.height / this.camera.scale / 2;
    this.later();
  }

  pan(dx: number, dy: number): void {
    this.camera.x += dx / this.camera.scale;
    this.camera.y += dy / this.camera.scale;
    this.isFitted = true;
    this.later();
  }

  zoom(factor: number, x = this.width / 2, y = this.height / 2): void {
    const { camera } = this;
    const scale = Math.min(SCALES.most, Math.max(SCALES.least, camera.scale * factor));
    camera.x += x / camera.scale - x / scale;
    camera.y += y / camera.scale - y / scale;
    camera.scale = scale;
    this.isFitted = true;
    this.later();
  }

  // W and S zoom, A and D move, as readers of the reference's page are used to.
  key(key: string): boolean {
    const acts: Record<string, (() => void) | undefined> = {
      w: () => this.zoom(ZOOM_STEP),
      s: () => this.zoom(1 / ZOOM_STEP),
      "+": () => this.zoom(ZOOM_STEP),
      "-": () => this.zoom(1 / ZOOM_STEP),
      a: () => this.pan(-PAN_STEP, 0),
      d: () => this.pan(PAN_STEP, 0),
      0: () => this.fit(),
      9: () => this.fitAll(),
      PageDown: () => this.pan(0, this.height * 0.8),
      PageUp: () => this.pan(0, -this.height * 0.8),
    };
    const act = acts[key];
    act?.();
    return act !== undefined;
  }

  private placeOf(event: MouseEvent): { x: number; y: number } {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  private nodeUnder(event: MouseEvent): ReturnType<typeof nodeAt> {
    if (!this.tree?.root) return null;
    const { x, y } = this.placeOf(event);
    return nodeAt(this.tree.root, this.camera.x + x / this.camera.scale, this.camera.y + y / this.camera.scale);
  }

  // Where a node is on the screen: menus and tests ask.
  screenPlace(node: TreeNode): { x: number; y: number } {
    const rect = rectOf(node);
    const box = this.canvas.getBoundingClientRect();
    const { x, y, scale } = this.camera;
    const middle = Math.min(rect.height, 22) / 2;
    return {
      x: box.left + (rect.x + Math.min(rect.width, 140) / 2 - x) * scale,
      y: box.top + (rect.y + middle - y) * scale,
    };
  }

  private listen(): void {
    const { canvas } = this;
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.grab(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.letGo(event));
    // The system knows what a double click is, however busy the browser was between its two halves.
    canvas.addEventListener("dblclick", (event) => {
      const found = this.nodeUnder(event);
      if (found && !found.isMore && !this.isTouch) this.on.toggle(found.node);
    });
    canvas.addEventListener("pointercancel", (event) => {
      this.pointers.delete(event.pointerId);
      this.drag = null;
    });
    canvas.addEventListener("pointerleave", () => this.point(null));
    canvas.addEventListener("contextmenu", (event) => {
      event.preventDefault();
      const found = this.nodeUnder(event);
      if (found) this.on.menu(found.node, event.clientX, event.clientY);
    });
  }

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    const { x, y } = this.placeOf(event);
    const unit = event.deltaMode === 1 ? 16 : 1;
    if (event.ctrlKey || event.metaKey)
      this.zoom(Math.exp(-Math.max(-80, Math.min(80, event.deltaY * unit)) / 180), x, y);
    else if (event.shiftKey && !event.deltaX) this.pan(event.deltaY * unit, 0);
    else this.pan(event.deltaX * unit, event.deltaY * unit);
  }

  private grab(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, this.placeOf(event));
    this.drag = { x: event.clientX, y: event.clientY, moved: this.pointers.size > 1 };
  }

  private move(event: PointerEvent): void {
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      this.point(this.nodeUnder(event)?.node ?? null);
      return;
    }
    const now = this.placeOf(event);
    if (this.pointers.size === 2) {
      const other = Array.from(this.pointers).find(([id]) => id !== event.pointerId)![1];
      const apart = (a: typeof now) => Math.hypot(a.x - other.x, a.y - other.y);
      const middle = { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 };
      if (apart(before) > 5) this.zoom(apart(now) / apart(before), middle.x, middle.y);
      this.pan((before.x - now.x) / 2, (before.y - now.y) / 2);
    } else if (this.drag) {
      if (!this.drag.moved && Math.hypot(event.clientX - this.drag.x, event.clientY - this.drag.y) < DRAG_LEAST) return;
      this.drag.moved = true;
      this.pan(before.x - now.x, before.y - now.y);
    }
    this.pointers.set(event.pointerId, now);
  }

  private letGo(event: PointerEvent): void {
    this.pointers.delete(event.pointerId);
    const { drag } = this;
    if (this.pointers.size) return;
    this.drag = null;
    if (!drag || drag.moved) return;
    const found = this.nodeUnder(event);
    if (!found) return;
    if (found.isMore) {
      this.on.more(found.node);
      return;
    }
    const { node } = found;
    this.isTouch = event.pointerType === "touch";
    if (!this.isTouch) {
      this.on.select(node);
      return;
    }
    const isSecond = event.timeStamp - this.lastTap.at < DOUBLE_TAP_MS && this.lastTap.name === node.name;
    this.lastTap = { at: isSecond ? 0 : event.timeStamp, name: node.name };
    if (isSecond) this.on.toggle(node);
    else this.on.select(node);
  }

  private point(node: TreeNode | null): void {
    if (node === this.pointed) return;
    this.pointed = node;
    this.canvas.title = node ? node.name : "";
    this.canvas.classList.toggle("pointing", node !== null);
    this.later();
  }

  currentLook(): Look {
    return { ...this.look(), pointed: null };
  }

  // What is in view, to be kept.
  svg(): string {
    const [width, height] = [this.width, this.height];
    const pen = new SvgPen(width, height);
    pen.rect(0, 0, width, height, { fill: colours().page });
    if (this.tree) drawTree(pen, this.tree, this.camera, width, height, this.currentLook());
    return pen.toString();
  }
}
