//! Which node of the target belongs to which of the golden side.

use std::collections::HashMap;

use msprobe_compare::side::ValueKind;
use msprobe_dump::hash::FastMap;

use crate::graph::{Graph, NodeReader};
use crate::hierarchy::{Hierarchy, NodeIndex};
use crate::names::{Generation, NodeKind, without_counts};
use crate::values::{NodeValue, shown};

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

/// Finds the partners of all nodes of the target.
pub fn match_nodes(target: &Graph, golden: &Graph, matching: &Matching, generation: Generation) -> Links {
    let mut links = Links::new(&target.hierarchy, &golden.hierarchy);
    let mut matcher = Matcher { target, golden, generation, reader: NodeReader::default() };
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

struct Matcher<'g> {
    target: &'g Graph,
    golden: &'g Graph,
    generation: Generation,
    reader: NodeReader,
}

impl Matcher<'_> {
    fn by_name_and_place(&mut self, links: &mut Links) {
        let (target, golden) = (&self.target.hierarchy, &self.golden.hierarchy);
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
            if let Some(other) = namesake
                && (self.generation == Generation::Third || self.have_same_form(index, other))
            {
                links.link(index, other);
            }
        }
    }

    fn have_same_form(&mut self, target: NodeIndex, golden: NodeIndex) -> bool {
        let values = self.target.values(target, &mut self.reader);
        let others = self.golden.values(golden, &mut self.reader);
        [false, true].into_iter().all(|outputs| {
            let of = |values: &[NodeValue]| -> Vec<usize> { shown(values, outputs) };
            let (own, other) = (of(&values), of(&others));
            let is_like = |(&one, &two): (&usize, &usize)| {
                let (one, two) = (&values[one], &others[two]);
                has_same_shape(one, two) && type_of(one) == type_of(two)
            };
            own.len() == other.len() && own.iter().zip(&other).all(is_like)
        })
    }

    fn have_fitting_shapes(&mut self, target: NodeIndex, golden: NodeIndex) -> bool {
        if self.generation == Generation::Third {
            return true;
        }
        let values = self.target.values(target, &mut self.reader);
        let others = self.golden.values(golden, &mut self.reader);
        [false, true].into_iter().all(|outputs| {
            let (own, other) = (shown(&values, outputs), shown(&others, outputs));
            own.iter().zip(&other).all(|(&one, &two)| has_same_shape(&values[one], &others[two]))
        })
    }

    fn fuzzily(&mut self, links: &mut Links) {
        let (target, golden) = (&self.target.hierarchy, &self.golden.hierarchy);
        for index in target.level_order() {
            let node = target.node(index);
            if node.kind == NodeKind::Api {
                continue;
            }
            let Some(other) = golden.find(&node.name) else { continue };
            if !self.have_fitting_shapes(index, other) {
                continue;
            }
            links.link(index, other);
            let others: FastMap<(String, u32), NodeIndex> =
                counted(golden, other, self.generation).into_iter().collect();
            for (key, api) in counted(target, index, self.generation) {
                if let Some(&partner) = others.get(&key)
                    && self.have_fitting_shapes(api, partner)
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

fn has_same_shape(one: &NodeValue, two: &NodeValue) -> bool {
    // A tensor without dimensions and a plain number read alike, and are not.
    let is_tensor = |value: &NodeValue| value.leaf.kind == ValueKind::Tensor;
    one.leaf.shape == two.leaf.shape && is_tensor(one) == is_tensor(two)
}

/// What a value says of its type, as it is written.
fn type_of(value: &NodeValue) -> Option<String> {
    use msprobe_dump::read::Json;
    let json = Json::parse(&value.written).ok()?;
    json.get("type").and_then(Json::as_str).map(str::to_owned)
}
