//! Metrics of two tensors of which at least one is complex. Distances are moduli; inner products are those of
//! the vectors of real and imaginary parts.

use super::arithmetic::InF64;
use super::promote::result_type;
use super::real::{SCALED_WITHIN, WITHIN, errors_against_golden};
use super::{NonFinite, Totals, are_scalars, max_or_nan, nan_to_num, over_blocks};
use crate::decode::as_c128;
use crate::simd::Level;
use crate::{DType, TensorView};

pub(super) fn compare(target: &TensorView<'_>, golden: &TensorView<'_>) -> Option<Totals> {
    let numel = target.numel();
    let scaled = Scaled::of(target, golden);
    let (target, golden) = (as_c128(target)?, as_c128(golden)?);
    over_blocks(numel, &target, &golden, |start, target, golden| {
        let mut totals = Totals::EMPTY;
        for (index, (&t, &g)) in target.iter().zip(golden).enumerate() {
            add(&mut totals, start + index, t, g, &scaled);
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

fn add(totals: &mut Totals, index: usize, t: [f64; 2], g: [f64; 2], scaled: &Scaled) {
    if t == g {
        totals.equal += 1;
    } else {
        totals.first_mismatch = totals.first_mismatch.or(Some(index as u64));
        if !same_parts(t, g) {
            totals.first_difference = totals.first_difference.or(Some(index as u64));
        }
    }
    totals.bits_agree &= t.iter().zip(g).all(|(t, g)| t.to_bits() == g.to_bits() || t.is_nan() && g.is_nan());
    scaled.add(totals, t, g);

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
    totals.non_finite_agree &= finite || same_parts(t, g);
    finite
}

/// How numpy computes the scaled errors of two dtypes: moduli of complex64 are float32, also when the other side
/// makes everything else float64.
struct Scaled {
    /// Whether the modulus of a side is float32.
    single_sides: [bool; 2],
    /// Whether errors are float32.
    single: bool,
    /// 0.001 and 0.01 in the type of the limits.
    limits: [f64; 2],
    /// Limits of arrays are in the type of the errors; those of scalars are always float64.
    single_limits: bool,
}

impl Scaled {
    fn of(target: &TensorView<'_>, golden: &TensorView<'_>) -> Scaled {
        let single = result_type(target.dtype(), golden.dtype()) == DType::C64;
        let single_limits = single && !are_scalars(target, golden);
        Scaled {
            single_sides: [target, golden].map(|view| view.dtype() == DType::C64),
            single,
            limits: SCALED_WITHIN.map(|limit| rounded(limit, single_limits)),
            single_limits,
        }
    }

    fn add(&self, totals: &mut Totals, t: [f64; 2], g: [f64; 2]) {
        let difference = [t[0] - g[0], t[1] - g[1]].map(|part| rounded(part, self.single));
        let distance = rounded(difference[0].hypot(difference[1]), self.single);
        let [target_single, golden_single] = self.single_sides;
        let larger =
            max_or_nan(rounded(t[0].hypot(t[1]), target_single), rounded(g[0].hypot(g[1]), golden_single));
        let relative = nan_to_num(rounded(distance / larger, self.single));
        let largest = if self.single { f64::from(f32::MAX) } else { f64::MAX };
        totals.scaled_max_abs = max_or_nan(totals.scaled_max_abs, distance);
        totals.scaled_max_relative = totals.scaled_max_relative.max(relative.min(largest));
        for (count, limit) in totals.scaled_within.iter_mut().zip(self.limits) {
            *count += u64::from(distance <= rounded(limit * larger, self.single_limits));
        }
    }
}

/// A float64, or the float32 next to it. One operation on float32 values in float64, then rounded, is that operation
/// in float32.
fn rounded(value: f64, single: bool) -> f64 {
    if single { f64::from(value as f32) } else { value }
}

/// Whether both parts are equal, or NaN on both sides.
fn same_parts(t: [f64; 2], g: [f64; 2]) -> bool {
    t.iter().zip(g).all(|(t, g)| *t == g || t.is_nan() && g.is_nan())
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
