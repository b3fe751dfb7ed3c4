//! Module calls that are running, and where their inputs came from.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use msprobe_dump::hash::FastSet;
use pyo3::prelude::*;

use super::autograd::Ordered;
use super::gradient_flow::{Call, Region};

/// What is known about a node.
pub(crate) struct AtNode<P> {
    /// Kept, so that nothing else gets its address.
    _node: Py<PyAny>,
    pub(crate) places: Vec<P>,
}

impl<P> AtNode<P> {
    pub(crate) fn new(node: &Bound<'_, PyAny>) -> AtNode<P> {
        AtNode { _node: node.clone().unbind(), places: Vec::new() }
    }
}

/// The number of an output or edge, and positions of inputs there.
pub(crate) type Places = (usize, Vec<usize>);

impl AtNode<Places> {
    pub(crate) fn find(&self, number: usize) -> Option<&Vec<usize>> {
        self.places.iter().find(|(there, _)| *there == number).map(|(_, places)| places)
    }

    pub(crate) fn places_of(&mut self, number: usize) -> &mut Vec<usize> {
        let at = self.places.iter().position(|(there, _)| *there == number).unwrap_or_else(|| {
            self.places.push((number, Vec::new()));
            self.places.len() - 1
        });
        &mut self.places[at].1
    }
}

/// An input that no node has made.
pub(crate) struct Leaf {
    _tensor: Py<PyAny>,
    pub(crate) positions: Vec<usize>,
}

impl Leaf {
    pub(crate) fn new(tensor: &Bound<'_, PyAny>) -> Leaf {
        Leaf { _tensor: tensor.clone().unbind(), positions: Vec::new() }
    }
}

/// Where the inputs of a call came from.
#[derive(Default)]
pub(crate) struct Inputs {
    pub(crate) edges: Ordered<AtNode<Places>>,
    pub(crate) leaves: Ordered<Leaf>,
    /// Of views, by the node of the base: its output number, the position of the view, where it lies.
    pub(crate) bases: Ordered<AtNode<(usize, usize, Arc<Region>)>>,
}

/// A module call that is running.
pub(crate) struct Entry {
    pub(crate) call: Arc<Call>,
    /// The number its first node got.
    pub(crate) start: u64,
    /// This call or one around it has leaves among its inputs.
    pub(crate) leafy: bool,
    inputs: Mutex<Inputs>,
    /// Sequence numbers of output nodes of calls inside, with known exits.
    marked: Mutex<FastSet<u64>>,
}

impl Entry {
    pub(crate) fn new(call: Arc<Call>, inputs: Inputs, leafy: bool) -> Entry {
        let start = call.begin_sequence;
        Entry { call, start, leafy, inputs: Mutex::new(inputs), marked: Mutex::default() }
    }

    fn inputs(&self) -> MutexGuard<'_, Inputs> {
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take_inputs(&self) -> Inputs {
        mem::take(&mut *self.inputs())
    }

    pub(crate) fn take_marked(&self) -> FastSet<u64> {
        mem::take(&mut *self.marked.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn mark(&self, sequences: impl IntoIterator<Item = u64>) {
        self.marked.lock().unwrap_or_else(PoisonError::into_inner).extend(sequences);
    }

    /// Whether a tensor, which is this output of this node, is an input.
    pub(crate) fn takes(&self, tensor: &Bound<'_, PyAny>, node: &Bound<'_, PyAny>, number: usize) -> bool {
        let inputs = self.inputs();
        inputs.leaves.get(tensor.as_ptr()).is_some()
            || inputs.edges.get(node.as_ptr()).is_some_and(|at| at.find(number).is_some())
    }
}

/// The calls running in this thread, per watch. Weak: a forward that raised never leaves.
pub(crate) mod running {
    use std::cell::RefCell;
    use std::sync::{Arc, Weak};

    use super::Entry;

    thread_local! {
        static RUNNING: RefCell<Vec<(u64, Vec<Weak<Entry>>)>> = const { RefCell::new(Vec::new()) };
    }

    /// Nothing is freed in here but the references themselves.
    fn with<T>(watch: u64, ask: impl FnOnce(&mut Vec<Weak<Entry>>) -> T) -> T {
        RUNNING.with_borrow_mut(|watches| {
            let at = watches.iter().position(|(id, _)| *id == watch).unwrap_or_else(|| {
                watches.push((watch, Vec::new()));
                watches.len() - 1
            });
            let running = &mut watches[at].1;
            while running.last().is_some_and(|last| last.strong_count() == 0) {
                running.pop();
            }
            ask(running)
        })
    }

    pub(crate) fn push(watch: u64, entry: &Arc<Entry>) {
        with(watch, |running| running.push(Arc::downgrade(entry)));
    }

    /// The innermost.
    pub(crate) fn last(watch: u64) -> Option<Arc<Entry>> {
        with(watch, |running| running.last().and_then(Weak::upgrade))
    }

    /// All of them, outermost first.
    pub(crate) fn all(watch: u64) -> Vec<Arc<Entry>> {
        with(watch, |running| running.iter().filter_map(Weak::upgrade).collect())
    }

    /// Removes one, and whatever is inside of it. The one around it.
    pub(crate) fn pop(watch: u64, entry: &Arc<Entry>) -> Option<Arc<Entry>> {
        with(watch, |running| {
            while running.pop().is_some_and(|last| !std::ptr::eq(last.as_ptr(), Arc::as_ptr(entry))) {}
            running.last().and_then(Weak::upgrade)
        })
    }
}
