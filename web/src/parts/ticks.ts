// Numbers on an axis between two ends: whole multiples of 1, 2, 2.5 or 5 times a power of ten.
export function niceTicks(low: number, high: number, most: number, whole: boolean): number[] {
  const least = (high - low) / Math.max(1, most);
  if (!(least > 0)) return [];
  const power = Math.floor(Math.log10(least));
  const steps = [1, 2, 2.5, 5, 10, 20, 25, 50].map((factor) => Number(`${factor}e${power}`));
  const step = steps.find((size) => size >= least * (1 - 1e-9) && (!whole || size % 1 === 0)) || 1;
  const ticks: number[] = [];
  for (let at = Math.ceil(low / step - 1e-9); at <= high / step + 1e-9 && ticks.length < 30; at++) {
    ticks.push(Number((at * step).toPrecision(12)));
  }
  return ticks;
}
