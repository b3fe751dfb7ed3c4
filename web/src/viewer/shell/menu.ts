// A menu beside the pointer, and small messages.

import { button, element } from "../../parts/dom";

export interface Choice {
  text: string;
  act: () => void;
  isOff?: boolean;
  // A colour to the left of the text: that of a tone, or any.
  tone?: string;
  colour?: string;
}

let shown: HTMLElement | null = null;

export function closeMenu(): boolean {
  const had = shown !== null;
  shown?.remove();
  shown = null;
  return had;
}

export function showMenu(x: number, y: number, title: string, choices: readonly Choice[]): void {
  closeMenu();
  const menu = element("div", "context-menu");
  menu.setAttribute("role", "menu");
  menu.append(element("p", "menu-title", title));
  const buttons = choices.map(({ text, act, isOff, tone, colour }) => {
    const item = button(
      text,
      "",
      () => {
        closeMenu();
        act();
      },
      `menu-item${tone ? ` toned ${tone}` : ""}`,
    );
    if (colour) item.style.setProperty("--tone", colour);
    item.setAttribute("role", "menuitem");
    item.disabled = isOff ?? false;
    return item;
  });
  menu.append(...buttons);
  document.body.append(menu);
  shown = menu;
  const { width, height } = menu.getBoundingClientRect();
  menu.style.left = `${Math.max(4, Math.min(x, window.innerWidth - width - 4))}px`;
  menu.style.top = `${Math.max(4, Math.min(y, window.innerHeight - height - 4))}px`;
  const live = buttons.filter(({ disabled }) => !disabled);
  live[0]?.focus();
  menu.addEventListener("keydown", (event) => {
    const at = live.indexOf(document.activeElement as HTMLButtonElement);
    if (event.key === "ArrowDown") live[(at + 1) % live.length]?.focus();
    else if (event.key === "ArrowUp") live[(at - 1 + live.length) % live.length]?.focus();
    else if (event.key === "Escape") closeMenu();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
}

document.addEventListener("pointerdown", (event) => {
  if (shown && !shown.contains(event.target as Node)) closeMenu();
});

export function toast(text: string, isBad = false): void {
  const note = element("div", `toast${isBad ? " failed" : ""}`, text);
  note.setAttribute("role", isBad ? "alert" : "status");
  document.body.append(note);
  setTimeout(() => note.remove(), isBad ? 6000 : 2200);
}
