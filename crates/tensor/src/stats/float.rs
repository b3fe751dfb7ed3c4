//! Statistics of real floating-point tensors.

use std::ops::Range;

use super::{Number, Statistics};
use crate::decode::Decoded;
use crate::parallel::{OnChunk, blocks, reduce_blocks};
use crate::real::Real;
use crate::simd::{Level, Row, Vector, by_level, split_rows};

/// How far ahead memory is asked for: a page, because the hardware's own prefetcher stops at its end.
pub(super) const PREFETCH_BYTES: usize = 4096;

/// Below this a sum of squares in f64 has lost precision to underflow.
const SQUARES_UNDERFLOW: f64 = 1e-280;

/// Sums over the finite elements of a chunk, and counts of the others.
#[derive(Clone, Copy)]
pub(crate) struct Partial {
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

    /// The sum of the squares of the finite elements; not finite if not all were known to be.
    pub(super) fn squares(&self) -> f64 {
        self.squares
    }

    /// Whether all elements are finite and smaller than `limit` in magnitude.
    pub(super) fn is_below(&self, limit: f64) -> bool {
        self.squares.is_finite() && self.max < limit && self.min > -limit
    }

    pub(crate) fn merge(self, other: Partial) -> Partial {
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

pub(super) fn of_float<W: Real>(
    level: Level,
    numel: usize,
    values: &Decoded<'_, W>,
    on_chunk: OnChunk<'_>,
) -> Statistics {
    let of_block = |block: &[W]| of_block(level, block);
    let partial = reduce_blocks(numel, values, on_chunk, of_block, Partial::merge).unwrap_or(Partial::EMPTY);
    finish_sums(numel, partial, values)
}

/// Sums of one chunk, on this thread, for whoever has another use for its blocks. Chunks merged in order give the bits
/// of [`of_float`].
pub(crate) fn of_chunk<W: Real>(
    level: Level,
    values: &Decoded<'_, W>,
    chunk: Range<usize>,
    scratch: &mut Vec<W>,
    mut on_block: impl FnMut(&[W]),
) -> Option<Partial> {
    let parts = blocks(chunk).map(|(start, len)| {
        let block = values.read(start, len, scratch);
        on_block(block);
        of_block(level, block)
    });
    parts.reduce(Partial::merge)
}

/// What merged chunks say about the tensor.
pub(crate) fn finish_sums<W: Real>(numel: usize, partial: Partial, values: &Decoded<'_, W>) -> Statistics {
    finish(numel, partial, |scale| rescaled_sums(numel, values, scale))
}

fn of_block<W: Real>(level: Level, block: &[W]) -> Partial {
    let (rows, rest) = split_rows(block);
    let partial = finite_sums_of_rows(level, rows).merge(of_rest(rest));
    if partial.squares.is_finite() { partial } else { of_odd_block(level, block) }
}

/// Sums of a block in which something is NaN or infinite (or its square overflows f64): the elements are told apart.
pub(super) fn of_odd_block<W: Real>(level: Level, block: &[W]) -> Partial {
    let (rows, rest) = split_rows(block);
    sums_of_rows(level, rows).merge(sums::<Row<W, 1>, W>(rest))
}

/// Sums of the few elements after the last whole row, right if all of them are finite.
pub(super) fn of_rest<W: Real>(rest: &[W]) -> Partial {
    finite_sums::<Row<W, 1>, W>(rest)
}

by_level! { fn finite_sums_of_rows<W: Real>(rows: &[W]) -> Partial = finite_sums on W }
by_level! { fn sums_of_rows<W: Real>(rows: &[W]) -> Partial = sums on W }

/// Sums over whole rows, right if all of them are finite.
#[inline(always)]
fn finite_sums<V: Vector<Scalar = W>, W: Real>(rows: &[W]) -> Partial {
    let mut sums = FiniteSums::<V>::new();
    for row in rows.chunks_exact(V::LANES) {
        V::prefetch_after(row, PREFETCH_BYTES);
        sums.add(V::load(row));
    }
    sums.finish()
}

/// Sums that grow row by row, for whoever has another use for the rows. Right if all elements are finite.
pub(super) struct FiniteSums<V: Vector> {
    sum: V::Wide,
    squares: V::Wide,
    max: V,
    min: V,
    zeros: V::Count,
}

impl<V: Vector> FiniteSums<V> {
    #[inline(always)]
    pub(super) fn new() -> Self {
        FiniteSums {
            sum: V::Wide::splat(0.0),
            squares: V::Wide::splat(0.0),
            max: V::splat(V::Scalar::NEG_INFINITY),
            min: V::splat(V::Scalar::INFINITY),
            zeros: V::no_count(),
        }
    }

    #[inline(always)]
    pub(super) fn add(&mut self, row: V) {
        let wide = row.widen();
        self.sum = self.sum.add(wide);
        self.squares = V::add_product(self.squares, wide, wide);
        self.max = row.max(self.max);
        self.min = row.min(self.min);
        self.zeros = V::count_eq(self.zeros, row, V::splat(V::Scalar::ZERO));
    }

    #[inline(always)]
    pub(super) fn finish(self) -> Partial {
        Partial {
            sum: self.sum.sum(),
            squares: self.squares.sum(),
            max: self.max.fold(f64::NEG_INFINITY, f64::max),
            min: self.min.fold(f64::INFINITY, f64::min),
            zeros: V::total(self.zeros),
            ..Partial::EMPTY
        }
    }
}

/// Sums over the finite elements of whole rows, and counts of the others.
#[inline(always)]
fn sums<V: Vector<Scalar = W>, W: Real>(rows: &[W]) -> Partial {
    let (lowest, highest) = (V::splat(W::NEG_INFINITY), V::splat(W::INFINITY));
    let mut sum = V::Wide::splat(0.0);
    let mut squares = V::Wide::splat(0.0);
    let (mut max, mut min) = (lowest, highest);
    let mut zeros = V::no_count();
    let (mut nan, mut pos_inf, mut neg_inf) = (V::no_count(), V::no_count(), V::no_count());
    for row in rows.chunks_exact(V::LANES) {
        let row = V::load(row);
        let wide = row.finite_or(V::splat(W::ZERO)).widen();
        sum = sum.add(wide);
        squares = V::add_product(squares, wide, wide);
        max = row.finite_or(lowest).max(max);
        min = row.finite_or(highest).min(min);
        zeros = V::count_eq(zeros, row, V::splat(W::ZERO));
        nan = V::count_nan(nan, row);
        pos_inf = V::count_eq(pos_inf, row, highest);
        neg_inf = V::count_eq(neg_inf, row, lowest);
    }
    Partial {
        sum: sum.sum(),
        squares: squares.sum(),
        max: max.fold(f64::NEG_INFINITY, f64::max),
        min: min.fold(f64::INFINITY, f64::min),
        nan: V::total(nan),
        pos_inf: V::total(pos_inf),
        neg_inf: V::total(neg_inf),
        zeros: V::total(zeros),
    }
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
            // Rounding must not carry a mean of the largest values over the edge.
            mean = (sum / count * scale).clamp(min, max);
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
    let of_block = |block: &[W]| {
        block
            .iter()
            .map(|x| x.to_f64() / scale)
            .fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x))
    };
    let merge = |a: (f64, f64), b: (f64, f64)| (a.0 + b.0, a.1 + b.1);
    reduce_blocks(numel, values, &|_| {}, of_block, merge).unwrap_or((0.0, 0.0))
}
