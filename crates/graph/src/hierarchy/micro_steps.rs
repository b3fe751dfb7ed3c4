//! Which micro step each node is of: a forward pass with what follows it.

use super::{Hierarchy, NodeIndex};
use crate::names::{Generation, NodeKind};
use crate::source::RankFiles;

/// Numbers the nodes right below the root, and counts.
pub(super) fn number(hierarchy: &mut Hierarchy, files: &RankFiles, generation: Generation) {
    if generation == Generation::Third
        && let Some(count) = files.micro_steps
    {
        let recorded: Vec<(NodeIndex, u32)> = files
            .entries
            .iter()
            .filter_map(|entry| Some((hierarchy.find(&entry.name)?, entry.micro_step?)))
            .collect();
        for (node, step) in recorded {
            hierarchy.node_mut(node).micro_step = Some(step);
        }
        hierarchy.micro_steps = count;
        return;
    }
    let (mut step, mut is_behind_forward) = (0, false);
    for index in hierarchy.node(Hierarchy::ROOT).children.clone() {
        let node = hierarchy.node_mut(index);
        if node.kind == NodeKind::Module {
            if !node.name.contains(".forward.") {
                is_behind_forward = true;
            } else if std::mem::take(&mut is_behind_forward) {
                step += 1;
            }
        }
        node.micro_step = Some(step);
    }
    hierarchy.micro_steps = step + 1;
}

/// Gives every node the micro step of what it is in, unless it has one of its own.
pub fn hand_down(hierarchy: &mut Hierarchy) {
    for index in hierarchy.level_order() {
        let step = hierarchy.node(index).micro_step;
        if index == Hierarchy::ROOT {
            continue;
        }
        for child in hierarchy.node(index).children.clone() {
            let child = hierarchy.node_mut(child);
            child.micro_step = child.micro_step.or(step);
        }
    }
}

/// Gives the nodes right below the root of a golden hierarchy the micro steps of their partners; those without one go by
/// the number at the end of their name.
pub fn follow(
    golden: &mut Hierarchy,
    target: &Hierarchy,
    partner_of: impl Fn(NodeIndex) -> Option<NodeIndex>,
) {
    for index in 0..golden.nodes.len() as NodeIndex {
        golden.node_mut(index).micro_step = None;
    }
    for &index in &target.node(Hierarchy::ROOT).children {
        if let Some(partner) = partner_of(index) {
            golden.node_mut(partner).micro_step = target.node(index).micro_step;
        }
    }
    for index in golden.node(Hierarchy::ROOT).children.clone() {
        let node = golden.node_mut(index);
        let by_name = || node.name.rsplit('.').next().and_then(|last| last.parse().ok()).unwrap_or(0);
        node.micro_step = Some(node.micro_step.unwrap_or_else(by_name));
    }
}
