//! Statistics, checksums and pair metrics of tensors in memory.

use msprobe_tensor::{Number, PairMetrics, Statistics};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::tensor::Described;

#[pyfunction]
pub(crate) fn statistics(py: Python<'_>, tensor: Described) -> PyResult<Bound<'_, PyDict>> {
    let view = tensor.view()?;
    let stats = py.detach(|| msprobe_tensor::statistics(&view));
    statistics_dict(py, &stats)
}

fn statistics_dict<'py>(py: Python<'py>, stats: &Statistics) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (key, number) in [("max", stats.max), ("min", stats.min), ("mean", stats.mean), ("norm", stats.norm)]
    {
        let value = match number {
            None => py.None(),
            Some(Number::Bool(value)) => value.into_py_any(py)?,
            Some(Number::Int(value)) => value.into_py_any(py)?,
            Some(Number::Float(value)) => value.into_py_any(py)?,
        };
        dict.set_item(key, value)?;
    }
    dict.set_item("count", stats.count)?;
    dict.set_item("nan", stats.nan_count)?;
    dict.set_item("pos_inf", stats.pos_inf_count)?;
    dict.set_item("neg_inf", stats.neg_inf_count)?;
    dict.set_item("zero", stats.zero_count)?;
    Ok(dict)
}

#[pyfunction]
pub(crate) fn crc32(py: Python<'_>, tensor: Described) -> PyResult<u32> {
    let view = tensor.view()?;
    Ok(py.detach(|| msprobe_tensor::crc32(&view)))
}

/// The sketch of a tensor, as it is written.
#[pyfunction]
pub(crate) fn sketch(py: Python<'_>, tensor: Described) -> PyResult<String> {
    let view = tensor.view()?;
    Ok(py.detach(|| msprobe_tensor::sketch(&view).to_string()))
}

/// For sketches that are summed elsewhere: which places have a negative sign, and the keys of the hash.
#[pyfunction]
pub(crate) fn sketch_tables() -> (Vec<bool>, Vec<u64>) {
    msprobe_tensor::sketch_tables()
}

/// The same of a shape: elements of a strip, where eighths of the rows begin, and how many columns are told apart.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what Python hands over")]
pub(crate) fn sketch_cuts(shape: Vec<usize>) -> Option<(usize, Vec<usize>, usize)> {
    msprobe_tensor::sketch_cuts(&shape).map(|cuts| (cuts.strip, cuts.row_starts, cuts.columns))
}

#[pyfunction]
pub(crate) fn md5(py: Python<'_>, tensor: Described) -> PyResult<[u8; 16]> {
    let view = tensor.view()?;
    Ok(py.detach(|| msprobe_tensor::md5(&view)))
}

#[pyfunction]
pub(crate) fn hash128(py: Python<'_>, tensor: Described) -> PyResult<u128> {
    let view = tensor.view()?;
    Ok(py.detach(|| msprobe_tensor::hash128(&view)))
}

#[pyfunction]
pub(crate) fn compare_pair(
    py: Python<'_>,
    target: Described,
    golden: Described,
) -> PyResult<Option<Bound<'_, PyDict>>> {
    let (target, golden) = (target.view()?, golden.view()?);
    let metrics = py.detach(|| msprobe_tensor::compare_pair(&target, &golden));
    let metrics = metrics.map_err(|error| PyValueError::new_err(error.to_string()))?;
    metrics.map(|metrics| metrics_dict(py, &metrics)).transpose()
}

fn metrics_dict<'py>(py: Python<'py>, metrics: &PairMetrics) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("count", metrics.count)?;
    dict.set_item("equal_count", metrics.equal_count)?;
    dict.set_item("first_mismatch", metrics.first_mismatch)?;
    dict.set_item("first_difference", metrics.first_difference)?;
    for (side, counts) in [("target", metrics.target_non_finite), ("golden", metrics.golden_non_finite)] {
        dict.set_item(format!("{side}_nan"), counts.nan)?;
        dict.set_item(format!("{side}_pos_inf"), counts.pos_inf)?;
        dict.set_item(format!("{side}_neg_inf"), counts.neg_inf)?;
    }
    dict.set_item("nan_positions_agree", metrics.nan_positions_agree)?;
    dict.set_item("inf_positions_agree", metrics.inf_positions_agree)?;
    dict.set_item("cosine", metrics.cosine())?;
    dict.set_item("euclidean_distance", metrics.euclidean_distance)?;
    dict.set_item("max_abs_error", metrics.max_abs_error)?;
    dict.set_item("max_relative_error", metrics.max_relative_error)?;
    dict.set_item("within_thousandth", metrics.within_thousandth)?;
    dict.set_item("within_five_thousandths", metrics.within_five_thousandths)?;
    dict.set_item("within_hundredth", metrics.within_hundredth)?;
    let scaled = match metrics.scaled {
        None => None,
        Some(errors) => {
            let dict = PyDict::new(py);
            dict.set_item("max_abs_error", errors.max_abs_error)?;
            dict.set_item("max_relative_error", errors.max_relative_error)?;
            dict.set_item("within_thousandth", errors.within_thousandth)?;
            dict.set_item("within_hundredth", errors.within_hundredth)?;
            Some(dict)
        }
    };
    dict.set_item("scaled", scaled)?;
    Ok(dict)
}
