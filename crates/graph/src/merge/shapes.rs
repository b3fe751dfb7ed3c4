//! The shapes whole tensors have, and how the parts of ranks stand in them. Statistics are the same whatever the order of
//! parts; whoever puts real tensors together has to know it.

use msprobe_compare::side::Role;
use msprobe_dump::hash::{FastMap, FastSet};

use super::classes::{Classes, Split, module_around, stem_of};
use super::members::Member;
use crate::graph::NodeReader;
use crate::hierarchy::{Hierarchy, NodeIndex};
use crate::names::{NodeKind, is_backward, split_call};
use crate::values::NodeValue;

/// Which dimension ranks share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Along {
    First,
    Last,
    /// The first, which is the sequence where activations are whole otherwise.
    Sequence,
}

/// Notes the shapes of all values that were merged into `main` from other ranks. `inside` are the nodes between a linear that
/// splits and the one that puts together again.
pub(super) fn note_shapes(main: &mut Member, others: &[u32], inside: &FastSet<NodeIndex>, classes: &Classes) {
    let gates = gated_modules(main, classes);
    let words = words_of_ranks(main, classes);
    let ranks: Vec<u32> = std::iter::once(main.rank).chain(others.iter().copied()).collect();
    let mut merged: Vec<NodeIndex> = main.graph.merge_info.keys().copied().collect();
    merged.sort_unstable();
    for node in merged {
        let Some(values) = main.graph.changed.get(&node) else { continue };
        let mut values = values.to_vec();
        let hierarchy = &main.graph.hierarchy;
        let at = Place::of(hierarchy, node, inside, classes);
        let half = module_around(hierarchy, node).and_then(|name| gates.get(stem_of(name)).copied());
        let mut gated = Vec::new();
        for value in &mut values {
            let Some(sizes) = value.leaf.shape.sizes().map(<[u64]>::to_vec) else { continue };
            let along = match at.along(value) {
                // Logits on their way out of the model.
                Along::Sequence if sizes.last().is_some_and(|size| words.contains(size)) => Along::Last,
                along => along,
            };
            let Some(merged) = &mut value.merged else { continue };
            if merged.statistics.iter().all(Option::is_none) || sizes.is_empty() {
                continue;
            }
            let dimension = if along == Along::Last { sizes.len() - 1 } else { 0 };
            let part = sizes.get(dimension).copied().unwrap_or_default();
            let mut whole = sizes;
            if let Some(size) = whole.get_mut(dimension) {
                *size = size.saturating_mul(ranks.len() as u64);
            }
            merged.note = match (at.split, half) {
                (Some(Split::Column), Some(half)) if part == half.saturating_mul(2) => {
                    gated.push(value.leaf.place.to_string());
                    Some(gated_note(half, &ranks))
                }
                _ if at.is_vocabulary && along == Along::First => {
                    Some(vocabulary_note(part, ranks.len(), classes))
                }
                _ if along == Along::Sequence => {
                    Some("taken as shared along the sequence, its first dimension".to_owned())
                }
                _ => None,
            }
            .map(Into::into);
            merged.whole_shape = Some(whole);
        }
        main.set_values(node, values);
        if !gated.is_empty() {
            main.say(node, [format!(
                "Each rank's part of {} is [gate; up]: the whole tensor has the gates of all ranks before all else, and its \
                 statistics are the same.",
                gated.join(", ")
            )]);
        }
    }
}

fn gated_note(half: u64, ranks: &[u32]) -> String {
    let parts: Vec<String> = ranks.iter().map(|rank| format!("gate {rank}, up {rank}")).collect();
    let whole: Vec<String> = ["gate", "up"]
        .iter()
        .flat_map(|part| ranks.iter().map(move |rank| format!("{part} {rank}")))
        .collect();
    format!(
        "gated: parts of {half}, by rank [{}], are interleaved in the whole tensor: [{}]",
        parts.join(", "),
        whole.join(", ")
    )
}

fn vocabulary_note(part: u64, ranks: usize, classes: &Classes) -> String {
    let multiple = classes.vocabulary_multiple;
    if part.is_multiple_of(multiple) {
        let unit = multiple.saturating_mul(ranks as u64);
        format!("rows of the vocabulary, with those that pad it to a multiple of {unit}")
    } else {
        "rows of the vocabulary".to_owned()
    }
}

/// How many words a rank has, by the weights of modules that share them.
fn words_of_ranks(main: &Member, classes: &Classes) -> FastSet<u64> {
    let mut reader = NodeReader::default();
    let mut words = FastSet::default();
    for (index, node) in (0..).zip(&main.graph.hierarchy.nodes) {
        if node.kind == NodeKind::Module && classes.is_vocabulary(&node.name) {
            let values = main.values(index, &mut reader);
            let weights = values.iter().filter(|value| value.leaf.role == Role::Parameters);
            words.extend(weights.filter_map(|value| match value.leaf.shape.sizes()? {
                [words, _] => Some(*words),
                _ => None,
            }));
        }
    }
    words
}

/// The size of a gate on each rank, for modules that have one, by what they are without their calls.
fn gated_modules(main: &Member, classes: &Classes) -> FastMap<String, u64> {
    let hierarchy = &main.graph.hierarchy;
    let mut reader = NodeReader::default();
    let mut gates = FastMap::default();
    let mut last_size = |node: NodeIndex, outputs: bool| {
        let values = main.values(node, &mut reader);
        let value = values.iter().find(|value| {
            matches!(value.leaf.role, Role::Input | Role::Output) && value.is_output() == outputs
        })?;
        value.leaf.shape.sizes()?.last().copied()
    };
    for (index, node) in (0..).zip(&hierarchy.nodes) {
        let is_forward = node.kind == NodeKind::Module && split_call(&node.name, "forward").is_some();
        if !is_forward
            || classes.split_of(&node.name) != Some(Split::Column)
            || !classes.may_be_gated(&node.name)
        {
            continue;
        }
        let Some(size) = last_size(index, true).filter(|size| size.is_multiple_of(2)) else { continue };
        let is_gated = match next_row_linear(hierarchy, index, classes).and_then(|row| last_size(row, false))
        {
            // What the next linear gets is what came through the gate.
            Some(through) => through == size / 2,
            None => Classes::is_gated_by_name(&node.name),
        };
        if is_gated {
            gates.insert(stem_of(&node.name).to_owned(), size / 2);
        }
    }
    gates
}

/// The linear that puts together what this one splits.
fn next_row_linear(hierarchy: &Hierarchy, column: NodeIndex, classes: &Classes) -> Option<NodeIndex> {
    let siblings = &hierarchy.node(hierarchy.node(column).parent?).children;
    let behind = siblings.iter().skip_while(|&&sibling| sibling != column);
    behind.copied().find(|&sibling| classes.split_of(&hierarchy.node(sibling).name) == Some(Split::Row))
}

/// Where a node stands among what is split.
struct Place {
    split: Option<Split>,
    is_vocabulary: bool,
    is_backward: bool,
    is_inside: bool,
    /// Of a function: whether it takes weights as they are, or turned around.
    function: Option<bool>,
}

impl Place {
    fn of(hierarchy: &Hierarchy, node: NodeIndex, inside: &FastSet<NodeIndex>, classes: &Classes) -> Place {
        let name = &hierarchy.node(node).name;
        let around = module_around(hierarchy, node);
        let function = (hierarchy.node(node).kind == NodeKind::Api).then(|| name.split('.').nth(1));
        Place {
            split: around.and_then(|around| classes.split_of(around)),
            is_vocabulary: around.is_some_and(|around| classes.is_vocabulary(around)),
            is_backward: is_backward(name),
            is_inside: inside.contains(&node),
            function: function.map(|function| matches!(function, Some("linear" | "embedding"))),
        }
    }

    fn along(&self, value: &NodeValue) -> Along {
        let is_weight = matches!(value.leaf.role, Role::Parameters | Role::ParametersGrad);
        match (self.function, self.split) {
            (None, split) if is_weight => along_weight(split),
            (Some(as_it_is), Some(_)) if !self.is_backward && &*value.leaf.place == "input.1" => {
                match (along_weight(self.split), as_it_is) {
                    (along, true) => along,
                    (Along::Last, false) => Along::First,
                    (_, false) => Along::Last,
                }
            }
            // In backward, what goes in is the gradient of what comes out.
            (_, split) => self.along_activation(split, value.is_output() != self.is_backward),
        }
    }

    fn along_activation(&self, split: Option<Split>, is_result: bool) -> Along {
        match split {
            Some(Split::Column) if is_result => Along::Last,
            Some(Split::Row) if !is_result => Along::Last,
            Some(_) => Along::Sequence,
            None if self.is_inside => Along::Last,
            None => Along::Sequence,
        }
    }
}

fn along_weight(split: Option<Split>) -> Along {
    if split == Some(Split::Row) { Along::Last } else { Along::First }
}
