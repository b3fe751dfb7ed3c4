// Everything that can be done, with its key: for the palette and for the page of keys.

import { element } from "../../parts/dom";
import { VIEWER_WORDS } from "../words";

export interface Command {
  title: string;
  // As it is written on the page of keys.
  key?: string;
  act: () => void;
}

// Letters of what was typed stand in the title in their order; runs of letters and beginnings of words count more.
export function worth(title: string, typed: string): number {
  const text = title.toLowerCase();
  const wanted = typed.toLowerCase().trim();
  if (!wanted) return 1;
  const place = text.indexOf(wanted);
  if (place >= 0) return 1000 - place;
  let at = 0;
  for (const letter of wanted.replace(/\s/g, "")) {
    at = text.indexOf(letter, at) + 1;
    if (!at) return 0;
  }
  return 100 - at / 10;
}

export function showPalette(commands: readonly Command[], search: ((typed: string) => void) | null): void {
  document.querySelector("dialog.palette")?.remove();
  const dialog = element("dialog", "palette");
  const field = element("input", "palette-field");
  field.placeholder = VIEWER_WORDS.paletteHint;
  field.setAttribute("aria-label", VIEWER_WORDS.palette);
  const list = element("div", "palette-list");
  list.setAttribute("role", "listbox");
  let found: Command[] = [];
  let at = 0;
  const draw = () => {
    list.replaceChildren(
      ...found.map(({ title, key, act }, place) => {
        const row = element("div", `palette-row${place === at ? " chosen" : ""}`, title);
        row.setAttribute("role", "option");
        row.setAttribute("aria-selected", String(place === at));
        if (key) row.append(element("kbd", "", key));
        row.addEventListener("click", () => {
          dialog.close();
          act();
        });
        return row;
      }),
    );
    list.children.item(at)?.scrollIntoView({ block: "nearest" });
  };
  const find = () => {
    const typed = field.value;
    found = commands
      .map((command) => ({ command, worth: worth(command.title, typed) }))
      .filter((one) => one.worth > 0)
      .sort((a, b) => b.worth - a.worth)
      .map(({ command }) => command);
    if (typed.trim() && search)
      found.push({ title: `${VIEWER_WORDS.search}: ${typed}`, act: () => search(typed.trim()) });
    at = 0;
    draw();
  };
  field.addEventListener("input", find);
  field.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") at = Math.min(found.length - 1, at + 1);
    else if (event.key === "ArrowUp") at = Math.max(0, at - 1);
    else if (event.key === "Enter") {
      dialog.close();
      found.at(at)?.act();
      return;
    } else return;
    event.preventDefault();
    draw();
  });
  dialog.append(field, list);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  document.body.append(dialog);
  dialog.showModal();
  find();
  field.focus();
}

export function showHelp(commands: readonly Command[]): void {
  if (document.querySelector("dialog.help")) return;
  const dialog = element("dialog", "help");
  dialog.append(element("h2", "", VIEWER_WORDS.help));
  const list = element("dl", "keys");
  for (const { title, key } of commands) {
    if (!key) continue;
    const term = element("dt");
    for (const one of key.split(" / ")) term.append(element("kbd", "", one));
    list.append(term, element("dd", "", title));
  }
  dialog.append(list);
  const more = element("ul");
  for (const text of Object.values(VIEWER_WORDS.keyNames)) more.append(element("li", "", text));
  dialog.append(more);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", () => dialog.close());
  document.body.append(dialog);
  dialog.showModal();
}
