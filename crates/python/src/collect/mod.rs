//! `msprobe._native.Collector`: the hooks' way into Rust. Each method is one event of the run; none of them raises
//! because of a value, since training must go on: what cannot be recorded is reported to the adapter.

mod adapter;
mod api;
mod autograd;
mod crew;
mod frames;
mod function_gradients;
mod gradient_entry;
mod gradient_flow;
mod gradient_hooks;
mod gradient_sink;
mod gradient_walk;
mod gradient_watch;
mod module;
mod odd;
mod reentrant;
mod session;
mod shared;
mod step;
mod tensors;
mod variable;
mod walk;

use std::sync::{Arc, OnceLock};

use msprobe_dump::write::TensorPool;
use msprobe_tensor::memory::Fund;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

pub(crate) use self::adapter::Kind;
pub(crate) use self::api::{ApiBackward, ApiCall};
pub(crate) use self::gradient_sink::WatchedCall;
pub(crate) use self::gradient_watch::{Boundary, GradientWatch, WatchEntry};
pub(crate) use self::module::{ModuleCall, Modules, ParameterHook};
use self::session::Session;
pub(crate) use self::variable::LeafHook;
use crate::config::PyConfig;

/// Memory for tensors on their way to disk.
const TENSOR_BUDGET_BYTES: usize = 512 << 20;
/// Threads that write tensor files; more do not make a disk faster.
const TENSOR_THREADS: usize = 4;
/// Threads that measure; more than that is more than memory can feed.
const MEASURING_THREADS: usize = 8;

/// A run that is being collected.
#[pyclass(frozen, module = "msprobe._native")]
pub(crate) struct Collector {
    session: Arc<Session>,
    /// Watches functions, where their records are to hold the gradients of their inputs.
    functions: OnceLock<GradientWatch>,
}

#[pymethods]
impl Collector {
    #[new]
    fn new(config: &Bound<'_, PyConfig>, adapter: Bound<'_, PyAny>) -> PyResult<Collector> {
        let py = adapter.py();
        // Without it collection ends as well, only less gently.
        Fund::fill();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = rayon::ThreadPoolBuilder::new()
            .num_threads(cores.min(MEASURING_THREADS))
            .thread_name(|index| format!("msprobe-measure-{index}"))
            .build()
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        let pool = TensorPool::new(cores.min(TENSOR_THREADS), TENSOR_BUDGET_BYTES)?;
        let adapter = adapter::Adapter::new(adapter)?;
        let framework = adapter.framework(py)?;
        let collector = msprobe_collect::Collector::new(config.get().inner.clone(), framework, pool);
        let describe = py.import("msprobe.core.tensor")?.getattr("describe")?.unbind();
        let session = Arc::new(Session::new(collector, adapter, threads, describe));
        Ok(Collector { session, functions: OnceLock::new() })
    }
}

impl Collector {
    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }
}
