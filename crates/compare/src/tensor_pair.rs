//! The metrics of two tensors as the result tables show them: what cannot be compared and why, the six figures
//! with their rounding, and whether accuracy was reached.

use msprobe_tensor::{
    DType, DTypeClass, NonFinite, PairError, PairMetrics, TensorView, compare_pair, compare_pair_widened,
    compare_real_parts,
};

/// Names of the six columns, in the order of [`TensorComparison::metrics`].
pub const METRIC_HEADERS: [&str; 6] = [
    "Cosine",
    "EucDist",
    "MaxAbsErr",
    "MaxRelativeErr",
    "One Thousandth Err Ratio",
    "Five Thousandths Err Ratio",
];

/// Logged when accuracy cannot be judged because a figure is missing.
pub const NOT_JUDGED: &str = "Cosine or MaxAbsErr can not get float value.";

const UNSUPPORTED: MetricCell = MetricCell::Text("unsupported");
const NOT_A_NUMBER: MetricCell = MetricCell::Text("Nan");

const NO_BENCH: &str = "No bench data matched.";
const NO_BENCH_FILE: &str = "Bench does not have data file.";
const EMPTY: &str = "This is empty data, can not compare.";
const SHAPES_DIFFER: &str = "Shape of NPU and bench tensor do not match. Skipped.";
const UNREADABLE: &str = "Data is unreadable.";
const POSITIONS_DIFFER: &str = "The position of inf or nan in NPU and bench Tensor do not match.";
const DTYPES_DIFFER: &str = "Dtype of NPU and bench tensor do not match.";
const ONE_ELEMENT: &str = "This is a 1-d tensor of length 1.";
const ZERO_DIMENSIONS: &str = "This is type of 0-d tensor, can not calculate 'Cosine', 'EucDist', \
    'One Thousandth Err Ratio' and 'Five Thousandths Err Ratio'. ";
const ZERO_TARGET: &str = "Cannot compare by Cosine Similarity, All the data is Zero in npu dump data.";
const ZERO_GOLDEN: &str = "Cannot compare by Cosine Similarity, All the data is Zero in Bench dump data.";
const NAN_COSINE: &str = "Cannot compare by Cosine Similarity, the dump data has NaN.";
const NAN_ABSOLUTE: &str = "Cannot compare by MaxAbsError, the data contains nan/inf/-inf in dump data.";
const NAN_RELATIVE: &str = "Cannot compare by MaxRelativeError, the data contains nan/inf/-inf in dump data.";

/// One figure of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MetricCell {
    /// A number, possibly infinite, never NaN.
    Number(f64),
    /// Why there is none: `unsupported`, `N/A`, `Nan`, `shape unmatched`.
    Text(&'static str),
}

impl MetricCell {
    /// The cell as a number; `Nan` is one, other words are not.
    pub fn number(&self) -> Option<f64> {
        match *self {
            MetricCell::Number(value) => Some(value),
            MetricCell::Text("Nan") => Some(f64::NAN),
            MetricCell::Text(_) => None,
        }
    }
}

/// What a row says about two tensors.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorComparison {
    /// Cosine, EucDist, MaxAbsErr, MaxRelativeErr, One Thousandth and Five Thousandths Err Ratio.
    pub metrics: [MetricCell; 6],
    /// `Yes`, `No`, `None` or `Unmatched`.
    pub accuracy: &'static str,
    /// What is to be noted; empty if nothing is.
    pub message: String,
    /// Everything measured, for verdicts; complex numbers whole. `None` if the two could not be put side by side.
    pub pair: Option<PairMetrics>,
    /// Why the two could not be put side by side, where there should have been two.
    pub gap: Option<String>,
}

impl TensorComparison {
    fn refused(cell: MetricCell, message: impl Into<String>) -> TensorComparison {
        let metrics = [cell; 6];
        let accuracy = accuracy(&metrics[0], &metrics[2]);
        TensorComparison { metrics, accuracy, message: message.into(), pair: None, gap: None }
    }

    /// The target has no file (a scalar, null), or nothing was matched with it.
    pub fn no_bench() -> TensorComparison {
        Self::refused(UNSUPPORTED, NO_BENCH)
    }

    /// The golden has no file.
    pub fn no_bench_file() -> TensorComparison {
        Self::refused(UNSUPPORTED, NO_BENCH_FILE)
    }

    /// A file is missing or cannot be read. Both data names are given.
    pub fn not_read(target: &str, golden: &str) -> TensorComparison {
        let message = format!("Dump file: ['{target}', '{golden}'] not found or read failed.");
        Self::refused(UNSUPPORTED, message)
    }

    /// The same, with the reason why the two could not be put side by side.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> TensorComparison {
        self.gap = Some(reason.into());
        self
    }

    /// The target has no elements.
    pub fn empty() -> TensorComparison {
        Self::refused(UNSUPPORTED, EMPTY)
    }

    /// The shapes differ.
    pub fn shapes_differ() -> TensorComparison {
        Self::refused(MetricCell::Text("shape unmatched"), SHAPES_DIFFER)
    }

    /// The values are no numbers.
    pub fn unreadable() -> TensorComparison {
        Self::refused(UNSUPPORTED, UNREADABLE)
    }
}

/// Whether accuracy was reached, judged by the cells as they are shown.
pub fn accuracy(cosine: &MetricCell, max_abs_err: &MetricCell) -> &'static str {
    let either_is = |text| *cosine == MetricCell::Text(text) || *max_abs_err == MetricCell::Text(text);
    if *cosine == MetricCell::Text("shape unmatched") {
        return "Unmatched";
    }
    if either_is("N/A") && !either_is("None") {
        return "No";
    }
    let (Some(cosine), Some(error)) = (cosine.number(), max_abs_err.number()) else {
        return "None";
    };
    if (cosine < 0.99 && error > 0.001) || cosine < 0.9 || error > 1.0 { "No" } else { "Yes" }
}

/// A number rounded to so many decimals, as writing it with them and reading it back gives it.
pub fn round_decimals(value: f64, decimals: u32) -> f64 {
    // From 2^52 on there are no fractions.
    if !value.is_finite() || value.abs() >= 4_503_599_627_370_496.0 {
        return value;
    }
    format!("{value:.*}", decimals as usize).parse().unwrap_or(value)
}

/// Measures two tensors that could be read.
pub fn compare_tensors(target: &TensorView<'_>, golden: &TensorView<'_>) -> TensorComparison {
    compare_measured(target, golden, compare_pair)
}

/// Measures them as tables of the newest form do: relative errors in float32 at least, with its own epsilon.
pub fn compare_tensors_widened(target: &TensorView<'_>, golden: &TensorView<'_>) -> TensorComparison {
    compare_measured(target, golden, compare_pair_widened)
}

type Measure = fn(&TensorView<'_>, &TensorView<'_>) -> Result<Option<PairMetrics>, PairError>;

fn compare_measured(target: &TensorView<'_>, golden: &TensorView<'_>, measure: Measure) -> TensorComparison {
    if target.numel() == 0 {
        let same = target.shape() == golden.shape();
        let empty = TensorComparison::empty();
        return if same { empty } else { empty.because("only one of the two files is without elements") };
    }
    if target.shape() != golden.shape() {
        let (shape, other) = (target.shape(), golden.shape());
        return TensorComparison::shapes_differ().because(format!("the files hold {shape:?} and {other:?}"));
    }
    let no_numbers =
        || TensorComparison::unreadable().because("what the files hold cannot be compared as numbers");
    let Ok(Some(pair)) = measure(target, golden) else {
        return no_numbers();
    };
    let Some(columns) = Columns::of(target, golden, &pair) else {
        return no_numbers();
    };
    if !target.shape().is_empty() {
        return columns.tensor(target, golden);
    }
    // The absolute error of a scalar is always taken in the arithmetic of its own dtype.
    match compare_pair(target, golden) {
        Ok(Some(whole)) => Columns { whole, ..columns }.scalar(target.dtype()),
        _ => no_numbers(),
    }
}

/// The figures the columns are made of. Apart from the relative error of a complex target against a real golden,
/// they know of real parts only.
struct Columns {
    whole: PairMetrics,
    real: PairMetrics,
}

impl Columns {
    fn of(target: &TensorView<'_>, golden: &TensorView<'_>, whole: &PairMetrics) -> Option<Columns> {
        let is_complex = |view: &TensorView<'_>| view.dtype().class() == DTypeClass::Complex;
        if !is_complex(target) && !is_complex(golden) {
            return Some(Columns { whole: *whole, real: *whole });
        }
        let mut real = compare_real_parts(target, golden).ok()??;
        if golden.dtype().class() == DTypeClass::Float {
            // Relative errors are taken in the golden's own arithmetic, in which a complex target stays complex.
            real.max_relative_error = whole.max_relative_error;
            real.within_thousandth = whole.within_thousandth;
            real.within_five_thousandths = whole.within_five_thousandths;
        }
        Some(Columns { whole: *whole, real })
    }

    /// A tensor without dimensions: two figures, in the arithmetic of its dtype, whatever the values.
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
        let mut message = String::from(ZERO_DIMENSIONS);
        let absolute = largest(max_abs_error, NAN_ABSOLUTE, &mut message);
        let relative = largest(max_relative_error, NAN_RELATIVE, &mut message);
        let metrics = [UNSUPPORTED, UNSUPPORTED, absolute, relative, UNSUPPORTED, UNSUPPORTED];
        self.finish(metrics, message)
    }

    fn tensor(&self, target: &TensorView<'_>, golden: &TensorView<'_>) -> TensorComparison {
        if !self.whole.nan_positions_agree || !self.whole.inf_positions_agree {
            return self.finish([MetricCell::Text("N/A"); 6], POSITIONS_DIFFER.into());
        }
        let mut message = String::new();
        if as_numpy(target.dtype()) != as_numpy(golden.dtype()) {
            message.push_str(DTYPES_DIFFER);
        }
        let real = &self.real;
        let ratio = |count| MetricCell::Number(round_decimals(real.share(count), 12));
        let metrics = [
            self.cosine(&mut message),
            MetricCell::Number(real.euclidean_distance),
            largest(real.max_abs_error, NAN_ABSOLUTE, &mut message),
            largest(real.max_relative_error, NAN_RELATIVE, &mut message),
            ratio(real.within_thousandth),
            ratio(real.within_five_thousandths),
        ];
        self.finish(metrics, message)
    }

    fn cosine(&self, message: &mut String) -> MetricCell {
        if self.real.count == 1 {
            message.push_str(ONE_ELEMENT);
            return UNSUPPORTED;
        }
        let is_zero = |norm: f64| norm <= f64::EPSILON;
        let why = match (is_zero(self.real.target_norm), is_zero(self.real.golden_norm)) {
            (true, false) => ZERO_TARGET,
            (false, true) => ZERO_GOLDEN,
            _ => NAN_COSINE,
        };
        let cosine = round_decimals(self.real.cosine(), 12);
        if cosine.is_nan() {
            message.push_str(why);
            return NOT_A_NUMBER;
        }
        MetricCell::Number(if cosine > 0.9999 { round_decimals(cosine, 6) } else { cosine })
    }

    fn finish(&self, metrics: [MetricCell; 6], message: String) -> TensorComparison {
        let accuracy = accuracy(&metrics[0], &metrics[2]);
        TensorComparison { metrics, accuracy, message, pair: Some(self.whole), gap: None }
    }
}

/// A maximum, or the note that there is none.
fn largest(value: f64, note: &str, message: &mut String) -> MetricCell {
    if value.is_nan() {
        message.push_str(note);
        return NOT_A_NUMBER;
    }
    MetricCell::Number(round_decimals(value, 12))
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
    fn scalars_use_the_arithmetic_of_their_dtype() {
        let wrapped = scalars(DType::U8, &[3], &[4]);
        assert_eq!(wrapped.metrics[2..4], [MetricCell::Number(255.0), MetricCell::Number(0.25)]);
        let infinite = scalars(DType::F32, &f32::INFINITY.to_le_bytes(), &1f32.to_le_bytes());
        assert_eq!(infinite.metrics[2..4], [MetricCell::Number(f64::INFINITY); 2]);
        let both = scalars(DType::F32, &f32::INFINITY.to_le_bytes(), &f32::INFINITY.to_le_bytes());
        assert_eq!(both.metrics[2..4], [NOT_A_NUMBER; 2]);
        assert_eq!(
            (both.accuracy, both.message),
            ("None", [ZERO_DIMENSIONS, NAN_ABSOLUTE, NAN_RELATIVE].concat())
        );
    }

    #[test]
    fn a_scalar_against_a_vector_is_a_difference_of_shapes() {
        let one = TensorView::contiguous(DType::U8, vec![], &[1]).unwrap();
        let two = TensorView::contiguous(DType::U8, vec![2], &[1, 2]).unwrap();
        let differ = TensorComparison::shapes_differ().because("the files hold [] and [2]");
        assert_eq!(compare_tensors(&one, &two), differ);
        assert_eq!(compare_tensors(&two, &one).accuracy, "Unmatched");
    }

    #[test]
    fn accuracy_of_cells() {
        let number = MetricCell::Number;
        assert_eq!(accuracy(&number(0.98), &number(0.001)), "Yes");
        assert_eq!(accuracy(&number(0.98), &number(0.0011)), "No");
        assert_eq!(accuracy(&number(0.89), &number(0.0)), "No");
        assert_eq!(accuracy(&number(1.0), &number(1.1)), "No");
        assert_eq!(accuracy(&NOT_A_NUMBER, &number(1.0)), "Yes");
        assert_eq!(accuracy(&NOT_A_NUMBER, &number(1.1)), "No");
        assert_eq!(accuracy(&MetricCell::Text("None"), &MetricCell::Text("N/A")), "None");
        assert_eq!(accuracy(&number(1.0), &MetricCell::Text("N/A")), "No");
        assert_eq!(accuracy(&UNSUPPORTED, &number(0.0)), "None");
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
