//! The tables of a check.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use msprobe_precheck::summary::{End, Summary};
use msprobe_precheck::tables::{TableError, Tables};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use super::outcome::PrecheckOutcome;
use super::plan::{checker, coded};

#[pyclass(module = "msprobe._native", frozen)]
pub(crate) struct PrecheckTable {
    tables: Tables,
    summary: Mutex<Summary>,
}

fn exception(py: Python<'_>, error: &TableError) -> PyErr {
    match error {
        TableError::Name => PyValueError::new_err(error.to_string()),
        TableError::Io { .. } => PyOSError::new_err(error.to_string()),
        TableError::NoDetails(_) => coded(py, "FileCheckException", 3, &error.to_string()),
        TableError::Header { .. } => PyValueError::new_err(error.to_string()),
    }
}

fn path<'py>(py: Python<'py>, path: &std::path::Path) -> PyResult<Bound<'py, PyAny>> {
    py.import("pathlib")?.call_method1("Path", (path,))
}

#[pymethods]
impl PrecheckTable {
    #[new]
    #[pyo3(signature = (out_path, framework="pytorch", resume=None, stamp=None))]
    fn new(
        py: Python<'_>,
        out_path: PathBuf,
        framework: &str,
        resume: Option<PathBuf>,
        stamp: Option<&str>,
    ) -> PyResult<PrecheckTable> {
        let tables = Tables::open(&out_path, checker(framework)?, resume.as_deref(), stamp)
            .map_err(|error| exception(py, &error))?;
        Ok(PrecheckTable { tables, summary: Mutex::default() })
    }

    #[getter]
    fn result_path<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        path(py, self.tables.result_path())
    }

    #[getter]
    fn details_path<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        path(py, self.tables.details_path())
    }

    #[getter]
    fn stamp(&self) -> &str {
        self.tables.stamp()
    }

    fn is_done(&self, full_name: &str) -> bool {
        self.tables.is_done(full_name)
    }

    fn add(&self, py: Python<'_>, outcome: &PrecheckOutcome) -> PyResult<()> {
        py.detach(|| self.tables.add(&outcome.outcome)).map_err(|error| exception(py, &error))?;
        self.summary.lock().unwrap_or_else(PoisonError::into_inner).add(&outcome.outcome);
        Ok(())
    }

    #[pyo3(signature = (command, api_info, device, interrupted=false))]
    fn finish(
        &self,
        py: Python<'_>,
        command: &str,
        api_info: PathBuf,
        device: &str,
        interrupted: bool,
    ) -> PyResult<(String, u8, Vec<PathBuf>)> {
        let command = if command == "multi_run_ut" { "multi_run_ut" } else { "run_ut" };
        let end = End { command, api_info: &api_info, device, was_interrupted: interrupted };
        let summary = self.summary.lock().unwrap_or_else(PoisonError::into_inner);
        let (answer, sections) = py.detach(|| summary.finish(&self.tables, &end))?;
        let exit = Summary::exit(&answer, interrupted) as u8;
        Ok((answer.text(&sections), exit, answer.files))
    }
}
