//! Nodes one after the other with all that is shown of them, made on several threads a portion at a time.

use rayon::prelude::*;

use crate::compare::{Comparer, Index, KnownValues, NodeResult, worst_of_collection};
use crate::graph::{Graph, NodeReader};
use crate::hierarchy::NodeIndex;
use crate::matching::Links;
use crate::overflow::{OverflowLevel, overflow_level};
use crate::values::SharedValues;

/// So many nodes are made at a time, while as many are written.
const PORTION: usize = 1024;

/// The other side, for those who compare.
#[derive(Clone, Copy)]
pub struct Against<'g> {
    /// The golden graph.
    pub golden: &'g Graph,
    /// Partners.
    pub links: &'g Links,
    /// How nodes are compared.
    pub comparer: &'g Comparer,
    /// Values of the golden graph that were read already.
    pub known: Option<&'g KnownValues>,
}

/// A graph that is gone through.
#[derive(Clone, Copy)]
pub struct Walk<'g> {
    /// The graph.
    pub graph: &'g Graph,
    /// What its nodes are compared with; nothing where a graph is only shown.
    pub against: Option<Against<'g>>,
    /// Whether NaN, infinities and jumps are looked for.
    pub overflow_check: bool,
}

/// A node with all that is shown of it.
#[derive(Debug)]
pub struct Shown {
    /// The node.
    pub index: NodeIndex,
    /// Its values.
    pub values: SharedValues,
    /// What comparing it gave.
    pub result: NodeResult,
    /// How alarming it is.
    pub overflow: Option<OverflowLevel>,
}

impl Walk<'_> {
    /// One node; that of a collection has no index yet.
    pub fn node(&self, index: NodeIndex, reader: &mut NodeReader) -> Shown {
        let partner = self.against.and_then(|it| Some((it, it.links.to_golden[index as usize]?)));
        let (values, result) = match partner {
            Some((against, partner)) => {
                let (target, golden) = ((self.graph, index), (against.golden, partner));
                against.comparer.compare_nodes(target, golden, against.known, reader)
            }
            None => (self.graph.values(index, reader), NodeResult::default()),
        };
        let overflow = if self.overflow_check {
            let name = &self.graph.hierarchy.node(index).name;
            self.graph.text(index, reader).and_then(|text| overflow_level(name, text))
        } else {
            None
        };
        Shown { index, values, result, overflow }
    }

    /// Shows all nodes to `each`, in this order, with what `make` made of them on any thread; `make` may take away what
    /// `each` has no use for. Children that are functions must come before what they were put together in.
    pub fn each<T: Send, E>(
        &self,
        order: &[NodeIndex],
        make: impl Fn(&mut Shown) -> T + Sync,
        mut each: impl FnMut(Shown, T) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut indexes: Vec<Option<Index>> = vec![None; self.graph.hierarchy.nodes.len()];
        let mut portions = order.chunks(PORTION);
        let mut made = portions.next().map(|portion| self.make(portion, &make)).unwrap_or_default();
        while !made.is_empty() {
            let mut next = Vec::new();
            // The next portion is made while this one is written: neither waits for the other for long.
            rayon::in_place_scope(|scope| {
                if let Some(portion) = portions.next() {
                    scope.spawn(|_| next = self.make(portion, &make));
                }
                made.drain(..).try_for_each(|(mut shown, made)| {
                    let node = self.graph.hierarchy.node(shown.index);
                    if let Some(against) = self.against.filter(|_| node.kind.is_collection()) {
                        let children = node.children.iter().filter_map(|&child| indexes[child as usize]);
                        let (task, generation) = (against.comparer.task, against.comparer.generation);
                        shown.result.index = Some(worst_of_collection(task, generation, children));
                    }
                    indexes[shown.index as usize] = shown.result.index;
                    each(shown, made)
                })
            })?;
            made = next;
        }
        Ok(())
    }

    fn make<T: Send>(
        &self,
        portion: &[NodeIndex],
        make: &(impl Fn(&mut Shown) -> T + Sync),
    ) -> Vec<(Shown, T)> {
        let one = |reader: &mut NodeReader, &index: &NodeIndex| {
            let mut shown = self.node(index, reader);
            let made = make(&mut shown);
            (shown, made)
        };
        portion.par_iter().with_min_len(64).map_init(NodeReader::default, one).collect()
    }

    /// What peers on other ranks are told about a node.
    pub fn told_to_peers(&self, index: NodeIndex, reader: &mut NodeReader) -> String {
        let shown = self.node(index, reader);
        let text = if self.overflow_check {
            shown.overflow.map(|level| level.as_str().to_owned())
        } else {
            shown.result.index.map(|index| index.to_string())
        };
        text.unwrap_or_else(|| "Nan".to_owned())
    }
}
