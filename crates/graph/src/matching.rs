//! Which node of the target belongs to which of the golden side.

use std::collections::HashMap;

use msprobe_compare::side::{Leaf, Side};
use msprobe_dump::hash::FastMap;
use rayon::prelude::*;

use crate::graph::{Graph, NodeReader};
use crate::hierarchy::{Hierarchy, NodeIndex};
use crate::names::{Generation, NodeKind, without_counts};
use crate::values::shown;

/// How partners are found.
#[derive(Debug, Clone)]
pub enum Matching {
    /// By name and place; in the first generation, by the form of all values too.
    Exact,
    /// Modules by name, the functions in them by their order.
    Fuzzy,
    /// By a mapping of names; what it does not name, by name.
    Mapped(HashMap<String, Option<String>>),
}

/// Partners of the nodes of both sides.
#[derive(Debug, Clone, Default)]
pub struct Links {
    /// Of each node of the target.
    pub to_golden: Vec<Option<NodeIndex>>,
    /// Of each node of the golden side.
    pub to_target: Vec<Option<NodeIndex>>,
}

impl Links {
    fn new(target: &Hierarchy, golden: &Hierarchy) -> Links {
        Links { to_golden: vec![None; target.nodes.len()], to_target: vec![None; golden.nodes.len()] }
    }

    fn link(&mut self, target: NodeIndex, golden: NodeIndex) {
        self.to_golden[target as usize] = Some(golden);
        self.to_target[golden as usize] = Some(target);
    }
}

/// Finds the partners of all nodes of the target. Where both dumps were read for the comparison engine, their records are
/// not read again.
pub fn match_nodes(
    target: &Graph,
    golden: &Graph,
    matching: &Matching,
    generation: Generation,
    sides: Option<(&Side, &Side)>,
) -> Links {
    let mut links = Links::new(&target.hierarchy, &golden.hierarchy);
    let sides = sides.filter(|_| generation == Generation::First);
    let matcher = Matcher {
        target: Leaves::new(target, sides.map(|(target, _)| target)),
        golden: Leaves::new(golden, sides.map(|(_, golden)| golden)),
        generation,
    };
    match matching {
        Matching::Exact => matcher.by_name_and_place(&mut links),
        Matching::Fuzzy => matcher.fuzzily(&mut links),
        Matching::Mapped(names) => {
            for index in target.hierarchy.level_order() {
                let name = &*target.hierarchy.node(index).name;
                let partner = match names.get(name) {
                    Some(partner) => partner.as_deref(),
                    None => Some(name),
                };
                if let Some(partner) = partner.and_then(|partner| golden.hierarchy.find(partner)) {
                    links.link(index, partner);
                }
            }
        }
    }
    links
}

/// The values of the nodes of a graph, as far as their form goes.
struct Leaves<'g> {
    graph: &'g Graph,
    /// Its dump, and its records by name, where it was read as a whole.
    side: Option<(&'g Side, FastMap<&'g str, usize>)>,
}

impl<'g> Leaves<'g> {
    fn new(graph: &'g Graph, side: Option<&'g Side>) -> Leaves<'g> {
        let by_name = |side: &'g Side| {
            side.records.iter().enumerate().map(|(at, record)| (&*record.name, at)).collect()
        };
        Leaves { graph, side: side.map(|side| (side, by_name(side))) }
    }

    /// Asks something of the leaves of a node.
    fn with<T>(&self, node: NodeIndex, reader: &mut NodeReader, ask: impl FnOnce(&[&Leaf]) -> T) -> T {
        match &self.side {
            Some((side, by_name)) => {
                let name = &*self.graph.hierarchy.node(node).name;
                let record = by_name.get(name).filter(|_| node != Hierarchy::ROOT);
                let rows = record.map_or(&[][..], |&record| side.rows_of(record));
                ask(&rows.iter().collect::<Vec<_>>())
            }
            None => {
                let values = self.graph.values(node, reader);
                ask(&values.iter().map(|value| &value.leaf).collect::<Vec<_>>())
            }
        }
    }
}

/// One for each side.
type Readers = (NodeReader, NodeReader);

struct Matcher<'g> {
    target: Leaves<'g>,
    golden: Leaves<'g>,
    generation: Generation,
}

impl Matcher<'_> {
    fn by_name_and_place(&self, links: &mut Links) {
        let (target, golden) = (&self.target.graph.hierarchy, &self.golden.graph.hierarchy);
        let mut namesakes = Vec::new();
        // The golden node of the same name below the same names.
        let mut same: Vec<Option<NodeIndex>> = vec![None; target.nodes.len()];
        for index in target.level_order() {
            let node = target.node(index);
            let namesake = golden.find(&node.name).filter(|&other| {
                let above = node.parent.map(|parent| same[parent as usize]);
                match (above, golden.node(other).parent) {
                    (None, None) => true,
                    (Some(Some(above)), Some(parent)) => above == parent,
                    _ => false,
                }
            });
            same[index as usize] = namesake;
            namesakes.extend(namesake.map(|other| (index, other)));
        }
        let is_pair = |readers: &mut Readers, &(target, golden): &(NodeIndex, NodeIndex)| {
            self.generation == Generation::Third || self.have_same_form(target, golden, readers)
        };
        let are_pairs: Vec<bool> =
            namesakes.par_iter().with_min_len(256).map_init(Readers::default, is_pair).collect();
        for (&(index, other), _) in namesakes.iter().zip(are_pairs).filter(|(_, is_pair)| *is_pair) {
            links.link(index, other);
        }
    }

    fn have_same_form(&self, target: NodeIndex, golden: NodeIndex, readers: &mut Readers) -> bool {
        self.are_all(target, golden, readers, |own, other| {
            let is_like =
                |(one, two): (&&Leaf, &&Leaf)| has_same_shape(one, two) && one.type_name == two.type_name;
            own.len() == other.len() && own.iter().zip(other).all(is_like)
        })
    }

    fn have_fitting_shapes(&self, target: NodeIndex, golden: NodeIndex, readers: &mut Readers) -> bool {
        self.generation == Generation::Third
            || self.are_all(target, golden, readers, |own, other| {
                own.iter().zip(other).all(|(one, two)| has_same_shape(one, two))
            })
    }

    /// Whether something is true of the arguments and of the results of two nodes.
    fn are_all(
        &self,
        target: NodeIndex,
        golden: NodeIndex,
        readers: &mut Readers,
        is_true: impl Fn(&[&Leaf], &[&Leaf]) -> bool,
    ) -> bool {
        fn of_kind<'l>(leaves: &[&'l Leaf], outputs: bool) -> Vec<&'l Leaf> {
            shown(leaves.iter().copied(), outputs).into_iter().map(|at| leaves[at]).collect()
        }
        self.target.with(target, &mut readers.0, |own| {
            self.golden.with(golden, &mut readers.1, |other| {
                [false, true]
                    .into_iter()
                    .all(|outputs| is_true(&of_kind(own, outputs), &of_kind(other, outputs)))
            })
        })
    }

    fn fuzzily(&self, links: &mut Links) {
        let (target, golden) = (&self.target.graph.hierarchy, &self.golden.graph.hierarchy);
        let readers = &mut Readers::default();
        for index in target.level_order() {
            let node = target.node(index);
            if node.kind == NodeKind::Api {
                continue;
            }
            let Some(other) = golden.find(&node.name) else { continue };
            if !self.have_fitting_shapes(index, other, readers) {
                continue;
            }
            links.link(index, other);
            let others: FastMap<(String, u32), NodeIndex> =
                counted(golden, other, self.generation).into_iter().collect();
            for (key, api) in counted(target, index, self.generation) {
                if let Some(&partner) = others.get(&key)
                    && self.have_fitting_shapes(api, partner, readers)
                {
                    links.link(api, partner);
                }
            }
        }
    }
}

/// Functions called in a node, each with its name and its number among those of that name.
fn counted(
    hierarchy: &Hierarchy,
    parent: NodeIndex,
    generation: Generation,
) -> Vec<((String, u32), NodeIndex)> {
    let mut counts: FastMap<String, u32> = FastMap::default();
    let apis =
        hierarchy.node(parent).children.iter().filter(|&&child| hierarchy.node(child).kind == NodeKind::Api);
    apis.map(|&api| {
        let name = without_counts(&hierarchy.node(api).name, generation);
        let count = counts.entry(name.clone()).or_default();
        *count += 1;
        ((name, *count), api)
    })
    .collect()
}

fn has_same_shape(one: &Leaf, two: &Leaf) -> bool {
    // A tensor without dimensions and a plain number read alike, and are not.
    one.shape == two.shape && one.is_tensor() == two.is_tensor()
}
