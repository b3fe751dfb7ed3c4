//! Values that ranks share: their statistics put together, and the results of communication taken where it has put them
//! together already.

use msprobe_compare::side::Scalar;
use msprobe_dump::hash::FastSet;
use msprobe_dump::python_text::float_repr;
use msprobe_tensor::DTypeClass;

use super::classes::{Classes, class_of};
use super::members::{MERGED_FROM, Member};
use super::shapes::note_shapes;
use super::strategy::Dimension;
use crate::graph::NodeReader;
use crate::hierarchy::{Hierarchy, NodeIndex};
use crate::names::{NodeKind, is_distributed, split_call};
use crate::values::{Merged, NodeValue, SharedValues};

/// Means and norms that differ by less than this share are the same.
const SAME: f64 = 1e-6;
const STATISTICS: [&str; 4] = ["Max", "Min", "Mean", "Norm"];

/// Merges the values of ranks into the first of them.
pub(super) fn merge_values(members: &mut [Member], dimension: Dimension, classes: &Classes) {
    let [main, others @ ..] = members else { return };
    let mut merger = Merger { main, others, dimension, classes, reader: NodeReader::default() };
    let nodes = merger.shared_nodes();
    for &node in &nodes {
        merger.merge_node(node, Wanted::Differing);
    }
    if dimension == Dimension::Tensor {
        let is_shared: FastSet<NodeIndex> = nodes.into_iter().collect();
        let inside = merger.merge_between_linears(&is_shared);
        let ranks: Vec<u32> = others.iter().map(|other| other.rank).collect();
        note_shapes(main, &ranks, &inside, classes);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Values that differ between ranks.
    Differing,
    /// All of them.
    All,
}

struct Merger<'m> {
    main: &'m mut Member,
    others: &'m [Member],
    dimension: Dimension,
    classes: &'m Classes,
    reader: NodeReader,
}

impl Merger<'_> {
    /// Nodes that all ranks have at the same place, and that are no communication.
    fn shared_nodes(&self) -> Vec<NodeIndex> {
        let hierarchy = &self.main.graph.hierarchy;
        let mut is_same = vec![false; hierarchy.nodes.len()];
        is_same[Hierarchy::ROOT as usize] = true;
        let mut shared = Vec::new();
        for index in hierarchy.pre_order(Hierarchy::ROOT) {
            let node = hierarchy.node(index);
            let Some(parent) = node.parent else { continue };
            let is_phase = ["clip_grad", "optimizer"].iter().any(|phase| node.name.starts_with(phase));
            let parent_name = &hierarchy.node(parent).name;
            let has_same = |other: &Member| {
                let there = &other.graph.hierarchy;
                there.find(&node.name).is_some_and(|found| {
                    there.node(found).parent.is_some_and(|above| there.node(above).name == *parent_name)
                })
            };
            is_same[index as usize] = is_same[parent as usize]
                && !is_phase
                && !node.kind.is_collection()
                && self.others.iter().all(has_same);
            let is_alone = parent == Hierarchy::ROOT && node.kind == NodeKind::Api;
            if is_same[index as usize] && !is_distributed(&node.name) && !is_alone {
                shared.push(index);
            }
        }
        shared
    }

    /// The values of a node on the other ranks.
    fn others_of(&mut self, node: NodeIndex) -> Option<Vec<SharedValues>> {
        let name = self.main.graph.hierarchy.node(node).name.clone();
        let mut found = Vec::with_capacity(self.others.len());
        for other in self.others {
            let there = other.graph.hierarchy.find(&name)?;
            found.push(other.values(there, &mut self.reader));
        }
        Some(found)
    }

    fn merge_node(&mut self, node: NodeIndex, wanted: Wanted) {
        let Some(others) = self.others_of(node) else { return };
        let own = self.main.values(node, &mut self.reader);
        let mut values = own.to_vec();
        let from_communication =
            if self.dimension == Dimension::Tensor { self.reduced_result(node, &own) } else { None };
        let mut sentences = Vec::new();
        for outputs in [false, true] {
            for value in values.iter_mut().filter(|value| value.is_output() == outputs) {
                if from_communication.is_some() && outputs || self.is_whole(node, value, wanted) {
                    continue;
                }
                let partners: Option<Vec<&NodeValue>> = others
                    .iter()
                    .map(|values| values.iter().find(|other| other.leaf.place == value.leaf.place))
                    .collect();
                let Some(partners) = partners else { continue };
                if is_number(value)
                    && (wanted == Wanted::All || partners.iter().any(|other| differ(value, other)))
                {
                    sentences.extend(merge_statistics(value, &partners));
                }
            }
        }
        if let Some((name, statistics)) = from_communication
            && let Some(output) = values.iter_mut().find(|value| value.is_output())
        {
            set_statistics(output, statistics);
            sentences.push(format!("{MERGED_FROM}{name}"));
        }
        if sentences.is_empty() {
            return;
        }
        let ranks: Vec<String> = std::iter::once(self.main.rank)
            .chain(self.others.iter().map(|it| it.rank))
            .map(|rank| rank.to_string())
            .collect();
        let first = format!(
            "This data is the merged data after {}, and the data is merged from rank [{}].",
            self.dimension.name(),
            ranks.join(", ")
        );
        self.main.set_values(node, values);
        self.main.say(node, std::iter::once(first).chain(sentences));
    }

    /// Whether a value is whole on each rank though all that is around it is merged.
    fn is_whole(&self, node: NodeIndex, value: &NodeValue, wanted: Wanted) -> bool {
        if wanted == Wanted::Differing {
            return false;
        }
        let class = class_of(&self.main.graph.hierarchy.node(node).name);
        let is_of = |classes: &[String]| classes.iter().any(|known| known == class);
        let place = &*value.leaf.place;
        is_of(&self.classes.column) && place == "input.0"
            || is_of(&self.classes.row) && (value.is_output() || place == "parameters.bias")
    }

    /// The result of the communication that puts the result of this function together, where one does.
    fn reduced_result(&mut self, node: NodeIndex, own: &SharedValues) -> Option<(String, [Scalar; 4])> {
        let hierarchy = &self.main.graph.hierarchy;
        let function = hierarchy.node(node);
        let parent = function.parent?;
        let around = &hierarchy.node(parent).name;
        let class = class_of(around);
        let is_of = |classes: &[String]| classes.iter().any(|known| known == class);
        let is_reduced = split_call(around, "forward").is_some() && is_of(&self.classes.row)
            || split_call(around, "backward").is_some() && is_of(&self.classes.column);
        if !is_reduced || function.kind != NodeKind::Api || is_distributed(&function.name) {
            return None;
        }
        let output = own.iter().find(|value| value.is_output())?;
        for child in hierarchy.node(parent).children.clone() {
            let name = self.main.graph.hierarchy.node(child).name.clone();
            let argument = match name.split('.').nth(1).filter(|_| is_distributed(&name)) {
                Some("all_reduce") => "input.0",
                Some(function) if function.contains("reduce_scatter") => "input.1",
                _ => continue,
            };
            let values = self.main.values(child, &mut self.reader);
            let input = values.iter().find(|value| &*value.leaf.place == argument);
            let result = values.iter().find(|value| value.is_output());
            if let (Some(input), Some(result)) = (input, result)
                && input.leaf.statistics == output.leaf.statistics
            {
                return Some((result.leaf.name.to_string(), result.leaf.statistics.clone()));
            }
        }
        None
    }

    /// Everything between a linear that splits and the one that puts together again is split.
    fn merge_between_linears(&mut self, is_shared: &FastSet<NodeIndex>) -> FastSet<NodeIndex> {
        let mut inside = Vec::new();
        let hierarchy = &self.main.graph.hierarchy;
        for node in &hierarchy.nodes {
            let is_of = |child: &NodeIndex, classes: &[String]| {
                let class = class_of(&hierarchy.node(*child).name);
                classes.iter().any(|known| known == class)
            };
            let first = node.children.iter().position(|child| is_of(child, &self.classes.column));
            let last = node.children.iter().rposition(|child| is_of(child, &self.classes.row));
            if let (Some(one), Some(two)) = (first, last) {
                let (from, to) = (one.min(two), one.max(two));
                inside.extend(node.children[from..=to].iter().flat_map(|&child| hierarchy.pre_order(child)));
            }
        }
        for &node in &inside {
            if is_shared.contains(&node) && !self.main.graph.merge_info.contains_key(&node) {
                self.merge_node(node, Wanted::All);
            }
        }
        inside.into_iter().collect()
    }
}

/// Whether a value has statistics of numbers.
fn is_number(value: &NodeValue) -> bool {
    value.leaf.element.is_some_and(|dtype| {
        matches!(dtype.class(), DTypeClass::Float | DTypeClass::Signed | DTypeClass::Unsigned)
    })
}

fn differ(one: &NodeValue, two: &NodeValue) -> bool {
    (0..4).any(|at| {
        let (Some(one), Some(two)) = (one.leaf.statistics[at].number(), two.leaf.statistics[at].number())
        else {
            return false;
        };
        if at < 2 {
            return one != two && !(one.is_nan() && two.is_nan());
        }
        (one - two).abs() > SAME * one.abs().max(two.abs())
    })
}

/// Puts the statistics of a value and its partners together, and says how.
fn merge_statistics(value: &mut NodeValue, partners: &[&NodeValue]) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut statistics = value.leaf.statistics.clone();
    for (at, name) in STATISTICS.into_iter().enumerate() {
        let all = std::iter::once(&value.leaf).chain(partners.iter().map(|it| &it.leaf));
        let numbers: Option<Vec<f64>> = all.clone().map(|leaf| leaf.statistics[at].number()).collect();
        let Some(numbers) = numbers else { continue };
        let texts: Vec<String> = all.map(|leaf| text_of(&leaf.statistics[at])).collect();
        let (how, result) = match at {
            0 => (
                format!("max({})", texts.join(", ")),
                numbers.iter().copied().fold(f64::NEG_INFINITY, larger),
            ),
            1 => (format!("min({})", texts.join(", ")), numbers.iter().copied().fold(f64::INFINITY, smaller)),
            2 => (
                format!("({}) / {}", texts.join(" + "), numbers.len()),
                numbers.iter().sum::<f64>() / numbers.len() as f64,
            ),
            _ => {
                let squares: Vec<String> = texts.iter().map(|text| format!("{text} ** 2")).collect();
                let sum = numbers.iter().map(|number| number * number).sum::<f64>();
                (format!("({}) ** 0.5", squares.join(" + ")), sum.sqrt())
            }
        };
        let place = &value.leaf.place;
        sentences
            .push(format!("The {name} value merging method for {place} is: {how} = {}", float_repr(result)));
        statistics[at] = Scalar::Float(result);
    }
    set_statistics(value, statistics);
    sentences
}

/// NaN counts as both the largest and the smallest: it must not be lost.
fn larger(one: f64, two: f64) -> f64 {
    if one.is_nan() || two.is_nan() { f64::NAN } else { one.max(two) }
}

fn smaller(one: f64, two: f64) -> f64 {
    if one.is_nan() || two.is_nan() { f64::NAN } else { one.min(two) }
}

fn set_statistics(value: &mut NodeValue, statistics: [Scalar; 4]) {
    let merged = value.merged.get_or_insert_with(Box::<Merged>::default);
    for (slot, statistic) in merged.statistics.iter_mut().zip(&statistics) {
        *slot = statistic.number();
    }
    value.leaf.statistics = statistics;
}

fn text_of(scalar: &Scalar) -> String {
    match scalar.whole() {
        Some(whole) => whole.to_string(),
        None => scalar.number().map_or_else(String::new, float_repr),
    }
}
