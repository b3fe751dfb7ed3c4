// A line chart on a canvas: its scales, its numbers, and the drawing itself.

// Numbers on an axis between two ends: whole multiples of 1, 2, 2.5 or 5 times a power of ten.
function niceTicks(low, high, most, whole) {
  const least = (high - low) / Math.max(1, most);
  if (!(least > 0)) return [];
  const power = Math.floor(Math.log10(least));
  const steps = [1, 2, 2.5, 5, 10, 20, 25, 50].map((factor) => Number(`${factor}e${power}`));
  const step = steps.find((size) => size >= least * (1 - 1e-9) && (!whole || size % 1 === 0)) || 1;
  const ticks = [];
  for (let at = Math.ceil(low / step - 1e-9); at <= high / step + 1e-9 && ticks.length < 30; at++) {
    ticks.push(Number((at * step).toPrecision(12)));
  }
  return ticks;
}

// The levels a curve is held against at one place.
function limitsAt({ limits }, at) {
  return limits.filter(([from, to]) => from <= at && at <= to).map(([, , level]) => level);
}

// The vertical range of some curves: all values that can be drawn, the limits some value is below, and some room.
function rangeOf(curves) {
  let low = Infinity;
  let high = -Infinity;
  for (const { values, limits } of curves) {
    for (const [from, to, level] of limits) {
      const isBelow = values.slice(from, to + 1).some((value) => Number.isFinite(value) && value < level);
      if (isBelow && level > high) high = level;
    }
    for (const value of values) {
      if (!Number.isFinite(value)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  if (low > high) [low, high] = [0, 1];
  const room = high > low ? (high - low) * 0.06 : Math.abs(low) * 0.05 || 0.05;
  return { low: low - room, high: high + room };
}

// Which values to join, so that a long series costs no more than its width: per pixel the first, lowest, highest, last.
function thinned(values, places, width) {
  const all = values.map((_, at) => at);
  if (values.length <= width * 4) return all;
  const kept = [];
  for (let at = 0; at < values.length; ) {
    const column = Math.floor(places[at]);
    let low = at;
    let high = at;
    let missing = -1;
    const first = at;
    for (; at < values.length && Math.floor(places[at]) === column; at++) {
      if (!Number.isFinite(values[at])) missing = at;
      else {
        if (!(values[low] <= values[at])) low = at;
        if (!(values[high] >= values[at])) high = at;
      }
    }
    const chosen = new Set([first, low, high, at - 1]);
    // A gap stays one.
    if (missing >= 0) chosen.add(missing);
    kept.push(...Array.from(chosen).sort((a, b) => a - b));
  }
  return kept;
}

// A number for people, as the tables write it.
function readable(value) {
  return value === null || value === undefined ? WORDS.missing : shortText(value);
}

// The colours of the page, which may be light or dark.
function palette() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return { ink: of("ink"), soft: of("soft"), line: of("line"), accent: of("accent"), bad: of("bad"), warning: of("warning"), card: of("card"), font: getComputedStyle(document.body).fontFamily };
}

// Draws a curve and returns where its values stand. `shape` has width, height, large, range, xs, cursor.
function drawChart(canvas, curve, shape, colours) {
  const { width, height, large, range, xs } = shape;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.font = `${large ? 12 : 10}px ${colours.font}`;
  const levels = niceTicks(range.low, range.high, large ? 7 : 3, false);
  const labels = levels.map((level) => String(level));
  const left = Math.min(width / 2, Math.max(...labels.map((label) => pen.measureText(label).width), 8) + 10);
  const box = { left, right: width - (large ? 18 : 8), top: 6, bottom: height - (large ? 22 : 16) };
  const first = xs[0] ?? 0;
  const last = xs[xs.length - 1] ?? 0;
  const xOf = (x) => (last > first ? box.left + ((x - first) / (last - first)) * (box.right - box.left) : (box.left + box.right) / 2);
  const yOf = (value) => box.bottom - ((value - range.low) / (range.high - range.low)) * (box.bottom - box.top);
  const places = xs.map(xOf);

  pen.lineWidth = 1;
  pen.strokeStyle = colours.line;
  pen.fillStyle = colours.soft;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  levels.forEach((level, at) => {
    const y = Math.round(yOf(level)) + 0.5;
    stroke(pen, [[box.left, y], [box.right, y]]);
    pen.fillText(labels[at], box.left - 5, y);
  });
  pen.textBaseline = "top";
  let free = -Infinity;
  for (const x of last > first ? niceTicks(first, last, large ? 10 : 5, true) : [first]) {
    const half = pen.measureText(String(x)).width / 2;
    const middle = Math.max(half, Math.min(width - half, xOf(x)));
    if (middle - half < free) continue;
    free = middle + half + 10;
    pen.textAlign = "center";
    pen.fillText(String(x), middle, box.bottom + 4);
  }

  pen.globalAlpha = 0.18;
  pen.fillStyle = colours.bad;
  for (const at of curve.flagged) pen.fillRect(places[at] - 1.5, box.top, 3, box.bottom - box.top);
  pen.globalAlpha = 1;
  pen.strokeStyle = colours.warning;
  pen.setLineDash([5, 4]);
  for (const [from, to, level] of curve.limits) {
    if (level < range.low || level > range.high) continue;
    const half = from === to ? 8 : 0;
    stroke(pen, [[Math.max(box.left, places[from] - half), yOf(level)], [Math.min(box.right, places[to] + half), yOf(level)]]);
  }
  pen.setLineDash([]);
  drawLine(pen, curve.values, places, yOf, box.right - box.left, { colour: colours.accent, thickness: large ? 2 : 1.5 });
  pen.fillStyle = colours.bad;
  for (const at of curve.flagged) {
    if (Number.isFinite(curve.values[at])) disc(pen, places[at], yOf(curve.values[at]), large ? 4 : 2.5);
  }
  if (shape.cursor !== undefined) {
    pen.lineWidth = 1;
    pen.strokeStyle = colours.soft;
    const x = Math.round(places[shape.cursor]) + 0.5;
    stroke(pen, [[x, box.top], [x, box.bottom]]);
    const value = curve.values[shape.cursor];
    if (Number.isFinite(value)) {
      pen.fillStyle = colours.card;
      disc(pen, places[shape.cursor], yOf(value), 6);
      pen.fillStyle = curve.flagged.includes(shape.cursor) ? colours.bad : colours.accent;
      disc(pen, places[shape.cursor], yOf(value), 4.5);
    }
  }
  return places;
}

function drawLine(pen, values, places, yOf, width, { colour, thickness }) {
  pen.strokeStyle = pen.fillStyle = colour;
  pen.lineWidth = thickness;
  pen.lineJoin = "round";
  let run = [];
  const finish = () => {
    // A point between two gaps would not be seen.
    if (run.length === 1) disc(pen, run[0][0], run[0][1], thickness + 0.5);
    else stroke(pen, run);
    run = [];
  };
  for (const at of thinned(values, places, width)) {
    if (Number.isFinite(values[at])) run.push([places[at], yOf(values[at])]);
    else finish();
  }
  finish();
}

function stroke(pen, points) {
  pen.beginPath();
  points.forEach(([x, y], at) => (at ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  pen.stroke();
}

function disc(pen, x, y, radius) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fill();
}
