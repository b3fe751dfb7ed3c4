//! The graphs of ranks that are merged, and what is common to all ways of merging.

use std::sync::Arc;

use crate::graph::{Graph, NodeReader};
use crate::hierarchy::{Hierarchy, NodeIndex};
use crate::names::{COLLECTION, NodeKind, without_ranks};
use crate::values::{NodeValue, SharedValues};

/// A rank to be merged, or what others were merged into.
pub(super) struct Member {
    /// Its rank; of several, that of the first.
    pub(super) rank: u32,
    pub(super) graph: Graph,
}

impl Member {
    /// The values of a node, to be changed.
    pub(super) fn values(&self, node: NodeIndex, reader: &mut NodeReader) -> SharedValues {
        self.graph.values(node, reader)
    }

    /// Gives a node other values.
    pub(super) fn set_values(&mut self, node: NodeIndex, values: Vec<NodeValue>) {
        self.graph.changed.insert(node, Arc::new(values));
    }

    /// Adds a sentence to what merging says of a node.
    pub(super) fn say(&mut self, node: NodeIndex, sentences: impl IntoIterator<Item = String>) {
        self.graph.merge_info.entry(node).or_default().extend(sentences);
    }

    /// Copies a node of another rank, and all below it, below a node of this one. `rename` says what each is called here.
    pub(super) fn copy(
        &mut self,
        other: &Member,
        top: NodeIndex,
        parent: NodeIndex,
        rename: &dyn Fn(&str, NodeKind) -> String,
        reader: &mut NodeReader,
    ) -> NodeIndex {
        let mut places: msprobe_dump::hash::FastMap<NodeIndex, NodeIndex> =
            msprobe_dump::hash::FastMap::default();
        for index in other.graph.hierarchy.pre_order(top) {
            let node = other.graph.hierarchy.node(index);
            let name = self.free_name(&rename(&node.name, node.kind));
            let copy = self.graph.hierarchy.add(name.as_str().into(), node.kind);
            let below = match node.parent.and_then(|parent| places.get(&parent)) {
                Some(&below) if index != top => below,
                _ => parent,
            };
            self.graph.hierarchy.attach(copy, below);
            let added = self.graph.hierarchy.node_mut(copy);
            (added.stack, added.micro_step) = (node.stack.clone(), node.micro_step);
            let values = renamed(&other.values(index, reader), &node.name, &name);
            self.set_values(copy, values);
            places.insert(index, copy);
        }
        for (&index, &copy) in &places {
            if let Some(sentences) = other.graph.merge_info.get(&index) {
                let here = |name: &str| {
                    let place = places.get(&other.graph.hierarchy.find(name)?)?;
                    Some(self.graph.hierarchy.node(*place).name.clone())
                };
                let sentences: Vec<String> =
                    sentences.iter().map(|sentence| renamed_in(sentence, here)).collect();
                self.say(copy, sentences);
            }
        }
        places.get(&top).copied().unwrap_or(parent)
    }

    /// Gives a node another name, and its values with it.
    pub(super) fn rename(&mut self, node: NodeIndex, name: &str, reader: &mut NodeReader) {
        let old = self.graph.hierarchy.node(node).name.clone();
        if *old == *name {
            return;
        }
        let values = renamed(&self.values(node, reader), &old, name);
        let name = self.free_name(name);
        self.graph.hierarchy.rename(node, name.as_str().into());
        self.set_values(node, values);
    }

    /// The name, or the name with a number if it is taken.
    fn free_name(&self, name: &str) -> String {
        if self.graph.hierarchy.find(name).is_none() {
            return name.to_owned();
        }
        let mut number = 2_u64;
        loop {
            let name = format!("{name}_{number}");
            if self.graph.hierarchy.find(&name).is_none() {
                return name;
            }
            number += 1;
        }
    }
}

/// What merging says of a result that was taken from that of another call.
pub(super) const MERGED_FROM: &str = "The output of this data is merged from ";

/// A sentence with the name a call it names has here.
fn renamed_in(sentence: &str, here: impl Fn(&str) -> Option<Arc<str>>) -> String {
    let named = || {
        let (call, value) = sentence.strip_prefix(MERGED_FROM)?.split_once(".output.")?;
        Some(format!("{MERGED_FROM}{}.output.{value}", here(call)?))
    };
    named().unwrap_or_else(|| sentence.to_owned())
}

/// Values under another name of their record.
pub(super) fn renamed(values: &[NodeValue], old: &str, new: &str) -> Vec<NodeValue> {
    let mut values = values.to_vec();
    for value in &mut values {
        if let Some(rest) = value.leaf.name.strip_prefix(old) {
            let name = format!("{new}{rest}");
            value.rename(&name);
        }
    }
    values
}

/// `Torch.mean_rank1.0.forward` of `Torch.mean.0.forward`. A name that has a rank already keeps it.
pub(super) fn with_rank(name: &str, rank: u32) -> String {
    let mut parts: Vec<String> = name.split('.').map(str::to_owned).collect();
    if let Some(function) = parts.get_mut(1).filter(|function| without_ranks(function) == **function) {
        *function = format!("{function}_rank{rank}");
    }
    parts.join(".")
}

/// Collections of all ranks have this name, and a number.
fn all_ranks(number: usize) -> String {
    format!("{COLLECTION}_All_Ranks.{number}")
}

/// Puts each collection of a rank into one of all ranks, which others are put into later.
pub(super) fn wrap_collections(member: &mut Member) {
    let hierarchy = &mut member.graph.hierarchy;
    let mut number = 0;
    for place in 0..hierarchy.node(Hierarchy::ROOT).children.len() {
        let Some(&collection) = hierarchy.node(Hierarchy::ROOT).children.get(place) else { continue };
        if hierarchy.node(collection).kind != NodeKind::Collection {
            continue;
        }
        let all = hierarchy.add(all_ranks(number).into(), NodeKind::Collection);
        let step = hierarchy.node(collection).micro_step;
        let node = hierarchy.node_mut(all);
        (node.micro_step, node.parent) = (step, Some(Hierarchy::ROOT));
        if let Some(child) = hierarchy.node_mut(Hierarchy::ROOT).children.get_mut(place) {
            *child = all;
        }
        hierarchy.rename(collection, format!("{COLLECTION}_Rank{}.{number}", member.rank).into());
        hierarchy.node_mut(collection).parent = None;
        hierarchy.attach(collection, all);
        number += 1;
    }
}

/// Puts the collections of all ranks together.
pub(super) fn merge_collections(members: &mut [Member]) {
    let Some((main, others)) = members.split_first_mut() else { return };
    let mut reader = NodeReader::default();
    for other in others.iter() {
        let rename = |name: &str, kind: NodeKind| match kind {
            NodeKind::Collection => name.to_owned(),
            _ => with_rank(name, other.rank),
        };
        for number in 0.. {
            let name = all_ranks(number);
            let Some(there) = other.graph.hierarchy.find(&name) else { break };
            match main.graph.hierarchy.find(&name) {
                Some(here) => {
                    for collection in other.graph.hierarchy.node(there).children.clone() {
                        main.copy(other, collection, here, &rename, &mut reader);
                    }
                }
                None => _ = main.copy(other, there, Hierarchy::ROOT, &rename, &mut reader),
            }
        }
    }
}
