//! Metrics of two real tensors, block by block.

use super::arithmetic::Arithmetic;
use super::{NonFinite, Totals, over_blocks};
use crate::decode::Decoded;
use crate::real::Real;
use crate::simd::{Level, Row, Vector, by_level, split_rows};

pub(super) const WITHIN: [f64; 3] = [0.001, 0.005, 0.01];
pub(super) const SCALED_WITHIN: [f64; 2] = [0.001, 0.01];

pub(super) fn compare<A: Arithmetic>(
    level: Level,
    target: Option<Decoded<'_, A::Work>>,
    golden: Option<Decoded<'_, A::Work>>,
    numel: usize,
) -> Option<Totals> {
    let (target, golden) = (target?, golden?);
    over_blocks(numel, &target, &golden, |start, target, golden| of_block::<A>(level, start, target, golden))
}

fn of_block<A: Arithmetic>(level: Level, start: usize, target: &[A::Work], golden: &[A::Work]) -> Totals {
    let (target_rows, target_rest) = split_rows(target);
    let (golden_rows, golden_rest) = split_rows(golden);
    let mut totals =
        scaled_errors_of_rows::<A>(level, target_rows, golden_rows)
            .merge(scaled_errors::<Row<A::Work, 1>, A>(target_rest, golden_rest));
    if totals.equal < target.len() as u64 {
        let position_of = |test: fn(&A::Work, &A::Work) -> bool| {
            let first = target.iter().zip(golden).position(|(t, g)| test(t, g));
            first.map(|index| (start + index) as u64)
        };
        totals.first_mismatch = position_of(|t, g| t != g);
        totals.first_difference = position_of(|t, g| t != g && !are_nan(t, g));
    }
    totals.bits_agree = totals.first_difference.is_none() && same_bits(target, golden);
    let errors = errors_against_golden::<A>(level, target, golden);
    if errors.target_squares.is_finite() && errors.golden_squares.is_finite() {
        return totals.merge(errors);
    }
    // Something is NaN or infinite: take those positions out of both sides and measure the rest.
    let (target, golden) = zero_non_finite(target, golden, &mut totals);
    totals.merge(errors_against_golden::<A>(level, &target, &golden))
}

fn are_nan<W: Real>(t: &W, g: &W) -> bool {
    t.to_f64().is_nan() && g.to_f64().is_nan()
}

/// Whether elements that compare equal are the same bits. The block was just read, so this costs next to nothing.
fn same_bits<W: Real>(target: &[W], golden: &[W]) -> bool {
    bytemuck::cast_slice::<W, u8>(target) == bytemuck::cast_slice::<W, u8>(golden)
        || target
            .iter()
            .zip(golden)
            .all(|(t, g)| bytemuck::bytes_of(t) == bytemuck::bytes_of(g) || are_nan(t, g))
}

/// Distances and relative errors of a block of finite values.
pub(super) fn errors_against_golden<A: Arithmetic>(
    level: Level,
    target: &[A::Work],
    golden: &[A::Work],
) -> Totals {
    let (target_rows, target_rest) = split_rows(target);
    let (golden_rows, golden_rest) = split_rows(golden);
    errors_of_rows::<A>(level, target_rows, golden_rows)
        .merge(errors::<Row<A::Work, 1>, A>(target_rest, golden_rest))
}

fn zero_non_finite<W: Real>(target: &[W], golden: &[W], totals: &mut Totals) -> (Vec<W>, Vec<W>) {
    let (mut target, mut golden) = (target.to_vec(), golden.to_vec());
    let mut counts = [NonFinite::default(); 2];
    for (t, g) in target.iter_mut().zip(&mut golden) {
        let (wide_t, wide_g) = (t.to_f64(), g.to_f64());
        counts[0].count(wide_t);
        counts[1].count(wide_g);
        totals.nan_positions_agree &= wide_t.is_nan() == wide_g.is_nan();
        totals.inf_positions_agree &= wide_t.is_infinite() == wide_g.is_infinite();
        if !(wide_t.is_finite() && wide_g.is_finite()) {
            totals.non_finite_agree &= wide_t == wide_g || wide_t.is_nan() && wide_g.is_nan();
            (*t, *g) = (W::ZERO, W::ZERO);
        }
    }
    totals.target_non_finite = counts[0];
    totals.golden_non_finite = counts[1];
    (target, golden)
}

by_level! {
    fn errors_of_rows<A: Arithmetic>(target: &[A::Work], golden: &[A::Work]) -> Totals = errors on A::Work
}

/// Distances, in f64, and errors relative to the golden side, in numpy's arithmetic.
#[inline(always)]
fn errors<V: Vector<Scalar = A::Work>, A: Arithmetic>(target: &[A::Work], golden: &[A::Work]) -> Totals {
    let zero = V::Wide::splat(0.0);
    let (mut dot, mut target_squares, mut golden_squares) = (zero, zero, zero);
    let (mut distance_squares, mut max_abs) = (zero, zero);

    let epsilon = V::splat(A::constant(A::ZERO_SHIFT));
    let limits = WITHIN.map(|limit| V::splat(A::constant(limit)));
    let mut max_relative = V::splat(A::Work::ZERO);
    let mut nans = V::no_count();
    let mut within = [V::no_count(); 3];

    for (target, golden) in target.chunks_exact(V::LANES).zip(golden.chunks_exact(V::LANES)) {
        let (target, golden) = (V::load(target), V::load(golden));

        let (wide_target, wide_golden) = (target.widen(), golden.widen());
        let difference = wide_target.sub(wide_golden);
        dot = V::add_product(dot, wide_target, wide_golden);
        target_squares = V::add_product(target_squares, wide_target, wide_target);
        golden_squares = V::add_product(golden_squares, wide_golden, wide_golden);
        distance_squares = distance_squares.add(difference.mul(difference));
        max_abs = difference.abs().max(max_abs);

        let shift = golden.where_zero(epsilon);
        let (target, golden) = (A::round(target.add(shift)), A::round(golden.add(shift)));
        let relative = A::round(A::round(target.sub(golden)).div(golden)).abs();
        max_relative = relative.max(max_relative);
        nans = V::count_nan(nans, relative);
        within[0] = V::count_lt(within[0], relative, limits[0]);
        within[1] = V::count_lt(within[1], relative, limits[1]);
        within[2] = V::count_lt(within[2], relative, limits[2]);
    }
    Totals {
        dot: dot.sum(),
        target_squares: target_squares.sum(),
        golden_squares: golden_squares.sum(),
        distance_squares: distance_squares.sum(),
        max_abs: max_abs.fold(0.0, f64::max),
        max_relative: if V::total(nans) > 0 { f64::NAN } else { max_relative.fold(0.0, f64::max) },
        within: within.map(V::total),
        ..Totals::EMPTY
    }
}

by_level! {
    fn scaled_errors_of_rows<A: Arithmetic>(target: &[A::Work], golden: &[A::Work]) -> Totals
        = scaled_errors on A::Work
}

/// Equality, and errors relative to the larger magnitude.
#[inline(always)]
fn scaled_errors<V: Vector<Scalar = A::Work>, A: Arithmetic>(
    target: &[A::Work],
    golden: &[A::Work],
) -> Totals {
    let limits = SCALED_WITHIN.map(|limit| V::splat(A::constant(limit)));
    let largest_finite = V::splat(A::Work::from_f64(A::LARGEST));
    let mut equal = V::no_count();
    let mut nans = V::no_count();
    let mut max_abs = V::splat(A::Work::ZERO);
    let mut max_relative = V::splat(A::Work::ZERO);
    let mut within = [V::no_count(); 2];
    for (target, golden) in target.chunks_exact(V::LANES).zip(golden.chunks_exact(V::LANES)) {
        let (target, golden) = (V::load(target), V::load(golden));
        equal = V::count_eq(equal, target, golden);
        let distance = A::round(target.sub(golden)).abs();
        let larger = target.abs().max(golden.abs());
        nans = V::count_nan(nans, distance);
        max_abs = distance.max(max_abs);
        // Infinity becomes the largest finite value; NaN loses every comparison and so counts as zero.
        let relative = largest_finite.min(A::round(distance.div(larger)));
        max_relative = relative.max(max_relative);
        within[0] = V::count_le(within[0], distance, A::round(limits[0].mul(larger)));
        within[1] = V::count_le(within[1], distance, A::round(limits[1].mul(larger)));
    }
    Totals {
        equal: V::total(equal),
        scaled_max_abs: if V::total(nans) > 0 { f64::NAN } else { max_abs.fold(0.0, f64::max) },
        scaled_max_relative: max_relative.fold(0.0, f64::max),
        scaled_within: within.map(V::total),
        ..Totals::EMPTY
    }
}
