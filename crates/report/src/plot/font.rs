//! Letters made of strokes, so that pictures need no font of the system.
//!
//! A glyph is drawn on a grid: the baseline is 0, small letters reach 14, capitals and digits 18, the tallest 20, and
//! tails go down to -6. At a scale of a half, lines on even heights and stems on odd places fall on whole pixels.

use std::sync::LazyLock;

/// A place on the grid, or on the canvas.
pub(super) type Point = (f32, f32);

/// How wide a glyph is, and its strokes: `;` parts them, a pair is a place to pass, and a pair after `~` pulls the
/// stroke towards it. A stroke of one place is a dot.
type Drawing = (u8, &'static str);

const FIRST: u32 = 32;
const DRAWINGS: [Drawing; 95] = [
    (8, ""),                                                                                // space
    (10, "5,18 5,6;5,0.6"),                                                                 // !
    (12, "3,18 3,12;9,18 9,12"),                                                            // "
    (20, "8,18 4,0;16,18 12,0;3,12 18,12;2,6 17,6"),                                        // #
    (18, "9,21 9,-3;14,16 ~12,18 9,18 ~3,18 3,14 ~3,10 9,9 ~15,8 15,4 ~15,0 9,0 ~5,0 3,2"), // $
    (
        26,
        "6,18 ~10,18 10,13.5 ~10,9 6,9 ~2,9 2,13.5 ~2,18 6,18;20,18 6,0;\
         20,9 ~24,9 24,4.5 ~24,0 20,0 ~16,0 16,4.5 ~16,9 20,9",
    ), // %
    (21, "19,0 6,13 ~4,15 5,17 ~7,19 10,18 ~13,17 12,14 ~12,12 7,10 ~3,8 3,5 ~3,0 8,0 ~15,0 17,9"), // &
    (6, "3,18 3,12"),                                                                       // '
    (10, "7,20 ~3,14 3,8 ~3,2 7,-4"),                                                       // (
    (10, "3,20 ~7,14 7,8 ~7,2 3,-4"),                                                       // )
    (14, "7,18 7,8;2.7,15.5 11.3,10.5;2.7,10.5 11.3,15.5"),                                 // *
    (20, "11,14 11,2;5,8 17,8"),                                                            // +
    (8, "5,1 3,-3"),                                                                        // ,
    (10, "2,6 8,6"),                                                                        // -
    (8, "4,0.6"),                                                                           // .
    (10, "9,18 1,-2"),                                                                      // /
    (18, "9,18 ~15,18 15,9 ~15,0 9,0 ~3,0 3,9 ~3,18 9,18"),                                 // 0
    (18, "4,15.5 9,18 9,0;4,0 14,0"),                                                       // 1
    (18, "3,16 ~5,18 9,18 ~15,18 15,13 ~15,10 10,6 3,0 15,0"),                              // 2
    (18, "3,17 ~6,18 8,18 ~14,18 14,14 ~14,10 8,10 6,10;8,10 ~15,10 15,5 ~15,0 8,0 ~5,0 3,1"), // 3
    (18, "13,0 13,18 2,6 16,6"),                                                            // 4
    (18, "14,18 5,18 5,10 ~6.5,11 9,11 ~15,11 15,5.5 ~15,0 8,0 ~5,0 3,1"),                  // 5
    (18, "14,17 ~12,18 10,18 ~3,18 3,8 ~3,0 9,0 ~15,0 15,5.5 ~15,11 9,11 ~4,11 3,6"),       // 6
    (18, "3,18 15,18 7,0"),                                                                 // 7
    (
        18,
        "9,18 ~14.5,18 14.5,14 ~14.5,10 9,10 ~3.5,10 3.5,14 ~3.5,18 9,18;\
         9,10 ~15,10 15,5 ~15,0 9,0 ~3,0 3,5 ~3,10 9,10",
    ), // 8
    (18, "4,1 ~6,0 8,0 ~15,0 15,10 ~15,18 9,18 ~3,18 3,12.5 ~3,7 9,7 ~14,7 15,12"),         // 9
    (8, "4,0.6;4,11"),                                                                      // :
    (8, "4,11;5,1 3,-3"),                                                                   // ;
    (20, "17,14 4,8 17,2"),                                                                 // <
    (20, "4,10 17,10;4,5 17,5"),                                                            // =
    (20, "4,14 17,8 4,2"),                                                                  // >
    (14, "3,16 ~4,18 7,18 ~12,18 12,14 ~12,11.5 9,9.5 ~7,8 7,5;7,0.6"),                     // ?
    (
        28,
        "18,10 ~18,13 14,13 ~9,13 9,7.5 ~9,2 14,2 ~18,2 18,6;\
         18,13 18,4 ~18,2 21,2 ~25,3 25,9 ~25,18 14,18 ~3,18 3,7 ~3,-4 14,-4 ~18,-4 21,-2",
    ), // @
    (18, "1,0 9,18 17,0;4,6 14,6"),                                                         // A
    (18, "3,0 3,18 9,18 ~14,18 14,14 ~14,10 9,10 3,10;9,10 ~15,10 15,5 ~15,0 9,0 3,0"),     // B
    (20, "17,15 ~15,18 11,18 ~3,18 3,9 ~3,0 11,0 ~15,0 17,3"),                              // C
    (20, "3,0 3,18 8,18 ~17,18 17,9 ~17,0 8,0 3,0"),                                        // D
    (18, "14,18 3,18 3,0 14,0;3,10 13,10"),                                                 // E
    (16, "13,18 3,18 3,0;3,10 12,10"),                                                      // F
    (20, "16,15.5 ~14,18 11,18 ~3,18 3,9 ~3,0 11,0 ~15,0 17,2 17,8 12,8"),                  // G
    (20, "3,0 3,18;17,0 17,18;3,10 17,10"),                                                 // H
    (8, "3,0 3,18"),                                                                        // I
    (12, "9,18 9,4 ~9,0 5,0 ~3,0 2,1"),                                                     // J
    (18, "3,0 3,18;15,18 4,9 16,0"),                                                        // K
    (16, "3,18 3,0 13,0"),                                                                  // L
    (22, "3,0 3,18 11,6 19,18 19,0"),                                                       // M
    (20, "3,0 3,18 17,0 17,18"),                                                            // N
    (22, "11,18 ~19,18 19,9 ~19,0 11,0 ~3,0 3,9 ~3,18 11,18"),                              // O
    (16, "3,0 3,18 8,18 ~14,18 14,13 ~14,8 8,8 3,8"),                                       // P
    (22, "11,18 ~19,18 19,9 ~19,0 11,0 ~3,0 3,9 ~3,18 11,18;12,4 18,-3"),                   // Q
    (18, "3,0 3,18 8,18 ~14,18 14,13 ~14,8 8,8 3,8;9,8 16,0"),                              // R
    (18, "14,16 ~12,18 9,18 ~3,18 3,14 ~3,10 9,9 ~15,8 15,4 ~15,0 9,0 ~5,0 3,2"),           // S
    (18, "1,18 17,18;9,18 9,0"),                                                            // T
    (20, "3,18 3,7 ~3,0 10,0 ~17,0 17,7 17,18"),                                            // U
    (18, "1,18 9,0 17,18"),                                                                 // V
    (26, "1,18 7,0 13,18 19,0 25,18"),                                                      // W
    (18, "2,18 16,0;16,18 2,0"),                                                            // X
    (18, "1,18 9,9 17,18;9,9 9,0"),                                                         // Y
    (18, "2,18 16,18 2,0 16,0"),                                                            // Z
    (10, "7,20 3,20 3,-4 7,-4"),                                                            // [
    (10, "1,18 9,-2"),                                                                      // \
    (10, "3,20 7,20 7,-4 3,-4"),                                                            // ]
    (20, "4,11 10,18 16,11"),                                                               // ^
    (14, "0,-4 14,-4"),                                                                     // _
    (10, "3,20 7,16"),                                                                      // `
    (16, "3,12 ~5,14 8,14 ~13,14 13,9 13,0;13,8 8,8 ~3,8 3,4 ~3,0 7,0 ~13,0 13,6"),         // a
    (16, "3,20 3,0;3,7 ~3,14 8,14 ~13,14 13,7 ~13,0 8,0 ~3,0 3,7"),                         // b
    (14, "12,13 ~10.5,14 8.5,14 ~3,14 3,7 ~3,0 8.5,0 ~10.5,0 12,1"),                        // c
    (16, "13,20 13,0;13,7 ~13,14 8,14 ~3,14 3,7 ~3,0 8,0 ~13,0 13,7"),                      // d
    (16, "3,8 13,8 ~13,14 8,14 ~3,14 3,7 ~3,0 8.5,0 ~11,0 13,1"),                           // e
    (10, "9,20 ~5,20 5,16 5,0;1,14 9,14"),                                                  // f
    (16, "13,14 13,0 ~13,-6 8,-6 ~5,-6 3,-5;13,7 ~13,14 8,14 ~3,14 3,7 ~3,0 8,0 ~13,0 13,7"), // g
    (16, "3,20 3,0;3,8 ~4,14 8.5,14 ~13,14 13,9 13,0"),                                     // h
    (8, "3,14 3,0;3,19"),                                                                   // i
    (8, "3,14 3,-3 ~3,-6 0,-6;3,19"),                                                       // j
    (14, "3,20 3,0;12,14 4,7 13,0"),                                                        // k
    (8, "3,20 3,0"),                                                                        // l
    (26, "3,14 3,0;3,8 ~4,14 8.5,14 ~13,14 13,9 13,0;13,8 ~14,14 18.5,14 ~23,14 23,9 23,0"), // m
    (16, "3,14 3,0;3,8 ~4,14 8.5,14 ~13,14 13,9 13,0"),                                     // n
    (16, "8,14 ~13,14 13,7 ~13,0 8,0 ~3,0 3,7 ~3,14 8,14"),                                 // o
    (16, "3,14 3,-6;3,7 ~3,14 8,14 ~13,14 13,7 ~13,0 8,0 ~3,0 3,7"),                        // p
    (16, "13,14 13,-6;13,7 ~13,14 8,14 ~3,14 3,7 ~3,0 8,0 ~13,0 13,7"),                     // q
    (11, "3,14 3,0;3,8 ~4,14 8.5,14 10,14"),                                                // r
    (14, "11,12.5 ~9.5,14 7,14 ~3,14 3,10.7 ~3,8 7,7 ~11,6 11,3.3 ~11,0 7,0 ~4,0 2.5,1.5"), // s
    (10, "5,19 5,4 ~5,0 8,0 9,0;1,14 9,14"),                                                // t
    (16, "3,14 3,5 ~3,0 7.5,0 ~12,0 13,6;13,14 13,0"),                                      // u
    (14, "1,14 7,0 13,14"),                                                                 // v
    (22, "1,14 6,0 11,14 16,0 21,14"),                                                      // w
    (14, "2,14 12,0;12,14 2,0"),                                                            // x
    (14, "1,14 7,0;13,14 6,-3 ~5,-6 1,-6"),                                                 // y
    (14, "2,14 12,14 2,0 12,0"),                                                            // z
    (14, "11,20 ~7,20 7,16 7,12 ~7,8 3,8 ~7,8 7,4 7,0 ~7,-4 11,-4"),                        // {
    (8, "3,20 3,-6"),                                                                       // |
    (14, "3,20 ~7,20 7,16 7,12 ~7,8 11,8 ~7,8 7,4 7,0 ~7,-4 3,-4"),                         // }
    (20, "4,6 ~6,10 10,8 ~14,6 16,10"),                                                     // ~
];
/// What stands for a letter that is not drawn here.
const UNKNOWN: Drawing = (16, "3,0 3,18 13,18 13,0 3,0");

/// Pieces a bent stroke is cut into.
const BEND_PIECES: u8 = 5;
/// Heights that are moved to whole pixels at every scale, so that the flat parts of letters stay sharp.
const SHARP_HEIGHTS: [f32; 5] = [-6.0, 0.0, 14.0, 18.0, 20.0];

/// A letter, ready to be drawn.
pub(super) struct Glyph {
    /// How far the next letter is.
    pub(super) advance: f32,
    /// Strokes as places to join by straight lines. One place alone is a dot.
    pub(super) strokes: Vec<Vec<Point>>,
}

static GLYPHS: LazyLock<Vec<Glyph>> =
    LazyLock::new(|| DRAWINGS.iter().chain([&UNKNOWN]).map(Glyph::of).collect());

impl Glyph {
    fn of(drawing: &Drawing) -> Glyph {
        let strokes = drawing.1.split(';').map(stroke).filter(|stroke| !stroke.is_empty()).collect();
        Glyph { advance: f32::from(drawing.0), strokes }
    }
}

fn stroke(text: &str) -> Vec<Point> {
    let mut places: Vec<Point> = Vec::new();
    let mut pull: Option<Point> = None;
    for pair in text.split_whitespace() {
        let (bent, pair) = pair.strip_prefix('~').map_or((false, pair), |rest| (true, rest));
        let Some((x, y)) = pair.split_once(',') else { continue };
        let (Ok(x), Ok(y)) = (x.parse::<f32>(), y.parse::<f32>()) else { continue };
        if bent {
            pull = Some((x, y));
            continue;
        }
        match (pull.take(), places.last().copied()) {
            (Some(pull), Some(from)) => {
                for piece in 1..=BEND_PIECES {
                    let t = f32::from(piece) / f32::from(BEND_PIECES);
                    let (a, b, c) = ((1.0 - t) * (1.0 - t), 2.0 * t * (1.0 - t), t * t);
                    places.push((a * from.0 + b * pull.0 + c * x, a * from.1 + b * pull.1 + c * y));
                }
            }
            _ => places.push((x, y)),
        }
    }
    places
}

/// The drawing of a letter, or of a box.
pub(super) fn glyph(letter: char) -> Option<&'static Glyph> {
    let place = u32::from(letter).checked_sub(FIRST).map_or(DRAWINGS.len(), |place| place as usize);
    GLYPHS.get(place.min(DRAWINGS.len()))
}

/// How wide a text is on the grid.
pub(super) fn width(text: &str) -> f32 {
    text.chars().filter_map(glyph).map(|glyph| glyph.advance).sum()
}

/// A height on the grid as pixels above the baseline.
pub(super) fn height_px(height: f32, scale: f32) -> f32 {
    let mut below = SHARP_HEIGHTS[0];
    for above in SHARP_HEIGHTS.into_iter().skip(1) {
        if height <= above && height >= below {
            let (low, high) = ((below * scale).round(), (above * scale).round());
            return low + (height - below) / (above - below) * (high - low);
        }
        below = above;
    }
    height * scale
}

/// The text, with `...` for its middle where it is wider than `most`. Both ends of a name say something.
pub(super) fn shortened(text: &str, most: f32) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let letters: Vec<f32> =
        text.chars().map(|letter| glyph(letter).map_or(0.0, |glyph| glyph.advance)).collect();
    let mut room = most - width("...");
    let (mut head, mut tail) = (0, letters.len());
    while head < tail {
        // In turns, so that both ends keep about the same.
        let next = if head <= letters.len() - tail { letters[head] } else { letters[tail - 1] };
        if next > room {
            break;
        }
        room -= next;
        if head <= letters.len() - tail {
            head += 1;
        } else {
            tail -= 1;
        }
    }
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(tail).collect();
    format!("{start}...{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_is_drawn_within_its_cell() {
        for (place, glyph) in GLYPHS.iter().enumerate() {
            assert_eq!(glyph.strokes.is_empty(), place == 0, "{place}");
            for &(x, y) in glyph.strokes.iter().flatten() {
                assert!((0.0..=glyph.advance).contains(&x) && (-6.0..=21.0).contains(&y), "{place}: {x},{y}");
            }
        }
        // A pair that cannot be read would be left out: there are as many places as pairs, and more for bends.
        for drawing in DRAWINGS {
            for stroke_text in drawing.1.split(';').filter(|text| !text.is_empty()) {
                let (bends, pairs) = (stroke_text.matches('~').count(), stroke_text.split(' ').count());
                let places = pairs - bends + bends * (BEND_PIECES as usize - 1);
                assert_eq!(stroke(stroke_text).len(), places, "{stroke_text}");
            }
        }
    }

    #[test]
    fn letters_without_a_drawing_are_boxes() {
        for letter in ['\n', '\0', '\u{7f}', 'é', '权', '\u{10ffff}'] {
            assert_eq!(
                glyph(letter).unwrap().strokes,
                [[(3.0, 0.0), (3.0, 18.0), (13.0, 18.0), (13.0, 0.0), (3.0, 0.0)]]
            );
        }
        assert_eq!(glyph('l').unwrap().strokes, [[(3.0, 20.0), (3.0, 0.0)]]);
    }

    #[test]
    fn long_text_loses_its_middle() {
        assert_eq!(shortened("short", 1000.0), "short");
        let name = format!("layers.0.{}.weight_similarities", "权x".repeat(300));
        let short = shortened(&name, 600.0);
        assert!(width(&short) <= 600.0 && width(&short) > 560.0);
        assert!(
            short.starts_with("layers.0.") && short.contains("...") && short.ends_with("weight_similarities")
        );
        assert_eq!(shortened("abcdef", 0.0), "...");
        assert_eq!(shortened("", -1.0), "...");
    }

    #[test]
    fn flat_parts_fall_on_whole_pixels() {
        for scale in [0.5, 0.6, 0.83] {
            for height in SHARP_HEIGHTS {
                assert_eq!(height_px(height, scale).fract(), 0.0);
            }
        }
        assert_eq!((height_px(7.0, 0.5), height_px(21.0, 0.5)), (3.5, 10.5));
    }
}
