//! A line over numbered steps as a picture, for those who look at single files: 640 by 480 pixels, white, with axes.

mod canvas;
mod font;
mod png;
mod ticks;

use std::io::{self, Write};

use self::canvas::{Canvas, Heading, Ink};
use self::ticks::{Tick, View};

const WIDTH: usize = 640;
const HEIGHT: usize = 480;
/// The box around the line: its edges, unless long numbers push the left one inwards.
const LEFT: usize = 80;
const RIGHT: usize = 576;
const TOP: usize = 58;
const BOTTOM: usize = 427;

const INK: Ink = [0, 0, 0];
const LINE_INK: Ink = [31, 119, 180];
const MARK_INK: Ink = [200, 30, 30];
const LIMIT_INK: Ink = [214, 130, 20];
/// Half the thickness of the line.
const LINE_RADIUS: f32 = 1.05;
/// A point with no neighbours would not be seen as a line.
const POINT_RADIUS: f32 = 2.5;
const MARK_RADIUS: f32 = 4.0;
/// Dashes of a limit, and the gaps between them.
const DASH: f32 = 6.0;
/// A limit of one point is this long to either side.
const STUB: f32 = 10.0;

/// Size of letters.
const TEXT: f32 = 0.5;
const TITLE: f32 = 0.6;
/// Height of capitals in pixels.
const CAPITALS: f32 = 9.0;
const TICK_LENGTH: usize = 5;
/// Between the end of a tick and its number, and between numbers and the name of the axis.
const PAD: f32 = 6.0;
/// Between two numbers on the x axis, at least.
const LABEL_GAP: f32 = 14.0;
/// Between text and the edge of the picture, at least.
const EDGE: f32 = 8.0;

/// What the picture shows.
#[derive(Debug, Clone, Copy)]
pub struct LinePlot<'a> {
    /// Above the line. Its middle is left out where it is too long.
    pub title: &'a str,
    /// Below the x axis.
    pub x_label: &'a str,
    /// Beside the y axis, turned.
    pub y_label: &'a str,
    /// The line, from point to point. It has a gap where a coordinate is not a finite number.
    pub points: &'a [(f64, f64)],
    /// A line of text below the title; none if it is empty.
    pub note: &'a str,
    /// Points that are marked.
    pub marks: &'a [(f64, f64)],
    /// Levels, each from one x to another. They are seen where the line comes near.
    pub limits: &'a [(f64, f64, f64)],
}

/// Writes the picture as a PNG file.
pub fn line_plot_png(plot: &LinePlot<'_>, out: impl Write) -> io::Result<()> {
    png::write(&drawn(plot), WIDTH as u32, HEIGHT as u32, out)
}

/// The box with its two axes.
struct Frame {
    left: usize,
    x: View,
    y: View,
}

impl Frame {
    fn x_px(&self, value: f64) -> f32 {
        let width = (RIGHT - self.left) as f64;
        (self.left as f64 + 0.5 + self.x.share(value) * width) as f32
    }

    fn y_px(&self, value: f64) -> f32 {
        let height = (BOTTOM - TOP) as f64;
        (BOTTOM as f64 + 0.5 - self.y.share(value) * height) as f32
    }
}

fn drawn(plot: &LinePlot<'_>) -> Canvas {
    let mut canvas = Canvas::white(WIDTH, HEIGHT);
    let seen = || plot.points.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
    let x = View::of_counts(seen().map(|&(x, _)| x));
    // A limit is part of the picture if a point is below it.
    let crossed = plot.limits.iter().filter(|(from, to, level)| {
        seen().any(|(x, y)| (from..=to).contains(&x) && y < level) && level.is_finite()
    });
    let y = View::of(seen().map(|&(_, y)| y).chain(crossed.map(|&(_, _, level)| level)));
    let y_ticks = y.ticks(|_| true);
    let numbers_px = y_ticks.iter().map(|tick| text_px(&tick.label)).fold(0.0, f32::max);
    let beside = TICK_LENGTH as f32 + PAD + numbers_px;
    let needed = beside + PAD + CAPITALS + EDGE + 4.0;
    let frame = Frame { left: LEFT.max(needed as usize + 1).min(RIGHT / 2), x, y };

    draw_limits(&mut canvas, &frame, plot.limits);
    draw_line(&mut canvas, &frame, plot.points);
    for &(x, y) in plot.marks.iter().filter(|(x, y)| x.is_finite() && y.is_finite()) {
        canvas.dot((frame.x_px(x), frame.y_px(y)), MARK_RADIUS, MARK_INK);
    }
    let (left, edges) = (frame.left, (RIGHT + 1, BOTTOM + 1));
    canvas.fill((left, TOP), (edges.0, TOP + 1), INK);
    canvas.fill((left, BOTTOM), edges, INK);
    canvas.fill((left, TOP), (left + 1, edges.1), INK);
    canvas.fill((RIGHT, TOP), edges, INK);
    draw_x_ticks(&mut canvas, &frame);
    for tick in &y_ticks {
        let row = frame.y_px(tick.at) as usize;
        canvas.fill((left - TICK_LENGTH, row), (left, row + 1), INK);
        let start = left as f32 - TICK_LENGTH as f32 - PAD - text_px(&tick.label);
        let baseline = row as f32 + 0.5 + (CAPITALS / 2.0).floor();
        canvas.text(&tick.label, (start.round(), baseline), TEXT, Heading::Right, INK);
    }

    let middle = (left + RIGHT) as f32 / 2.0;
    let room = 2.0 * (WIDTH as f32 - middle - EDGE).min(middle - EDGE);
    let title_px = if plot.note.is_empty() { 8.5 } else { 28.5 };
    centred(&mut canvas, plot.title, (middle, TOP as f32 - title_px), room, TITLE);
    centred(&mut canvas, plot.note, (middle, TOP as f32 - 8.5), room, TEXT);
    let below = BOTTOM as f32 + TICK_LENGTH as f32 + PAD + CAPITALS;
    centred(&mut canvas, plot.x_label, (middle, below + 20.5), room, TEXT);
    let label = font::shortened(plot.y_label, (HEIGHT as f32 - 2.0 * EDGE) / TEXT);
    let half = text_px(&label) / 2.0;
    let at = (left as f32 - beside - PAD - 3.5, ((TOP + BOTTOM) as f32 / 2.0 + half).round());
    canvas.text(&label, at, TEXT, Heading::Up, INK);
    canvas
}

fn draw_line(canvas: &mut Canvas, frame: &Frame, points: &[(f64, f64)]) {
    let placed =
        |&(x, y): &(f64, f64)| (x.is_finite() && y.is_finite()).then(|| (frame.x_px(x), frame.y_px(y)));
    let mut before = None;
    for (index, point) in points.iter().enumerate() {
        let here = placed(point);
        match (before, here) {
            (Some(from), Some(to)) => canvas.line(from, to, LINE_RADIUS, LINE_INK),
            (None, Some(alone)) if points.get(index + 1).and_then(placed).is_none() => {
                canvas.dot(alone, POINT_RADIUS, LINE_INK);
            }
            _ => {}
        }
        before = here;
    }
}

fn draw_limits(canvas: &mut Canvas, frame: &Frame, limits: &[(f64, f64, f64)]) {
    for &(from, to, level) in limits {
        let share = frame.y.share(level);
        if !(from.is_finite() && to.is_finite() && (0.0..=1.0).contains(&share)) {
            continue;
        }
        let stub = if from == to { STUB } else { 0.0 };
        let start = (frame.x_px(from) - stub).max(frame.left as f32);
        let end = (frame.x_px(to) + stub).min(RIGHT as f32);
        let y = frame.y_px(level);
        let mut at = start;
        while at < end {
            canvas.line((at, y), ((at + DASH).min(end), y), LINE_RADIUS, LIMIT_INK);
            at += 2.0 * DASH;
        }
    }
}

fn draw_x_ticks(canvas: &mut Canvas, frame: &Frame) {
    let ticks = frame.x.ticks(|ticks| {
        ticks.windows(2).all(|pair| {
            let distance = frame.x_px(pair[1].at) - frame.x_px(pair[0].at);
            distance >= f32::midpoint(text_px(&pair[0].label), text_px(&pair[1].label)) + LABEL_GAP
        })
    });
    for Tick { at, label } in &ticks {
        let column = frame.x_px(*at) as usize;
        canvas.fill((column, BOTTOM + 1), (column + 1, BOTTOM + 1 + TICK_LENGTH), INK);
        let baseline = BOTTOM as f32 + TICK_LENGTH as f32 + PAD + CAPITALS + 0.5;
        centred(canvas, label, (column as f32 + 0.5, baseline), WIDTH as f32, TEXT);
    }
}

fn text_px(text: &str) -> f32 {
    font::width(text) * TEXT
}

/// A text around `middle`, shortened to `room` pixels.
fn centred(canvas: &mut Canvas, text: &str, (middle, baseline): (f32, f32), room: f32, scale: f32) {
    let text = font::shortened(text, room / scale);
    let start = (middle - font::width(&text) * scale / 2.0).round();
    canvas.text(&text, (start, baseline), scale, Heading::Right, INK);
}

#[cfg(test)]
mod tests;
