//! A whole comparison of key data.

use std::path::PathBuf;

use msprobe_report::Formats;
use pyo3::prelude::*;

use crate::compare::relay;

/// Compares the key data in two `data` directories with at most so many threads. Returns the
/// answer, with a line per key.
#[pyfunction]
pub(crate) fn compare_key_data(
    py: Python<'_>,
    dir1: PathBuf,
    dir2: PathBuf,
    output: PathBuf,
    num_processes: usize,
    log: &Bound<'_, PyAny>,
) -> PyResult<String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let formats = Formats { xlsx: true, ..Formats::default() };
    let outcome = relay::run_on(py, num_processes.min(cores), log, |console| {
        msprobe_keydata::compare_data_directories([&dir1, &dir2], &output, formats, console)
    })?;
    Ok(outcome.answer.text(&outcome.sections))
}
