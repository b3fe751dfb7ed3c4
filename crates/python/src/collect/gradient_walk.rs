//! The way from a module call's outputs to its inputs.

use std::sync::Arc;

use msprobe_dump::hash::{FastMap, FastSet};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::autograd::{ACCUMULATE, Ordered, sequence_number};
use super::gradient_entry::{Entry, Inputs, Places};
use super::gradient_flow::Region;
use super::gradient_hooks::{Edge, Exits, NodeTaps};

/// Finds it. Only nodes made during the call are entered.
///
/// A call inside that has one output node has left its exits there: they are taken instead of walking it once more,
/// so a node is seen about once however deep modules are nested. Exits to parameters are left out unless a call around
/// has a leaf as input.
pub(crate) struct Walk<'a, 'py> {
    key: &'a Bound<'py, PyString>,
    entry: &'a Entry,
    inputs: &'a Inputs,
    marked: &'a FastSet<u64>,
    end: u64,
    todo: Vec<Bound<'py, PyAny>>,
    seen: FastMap<usize, Bound<'py, PyAny>>,
    walked: Walked<'py>,
}

/// What was found.
#[derive(Default)]
pub(crate) struct Walked<'py> {
    /// Nodes with edges to the inputs: per edge, its index in `next_functions` and the positions of inputs.
    pub(crate) found: Ordered<(Bound<'py, PyAny>, Vec<Places>)>,
    /// Nodes that copy into the base of an input: the position of the input, and where it lies.
    pub(crate) copied: Vec<(Bound<'py, PyAny>, usize, Arc<Region>)>,
    /// All edges that leave.
    pub(crate) exits: Exits,
}

impl<'a, 'py> Walk<'a, 'py> {
    pub(crate) fn new(
        key: &'a Bound<'py, PyString>,
        entry: &'a Entry,
        inputs: &'a Inputs,
        marked: &'a FastSet<u64>,
        end: u64,
    ) -> Walk<'a, 'py> {
        let (todo, seen) = (Vec::new(), FastMap::default());
        Walk { key, entry, inputs, marked, end, todo, seen, walked: Walked::default() }
    }

    pub(crate) fn from(mut self, roots: &[Bound<'py, PyAny>]) -> PyResult<Walked<'py>> {
        for root in roots {
            self.seen.insert(root.as_ptr() as usize, root.clone());
            self.todo.push(root.clone());
        }
        while let Some(node) = self.todo.pop() {
            let py = node.py();
            match self.known_exits(&node)? {
                Some(exits) => {
                    for (holder, edges) in &*exits {
                        let holder = holder.as_ref().map_or(&node, |holder| holder.bind(py));
                        self.follow(holder, edges.iter().map(|edge| Ok(edge.clone_ref(py))))?;
                    }
                }
                None => {
                    let next = node.getattr(intern!(py, "next_functions"))?;
                    let next = next.cast::<PyTuple>()?;
                    let edges = next.iter().enumerate().filter_map(|(index, edge)| edge_of(index, &edge));
                    self.follow(&node, edges)?;
                }
            }
        }
        Ok(self.walked)
    }

    /// What a call inside has left at its only output node.
    fn known_exits(&self, node: &Bound<'py, PyAny>) -> PyResult<Option<Arc<Exits>>> {
        if self.marked.is_empty() || !self.marked.contains(&sequence_number(node)?) {
            return Ok(None);
        }
        let metadata = node.getattr(intern!(node.py(), "metadata"))?;
        Ok(match metadata.cast::<PyDict>()?.get_item(self.key)? {
            Some(taps) => taps.cast::<NodeTaps>()?.get().exits(),
            None => None,
        })
    }

    fn follow(
        &mut self,
        holder: &Bound<'py, PyAny>,
        edges: impl Iterator<Item = PyResult<Edge>>,
    ) -> PyResult<()> {
        let py = holder.py();
        let mut leaving = Vec::new();
        for edge in edges {
            let edge = edge?;
            let target = edge.target.bind(py);
            let places = if edge.sequence == ACCUMULATE {
                if !self.entry.leafy {
                    continue;
                }
                if self.inputs.leaves.is_empty() {
                    None
                } else {
                    let variable = target.getattr(intern!(py, "variable"))?;
                    self.inputs.leaves.get(variable.as_ptr()).map(|leaf| &leaf.positions)
                }
            } else {
                self.inputs.edges.get(target.as_ptr()).and_then(|at| at.find(edge.number))
            };
            if let Some(places) = places.filter(|places| !places.is_empty()) {
                let found = &mut self.walked.found.entry(holder, || (holder.clone(), Vec::new())).1;
                match found.iter_mut().find(|(index, _)| *index == edge.index) {
                    Some((_, known)) => known.clone_from(places),
                    None => found.push((edge.index, places.clone())),
                }
            } else if self.entry.start <= edge.sequence && edge.sequence < self.end {
                if self.seen.insert(target.as_ptr() as usize, target.clone()).is_none() {
                    self.todo.push(target.clone());
                }
                continue;
            } else if let Some(bases) = self.inputs.bases.get(target.as_ptr())
                && holder.get_type().name()? == "CopySlices"
            {
                // A view changed in place: the change is recorded at its base.
                for (_, place, region) in bases.places.iter().filter(|(wanted, ..)| *wanted == edge.number) {
                    let region = region.clone();
                    let copied = &mut self.walked.copied;
                    match copied.iter_mut().find(|(node, at, _)| node.is(holder) && at == place) {
                        Some(known) => known.2 = region,
                        None => copied.push((holder.clone(), *place, region)),
                    }
                }
            }
            leaving.push(edge);
        }
        if !leaving.is_empty() {
            self.walked.exits.push((Some(holder.clone().unbind()), leaving));
        }
        Ok(())
    }
}

/// An edge of `next_functions`, if it leads anywhere.
fn edge_of(index: usize, edge: &Bound<'_, PyAny>) -> Option<PyResult<Edge>> {
    let read = || {
        let edge = edge.cast::<PyTuple>()?;
        let target = edge.get_item(0)?;
        if target.is_none() {
            return Ok(None);
        }
        let (number, sequence) = (edge.get_item(1)?.extract()?, sequence_number(&target)?);
        Ok(Some(Edge { index, target: target.unbind(), number, sequence }))
    };
    read().transpose()
}
