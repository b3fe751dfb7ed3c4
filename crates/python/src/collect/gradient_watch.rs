//! The gradients of a module call's outputs and inputs, without touching the autograd graph.
//!
//! torch's full backward hooks put identity nodes around the module. That regroups gradient sums (results are no
//! longer the same bits), makes one tensor passed twice into two tensors, and forbids modules that work in place.
//! Here hooks are put on nodes that are there anyway: before the call the edges of the input tensors are noted, after
//! it the graph is walked from the outputs through the nodes made during the call, and every node with an edge to an
//! input gets a post-hook that picks the gradient flowing along that edge.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::autograd::{Autograd, Ordered, output_number, sequence_number};
use super::gradient_entry::{AtNode, Entry, Inputs, Leaf, running};
use super::gradient_flow::{Border, Call, Station, Tap, Watch};
use super::gradient_hooks::{EdgeHook, LeafTaps, NodeTaps};
use super::gradient_sink::Sink;
use super::gradient_walk::Walk;

/// Watches module calls. One per collector; safe to use from several threads.
#[pyclass(frozen, module = "msprobe._native")]
pub(crate) struct GradientWatch {
    watch: Arc<Watch>,
    /// Under which nodes keep what hangs on them.
    key: Py<PyString>,
    /// Tells watches apart.
    id: u64,
    serials: AtomicU64,
}

#[pymethods]
impl GradientWatch {
    /// `autograd` is the module of that name, `sink` an object that is told what [`Sink`] says.
    #[new]
    fn of_object(py: Python<'_>, autograd: Autograd, sink: Py<PyAny>) -> GradientWatch {
        GradientWatch::new(py, autograd, Sink::Object(sink))
    }

    /// Before the forward call: note where the inputs are. `None` if nothing is to be watched.
    #[pyo3(name = "enter")]
    fn enter_object(&self, args: &Bound<'_, PyAny>) -> Option<WatchEntry> {
        self.enter(args).map(WatchEntry)
    }

    /// Find the way from the outputs to the inputs and hang hooks there. After the forward call.
    #[pyo3(name = "leave")]
    fn leave_object(&self, entry: Option<&WatchEntry>, call: u64, output: &Bound<'_, PyAny>) {
        if let Some(entry) = entry {
            self.leave(&entry.0, call, output);
        }
    }

    /// Is the tensor, as it is, an input of a call running in this thread or an output of a finished one?
    ///
    /// If both, the one that began last: with identity nodes at the borders, that one's would come last.
    pub(crate) fn boundary(&self, tensor: &Bound<'_, PyAny>) -> Option<Boundary> {
        self.find_boundary(tensor).unwrap_or_else(|error| {
            self.watch.sink.failed(tensor.py(), &error);
            None
        })
    }
}

impl GradientWatch {
    pub(crate) fn new(py: Python<'_>, autograd: Autograd, sink: Sink) -> GradientWatch {
        static WATCHES: AtomicU64 = AtomicU64::new(0);
        let id = WATCHES.fetch_add(1, Ordering::Relaxed);
        GradientWatch {
            watch: Arc::new(Watch { autograd, sink, lock: super::reentrant::Lock::default() }),
            key: PyString::new(py, &format!("msprobe.gradient_watch.{id:x}")).unbind(),
            id,
            serials: AtomicU64::new(0),
        }
    }

    pub(crate) fn enter(&self, args: &Bound<'_, PyAny>) -> Option<Arc<Entry>> {
        let entered = match self.watch.autograd.is_grad_enabled(args.py()) {
            Ok(true) => self.noted(args).map(Some),
            Ok(false) => Ok(None),
            Err(error) => Err(error),
        };
        entered.unwrap_or_else(|error| {
            self.watch.sink.failed(args.py(), &error);
            None
        })
    }

    /// As [`GradientWatch::enter`], of a call with arguments by name.
    pub(crate) fn enter_call(
        &self,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
    ) -> Option<Arc<Entry>> {
        if kwargs.is_empty() {
            return self.enter(args);
        }
        match (args, kwargs).into_pyobject(args.py()) {
            Ok(all) => self.enter(&all),
            Err(error) => {
                self.watch.sink.failed(args.py(), &error);
                None
            }
        }
    }

    pub(crate) fn leave(&self, entry: &Arc<Entry>, number: u64, output: &Bound<'_, PyAny>) {
        if let Err(error) = self.hang(entry, number, output) {
            self.watch.sink.failed(output.py(), &error);
        }
    }

    fn noted(&self, args: &Bound<'_, PyAny>) -> PyResult<Arc<Entry>> {
        let py = args.py();
        let autograd = &self.watch.autograd;
        let flat = autograd.flatten(args)?;
        let mut inputs = Inputs::default();
        for (position, tensor) in flat.tensors.iter().enumerate() {
            let node = tensor.getattr(intern!(py, "grad_fn"))?;
            if node.is_none() {
                inputs.leaves.entry(tensor, || Leaf::new(tensor)).positions.push(position);
                continue;
            }
            let number = output_number(tensor)?;
            inputs.edges.entry(&node, || AtNode::new(&node)).places_of(number).push(position);
            if let Some((base, number, region)) = autograd.in_base(tensor)? {
                let place = (number, position, Arc::new(region));
                inputs.bases.entry(&base, || AtNode::new(&base)).places.push(place);
            }
        }
        let leafy = !inputs.leaves.is_empty() || running::last(self.id).is_some_and(|around| around.leafy);
        let serial = self.serials.fetch_add(1, Ordering::Relaxed);
        // Last: asking a view for its node may make one.
        let start = autograd.next_sequence(py)?;
        let call = Arc::new(Call::new(self.watch.clone(), serial, start, flat.tensors.len()));
        let entry = Arc::new(Entry::new(call, inputs, leafy));
        running::push(self.id, &entry);
        Ok(entry)
    }

    fn hang(&self, entry: &Arc<Entry>, number: u64, output: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = output.py();
        let autograd = &self.watch.autograd;
        let around = running::pop(self.id, entry);
        let flat = autograd.flatten(output)?;
        if flat.tensors.is_empty() {
            return Ok(());
        }
        let mut inputs = entry.take_inputs();
        let call = &entry.call;
        let mut nodes: Ordered<Outputs<Bound<'_, PyAny>>> = Ordered::default();
        let mut leaves: Ordered<Outputs<&Bound<'_, PyAny>>> = Ordered::default();
        let mut views = Vec::new();
        for (position, tensor) in flat.tensors.iter().enumerate() {
            let node = tensor.getattr(intern!(py, "grad_fn"))?;
            if node.is_none() {
                leaves.entry(tensor, || (tensor, Vec::new())).1.push((position, 0));
                continue;
            }
            let outputs = &mut nodes.entry(&node, || (node.clone(), Vec::new())).1;
            outputs.push((position, output_number(tensor)?));
            if let Some(base) = autograd.in_base(tensor)? {
                views.push((position, node, base));
            }
        }
        call.ended(number, flat.tensors.len());

        let mut stations = Stations::default();
        for (node, outputs) in &nodes.values {
            let through = passed_through(inputs.edges.get_mut(node.as_ptr()), outputs);
            stations
                .add(node, Station { outputs: outputs.clone(), inputs: through, ..Station::default() })?;
        }
        for (tensor, outputs) in leaves.values {
            let places = inputs.leaves.get_mut(tensor.as_ptr()).map(|leaf| mem::take(&mut leaf.positions));
            let through = places.unwrap_or_default().into_iter().map(|place| (place, 0)).collect();
            let station = Station { outputs, inputs: through, ..Station::default() };
            let station = stations.number(station);
            // A leaf has no node of its own: later calls are over, those around this one are not.
            let below = vec![(None, station.clone())];
            let tap = Tap { call: call.clone(), since: entry.start, station, below };
            self.push_leaf_tap(tensor, tap)?;
        }

        let end = autograd.next_sequence(py)?;
        let is_inside = |at: &&At<'_>| entry.start <= at.sequence && at.sequence < end;
        let roots: Vec<_> = stations.at.iter().filter(is_inside).map(|at| at.node.clone()).collect();
        for (position, node, (base, index, region)) in views {
            // Changed in place later, the view gets a new node; its old one, noted above, does not run.
            let places = inputs.edges.get_mut(base.as_ptr()).and_then(|at| at.find(index));
            let through = places.into_iter().flatten().map(|&place| (place, index)).collect();
            let station = Station {
                outputs: vec![(position, index)],
                inputs: through,
                unless: stations.at.iter().find(|at| at.node.is(&node)).map(|at| at.station.number),
                region: Some(Arc::new(region)),
                ..Station::default()
            };
            stations.add(&base, station)?;
        }
        let ends = stations.at.len();
        let marked = entry.take_marked();
        let walk = Walk::new(self.key.bind(py), entry, &inputs, &marked, end);
        let walked = walk.from(&roots)?;
        for (node, edges) in walked.found.values {
            let inputs = edges
                .iter()
                .flat_map(|(index, places)| places.iter().map(move |&place| (place, *index)))
                .collect();
            // Calls inside have left before, so their hooks are called before: they complete first.
            stations.hook(call, &node, Station { inputs, ..Station::default() })?;
        }
        for (node, place, region) in walked.copied {
            let region = Some(region);
            stations.hook(call, &node, Station { inputs: vec![(place, 0)], region, ..Station::default() })?;
        }

        let mut exits = Some(walked.exits);
        for at in &stations.at[..ends] {
            let here = |other: &At<'_>| other.node.is(&at.node);
            let below = stations
                .at
                .iter()
                .filter(|other| other.sequence < at.sequence || here(other))
                .map(|other| {
                    let node = if here(other) { None } else { Some(other.node.clone().unbind()) };
                    (node, other.station.clone())
                })
                .collect();
            let taps = self.node_taps(&at.node)?;
            let since = at.sequence + 1;
            taps.get().push(Tap { call: call.clone(), since, station: at.station.clone(), below });
            if let Some(around) = &around
                && roots.len() == 1
                && roots[0].is(&at.node)
                && let Some(mut exits) = exits.take()
            {
                for (holder, _) in &mut exits {
                    if holder.as_ref().is_some_and(|holder| holder.is(&at.node)) {
                        *holder = None;
                    }
                }
                taps.get().set_exits(exits);
                around.mark([at.sequence]);
            }
        }
        if let Some(around) = &around
            && roots.len() != 1
        {
            around.mark(marked);
        }
        Ok(())
    }

    fn node_taps<'py>(&self, node: &Bound<'py, PyAny>) -> PyResult<Bound<'py, NodeTaps>> {
        let py = node.py();
        let metadata = node.getattr(intern!(py, "metadata"))?;
        let metadata = metadata.cast::<PyDict>()?;
        if let Some(known) = metadata.get_item(&self.key)? {
            return Ok(known.cast_into()?);
        }
        let taps = Bound::new(py, NodeTaps::new(self.watch.clone()))?;
        metadata.set_item(&self.key, &taps)?;
        node.call_method1(intern!(py, "register_prehook"), (&taps,))?;
        Ok(taps)
    }

    /// The hook of this watch on a leaf.
    fn leaf_taps<'py>(&self, tensor: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, LeafTaps>>> {
        let py = tensor.py();
        let hooks = tensor.getattr(intern!(py, "_backward_hooks"))?;
        if hooks.is_none() {
            return Ok(None);
        }
        for hook in hooks.call_method0(intern!(py, "values"))?.try_iter()? {
            if let Ok(taps) = hook?.cast_into::<LeafTaps>()
                && Arc::ptr_eq(&taps.get().watch, &self.watch)
            {
                return Ok(Some(taps));
            }
        }
        Ok(None)
    }

    fn push_leaf_tap(&self, tensor: &Bound<'_, PyAny>, tap: Tap) -> PyResult<()> {
        let py = tensor.py();
        let taps = match self.leaf_taps(tensor)? {
            Some(taps) => taps,
            None => {
                let taps = Bound::new(py, LeafTaps::new(self.watch.clone()))?;
                let handle = tensor.call_method1(intern!(py, "register_hook"), (&taps,))?;
                taps.get().set_handle(handle.unbind());
                taps
            }
        };
        taps.get().push(tap);
        Ok(())
    }

    fn find_boundary(&self, tensor: &Bound<'_, PyAny>) -> PyResult<Option<Boundary>> {
        let py = tensor.py();
        if !tensor.getattr(intern!(py, "requires_grad"))?.extract::<bool>()? {
            return Ok(None);
        }
        let node = tensor.getattr(intern!(py, "grad_fn"))?;
        let number = output_number(tensor)?;
        let around = running::all(self.id);
        let inside = around.iter().rev().find(|entry| entry.takes(tensor, &node, number));
        let taps = if node.is_none() {
            self.leaf_taps(tensor)?.map(|taps| taps.get().taps().clone())
        } else {
            let metadata = node.getattr(intern!(py, "metadata"))?;
            match metadata.cast::<PyDict>()?.get_item(&self.key)? {
                Some(taps) => Some(taps.cast::<NodeTaps>()?.get().taps().clone()),
                None => None,
            }
        };
        let is_here = |tap: &&Arc<Tap>| tap.station.outputs.iter().any(|&(_, index)| index == number);
        let taps = taps.unwrap_or_default();
        let ended = taps.iter().rev().find(is_here).map(|tap| &tap.call);
        let found = match (ended, inside.map(|entry| &entry.call)) {
            (Some(ended), Some(inside)) if ended.serial <= inside.serial => Some((Border::Inputs, inside)),
            (Some(ended), _) => Some((Border::Outputs, ended)),
            (None, inside) => inside.map(|inside| (Border::Inputs, inside)),
        };
        Ok(found.map(|(border, call)| {
            let watch = self.watch.clone();
            Boundary { watch, border, call: call.clone() }
        }))
    }
}

/// A node or leaf, and the outputs it is the origin of: position, output number.
type Outputs<T> = (T, Vec<(usize, usize)>);

/// A node where gradients of the call pass.
struct At<'py> {
    sequence: u64,
    node: Bound<'py, PyAny>,
    station: Arc<Station>,
}

/// All of them, numbered as they come.
#[derive(Default)]
struct Stations<'py> {
    count: usize,
    at: Vec<At<'py>>,
}

impl<'py> Stations<'py> {
    fn number(&mut self, mut station: Station) -> Arc<Station> {
        station.number = self.count;
        self.count += 1;
        Arc::new(station)
    }

    fn add(&mut self, node: &Bound<'py, PyAny>, station: Station) -> PyResult<Arc<Station>> {
        let station = self.number(station);
        let at = At { sequence: sequence_number(node)?, node: node.clone(), station: station.clone() };
        self.at.push(at);
        Ok(station)
    }

    /// One inside of the call.
    fn hook(&mut self, call: &Arc<Call>, node: &Bound<'py, PyAny>, station: Station) -> PyResult<()> {
        let station = self.add(node, station)?;
        let hook = EdgeHook::new(call.clone(), station);
        node.call_method1(intern!(node.py(), "register_hook"), (hook,))?;
        Ok(())
    }
}

/// Inputs given back unchanged: (position, output number). Their inner edges are struck from the inputs.
///
/// All of such an input's gradient arrives at its producer, what flows through inner edges included.
fn passed_through(
    inputs: Option<&mut AtNode<(usize, Vec<usize>)>>,
    outputs: &[(usize, usize)],
) -> Vec<(usize, usize)> {
    let mut through = Vec::new();
    let Some(inputs) = inputs else { return through };
    for &(_, number) in outputs {
        if let Some(at) = inputs.places.iter().position(|(there, _)| *there == number) {
            let (_, places) = inputs.places.remove(at);
            through.extend(places.into_iter().map(|place| (place, number)));
        }
    }
    through
}

/// A module call that is running.
#[pyclass(frozen, module = "msprobe._native")]
pub(crate) struct WatchEntry(Arc<Entry>);

/// Where a tensor lies on the border of a module call.
#[pyclass(frozen, module = "msprobe._native")]
pub(crate) struct Boundary {
    watch: Arc<Watch>,
    border: Border,
    call: Arc<Call>,
}

#[pymethods]
impl Boundary {
    /// `input` or `output`.
    #[getter]
    fn kind(&self) -> &'static str {
        if self.border == Border::Inputs { "input" } else { "output" }
    }

    /// The number of the call among all calls of modules.
    #[getter]
    fn serial(&self) -> u64 {
        self.call.serial
    }

    /// Call back in every pass: with the input gradients at its end, the output gradients at its begin.
    fn attach(&self, py: Python<'_>, callback: Py<PyAny>) {
        let _held = self.watch.lock.hold(py);
        self.call.attach(self.border, callback);
    }
}
