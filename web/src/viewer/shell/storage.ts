// What a reader's browser keeps between visits. Exported pages may have no storage; then it lasts as long as the page.

const held = new Map<string, string>();

export function recall(key: string): string | null {
  try {
    return localStorage.getItem(`msprobe.${key}`) ?? held.get(key) ?? null;
  } catch {
    return held.get(key) ?? null;
  }
}

export function keep(key: string, value: string): void {
  held.set(key, value);
  try {
    localStorage.setItem(`msprobe.${key}`, value);
  } catch {
    // Kept for this visit only.
  }
}
