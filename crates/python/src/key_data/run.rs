//! A whole comparison of key data.

use std::path::PathBuf;

use msprobe_compare::verdict::Tolerances;
use msprobe_keydata::{Judging, compare_data_directories};
use msprobe_report::Formats;
use pyo3::prelude::*;

use crate::compare::relay;

/// Compares the key data in two `data` directories with at most so many threads. Returns the
/// answer, with a line per key.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "one call from Python, which has names for them")]
pub(crate) fn compare_key_data(
    py: Python<'_>,
    dir1: PathBuf,
    dir2: PathBuf,
    output: PathBuf,
    num_processes: usize,
    tolerance: Option<&str>,
    noise: Vec<PathBuf>,
    log: &Bound<'_, PyAny>,
) -> PyResult<String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let formats = Formats { xlsx: true, ..Formats::default() };
    let tolerances = tolerance.map(|text| Tolerances::default().with(text)).transpose();
    let outcome = relay::run_on(py, num_processes.min(cores), log, |console| {
        let judging = Judging { tolerances: tolerances?, noise };
        compare_data_directories([&dir1, &dir2], &judging, &output, formats, console)
    })?;
    Ok(outcome.answer.text(&outcome.sections))
}
