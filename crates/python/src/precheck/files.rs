//! Commands that read and write files and run nothing.

use std::path::PathBuf;

use msprobe_precheck::final_compare::final_compare;
use msprobe_precheck::generate::{self, Framework};
use msprobe_report::answer::{Exit, Habit};
use pyo3::prelude::*;

use crate::compare::relay;

#[pyfunction]
pub(crate) fn compare_prechecks(
    py: Python<'_>,
    npu_csv: PathBuf,
    gpu_csv: PathBuf,
    out_path: PathBuf,
    strict: bool,
    log: &Bound<'_, PyAny>,
) -> PyResult<(String, u8, Vec<PathBuf>)> {
    relay::run(py, log, |console| {
        let outcome = final_compare(&npu_csv, &gpu_csv, &out_path, strict, console)?;
        let exit: Exit = outcome.answer.status.exit_by_habit(Habit::Precheck, true);
        Ok((outcome.answer.text(&outcome.sections), exit as u8, outcome.answer.files))
    })
}

#[pyfunction]
pub(crate) fn generate_operator_script(
    py: Python<'_>,
    config: PathBuf,
    out_path: PathBuf,
    framework: &str,
    log: &Bound<'_, PyAny>,
) -> PyResult<PathBuf> {
    let framework = if framework == "mindspore" { Framework::MindSpore } else { Framework::PyTorch };
    relay::run(py, log, |console| generate::from_config(&config, &out_path, framework, console))
}
