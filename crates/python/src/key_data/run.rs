//! A whole comparison of key data.

use std::path::PathBuf;

use msprobe_report::{Formats, write_text};
use pyo3::prelude::*;

use crate::compare::relay;

/// Compares the key data in two `data` directories with at most so many threads. Returns what is to be said about it: a line
/// per key, and the answer.
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
    let mut text = Vec::new();
    write_text(&outcome.table, false, &mut text)?;
    let table = String::from_utf8_lossy(&text);
    Ok(format!("{table}\n{}", outcome.lines.join("\n")))
}
