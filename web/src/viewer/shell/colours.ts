// The colours of the viewer: light and dark, and a set of each for readers who tell red from green badly. Canvases need them
// as values and styles as variables, so that they are written here once and given to both.

import type { Tone } from "../../parts/tones";
import { keep, recall } from "./storage";

export interface Colours {
  page: string;
  card: string;
  ink: string;
  soft: string;
  line: string;
  stripe: string;
  hover: string;
  accent: string;
  accentSoft: string;
  // Words and lines of a tone, and areas of it.
  good: string;
  warning: string;
  bad: string;
  red: string;
  redLine: string;
  yellow: string;
  yellowLine: string;
  blue: string;
  blueLine: string;
  green: string;
  greenLine: string;
  grey: string;
  greyLine: string;
  medium: string;
  high: string;
  critical: string;
}

const LIGHT: Colours = {
  page: "#f6f7f9",
  card: "#ffffff",
  ink: "#1d2433",
  soft: "#5d677a",
  line: "#d9dde4",
  stripe: "#fafbfc",
  hover: "#eef3fa",
  accent: "#2f6fde",
  accentSoft: "#e4edfc",
  good: "#12805c",
  warning: "#9a5c00",
  bad: "#c9271e",
  red: "#fbc9c5",
  redLine: "#d23b31",
  yellow: "#ffe9a3",
  yellowLine: "#c99300",
  blue: "#dcebf9",
  blueLine: "#3d85c6",
  green: "#cfeadd",
  greenLine: "#2d9a72",
  grey: "#dfe2e8",
  greyLine: "#8a93a3",
  medium: "#c5ddf7",
  high: "#6da8ea",
  critical: "#2a62b8",
};

const DARK: Colours = {
  page: "#12151b",
  card: "#1a1e26",
  ink: "#e4e7ec",
  soft: "#98a2b3",
  line: "#333a47",
  stripe: "#1d222b",
  hover: "#242b37",
  accent: "#76a7ff",
  accentSoft: "#22304a",
  good: "#4cc79a",
  warning: "#f0b14a",
  bad: "#ff7a70",
  red: "#6b2a27",
  redLine: "#ff7a70",
  yellow: "#5c4a14",
  yellowLine: "#e0ac1b",
  blue: "#1c3348",
  blueLine: "#5a9fdc",
  green: "#1e4435",
  greenLine: "#46b48a",
  grey: "#3a404c",
  greyLine: "#808a9b",
  medium: "#25456b",
  high: "#3a73b8",
  critical: "#8cc0ff",
};

// Blue, yellow and vermilion are told apart by nearly everybody.
const LIGHT_DISTINCT: Partial<Colours> = {
  good: "#005b96",
  warning: "#8a6100",
  bad: "#b04600",
  red: "#f7bf95",
  redLine: "#c95400",
  yellow: "#fbeaa0",
  yellowLine: "#b58900",
  green: "#c4e0f4",
  greenLine: "#0072b2",
  blue: "#ecd9e8",
  blueLine: "#a85c90",
};

const DARK_DISTINCT: Partial<Colours> = {
  good: "#6fb9ee",
  warning: "#f0e442",
  bad: "#ff9a4d",
  red: "#7a3b0c",
  redLine: "#ff9a4d",
  yellow: "#55500f",
  yellowLine: "#e8d92c",
  green: "#14415f",
  greenLine: "#56b4e9",
  blue: "#4a2f44",
  blueLine: "#d394bf",
};

export type Theme = "light" | "dark" | "system";

const prefersDark = () => matchMedia("(prefers-color-scheme: dark)").matches;

export function theme(): Theme {
  const kept = recall("theme");
  return kept === "light" || kept === "dark" ? kept : "system";
}

export function isDistinct(): boolean {
  return recall("colours") === "distinct";
}

let current: Colours = LIGHT;
const listeners = new Set<() => void>();

export function colours(): Colours {
  return current;
}

// Called after the colours changed.
export function whenColoursChange(act: () => void): void {
  listeners.add(act);
}

function apply(): void {
  const chosen = theme();
  const dark = chosen === "dark" || (chosen === "system" && prefersDark());
  current = { ...(dark ? DARK : LIGHT), ...(isDistinct() ? (dark ? DARK_DISTINCT : LIGHT_DISTINCT) : {}) };
  const { style } = document.documentElement;
  for (const [name, value] of Object.entries(current))
    style.setProperty(`--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`, value as string);
  style.colorScheme = dark ? "dark" : "light";
  for (const act of listeners) act();
}

export function startColours(): void {
  apply();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
}

export function setTheme(to: Theme): void {
  keep("theme", to);
  apply();
}

export function setDistinct(on: boolean): void {
  keep("colours", on ? "distinct" : "usual");
  apply();
}

export function areaOf(tone: Tone): string {
  const { green, yellow, red, grey, card } = current;
  return { good: green, warning: yellow, bad: red, unknown: grey, plain: card }[tone];
}

export function lineOf(tone: Tone): string {
  const { greenLine, yellowLine, redLine, greyLine, soft } = current;
  return { good: greenLine, warning: yellowLine, bad: redLine, unknown: greyLine, plain: soft }[tone];
}

// Lines of a chart, one after the other.
export function seriesColour(place: number): string {
  const { accent, redLine, greenLine, yellowLine, blueLine, soft } = current;
  return [accent, redLine, greenLine, yellowLine, blueLine, soft][place % 6];
}

function channels(hex: string): [number, number, number] {
  const number = parseInt(hex.slice(1), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}

// Between two colours, as a heat map needs them.
export function mixed(from: string, to: string, share: number): string {
  const [a, b] = [channels(from), channels(to)];
  const one = (place: number) => Math.round(a[place] + (b[place] - a[place]) * share);
  return `rgb(${one(0)},${one(1)},${one(2)})`;
}

// Words that can be read on an area.
export function inkOn(area: string): string {
  if (!/^#[0-9a-f]{6}$/i.test(area)) return current.ink;
  const [red, green, blue] = channels(area);
  return red * 0.3 + green * 0.59 + blue * 0.11 > 140 ? "#1d2433" : "#f4f6f9";
}
