//! The hierarchy of one rank: every call below the module call it was made in.

mod build;
mod micro_steps;
mod recompute;

use std::sync::Arc;

use msprobe_dump::hash::FastMap;

pub use self::build::{Form, build};
pub use self::micro_steps::{follow, hand_down};
use crate::names::{NodeKind, ROOT};
use crate::stacks::NodeStack;

/// The number of a node in its hierarchy. The root is 0.
pub type NodeIndex = u32;

/// Why a node stands below the root though no call says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Orphan {
    /// It is named as a parent and is no call itself.
    Unknown,
    /// It is inside of itself.
    Circle,
}

impl Orphan {
    /// The sentence files show.
    pub fn as_str(self) -> &'static str {
        match self {
            Orphan::Unknown => {
                "named as a parent in construct.json, but not a call there; shown below the root"
            }
            Orphan::Circle => "its parents in construct.json lead back to itself; shown below the root",
        }
    }
}

/// A call, or what was put together of several.
#[derive(Debug, Clone)]
pub struct Node {
    /// Its name: that of its record.
    pub name: Arc<str>,
    /// What it is.
    pub kind: NodeKind,
    /// What it is in; none for the root.
    pub parent: Option<NodeIndex>,
    /// What is in it, in order.
    pub children: Vec<NodeIndex>,
    /// The lines it was called from.
    pub stack: NodeStack,
    /// The micro step it is of, where that is known.
    pub micro_step: Option<u32>,
    /// Why it is below the root.
    pub orphan: Option<Orphan>,
}

/// All nodes of a rank.
#[derive(Debug, Clone)]
pub struct Hierarchy {
    /// In the order in which they were first named; the root first.
    pub nodes: Vec<Node>,
    /// How many micro steps there are.
    pub micro_steps: u32,
    by_name: FastMap<Arc<str>, NodeIndex>,
}

impl Default for Hierarchy {
    fn default() -> Hierarchy {
        let mut hierarchy = Hierarchy { nodes: Vec::new(), micro_steps: 1, by_name: FastMap::default() };
        hierarchy.add(ROOT.into(), NodeKind::Module);
        hierarchy
    }
}

impl Hierarchy {
    /// The root.
    pub const ROOT: NodeIndex = 0;

    /// The node of a name.
    pub fn find(&self, name: &str) -> Option<NodeIndex> {
        self.by_name.get(name).copied()
    }

    /// A node.
    pub fn node(&self, index: NodeIndex) -> &Node {
        &self.nodes[index as usize]
    }

    /// A node that may be changed.
    pub(crate) fn node_mut(&mut self, index: NodeIndex) -> &mut Node {
        &mut self.nodes[index as usize]
    }

    /// Adds a node without a parent. Its name must be new.
    pub(crate) fn add(&mut self, name: Arc<str>, kind: NodeKind) -> NodeIndex {
        let index = self.nodes.len() as NodeIndex;
        self.by_name.insert(name.clone(), index);
        self.nodes.push(Node {
            name,
            kind,
            parent: None,
            children: Vec::new(),
            stack: NodeStack::Empty,
            micro_step: None,
            orphan: None,
        });
        index
    }

    /// Puts a node into another, behind what is there. The first parent counts, and nothing is inside of itself.
    pub(crate) fn attach(&mut self, child: NodeIndex, parent: NodeIndex) {
        if child == parent || child == Hierarchy::ROOT || self.node(child).parent.is_some() {
            return;
        }
        self.node_mut(child).parent = Some(parent);
        self.node_mut(parent).children.push(child);
    }

    /// Takes a node out of its parent.
    pub(crate) fn detach(&mut self, child: NodeIndex) {
        if let Some(parent) = self.node_mut(child).parent.take() {
            self.node_mut(parent).children.retain(|&other| other != child);
        }
    }

    /// Gives a node another name, which must be new.
    pub(crate) fn rename(&mut self, index: NodeIndex, name: Arc<str>) {
        let old = std::mem::replace(&mut self.node_mut(index).name, name.clone());
        if self.by_name.get(&old) == Some(&index) {
            self.by_name.remove(&old);
        }
        self.by_name.insert(name, index);
    }

    /// The node and all above it, the root first.
    pub fn path(&self, index: NodeIndex) -> Vec<NodeIndex> {
        let mut path = vec![index];
        let mut at = index;
        // No path is longer than there are nodes, whatever they say of one another.
        while let Some(parent) = self.node(at).parent.filter(|_| path.len() <= self.nodes.len()) {
            path.push(parent);
            at = parent;
        }
        path.reverse();
        path
    }

    /// All nodes that hang below `top`, and it, parents first.
    pub fn pre_order(&self, top: NodeIndex) -> Vec<NodeIndex> {
        let mut order = Vec::new();
        let mut open = vec![top];
        while let Some(index) = open.pop() {
            order.push(index);
            open.extend(self.node(index).children.iter().rev());
        }
        order
    }

    /// All nodes that hang below the root, and it, children first.
    pub fn post_order(&self) -> Vec<NodeIndex> {
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut open = vec![(Hierarchy::ROOT, 0_usize)];
        while let Some((index, next)) = open.last_mut() {
            if let Some(&child) = self.nodes[*index as usize].children.get(*next) {
                *next += 1;
                open.push((child, 0));
            } else {
                order.push(*index);
                open.pop();
            }
        }
        order
    }

    /// All nodes that hang below the root, and it, level by level.
    pub fn level_order(&self) -> Vec<NodeIndex> {
        let mut order = vec![Hierarchy::ROOT];
        let mut at = 0;
        while let Some(&index) = order.get(at) {
            order.extend(&self.node(index).children);
            at += 1;
        }
        order
    }
}
