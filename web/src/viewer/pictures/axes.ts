// Scales of pictures: numbers to places, in proportion or by their logarithm.

import { niceTicks } from "../../parts/ticks";
import { numberText } from "../numbers";

export interface Scale {
  at: (value: number) => number;
  ticks: { value: number; text: string }[];
}

export function evenScale(low: number, high: number, from: number, to: number, most: number, whole = false): Scale {
  const size = high - low || 1;
  return {
    at: (value) => from + ((value - low) / size) * (to - from),
    ticks: niceTicks(low, high, most, whole).map((value) => ({ value, text: numberText(value) })),
  };
}

// What is zero stands at the bottom, what is not finite at the top.
export function logScale(values: readonly number[], from: number, to: number): Scale {
  const real = values.filter((value) => value > 0 && Number.isFinite(value));
  const low = Math.floor(Math.log10(real.length ? Math.min(...sampled(real, Math.min)) : 1e-6));
  const high = Math.max(low + 1, Math.ceil(Math.log10(real.length ? Math.max(...sampled(real, Math.max)) : 1)));
  const every = Math.max(1, Math.ceil((high - low) / 8));
  const ticks = [];
  for (let power = low; power <= high; power += every) ticks.push({ value: 10 ** power, text: `1e${power}` });
  return {
    at: (value) => {
      if (Number.isNaN(value) || value === Infinity) return to;
      const power = value > 0 ? Math.log10(value) : low;
      return from + ((Math.max(low, Math.min(high, power)) - low) / (high - low)) * (to - from);
    },
    ticks,
  };
}

// Functions cannot be called with any number of arguments.
function sampled(values: readonly number[], pick: (...of: number[]) => number): number[] {
  const best: number[] = [];
  for (let at = 0; at < values.length; at += 1000) best.push(pick(...values.slice(at, at + 1000)));
  return best;
}
