//! Statistics of real floating-point tensors.

use super::{Number, Statistics};
use crate::decode::Decoded;
use crate::parallel::map_chunks;
use crate::real::Real;
use crate::simd::{Level, multiversion};
use crate::view::BLOCK_ELEMENTS;

/// Independent accumulators per block. Part of the definition of every sum.
const LANES: usize = 16;

/// Below this a sum of squares in f64 has lost precision to underflow.
const SQUARES_UNDERFLOW: f64 = 1e-280;

/// Accumulators of one block, element `i` going to lane `i % LANES`.
struct Lanes<W> {
    sum: [f64; LANES],
    squares: [f64; LANES],
    max: [W; LANES],
    min: [W; LANES],
    zeros: [u32; LANES],
}

/// Sums over the finite elements of a chunk, and counts of the others.
#[derive(Clone, Copy)]
struct Partial {
    sum: f64,
    squares: f64,
    max: f64,
    min: f64,
    nan: u64,
    pos_inf: u64,
    neg_inf: u64,
    zeros: u64,
}

impl Partial {
    const EMPTY: Partial = Partial {
        sum: 0.0,
        squares: 0.0,
        max: f64::NEG_INFINITY,
        min: f64::INFINITY,
        nan: 0,
        pos_inf: 0,
        neg_inf: 0,
        zeros: 0,
    };

    fn merge(self, other: Partial) -> Partial {
        Partial {
            sum: self.sum + other.sum,
            squares: self.squares + other.squares,
            max: self.max.max(other.max),
            min: self.min.min(other.min),
            nan: self.nan + other.nan,
            pos_inf: self.pos_inf + other.pos_inf,
            neg_inf: self.neg_inf + other.neg_inf,
            zeros: self.zeros + other.zeros,
        }
    }
}

pub(super) fn of_float<W: Real>(level: Level, numel: usize, values: &Decoded<'_, W>) -> Statistics {
    let partial = map_chunks(
        numel,
        |range| {
            let mut scratch = Vec::new();
            let mut partial = Partial::EMPTY;
            for start in range.clone().step_by(BLOCK_ELEMENTS) {
                let len = BLOCK_ELEMENTS.min(range.end - start);
                partial = partial.merge(of_block(level, values.read(start, len, &mut scratch)));
            }
            partial
        },
        Partial::merge,
    )
    .unwrap_or(Partial::EMPTY);
    finish(numel, partial, |scale| rescaled_sums(numel, values, scale))
}

fn of_block<W: Real>(level: Level, block: &[W]) -> Partial {
    let mut lanes = Lanes {
        sum: [0.0; LANES],
        squares: [0.0; LANES],
        max: [W::NEG_INFINITY; LANES],
        min: [W::INFINITY; LANES],
        zeros: [0; LANES],
    };
    accumulate(level, block, &mut lanes);
    let squares = lanes.squares.iter().sum::<f64>();
    if !squares.is_finite() {
        // Something here is NaN or infinite (or its square overflows f64): look at each element.
        return of_block_with_care(block);
    }
    Partial {
        sum: lanes.sum.iter().sum(),
        squares,
        max: lanes.max.iter().fold(f64::NEG_INFINITY, |max, x| max.max(x.to_f64())),
        min: lanes.min.iter().fold(f64::INFINITY, |min, x| min.min(x.to_f64())),
        zeros: lanes.zeros.iter().map(|&zeros| u64::from(zeros)).sum(),
        ..Partial::EMPTY
    }
}

multiversion! {
    fn accumulate[W: Real](level, block: &[W], lanes: &mut Lanes<W>) {
        let mut sum = lanes.sum;
        let mut squares = lanes.squares;
        let mut max = lanes.max;
        let mut min = lanes.min;
        let mut zeros = lanes.zeros;
        let (rows, tail) = block.as_chunks::<LANES>();
        for row in rows {
            for i in 0..LANES {
                let x = row[i];
                let wide = x.to_f64();
                sum[i] += wide;
                squares[i] += wide * wide;
                max[i] = if x > max[i] { x } else { max[i] };
                min[i] = if x < min[i] { x } else { min[i] };
                zeros[i] += u32::from(x == W::ZERO);
            }
        }
        for (i, &x) in tail.iter().enumerate() {
            let wide = x.to_f64();
            sum[i] += wide;
            squares[i] += wide * wide;
            max[i] = if x > max[i] { x } else { max[i] };
            min[i] = if x < min[i] { x } else { min[i] };
            zeros[i] += u32::from(x == W::ZERO);
        }
        *lanes = Lanes { sum, squares, max, min, zeros };
    }
}

fn of_block_with_care<W: Real>(block: &[W]) -> Partial {
    let mut partial = Partial::EMPTY;
    for &x in block {
        let x = x.to_f64();
        if x.is_finite() {
            partial.sum += x;
            partial.squares += x * x;
            partial.max = partial.max.max(x);
            partial.min = partial.min.min(x);
            partial.zeros += u64::from(x == 0.0);
        } else if x.is_nan() {
            partial.nan += 1;
        } else if x > 0.0 {
            partial.pos_inf += 1;
        } else {
            partial.neg_inf += 1;
        }
    }
    partial
}

fn finish(numel: usize, partial: Partial, rescaled_sums: impl Fn(f64) -> (f64, f64)) -> Statistics {
    let count = numel as f64;
    let (mut mean, mut norm) = (partial.sum / count, partial.squares.sqrt());
    let (mut max, mut min) = (partial.max, partial.min);
    let infinite = partial.pos_inf + partial.neg_inf > 0;
    if partial.nan > 0 {
        (max, min, mean, norm) = (f64::NAN, f64::NAN, f64::NAN, f64::NAN);
    } else if infinite {
        if partial.pos_inf > 0 {
            max = f64::INFINITY;
        }
        if partial.neg_inf > 0 {
            min = f64::NEG_INFINITY;
        }
        mean = match (partial.pos_inf, partial.neg_inf) {
            (_, 0) => f64::INFINITY,
            (0, _) => f64::NEG_INFINITY,
            _ => f64::NAN,
        };
        norm = f64::INFINITY;
    } else {
        // Only f64 input gets here: its squares, or even its sum, can leave the range of f64 although norm
        // and mean do not.
        let largest = max.abs().max(min.abs());
        let lost = !partial.sum.is_finite() || !partial.squares.is_finite();
        if lost || (partial.squares < SQUARES_UNDERFLOW && largest > 0.0) {
            let scale = power_of_two_near(largest);
            let (sum, squares) = rescaled_sums(scale);
            mean = sum / count * scale;
            norm = squares.sqrt() * scale;
        }
    }
    Statistics {
        max: Some(Number::Float(max)),
        min: Some(Number::Float(min)),
        mean: Some(Number::Float(mean)),
        norm: Some(Number::Float(norm)),
        count: numel as u64,
        nan_count: partial.nan,
        pos_inf_count: partial.pos_inf,
        neg_inf_count: partial.neg_inf,
        zero_count: partial.zeros,
    }
}

/// The power of two at or below a positive finite number (subnormals: the smallest normal one).
fn power_of_two_near(value: f64) -> f64 {
    let exponent = f64::from_bits(value.to_bits() & 0x7ff0_0000_0000_0000);
    exponent.max(f64::MIN_POSITIVE)
}

/// Sum and sum of squares of the elements divided by `scale`. The rare second pass.
fn rescaled_sums<W: Real>(numel: usize, values: &Decoded<'_, W>, scale: f64) -> (f64, f64) {
    map_chunks(
        numel,
        |range| {
            let mut scratch = Vec::new();
            let (mut sum, mut squares) = (0.0, 0.0);
            for start in range.clone().step_by(BLOCK_ELEMENTS) {
                let len = BLOCK_ELEMENTS.min(range.end - start);
                for x in values.read(start, len, &mut scratch) {
                    let scaled = x.to_f64() / scale;
                    sum += scaled;
                    squares += scaled * scaled;
                }
            }
            (sum, squares)
        },
        |a, b| (a.0 + b.0, a.1 + b.1),
    )
    .unwrap_or((0.0, 0.0))
}
