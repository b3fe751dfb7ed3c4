//! The comparison of gradients from Python. Errors are raised as scripts know them.

use std::path::PathBuf;

use msprobe_gradients::{Options, Thresholds, compare_rank, compare_ranks};
use msprobe_report::error::{Code, CompareError};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::compare::relay;

/// Compares two dump paths (`ranks`), or two rank directories. Returns the answer as text.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "called by one function of ours, which names them")]
pub(crate) fn compare_gradients(
    py: Python<'_>,
    path1: PathBuf,
    path2: PathBuf,
    output: PathBuf,
    ranks: bool,
    first: f64,
    fall: f64,
    floor: Option<f64>,
    total_fall: Option<f64>,
    noise: Vec<PathBuf>,
    pictures: &str,
    html: bool,
    log: &Bound<'_, PyAny>,
) -> PyResult<String> {
    let pictures = pictures.parse().map_err(PyValueError::new_err)?;
    let thresholds = Thresholds::new(first, fall, floor, total_fall);
    let options = Options { output, thresholds, noise, pictures, html };
    let compare = if ranks { compare_ranks } else { compare_rank };
    let outcome = relay::run(py, log, |console| {
        // An error is handed on as a value: it is another exception here than elsewhere.
        Ok(compare([&path1, &path2], &options, console).inspect_err(|error| error.announce(console)))
    })?;
    outcome.map(|outcome| outcome.answer().text(&outcome.sections())).map_err(|error| exception(py, &error))
}

fn exception(py: Python<'_>, error: &CompareError) -> PyErr {
    if error.code != Code::IllegalPath {
        return PyRuntimeError::new_err(error.message.clone());
    }
    let raised = py
        .import("msprobe.core.common.exceptions")
        .and_then(|module| module.getattr("FileCheckException"))
        .and_then(|class| class.call1((error.code as u16, &error.message)));
    match raised {
        Ok(instance) => PyErr::from_value(instance),
        Err(error) => error,
    }
}
