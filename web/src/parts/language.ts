// Which language the reader wants: what was switched to last, else the browser's.

export type Language = "en" | "zh";

const KEY = "msprobe.language";

// Pages that are opened from a disk or in a sandbox may have no storage.
function stored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

export function language(): Language {
  if (typeof navigator === "undefined") return "en";
  const known = stored();
  if (known === "en" || known === "zh") return known;
  return /^zh/i.test(navigator.language) ? "zh" : "en";
}

export function switchLanguage(to: Language): void {
  try {
    localStorage.setItem(KEY, to);
  } catch {
    // Then it holds for this visit only, which is none: the page is read anew.
  }
}
