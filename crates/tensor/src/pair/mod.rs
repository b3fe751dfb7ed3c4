//! Error metrics of two tensors in one pass over both.
//!
//! Two families are kept apart because users compare them with recorded figures. The first, of dump
//! comparison, measures against the golden side with the non-finite positions set to zero: cosine, Euclidean
//! distance, largest absolute error, relative error. The second, of key-data comparison, measures against the
//! larger of the two magnitudes and follows numpy's arithmetic type to the letter, wrapping integers included
//! ([`ScaledErrors`]). Rounding and wording of results are the callers'.

mod arithmetic;
mod complex;
mod integer;
mod promote;
mod real;

use crate::decode::{Decoded, as_f32, as_f64};
use crate::parallel::{blocks, map_chunks};
use crate::simd::Level;
use crate::view::Element;
use crate::{DType, DTypeClass, TensorView};

/// Why two tensors have no metrics.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PairError {
    /// Shapes with different numbers of elements.
    #[error("{target} elements on one side, {golden} on the other")]
    CountMismatch {
        /// Elements of the target.
        target: usize,
        /// Elements of the golden.
        golden: usize,
    },
}

/// Counts of the values that are not finite on one side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NonFinite {
    /// NaN.
    pub nan: u64,
    /// +Inf; in a pair with a complex side, any infinity.
    pub pos_inf: u64,
    /// -Inf.
    pub neg_inf: u64,
}

impl NonFinite {
    fn merge(self, other: NonFinite) -> NonFinite {
        NonFinite {
            nan: self.nan + other.nan,
            pos_inf: self.pos_inf + other.pos_inf,
            neg_inf: self.neg_inf + other.neg_inf,
        }
    }

    fn count(&mut self, value: f64) {
        self.nan += u64::from(value.is_nan());
        self.pos_inf += u64::from(value == f64::INFINITY);
        self.neg_inf += u64::from(value == f64::NEG_INFINITY);
    }
}

/// Errors relative to the larger magnitude of each pair of elements, in the arithmetic numpy would use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScaledErrors {
    /// Largest `|a - b|`; NaN if any difference is NaN; wraps for integers.
    pub max_abs_error: f64,
    /// Largest `|a - b| / max(|a|, |b|)`, where NaN counts as zero and infinity as the largest finite value.
    pub max_relative_error: f64,
    /// Elements with `|a - b| <= 0.001 * max(|a|, |b|)`; for two scalars the limit is a float64.
    pub within_thousandth: u64,
    /// Elements with `|a - b| <= 0.01 * max(|a|, |b|)`.
    pub within_hundredth: u64,
}

/// Everything measured about a pair. Positions where either side is not finite enter the sums and relative
/// errors as zero on both sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairMetrics {
    /// Elements on each side.
    pub count: u64,
    /// Elements that compare equal (NaN never does, -0 equals 0).
    pub equal_count: u64,
    /// Row-major index of the first element that does not.
    pub first_mismatch: Option<u64>,
    /// The same with NaN against NaN taken for equal, and integers compared as integers whatever their types.
    pub first_difference: Option<u64>,
    /// Non-finite values of the target.
    pub target_non_finite: NonFinite,
    /// Non-finite values of the golden.
    pub golden_non_finite: NonFinite,
    /// Whether NaNs stand at the same positions.
    pub nan_positions_agree: bool,
    /// Whether infinities, of any sign, stand at the same positions.
    pub inf_positions_agree: bool,
    /// Whether what is not finite on either side is the same on the other: infinities by sign, complex numbers with
    /// such a part as a whole, NaN like NaN.
    pub non_finite_agree: bool,
    /// Whether both sides are the same bit for bit, every NaN taken for one: unlike `first_difference`, this tells
    /// -0 from 0.
    pub bits_agree: bool,
    /// Inner product of both sides.
    pub dot: f64,
    /// L2 norm of the target.
    pub target_norm: f64,
    /// L2 norm of the golden.
    pub golden_norm: f64,
    /// L2 norm of the difference.
    pub euclidean_distance: f64,
    /// Largest `|target - golden|`, in f64.
    pub max_abs_error: f64,
    /// Largest `|(target - golden) / golden|` in numpy's arithmetic; a golden zero is shifted by f64's epsilon.
    pub max_relative_error: f64,
    /// Elements with a relative error below 1/1000.
    pub within_thousandth: u64,
    /// Elements with a relative error below 5/1000.
    pub within_five_thousandths: u64,
    /// Elements with a relative error below 1/100.
    pub within_hundredth: u64,
    /// The second family; `None` for pairs of bools, which numpy cannot subtract.
    pub scaled: Option<ScaledErrors>,
}

impl PairMetrics {
    /// Cosine of the angle between both sides as flat vectors: 1 if both are zero, NaN if only one is.
    pub fn cosine(&self) -> f64 {
        match (self.target_norm <= f64::EPSILON, self.golden_norm <= f64::EPSILON) {
            (true, true) => 1.0,
            (false, false) => self.dot / (self.target_norm * self.golden_norm),
            _ => f64::NAN,
        }
    }

    /// A count of elements as a share of all, 0 to 1.
    pub fn share(&self, elements: u64) -> f64 {
        elements as f64 / self.count as f64
    }

    /// Whether every element compares equal.
    pub fn is_identical(&self) -> bool {
        self.equal_count == self.count
    }
}

/// Measures `target` against `golden`. Both are read in row-major order, so shapes may differ as long as the
/// number of elements does not. `Ok(None)` if there are no elements.
pub fn compare_pair(
    target: &TensorView<'_>,
    golden: &TensorView<'_>,
) -> Result<Option<PairMetrics>, PairError> {
    compare_pair_at(Level::detected(), target, golden)
}

/// Measures like [`compare_pair`], with relative errors taken in float32 at least, and golden zeros shifted by the
/// epsilon of the type they are taken in.
pub fn compare_pair_widened(
    target: &TensorView<'_>,
    golden: &TensorView<'_>,
) -> Result<Option<PairMetrics>, PairError> {
    let narrow = matches!(promote::result_type(target.dtype(), golden.dtype()), DType::F16 | DType::F32);
    if !narrow || golden.dtype().class() != DTypeClass::Float {
        // Everything else is in float64 already.
        return compare_pair(target, golden);
    }
    let numel = target.numel();
    if numel != golden.numel() {
        return Err(PairError::CountMismatch { target: numel, golden: golden.numel() });
    }
    let (target, golden) = (as_f32(target), as_f32(golden));
    let totals = real::compare::<arithmetic::InF32OwnShift>(Level::detected(), target, golden, numel);
    Ok(totals.map(|totals| totals.finish(numel as u64, true)))
}

/// Measures the real parts of two tensors of which at least one is complex, both widened to f64. An element with
/// a non-finite part, real or imaginary, counts as non-finite (NaN before infinity). `Ok(None)` if there are no
/// elements. The second family is not measured.
pub fn compare_real_parts(
    target: &TensorView<'_>,
    golden: &TensorView<'_>,
) -> Result<Option<PairMetrics>, PairError> {
    if target.numel() != golden.numel() {
        return Err(PairError::CountMismatch { target: target.numel(), golden: golden.numel() });
    }
    let totals = complex::compare_real_parts(Level::detected(), target, golden);
    Ok(totals.map(|totals| totals.finish(target.numel() as u64, false)))
}

fn compare_pair_at(
    level: Level,
    target: &TensorView<'_>,
    golden: &TensorView<'_>,
) -> Result<Option<PairMetrics>, PairError> {
    if target.numel() != golden.numel() {
        return Err(PairError::CountMismatch { target: target.numel(), golden: golden.numel() });
    }
    let totals = match promote::result_type(target.dtype(), golden.dtype()) {
        DType::Bool | DType::U8 => integer::compare::<u8>(level, target, golden),
        DType::U16 => integer::compare::<u16>(level, target, golden),
        DType::U32 => integer::compare::<u32>(level, target, golden),
        DType::U64 => integer::compare::<u64>(level, target, golden),
        DType::I8 => integer::compare::<i8>(level, target, golden),
        DType::I16 => integer::compare::<i16>(level, target, golden),
        DType::I32 => integer::compare::<i32>(level, target, golden),
        DType::I64 => integer::compare::<i64>(level, target, golden),
        DType::C64 | DType::C128 => complex::compare(target, golden),
        arithmetic => compare_real(level, arithmetic, target, golden),
    };
    let bools = target.dtype() == DType::Bool && golden.dtype() == DType::Bool;
    Ok(totals.map(|totals| totals.finish(target.numel() as u64, !bools)))
}

fn compare_real(
    level: Level,
    arithmetic: DType,
    target: &TensorView<'_>,
    golden: &TensorView<'_>,
) -> Option<Totals> {
    let numel = target.numel();
    let in_f64 = || real::compare::<arithmetic::InF64>(level, as_f64(target), as_f64(golden), numel);
    let mut narrow = match arithmetic {
        DType::F16 => real::compare::<arithmetic::InF16>(level, as_f32(target), as_f32(golden), numel)?,
        DType::F32 => real::compare::<arithmetic::InF32>(level, as_f32(target), as_f32(golden), numel)?,
        _ if are_integers(target, golden) => return integer::decide_exactly(in_f64()?, target, golden),
        _ => return in_f64(),
    };
    if are_scalars(target, golden) {
        narrow.scaled_within = scaled_within_of_scalars(narrow.scaled_max_abs, target, golden)?;
    }
    if golden.dtype().class() == DTypeClass::Float {
        return Some(narrow);
    }
    // Against an integer golden the first family is defined in f64; the second keeps to numpy's type.
    Some(Totals {
        scaled_max_abs: narrow.scaled_max_abs,
        scaled_max_relative: narrow.scaled_max_relative,
        scaled_within: narrow.scaled_within,
        ..in_f64()?
    })
}

/// Whether both are integers: those no integer type holds are computed with as float64, like numpy does.
fn are_integers(target: &TensorView<'_>, golden: &TensorView<'_>) -> bool {
    [target, golden]
        .iter()
        .all(|view| matches!(view.dtype().class(), DTypeClass::Unsigned | DTypeClass::Signed))
}

/// Whether both have no dimension. numpy 1 makes numbers of such arrays, and a float32 number times a Python float is
/// a float64, where an array would stay float32.
fn are_scalars(target: &TensorView<'_>, golden: &TensorView<'_>) -> bool {
    target.shape().is_empty() && golden.shape().is_empty()
}

/// `scaled_within` of a pair of scalars, whose limits are float64.
fn scaled_within_of_scalars(
    distance: f64,
    target: &TensorView<'_>,
    golden: &TensorView<'_>,
) -> Option<[u64; 2]> {
    let magnitude = |view: &TensorView<'_>| -> Option<f64> {
        as_f64(view)?.read(0, 1, &mut Vec::new()).first().map(|value| value.abs())
    };
    let larger = max_or_nan(magnitude(target)?, magnitude(golden)?);
    Some(real::SCALED_WITHIN.map(|limit| u64::from(distance <= limit * larger)))
}

/// Measures two tensors block by block; `of_block` gets the position of the block and both sides of it.
fn over_blocks<W: Element>(
    numel: usize,
    target: &Decoded<'_, W>,
    golden: &Decoded<'_, W>,
    of_block: impl Fn(usize, &[W], &[W]) -> Totals + Send + Sync,
) -> Option<Totals> {
    map_chunks(
        numel,
        |range| {
            let (mut target_scratch, mut golden_scratch) = (Vec::new(), Vec::new());
            blocks(range).fold(Totals::EMPTY, |totals, (start, len)| {
                let target = target.read(start, len, &mut target_scratch);
                let golden = golden.read(start, len, &mut golden_scratch);
                totals.merge(of_block(start, target, golden))
            })
        },
        Totals::merge,
    )
}

/// Running totals of a pair, mergeable in order.
#[derive(Debug, Clone, Copy)]
struct Totals {
    equal: u64,
    first_mismatch: Option<u64>,
    first_difference: Option<u64>,
    target_non_finite: NonFinite,
    golden_non_finite: NonFinite,
    nan_positions_agree: bool,
    inf_positions_agree: bool,
    non_finite_agree: bool,
    bits_agree: bool,
    dot: f64,
    target_squares: f64,
    golden_squares: f64,
    distance_squares: f64,
    max_abs: f64,
    max_relative: f64,
    within: [u64; 3],
    scaled_max_abs: f64,
    scaled_max_relative: f64,
    scaled_within: [u64; 2],
}

impl Totals {
    const EMPTY: Totals = Totals {
        equal: 0,
        first_mismatch: None,
        first_difference: None,
        target_non_finite: NonFinite { nan: 0, pos_inf: 0, neg_inf: 0 },
        golden_non_finite: NonFinite { nan: 0, pos_inf: 0, neg_inf: 0 },
        nan_positions_agree: true,
        inf_positions_agree: true,
        non_finite_agree: true,
        bits_agree: true,
        dot: 0.0,
        target_squares: 0.0,
        golden_squares: 0.0,
        distance_squares: 0.0,
        max_abs: 0.0,
        max_relative: 0.0,
        within: [0; 3],
        // Wrapped integers can all be negative.
        scaled_max_abs: f64::NEG_INFINITY,
        scaled_max_relative: f64::NEG_INFINITY,
        scaled_within: [0; 2],
    };

    fn merge(self, other: Totals) -> Totals {
        let sum = |a: [u64; 2], b: [u64; 2]| [a[0] + b[0], a[1] + b[1]];
        Totals {
            equal: self.equal + other.equal,
            first_mismatch: self.first_mismatch.or(other.first_mismatch),
            first_difference: self.first_difference.or(other.first_difference),
            target_non_finite: self.target_non_finite.merge(other.target_non_finite),
            golden_non_finite: self.golden_non_finite.merge(other.golden_non_finite),
            nan_positions_agree: self.nan_positions_agree && other.nan_positions_agree,
            inf_positions_agree: self.inf_positions_agree && other.inf_positions_agree,
            non_finite_agree: self.non_finite_agree && other.non_finite_agree,
            bits_agree: self.bits_agree && other.bits_agree,
            dot: self.dot + other.dot,
            target_squares: self.target_squares + other.target_squares,
            golden_squares: self.golden_squares + other.golden_squares,
            distance_squares: self.distance_squares + other.distance_squares,
            max_abs: max_or_nan(self.max_abs, other.max_abs),
            max_relative: max_or_nan(self.max_relative, other.max_relative),
            within: [
                self.within[0] + other.within[0],
                self.within[1] + other.within[1],
                self.within[2] + other.within[2],
            ],
            scaled_max_abs: max_or_nan(self.scaled_max_abs, other.scaled_max_abs),
            scaled_max_relative: max_or_nan(self.scaled_max_relative, other.scaled_max_relative),
            scaled_within: sum(self.scaled_within, other.scaled_within),
        }
    }

    fn finish(self, count: u64, has_scaled: bool) -> PairMetrics {
        PairMetrics {
            count,
            equal_count: self.equal,
            first_mismatch: self.first_mismatch,
            first_difference: self.first_difference,
            target_non_finite: self.target_non_finite,
            golden_non_finite: self.golden_non_finite,
            nan_positions_agree: self.nan_positions_agree,
            inf_positions_agree: self.inf_positions_agree,
            non_finite_agree: self.non_finite_agree,
            bits_agree: self.bits_agree,
            dot: self.dot,
            target_norm: self.target_squares.sqrt(),
            golden_norm: self.golden_squares.sqrt(),
            euclidean_distance: self.distance_squares.sqrt(),
            max_abs_error: self.max_abs,
            max_relative_error: self.max_relative,
            within_thousandth: self.within[0],
            within_five_thousandths: self.within[1],
            within_hundredth: self.within[2],
            scaled: has_scaled.then_some(ScaledErrors {
                max_abs_error: self.scaled_max_abs,
                max_relative_error: self.scaled_max_relative,
                within_thousandth: self.scaled_within[0],
                within_hundredth: self.scaled_within[1],
            }),
        }
    }
}

/// A scaled relative error as numpy's `nan_to_num` leaves it.
fn nan_to_num(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value.clamp(f64::MIN, f64::MAX) }
}

/// The larger value; NaN wins, as in numpy.
fn max_or_nan(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

#[cfg(test)]
mod tests;
