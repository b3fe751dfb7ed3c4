// A page: its views on tabs. The words above them are in the file itself, for those who read without scripts.

import "../parts/controls.css";
import "./page.css";

import { button, element } from "../parts/dom";
import { TimelineView } from "../parts/timeline/view";
import type { Described, TimelineDescription, View } from "../parts/views";
import { CHINESE_READER, thousands } from "../parts/words";
import { CurvesView } from "./curves/view";
import { TableView } from "./table/view";
import { TreeView } from "./tree/view";
import type { CurvesDescription, TableDescription, TreeDescription } from "./views";

// The kinds of views, by the name the page gives them.
const KINDS: Record<string, ((described: Described, number: number) => View) | undefined> = {
  table: (described, number) => new TableView(described as TableDescription, number),
  curves: (described, number) => new CurvesView(described as CurvesDescription, number),
  timeline: (described) => new TimelineView(described as TimelineDescription),
  tree: (described) => new TreeView(described as TreeDescription),
};

interface Part {
  described: Described;
  make: () => View;
}

// The views of the page, in their order. Descriptions are read at once, the views are made when they are looked at.
function parts(): Part[] {
  return Array.from(document.querySelectorAll<HTMLScriptElement>("script.view"), (script, number) => {
    const described = JSON.parse(script.textContent) as Described;
    script.remove();
    const make = KINDS[script.dataset.kind ?? ""];
    if (!make) throw new Error(`no view of the kind ${script.dataset.kind ?? "(none)"}`);
    return { described, make: () => make(described, number) };
  });
}

function start(): void {
  if (CHINESE_READER) document.documentElement.lang = "zh";
  const main = document.getElementById("views");
  const all = parts();
  if (!main || !all.length) return;
  const views: (View | undefined)[] = [];
  const tabs = element("nav", "tabs");
  tabs.setAttribute("role", "tablist");
  const holder = element("div", "holder");
  const open = (number: number) => {
    const view = (views[number] ??= all[number].make());
    holder.replaceChildren(view.body);
    Array.from(tabs.children).forEach((tab, at) => tab.setAttribute("aria-selected", String(at === number)));
    view.shown();
  };
  all.forEach(({ described: { name, count } }, number) => {
    const tab = button(name, "", () => open(number), "tab");
    tab.setAttribute("role", "tab");
    tab.append(element("span", "badge", thousands(count)));
    tabs.append(tab);
  });
  main.append(tabs, holder);
  open(0);
}

start();
