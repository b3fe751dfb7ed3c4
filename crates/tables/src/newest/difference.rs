//! Differences of statistics in the newest form, where equal values of any kind differ by nothing.

use msprobe_report::CellSink;

use msprobe_compare::python_text::push_float;
use msprobe_compare::side::Scalar;

/// Kinds of devices, as frameworks spell them in lower case. A run on one is meant to be compared with a run on
/// another, so their names are not compared.
const DEVICES: [&str; 9] = ["cpu", "cuda", "npu", "gpu", "ascend", "mps", "xpu", "meta", "privateuseone"];

/// How far a statistic is from its partner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Difference {
    /// The same text on both sides: numbers, words, null, NaN, infinities alike.
    Equal,
    /// Nothing to compare with, or names of devices.
    Missing,
    /// Two things that cannot be subtracted and are not the same.
    Unequal,
    /// NaN on one side only.
    Nan,
    /// An infinity on one side only, or of the other sign.
    Infinite {
        /// Whether the difference is below zero.
        negative: bool,
    },
    /// Two finite numbers.
    Number {
        /// Target minus golden.
        difference: f64,
        /// The difference in percent of the golden value; infinite if that is zero.
        percent: f64,
    },
}

impl Difference {
    /// The size of the relative error as a fraction; `None` where there is no telling.
    pub fn relative(self) -> Option<f64> {
        match self {
            Difference::Equal => Some(0.0),
            Difference::Number { percent, .. } => Some(percent / 100.0),
            Difference::Infinite { .. } => Some(f64::INFINITY),
            Difference::Missing | Difference::Unequal | Difference::Nan => None,
        }
    }

    /// Text of the cell of the difference.
    pub(super) fn text(self) -> String {
        let mut text = String::new();
        match self {
            Difference::Number { difference, .. } => push_float(&mut text, difference),
            Difference::Infinite { negative: true } => text.push_str("-inf"),
            other => text.push_str(other.as_str()),
        }
        text
    }

    /// Text of the cell of the relative error.
    pub(super) fn relative_text(self) -> String {
        let mut text = String::new();
        match self {
            Difference::Number { percent, .. } if percent.is_finite() => {
                push_float(&mut text, percent);
                text.push('%');
            }
            Difference::Number { .. } => text.push_str("inf"),
            other => text.push_str(other.as_str()),
        }
        text
    }

    fn as_str(self) -> &'static str {
        match self {
            Difference::Equal => "0",
            Difference::Missing => "N/A",
            Difference::Unequal => "Diff",
            Difference::Nan => "Nan",
            Difference::Infinite { .. } | Difference::Number { .. } => "inf",
        }
    }
}

/// Target minus golden.
pub fn difference(target: &Scalar, golden: &Scalar) -> Difference {
    if same_text(target, golden) {
        return Difference::Equal;
    }
    if let (Scalar::Text(target), Scalar::Text(golden)) = (target, golden)
        && is_device(target)
        && is_device(golden)
    {
        return Difference::Missing;
    }
    if [target, golden].iter().any(|side| matches!(side, Scalar::Text(text) if &**text == "N/A")) {
        return Difference::Missing;
    }
    let (Some(target), Some(golden)) = (target.number(), golden.number()) else {
        return Difference::Unequal;
    };
    let difference = target - golden;
    if difference.is_nan() {
        return Difference::Nan;
    }
    if difference.is_infinite() {
        return Difference::Infinite { negative: difference < 0.0 };
    }
    let percent = match (difference == 0.0, golden == 0.0) {
        // 0 and 0.0, or zeros of both signs: other texts, the same number.
        (true, _) => 0.0,
        (false, true) => f64::INFINITY,
        (false, false) => (difference / golden * 100.0).abs(),
    };
    Difference::Number { difference, percent }
}

/// The eight cells of differences and relative errors.
pub(super) fn cells(differences: &[Difference; 4], sink: &mut dyn CellSink) {
    for difference in differences {
        match difference {
            Difference::Equal => sink.integer(0),
            Difference::Number { difference, .. } => sink.number(*difference),
            other => sink.text(&other.text()),
        }
    }
    for difference in differences {
        match difference {
            Difference::Equal => sink.integer(0),
            other => sink.text(&other.relative_text()),
        }
    }
}

/// Whether Python would write both the same way.
fn same_text(target: &Scalar, golden: &Scalar) -> bool {
    match (target, golden) {
        (Scalar::Float(target), Scalar::Float(golden)) => {
            target.to_bits() == golden.to_bits() || target.is_nan() && golden.is_nan()
        }
        _ => target == golden,
    }
}

fn is_device(text: &str) -> bool {
    let (kind, index) = text.split_once(':').unwrap_or((text, ""));
    let is_index = index == "None" || index.bytes().all(|digit| digit.is_ascii_digit());
    is_index && DEVICES.iter().any(|device| device.eq_ignore_ascii_case(kind))
}
