//! The gradients of what goes into a function and of what comes out of it, whatever autograd nodes it is made of.
//!
//! Without this a function's backward record is what its last autograd node takes and gives, as with the reference. That
//! node is an implementation's own: of `linear`, one device multiplies by a transposed weight, another one flattens
//! its input first. Here functions are watched like modules, and records of two implementations have the same values.

use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use msprobe_collect::{ApiId, Since};
use msprobe_dump::hash::FastMap;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::Collector;
use super::api::{BACKWARD, record_backward};
use super::gradient_flow::{Border, Call};
use super::gradient_sink::Sink;
use super::gradient_watch::GradientWatch;
use super::session::Session;

/// Functions and the numbers of their calls share a number.
const INDEX_BITS: u32 = 40;

pub(crate) fn number_of(api: ApiId, index: u64) -> u64 {
    ((api.0 as u64) << INDEX_BITS) | index
}

fn call_of(number: u64) -> (ApiId, u64) {
    (ApiId((number >> INDEX_BITS) as usize), number & ((1 << INDEX_BITS) - 1))
}

#[pymethods]
impl Collector {
    /// From now on backward records of functions hold the gradients of their outputs and inputs. `autograd` is the
    /// module of that name.
    fn watch_function_gradients(&self, autograd: &Bound<'_, PyAny>) -> PyResult<()> {
        let recorder = FunctionRecorder { session: self.session().clone(), open: Mutex::default() };
        let watch = GradientWatch::new(autograd.py(), autograd.extract()?, Sink::Functions(recorder));
        // The second one would tell the same.
        drop(self.functions.set(watch));
        Ok(())
    }
}

/// Records what is told of functions.
pub(crate) struct FunctionRecorder {
    session: Arc<Session>,
    open: Mutex<FastMap<u64, OpenCall>>,
}

/// A call whose backward pass has begun.
struct OpenCall {
    /// Module calls that began at this autograd node or later are over.
    since: u64,
    outputs: Vec<Option<Py<PyAny>>>,
    inputs: Vec<Option<Py<PyAny>>>,
}

impl FunctionRecorder {
    pub(crate) fn begin(&self, call: &Arc<Call>, since: u64) {
        let nothing = |count: usize| (0..count).map(|_| None).collect();
        let open = OpenCall { since, outputs: nothing(call.outputs()), inputs: nothing(call.inputs) };
        let stale = self.with_open(|all| all.insert(call.number(), open));
        // Freeing tensors may run anything, so not while the lock is held.
        drop(stale);
    }

    pub(crate) fn gradient(&self, number: u64, border: Border, position: usize, gradient: &Bound<'_, PyAny>) {
        let mut gradient = Some(gradient.clone().unbind());
        self.with_open(|all| {
            let Some(open) = all.get_mut(&number) else { return };
            let side = if border == Border::Outputs { &mut open.outputs } else { &mut open.inputs };
            if let Some(slot) = side.get_mut(position) {
                mem::swap(slot, &mut gradient);
            }
        });
    }

    pub(crate) fn complete(&self, py: Python<'_>, number: u64) -> PyResult<()> {
        let Some(open) = self.with_open(|all| all.remove(&number)) else { return Ok(()) };
        let (api, index) = call_of(number);
        let since = Some(Since { sequence: open.since, serial: 0 });
        let (input, output) = (PyTuple::new(py, open.outputs)?, PyTuple::new(py, open.inputs)?);
        record_backward(&self.session, api, index, since, &input, &output);
        Ok(())
    }

    pub(crate) fn failed(&self, py: Python<'_>, error: &PyErr) {
        self.session.adapter.failed(py, BACKWARD, "function", error);
    }

    fn with_open<T>(&self, ask: impl FnOnce(&mut FastMap<u64, OpenCall>) -> T) -> T {
        ask(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
