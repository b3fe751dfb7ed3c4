// What colours say. The names are those of the program that writes the pages.

export type Tone = "plain" | "good" | "warning" | "bad" | "unknown";

const RANK: Record<Tone, number> = { plain: 0, good: 0, unknown: 1, warning: 2, bad: 3 };

export function isWorse(tone: Tone, than: Tone): boolean {
  return RANK[tone] > RANK[than];
}

export function worstTone(things: readonly { tone: Tone }[]): Tone {
  return things.reduce<Tone>((worst, { tone }) => (isWorse(tone, worst) ? tone : worst), "good");
}
