// Two call stacks beside each other: the frames both have stand on one line.

export interface Frame {
  text: string;
  isUser: boolean;
}

export interface FrameLine {
  target: Frame | null;
  golden: Frame | null;
  isSame: boolean;
}

// Where the code lies differs from machine to machine; what it is called does not.
function keyOf({ text }: Frame): string {
  return text.replace(/[^\s"']*[/\\]/g, "").trim();
}

// The longest run of frames both have, in order; what stands between two of them is put beside each other.
export function alignFrames(target: readonly Frame[], golden: readonly Frame[]): FrameLine[] {
  const [a, b] = [target.map(keyOf), golden.map(keyOf)];
  const best = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      best[i][j] = a[i] === b[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
  const lines: FrameLine[] = [];
  let [i, j] = [0, 0];
  let waiting: { target: Frame[]; golden: Frame[] } = { target: [], golden: [] };
  const flush = () => {
    for (let at = 0; at < Math.max(waiting.target.length, waiting.golden.length); at++)
      lines.push({ target: waiting.target.at(at) ?? null, golden: waiting.golden.at(at) ?? null, isSame: false });
    waiting = { target: [], golden: [] };
  };
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      flush();
      lines.push({ target: target[i++], golden: golden[j++], isSame: true });
    } else if (j >= b.length || (i < a.length && best[i + 1][j] >= best[i][j + 1])) waiting.target.push(target[i++]);
    else waiting.golden.push(golden[j++]);
  }
  flush();
  return lines;
}

// The reader's own code before that of frameworks, each in its order.
export function userFirst(frames: readonly Frame[]): Frame[] {
  return [...frames.filter(({ isUser }) => isUser), ...frames.filter(({ isUser }) => !isUser)];
}
