//! What a watched module call does during backward, at the nodes it left hooks on.
//!
//! Everything here hangs on autograd nodes and lives exactly as long as the graph. Autograd nodes are invisible to
//! Python's garbage collector, so a reference that leads from a node back to itself would never be freed. The rule
//! that prevents it: what hangs on a node refers only to nodes with a *smaller* sequence number (older ones, from
//! which no edge leads back), and a [`Call`], which all nodes of one module call share, to no node.
//!
//! One lock per watch keeps passes of several threads apart (see [`Lock`]). The mutexes of single fields are held for
//! a few instructions at a time, in which nothing of Python's is called or freed.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::autograd::Autograd;
use super::gradient_sink::Sink;
use super::reentrant::Lock;

/// What all calls of one watch share.
pub(crate) struct Watch {
    pub(crate) autograd: Autograd,
    pub(crate) sink: Sink,
    pub(crate) lock: Lock,
}

/// Where a view lies in its base, to find the view's gradient in that of the base.
pub(crate) struct Region {
    pub(crate) size: Py<PyAny>,
    pub(crate) stride: Py<PyAny>,
    pub(crate) offset: i64,
    pub(crate) base_size: Py<PyAny>,
    pub(crate) base_stride: Py<PyAny>,
}

impl Region {
    fn of<'py>(&self, autograd: &Autograd, grad: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = grad.py();
        let _no_grad = autograd.no_grad(py)?;
        let grad = if autograd.stride(&grad)?.eq(&self.base_stride)? {
            grad
        } else {
            let plain = autograd.empty_strided_like(&self.base_size, &self.base_stride, &grad)?;
            autograd.copy(&plain, &grad)?
        };
        let offset = autograd.storage_offset(&grad)? + self.offset;
        autograd.as_strided(&grad, &self.size, &self.stride, offset)
    }
}

/// A node where gradients of a call pass: which of its gradients belong to which positions.
///
/// With a region, the gradient is that of a base, and the output (after the node, the input) a view of it.
#[derive(Default)]
pub(crate) struct Station {
    /// Stations of a call are numbered.
    pub(crate) number: usize,
    /// Position among outputs, index in the node's gradients.
    pub(crate) outputs: Vec<(usize, usize)>,
    /// Position among inputs, index in the node's gradients.
    pub(crate) inputs: Vec<(usize, usize)>,
    /// The station stands in for the one of this number, if that one does not run.
    pub(crate) unless: Option<usize>,
    pub(crate) region: Option<Arc<Region>>,
}

impl Station {
    /// The gradient at one index, of the view if there is one.
    fn gradient<'py>(
        &self,
        autograd: &Autograd,
        grads: &Bound<'py, PyTuple>,
        index: usize,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let grad = grads.get_item(index)?;
        match &self.region {
            _ if grad.is_none() => Ok(None),
            Some(region) => region.of(autograd, grad).map(Some),
            None => Ok(Some(grad)),
        }
    }
}

/// A call's part in an output node. `below`: its stations here (`None` for the node) and at older nodes.
///
/// The outputs of one call thus keep each other's graphs alive, as they do with full backward hooks. Later calls that
/// began at the node number `since` are over when it runs.
pub(crate) struct Tap {
    pub(crate) call: Arc<Call>,
    pub(crate) since: u64,
    pub(crate) station: Arc<Station>,
    pub(crate) below: Vec<(Option<Py<PyAny>>, Arc<Station>)>,
}

/// One call of a module: numbers only, and gradients no longer than until they are told.
pub(crate) struct Call {
    pub(crate) watch: Arc<Watch>,
    pub(crate) serial: u64,
    pub(crate) begin_sequence: u64,
    pub(crate) inputs: usize,
    pass: Mutex<Pass>,
}

type Gradients = Vec<Option<Py<PyAny>>>;

/// How far a call is. Outside of any run of autograd the task is -1.
#[derive(Default)]
struct Pass {
    number: u64,
    outputs: usize,
    /// The run of autograd.
    task: i64,
    /// What is known of each station in this run.
    marks: Vec<u8>,
    /// How many expected stations have not run yet.
    open: isize,
    open_outputs: isize,
    /// Per input: edges still to come, and the sum of what came.
    left: Vec<isize>,
    sums: Gradients,
    on_inputs: Vec<Py<PyAny>>,
    on_outputs: Vec<Py<PyAny>>,
    kept_inputs: Option<Gradients>,
    kept_outputs: Option<Gradients>,
}

const EXPECTED: u8 = 1;
const FIRED: u8 = 2;

impl Pass {
    fn marks(&self, station: usize) -> u8 {
        self.marks.get(station).copied().unwrap_or(0)
    }

    fn mark(&mut self, station: usize, mark: u8) {
        if self.marks.len() <= station {
            self.marks.resize(station + 1, 0);
        }
        self.marks[station] |= mark;
    }
}

/// A side of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Border {
    Inputs,
    Outputs,
}

impl Call {
    pub(crate) fn new(watch: Arc<Watch>, serial: u64, begin_sequence: u64, inputs: usize) -> Call {
        let pass = Mutex::new(Pass { task: -1, ..Pass::default() });
        Call { watch, serial, begin_sequence, inputs, pass }
    }

    fn pass(&self) -> MutexGuard<'_, Pass> {
        self.pass.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The forward call is over.
    pub(crate) fn ended(&self, number: u64, outputs: usize) {
        let mut pass = self.pass();
        (pass.number, pass.outputs) = (number, outputs);
    }

    pub(crate) fn number(&self) -> u64 {
        self.pass().number
    }

    pub(crate) fn outputs(&self) -> usize {
        self.pass().outputs
    }

    /// Has `callback` called in every pass, with the gradients of one side once all of them are known.
    pub(crate) fn attach(&self, border: Border, callback: Py<PyAny>) {
        let mut pass = self.pass();
        match border {
            Border::Inputs => pass.on_inputs.push(callback),
            Border::Outputs => pass.on_outputs.push(callback),
        }
    }

    /// An output node is about to run.
    pub(crate) fn output_node(self: &Arc<Self>, tap: &Tap, grads: &Bound<'_, PyTuple>) -> PyResult<()> {
        let py = grads.py();
        let task = self.watch.autograd.task(py)?;
        let station = &*tap.station;
        let (is_first, is_expected) = {
            let pass = self.pass();
            let is_first = pass.task != task;
            if !is_first && station.unless.is_some_and(|other| pass.marks(other) != 0) {
                return Ok(());
            }
            (is_first, !is_first && pass.marks(station.number) & EXPECTED != 0)
        };
        if is_first {
            self.begin(py, task, tap.since)?;
        }
        if !is_expected {
            self.expect(py, tap)?;
        }
        self.pass().mark(station.number, FIRED);
        for &(position, index) in &station.outputs {
            let grad = station.gradient(&self.watch.autograd, grads, index)?;
            self.tell(py, Border::Outputs, position, grad)?;
        }
        if is_first {
            self.tell_absent(py, tap)?;
        }
        let mut pass = self.pass();
        pass.open_outputs -= 1;
        let kept = if pass.open_outputs == 0 { pass.kept_outputs.take() } else { None };
        drop(pass);
        if let Some(kept) = kept {
            self.call_back(py, Border::Outputs, kept)?;
        }
        self.arrived(station, grads)
    }

    /// A node with edges to inputs of the call has run.
    pub(crate) fn inner_node(&self, station: &Station, grads: &Bound<'_, PyTuple>) -> PyResult<()> {
        let task = self.watch.autograd.task(grads.py())?;
        let mut pass = self.pass();
        if pass.task != task {
            return Ok(()); // this pass came in from aside, past the outputs
        }
        pass.mark(station.number, FIRED);
        let is_expected = pass.marks(station.number) & EXPECTED != 0;
        drop(pass);
        if is_expected { self.arrived(station, grads) } else { Ok(()) }
    }

    fn begin(self: &Arc<Self>, py: Python<'_>, task: i64, since: u64) -> PyResult<()> {
        let nothing = |count| std::iter::repeat_with(|| None).take(count).collect::<Gradients>();
        let mut pass = self.pass();
        pass.task = task;
        pass.marks.clear();
        (pass.open, pass.open_outputs) = (0, 0);
        pass.left.clear();
        pass.left.resize(self.inputs, 0);
        let kept_inputs = (!pass.on_inputs.is_empty()).then(|| nothing(self.inputs));
        let kept_outputs = (!pass.on_outputs.is_empty()).then(|| nothing(pass.outputs));
        let before = (
            mem::replace(&mut pass.sums, nothing(self.inputs)),
            mem::replace(&mut pass.kept_inputs, kept_inputs),
            mem::replace(&mut pass.kept_outputs, kept_outputs),
        );
        drop(pass);
        // Left by a pass that did not come to its end.
        drop(before);
        self.watch.sink.backward_begin(py, self, task, since)
    }

    /// Count what will run in this pass.
    ///
    /// The engine runs nodes from the largest sequence number down, so the first output node to run is the largest of
    /// all that will, and everything else that will run is among the smaller ones it knows.
    fn expect(&self, py: Python<'_>, tap: &Tap) -> PyResult<()> {
        for (node, station) in &tap.below {
            let is_known = {
                let pass = self.pass();
                pass.marks(station.number) != 0 || station.unless.is_some_and(|other| pass.marks(other) != 0)
            };
            if is_known {
                continue;
            }
            if let Some(node) = node
                && !self.watch.autograd.will_run(node.bind(py))?
            {
                continue;
            }
            let mut pass = self.pass();
            pass.mark(station.number, EXPECTED);
            pass.open += 1;
            if !station.outputs.is_empty() {
                pass.open_outputs += 1;
            }
            for &(position, _) in &station.inputs {
                if let Some(left) = pass.left.get_mut(position) {
                    *left += 1;
                }
            }
        }
        Ok(())
    }

    fn tell_absent(&self, py: Python<'_>, tap: &Tap) -> PyResult<()> {
        let outputs = self.outputs();
        if outputs > tap.station.outputs.len() {
            let mut is_coming = vec![false; outputs];
            {
                let pass = self.pass();
                for (_, station) in &tap.below {
                    if pass.marks(station.number) & EXPECTED != 0 {
                        for &(position, _) in &station.outputs {
                            is_coming[position] = true;
                        }
                    }
                }
            }
            for position in (0..outputs).filter(|&position| !is_coming[position]) {
                self.tell(py, Border::Outputs, position, None)?;
            }
        }
        for position in 0..self.inputs {
            if self.pass().left.get(position) == Some(&0) {
                self.tell(py, Border::Inputs, position, None)?;
            }
        }
        Ok(())
    }

    fn arrived(&self, station: &Station, grads: &Bound<'_, PyTuple>) -> PyResult<()> {
        let py = grads.py();
        let autograd = &self.watch.autograd;
        for &(position, index) in &station.inputs {
            let grad = station.gradient(autograd, grads, index)?;
            let before =
                self.pass().sums.get(position).and_then(|sum| sum.as_ref().map(|sum| sum.clone_ref(py)));
            let grad = match (before, grad) {
                // Order of arrival, as in the engine's own buffers: the same bits as a full backward hook.
                (Some(before), Some(grad)) => {
                    let _no_grad = autograd.no_grad(py)?;
                    Some(autograd.add(before.bind(py), &grad)?)
                }
                (Some(before), None) => Some(before.into_bound(py)),
                (None, grad) => grad,
            };
            let (is_last, before) = {
                let mut pass = self.pass();
                let left = pass.left.get_mut(position).map_or(0, |left| {
                    *left -= 1;
                    *left
                });
                let sum = if left == 0 { None } else { grad.as_ref().map(|grad| grad.clone().unbind()) };
                (left == 0, pass.sums.get_mut(position).and_then(|slot| mem::replace(slot, sum)))
            };
            drop(before);
            if is_last {
                self.tell(py, Border::Inputs, position, grad)?;
            }
        }
        let mut pass = self.pass();
        pass.open -= 1;
        if pass.open != 0 {
            return Ok(());
        }
        let number = pass.number;
        drop(pass);
        self.watch.sink.backward_complete(py, number)?;
        let kept = self.pass().kept_inputs.take();
        match kept {
            Some(kept) => self.call_back(py, Border::Inputs, kept),
            None => Ok(()),
        }
    }

    fn tell(
        &self,
        py: Python<'_>,
        border: Border,
        position: usize,
        grad: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let mut pass = self.pass();
        let number = pass.number;
        let kept = match border {
            Border::Inputs => &mut pass.kept_inputs,
            Border::Outputs => &mut pass.kept_outputs,
        };
        let slot = kept.as_mut().and_then(|kept| kept.get_mut(position));
        let before =
            slot.and_then(|slot| mem::replace(slot, grad.as_ref().map(|grad| grad.clone().unbind())));
        drop(pass);
        drop(before);
        self.watch.sink.gradient(py, number, border, position, grad.as_ref())
    }

    fn call_back(&self, py: Python<'_>, border: Border, kept: Gradients) -> PyResult<()> {
        let callbacks: Vec<_> = {
            let pass = self.pass();
            let callbacks = if border == Border::Inputs { &pass.on_inputs } else { &pass.on_outputs };
            callbacks.iter().map(|callback| callback.clone_ref(py)).collect()
        };
        let kept = PyList::new(py, kept)?;
        for callback in callbacks {
            callback.call1(py, (&kept,))?;
        }
        Ok(())
    }
}
