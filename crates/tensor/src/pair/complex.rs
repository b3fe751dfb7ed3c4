//! Metrics of two tensors of which at least one is complex. Distances are moduli; inner products are those of
//! the vectors of real and imaginary parts.

use super::arithmetic::InF64;
use super::real::{SCALED_WITHIN, WITHIN, errors_against_golden};
use super::{NonFinite, Totals, max_or_nan, nan_to_num, over_blocks};
use crate::TensorView;
use crate::decode::as_c128;
use crate::simd::Level;

pub(super) fn compare(target: &TensorView<'_>, golden: &TensorView<'_>) -> Option<Totals> {
    let numel = target.numel();
    let (target, golden) = (as_c128(target)?, as_c128(golden)?);
    over_blocks(numel, &target, &golden, |start, target, golden| {
        let mut totals = Totals::EMPTY;
        for (index, (&t, &g)) in target.iter().zip(golden).enumerate() {
            add(&mut totals, start + index, t, g);
        }
        totals
    })
}

/// Metrics of the real parts alone, for columns that never knew of the imaginary ones.
pub(super) fn compare_real_parts(
    level: Level,
    target: &TensorView<'_>,
    golden: &TensorView<'_>,
) -> Option<Totals> {
    let numel = target.numel();
    let (target, golden) = (as_c128(target)?, as_c128(golden)?);
    over_blocks(numel, &target, &golden, |start, target, golden| {
        let mut totals = Totals::EMPTY;
        let (mut real_target, mut real_golden) = (Vec::new(), Vec::new());
        for (index, (&t, &g)) in target.iter().zip(golden).enumerate() {
            let finite = add_non_finite(&mut totals, t, g);
            let (t, g) = if finite { (t[0], g[0]) } else { (0.0, 0.0) };
            if t == g {
                totals.equal += 1;
            } else {
                totals.first_mismatch = totals.first_mismatch.or(Some((start + index) as u64));
            }
            real_target.push(t);
            real_golden.push(g);
        }
        totals.first_difference = totals.first_mismatch;
        totals.merge(errors_against_golden::<InF64>(level, &real_target, &real_golden))
    })
}

fn add(totals: &mut Totals, index: usize, t: [f64; 2], g: [f64; 2]) {
    if t == g {
        totals.equal += 1;
    } else {
        totals.first_mismatch = totals.first_mismatch.or(Some(index as u64));
        if !(is_nan(t) && is_nan(g)) {
            totals.first_difference = totals.first_difference.or(Some(index as u64));
        }
    }
    add_scaled(totals, t, g);

    let finite = add_non_finite(totals, t, g);
    let (t, g) = if finite { (t, g) } else { ([0.0; 2], [0.0; 2]) };

    let distance = (t[0] - g[0]).hypot(t[1] - g[1]);
    totals.dot += t[0] * g[0] + t[1] * g[1];
    totals.target_squares += t[0] * t[0] + t[1] * t[1];
    totals.golden_squares += g[0] * g[0] + g[1] * g[1];
    totals.distance_squares += distance * distance;
    totals.max_abs = totals.max_abs.max(distance);
    let modulus = g[0].hypot(g[1]);
    let relative = distance / if modulus == 0.0 { f64::EPSILON } else { modulus };
    totals.max_relative = max_or_nan(totals.max_relative, relative);
    for (count, limit) in totals.within.iter_mut().zip(WITHIN) {
        *count += u64::from(relative < limit);
    }
}

/// Counts values that are not finite and tells whether both are.
fn add_non_finite(totals: &mut Totals, t: [f64; 2], g: [f64; 2]) -> bool {
    let mut finite = true;
    for (value, counts) in [(t, &mut totals.target_non_finite), (g, &mut totals.golden_non_finite)] {
        finite &= count_non_finite(counts, value);
    }
    totals.nan_positions_agree &= is_nan(t) == is_nan(g);
    totals.inf_positions_agree &= is_infinite(t) == is_infinite(g);
    finite
}

fn add_scaled(totals: &mut Totals, t: [f64; 2], g: [f64; 2]) {
    let distance = (t[0] - g[0]).hypot(t[1] - g[1]);
    let larger = max_or_nan(t[0].hypot(t[1]), g[0].hypot(g[1]));
    totals.scaled_max_abs = max_or_nan(totals.scaled_max_abs, distance);
    totals.scaled_max_relative = totals.scaled_max_relative.max(nan_to_num(distance / larger));
    for (count, limit) in totals.scaled_within.iter_mut().zip(SCALED_WITHIN) {
        *count += u64::from(distance <= limit * larger);
    }
}

fn is_nan(value: [f64; 2]) -> bool {
    value[0].is_nan() || value[1].is_nan()
}

fn is_infinite(value: [f64; 2]) -> bool {
    value[0].is_infinite() || value[1].is_infinite()
}

/// Counts an element that is not finite, once (NaN before infinity), and tells whether it is finite.
fn count_non_finite(counts: &mut NonFinite, value: [f64; 2]) -> bool {
    if is_nan(value) {
        counts.nan += 1;
    } else if is_infinite(value) {
        counts.pos_inf += 1;
    } else {
        return true;
    }
    false
}
