//! Metrics of two integer (or bool) tensors: equality and scaled errors in the integer type itself, as numpy
//! computes them, the other family in f64.

use super::arithmetic::InF64;
use super::real::{SCALED_WITHIN, errors_against_golden};
use super::{Totals, nan_to_num, over_blocks};
use crate::decode::{Integer, as_integer};
use crate::parallel::blocks;
use crate::simd::Level;
use crate::{DTypeClass, TensorView};

pub(super) fn compare<I: Integer>(
    level: Level,
    target: &TensorView<'_>,
    golden: &TensorView<'_>,
) -> Option<Totals> {
    let numel = target.numel();
    let (target, golden) = (as_integer::<I>(target)?, as_integer::<I>(golden)?);
    over_blocks(numel, &target, &golden, |start, target, golden| {
        let wide = |block: &[I]| block.iter().map(|value| value.to_f64()).collect::<Vec<f64>>();
        let mut totals = errors_against_golden::<InF64>(level, &wide(target), &wide(golden));
        scaled_errors(target, golden, &mut totals);
        if totals.equal < target.len() as u64 {
            let first = target.iter().zip(golden).position(|(t, g)| t != g);
            totals.first_mismatch = first.map(|index| (start + index) as u64);
            totals.first_difference = totals.first_mismatch;
            totals.bits_agree = false;
        }
        totals
    })
}

/// Puts right what a comparison as float64 said of an unsigned and a signed tensor: beyond 2^53 it takes neighbours
/// for equal.
pub(super) fn decide_exactly(
    totals: Totals,
    target: &TensorView<'_>,
    golden: &TensorView<'_>,
) -> Option<Totals> {
    let is_unsigned = target.dtype().class() == DTypeClass::Unsigned;
    let (unsigned, signed) = if is_unsigned { (target, golden) } else { (golden, target) };
    let (unsigned, signed) = (as_integer::<u64>(unsigned)?, as_integer::<i64>(signed)?);
    let (mut unsigned_scratch, mut signed_scratch) = (Vec::new(), Vec::new());
    let first_difference = blocks(0..target.numel()).find_map(|(start, len)| {
        let unsigned = unsigned.read(start, len, &mut unsigned_scratch);
        let signed = signed.read(start, len, &mut signed_scratch);
        let differs = |(unsigned, signed): (&u64, &i64)| u64::try_from(*signed) != Ok(*unsigned);
        unsigned.iter().zip(signed).position(differs).map(|index| (start + index) as u64)
    });
    Some(Totals { first_difference, bits_agree: first_difference.is_none(), ..totals })
}

fn scaled_errors<I: Integer>(target: &[I], golden: &[I], totals: &mut Totals) {
    for (&t, &g) in target.iter().zip(golden) {
        totals.equal += u64::from(t == g);
        let distance = t.wrapping_distance(g).to_f64();
        let larger = t.wrapping_magnitude().max(g.wrapping_magnitude()).to_f64();
        totals.scaled_max_abs = totals.scaled_max_abs.max(distance);
        totals.scaled_max_relative = totals.scaled_max_relative.max(nan_to_num(distance / larger));
        for (count, limit) in totals.scaled_within.iter_mut().zip(SCALED_WITHIN) {
            *count += u64::from(distance <= limit * larger);
        }
    }
}
