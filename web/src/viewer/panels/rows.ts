// Lists of nodes in the side panel.

import { button, element } from "../../parts/dom";
import type { NodeBrief } from "../api";
import { numberText } from "../numbers";
import { VIEWER_WORDS } from "../words";

type Shown = Pick<NodeBrief, "name" | "tone" | "verdict" | "overflow"> & Partial<Pick<NodeBrief, "errorOut" | "index">>;

// What is said of a node behind its name.
function noteOf({ verdict, overflow, errorOut, index }: Shown): string {
  const words: string[] = [];
  if (verdict) words.push(VIEWER_WORDS.verdicts[verdict] ?? verdict);
  if (errorOut !== undefined && errorOut !== null) words.push(numberText(errorOut));
  else if (index !== undefined && index !== null) words.push(String(index));
  if (overflow) words.push(VIEWER_WORDS.overflows[overflow as "medium"]);
  return words.join(" · ");
}

export function nodeRow(node: Shown, isChosen: boolean, act: () => void): HTMLButtonElement {
  const row = button("", node.name, act, `node-row toned ${node.tone}${isChosen ? " chosen" : ""}`);
  row.dataset.name = node.name;
  row.append(element("span", "node-name", node.name), element("span", "node-note", noteOf(node)));
  return row;
}
