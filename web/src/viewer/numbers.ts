// Numbers of the contract: reading those that are not finite, and writing all of them for people.

import type { Num } from "./api";

export function toNumber(value: Num | null | undefined): number | null {
  return value === null || value === undefined ? null : Number(value);
}

export function numberText(value: Num | null | undefined): string {
  const number = toNumber(value);
  if (number === null) return "–";
  if (!Number.isFinite(number)) return Number.isNaN(number) ? "NaN" : number > 0 ? "Inf" : "-Inf";
  const size = Math.abs(number);
  if (number === 0) return "0";
  if (size >= 1e6 || size < 1e-3) return number.toExponential(2).replace("e+", "e");
  return String(Number(number.toPrecision(4)));
}

export function bytesText(bytes: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let size = bytes;
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit++;
  }
  return `${unit === 0 ? size : size.toFixed(1)} ${units[unit]}`;
}
