//! `config.json` from Python: its rules are the dump crate's, the exceptions are raised by Python.

use msprobe_dump::config::{
    CheckMode, Config, ConfigError, FileFormat, LogLine, OverflowNums, Overrides, Resolved,
};
use msprobe_dump::names::{Rank, Step};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{Map, Value};

use crate::framework::Words;

/// What to log, as the level's word and the text.
type Log = Vec<(String, String)>;
/// What to raise: the name of the class, the number of a coded exception, the text.
type Refused = (&'static str, Option<u8>, String);

/// Resolves the text of a `config.json` and the constructor's arguments, a JSON object with `task`, `dump_path`,
/// `level` and `step`, for a framework. Returns the configuration, or what to raise instead, and what to log before either.
#[pyfunction]
pub(crate) fn resolve_config(
    py: Python<'_>,
    text: &str,
    overrides_json: &str,
    framework: Words,
) -> PyResult<(Option<PyConfig>, Log, Option<Refused>)> {
    let (overrides, framework) = (read_overrides(overrides_json)?, framework.read()?);
    Ok(match py.detach(|| Config::from_json(text, &overrides, &framework)) {
        Ok(Resolved { config, log, remarks }) => {
            (Some(PyConfig { inner: config }), lines(remarks, log), None)
        }
        Err(ConfigError { class, code, message, log, remarks }) => {
            (None, lines(remarks, log), Some((class.python_name(), code, message)))
        }
    })
}

fn read_overrides(json: &str) -> PyResult<Overrides> {
    let mut members: Map<String, Value> = serde_json::from_str(json)
        .map_err(|error| PyValueError::new_err(format!("cannot read the arguments: {error}")))?;
    let mut take = |name: &str| members.remove(name).unwrap_or(Value::Null);
    let overrides = Overrides {
        task: take("task"),
        dump_path: take("dump_path"),
        level: take("level"),
        step: take("step"),
    };
    match members.keys().next() {
        None => Ok(overrides),
        Some(name) => Err(PyValueError::new_err(format!("there is no argument {name}"))),
    }
}

fn lines(remarks: Vec<LogLine>, log: Vec<LogLine>) -> Log {
    remarks.into_iter().chain(log).map(|line| (line.level.to_string(), line.text)).collect()
}

/// A configuration that was accepted.
#[pyclass(name = "Config", module = "msprobe._native", frozen)]
#[derive(Debug, Clone)]
pub(crate) struct PyConfig {
    pub(crate) inner: Config,
}

#[pymethods]
impl PyConfig {
    #[getter]
    fn task(&self) -> &'static str {
        self.inner.task.as_str()
    }

    #[getter]
    fn file_task(&self) -> &'static str {
        self.inner.file_task.as_str()
    }

    #[getter]
    fn level(&self) -> &'static str {
        self.inner.level.as_str()
    }

    #[getter]
    fn dump_path(&self) -> &str {
        &self.inner.dump_path
    }

    #[getter]
    fn rank(&self) -> Vec<u32> {
        self.inner.rank.iter().collect()
    }

    #[getter]
    fn step(&self) -> Vec<u32> {
        self.inner.step.iter().collect()
    }

    #[getter]
    fn scope(&self) -> Vec<&str> {
        self.inner.scope.names()
    }

    #[getter]
    fn list(&self) -> &[String] {
        &self.inner.list
    }

    /// `None` for tasks other than statistics.
    #[getter]
    fn tensor_list(&self) -> Option<&[String]> {
        self.inner.tensor_list.as_deref()
    }

    #[getter]
    fn data_mode(&self) -> Vec<&'static str> {
        self.inner.data_mode.members().iter().map(|mode| mode.as_str()).collect()
    }

    #[getter]
    fn summary_mode(&self) -> &'static str {
        self.inner.summary_mode.as_str()
    }

    /// -1 for no end.
    #[getter]
    fn overflow_nums(&self) -> i128 {
        match self.inner.overflow_nums {
            OverflowNums::Unlimited => -1,
            OverflowNums::Times(times) => i128::from(times.get()),
        }
    }

    #[getter]
    fn check_mode(&self) -> Option<&'static str> {
        self.inner.check_mode.map(CheckMode::as_str)
    }

    #[getter]
    fn file_format(&self) -> Option<&'static str> {
        self.inner.file_format.map(FileFormat::as_str)
    }

    #[getter]
    fn enable_dataloader(&self) -> bool {
        self.inner.enable_dataloader
    }

    #[getter]
    fn async_dump(&self) -> bool {
        self.inner.async_dump
    }

    /// What random numbers start from; `None` leaves them alone.
    #[getter]
    fn seed(&self) -> Option<u32> {
        self.inner.seed
    }

    /// Whether torch uses deterministic algorithms only; `None` leaves it as it is.
    #[getter]
    fn is_deterministic(&self) -> Option<bool> {
        self.inner.is_deterministic
    }

    /// Whether records stay in memory until something goes wrong.
    #[getter]
    fn has_flight_recorder(&self) -> bool {
        self.inner.flight_recorder.is_some()
    }

    /// Whether backward records of functions hold the gradients of their inputs.
    #[getter]
    fn input_gradients(&self) -> bool {
        self.inner.input_gradients
    }

    /// Whether each tensor gets a sketch.
    #[getter]
    fn sketch(&self) -> bool {
        self.inner.sketch
    }

    // The online checker's keys, with their defaults for tasks other than tensor.

    #[getter]
    fn online_run_ut(&self) -> bool {
        self.inner.online.as_ref().is_some_and(|online| online.enabled)
    }

    #[getter]
    fn online_run_ut_recompute(&self) -> bool {
        self.inner.online.as_ref().is_some_and(|online| online.recompute)
    }

    #[getter]
    fn nfs_path(&self) -> &str {
        self.inner.online.as_ref().map_or("", |online| &online.nfs_path)
    }

    #[getter]
    fn host(&self) -> &str {
        self.inner.online.as_ref().map_or("", |online| &online.host)
    }

    /// -1 for none.
    #[getter]
    fn port(&self) -> i32 {
        self.inner.online.as_ref().and_then(|online| online.port).map_or(-1, i32::from)
    }

    #[getter]
    fn tls_path(&self) -> &str {
        self.inner.online.as_ref().map_or("./", |online| &online.tls_path)
    }

    /// Whether the gradient of a parameter is recorded; never for tasks other than grad_probe.
    fn wants_parameter(&self, name: &str) -> bool {
        self.inner.grad_probe.as_ref().is_some_and(|probe| probe.wants(name))
    }

    /// Whether a step is collected.
    fn wants_step(&self, step: u64) -> bool {
        self.inner.wants_step(Step(step))
    }

    /// Whether a step lies behind all that are collected.
    fn ends_before(&self, step: u64) -> bool {
        self.inner.ends_before(Step(step))
    }

    /// Whether a rank collects; `None` for a process without one.
    #[pyo3(signature = (rank))]
    fn wants_rank(&self, rank: Option<u32>) -> bool {
        self.inner.wants_rank(Rank(rank))
    }

    /// The same configuration, writing elsewhere.
    fn with_dump_path(&self, dump_path: String) -> PyResult<PyConfig> {
        if dump_path.is_empty() {
            return Err(PyValueError::new_err("dump_path is empty"));
        }
        let mut inner = self.inner.clone();
        inner.dump_path = dump_path;
        Ok(PyConfig { inner })
    }

    fn __repr__(&self) -> String {
        let Config { task, level, dump_path, .. } = &self.inner;
        format!("Config(task={:?}, level={:?}, dump_path={dump_path:?})", task.as_str(), level.as_str())
    }
}
