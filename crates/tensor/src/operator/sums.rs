//! What a pass adds up, and what is made of it.

use super::block::larger;
use crate::DType;

/// Powers of two that are told apart: the first bin holds zeros and what is smaller than `2^-64`, the last what is larger than
/// `2^64` or no number.
pub(super) const MAGNITUDES: usize = 130;
const LOWEST: i32 = -64;

/// So many of how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Share {
    /// Those meant.
    pub part: u64,
    /// All they are taken of.
    pub of: u64,
}

impl Share {
    /// As a number; none of nothing.
    pub fn ratio(self) -> Option<f64> {
        (self.of > 0).then(|| self.part as f64 / self.of as f64)
    }
}

/// Errors in units in the last place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UlpErrors {
    /// The largest.
    pub max: f64,
    /// Their mean.
    pub mean: f64,
    /// Those above the limit of an element.
    pub above_limit: Share,
}

/// Elements whose golden values are about as large.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Magnitude {
    /// Golden values are at least two to the power of this; none of zeros.
    pub exponent: Option<i32>,
    /// How many there are.
    pub count: u64,
    /// The largest absolute error of them.
    pub max_error: f64,
}

/// What was measured of an output.
#[derive(Debug, Clone, PartialEq)]
pub struct OperatorErrors {
    /// Elements that differ; NaN does from everything. Of all.
    pub unequal: Share,
    /// Elements that are NaN or the same infinity on both sides, and were left out of everything else for it.
    pub agreeing: u64,
    /// Both sides are finite, but for those.
    pub are_finite: bool,
    /// Cosine similarity, at most 1; NaN where a side holds one, or an infinity, or is zero.
    pub cosine: f64,
    /// The largest magnitude of the target.
    pub largest_target: f64,
    /// The largest magnitude of the golden side.
    pub largest_golden: f64,
    /// The largest absolute error.
    pub max_error: f64,
    /// Relative errors below a hundredth, a thousandth and a ten-thousandth, of all.
    pub within: [Share; 3],
    /// Errors above the relative limit where a side is not finite.
    pub non_finite_far: Share,
    /// Errors above the relative limit of values that are not small.
    pub normal_far: Share,
    /// Errors above the absolute limit of small values.
    pub small_far: Share,
    /// Root mean square of errors of values that are not small, spread over all.
    pub rmse: f64,
    /// The same, over the values that are not small alone.
    pub plain_rmse: f64,
    /// How one-sided errors are: 0 to 1.
    pub balance: f64,
    /// The largest and the mean relative error of values that are not small.
    pub relative: Option<(f64, f64)>,
    /// Units in the last place, if they were asked for.
    pub ulp: Option<UlpErrors>,
    /// Errors by magnitude, smallest first; only magnitudes that are there.
    pub magnitudes: Vec<Magnitude>,
}

pub(super) struct Sums {
    pub(super) unequal: u64,
    pub(super) agreeing: u64,
    pub(super) dot: f64,
    pub(super) target_squares: f64,
    pub(super) golden_squares: f64,
    pub(super) largest_target: f64,
    pub(super) largest_golden: f64,
    pub(super) max_error: f64,
    pub(super) within: [u64; 3],
    pub(super) above: u64,
    pub(super) below: u64,
    pub(super) non_finite: u64,
    pub(super) non_finite_far: u64,
    pub(super) small: u64,
    pub(super) small_far: u64,
    pub(super) normal: u64,
    pub(super) normal_far: u64,
    pub(super) max_relative: f64,
    pub(super) relative: f64,
    pub(super) max_units: f64,
    pub(super) units: f64,
    pub(super) many_units: u64,
    squares: f64,
    /// The squares themselves where they are few.
    kept: Option<Vec<f32>>,
    magnitudes: Box<[(u64, f64); MAGNITUDES]>,
}

impl Sums {
    pub(super) fn new(keeps_squares: bool) -> Sums {
        Sums {
            unequal: 0,
            agreeing: 0,
            dot: 0.0,
            target_squares: 0.0,
            golden_squares: 0.0,
            largest_target: 0.0,
            largest_golden: 0.0,
            max_error: 0.0,
            within: [0; 3],
            above: 0,
            below: 0,
            non_finite: 0,
            non_finite_far: 0,
            small: 0,
            small_far: 0,
            normal: 0,
            normal_far: 0,
            max_relative: 0.0,
            relative: 0.0,
            max_units: 0.0,
            units: 0.0,
            many_units: 0,
            squares: 0.0,
            kept: keeps_squares.then(Vec::new),
            magnitudes: Box::new([(0, 0.0); MAGNITUDES]),
        }
    }

    #[inline(always)]
    pub(super) fn keep_square(&mut self, square: f64) {
        self.squares += square;
        if let Some(kept) = &mut self.kept {
            kept.push(square as f32);
        }
    }

    /// Counts an error for the magnitude of its golden value.
    #[inline(always)]
    pub(super) fn at_magnitude(&mut self, golden: f64, error: f64) {
        let exponent = ((golden.abs().to_bits() >> 52) as i32) - 1023;
        let index = (exponent - LOWEST + 1).clamp(0, MAGNITUDES as i32 - 1) as usize;
        let bin = &mut self.magnitudes[index];
        bin.0 += 1;
        bin.1 = larger(bin.1, error);
    }

    pub(super) fn merge(mut self, other: &Sums) -> Sums {
        self.unequal += other.unequal;
        self.agreeing += other.agreeing;
        self.dot += other.dot;
        self.target_squares += other.target_squares;
        self.golden_squares += other.golden_squares;
        self.largest_target = larger(self.largest_target, other.largest_target);
        self.largest_golden = larger(self.largest_golden, other.largest_golden);
        self.max_error = larger(self.max_error, other.max_error);
        for (count, more) in self.within.iter_mut().zip(other.within) {
            *count += more;
        }
        self.above += other.above;
        self.below += other.below;
        self.non_finite += other.non_finite;
        self.non_finite_far += other.non_finite_far;
        self.small += other.small;
        self.small_far += other.small_far;
        self.normal += other.normal;
        self.normal_far += other.normal_far;
        self.max_relative = larger(self.max_relative, other.max_relative);
        self.relative += other.relative;
        self.max_units = larger(self.max_units, other.max_units);
        self.units += other.units;
        self.many_units += other.many_units;
        self.squares += other.squares;
        for (bin, more) in self.magnitudes.iter_mut().zip(other.magnitudes.iter()) {
            bin.0 += more.0;
            bin.1 = larger(bin.1, more.1);
        }
        self
    }

    /// `is_narrow`: errors are those of float32, and so are their means.
    pub(super) fn finish(self, numel: usize, is_narrow: bool, target: DType) -> OperatorErrors {
        let count = numel as u64;
        let of_all = |part: u64| Share { part, of: count };
        let in_type = |mean: f64| if is_narrow { f64::from(mean as f32) } else { mean };
        let total = numel as f64;
        let norms = self.target_squares.sqrt() * self.golden_squares.sqrt();
        let mean_square = match &self.kept {
            Some(squares) => f64::from(pairwise_sum(squares) / total as f32),
            None => in_type(self.squares / total),
        };
        // The reference's, which spreads the error of those that count over all.
        let spread = total / (self.normal as f64 + 0.0001) + 0.0001;
        let narrow_units = target != DType::F32 && target != DType::F64;
        OperatorErrors {
            unequal: of_all(self.unequal),
            agreeing: self.agreeing,
            are_finite: self.largest_target.is_finite() && self.largest_golden.is_finite(),
            cosine: if norms > 0.0 { (self.dot / norms).clamp(-1.0, 1.0) } else { f64::NAN },
            largest_target: self.largest_target,
            largest_golden: self.largest_golden,
            max_error: self.max_error,
            within: self.within.map(of_all),
            non_finite_far: Share { part: self.non_finite_far, of: self.non_finite },
            normal_far: Share { part: self.normal_far, of: self.normal },
            small_far: Share { part: self.small_far, of: self.small },
            rmse: (mean_square * spread).sqrt(),
            plain_rmse: (self.squares / self.normal as f64).sqrt(),
            balance: self.above.abs_diff(self.below) as f64 / total,
            relative: (self.normal > 0)
                .then(|| (self.max_relative, in_type(self.relative / self.normal as f64))),
            ulp: Some(UlpErrors {
                max: self.max_units,
                mean: if narrow_units { f64::from((self.units / total) as f32) } else { self.units / total },
                above_limit: of_all(self.many_units),
            }),
            magnitudes: magnitudes(&self.magnitudes),
        }
    }
}

fn magnitudes(bins: &[(u64, f64); MAGNITUDES]) -> Vec<Magnitude> {
    let there = bins.iter().enumerate().filter(|(_, (count, _))| *count > 0);
    there
        .map(|(index, &(count, max_error))| Magnitude {
            exponent: (index > 0).then(|| index as i32 - 1 + LOWEST),
            count,
            max_error,
        })
        .collect()
}

/// The sum of few float32 numbers in the order in which numpy adds them.
fn pairwise_sum(values: &[f32]) -> f32 {
    if values.len() > 128 {
        let half = values.len() / 2;
        let (front, back) = values.split_at(half - half % 8);
        return pairwise_sum(front) + pairwise_sum(back);
    }
    let mut eights = values.chunks_exact(8);
    let Some(first) = eights.next() else {
        return values.iter().fold(0.0, |sum, value| sum + value);
    };
    let mut lanes = [0.0; 8];
    lanes.copy_from_slice(first);
    for eight in &mut eights {
        for (lane, value) in lanes.iter_mut().zip(eight) {
            *lane += value;
        }
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    let sum = ((a + b) + (c + d)) + ((e + f) + (g + h));
    eights.remainder().iter().fold(sum, |sum, value| sum + value)
}
