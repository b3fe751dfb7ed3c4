// Where the boxes of a tree are: nested, modules one below the other, calls without insides up to five in a row. Sizes are
// kept with the nodes and only what changed is measured again; positions are relative to the parent, so that opening one
// node moves nothing else by hand. Nothing here draws or looks at a document.

import type { SideTree, TreeNode } from "./tree";

export const HEAD = 22;
export const BOX_WIDTH = 330;
export const LEAF_WIDTH = 142;
export const LEAF_HEIGHT = 22;
export const LEAVES_IN_ROW = 5;
export const PAD = 10;
export const GAP = 6;
// The line "and n more".
export const MORE_HEIGHT = 22;

export interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}

// Finds the sizes of a node and of everything in it that changed.
export function arrange(node: TreeNode): void {
  if (!node.isStale) return;
  node.isStale = false;
  node.rows = [];
  if (!node.isOpen || !node.children.length) {
    node.width = node.isLeaf ? LEAF_WIDTH : BOX_WIDTH;
    node.height = node.isLeaf ? LEAF_HEIGHT : HEAD;
    return;
  }
  let top = HEAD + GAP;
  let widest = BOX_WIDTH - 2 * PAD;
  const { children, rows } = node;
  for (let at = 0; at < children.length;) {
    const first = at;
    let width = 0;
    let height = 0;
    if (children[at].isLeaf) {
      while (at < children.length && at - first < LEAVES_IN_ROW && children[at].isLeaf) {
        arrange(children[at]);
        width += children[at].width + (at > first ? GAP : 0);
        height = Math.max(height, children[at].height);
        at++;
      }
    } else {
      arrange(children[at]);
      ({ width, height } = children[at]);
      at++;
    }
    rows.push({ top, height, first, count: at - first });
    widest = Math.max(widest, width);
    top += height + GAP;
  }
  if (node.hasMore) top += MORE_HEIGHT + GAP;
  node.width = widest + 2 * PAD;
  node.height = top - GAP + PAD;
  // At the left, so that nothing moves sideways when something is opened.
  for (const row of rows) {
    let x = PAD;
    for (let at = row.first; at < row.first + row.count; at++) {
      children[at].x = x;
      children[at].y = row.top;
      x += children[at].width + GAP;
    }
  }
}

// Where "and n more" stands, relative to the node.
export function moreLine(node: TreeNode): Rect | null {
  if (!node.isOpen || !node.hasMore || !node.rows.length) return null;
  return { x: PAD, y: node.height - PAD - MORE_HEIGHT, width: node.width - 2 * PAD, height: MORE_HEIGHT };
}

export function sizeOf(tree: SideTree): { width: number; height: number } {
  if (!tree.root) return { width: BOX_WIDTH, height: HEAD };
  arrange(tree.root);
  return { width: tree.root.width, height: tree.root.height };
}

export function rectOf(node: TreeNode): Rect {
  let x = 0;
  let y = 0;
  for (let at: TreeNode = node; at.parent; at = at.parent) {
    x += at.x;
    y += at.y;
  }
  return { x, y, width: node.width, height: node.height };
}

// The first row that ends below a height.
export function rowBelow(node: TreeNode, height: number): number {
  let low = 0;
  let high = node.rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (node.rows[middle].top + node.rows[middle].height < height) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Visits the nodes that touch a rectangle, parents first. What is returned tells whether to go inside.
export function eachIn(
  root: TreeNode,
  view: Rect,
  visit: (node: TreeNode, x: number, y: number, depth: number) => boolean,
): void {
  const go = (node: TreeNode, x: number, y: number, depth: number) => {
    if (x > view.x + view.width || x + node.width < view.x) return;
    if (y > view.y + view.height || y + node.height < view.y) return;
    if (!visit(node, x, y, depth) || !node.isOpen) return;
    const last = view.y + view.height - y;
    for (let at = rowBelow(node, view.y - y); at < node.rows.length && node.rows[at].top <= last; at++) {
      const { first, count } = node.rows[at];
      for (let place = first; place < first + count; place++) {
        const child = node.children[place];
        go(child, x + child.x, y + child.y, depth + 1);
      }
    }
  };
  arrange(root);
  go(root, 0, 0, 0);
}

// The innermost node at a point, and whether it is the line "and n more" of it.
export function nodeAt(root: TreeNode, x: number, y: number): { node: TreeNode; isMore: boolean } | null {
  let found: { node: TreeNode; isMore: boolean } | null = null;
  eachIn(root, { x, y, width: 0, height: 0 }, (node, left, top) => {
    const more = moreLine(node);
    found = { node, isMore: more !== null && y >= top + more.y && x >= left + more.x };
    return true;
  });
  return found;
}
