// What the shapes and colours of the graph mean, and the ranges of the reference's index, which a reader may change.

import { button, element, vector } from "../../parts/dom";
import type { GraphInfo } from "../api";
import { areaOf, colours, lineOf } from "../shell/colours";
import { type Context, colourMode } from "../shell/context";
import { keep, recall } from "../shell/storage";
import { VIEWER_WORDS } from "../words";
import type { ColourRange } from "./painter";

const MOST_RANGES = 5;

export function keptRanges(id: string): ColourRange[] | null {
  try {
    const kept: unknown = JSON.parse(recall(`ranges.${id}`) ?? "null");
    return Array.isArray(kept) && rangesFit(kept as ColourRange[]) ? (kept as ColourRange[]) : null;
  } catch {
    return null;
  }
}

export function rangesFit(ranges: readonly ColourRange[]): boolean {
  const real = ranges.flatMap(({ range }) => (range.length === 2 ? [range] : [])).sort((a, b) => a[0] - b[0]);
  const isFine = (number: number) => number >= 0 && number <= 1 && /^\d(\.\d{1,5})?$/.test(String(number));
  return (
    real.length > 0 &&
    real.length <= MOST_RANGES &&
    ranges.every(({ hex }) => /^#[0-9a-f]{6}$/i.test(hex)) &&
    real.every(([low, high], place) => {
      const next = real.at(place + 1);
      return (
        isFine(low) &&
        isFine(high) &&
        low <= high &&
        (!next || next[0] >= high) &&
        (low < high || !next || next[0] > high)
      );
    })
  );
}

function sign(kind: "box" | "ellipse" | "dashed" | "worst", fill: string, line: string): SVGSVGElement {
  const picture = vector("svg", "", { width: 22, height: 14, viewBox: "0 0 22 14", "aria-hidden": "true" });
  const look = { fill, stroke: line, "stroke-width": 1.2 };
  picture.append(
    kind === "ellipse"
      ? vector("ellipse", "", { cx: 11, cy: 7, rx: 10, ry: 6, ...look })
      : kind === "worst"
        ? vector("circle", "", { cx: 11, cy: 7, r: 5, ...look })
        : vector("rect", "", {
            x: 1,
            y: 1,
            width: 20,
            height: 12,
            rx: 3,
            ...look,
            "stroke-dasharray": kind === "dashed" ? "3 2" : "none",
          }),
  );
  return picture;
}

// The entries depend on what the graph is coloured by.
export function legend(context: Context, editRanges: () => void): HTMLElement {
  const { info } = context;
  const words = VIEWER_WORDS;
  const list = element("ul", "legend");
  const { card, greyLine, grey, medium, high, critical, redLine, red } = colours();
  const entry = (picture: SVGSVGElement, text: string) => {
    const item = element("li");
    item.append(picture, text);
    list.append(item);
  };
  entry(sign("box", card, greyLine), words.shapes.module);
  entry(sign("ellipse", card, greyLine), words.shapes.api);
  entry(sign("dashed", card, greyLine), words.shapes.collection);
  const mode = colourMode(context);
  if (mode === "verdict")
    for (const tone of ["bad", "warning", "good", "unknown"] as const)
      entry(sign("box", areaOf(tone), lineOf(tone)), words.tones[tone]);
  else if (mode === "overflow")
    for (const [level, hex] of Object.entries({ medium, high, critical }))
      entry(sign("box", hex, greyLine), words.overflows[level as "medium"]);
  else {
    for (const { hex, range, description } of info.colours) {
      const item = element("li");
      const text = range.length === 2 ? `${range[0]} – ${range[1]}` : words.unmatched;
      item.append(sign("box", range.length ? hex : grey, greyLine), text);
      item.title = description;
      list.append(item);
    }
    const item = element("li");
    item.append(button(words.editRanges, words.ranges, editRanges, "link"));
    list.append(item);
  }
  entry(sign("worst", mode === "overflow" ? critical : red, mode === "overflow" ? greyLine : redLine), words.worst);
  return list;
}

// Lets the reader change the ranges; `changed` gets the new ones, null for those of the file.
export function editRanges(info: GraphInfo, changed: (ranges: ColourRange[] | null) => void): void {
  const words = VIEWER_WORDS;
  const dialog = element("dialog", "ranges");
  const rows = element("div", "range-rows");
  const fault = element("p", "fault");
  const addRow = ({ hex, range, description }: ColourRange) => {
    if (range.length !== 2) return;
    const row = element("div", "range-row");
    const colour = element("input");
    colour.type = "color";
    colour.value = hex;
    const [low, high] = range.map((number, place) => {
      const field = element("input", "number");
      field.inputMode = "decimal";
      field.value = String(number);
      field.setAttribute("aria-label", place ? words.high : words.low);
      return field;
    });
    const meaning = element("input", "meaning");
    meaning.value = description;
    meaning.setAttribute("aria-label", words.meaning);
    row.append(
      colour,
      low,
      "–",
      high,
      meaning,
      button("✕", words.close, () => row.remove()),
    );
    rows.append(row);
  };
  info.colours.forEach(addRow);
  const read = (): ColourRange[] =>
    Array.from(rows.children, (row) => {
      const [colour, low, high, meaning] = Array.from(row.querySelectorAll("input"), ({ value }) => value);
      return { hex: colour, range: [Number(low || "NaN"), Number(high || "NaN")], description: meaning };
    });
  const bar = element("div", "bar");
  bar.append(
    button(words.addRange, "", () => {
      if (rows.children.length < MOST_RANGES) addRow({ hex: "#ffcc00", range: [0, 1], description: "" });
    }),
    button(words.usualRanges, "", () => {
      keep(`ranges.${info.id}`, "null");
      dialog.close();
      changed(null);
    }),
    button(words.apply, "", () => {
      const ranges = read();
      if (!rangesFit(ranges)) {
        fault.textContent = words.badRanges;
        return;
      }
      const kept = [...ranges, ...info.colours.filter(({ range }) => range.length === 0)];
      keep(`ranges.${info.id}`, JSON.stringify(kept));
      dialog.close();
      changed(kept);
    }),
    button(words.close, "", () => dialog.close()),
  );
  dialog.append(element("h2", "", words.ranges), element("p", "soft", words.rangesHint), rows, fault, bar);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
