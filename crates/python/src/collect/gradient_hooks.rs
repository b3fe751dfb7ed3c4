//! The hooks of the gradient watch: what hangs on autograd nodes and leaves, and is called by autograd. What they may
//! refer to is said in [`super::gradient_flow`].

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::gradient_flow::{Call, Station, Tap, Watch};

/// An edge that leaves a call.
pub(crate) struct Edge {
    /// Where it stands in `next_functions` of the node it comes from.
    pub(crate) index: usize,
    pub(crate) target: Py<PyAny>,
    /// The output number of the target.
    pub(crate) number: usize,
    pub(crate) sequence: u64,
}

impl Edge {
    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Edge {
        Edge { target: self.target.clone_ref(py), ..*self }
    }
}

/// Per node of origin (`None`: the node these hang on): the edges there.
pub(crate) type Exits = Vec<(Option<Py<PyAny>>, Vec<Edge>)>;

/// The pre-hook of an output node, shared by all calls that end there.
///
/// A block and its last child share the node. The child finishes first, so it comes first in the list; but backward
/// enters the block first, hence the reverse order.
#[pyclass(frozen, module = "msprobe._native")]
pub(crate) struct NodeTaps {
    watch: Arc<Watch>,
    taps: Mutex<Vec<Arc<Tap>>>,
    exits: Mutex<Option<Arc<Exits>>>,
}

impl NodeTaps {
    pub(crate) fn new(watch: Arc<Watch>) -> NodeTaps {
        NodeTaps { watch, taps: Mutex::default(), exits: Mutex::default() }
    }

    pub(crate) fn push(&self, tap: Tap) {
        self.taps().push(Arc::new(tap));
    }

    pub(crate) fn taps(&self) -> MutexGuard<'_, Vec<Arc<Tap>>> {
        self.taps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn exits(&self) -> Option<Arc<Exits>> {
        self.exits.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_exits(&self, exits: Exits) {
        let exits = Some(Arc::new(exits));
        let before = mem::replace(&mut *self.exits.lock().unwrap_or_else(PoisonError::into_inner), exits);
        drop(before);
    }
}

#[pymethods]
impl NodeTaps {
    fn __call__(&self, grads: &Bound<'_, PyTuple>) {
        let py = grads.py();
        let _held = self.watch.lock.hold(py);
        let mut at = self.taps().len();
        while at > 0 {
            at -= 1;
            let Some(tap) = self.taps().get(at).cloned() else { continue };
            if let Err(error) = tap.call.output_node(&tap, grads) {
                self.watch.sink.failed(py, &error);
            }
        }
    }
}

/// The hook of a leaf that is a module's output.
///
/// A leaf's `AccumulateGrad` node dies whenever no graph uses it, and hooks with it; so this one hangs on the tensor.
/// There it would stay forever: it goes once it has run.
#[pyclass(frozen, module = "msprobe._native")]
pub(crate) struct LeafTaps {
    pub(crate) watch: Arc<Watch>,
    taps: Mutex<Vec<Arc<Tap>>>,
    handle: Mutex<Option<Py<PyAny>>>,
}

/// Forward passes that no backward follows would pile up on a leaf.
const LEAF_TAPS: usize = 64;

impl LeafTaps {
    pub(crate) fn new(watch: Arc<Watch>) -> LeafTaps {
        LeafTaps { watch, taps: Mutex::default(), handle: Mutex::default() }
    }

    /// What takes the hook off the tensor.
    pub(crate) fn set_handle(&self, handle: Py<PyAny>) {
        *self.handle.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle);
    }

    pub(crate) fn taps(&self) -> MutexGuard<'_, Vec<Arc<Tap>>> {
        self.taps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one, after forgetting old ones.
    pub(crate) fn push(&self, tap: Tap) {
        let mut taps = self.taps();
        let too_many = taps.len().saturating_sub(LEAF_TAPS);
        let forgotten: Vec<_> = taps.drain(..too_many).collect();
        taps.push(Arc::new(tap));
        drop(taps);
        drop(forgotten);
    }
}

#[pymethods]
impl LeafTaps {
    fn __call__(&self, grad: &Bound<'_, PyAny>) {
        let py = grad.py();
        let _held = self.watch.lock.hold(py);
        let report = |result: PyResult<()>| result.unwrap_or_else(|error| self.watch.sink.failed(py, &error));
        let handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(handle) = handle {
            report(handle.call_method0(py, intern!(py, "remove")).map(drop));
        }
        let taps = mem::take(&mut *self.taps());
        for tap in taps.iter().rev() {
            report(PyTuple::new(py, [grad]).and_then(|grads| tap.call.output_node(tap, &grads)));
        }
    }
}

/// The post-hook of a node with edges to the inputs of one call.
#[pyclass(frozen, module = "msprobe._native")]
pub(crate) struct EdgeHook {
    call: Arc<Call>,
    station: Arc<Station>,
}

impl EdgeHook {
    pub(crate) fn new(call: Arc<Call>, station: Arc<Station>) -> EdgeHook {
        EdgeHook { call, station }
    }
}

#[pymethods]
impl EdgeHook {
    fn __call__(&self, grad_inputs: &Bound<'_, PyTuple>, _grad_outputs: &Bound<'_, PyAny>) {
        let py = grad_inputs.py();
        let watch = &self.call.watch;
        let _held = watch.lock.hold(py);
        if let Err(error) = self.call.inner_node(&self.station, grad_inputs) {
            watch.sink.failed(py, &error);
        }
    }
}
