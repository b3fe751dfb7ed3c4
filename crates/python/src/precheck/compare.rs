//! Verdicts of what Python ran.

use msprobe_precheck::mindspore::{self, Direction};
use msprobe_precheck::{Judging, Leaf, Sides, Standard, compare, overflow, skip};
use msprobe_report::console::Level;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use super::leaves::{Held, hold, leaves};
use super::outcome::{PrecheckOutcome, notes};

type Objects<'py> = Vec<Bound<'py, PyAny>>;
type Pair<'py> = (Objects<'py>, Objects<'py>);

#[pyfunction]
#[pyo3(signature = (
    full_name, bench, device, bench_gradients=None, device_gradients=None, backward_message="",
    *, precision=14, strict=false, notes=None,
))]
#[allow(clippy::too_many_arguments, reason = "the arguments of a Python function")]
pub(crate) fn precheck_compare(
    py: Python<'_>,
    full_name: &str,
    bench: Objects<'_>,
    device: Objects<'_>,
    bench_gradients: Option<Objects<'_>>,
    device_gradients: Option<Objects<'_>>,
    backward_message: &str,
    precision: usize,
    strict: bool,
    notes: Option<&Bound<'_, PyAny>>,
) -> PyResult<PrecheckOutcome> {
    let facts = self::notes(notes)?;
    let held = [hold(&bench)?, hold(&device)?];
    let gradients = match (bench_gradients, device_gradients) {
        (Some(bench), Some(device)) => Some([hold(&bench)?, hold(&device)?]),
        _ => None,
    };
    let [bench, device] = both(&held)?;
    let gradients = gradients.as_ref().map(both).transpose()?;
    let judging = Judging { precision: precision.min(20), is_strict: strict };
    let outcome = py.detach(|| {
        let forward = Sides { bench: &bench, device: &device };
        let backward = gradients.as_ref().map(|[bench, device]| Sides { bench, device });
        compare(full_name, forward, backward, backward_message, judging, facts)
    });
    outcome
        .map(|outcome| PrecheckOutcome { outcome })
        .map_err(|error| PyIndexError::new_err(error.to_string()))
}

fn both(held: &[Vec<Held>; 2]) -> PyResult<[Vec<Leaf<'_>>; 2]> {
    let [bench, device] = held;
    Ok([leaves(bench)?, leaves(device)?])
}

#[pyfunction]
#[pyo3(signature = (full_name, message, *, failed=false, notes=None))]
pub(crate) fn precheck_skip(
    full_name: &str,
    message: &str,
    failed: bool,
    notes: Option<&Bound<'_, PyAny>>,
) -> PyResult<PrecheckOutcome> {
    Ok(PrecheckOutcome { outcome: skip(full_name, message, failed, self::notes(notes)?) })
}

#[pyfunction]
#[pyo3(signature = (full_name, forward, backward, forward_failure=None, backward_failure=None, *, notes=None))]
#[allow(clippy::too_many_arguments, reason = "the arguments of a Python function")]
pub(crate) fn precheck_compare_mindspore(
    py: Python<'_>,
    full_name: &str,
    forward: Option<Pair<'_>>,
    backward: Option<Pair<'_>>,
    forward_failure: Option<&str>,
    backward_failure: Option<&str>,
    notes: Option<&Bound<'_, PyAny>>,
) -> PyResult<PrecheckOutcome> {
    let facts = self::notes(notes)?;
    let held = |pair: Option<Pair<'_>>| -> PyResult<Option<[Vec<Held>; 2]>> {
        pair.map(|(bench, tested)| Ok([hold(&bench)?, hold(&tested)?])).transpose()
    };
    let (forward, backward) = (held(forward)?, held(backward)?);
    let (forward, backward) =
        (forward.as_ref().map(both).transpose()?, backward.as_ref().map(both).transpose()?);
    let outcome = py.detach(|| {
        let forward = direction(forward.as_ref(), forward_failure);
        let backward = direction(backward.as_ref(), backward_failure);
        mindspore::compare(full_name, forward, backward, facts)
    });
    Ok(PrecheckOutcome { outcome })
}

fn direction<'l, 'a>(pair: Option<&'l [Vec<Leaf<'a>>; 2]>, failure: Option<&'l str>) -> Direction<'l, 'a> {
    match (failure, pair) {
        (Some(text), _) => Direction::Failed(text),
        (None, Some([bench, device])) => Direction::Ran(Sides { bench, device }),
        (None, None) => Direction::Absent,
    }
}

#[pyfunction]
pub(crate) fn precheck_overflows(py: Python<'_>, values: Objects<'_>) -> PyResult<Option<bool>> {
    let held = hold(&values)?;
    let leaves = leaves(&held)?;
    Ok(py.detach(|| overflow::overflows(&leaves)))
}

#[pyfunction]
#[pyo3(signature = (full_name, bench, device, device_overflows, strict=false))]
pub(crate) fn precheck_overflow_message(
    py: Python<'_>,
    full_name: &str,
    bench: Option<Objects<'_>>,
    device: Option<Objects<'_>>,
    device_overflows: Option<bool>,
    strict: bool,
) -> PyResult<(&'static str, String)> {
    let held = |values: Option<Objects<'_>>| values.map(|values| hold(&values)).transpose();
    let (bench, device) = (held(bench)?, held(device)?);
    let bench = bench.as_deref().map(leaves).transpose()?;
    let device = device.as_deref().map(leaves).transpose()?;
    let told = py.detach(|| {
        overflow::message(full_name, bench.as_deref(), device.as_deref(), device_overflows, strict)
    });
    Ok(worded(told))
}

#[pyfunction]
pub(crate) fn precheck_overflow_failure(full_name: &str, error: &str) -> (&'static str, String) {
    worded(overflow::failure(full_name, error))
}

fn worded((level, text): (Level, String)) -> (&'static str, String) {
    let word = match level {
        Level::Debug => "debug",
        Level::Info => "info",
        Level::Warning => "warning",
        Level::Error => "error",
    };
    (word, text)
}

#[pyfunction]
pub(crate) fn precheck_standard(name: &str) -> &'static str {
    Standard::of(name).as_str()
}
