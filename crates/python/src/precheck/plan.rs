//! The APIs of a dump.

use std::path::PathBuf;

use msprobe_precheck::Call;
use msprobe_precheck::plan::{Case, Checker, Choice, Plan, PlanError};
use pyo3::exceptions::{PyException, PyIndexError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// The exception of a class of msprobe.
pub(super) fn coded(py: Python<'_>, class: &str, code: u16, text: &str) -> PyErr {
    let raised = py
        .import("msprobe.core.common.exceptions")
        .and_then(|module| module.getattr(class))
        .and_then(|class| class.call1((code, text)));
    match raised {
        Ok(instance) => PyErr::from_value(instance),
        Err(error) => error,
    }
}

fn plan_exception(py: Python<'_>, error: &PlanError) -> PyErr {
    match error {
        PlanError::Read(error) => PyRuntimeError::new_err(error.to_string()),
        PlanError::Name(text) => coded(py, "ParseJsonException", 0, text),
        PlanError::NoDump(text) => coded(py, "ParseJsonException", 1, text),
        PlanError::MindSpore(text) => coded(py, "ApiAccuracyCheckerException", 0, text),
        PlanError::Missing(_) => PyException::new_err(error.to_string()),
        PlanError::Injection => PyValueError::new_err(error.to_string()),
    }
}

/// Whose rules.
pub(super) fn checker(framework: &str) -> PyResult<Checker> {
    match framework {
        "pytorch" => Ok(Checker::PyTorch),
        "mindspore" => Ok(Checker::MindSpore),
        other => Err(PyValueError::new_err(format!("there is no check for {other}"))),
    }
}

#[pyclass(module = "msprobe._native", frozen)]
pub(crate) struct PrecheckCase {
    case: Case,
}

impl PrecheckCase {
    /// An entry as Python's own reader gives it, NaN included.
    fn entry<'py>(py: Python<'py>, text: Option<&String>) -> PyResult<Option<Bound<'py, PyAny>>> {
        text.map(|text| py.import("json")?.call_method1("loads", (text,))).transpose()
    }
}

#[pymethods]
impl PrecheckCase {
    #[getter]
    fn full_name(&self) -> &str {
        &self.case.full_name
    }

    #[getter]
    fn kind(&self) -> &str {
        &self.case.kind
    }

    #[getter]
    fn name(&self) -> &str {
        &self.case.name
    }

    #[getter]
    fn seed(&self) -> u64 {
        Call::seed(&self.case.full_name)
    }

    #[getter]
    fn forward<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        PrecheckCase::entry(py, self.case.forward.as_ref())
    }

    #[getter]
    fn backward<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        PrecheckCase::entry(py, self.case.backward.as_ref())
    }

    #[getter]
    fn skip(&self) -> Option<&str> {
        self.case.skip.as_deref()
    }

    #[getter]
    fn backward_message(&self) -> &str {
        &self.case.backward_message
    }

    #[getter]
    fn stack(&self) -> Vec<String> {
        self.case.stack.clone()
    }
}

#[pyclass(module = "msprobe._native", frozen)]
pub(crate) struct PrecheckPlan {
    plan: Plan,
}

#[pymethods]
impl PrecheckPlan {
    #[new]
    #[pyo3(signature = (api_info, framework="pytorch", filter_api=false, white_list=Vec::new(), black_list=Vec::new()))]
    fn new(
        py: Python<'_>,
        api_info: PathBuf,
        framework: &str,
        filter_api: bool,
        white_list: Vec<String>,
        black_list: Vec<String>,
    ) -> PyResult<PrecheckPlan> {
        let checker = checker(framework)?;
        let choice = Choice { checker, is_filtered: filter_api, white_list, black_list };
        let plan = py.detach(|| Plan::read(&api_info, choice));
        plan.map(|plan| PrecheckPlan { plan }).map_err(|error| plan_exception(py, &error))
    }

    fn __len__(&self) -> usize {
        self.plan.len()
    }

    #[getter]
    fn data_dir<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let path = self.plan.data_dir();
        path.map(|path| py.import("pathlib")?.call_method1("Path", (path,))).transpose()
    }

    #[getter]
    fn framework(&self) -> &str {
        self.plan.framework()
    }

    #[getter]
    fn notes(&self) -> Vec<(&'static str, String)> {
        self.plan.notes().to_vec()
    }

    fn names(&self) -> Vec<String> {
        self.plan.names().map(str::to_owned).collect()
    }

    fn case(&self, py: Python<'_>, position: usize) -> PyResult<PrecheckCase> {
        let case = py.detach(|| self.plan.case(position));
        let case = case.map_err(|error| PyOSError::new_err(error.to_string()))?;
        case.map(|case| PrecheckCase { case }).ok_or_else(|| PyIndexError::new_err("there is no such API"))
    }

    fn split(&self, count: usize) -> Vec<Vec<usize>> {
        self.plan.split(count)
    }

    fn write_parts(&self, py: Python<'_>, count: usize, directory: PathBuf) -> PyResult<Vec<PathBuf>> {
        let written = py.detach(|| self.plan.write_parts(count, &directory));
        written.map_err(|error| plan_exception(py, &error))
    }
}
