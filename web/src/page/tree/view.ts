// A tree to open and close. Only what is open is in the document, and of many children only the first ones.

import "./tree.css";

import { button, element, searchField } from "../../parts/dom";
import { WORDS } from "../../parts/words";
import type { View } from "../../parts/views";
import type { TreeDescription } from "../views";

// Children drawn at once; the others are a click away.
const CHILDREN_AT_ONCE = 100;
// Nodes that are open at first, from the roots on.
const OPEN_AT_FIRST = 40;

// The nodes a search leaves: those that have every word of it, and all that leads to them.
export function foundNodes(nodes: TreeDescription["nodes"], search: string): { found: number; kept: Set<number> } {
  const wanted = search.toLowerCase().split(/\s+/).filter(Boolean);
  const kept = new Set<number>();
  let found = 0;
  nodes.forEach(([, , label, note, detail], number) => {
    const words = `${label}\n${note}\n${detail}`.toLowerCase();
    if (!wanted.every((word) => words.includes(word))) return;
    found++;
    for (let at = number; at >= 0 && !kept.has(at); at = nodes[at][0]) kept.add(at);
  });
  return { found, kept };
}

export class TreeView implements View {
  readonly body = element("section", "table");
  private readonly scroller = element("div", "tree");
  private readonly count = element("span", "count");
  private readonly roots: number[] = [];
  private readonly children: number[][];
  // What a search has left; all nodes where there is none.
  private kept: Set<number> | undefined;
  // How many more nodes open by themselves while the tree is drawn.
  private opening = 0;

  constructor(private readonly described: TreeDescription) {
    const { nodes, note } = described;
    this.children = nodes.map(() => []);
    nodes.forEach(([parent], number) => (parent < 0 ? this.roots : this.children[parent]).push(number));
    const bar = element("div", "bar");
    bar.append(
      searchField(WORDS.searchTree, (typed) => this.draw(typed.trim())),
      this.count,
    );
    this.count.setAttribute("aria-live", "polite");
    this.body.append(bar);
    if (note) this.body.append(element("p", "tree-note", note));
    this.body.append(this.scroller);
    this.draw("");
  }

  shown(): void {
    this.scroller.scrollTop = 0;
  }

  private draw(search: string): void {
    const { nodes } = this.described;
    const { found, kept } = foundNodes(nodes, search);
    this.kept = search ? kept : undefined;
    this.opening = OPEN_AT_FIRST;
    this.count.textContent = WORDS.nodes(found, nodes.length);
    if (!found) this.scroller.replaceChildren(element("p", "empty", nodes.length ? WORDS.noNodes : WORDS.emptyTree));
    else this.scroller.replaceChildren(this.list(this.roots));
  }

  private list(numbers: readonly number[]): HTMLElement {
    const list = element("ul");
    this.fill(list, this.kept ? numbers.filter((number) => this.kept?.has(number)) : numbers);
    return list;
  }

  private fill(list: HTMLElement, numbers: readonly number[]): void {
    const now = numbers.slice(0, CHILDREN_AT_ONCE);
    list.append(...now.map((number) => this.item(number)));
    const rest = numbers.slice(now.length);
    if (!rest.length) return;
    const item = element("li");
    item.append(
      button(WORDS.moreNodes(rest.length), "", () => {
        item.remove();
        this.fill(list, rest);
      }),
    );
    list.append(item);
  }

  private item(number: number): HTMLElement {
    const [, tone, label, note, detail] = this.described.nodes[number];
    const item = element("li", tone);
    const called = element("span");
    called.append(element("b", "", label), " ", element("span", "note", note));
    const words = [element("span", "dot"), called];
    if (!this.children[number].length && !detail) {
      const line = element("p");
      line.append(...words);
      item.append(line);
      return item;
    }
    const node = element("details");
    const summary = element("summary");
    summary.append(...words);
    node.append(summary);
    const open = () => {
      if (node.childElementCount > 1) return;
      if (detail) node.append(element("pre", "", detail));
      if (this.children[number].length) node.append(this.list(this.children[number]));
    };
    node.addEventListener("toggle", open);
    if (this.opening > 0 && this.children[number].length) {
      this.opening--;
      node.open = true;
      open();
    }
    item.append(node);
    return item;
  }
}
