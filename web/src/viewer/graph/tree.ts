// The part of one side's hierarchy that was looked at so far. Children come in chunks, when somebody opens their parent;
// what is open and how large everything is, is kept with the nodes. See layout.ts for the sizes.

import type { Children, NodeBrief, Opened, SideName } from "../api";

export interface Row {
  top: number;
  height: number;
  // Children first .. first + count.
  first: number;
  count: number;
}

export class TreeNode {
  // As far as they are known.
  children: TreeNode[] = [];
  total: number;
  isOpen = false;
  // Relative to the parent.
  x = 0;
  y = 0;
  width = 0;
  height = 0;
  rows: Row[] = [];
  // Its size has to be found again.
  isStale = true;
  isLoading = false;

  constructor(
    public brief: NodeBrief,
    public parent: TreeNode | null,
  ) {
    this.total = brief.children;
  }

  get name(): string {
    return this.brief.name;
  }

  // A call without anything inside.
  get isLeaf(): boolean {
    return this.brief.children === 0 && this.brief.type === "api";
  }

  get hasMore(): boolean {
    return this.children.length < this.total;
  }
}

// What a tree asks for.
export interface TreeLoader {
  children(node: string | null, offset: number, limit: number): Promise<Children>;
  open(nodes: string[]): Promise<Opened>;
  path(node: string): Promise<string[]>;
}

export const CHUNK = 500;
// Chunks on the way to a child that is far down.
const LARGE_CHUNK = 5000;
// "Open all below" ends here, so that nobody waits for a million nodes.
export const MOST_OPENED = 2000;

export class SideTree {
  root: TreeNode | null = null;
  readonly byName = new Map<string, TreeNode>();

  constructor(
    readonly side: SideName,
    private readonly loader: TreeLoader,
    private readonly changed: () => void,
  ) {}

  // The root and its first children.
  async begin(): Promise<void> {
    const answer = await this.loader.children(null, 0, CHUNK);
    this.root = new TreeNode(answer.node, null);
    this.byName.set(this.root.name, this.root);
    this.root.isOpen = true;
    this.take(this.root, answer, 0);
  }

  private take(node: TreeNode, answer: Children, offset: number): void {
    node.total = answer.total;
    // Somebody else may have asked for the same.
    if (offset !== node.children.length) return;
    for (const brief of answer.children) {
      const child = new TreeNode(brief, node);
      node.children.push(child);
      this.byName.set(brief.name, child);
    }
    this.spoil(node);
  }

  // Its size and those of everything around it have to be found again.
  spoil(node: TreeNode): void {
    for (let at: TreeNode | null = node; at && !(at.isStale && at !== node); at = at.parent) at.isStale = true;
    this.changed();
  }

  async more(node: TreeNode, limit = CHUNK): Promise<void> {
    if (node.isLoading || !node.hasMore) return;
    node.isLoading = true;
    try {
      const offset = node.children.length;
      const answer = await this.loader.children(node.name, offset, limit);
      // A server that has no more than it said must not be asked for ever.
      if (!answer.children.length) answer.total = offset;
      this.take(node, answer, offset);
    } finally {
      node.isLoading = false;
    }
  }

  async open(node: TreeNode): Promise<void> {
    if (node.brief.children === 0) return;
    if (!node.children.length) await this.more(node);
    if (node.isOpen) return;
    node.isOpen = true;
    this.spoil(node);
  }

  // The root stays open.
  close(node: TreeNode): void {
    if (!node.isOpen || node === this.root) return;
    node.isOpen = false;
    this.spoil(node);
  }

  // Opens what an address names, with one question.
  async openAll(names: readonly string[]): Promise<void> {
    const wanted = names.filter((name) => this.byName.get(name)?.isOpen !== true);
    if (!wanted.length) return;
    const { opened } = await this.loader.open(wanted);
    // Parents before children, whatever order they came in.
    let waiting = opened;
    while (waiting.length) {
      const left = waiting.filter((answer) => {
        const node = this.byName.get(answer.node.name);
        if (!node) return true;
        if (!node.children.length) this.take(node, answer, 0);
        node.isOpen = true;
        this.spoil(node);
        return false;
      });
      if (left.length === waiting.length) return;
      waiting = left;
    }
  }

  // Opens everything around a node and returns it.
  async reveal(name: string): Promise<TreeNode | null> {
    if (!this.root) return null;
    const known = this.byName.get(name);
    if (known) {
      for (let at = known.parent; at; at = at.parent) {
        if (at.isOpen) continue;
        at.isOpen = true;
        this.spoil(at);
      }
      return known;
    }
    const path = await this.loader.path(name);
    let at = this.root;
    for (const next of path.slice(path[0] === this.root.name ? 1 : 0)) {
      await this.open(at);
      while (!this.byName.has(next) && at.hasMore) {
        if (at.isLoading) await new Promise((resolve) => setTimeout(resolve, 20));
        else await this.more(at, LARGE_CHUNK);
      }
      const child = this.byName.get(next);
      if (!child) return null;
      at = child;
    }
    return at.name === name ? at : null;
  }

  // Opens a node and what is below it, level by level, as long as it is not too much. Tells whether all was opened.
  async openBelow(node: TreeNode): Promise<boolean> {
    let level = node.brief.children > 0 ? [node] : [];
    let count = 0;
    while (level.length) {
      const next: TreeNode[] = [];
      const opened = level.filter(({ total }) => (count += total) <= MOST_OPENED);
      await this.openAll(opened.map(({ name }) => name));
      for (const at of opened) next.push(...at.children.filter(({ brief }) => brief.children > 0));
      if (opened.length < level.length) return false;
      level = next;
    }
    return true;
  }

  closeBelow(node: TreeNode): void {
    const waiting = [node];
    for (let at = waiting.pop(); at; at = waiting.pop()) {
      if (at.isOpen) waiting.push(...at.children);
      if (at !== this.root) at.isOpen = false;
      at.isStale = true;
    }
    this.spoil(node);
  }

  // What is open, in the order of the tree, without the root.
  openNames(): string[] {
    const names: string[] = [];
    const visit = (node: TreeNode) => {
      for (const child of node.children) {
        if (!child.isOpen) continue;
        names.push(child.name);
        visit(child);
      }
    };
    if (this.root) visit(this.root);
    return names;
  }

  // Asks again what is known of everything in view: of large graphs some of it is known later.
  async refresh(): Promise<void> {
    if (!this.root) return;
    const { opened } = await this.loader.open([this.root.name, ...this.openNames()]);
    for (const { node, children } of opened)
      for (const brief of [node, ...children]) {
        const known = this.byName.get(brief.name);
        if (known) known.brief = brief;
      }
    this.changed();
  }

  // The node a reader of the picture sees above or below this one.
  next(node: TreeNode): TreeNode | null {
    if (node.isOpen && node.children.length) return node.children[0];
    for (let at: TreeNode = node; at.parent; at = at.parent) {
      const after = at.parent.children.at(at.parent.children.indexOf(at) + 1);
      if (after && after !== at.parent.children[0]) return after;
    }
    return null;
  }

  previous(node: TreeNode): TreeNode | null {
    if (!node.parent) return null;
    const place = node.parent.children.indexOf(node);
    if (place === 0) return node.parent;
    let at = node.parent.children[place - 1];
    while (at.isOpen && at.children.length) at = at.children[at.children.length - 1];
    return at;
  }
}
