//! What two dumps have to compare, and differences of statistics.

use crate::side::Scalar;

/// What the two dumps have to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Real data: tensor files.
    All,
    /// Statistics.
    Summary,
    /// Checksums.
    Md5,
}

/// Statistics of both sides.
pub const STATISTICS_HEADERS: [&str; 8] =
    ["NPU max", "NPU min", "NPU mean", "NPU l2norm", "Bench max", "Bench min", "Bench mean", "Bench l2norm"];
/// Differences of statistics.
pub const DIFFERENCE_HEADERS: [&str; 8] = [
    "Max diff",
    "Min diff",
    "Mean diff",
    "L2norm diff",
    "MaxRelativeErr",
    "MinRelativeErr",
    "MeanRelativeErr",
    "NormRelativeErr",
];

/// How far a statistic is from its partner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Difference {
    /// There are no two numbers.
    None,
    /// It is NaN.
    Nan,
    /// Signed; the relative error in percent is missing where the golden one is zero.
    Number(f64, Option<f64>),
}

/// Target minus golden.
pub fn difference(target: &Scalar, golden: &Scalar) -> Difference {
    let (Some(target), Some(golden)) = (target.number(), golden.number()) else { return Difference::None };
    let difference = target - golden;
    if difference.is_nan() {
        return Difference::Nan;
    }
    Difference::Number(difference, (golden != 0.0).then(|| (difference / golden * 100.0).abs()))
}
