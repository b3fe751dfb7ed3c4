// The page: tabs, the bar above a grid, and the panel with the details of a row.

const TYPING_PAUSE_MS = 180;

function button(text, hint, act, className) {
  const made = element("button", className || "plain", text);
  made.type = "button";
  if (hint) made.title = hint;
  made.addEventListener("click", act);
  return made;
}

// Width of a digit in the grid, whatever font there is.
function digitWidth() {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `13px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText("0123456789").width / 10;
}

// Reads the blocks of a table when it is first looked at, and lets go of their text.
function loadTable(described, number) {
  const scripts = Array.from(document.querySelectorAll(`script.rows[data-table="${number}"]`));
  function* blocks() {
    for (const script of scripts) {
      yield JSON.parse(script.textContent);
      script.remove();
    }
  }
  const table = { ...described, ...readColumns(described.headers.length, described.count, blocks()) };
  const width = digitWidth();
  const measured = table.columns.map((column, at) => measure(table.headers[at], column));
  table.widths = measured.map(({ chars }) => Math.round(chars * width) + 24);
  // Room for the mark of the evidence.
  if (table.widths.length) table.widths[0] += 16;
  table.numeric = measured.map(({ numeric }) => numeric);
  return table;
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Older browsers, and files opened from a disk in some newer ones.
    const area = element("textarea", "offscreen");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  toast(WORDS.copied);
}

function toast(text) {
  const note = element("div", "toast", text);
  document.body.append(note);
  setTimeout(() => note.remove(), 1200);
}

class TableView {
  constructor(described, number) {
    this.table = loadTable(described, number);
    const all = this.table.headers.map((_, at) => at).filter((at) => !this.table.details.includes(at));
    this.usual = all.filter((at) => !this.table.hidden.includes(at));
    this.all = all;
    this.shown = new Set(this.usual);
    this.sort = { column: -1, direction: 0 };
    this.filters = { search: "", perColumn: {}, fills: [true, true, true, true] };
    this.grid = new Grid(this.table, {
      sort: (column) => this.sortBy(column),
      filter: (column, text) => {
        this.filters.perColumn[column] = text;
        this.filterLater();
      },
      choose: (row) => {
        this.chosen = row;
        if (!this.panel.hidden || this.table.details.length) this.showDetails(row);
      },
      open: (row) => this.showDetails(row),
      close: () => this.hideDetails(),
      copy: copyText,
    });
    this.panel = element("aside", "details");
    this.panel.hidden = true;
    this.body = element("section", "table");
    const area = element("div", "area");
    area.append(this.grid.scroller, this.panel);
    this.body.append(this.bar(), area);
    if (!this.table.count) this.grid.empty.textContent = WORDS.noRows;
    this.refreshColumns();
    this.refilter();
  }

  // After the view is in the document, where it has a height.
  begin() {
    if (this.begun) return;
    this.begun = true;
    if (this.table.first !== null) this.goToEvidence();
  }

  bar() {
    const bar = element("div", "bar");
    this.search = element("input", "search");
    this.search.type = "search";
    this.search.placeholder = WORDS.search;
    this.search.setAttribute("aria-label", WORDS.search);
    this.search.addEventListener("input", () => {
      this.filters.search = this.search.value;
      this.filterLater();
    });
    this.count = element("span", "count");
    this.count.setAttribute("aria-live", "polite");
    bar.append(this.search, this.colours(), this.columnMenu());
    if (this.table.first !== null) {
      bar.append(button(WORDS.evidence, WORDS.evidenceHint, () => this.goToEvidence()));
    }
    bar.append(
      button(WORDS.reset, WORDS.resetHint, () => this.reset()),
      button(WORDS.exportCsv, WORDS.exportHint, () => this.exportCsv()),
      this.count,
    );
    return bar;
  }

  colours() {
    const counts = [0, 0, 0, 0];
    for (const fill of this.table.fills) counts[fill]++;
    const group = element("div", "colours");
    this.chips = [];
    for (const [fill, name] of [[2, "red"], [1, "yellow"], [3, "blue"], [0, "plain"]]) {
      const chip = button("", WORDS.colours, () => {
        this.filters.fills[fill] = !this.filters.fills[fill];
        this.refilter();
      }, `chip ${name}`);
      chip.append(element("span", "dot"), `${WORDS[name]} `, element("b", "", thousands(counts[fill])));
      chip.disabled = counts[fill] === 0;
      this.chips[fill] = chip;
      group.append(chip);
    }
    return group;
  }

  columnMenu() {
    const menu = element("details", "menu");
    menu.append(element("summary", "", WORDS.columns));
    const list = element("div", "list");
    const set = (columns) => {
      this.shown = new Set(columns);
      boxes.forEach((box, place) => (box.checked = this.shown.has(this.all[place])));
      this.refreshColumns();
    };
    const tools = element("div", "tools");
    tools.append(button(WORDS.allColumns, "", () => set(this.all)), button(WORDS.usualColumns, "", () => set(this.usual)));
    list.append(tools);
    const boxes = this.all.map((number) => {
      const label = element("label");
      const box = element("input");
      box.type = "checkbox";
      box.checked = this.shown.has(number);
      box.addEventListener("change", () => {
        if (box.checked) this.shown.add(number);
        else this.shown.delete(number);
        this.refreshColumns();
      });
      label.append(box, element("span", "", this.table.headers[number]));
      list.append(label);
      return box;
    });
    menu.append(list);
    document.addEventListener("click", (event) => {
      if (!menu.contains(event.target)) menu.open = false;
    });
    return menu;
  }

  visible() {
    return this.all.filter((number) => this.shown.has(number));
  }

  refreshColumns() {
    this.grid.showColumns(this.visible(), this.sort, this.filters.perColumn);
  }

  filterLater() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.refilter(), TYPING_PAUSE_MS);
  }

  refilter() {
    this.filtered = filterRows(this.table, this.filters);
    this.chips.forEach((chip, fill) => chip.setAttribute("aria-pressed", String(this.filters.fills[fill])));
    this.count.textContent = WORDS.rows(this.filtered.length, this.table.count);
    this.order();
  }

  order() {
    this.grid.showRows(sortRows(this.filtered, this.table.columns[this.sort.column], this.sort.direction));
  }

  // Upwards, downwards, as it was.
  sortBy(column) {
    const { column: last, direction } = this.sort;
    const next = last !== column ? 1 : direction === 1 ? -1 : 0;
    this.sort = { column: next ? column : -1, direction: next };
    this.refreshColumns();
    this.order();
    this.grid.scroller.scrollTop = 0;
  }

  reset() {
    this.search.value = "";
    this.filters = { search: "", perColumn: {}, fills: [true, true, true, true] };
    this.sort = { column: -1, direction: 0 };
    this.refreshColumns();
    this.refilter();
  }

  goToEvidence() {
    if (!this.grid.goTo(this.table.first)) {
      this.reset();
      this.grid.goTo(this.table.first);
    }
  }

  exportCsv() {
    const columns = this.visible().concat(this.table.details);
    const blob = new Blob(["\ufeff", csvOf(this.table, this.grid.rows, columns)], { type: "text/csv" });
    const link = element("a");
    link.href = URL.createObjectURL(blob);
    link.download = `${this.table.name.replace(/[^\p{L}\p{N}_-]+/gu, "_") || "table"}.csv`;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  showDetails(row) {
    const { table } = this;
    const title = element("div", "title");
    const copy = () => copyText(table.columns.map((column) => textOf(valueAt(column, row)).replace(/[\t\r\n]+/g, " ")).join("\t"));
    title.append(
      element("h2", "", WORDS.row(row + 1)),
      button(WORDS.copyRow, "", copy),
      button("✕", WORDS.close, () => this.hideDetails(), "plain close"),
    );
    const content = element("div", "content");
    for (const number of table.details) {
      const value = valueAt(table.columns[number], row);
      content.append(element("h3", "", table.headers[number]), element("pre", isMissing(value) ? "missing" : "", stackText(value) || "–"));
    }
    const list = element("dl");
    for (const number of this.all) list.append(...this.detail(number, row));
    content.append(list);
    this.panel.className = `details ${FILL_NAMES[table.fills[row]]}`;
    const scrolled = this.panel.querySelector(".content")?.scrollTop || 0;
    this.panel.replaceChildren(title, content);
    if (this.panel.hidden) {
      this.panel.hidden = false;
      this.grid.later();
    }
    content.scrollTop = scrolled;
  }

  detail(number, row) {
    const value = valueAt(this.table.columns[number], row);
    return [element("dt", "", this.table.headers[number]), element("dd", isMissing(value) ? "missing" : "", textOf(value) || "–")];
  }

  hideDetails() {
    this.panel.hidden = true;
    this.grid.scroller.focus();
    this.grid.later();
  }
}

// What the tabs show, in their order: the curves or the timeline, where there are any, and the tables.
function sections() {
  const curves = document.getElementById("curves");
  const tables = JSON.parse(document.getElementById("described").textContent);
  const list = tables.map((table, number) => ({ ...table, make: () => new TableView(table, number) }));
  if (curves) {
    const described = JSON.parse(curves.textContent);
    list.unshift({ ...described, make: () => new CurvesView(described) });
  }
  const timeline = document.getElementById("timeline");
  if (timeline) {
    const described = JSON.parse(timeline.textContent);
    timeline.remove();
    list.unshift({ name: described.name, count: described.count, make: () => new TimelineView(described) });
  }
  return list;
}

function start() {
  if (CHINESE_READER) document.documentElement.lang = "zh";
  const parts = sections();
  const main = document.getElementById("tables");
  if (!parts.length) return;
  const views = [];
  const tabs = element("nav", "tabs");
  tabs.setAttribute("role", "tablist");
  const holder = element("div", "holder");
  const open = (number) => {
    const view = (views[number] ||= parts[number].make());
    holder.replaceChildren(view.body);
    Array.from(tabs.children).forEach((tab, at) => tab.setAttribute("aria-selected", String(at === number)));
    view.begin();
    view.grid.later();
  };
  parts.forEach(({ name, count }, number) => {
    const tab = button(name, "", () => open(number), "tab");
    tab.setAttribute("role", "tab");
    tab.append(element("span", "badge", thousands(count)));
    tabs.append(tab);
  });
  main.append(tabs, holder);
  open(0);
}

start();
