//! Metrics as tables show and judge them: their columns, what is noted about a row, and whether accuracy was reached.

use msprobe_compare::metrics::{Metric, Metrics, Missing, Note, TensorComparison};
use msprobe_compare::python_text::float_repr;

/// Names of the columns of metrics.
pub const METRIC_HEADERS: [&str; 6] = [
    "Cosine",
    "EucDist",
    "MaxAbsErr",
    "MaxRelativeErr",
    "One Thousandth Err Ratio",
    "Five Thousandths Err Ratio",
];

/// What a row says that nothing was paired with.
pub(crate) const NO_GOLDEN: &str = "No bench data matched.";

/// Logged when accuracy cannot be judged because a metric is missing.
pub const NOT_JUDGED: &str = "Cosine or MaxAbsErr can not get float value.";

/// The metrics in the order of their columns.
pub fn in_columns(metrics: &Metrics) -> [Metric; 6] {
    [
        metrics.cosine,
        metrics.euclidean,
        metrics.max_abs,
        metrics.max_relative,
        metrics.within_thousandth,
        metrics.within_five_thousandths,
    ]
}

/// A metric as text.
pub(crate) fn metric_text(metric: Metric) -> String {
    match metric {
        Metric::Number(value) => float_repr(value),
        Metric::Missing(why) => why.as_str().to_owned(),
    }
}

/// The message of a row about real data.
pub fn message(comparison: &TensorComparison) -> String {
    let mut message = String::new();
    for note in &comparison.notes {
        message.push_str(match note {
            Note::NoGolden => NO_GOLDEN,
            Note::NoGoldenFile => "Bench does not have data file.",
            Note::NotRead([target, golden]) => {
                return format!("Dump file: ['{target}', '{golden}'] not found or read failed.");
            }
            Note::Empty => "This is empty data, can not compare.",
            Note::ShapesDiffer => "Shape of NPU and bench tensor do not match. Skipped.",
            Note::Unreadable => "Data is unreadable.",
            Note::PositionsDiffer => "The position of inf or nan in NPU and bench Tensor do not match.",
            Note::DtypesDiffer => "Dtype of NPU and bench tensor do not match.",
            Note::OneElement => "This is a 1-d tensor of length 1.",
            Note::ZeroDimensions => {
                "This is type of 0-d tensor, can not calculate 'Cosine', 'EucDist', 'One Thousandth Err Ratio' and \
                 'Five Thousandths Err Ratio'. "
            }
            Note::ZeroTarget => {
                "Cannot compare by Cosine Similarity, All the data is Zero in npu dump data."
            }
            Note::ZeroGolden => {
                "Cannot compare by Cosine Similarity, All the data is Zero in Bench dump data."
            }
            Note::NanCosine => "Cannot compare by Cosine Similarity, the dump data has NaN.",
            Note::NanAbsolute => {
                "Cannot compare by MaxAbsError, the data contains nan/inf/-inf in dump data."
            }
            Note::NanRelative => {
                "Cannot compare by MaxRelativeError, the data contains nan/inf/-inf in dump data."
            }
        });
    }
    message
}

/// Whether accuracy was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accuracy {
    /// It was.
    Reached,
    /// It was not.
    NotReached,
    /// A metric to judge by is missing.
    NotJudged,
    /// The shapes differ.
    Unmatched,
}

impl Accuracy {
    /// Judges by the metrics as they are shown.
    pub fn of(metrics: &Metrics) -> Accuracy {
        // NaN is a number here, one that breaks no limit.
        let number = |metric: Metric| match metric {
            Metric::Missing(Missing::NotANumber) => Some(f64::NAN),
            other => other.number(),
        };
        let either_is = |why| [metrics.cosine, metrics.max_abs].contains(&Metric::Missing(why));
        if metrics.cosine == Metric::Missing(Missing::ShapesDiffer) {
            return Accuracy::Unmatched;
        }
        if either_is(Missing::PositionsDiffer) {
            return Accuracy::NotReached;
        }
        let (Some(cosine), Some(error)) = (number(metrics.cosine), number(metrics.max_abs)) else {
            return Accuracy::NotJudged;
        };
        let is_off = (cosine < 0.99 && error > 0.001) || cosine < 0.9 || error > 1.0;
        if is_off { Accuracy::NotReached } else { Accuracy::Reached }
    }

    /// The word in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Accuracy::Reached => "Yes",
            Accuracy::NotReached => "No",
            Accuracy::NotJudged => "None",
            Accuracy::Unmatched => "Unmatched",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accuracy_is_judged_by_cosine_and_absolute_error() {
        let number = Metric::Number;
        let of = |cosine, max_abs| {
            Accuracy::of(&Metrics { cosine, max_abs, ..Metrics::missing(Missing::Unsupported) }).as_str()
        };
        let nan = Metric::Missing(Missing::NotANumber);
        assert_eq!(of(number(0.98), number(0.001)), "Yes");
        assert_eq!(of(number(0.98), number(0.0011)), "No");
        assert_eq!(of(number(0.89), number(0.0)), "No");
        assert_eq!(of(number(1.0), number(1.1)), "No");
        assert_eq!(of(nan, number(1.0)), "Yes");
        assert_eq!(of(nan, number(1.1)), "No");
        assert_eq!(of(nan, nan), "Yes");
        assert_eq!(of(number(1.0), Metric::Missing(Missing::PositionsDiffer)), "No");
        assert_eq!(of(Metric::Missing(Missing::Unsupported), number(0.0)), "None");
    }
}
