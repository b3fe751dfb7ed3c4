//! From the files of a rank to its hierarchy.

use std::sync::Arc;

use msprobe_dump::hash::FastMap;

use super::{Hierarchy, NodeIndex, Orphan, micro_steps, recompute};
use crate::names::{
    COLLECTION, Generation, NodeKind, backward_parent, forward_twin, forward_with_stack, is_backward,
    kind_of, module_of_gradients, split_call,
};
use crate::source::{Entry, RankFiles};
use crate::stacks::{NodeStack, simplified};

/// How a hierarchy is made.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// Like which form of the reference.
    pub generation: Generation,
    /// Whether all lines of a stack are shown.
    pub complete_stacks: bool,
}

/// Makes the hierarchy of a rank.
pub fn build(files: &RankFiles, form: Form) -> Hierarchy {
    let mut builder =
        Builder { files, form, hierarchy: Hierarchy::default(), simplified: FastMap::default() };
    builder.add_entries();
    let mut hierarchy = builder.hierarchy;
    if form.generation == Generation::Third {
        recompute::move_copies(&mut hierarchy);
    }
    collect_apis(&mut hierarchy);
    add_gradients(&mut hierarchy, files, form.generation);
    micro_steps::number(&mut hierarchy, files, form.generation);
    adopt_orphans(&mut hierarchy);
    if form.generation == Generation::Third {
        micro_steps::hand_down(&mut hierarchy);
    }
    hierarchy
}

struct Builder<'f> {
    files: &'f RankFiles,
    form: Form,
    hierarchy: Hierarchy,
    /// What functions show of frames, by where those lie: many share them.
    simplified: FastMap<*const Box<str>, NodeStack>,
}

impl Builder<'_> {
    fn add_entries(&mut self) {
        let entries = &self.files.entries;
        let by_name: FastMap<&str, &Entry> = entries.iter().map(|entry| (&*entry.name, entry)).collect();
        for entry in entries {
            let parent = match parent_of(entry, &by_name, self.form.generation) {
                Some(parent) => self.node(&parent, None),
                None => Hierarchy::ROOT,
            };
            let child = self.node(&entry.name, Some(parent));
            self.hierarchy.attach(child, parent);
        }
    }

    /// The node of a name, which is made if it is not there.
    fn node(&mut self, name: &Arc<str>, parent: Option<NodeIndex>) -> NodeIndex {
        if let Some(known) = self.hierarchy.find(name) {
            return known;
        }
        let kind = kind_of(name, self.form.generation).unwrap_or(NodeKind::Module);
        let index = self.hierarchy.add(name.clone(), kind);
        if let Some(parent) = parent {
            self.hierarchy.attach(index, parent);
        }
        let stack = self.stack(name, kind);
        self.hierarchy.node_mut(index).stack = stack;
        index
    }

    fn stack(&mut self, name: &str, kind: NodeKind) -> NodeStack {
        let own = self.files.frames(name).filter(|frames| !frames.is_empty());
        if let Some(frames) = own {
            return match kind {
                _ if self.form.complete_stacks => NodeStack::All(frames.clone()),
                // The name of a function says nothing of where it is called.
                NodeKind::Api => {
                    self.simplified.entry(frames.as_ptr()).or_insert_with(|| simplified(name, frames)).clone()
                }
                _ => simplified(name, frames),
            };
        }
        if !is_backward(name) {
            return NodeStack::Empty;
        }
        let forward = forward_with_stack(name).and_then(|forward| self.hierarchy.find(&forward));
        forward.map_or(NodeStack::NoForward, |forward| self.hierarchy.node(forward).stack.clone())
    }
}

/// The parent of a call, as far as it can be told.
fn parent_of(entry: &Entry, by_name: &FastMap<&str, &Entry>, generation: Generation) -> Option<Arc<str>> {
    let after_forward = || {
        let twin = by_name.get(&*forward_twin(&entry.name)?)?;
        let parent = backward_parent(&entry.name, twin.parent.as_ref()?);
        by_name.get(&*parent).map(|known| known.name.clone())
    };
    let Some(parent) = &entry.parent else { return after_forward() };
    if generation == Generation::Third && is_of_other_layer(&entry.name, parent) {
        let twin = forward_twin(&entry.name).and_then(|twin| by_name.get(&*twin));
        return match twin {
            Some(twin) if twin.parent.is_none() => None,
            _ => after_forward().or_else(|| Some(parent.clone())),
        };
    }
    Some(parent.clone())
}

/// Whether a backward call of a module names a parent that is not the module around it: layers that work in place make
/// autograd run them out of turn.
fn is_of_other_layer(child: &str, parent: &str) -> bool {
    let is_module = kind_of(child, Generation::Third) == Some(NodeKind::Module);
    if !is_module || split_call(child, "backward").is_none() {
        return false;
    }
    let cut = |name: &str, parts: usize| {
        let end = name.rmatch_indices('.').nth(parts - 1).map_or(0, |(at, _)| at);
        name.get(..end).unwrap_or_default().to_owned()
    };
    cut(child, 4) != cut(parent, 3)
}

/// Puts functions called one after the other between modules together.
fn collect_apis(hierarchy: &mut Hierarchy) {
    let children = std::mem::take(&mut hierarchy.node_mut(Hierarchy::ROOT).children);
    let mut collected = Vec::with_capacity(children.len());
    let mut number = 0_u32;
    let is_api = |hierarchy: &Hierarchy, index: NodeIndex| hierarchy.node(index).kind == NodeKind::Api;
    let mut rest = children.as_slice();
    while let Some(&first) = rest.first() {
        let apis = rest.iter().take_while(|&&child| is_api(hierarchy, child)).count();
        let (together, behind) = rest.split_at(apis.max(1));
        rest = behind;
        if apis < 2 {
            collected.push(first);
            continue;
        }
        let name = loop {
            let name = format!("{COLLECTION}.{number}");
            number += 1;
            if hierarchy.find(&name).is_none() {
                break name;
            }
        };
        let collection = hierarchy.add(name.into(), NodeKind::Collection);
        for &api in together {
            hierarchy.node_mut(api).parent = Some(collection);
        }
        let node = hierarchy.node_mut(collection);
        (node.parent, node.children) = (Some(Hierarchy::ROOT), together.to_vec());
        collected.push(collection);
    }
    hierarchy.node_mut(Hierarchy::ROOT).children = collected;
}

/// Puts the gradients of a module's parameters into its last backward call.
fn add_gradients(hierarchy: &mut Hierarchy, files: &RankFiles, generation: Generation) {
    let is_new = |name: &&Arc<str>| hierarchy.find(name).is_none();
    let gradients: Vec<(Arc<str>, &str)> = files
        .names
        .iter()
        .filter(is_new)
        .filter_map(|name| Some((name.clone(), module_of_gradients(name, generation)?)))
        .collect();
    let mut last: FastMap<&str, u64> = gradients.iter().map(|(_, module)| (*module, 0)).collect();
    for node in &hierarchy.nodes {
        if let Some((stem, number)) = split_call(&node.name, "backward")
            && let (Some(known), Ok(number)) = (last.get_mut(stem), number.parse::<u64>())
        {
            *known = number.max(*known);
        }
    }
    for (name, module) in gradients {
        let number = last.get(module).copied().unwrap_or_default();
        if let Some(backward) = hierarchy.find(&format!("{module}.backward.{number}")) {
            let node = hierarchy.add(name, NodeKind::Module);
            hierarchy.attach(node, backward);
        }
    }
}

/// Puts what hangs nowhere below the root.
fn adopt_orphans(hierarchy: &mut Hierarchy) {
    let mut is_below = vec![false; hierarchy.nodes.len()];
    let mark = |hierarchy: &Hierarchy, top: NodeIndex, is_below: &mut Vec<bool>| {
        let mut open = vec![top];
        while let Some(index) = open.pop() {
            if !std::mem::replace(&mut is_below[index as usize], true) {
                open.extend(&hierarchy.node(index).children);
            }
        }
    };
    mark(hierarchy, Hierarchy::ROOT, &mut is_below);
    // Those without a parent first: what is below them is no circle.
    for is_circle in [false, true] {
        for index in 1..hierarchy.nodes.len() as NodeIndex {
            let parent = hierarchy.node(index).parent;
            if is_below[index as usize] || parent.is_some() != is_circle {
                continue;
            }
            hierarchy.detach(index);
            hierarchy.attach(index, Hierarchy::ROOT);
            let orphan = if is_circle { Orphan::Circle } else { Orphan::Unknown };
            hierarchy.node_mut(index).orphan = Some(orphan);
            mark(hierarchy, index, &mut is_below);
        }
    }
}
