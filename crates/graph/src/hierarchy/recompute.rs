//! Modules that are computed a second time to save memory: their second call stands below nothing, and belongs to the
//! backward call of the module around the first one.

use msprobe_dump::hash::FastSet;

use super::{Hierarchy, NodeIndex};
use crate::names::{NodeKind, split_call};
use crate::stacks::NodeStack;

/// Moves second calls below the backward call they were made in.
pub(super) fn move_copies(hierarchy: &mut Hierarchy) {
    let first_level = hierarchy.node(Hierarchy::ROOT).children.clone();
    let moves: Vec<(NodeIndex, NodeIndex)> =
        first_level.iter().filter_map(|&index| Some((index, new_parent(hierarchy, index)?))).collect();
    let mut is_moved = FastSet::default();
    for (child, parent) in moves {
        // A node must not be put into what is in it.
        if !hierarchy.path(parent).contains(&child) {
            hierarchy.node_mut(child).parent = None;
            hierarchy.attach(child, parent);
            is_moved.insert(child);
        }
    }
    hierarchy.node_mut(Hierarchy::ROOT).children.retain(|child| !is_moved.contains(child));
}

fn new_parent(hierarchy: &Hierarchy, index: NodeIndex) -> Option<NodeIndex> {
    let node = hierarchy.node(index);
    if node.kind != NodeKind::Module || !is_deep(&node.name) {
        return None;
    }
    let call = |direction| split_call(&node.name, direction);
    let (stem, number, other) = match (call("forward"), call("backward")) {
        (Some((stem, number)), _) => (stem, number, "backward"),
        (_, Some((stem, number))) => (stem, number, "forward"),
        _ => return None,
    };
    let is_first_level = |index: NodeIndex| hierarchy.node(index).parent == Some(Hierarchy::ROOT);
    hierarchy.find(&format!("{stem}.{other}.{number}")).filter(|&partner| is_first_level(partner))?;
    let forward = hierarchy.find(&format!("{stem}.forward.{number}"))?;
    if !shows_recomputation(&hierarchy.node(forward).stack) {
        return None;
    }
    // The call that was made in the forward pass has the module around it as its parent.
    let own: u64 = number.parse().ok()?;
    let original = (0..own).rev().find_map(|number| {
        let first = hierarchy.find(&format!("{stem}.forward.{number}"))?;
        hierarchy.node(first).parent.filter(|&parent| parent != Hierarchy::ROOT)
    })?;
    let (around, call_number) = split_call(&hierarchy.node(original).name, "forward")?;
    hierarchy.find(&format!("{around}.backward.{call_number}"))
}

/// Whether a module is inside of another by its name: the outermost ones are called anew by the training loop itself.
fn is_deep(name: &str) -> bool {
    let parts: Vec<&str> = name.split('.').collect();
    let is_number =
        |at: usize| parts.get(at).is_some_and(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    match parts.len() {
        0..=5 => false,
        6 => !is_number(1),
        7 => !is_number(1) && !is_number(3),
        _ => true,
    }
}

/// Whether a call was made to compute something again in the backward pass.
fn shows_recomputation(stack: &NodeStack) -> bool {
    let lines: Vec<&str> = stack.lines().collect();
    lines.iter().enumerate().any(|(at, line)| {
        if line.contains("torch/utils/checkpoint.py") && line.contains("in recompute_fn") {
            return true;
        }
        let is_backward = line.contains("in backward") || line.contains("in checkpoint_function_backward");
        is_backward
            && lines.iter().skip(at + 1).take(2).any(|next| next.contains("torch/autograd/function.py"))
    })
}
