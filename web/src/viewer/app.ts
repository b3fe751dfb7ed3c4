// The viewer as a whole: it follows the address, opens what it names, and hands keys to whom they concern.

import { button, element } from "../parts/dom";
import { language, switchLanguage } from "../parts/language";
import type { Catalogue, GraphInfo, Item } from "./api";
import { keptRanges } from "./graph/legend";
import { ConvertView } from "./home/convert";
import { Home, isGraph, placeOfItem } from "./home/home";
import { ItemView } from "./home/item";
import { emptyPlace, type Place, placeFromHash, placeToHash } from "./place";
import { isDistinct, setDistinct, setTheme, theme, whenColoursChange } from "./shell/colours";
import { type Command, showHelp, showPalette } from "./shell/commands";
import type { Context } from "./shell/context";
import { closeMenu, toast } from "./shell/menu";
import { Refusal, type Source } from "./sources/source";
import { VIEWER_WORDS } from "./words";
import { Workspace } from "./workspace";

export class App implements Context {
  place: Place = emptyPlace();
  catalogue: Catalogue = { version: "", roots: [], items: [], notes: [] };
  info!: GraphInfo;
  workspace: Workspace | null = null;
  // How many places are being brought to the screen.
  working = 0;
  private view: { body: HTMLElement; item: ItemView | null } | null = null;
  private previous: Place | null = null;
  private readonly header = element("header", "top");
  private readonly title = element("span", "top-title");
  private readonly holder = element("div", "holder");
  private readonly waiting = element("p", "waiting");
  private readonly bar = element("div", "top-bar");
  private opens = 0;
  private wait: number | undefined;

  constructor(readonly source: Source) {}

  async start(): Promise<void> {
    document.body.replaceChildren(this.header, this.waiting, this.holder);
    this.waiting.hidden = true;
    this.waiting.setAttribute("role", "status");
    this.drawHeader();
    document.addEventListener("keydown", (event) => this.key(event));
    whenColoursChange(() => {
      if (this.view?.body.classList.contains("home")) void this.render(false);
    });
    const catalogue = await this.attempt(this.source.catalogue());
    if (!catalogue) return;
    this.catalogue = catalogue;
    window.addEventListener("popstate", () => {
      this.place = placeFromHash(location.hash);
      void this.render(true);
    });
    this.place = placeFromHash(location.hash);
    await this.render(false);
  }

  private drawHeader(): void {
    const words = VIEWER_WORDS;
    const tools = element("div", "top-tools");
    const themes = button("◐", words.theme, () => this.nextTheme(), "button theme");
    const distinct = button("◍", words.distinct, () => {
      setDistinct(!isDistinct());
      distinct.setAttribute("aria-pressed", String(isDistinct()));
    });
    distinct.classList.add("distinct");
    distinct.setAttribute("aria-pressed", String(isDistinct()));
    tools.append(
      button("⌕", `${words.search} (/)`, () => this.search(), "button open-search"),
      button("⌘", `${words.palette} (Ctrl+K)`, () => this.palette(), "button open-palette"),
      themes,
      distinct,
      button(words.language, words.languageHint, () => this.otherLanguage(), "button language"),
      button("?", `${words.help} (?)`, () => showHelp(this.commands()), "button open-help"),
    );
    this.header.append(
      button("msprobe", words.home, () => this.goHome(), "home-button"),
      this.title,
      this.bar,
      tools,
    );
  }

  private nextTheme(): void {
    const order = ["system", "light", "dark"] as const;
    const next = order[(order.indexOf(theme()) + 1) % 3];
    setTheme(next);
    this.tell(VIEWER_WORDS.themes[next]);
  }

  private otherLanguage(): void {
    switchLanguage(language() === "zh" ? "en" : "zh");
    location.reload();
  }

  preparing(share: number | null): void {
    this.waiting.hidden = share === null;
    if (share !== null) this.waiting.textContent = VIEWER_WORDS.preparing(Math.floor(share * 100));
  }

  // What is there now may be more than what was there at the start.
  goHome(): void {
    this.goWhole(emptyPlace());
    void this.attempt(this.source.catalogue()).then((catalogue) => {
      if (!catalogue || JSON.stringify(catalogue) === JSON.stringify(this.catalogue)) return;
      this.catalogue = catalogue;
      if (this.place.file === null) void this.render(false);
    });
  }

  goWhole(place: Place): void {
    this.place = place;
    history.pushState(null, "", `#${placeToHash(place)}`);
    void this.render(false);
  }

  go(patch: Partial<Place>): void {
    const hash = placeToHash(this.place);
    this.place = { ...this.place, ...patch };
    const next = placeToHash(this.place);
    if (next !== hash) history.pushState(null, "", `#${next}`);
    void this.render(false);
  }

  note(patch: Partial<Place>): void {
    this.place = { ...this.place, ...patch };
    this.previous = this.previous && { ...this.previous, ...patch };
    history.replaceState(null, "", `#${placeToHash(this.place)}`);
  }

  tell(text: string): void {
    toast(text);
  }

  async attempt<T>(work: Promise<T>): Promise<T | undefined> {
    window.clearTimeout(this.wait);
    this.wait = window.setTimeout(() => document.body.classList.add("busy"), 250);
    try {
      return await work;
    } catch (error) {
      const said = error instanceof Error ? error.message : String(error);
      const hint = error instanceof Refusal ? error.hint : "";
      toast(hint ? `${said}\n${hint}` : said, true);
      return undefined;
    } finally {
      window.clearTimeout(this.wait);
      document.body.classList.remove("busy");
    }
  }

  private async render(isBack: boolean): Promise<void> {
    this.working++;
    try {
      await this.follow(isBack);
    } finally {
      this.working--;
    }
  }

  // Shows what the address says.
  private async follow(isBack: boolean): Promise<void> {
    const { place, previous } = this;
    this.previous = place;
    closeMenu();
    const item = this.catalogue.items.find(({ id }) => id === place.file);
    if (!item) {
      if (place.file === null && place.screen === "convert" && !this.source.isReadOnly) this.showConvert();
      else this.showHome(place.file);
      return;
    }
    document.title = `${item.title} · msprobe`;
    this.title.textContent = item.title;
    this.title.title = item.path;
    if (!isGraph(item)) {
      await this.showItem(item);
      return;
    }
    if (!this.workspace || previous?.file !== place.file) {
      await this.openGraph(item);
      return;
    }
    await this.workspace.update(previous, isBack);
  }

  private showHome(file: string | null): void {
    if (file !== null) this.tell(`${VIEWER_WORDS.noHits}: ${file}`);
    this.workspace = null;
    document.title = "msprobe";
    this.title.textContent = "";
    this.show(new Home(this.catalogue, (to) => this.goWhole(to), !this.source.isReadOnly).body, null);
  }

  private showConvert(): void {
    this.workspace = null;
    document.title = `${VIEWER_WORDS.convert} · msprobe`;
    this.title.textContent = VIEWER_WORDS.convert;
    const view = new ConvertView(
      this.catalogue,
      this.source,
      (id) => void this.openMade(id),
      (work) => this.attempt(work),
    );
    this.show(view.body, null);
  }

  // Something that was not there when the list was read.
  private async openMade(id: string): Promise<void> {
    const catalogue = await this.attempt(this.source.catalogue());
    if (!catalogue) return;
    this.catalogue = catalogue;
    this.goWhole({ ...emptyPlace(), file: id });
  }

  private show(body: HTMLElement, item: ItemView | null): void {
    this.view = { body, item };
    this.holder.replaceChildren(body);
    this.bar.replaceChildren(...(this.workspace ? [this.workspace.bar] : []));
  }

  private async showItem(item: Item): Promise<void> {
    this.workspace = null;
    if (this.view?.body.dataset.item !== item.id || !this.view.item) {
      const view = new ItemView(
        item,
        this.source,
        (patch) => this.go(patch),
        (work) => this.attempt(work),
      );
      view.body.dataset.item = item.id;
      this.show(view.body, view);
    }
    await this.view?.item?.update(this.place);
  }

  private async openGraph(item: Item): Promise<void> {
    const open = ++this.opens;
    this.holder.replaceChildren(element("p", "empty", VIEWER_WORDS.loading));
    const info = await this.attempt(this.source.graph(item.id));
    if (open !== this.opens || this.place.file !== item.id) return;
    if (!info) {
      this.workspace = null;
      this.show(element("p", "empty fault", item.error ?? VIEWER_WORDS.failed), null);
      return;
    }
    this.info = { ...info, colours: keptRanges(info.id) ?? info.colours };
    this.note(firstPlace(this.place, info));
    this.workspace = new Workspace(this, item);
    this.show(this.workspace.body, null);
    await this.workspace.update(null, false);
  }

  private search(typed?: string): void {
    this.workspace?.openSearch(typed);
    if (!this.workspace) this.holder.querySelector<HTMLInputElement>(".search")?.focus();
  }

  private palette(): void {
    showPalette(this.commands(), this.workspace ? (typed) => this.search(typed) : null);
  }

  private commands(): Command[] {
    const words = VIEWER_WORDS;
    return [
      ...(this.workspace?.commands() ?? []),
      { title: words.palette, key: "Ctrl+K", act: () => this.palette() },
      { title: words.help, key: "?", act: () => showHelp(this.commands()) },
      { title: words.home, key: "h", act: () => this.goHome() },
      ...(this.source.isReadOnly
        ? []
        : [{ title: words.convert, act: () => this.goWhole({ ...emptyPlace(), screen: "convert" as const }) }]),
      { title: words.theme, act: () => this.nextTheme() },
      { title: words.distinct, act: () => setDistinct(!isDistinct()) },
      { title: words.language, act: () => this.otherLanguage() },
      ...this.catalogue.items.slice(0, 500).map((item) => ({
        title: `${words.openGraph}: ${item.title}`,
        act: () => this.goWhole(placeOfItem(item)),
      })),
    ];
  }

  private key(event: KeyboardEvent): void {
    const isCommand = event.ctrlKey || event.metaKey;
    if (isCommand && event.key.toLowerCase() === "k") {
      event.preventDefault();
      this.palette();
      return;
    }
    const target = event.target as Element;
    if (event.key === "Escape" && !closeMenu() && target instanceof HTMLElement) target.blur();
    if (target.closest("input, select, textarea, dialog, .context-menu") || event.altKey) return;
    // Buttons and handles have keys of their own.
    if (["Enter", " "].includes(event.key) && target.closest("button, summary")) return;
    const name = isCommand ? `Ctrl+${event.shiftKey ? "Shift+" : ""}${event.key.toUpperCase()}` : event.key;
    const command = this.commands().find(({ key }) => key === name);
    if (command) command.act();
    else if (isCommand || !this.workspace?.key(event)) return;
    event.preventDefault();
  }
}

// Where a graph is looked at first: the worst answer, or the first step and rank.
function firstPlace(place: Place, info: GraphInfo): Partial<Place> {
  const worst = info.answers.find(({ tone }) => tone === "bad") ?? info.answers.at(0);
  const step =
    place.step !== null && info.steps.includes(place.step) ? place.step : (worst?.step ?? info.steps.at(0) ?? 0);
  const rank =
    place.rank !== null && info.ranks.includes(place.rank) ? place.rank : (worst?.rank ?? info.ranks.at(0) ?? 0);
  return { step, rank };
}
