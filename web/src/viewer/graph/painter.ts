// Draws the boxes of a tree that are in view, on any pen. What is too small to be told apart is left to its parent, and
// only labels that can be read are written, so that a picture costs what is seen of it.

import type { GraphInfo, NodeBrief, SideName } from "../api";
import type { ColourMode } from "../place";
import { fitted, type Pen, textWidth } from "../pictures/pen";
import { areaOf, colours, inkOn, lineOf } from "../shell/colours";
import { VIEWER_WORDS } from "../words";
import { eachIn, HEAD, moreLine, type Rect } from "./layout";
import type { SideTree, TreeNode } from "./tree";

// A point of the world is at (point - x) * scale on the screen.
export interface Camera {
  x: number;
  y: number;
  scale: number;
}

export interface Look {
  mode: ColourMode;
  info: Pick<GraphInfo, "colours" | "kind">;
  side: SideName;
  selected: string | null;
  // The node on the other side belongs to this one.
  partner: string | null;
  pointed: TreeNode | null;
  // Nodes chosen to be matched.
  chosen: string | null;
}

export type ColourRange = GraphInfo["colours"][number];

const FONT_SIZE = 12;
const LEAST_FONT = 5.5;
// Boxes lower than this are not opened up.
const LEAST_HEIGHT = 1.5;

// The colour of the reference for an index; the upper end of a range belongs to the next one, but that of the last.
export function rangeOf(index: number | null, ranges: readonly ColourRange[]): ColourRange | undefined {
  if (index === null) return undefined;
  const real = ranges.filter(({ range }) => range.length === 2) as { hex: string; range: [number, number] }[];
  const last = Math.max(...real.map(({ range }) => range[1]));
  return real.find(
    ({ range: [low, high] }) => index === low || (index >= low && index < high) || (index === high && high === last),
  ) as ColourRange | undefined;
}

type Coloured = Pick<NodeBrief, "tone" | "index" | "overflow">;

function areaBy(mode: ColourMode, what: Coloured, info: Look["info"]): string | null {
  if (mode === "overflow") return what.overflow ? colours()[what.overflow] : null;
  if (mode === "index") return rangeOf(what.index, info.colours)?.hex ?? null;
  return what.tone === "plain" ? null : areaOf(what.tone);
}

// What a box is filled with.
export function areaOfNode(brief: NodeBrief, { mode, info, side }: Pick<Look, "mode" | "info" | "side">): string {
  const { card, grey } = colours();
  if (mode === "index") {
    if (brief.type === "collection") return card;
    if (info.kind === "compare" && !brief.partner && brief.parent !== null) return grey;
    if (side === "golden") return card;
  }
  return areaBy(mode, brief, info) ?? card;
}

// The worst of what a closed box hides, if that is worth showing.
export function worstArea(brief: NodeBrief, look: Pick<Look, "mode" | "info" | "side">): string | null {
  if (!brief.worst) return null;
  const { mode, info, side } = look;
  const { tone, index, overflow } = brief.worst;
  if (mode === "verdict" && (tone === "plain" || tone === "good")) return null;
  // The golden side has no index of its own, and what is no worse than the box itself says nothing.
  if (mode === "index" && side === "golden") return null;
  const area = areaBy(mode, { tone, index, overflow: overflow as NodeBrief["overflow"] }, info);
  return mode === "index" && area === areaBy(mode, brief, info) ? null : area;
}

function worstLine(brief: NodeBrief, mode: ColourMode): string {
  return mode === "verdict" && brief.worst ? lineOf(brief.worst.tone) : colours().ink;
}

export interface Drawn {
  boxes: number;
  // Nodes whose "and n more" is in view.
  wanting: TreeNode[];
}

// Labels at a size, as far as they fit. They are asked for again in every frame.
const labels = new Map<string, string>();

// The families of calls are what can be done without.
function shortEnough(text: string, room: number): string {
  const rest = text.slice(text.indexOf(".") + 1);
  if (textWidth(text, FONT_SIZE) <= room || rest === text) return text;
  return /^[A-Z]/.test(text) && !/^\d/.test(rest) ? rest : text;
}

function labelFor(text: string, room: number): string {
  const key = `${Math.floor(room)} ${text}`;
  let label = labels.get(key);
  if (label === undefined) {
    if (labels.size > 20000) labels.clear();
    label = fitted(shortEnough(text, room), room, FONT_SIZE);
    labels.set(key, label);
  }
  return label;
}

export function drawTree(pen: Pen, tree: SideTree, camera: Camera, width: number, height: number, look: Look): Drawn {
  const palette = colours();
  const drawn: Drawn = { boxes: 0, wanting: [] };
  if (!tree.root) return drawn;
  const { scale } = camera;
  const view: Rect = { x: camera.x, y: camera.y, width: width / scale, height: height / scale };
  const size = FONT_SIZE * scale;
  const hasLabels = size >= LEAST_FONT;
  const round = scale > 0.5 ? 4 * scale : 0;
  const baseline = (HEAD * scale) / 2 + size * 0.36;
  // Many small boxes on the same pixels look like one.
  let lastRow = "";
  eachIn(tree.root, view, (node, worldX, worldY, depth) => {
    const x = (worldX - camera.x) * scale;
    const y = (worldY - camera.y) * scale;
    const boxWidth = node.width * scale;
    const boxHeight = node.height * scale;
    const { brief } = node;
    if (boxHeight < LEAST_HEIGHT) {
      const row = `${Math.round(y)} ${depth} ${Math.round(x / 4)}`;
      if (row === lastRow) return false;
      lastRow = row;
    }
    drawn.boxes++;
    const isSelected = brief.name === look.selected;
    const isPartner = brief.name === look.partner;
    const isChosen = brief.name === look.chosen;
    const fill = areaOfNode(brief, look);
    const stroke = isSelected
      ? palette.accent
      : isPartner || isChosen
        ? palette.blueLine
        : node === look.pointed
          ? palette.ink
          : palette.greyLine;
    const lineWidth = isSelected ? 3 : isPartner || isChosen ? 2.5 : boxHeight < 6 ? 0.4 : 1;
    const shape = { fill, stroke, lineWidth, radius: round };
    if (node.isLeaf) {
      if (boxHeight < 4) pen.rect(x, y, boxWidth, boxHeight, { fill, stroke, lineWidth });
      else pen.ellipse(x, y, boxWidth, boxHeight, shape);
    } else if (brief.type === "collection" || brief.type === "multi") {
      pen.rect(x, y, boxWidth, boxHeight, { ...shape, dash: [5, 3] });
    } else if (node.isOpen && node.rows.length) {
      // Its own colour is that of its head, so that what is inside stays readable.
      pen.rect(x, y, boxWidth, boxHeight, {
        fill: depth % 2 ? palette.card : palette.stripe,
        stroke,
        lineWidth,
        radius: round,
      });
      if (fill !== palette.card) pen.rect(x + 1, y + 1, boxWidth - 2, HEAD * scale - 1, { fill, radius: round });
    } else pen.rect(x, y, boxWidth, boxHeight, shape);
    if (isPartner && !isSelected)
      pen.rect(x - 2, y - 2, boxWidth + 4, HEAD * scale + 4, {
        stroke: palette.accentSoft,
        lineWidth: 2,
        radius: round,
      });
    const isClosed = !node.isOpen && brief.children > 0;
    const worst = isClosed ? worstArea(brief, look) : null;
    const icons = (brief.hasPeers ? "⇄" : "") + (brief.modified ? "✎" : "");
    let room = node.width - (node.isLeaf ? 22 : 14) - icons.length * 13;
    if (worst && boxHeight > 3) {
      const side = 10 * scale;
      pen.ellipse(x + boxWidth - side - 6 * scale, y + boxHeight / 2 - side / 2, side, side, {
        fill: worst,
        stroke: worstLine(brief, look.mode),
        lineWidth: Math.max(1, 1.5 * scale),
      });
      room -= 20;
    }
    if (hasLabels) {
      if (!node.isLeaf && brief.children > 0) {
        const [cx, cy, arm] = [x + 10 * scale, y + (HEAD * scale) / 2, 3.5 * scale];
        pen.line(
          isClosed
            ? [
                [cx - arm * 0.6, cy - arm],
                [cx + arm * 0.7, cy],
                [cx - arm * 0.6, cy + arm],
              ]
            : [
                [cx - arm, cy - arm * 0.6],
                [cx, cy + arm * 0.7],
                [cx + arm, cy - arm * 0.6],
              ],
          { stroke: palette.soft, lineWidth: Math.max(1, 1.4 * scale) },
        );
        room -= 14;
      }
      const text = labelFor(brief.label, room);
      const ink = fill.startsWith("#") && fill !== palette.card ? inkOn(fill) : palette.ink;
      const end = x + boxWidth - (node.isLeaf ? 9 : worst ? 24 : 6) * scale;
      if (node.isLeaf)
        pen.text(text, x + (boxWidth - icons.length * 13 * scale) / 2, y + boxHeight / 2 + size * 0.36, {
          size,
          colour: ink,
          align: "center",
        });
      else pen.text(text, x + (brief.children > 0 ? 19 : 8) * scale, y + baseline, { size, colour: ink });
      if (icons) pen.text(icons, end, y + baseline, { size: size * 0.9, colour: palette.accent, align: "right" });
    }
    if (!node.isOpen) return false;
    const more = moreLine(node);
    if (more && worldY + more.y < view.y + view.height && worldY + more.y + more.height > view.y) {
      drawn.wanting.push(node);
      if (hasLabels)
        pen.text(
          VIEWER_WORDS.moreChildren(node.total - node.children.length),
          x + boxWidth / 2,
          y + (more.y + more.height * 0.65) * scale,
          { size, colour: palette.soft, align: "center" },
        );
    }
    // Too small to look into: what is in there is one area.
    return boxHeight >= LEAST_HEIGHT * 2;
  });
  return drawn;
}
