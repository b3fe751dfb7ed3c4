//! What two sketches say about the difference of their tensors.

use super::{COMPONENT_BITS, COMPONENTS, Content, EIGHTH_BITS, EIGHTHS, Sketch, Sums, power_of_two};

/// Rounding of the sums of float32 and narrower floats, as a share of the norm: their strips are summed in float32.
const SUM_ROUNDING: f64 = 1.5e-7;
/// Bounds of the norm of the difference as shares of its estimate: with 16 degrees of freedom, the true one lies between
/// them in 95 of 100 cases. sqrt(16 / chi-square) at 97.5 % and 2.5 %.
const CONFIDENCE_95: [f64; 2] = [0.7448, 1.5219];
/// An error sits in some eighths if less than this share of its square is outside.
const OUTSIDE: f64 = 0.01;
/// In more eighths than this an error is everywhere: the few others may be small by chance.
const MOST_EIGHTHS: usize = 4;

/// How far apart two tensors with as many elements are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SketchDifference {
    /// Whether all bits are the same, as far as a hash of 64 bits can tell.
    pub same_bits: bool,
    /// The norm of the difference as a share of the larger norm; 0 if bits are the same, `None` if that cannot be told
    /// (a single element has no components). Elements that are not finite, or masks, count as zero.
    pub relative_error: Option<f64>,
    /// Where the relative error lies in 95 of 100 cases.
    pub interval: (f64, f64),
    /// Below this the relative error is rounding of the sketch.
    pub resolution: f64,
    /// The cosine of the angle between them; `None` if one is zero.
    pub cosine: Option<f64>,
    /// Where the cosine lies in 95 of 100 cases.
    pub cosine_interval: (f64, f64),
    /// Which part of the tensor the error sits in, if it does not sit everywhere.
    pub part: Option<SketchPart>,
}

/// The part of a tensor that holds nearly all of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SketchPart {
    /// Eighths of the elements in row-major order: where the first dimension is a multiple of eight, eighths of it.
    pub rows: Option<Eighths>,
    /// Eighths of the columns: of the last dimension, or where that is shorter than 512, of the last dimensions that
    /// make as many.
    pub columns: Option<Eighths>,
}

/// Eighths that follow each other, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Eighths {
    /// The first that belongs to the part.
    pub first: u8,
    /// The last that does.
    pub last: u8,
}

impl Sketch {
    /// What this says about the difference to another tensor, with as many elements.
    pub fn compare(&self, other: &Sketch) -> SketchDifference {
        let same_bits = self.hash == other.hash;
        let unknown = SketchDifference {
            same_bits,
            relative_error: same_bits.then_some(0.0),
            interval: (0.0, if same_bits { 0.0 } else { f64::INFINITY }),
            resolution: 0.0,
            cosine: same_bits.then_some(1.0),
            cosine_interval: (if same_bits { 1.0 } else { -1.0 }, 1.0),
            part: None,
        };
        let exponent = match (&self.content, &other.content) {
            (Content::Sums(a), Content::Sums(b)) => a.exponent.max(b.exponent),
            (Content::Sums(sums), Content::Zero) | (Content::Zero, Content::Sums(sums)) => sums.exponent,
            (Content::Zero, Content::Zero) => {
                return SketchDifference {
                    relative_error: Some(0.0),
                    interval: (0.0, 0.0),
                    cosine: None,
                    ..unknown
                };
            }
            _ => return unknown,
        };
        let (a, b) = (Scaled::new(&self.content, exponent), Scaled::new(&other.content, exponent));
        let larger = a.norm.max(b.norm);
        if larger == 0.0 {
            // No tensor has such a sketch.
            return unknown;
        }
        let rounding = (a.step.powi(2) + b.step.powi(2)) / 12.0 / larger.powi(2);
        let resolution = (rounding + 2.0 * SUM_ROUNDING.powi(2)).sqrt();
        if same_bits {
            return SketchDifference { resolution, ..unknown };
        }
        let squares = a.squared_distance(&b);
        let cosine = a.cosine(&b, squares);
        let relative_error = squares.sqrt() / larger;
        let is_seen = relative_error > resolution;
        let lowest = (relative_error.powi(2) - resolution.powi(2)).max(0.0).sqrt();
        SketchDifference {
            same_bits,
            relative_error: Some(relative_error),
            interval: (
                if is_seen { lowest * CONFIDENCE_95[0] } else { 0.0 },
                relative_error.hypot(resolution) * CONFIDENCE_95[1],
            ),
            resolution,
            cosine: cosine.map(|(cosine, _)| cosine),
            cosine_interval: cosine.map_or((-1.0, 1.0), |(_, interval)| interval),
            part: if is_seen { a.part_of_error(&b, resolution * larger) } else { None },
        }
    }
}

/// Numbers in units of a common power of two.
struct Scaled {
    norm: f64,
    components: [f64; COMPONENTS],
    /// Between neighbours of a component.
    step: f64,
    rows: Option<[f64; EIGHTHS]>,
    columns: Option<(u16, [f64; EIGHTHS])>,
    /// Zero has all eighths: none of anything.
    is_zero: bool,
}

impl Scaled {
    fn new(content: &Content, exponent: i16) -> Scaled {
        let Content::Sums(sums) = content else {
            return Scaled {
                norm: 0.0,
                components: [0.0; COMPONENTS],
                step: 0.0,
                rows: None,
                columns: None,
                is_zero: true,
            };
        };
        let Sums { norm, components, rows, columns, .. } = sums;
        let scale = i32::from(sums.exponent) - i32::from(exponent);
        let step = power_of_two(scale - COMPONENT_BITS);
        let eighth_step = power_of_two(scale - EIGHTH_BITS);
        let eighths = |sums: &[i32; EIGHTHS]| sums.map(|sum| f64::from(sum) * eighth_step);
        Scaled {
            norm: f64::from(*norm) * eighth_step,
            components: components.map(|component| f64::from(component) * step),
            step,
            rows: rows.as_ref().map(eighths),
            columns: columns.as_ref().map(|columns| (columns.width, eighths(&columns.sums))),
            is_zero: false,
        }
    }

    fn squared_distance(&self, other: &Scaled) -> f64 {
        mean(self.components.iter().zip(&other.components).map(|(a, b)| (a - b).powi(2)))
    }

    /// The cosine and where it lies in 95 of 100 cases. Norms are known better than components: where vectors are close,
    /// their distance says more than their product.
    fn cosine(&self, other: &Scaled, squared_distance: f64) -> Option<(f64, (f64, f64))> {
        let both = self.norm * other.norm;
        if both == 0.0 {
            return None;
        }
        let unequal = (self.norm - other.norm).powi(2);
        let pairs = || self.components.iter().zip(&other.components);
        let squared_sum = mean(pairs().map(|(a, b)| (a + b).powi(2)));
        let by_distance = |squares: f64| (1.0 - (squares - unequal) / (2.0 * both)).clamp(-1.0, 1.0);
        let [nearest, farthest] = CONFIDENCE_95.map(|share| share.powi(2));
        Some(if squared_distance <= both {
            let interval =
                (by_distance(squared_distance * farthest), by_distance(squared_distance * nearest));
            (by_distance(squared_distance), interval)
        } else if squared_sum <= both {
            let interval = (-by_distance(squared_sum * nearest), -by_distance(squared_sum * farthest));
            (-by_distance(squared_sum), interval)
        } else {
            // The vectors are at least so far apart, and so are one and the opposite of the other.
            let bounds = [-by_distance(squared_sum * nearest), by_distance(squared_distance * nearest)];
            // Estimates may contradict each other.
            let (lowest, highest) = (bounds[0].min(bounds[1]), bounds[0].max(bounds[1]));
            let cosine = mean(pairs().map(|(a, b)| a * b)) / both;
            (cosine.clamp(lowest, highest), (lowest, highest))
        })
    }

    fn part_of_error(&self, other: &Scaled, resolution: f64) -> Option<SketchPart> {
        let of = |a: Option<[f64; EIGHTHS]>, b: Option<[f64; EIGHTHS]>| {
            let a = a.or(self.is_zero.then_some([0.0; EIGHTHS]))?;
            let b = b.or(other.is_zero.then_some([0.0; EIGHTHS]))?;
            smallest_part(&std::array::from_fn(|at| (a[at] - b[at]).powi(2)), resolution)
        };
        let width = |side: &Scaled| side.columns.map(|(width, _)| width);
        let is_same_width = self.is_zero || other.is_zero || width(self) == width(other);
        let sums = |side: &Scaled| side.columns.filter(|_| is_same_width).map(|(_, sums)| sums);
        let part = SketchPart { rows: of(self.rows, other.rows), columns: of(sums(self), sums(other)) };
        (part.rows.is_some() || part.columns.is_some()).then_some(part)
    }
}

fn mean(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.sum::<f64>() / COMPONENTS as f64
}

/// The fewest eighths in a row with nearly all of the error, given the squares of its sums; `None` if these are too many.
fn smallest_part(squares: &[f64; EIGHTHS], resolution: f64) -> Option<Eighths> {
    let all: f64 = squares.iter().sum();
    // Sums of eighths are kept with fewer bits.
    let rounding = EIGHTHS as f64 * (resolution.powi(2) + power_of_two(-2 * EIGHTH_BITS));
    if all * OUTSIDE < rounding {
        return None;
    }
    for len in 1..=MOST_EIGHTHS {
        for (first, inside) in squares.windows(len).enumerate() {
            let inside: f64 = inside.iter().sum();
            if all - inside <= all * OUTSIDE {
                return Some(Eighths { first: first as u8, last: (first + len - 1) as u8 });
            }
        }
    }
    None
}
