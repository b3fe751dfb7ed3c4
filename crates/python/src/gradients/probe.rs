//! `msprobe._native.GradientProbe`: what a framework's adapter hands over before an optimizer takes its step.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use msprobe_dump::grad_probe::{self, GradientWriter, Kept};
use msprobe_dump::names::{Rank, Step};
use msprobe_tensor::on_this_thread;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use rayon::ThreadPool;

use crate::config::PyConfig;
use crate::tensor::Described;

/// Memory for directions on their way to disk, one byte per element.
const BUDGET_BYTES: usize = 256 << 20;
/// Threads that measure; more than that is more than memory can feed.
const MEASURING_THREADS: usize = 8;
/// Below this many elements, waking other threads costs more than it saves.
const PARALLEL_ELEMENTS: usize = 512 << 10;

/// Records gradients step by step. Nothing here raises because of a value or of the disk.
#[pyclass(frozen, module = "msprobe._native")]
pub(crate) struct GradientProbe {
    shared: Arc<Shared>,
}

struct Shared {
    writer: GradientWriter,
    /// Own threads: those of a process-wide pool are gone in a forked child.
    threads: ThreadPool,
}

/// A step being recorded.
#[pyclass(frozen, module = "msprobe._native")]
pub(crate) struct GradientStep {
    shared: Arc<Shared>,
    step: Mutex<grad_probe::GradientStep>,
}

#[pymethods]
impl GradientProbe {
    #[new]
    fn new(config: &Bound<'_, PyConfig>) -> PyResult<GradientProbe> {
        let config = &config.get().inner;
        let Some(settings) = config.grad_probe.clone() else {
            return Err(PyValueError::new_err(format!("the task is {}, not grad_probe", config.task)));
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = rayon::ThreadPoolBuilder::new()
            .num_threads(cores.min(MEASURING_THREADS))
            .thread_name(|index| format!("msprobe-gradient-{index}"))
            .build()
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        let writer = GradientWriter::new(settings, PathBuf::from(&config.dump_path), BUDGET_BYTES)?;
        Ok(GradientProbe { shared: Arc::new(Shared { writer, threads }) })
    }

    /// Begins a step. `None` when nothing is written any more.
    fn begin(&self, py: Python<'_>, rank: u32, step: u64) -> Option<GradientStep> {
        let begun = py.detach(|| self.shared.writer.begin(Rank(Some(rank)), Step(step)))?;
        Some(GradientStep { shared: Arc::clone(&self.shared), step: Mutex::new(begun) })
    }

    /// Waits until everything is on disk.
    fn flush(&self, py: Python<'_>) {
        py.detach(|| self.shared.writer.flush());
    }

    /// Why nothing is written any more, the first time it is asked after that happened.
    fn take_failure(&self) -> Option<String> {
        self.shared.writer.take_failure().map(|failure| failure.to_string())
    }
}

#[pymethods]
impl GradientStep {
    /// Where the summary is written.
    #[getter]
    fn csv_path(&self) -> PathBuf {
        self.lock().csv_path().to_owned()
    }

    /// Whether an earlier run left a summary there.
    #[getter]
    fn replaces(&self) -> bool {
        self.lock().replaces()
    }

    /// Measures the gradient of the parameter at this position of the model. Returns what there is to warn about.
    fn add(
        &self,
        py: Python<'_>,
        position: usize,
        name: &str,
        gradient: &Bound<'_, PyAny>,
    ) -> PyResult<Option<String>> {
        let described: Described = gradient.extract()?;
        let view = described.view()?;
        let add = || self.shared.writer.add(&mut self.lock(), position, name, &view);
        let kept = match view.numel() {
            numel if numel < PARALLEL_ELEMENTS => py.detach(|| on_this_thread(add)),
            _ => py.detach(|| self.shared.threads.install(add)),
        };
        Ok(match kept {
            Kept::All | Kept::Nothing => None,
            Kept::NoFigures => Some(
                "it is complex, and complex numbers have no largest one: the row has no figures".to_owned(),
            ),
            Kept::NoDirections(error) => Some(format!("its directions are not saved: {error}")),
        })
    }

    /// Has the summary written, again if there are more rows than the last time.
    fn finish(&self, py: Python<'_>) {
        py.detach(|| self.shared.writer.finish(&self.lock()));
    }
}

impl GradientStep {
    fn lock(&self) -> std::sync::MutexGuard<'_, grad_probe::GradientStep> {
        self.step.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
