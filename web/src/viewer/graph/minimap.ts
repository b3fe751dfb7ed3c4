// A small picture of all of a tree with the part that is in view, to click and drag on. Its two directions have scales of
// their own, since trees are far higher than wide. It costs what it has pixels, however large the tree is.

import { element, penOf } from "../../parts/dom";
import { colours } from "../shell/colours";
import { VIEWER_WORDS } from "../words";
import { rowBelow, sizeOf } from "./layout";
import { areaOfNode, type Camera, type Look, worstArea } from "./painter";
import type { SideTree, TreeNode } from "./tree";

const WIDTH = 110;
const HEIGHT = 150;

export class Minimap {
  readonly body = element("canvas", "minimap");
  private readonly still = document.createElement("canvas");
  private isStale = true;

  constructor(moved: (x: number, y: number) => void) {
    this.body.width = this.still.width = WIDTH;
    this.body.height = this.still.height = HEIGHT;
    this.body.setAttribute("aria-label", VIEWER_WORDS.minimap);
    this.body.title = VIEWER_WORDS.minimap;
    const go = (event: PointerEvent) => {
      if (!(event.buttons & 1)) return;
      const box = this.body.getBoundingClientRect();
      moved((event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
      event.stopPropagation();
    };
    this.body.addEventListener("pointerdown", (event) => {
      this.body.setPointerCapture(event.pointerId);
      go(event);
    });
    this.body.addEventListener("pointermove", go);
    this.body.addEventListener("dblclick", (event) => event.stopPropagation());
  }

  // The tree or its colours changed.
  spoil(): void {
    this.isStale = true;
  }

  draw(tree: SideTree, camera: Camera, width: number, height: number, look: Look): void {
    if (this.body.hidden || !tree.root) return;
    const size = sizeOf(tree);
    const [right, bottom] = [camera.x + width / camera.scale, camera.y + height / camera.scale];
    // Where everything is in view there is nowhere to go, and boxes may be below it.
    const isIdle = camera.x <= 0 && camera.y <= 0 && right >= size.width && bottom >= size.height;
    this.body.classList.toggle("idle", isIdle);
    if (isIdle) return;
    const [sx, sy] = [(WIDTH - 2) / size.width, (HEIGHT - 2) / size.height];
    if (this.isStale) {
      this.isStale = false;
      this.drawStill(tree.root, Math.min(sx, 0.5), Math.min(sy, 0.5), look);
    }
    const pen = penOf(this.body);
    const { card, accent } = colours();
    pen.fillStyle = card;
    pen.fillRect(0, 0, WIDTH, HEIGHT);
    pen.drawImage(this.still, 0, 0);
    pen.strokeStyle = accent;
    pen.lineWidth = 1.5;
    const [mx, my] = [Math.min(sx, 0.5), Math.min(sy, 0.5)];
    const left = Math.max(1, 1 + camera.x * mx);
    const top = Math.max(1, 1 + camera.y * my);
    const [endX, endY] = [Math.min(WIDTH - 1, 1 + right * mx), Math.min(HEIGHT - 1, 1 + bottom * my)];
    pen.strokeRect(left, top, Math.max(3, endX - left), Math.max(3, endY - top));
  }

  // Where a share of the picture is in the world.
  worldAt(tree: SideTree, shareX: number, shareY: number): { x: number; y: number } {
    const size = sizeOf(tree);
    const [sx, sy] = [Math.min((WIDTH - 2) / size.width, 0.5), Math.min((HEIGHT - 2) / size.height, 0.5)];
    return { x: (shareX * WIDTH - 1) / sx, y: (shareY * HEIGHT - 1) / sy };
  }

  private drawStill(root: TreeNode, sx: number, sy: number, look: Look): void {
    const pen = penOf(this.still);
    const { card, greyLine, stripe } = colours();
    pen.fillStyle = card;
    pen.fillRect(0, 0, WIDTH, HEIGHT);
    pen.lineWidth = 0.5;
    pen.strokeStyle = greyLine;
    const box = (node: TreeNode, x: number, y: number) => {
      const area = areaOfNode(node.brief, look);
      const hidden = node.isOpen ? null : worstArea(node.brief, look);
      pen.fillStyle = node.isOpen && node.rows.length ? stripe : (hidden ?? area);
      pen.fillRect(1 + x * sx, 1 + y * sy, Math.max(1, node.width * sx), Math.max(1, node.height * sy));
      if (node.height * sy > 4) pen.strokeRect(1 + x * sx, 1 + y * sy, node.width * sx, node.height * sy);
      if (!node.isOpen || node.height * sy < 2) return;
      // One row for every pixel.
      for (let at = 0; at < node.rows.length;) {
        const { first, count, top, height } = node.rows[at];
        for (let place = first; place < first + count; place++) {
          const child = node.children[place];
          box(child, x + child.x, y + child.y);
        }
        at = Math.max(at + 1, height * sy >= 1 ? at + 1 : rowBelow(node, top + 1 / sy));
      }
    };
    box(root, 0, 0);
  }
}
