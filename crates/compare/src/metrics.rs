//! The metrics of two tensors: six numbers, or why there is none, and what is to be noted about them.
//!
//! Numbers are rounded here, once: everything that shows, judges or colours them sees the same ones.

use msprobe_tensor::{
    DType, DTypeClass, NonFinite, PairError, PairMetrics, TensorView, compare_pair, compare_pair_widened,
    compare_real_parts,
};

/// One metric of a pair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Metric {
    /// A number, possibly infinite, never NaN.
    Number(f64),
    /// There is none.
    Missing(Missing),
}

impl Metric {
    /// The number, if there is one.
    pub fn number(self) -> Option<f64> {
        match self {
            Metric::Number(value) => Some(value),
            Metric::Missing(_) => None,
        }
    }
}

/// Why there is no metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// It is not defined for such values, or there are no two values.
    Unsupported,
    /// The values make it NaN.
    NotANumber,
    /// NaN or infinities stand at other places.
    PositionsDiffer,
    /// The shapes differ.
    ShapesDiffer,
}

impl Missing {
    /// The word in tables and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Missing::Unsupported => "unsupported",
            Missing::NotANumber => "Nan",
            Missing::PositionsDiffer => "N/A",
            Missing::ShapesDiffer => "shape unmatched",
        }
    }
}

/// All metrics of a pair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metrics {
    /// Cosine of the angle between the two.
    pub cosine: Metric,
    /// Euclidean distance.
    pub euclidean: Metric,
    /// Largest absolute error of an element.
    pub max_abs: Metric,
    /// Largest relative error of an element.
    pub max_relative: Metric,
    /// Share of elements with a relative error below 1/1000.
    pub within_thousandth: Metric,
    /// Share of elements with a relative error below 5/1000.
    pub within_five_thousandths: Metric,
}

impl Metrics {
    /// None of them, for one reason.
    pub const fn missing(why: Missing) -> Metrics {
        let none = Metric::Missing(why);
        Metrics {
            cosine: none,
            euclidean: none,
            max_abs: none,
            max_relative: none,
            within_thousandth: none,
            within_five_thousandths: none,
        }
    }
}

/// What is to be noted about a pair, in the order in which it is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The target has no file (a scalar, null), or nothing was paired with it.
    NoGolden,
    /// The golden has no file.
    NoGoldenFile,
    /// A file of the two is missing or cannot be read.
    NotRead([String; 2]),
    /// The target has no elements.
    Empty,
    /// The shapes differ.
    ShapesDiffer,
    /// The values are no numbers.
    Unreadable,
    /// NaN or infinities stand at other places.
    PositionsDiffer,
    /// The dtypes differ.
    DtypesDiffer,
    /// One element has no direction, so no cosine.
    OneElement,
    /// A tensor without dimensions has two metrics only.
    ZeroDimensions,
    /// No cosine, because the target is zero.
    ZeroTarget,
    /// No cosine, because the golden is zero.
    ZeroGolden,
    /// No cosine, because of NaN.
    NanCosine,
    /// No absolute error, because of NaN or infinities.
    NanAbsolute,
    /// No relative error, because of NaN or infinities.
    NanRelative,
}

/// What two tensors, or the lack of one, gave.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorComparison {
    /// The metrics.
    pub metrics: Metrics,
    /// What is to be noted.
    pub notes: Vec<Note>,
    /// Everything measured, for verdicts; complex numbers whole. `None` if the two could not be put side by side.
    pub pair: Option<PairMetrics>,
    /// Why the two could not be put side by side, where there should have been two.
    pub gap: Option<String>,
}

impl TensorComparison {
    /// Nothing was measured, as the note says.
    pub fn refused(note: Note) -> TensorComparison {
        let why = if note == Note::ShapesDiffer { Missing::ShapesDiffer } else { Missing::Unsupported };
        TensorComparison { metrics: Metrics::missing(why), notes: vec![note], pair: None, gap: None }
    }

    /// The same, with the reason why the two could not be put side by side.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> TensorComparison {
        self.gap = Some(reason.into());
        self
    }
}

/// A number rounded to so many decimals, as writing it with them and reading it back gives it.
pub fn round_decimals(value: f64, decimals: u32) -> f64 {
    // From 2^52 on there are no fractions.
    if !value.is_finite() || value.abs() >= 4_503_599_627_370_496.0 {
        return value;
    }
    round_exactly(value, decimals)
        .unwrap_or_else(|| format!("{value:.*}", decimals as usize).parse().unwrap_or(value))
}

/// The same in whole numbers, several times as fast. Nothing where that is not exact, and for what lies in the middle.
fn round_exactly(value: f64, decimals: u32) -> Option<f64> {
    const LARGEST: u64 = 1 << f64::MANTISSA_DIGITS;
    // Ten decimals leave room for all digits of a float.
    let scale = 10_u64.checked_pow(decimals).filter(|_| decimals <= 10)?;
    let bits = value.abs().to_bits();
    let (exponent, fraction) = (bits >> 52, bits & (LARGEST / 2 - 1));
    // What is smaller than this is zero, and subnormal numbers need no rule of their own.
    if value.abs() < 1e-15 {
        return Some(0.0_f64.copysign(value));
    }
    let digits = u128::from(fraction | (LARGEST / 2)) * u128::from(scale);
    let shift =
        1075_u32.checked_sub(u32::try_from(exponent).ok()?).filter(|shift| (1..128).contains(shift))?;
    let (whole, rest, half) = (digits >> shift, digits & ((1 << shift) - 1), 1_u128 << (shift - 1));
    let whole = u64::try_from(whole).ok()? + u64::from(rest > half);
    // Dividing two whole numbers that floats hold exactly gives the float next to the decimal number.
    (rest != half && whole < LARGEST).then(|| (whole as f64 / scale as f64).copysign(value))
}

/// Measures two tensors that could be read.
pub fn compare_tensors(target: &TensorView<'_>, golden: &TensorView<'_>) -> TensorComparison {
    compare_measured(target, golden, compare_pair)
}

/// Measures them with relative errors in float32 at least, with its own epsilon.
pub fn compare_tensors_widened(target: &TensorView<'_>, golden: &TensorView<'_>) -> TensorComparison {
    compare_measured(target, golden, compare_pair_widened)
}

type Measure = fn(&TensorView<'_>, &TensorView<'_>) -> Result<Option<PairMetrics>, PairError>;

fn compare_measured(target: &TensorView<'_>, golden: &TensorView<'_>, measure: Measure) -> TensorComparison {
    if target.numel() == 0 {
        let same = target.shape() == golden.shape();
        let empty = TensorComparison::refused(Note::Empty);
        return if same { empty } else { empty.because("only one of the two files is without elements") };
    }
    if target.shape() != golden.shape() {
        let (shape, other) = (target.shape(), golden.shape());
        return TensorComparison::refused(Note::ShapesDiffer)
            .because(format!("the files hold {shape:?} and {other:?}"));
    }
    let no_numbers = || {
        TensorComparison::refused(Note::Unreadable)
            .because("what the files hold cannot be compared as numbers")
    };
    let Ok(Some(pair)) = measure(target, golden) else {
        return no_numbers();
    };
    let Some(measured) = Measured::of(target, golden, &pair) else {
        return no_numbers();
    };
    if !target.shape().is_empty() {
        return measured.tensor(target, golden);
    }
    // The absolute error of a scalar is always taken in the arithmetic of its own dtype.
    match compare_pair(target, golden) {
        Ok(Some(whole)) => Measured { whole, ..measured }.scalar(target.dtype()),
        _ => no_numbers(),
    }
}

/// The numbers the metrics are made of. Apart from the relative error of a complex target against a real golden,
/// they know of real parts only.
struct Measured {
    whole: PairMetrics,
    real: PairMetrics,
}

impl Measured {
    fn of(target: &TensorView<'_>, golden: &TensorView<'_>, whole: &PairMetrics) -> Option<Measured> {
        let is_complex = |view: &TensorView<'_>| view.dtype().class() == DTypeClass::Complex;
        if !is_complex(target) && !is_complex(golden) {
            return Some(Measured { whole: *whole, real: *whole });
        }
        let mut real = compare_real_parts(target, golden).ok()??;
        if golden.dtype().class() == DTypeClass::Float {
            // Relative errors are taken in the golden's own arithmetic, in which a complex target stays complex.
            real.max_relative_error = whole.max_relative_error;
            real.within_thousandth = whole.within_thousandth;
            real.within_five_thousandths = whole.within_five_thousandths;
        }
        Some(Measured { whole: *whole, real })
    }

    /// A tensor without dimensions: two metrics, in the arithmetic of its dtype, whatever the values.
    fn scalar(&self, target: DType) -> TensorComparison {
        let max_abs_error = match &self.whole.scaled {
            Some(scaled) if target != DType::Bool => scaled.max_abs_error,
            _ => self.whole.max_abs_error,
        };
        let (t, g) = (&self.whole.target_non_finite, &self.whole.golden_non_finite);
        let max_relative_error = if t.nan > 0 || !is_finite(g) {
            f64::NAN
        } else if is_finite(t) {
            self.real.max_relative_error
        } else {
            f64::INFINITY
        };
        let mut notes = vec![Note::ZeroDimensions];
        let metrics = Metrics {
            max_abs: largest(max_abs_error, Note::NanAbsolute, &mut notes),
            max_relative: largest(max_relative_error, Note::NanRelative, &mut notes),
            ..Metrics::missing(Missing::Unsupported)
        };
        self.finish(metrics, notes)
    }

    fn tensor(&self, target: &TensorView<'_>, golden: &TensorView<'_>) -> TensorComparison {
        if !self.whole.nan_positions_agree || !self.whole.inf_positions_agree {
            let metrics = Metrics::missing(Missing::PositionsDiffer);
            return self.finish(metrics, vec![Note::PositionsDiffer]);
        }
        let mut notes = Vec::new();
        if as_numpy(target.dtype()) != as_numpy(golden.dtype()) {
            notes.push(Note::DtypesDiffer);
        }
        let real = &self.real;
        let share = |count| Metric::Number(round_decimals(real.share(count), 12));
        let metrics = Metrics {
            cosine: self.cosine(&mut notes),
            euclidean: Metric::Number(real.euclidean_distance),
            max_abs: largest(real.max_abs_error, Note::NanAbsolute, &mut notes),
            max_relative: largest(real.max_relative_error, Note::NanRelative, &mut notes),
            within_thousandth: share(real.within_thousandth),
            within_five_thousandths: share(real.within_five_thousandths),
        };
        self.finish(metrics, notes)
    }

    fn cosine(&self, notes: &mut Vec<Note>) -> Metric {
        if self.real.count == 1 {
            notes.push(Note::OneElement);
            return Metric::Missing(Missing::Unsupported);
        }
        let is_zero = |norm: f64| norm <= f64::EPSILON;
        let why = match (is_zero(self.real.target_norm), is_zero(self.real.golden_norm)) {
            (true, false) => Note::ZeroTarget,
            (false, true) => Note::ZeroGolden,
            _ => Note::NanCosine,
        };
        let cosine = round_decimals(self.real.cosine(), 12);
        if cosine.is_nan() {
            notes.push(why);
            return Metric::Missing(Missing::NotANumber);
        }
        Metric::Number(if cosine > 0.9999 { round_decimals(cosine, 6) } else { cosine })
    }

    fn finish(&self, metrics: Metrics, notes: Vec<Note>) -> TensorComparison {
        TensorComparison { metrics, notes, pair: Some(self.whole), gap: None }
    }
}

/// A maximum, or the note that there is none.
fn largest(value: f64, note: Note, notes: &mut Vec<Note>) -> Metric {
    if value.is_nan() {
        notes.push(note);
        return Metric::Missing(Missing::NotANumber);
    }
    Metric::Number(round_decimals(value, 12))
}

fn is_finite(counts: &NonFinite) -> bool {
    *counts == NonFinite::default()
}

/// The dtype once numpy has it: it knows no bfloat16.
fn as_numpy(dtype: DType) -> DType {
    if dtype == DType::BF16 { DType::F32 } else { dtype }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalars(dtype: DType, target: &[u8], golden: &[u8]) -> TensorComparison {
        let target = TensorView::contiguous(dtype, vec![], target).unwrap();
        let golden = TensorView::contiguous(dtype, vec![], golden).unwrap();
        compare_tensors(&target, &golden)
    }

    #[test]
    fn rounding_is_that_of_the_digits() {
        let slow = |value: f64, decimals: usize| -> f64 { format!("{value:.decimals$}").parse().unwrap() };
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut values =
            vec![0.0, -0.0, 0.5, 1.5, 2.5e-6, 0.000_000_5, 5e-324, 1e-7, 123.456_789_5, 4.5e15, 1e9];
        values.extend((0..20_000).map(|_| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // From far below the last decimal to where there are no fractions.
            let exponent = 960 + (random >> 57) % 115;
            f64::from_bits((random >> 12) | (exponent << 52))
        }));
        for value in values {
            for decimals in [0, 2, 6, 10, 14] {
                for value in [value, -value] {
                    let rounded = round_decimals(value, decimals);
                    let expected = slow(value, decimals as usize);
                    assert_eq!(rounded.to_bits(), expected.to_bits(), "{value} to {decimals}");
                }
            }
        }
    }

    fn errors(comparison: &TensorComparison) -> [Metric; 2] {
        [comparison.metrics.max_abs, comparison.metrics.max_relative]
    }

    #[test]
    fn scalars_use_the_arithmetic_of_their_dtype() {
        let wrapped = scalars(DType::U8, &[3], &[4]);
        assert_eq!(errors(&wrapped), [Metric::Number(255.0), Metric::Number(0.25)]);
        let infinite = scalars(DType::F32, &f32::INFINITY.to_le_bytes(), &1f32.to_le_bytes());
        assert_eq!(errors(&infinite), [Metric::Number(f64::INFINITY); 2]);
        let both = scalars(DType::F32, &f32::INFINITY.to_le_bytes(), &f32::INFINITY.to_le_bytes());
        assert_eq!(errors(&both), [Metric::Missing(Missing::NotANumber); 2]);
        assert_eq!(both.notes, [Note::ZeroDimensions, Note::NanAbsolute, Note::NanRelative]);
    }

    #[test]
    fn a_scalar_against_a_vector_is_a_difference_of_shapes() {
        let one = TensorView::contiguous(DType::U8, vec![], &[1]).unwrap();
        let two = TensorView::contiguous(DType::U8, vec![2], &[1, 2]).unwrap();
        let differ = TensorComparison::refused(Note::ShapesDiffer).because("the files hold [] and [2]");
        assert_eq!(compare_tensors(&one, &two), differ);
        assert_eq!(compare_tensors(&two, &one).metrics, Metrics::missing(Missing::ShapesDiffer));
    }

    #[test]
    fn rounding() {
        assert_eq!(round_decimals(2.0 / 3.0, 12), 0.666_666_666_667);
        assert_eq!(round_decimals(0.999_953_4, 6), 0.999_953);
        assert_eq!(round_decimals(-1e-13, 12), 0.0);
        for kept in [f64::INFINITY, 1e300, 4_503_599_627_370_496.0] {
            assert_eq!(round_decimals(kept, 12), kept);
        }
    }
}
