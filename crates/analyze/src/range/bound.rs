//! What statistics prove about the share of elements that are too small.

use msprobe_tensor::DType;

use super::UNDERFLOW_SHARE;
use crate::rank::TensorFacts;

/// Norms are rounded to their dtype (bfloat16 keeps 8 bits), and their sums of many terms before that.
const NORM_SLACK: f64 = 1.01;

/// Frameworks square elements in float32, where squares below 2^-126 may vanish: the mean square can be larger by that
/// than the norm says.
const LOST_ROOT: f64 = 1.0 / (1_u64 << 63) as f64;

/// Norms of float16 may be the root of a sum that was rounded to float16, so that a sum below 2^-25 vanishes.
const LOST_ROOT_FLOAT16: f64 = 1.0 / (1_u64 << 12) as f64;

/// At least `share` of the elements are small.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Small {
    pub(super) share: f64,
    /// The largest magnitude if the share is 1, otherwise the root mean square.
    pub(super) value: f64,
    /// Larger is worse.
    pub(super) severity: f64,
}

/// Whether at least [`UNDERFLOW_SHARE`] of the elements have a magnitude of at most `at`, though not all are zero.
pub(super) fn small_elements(tensor: &TensorFacts<'_>, dtype: DType, at: f64) -> Option<Small> {
    let figures = [tensor.max, tensor.min, tensor.mean, tensor.norm];
    if figures.into_iter().flatten().any(|figure| !figure.is_finite()) {
        return None;
    }
    // The root mean square is at least as large as the mean: cheaper to see, and a check on the norm.
    if tensor.mean.is_some_and(|mean| mean.abs() > at) {
        return None;
    }
    if let (Some(max), Some(min)) = (tensor.max, tensor.min) {
        let largest = max.abs().max(min.abs());
        if largest == 0.0 {
            return None;
        }
        if largest <= at {
            return Some(Small { share: 1.0, value: largest, severity: at / largest });
        }
    }
    // The norm of a scalar is the scalar itself, with its sign.
    let norm = tensor.norm?.abs();
    let count = tensor.elements.filter(|count| *count > 0)?;
    let is_unknown = tensor.max.is_none() || tensor.min.is_none();
    if is_unknown && norm == 0.0 {
        return None;
    }
    let root = (count as f64).sqrt();
    let lost = if dtype == DType::F16 { LOST_ROOT_FLOAT16 } else { 0.0 };
    let highest = (norm * NORM_SLACK).hypot(lost) / root;
    let ratio = highest.hypot(LOST_ROOT) / at;
    let share = 1.0 - ratio * ratio;
    (share >= UNDERFLOW_SHARE).then(|| Small { share, value: norm / root, severity: 1.0 / ratio })
}
