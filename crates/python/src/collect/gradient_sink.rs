//! Who is told by the gradient watch. Called during backward, maybe from an engine thread, one call at a time.

use std::sync::{Arc, Mutex, PoisonError};

use msprobe_collect::BackwardBegin;
use msprobe_dump::hash::FastSet;
use msprobe_dump::names::Direction;
use pyo3::intern;
use pyo3::prelude::*;

use super::function_gradients::FunctionRecorder;
use super::gradient_flow::{Border, Call};
use super::module::{BACKWARD, pass_of};
use super::session::Session;

pub(crate) enum Sink {
    Recorder(Arc<Recorder>),
    /// Calls of functions.
    Functions(FunctionRecorder),
    /// Any object of Python with methods of these names.
    Object(Py<PyAny>),
}

impl Sink {
    /// The first output node of the module call is about to run.
    ///
    /// Module calls made after this one, at the node number `since` or later, are over.
    pub(crate) fn backward_begin(
        &self,
        py: Python<'_>,
        call: &Arc<Call>,
        task: i64,
        since: u64,
    ) -> PyResult<()> {
        match self {
            Sink::Recorder(recorder) => recorder.backward_begin(py, call, task, since),
            Sink::Functions(recorder) => {
                recorder.begin(call, since);
                Ok(())
            }
            Sink::Object(object) => {
                let call = WatchedCall(call.clone());
                object.call_method1(py, intern!(py, "module_backward_begin"), (call, since)).map(drop)
            }
        }
    }

    /// The gradient of one output, or of one input through this module call; `None` if nothing flows there in this
    /// pass.
    pub(crate) fn gradient(
        &self,
        py: Python<'_>,
        call: u64,
        border: Border,
        position: usize,
        grad: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let of_output = border == Border::Outputs;
        match self {
            Sink::Recorder(recorder) => {
                if let Some(grad) = grad {
                    recorder.session.module_gradient(call, of_output, position, grad);
                }
                Ok(())
            }
            Sink::Functions(recorder) => {
                if let Some(grad) = grad {
                    recorder.gradient(call, border, position, grad);
                }
                Ok(())
            }
            Sink::Object(object) => {
                let name = if of_output {
                    intern!(py, "module_output_grad")
                } else {
                    intern!(py, "module_input_grad")
                };
                object.call_method1(py, name, (call, position, grad)).map(drop)
            }
        }
    }

    /// All gradients of this pass are told.
    pub(crate) fn backward_complete(&self, py: Python<'_>, call: u64) -> PyResult<()> {
        match self {
            Sink::Recorder(recorder) => {
                let is_recording = recorder.is_recording(py)?;
                recorder.session.module_backward_complete(py, call, is_recording);
                Ok(())
            }
            Sink::Functions(recorder) => recorder.complete(py, call),
            Sink::Object(object) => {
                object.call_method1(py, intern!(py, "module_backward_complete"), (call,)).map(drop)
            }
        }
    }

    /// Something went wrong in the watch itself; training goes on, a gradient may be missing. A sink that fails even
    /// there must not stop training either.
    pub(crate) fn failed(&self, py: Python<'_>, error: &PyErr) {
        match self {
            Sink::Recorder(recorder) => recorder.failed(py, error),
            Sink::Functions(recorder) => recorder.failed(py, error),
            Sink::Object(object) => {
                drop(object.call_method1(py, intern!(py, "failed"), (error.value(py),)));
            }
        }
    }
}

/// Records what is told.
pub(crate) struct Recorder {
    session: Arc<Session>,
    /// `open` says whether anything is recorded.
    window: Py<PyAny>,
    /// Has autograd call something at the end of the run it is in.
    at_end: Option<Py<PyAny>>,
    /// Runs of autograd that have begun.
    tasks: Mutex<FastSet<i64>>,
}

impl Recorder {
    pub(crate) fn new(session: Arc<Session>, window: Py<PyAny>, at_end: Option<Py<PyAny>>) -> Recorder {
        Recorder { session, window, at_end, tasks: Mutex::default() }
    }

    pub(crate) fn is_recording(&self, py: Python<'_>) -> PyResult<bool> {
        self.window.bind(py).getattr(intern!(py, "open"))?.extract()
    }

    /// Forgets runs of autograd that raised.
    pub(crate) fn reset(&self) {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn backward_begin(self: &Arc<Self>, py: Python<'_>, call: &Call, task: i64, since: u64) -> PyResult<()> {
        let is_new = self.tasks.lock().unwrap_or_else(PoisonError::into_inner).insert(task);
        if is_new && let Some(at_end) = &self.at_end {
            at_end.bind(py).call1((BackwardOver { recorder: self.clone(), task },))?;
        }
        let begin = BackwardBegin {
            pass: pass_of(call.number(), Direction::Backward),
            task,
            serial: call.serial,
            begin_sequence: call.begin_sequence,
            outputs: call.outputs(),
            inputs: call.inputs,
            recording: self.is_recording(py)?,
        };
        self.session.collector.module_backward_begin(begin, since);
        Ok(())
    }

    fn failed(&self, py: Python<'_>, error: &PyErr) {
        self.session.adapter.failed(py, BACKWARD, "module", error);
    }
}

/// Called by autograd when a run is through.
#[pyclass(frozen, module = "msprobe._native")]
struct BackwardOver {
    recorder: Arc<Recorder>,
    task: i64,
}

#[pymethods]
impl BackwardOver {
    fn __call__(&self, py: Python<'_>) {
        self.recorder.tasks.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.task);
        let session = &self.recorder.session;
        session.collector.backward_over(self.task);
        session.tell(py);
    }
}

/// A module call as objects of Python are told of it.
#[pyclass(frozen, module = "msprobe._native")]
pub(crate) struct WatchedCall(Arc<Call>);

#[pymethods]
impl WatchedCall {
    #[getter]
    fn number(&self) -> u64 {
        self.0.number()
    }

    #[getter]
    fn outputs(&self) -> usize {
        self.0.outputs()
    }

    #[getter]
    fn inputs(&self) -> usize {
        self.0.inputs
    }

    #[getter]
    fn begin_sequence(&self) -> u64 {
        self.0.begin_sequence
    }
}
