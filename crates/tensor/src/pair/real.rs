//! Metrics of two real tensors, block by block.

use super::arithmetic::Arithmetic;
use super::{NonFinite, Totals};
use crate::decode::Decoded;
use crate::parallel::map_chunks;
use crate::real::Real;
use crate::simd::{Level, multiversion};
use crate::view::BLOCK_ELEMENTS;

/// Independent accumulators per block. Part of the definition of every sum.
pub(super) const LANES: usize = 8;

pub(super) const WITHIN: [f64; 3] = [0.001, 0.005, 0.01];
pub(super) const SCALED_WITHIN: [f64; 2] = [0.001, 0.01];

pub(super) fn compare<A: Arithmetic>(
    level: Level,
    target: Option<Decoded<'_, A::Work>>,
    golden: Option<Decoded<'_, A::Work>>,
    numel: usize,
) -> Option<Totals> {
    let (target, golden) = (target?, golden?);
    map_chunks(
        numel,
        |range| {
            let (mut target_scratch, mut golden_scratch) = (Vec::new(), Vec::new());
            let mut totals = Totals::EMPTY;
            for start in range.clone().step_by(BLOCK_ELEMENTS) {
                let len = BLOCK_ELEMENTS.min(range.end - start);
                let target = target.read(start, len, &mut target_scratch);
                let golden = golden.read(start, len, &mut golden_scratch);
                totals = totals.merge(of_block::<A>(level, start, target, golden));
            }
            totals
        },
        Totals::merge,
    )
}

fn of_block<A: Arithmetic>(level: Level, start: usize, target: &[A::Work], golden: &[A::Work]) -> Totals {
    let mut totals = Totals::EMPTY;
    scaled_errors::<A>(level, target, golden, &mut totals);
    if totals.equal < target.len() as u64 {
        let first = target.iter().zip(golden).position(|(t, g)| t != g);
        totals.first_mismatch = first.map(|index| (start + index) as u64);
    }
    let mut clean = totals;
    distances(level, target, golden, &mut clean);
    if clean.target_squares.is_finite() && clean.golden_squares.is_finite() {
        relative_errors::<A>(level, target, golden, &mut clean);
        return clean;
    }
    // Something is NaN or infinite: take those positions out of both sides and measure the rest.
    let (target, golden) = zero_non_finite(target, golden, &mut totals);
    distances(level, &target, &golden, &mut totals);
    relative_errors::<A>(level, &target, &golden, &mut totals);
    totals
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
            (*t, *g) = (W::ZERO, W::ZERO);
        }
    }
    totals.target_non_finite = counts[0];
    totals.golden_non_finite = counts[1];
    (target, golden)
}

multiversion! {
    /// Inner products and distances, in f64.
    pub(super) fn distances[W: Real](level, target: &[W], golden: &[W], totals: &mut Totals) {
        let mut dot = [0f64; LANES];
        let mut target_squares = [0f64; LANES];
        let mut golden_squares = [0f64; LANES];
        let mut distance_squares = [0f64; LANES];
        let mut max_abs = [0f64; LANES];
        let mut step = |i: usize, t: W, g: W| {
            let (t, g) = (t.to_f64(), g.to_f64());
            let difference = t - g;
            dot[i] += t * g;
            target_squares[i] += t * t;
            golden_squares[i] += g * g;
            distance_squares[i] += difference * difference;
            let magnitude = difference.abs();
            max_abs[i] = if magnitude > max_abs[i] { magnitude } else { max_abs[i] };
        };
        let (target_rows, target_tail) = target.as_chunks::<LANES>();
        let (golden_rows, golden_tail) = golden.as_chunks::<LANES>();
        for (target, golden) in target_rows.iter().zip(golden_rows) {
            for i in 0..LANES {
                step(i, target[i], golden[i]);
            }
        }
        for (i, (&t, &g)) in target_tail.iter().zip(golden_tail).enumerate() {
            step(i, t, g);
        }
        totals.dot = dot.iter().sum();
        totals.target_squares = target_squares.iter().sum();
        totals.golden_squares = golden_squares.iter().sum();
        totals.distance_squares = distance_squares.iter().sum();
        totals.max_abs = max_abs.into_iter().fold(0.0, f64::max);
    }
}

multiversion! {
    /// Errors relative to the golden side.
    pub(super) fn relative_errors[A: Arithmetic](level, target: &[A::Work], golden: &[A::Work], totals: &mut Totals) {
        let epsilon = A::constant(f64::EPSILON);
        let limits = WITHIN.map(A::constant);
        let mut largest = [A::Work::ZERO; LANES];
        let mut nans = [0u32; LANES];
        let mut within = [[0u32; LANES]; 3];
        let mut step = |i: usize, t: A::Work, g: A::Work| {
            let shift = if g == A::Work::ZERO { epsilon } else { A::Work::ZERO };
            let (t, g) = (A::round(t + shift), A::round(g + shift));
            let relative = A::round(A::round(t - g) / g).magnitude();
            largest[i] = if relative > largest[i] { relative } else { largest[i] };
            nans[i] += u32::from(relative.partial_cmp(&relative).is_none());
            for (count, &limit) in within.iter_mut().zip(&limits) {
                count[i] += u32::from(relative < limit);
            }
        };
        let (target_rows, target_tail) = target.as_chunks::<LANES>();
        let (golden_rows, golden_tail) = golden.as_chunks::<LANES>();
        for (target, golden) in target_rows.iter().zip(golden_rows) {
            for i in 0..LANES {
                step(i, target[i], golden[i]);
            }
        }
        for (i, (&t, &g)) in target_tail.iter().zip(golden_tail).enumerate() {
            step(i, t, g);
        }
        let has_nan = nans.iter().any(|&count| count > 0);
        let largest = largest.into_iter().map(Real::to_f64).fold(0.0, f64::max);
        totals.max_relative = if has_nan { f64::NAN } else { largest };
        totals.within = within.map(|lanes| lanes.iter().map(|&count| u64::from(count)).sum());
    }
}

multiversion! {
    /// Equality, and errors relative to the larger magnitude.
    fn scaled_errors[A: Arithmetic](level, target: &[A::Work], golden: &[A::Work], totals: &mut Totals) {
        let limits = SCALED_WITHIN.map(A::constant);
        let finite_max = A::Work::from_f64(A::LARGEST);
        let mut equal = [0u32; LANES];
        let mut max_abs = [A::Work::ZERO; LANES];
        let mut nans = [0u32; LANES];
        let mut max_relative = [A::Work::ZERO; LANES];
        let mut within = [[0u32; LANES]; 2];
        let mut step = |i: usize, t: A::Work, g: A::Work| {
            equal[i] += u32::from(t == g);
            let distance = A::round(t - g).magnitude();
            let (t, g) = (t.magnitude(), g.magnitude());
            let larger = if t > g { t } else { g };
            max_abs[i] = if distance > max_abs[i] { distance } else { max_abs[i] };
            nans[i] += u32::from(distance.partial_cmp(&distance).is_none());
            // NaN fails the comparison below and so counts as zero.
            let relative = A::round(distance / larger);
            let relative = if relative > finite_max { finite_max } else { relative };
            max_relative[i] = if relative > max_relative[i] { relative } else { max_relative[i] };
            for (count, &limit) in within.iter_mut().zip(&limits) {
                count[i] += u32::from(distance <= A::round(limit * larger));
            }
        };
        let (target_rows, target_tail) = target.as_chunks::<LANES>();
        let (golden_rows, golden_tail) = golden.as_chunks::<LANES>();
        for (target, golden) in target_rows.iter().zip(golden_rows) {
            for i in 0..LANES {
                step(i, target[i], golden[i]);
            }
        }
        for (i, (&t, &g)) in target_tail.iter().zip(golden_tail).enumerate() {
            step(i, t, g);
        }
        let has_nan = nans.iter().any(|&count| count > 0);
        let largest = max_abs.into_iter().map(Real::to_f64).fold(0.0, f64::max);
        totals.equal = equal.iter().map(|&count| u64::from(count)).sum();
        totals.scaled_max_abs = if has_nan { f64::NAN } else { largest };
        totals.scaled_max_relative = max_relative.into_iter().map(Real::to_f64).fold(0.0, f64::max);
        totals.scaled_within = within.map(|lanes| lanes.iter().map(|&count| u64::from(count)).sum());
    }
}
