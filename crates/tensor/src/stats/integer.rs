//! Statistics of integer and bool tensors: sums are exact.

use super::{Number, Statistics};
use crate::decode::{Decoded, Integer};
use crate::parallel::{OnChunk, reduce_blocks};
use crate::simd::{LANES, Level, by_level};

#[derive(Clone, Copy)]
struct Partial<I> {
    sum: i128,
    squares: f64,
    max: I,
    min: I,
    zeros: u64,
}

impl<I: Integer> Partial<I> {
    fn merge(self, other: Partial<I>) -> Partial<I> {
        Partial {
            sum: self.sum + other.sum,
            squares: self.squares + other.squares,
            max: self.max.max(other.max),
            min: self.min.min(other.min),
            zeros: self.zeros + other.zeros,
        }
    }
}

pub(super) fn of_integer<I: Integer>(
    level: Level,
    numel: usize,
    values: &Decoded<'_, I>,
    on_chunk: OnChunk<'_>,
) -> Statistics {
    let of_block = |block: &[I]| of_block(level, block);
    let Some(partial) = reduce_blocks(numel, values, on_chunk, of_block, Partial::merge) else {
        return Statistics::default();
    };
    Statistics {
        max: Some(Number::Int(partial.max.to_i128())),
        min: Some(Number::Int(partial.min.to_i128())),
        mean: Some(Number::Float(partial.sum as f64 / numel as f64)),
        norm: Some(Number::Float(partial.squares.sqrt())),
        count: numel as u64,
        zero_count: partial.zeros,
        ..Statistics::default()
    }
}

/// Plain loops over fixed lanes: compilers vectorise integer arithmetic well by themselves.
fn of_block<I: Integer>(level: Level, block: &[I]) -> Partial<I> {
    // Blocks are never empty; any element serves as a start for max and min.
    let first = block.first().copied().unwrap_or_else(I::zeroed);
    let (rows, rest) = block.as_chunks::<LANES>();
    sums_of_rows(level, rows, first).merge(sums(rest.as_chunks::<1>().0, first))
}

by_level! { fn sums_of_rows<I: Integer>(rows: &[[I; LANES]], first: I) -> Partial<I> = full_row_sums }

#[inline(always)]
fn full_row_sums<I: Integer>(rows: &[[I; LANES]], first: I) -> Partial<I> {
    sums(rows, first)
}

#[inline(always)]
fn sums<I: Integer, const N: usize>(rows: &[[I; N]], first: I) -> Partial<I> {
    let mut sum = [0i64; N];
    let mut squares = [0f64; N];
    let mut max = [first; N];
    let mut min = [first; N];
    let mut zeros = [0u32; N];
    // 64-bit elements could overflow even one block's i64 sum.
    let narrow = size_of::<I>() < 8;
    let mut wide_sum = 0i128;
    for row in rows {
        for lane in 0..N {
            let x = row[lane];
            if narrow {
                sum[lane] += x.to_i128() as i64;
            } else {
                wide_sum += x.to_i128();
            }
            let wide = x.to_f64();
            squares[lane] += wide * wide;
            max[lane] = max[lane].max(x);
            min[lane] = min[lane].min(x);
            zeros[lane] += u32::from(x == I::zeroed());
        }
    }
    Partial {
        sum: wide_sum + sum.iter().map(|&sum| i128::from(sum)).sum::<i128>(),
        squares: squares.iter().sum(),
        max: max.into_iter().fold(first, I::max),
        min: min.into_iter().fold(first, I::min),
        zeros: zeros.iter().map(|&zeros| u64::from(zeros)).sum(),
    }
}

/// Bool: max is "any", min is "all"; there is no mean and no norm.
pub(super) fn of_bool(numel: usize, values: &Decoded<'_, u8>, on_chunk: OnChunk<'_>) -> Statistics {
    let of_block = |block: &[u8]| block.iter().filter(|&&value| value == 0).count() as u64;
    let zeros = reduce_blocks(numel, values, on_chunk, of_block, |a, b| a + b).unwrap_or(0);
    Statistics {
        max: Some(Number::Bool(zeros < numel as u64)),
        min: Some(Number::Bool(zeros == 0)),
        count: numel as u64,
        zero_count: zeros,
        ..Statistics::default()
    }
}
