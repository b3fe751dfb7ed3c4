//! The graphs of ranks that are merged, and what is common to all ways of merging.

use std::sync::Arc;

use crate::graph::{Graph, NodeReader};
use crate::hierarchy::{Hierarchy, NodeIndex};
use crate::names::{COLLECTION, NodeKind};
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
            if let Some(sentences) = other.graph.merge_info.get(&index) {
                self.say(copy, sentences.iter().cloned());
            }
            places.insert(index, copy);
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

/// Values under another name of their record.
fn renamed(values: &[NodeValue], old: &str, new: &str) -> Vec<NodeValue> {
    let mut values = values.to_vec();
    for value in &mut values {
        if let Some(rest) = value.leaf.name.strip_prefix(old) {
            let name = format!("{new}{rest}");
            value.rename(&name);
        }
    }
    values
}

/// `Torch.mean_rank1.0.forward` of `Torch.mean.0.forward`.
pub(super) fn with_rank(name: &str, rank: u32) -> String {
    let mut parts: Vec<String> = name.split('.').map(str::to_owned).collect();
    if let Some(function) = parts.get_mut(1) {
        *function = format!("{function}_rank{rank}");
    }
    parts.join(".")
}

/// Puts the collections of all ranks together, each under the name of its rank.
pub(super) fn merge_collections(members: &mut [Member]) {
    let Some((main, others)) = members.split_first_mut() else { return };
    let mut reader = NodeReader::default();
    let collections = |hierarchy: &Hierarchy| -> Vec<NodeIndex> {
        let is_ours = |&&child: &&NodeIndex| {
            let node = hierarchy.node(child);
            node.kind == NodeKind::Collection
                && node.name.strip_prefix(COLLECTION).is_some_and(|rest| rest.starts_with('.'))
        };
        hierarchy.node(Hierarchy::ROOT).children.iter().filter(is_ours).copied().collect()
    };
    let own = collections(&main.graph.hierarchy);
    let of_others: Vec<Vec<NodeIndex>> =
        others.iter().map(|other| collections(&other.graph.hierarchy)).collect();
    let most = of_others.iter().map(Vec::len).chain([own.len()]).max().unwrap_or(0);
    for number in 0..most {
        let all =
            main.graph.hierarchy.add(format!("{COLLECTION}_All_Ranks.{number}").into(), NodeKind::Collection);
        main.graph.hierarchy.attach(all, Hierarchy::ROOT);
        let root = main.graph.hierarchy.node_mut(Hierarchy::ROOT);
        root.children.pop();
        match own.get(number) {
            Some(&collection) => {
                if let Some(place) = root.children.iter().position(|child| *child == collection) {
                    root.children[place] = all;
                }
                let step = main.graph.hierarchy.node(collection).micro_step;
                main.graph.hierarchy.node_mut(all).micro_step = step;
                let name = format!("{COLLECTION}_Rank{}.{number}", main.rank);
                main.graph.hierarchy.rename(collection, name.into());
                main.graph.hierarchy.node_mut(collection).parent = None;
                main.graph.hierarchy.attach(collection, all);
            }
            None => root.children.push(all),
        }
        for (other, collections) in others.iter().zip(&of_others) {
            let Some(&collection) = collections.get(number) else { continue };
            let rank = other.rank;
            let rename = |name: &str, kind: NodeKind| match kind {
                NodeKind::Collection => format!("{COLLECTION}_Rank{rank}.{number}"),
                _ => with_rank(name, rank),
            };
            main.copy(other, collection, all, &rename, &mut reader);
        }
    }
}
