//! How far one value of a record is from its partner, as a share of the size of the values.

use super::tolerance::Precision;
use crate::side::{Leaf, Role, Scalar};
use crate::table::Mode;
use crate::tensor_pair::TensorComparison;

/// What is different about two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing, or only numbers by some amount.
    Values,
    /// NaN or infinity on one side only, or at other places.
    NotFinite,
    /// Their shapes.
    Shape,
    /// Their checksums.
    Checksum,
}

/// How far two values are apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RowError {
    /// Share of the size of the golden values; 0 if nothing differs, infinite if no number can say it.
    pub error: f64,
    /// What is different.
    pub kind: Kind,
}

impl RowError {
    const fn infinite(kind: Kind) -> RowError {
        RowError { error: f64::INFINITY, kind }
    }

    const fn of_values(error: f64) -> RowError {
        RowError { error, kind: Kind::Values }
    }
}

/// Weight of the largest single error against the error of the whole: one rounding step of the largest element is
/// a larger share of it than all rounding steps are of the whole.
const SINGLE_ELEMENT: f64 = 0.25;

/// Measures two tensors of the same place. `floor` is a size below which values count as rounding residue.
/// `None` if there is nothing to measure.
pub(super) fn row_error(
    mode: Mode,
    target: &Leaf,
    golden: &Leaf,
    real: Option<&TensorComparison>,
    floor: f64,
) -> Option<RowError> {
    if !target.is_tensor() || !golden.is_tensor() {
        return None;
    }
    if mode == Mode::Md5 {
        return match (&target.md5, &golden.md5) {
            (Some(one), Some(other)) if one == other => Some(RowError::of_values(0.0)),
            (Some(_), Some(_)) => Some(RowError::infinite(Kind::Checksum)),
            _ => None,
        };
    }
    if target.shape != golden.shape {
        return Some(RowError::infinite(Kind::Shape));
    }
    // A mask of bools and one of numbers to add say the same in other words; no figure tells.
    let is_exact = |leaf: &Leaf| Precision::of(&leaf.dtype) == Precision::Exact;
    if is_exact(target) != is_exact(golden) {
        return None;
    }
    let size = size_of(golden);
    match real.and_then(|real| real.pair.as_ref()) {
        Some(pair) => {
            if !(pair.nan_positions_agree && pair.inf_positions_agree) {
                return Some(RowError::infinite(Kind::NotFinite));
            }
            if pair.target_non_finite != pair.golden_non_finite {
                return Some(RowError::infinite(Kind::NotFinite));
            }
            if pair.first_difference.is_none() {
                return Some(RowError::of_values(0.0));
            }
            let elements = (pair.count as f64).sqrt();
            let norm =
                share(pair.euclidean_distance, pair.golden_norm.max(floor * elements), pair.target_norm);
            let size = size.unwrap_or(pair.golden_norm);
            let single = share(pair.max_abs_error, size.max(floor), pair.max_abs_error);
            Some(RowError::of_values(norm.max(SINGLE_ELEMENT * single)))
        }
        None => Some(statistics_error(target, golden, size?, floor)),
    }
}

fn statistics_error(target: &Leaf, golden: &Leaf, size: f64, floor: f64) -> RowError {
    let target_size = size_of(target).unwrap_or(0.0);
    let mut error: f64 = 0.0;
    for (index, (one, other)) in target.statistics.iter().zip(&golden.statistics).enumerate() {
        let (Some(one), Some(other)) = (value(one), value(other)) else { continue };
        if one == other || (one.is_nan() && other.is_nan()) {
            continue;
        }
        if !one.is_finite() || !other.is_finite() {
            return RowError::infinite(Kind::NotFinite);
        }
        let (size, otherwise) = match index {
            // The norm has a size of its own, which a floor raises as it raises that of the elements.
            3 => (other.abs() * (floor / size).max(1.0), one.abs()),
            _ => (size.max(floor), target_size),
        };
        error = error.max(share((one - other).abs(), size, otherwise));
    }
    RowError::of_values(error)
}

/// A difference as a share of a size; of the other side's if that is zero.
fn share(difference: f64, size: f64, otherwise: f64) -> f64 {
    if difference == 0.0 {
        0.0
    } else if size > 0.0 {
        difference / size
    } else if otherwise > 0.0 {
        difference / otherwise
    } else {
        1.0
    }
}

/// Masks are added as the lowest number there is; beside it everything else would count as nothing.
const MASKED: f64 = 1e30;

/// Largest magnitude of the elements, as far as it is finite and no mask.
pub(super) fn size_of(leaf: &Leaf) -> Option<f64> {
    let [max, min, mean, _] = &leaf.statistics;
    let known = match (value(max), value(min)) {
        (None, None) => [value(mean)?; 2],
        (max, min) => [max, min].map(Option::unwrap_or_default),
    };
    let largest =
        |below: f64| known.map(f64::abs).into_iter().filter(|size| *size < below).fold(0.0, f64::max);
    let size = largest(MASKED);
    Some(if size > 0.0 { size } else { largest(f64::INFINITY) })
}

fn value(scalar: &Scalar) -> Option<f64> {
    match scalar {
        Scalar::Bool(value) => Some(f64::from(u8::from(*value))),
        other => other.number(),
    }
}

/// Whether two arguments that are no tensors differ in a way that changes what is computed.
pub(super) fn arguments_differ(target: &Leaf, golden: &Leaf) -> bool {
    if target.role != Role::Input || target.is_tensor() || golden.is_tensor() {
        return false;
    }
    match (&target.statistics[0], &golden.statistics[0]) {
        (Scalar::Text(one), Scalar::Text(other)) => one != other && !(is_place(one) && is_place(other)),
        (one, other) => match (value(one), value(other)) {
            (Some(one), Some(other)) => one != other && !(one.is_nan() && other.is_nan()),
            _ => false,
        },
    }
}

/// Whether a text names a device or a dtype, which differ between machines and frameworks by nature.
fn is_place(text: &str) -> bool {
    let device = text.split(':').next().unwrap_or_default();
    matches!(device, "cpu" | "cuda" | "npu" | "meta" | "mps" | "xpu" | "Ascend" | "GPU" | "CPU")
        || text.starts_with("torch.")
        || text.starts_with("mindspore.")
}
