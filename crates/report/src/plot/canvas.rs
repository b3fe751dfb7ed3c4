//! A white canvas on which lines and letters are drawn with smooth edges.

use super::font::{Point, glyph, height_px};

/// Bytes per pixel: red, green, blue, opacity.
pub(super) const PIXEL_BYTES: usize = 4;
/// Thickness of letters, half of it, on their grid.
const PEN: f32 = 1.2;
/// Dots of letters are wider than their strokes.
const DOT: f32 = 1.5;

/// A colour: red, green, blue.
pub(super) type Ink = [u8; 3];

/// Where the letters of a text go.
#[derive(Clone, Copy)]
pub(super) enum Heading {
    /// To the right.
    Right,
    /// Upwards.
    Up,
}

/// The pixels, row by row from the top.
pub(super) struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Canvas {
    pub(super) fn white(width: usize, height: usize) -> Canvas {
        Canvas { width, height, pixels: vec![255; width * height * PIXEL_BYTES] }
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &[u8]> {
        self.pixels.chunks_exact(self.width * PIXEL_BYTES)
    }

    /// Darkens a pixel. Strokes of the same colour that overlap leave no darker spots.
    fn cover(&mut self, x: usize, y: usize, share: f32, ink: Ink) {
        let start = (y * self.width + x) * PIXEL_BYTES;
        if let Some(pixel) = self.pixels.get_mut(start..start + ink.len()) {
            for (channel, colour) in pixel.iter_mut().zip(ink) {
                let value = 255.0 - share * f32::from(255 - colour);
                *channel = (*channel).min((value + 0.5) as u8);
            }
        }
    }

    /// Whole pixels from `left`, `top` up to but without `right`, `bottom`.
    pub(super) fn fill(&mut self, (left, top): (usize, usize), (right, bottom): (usize, usize), ink: Ink) {
        for y in top..bottom.min(self.height) {
            for x in left..right.min(self.width) {
                self.cover(x, y, 1.0, ink);
            }
        }
    }

    /// A straight line with round ends, `radius` on either side.
    pub(super) fn line(&mut self, from: Point, to: Point, radius: f32, ink: Ink) {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let steep = dy.abs() > dx.abs();
        // Along the longer direction, with the pixels across it at every step.
        let turned = |point: Point| if steep { (point.1, point.0) } else { point };
        let ((along_a, across_a), (along_b, across_b)) = (turned(from), turned(to));
        let (long, short) = (along_b - along_a, across_b - across_a);
        let slope = if long == 0.0 { 0.0 } else { short / long };
        let reach = radius + 0.5;
        let spread = reach * (1.0 + slope * slope).sqrt();
        let (along_most, across_most) =
            if steep { (self.height, self.width) } else { (self.width, self.height) };
        let length_squared = dx * dx + dy * dy;
        let scale = if length_squared > 0.0 { 1.0 / length_squared } else { 0.0 };
        for along in pixels(along_a.min(along_b) - reach, along_a.max(along_b) + reach, along_most) {
            let at = (along as f32 + 0.5).clamp(along_a.min(along_b), along_a.max(along_b));
            let middle = across_a + slope * (at - along_a);
            for across in pixels(middle - spread, middle + spread, across_most) {
                let (x, y) = if steep { (across, along) } else { (along, across) };
                let (px, py) = (x as f32 + 0.5 - from.0, y as f32 + 0.5 - from.1);
                let t = ((px * dx + py * dy) * scale).clamp(0.0, 1.0);
                let (ex, ey) = (px - t * dx, py - t * dy);
                let distance_squared = ex * ex + ey * ey;
                if distance_squared < reach * reach {
                    self.cover(x, y, (reach - distance_squared.sqrt()).min(1.0), ink);
                }
            }
        }
    }

    /// A filled circle.
    pub(super) fn dot(&mut self, at: Point, radius: f32, ink: Ink) {
        self.line(at, at, radius, ink);
    }

    /// A text whose first letter begins at `start`, on the baseline.
    pub(super) fn text(&mut self, text: &str, start: Point, scale: f32, heading: Heading, ink: Ink) {
        let radius = PEN * scale;
        let mut pen = 0.0;
        for glyph in text.chars().filter_map(glyph) {
            // Stems that are sharp in one letter are sharp in all of them.
            let origin = f32::round(pen * scale);
            let place = |point: &Point| {
                let (x, y) = (origin + point.0 * scale, height_px(point.1, scale));
                match heading {
                    Heading::Right => (start.0 + x, start.1 - y),
                    Heading::Up => (start.0 - y, start.1 - x),
                }
            };
            for stroke in &glyph.strokes {
                if let [alone] = stroke.as_slice() {
                    self.dot(place(alone), radius * DOT, ink);
                }
                for pair in stroke.windows(2) {
                    self.line(place(&pair[0]), place(&pair[1]), radius, ink);
                }
            }
            pen += glyph.advance;
        }
    }

    #[cfg(test)]
    pub(super) fn pixel(&self, x: usize, y: usize) -> &[u8] {
        &self.pixels[(y * self.width + x) * PIXEL_BYTES..][..PIXEL_BYTES]
    }
}

/// The pixels on the canvas whose middle lies between two places.
fn pixels(from: f32, to: f32, most: usize) -> std::ops::Range<usize> {
    // Casts of numbers below zero, too large, or not numbers end at the edge.
    ((from + 0.5) as usize).min(most)..((to + 0.5) as usize).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_cover_what_they_pass() {
        let mut canvas = Canvas::white(20, 20);
        canvas.line((2.5, 5.5), (12.5, 5.5), 0.5, [0, 0, 0]);
        assert_eq!(canvas.pixel(7, 5), [0, 0, 0, 255]);
        assert_eq!(canvas.pixel(7, 4), [255; 4]);
        assert_eq!(canvas.pixel(15, 5), [255; 4]);
        // Between two rows each is covered by half.
        canvas.line((2.5, 11.0), (12.5, 11.0), 0.5, [0, 100, 255]);
        for row in [10, 11] {
            assert_eq!(canvas.pixel(7, row), [128, 178, 255, 255]);
        }
        canvas.line((16.5, 2.5), (16.5, 17.5), 1.0, [9, 9, 9]);
        assert_eq!(canvas.pixel(16, 10), [9, 9, 9, 255]);
    }

    #[test]
    fn what_lies_outside_is_left_out() {
        let mut canvas = Canvas::white(10, 10);
        canvas.line((-1e9, 5.0), (1e9, 5.0), 1.0, [0; 3]);
        canvas.line((5.0, -100.0), (5.0, -50.0), 1.0, [0; 3]);
        canvas.line((f32::NAN, 5.0), (4.0, f32::INFINITY), 1.0, [0; 3]);
        canvas.fill((8, 8), (90, 90), [0; 3]);
        assert_eq!(canvas.pixel(5, 5), [0, 0, 0, 255]);
        assert_eq!(canvas.pixel(9, 9), [0, 0, 0, 255]);
        assert_eq!(canvas.pixel(5, 0), [255; 4]);
    }

    #[test]
    fn text_goes_right_and_up() {
        let mut level = Canvas::white(40, 40);
        level.text("lL", (10.0, 30.5), 0.5, Heading::Right, [0; 3]);
        assert_eq!(level.pixel(11, 25), [0, 0, 0, 255]);
        assert_eq!(level.pixel(17, 30), [0, 0, 0, 255]);
        let mut turned = Canvas::white(40, 40);
        turned.text("lL", (30.5, 30.0), 0.5, Heading::Up, [0; 3]);
        assert_eq!(turned.pixel(25, 28), [0, 0, 0, 255]);
        assert_eq!(turned.pixel(30, 22), [0, 0, 0, 255]);
    }
}
