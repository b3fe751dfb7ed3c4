//! What is counted while graphs are written, for the lines a user sees.

use std::sync::Arc;

use msprobe_compare::Mode;

use crate::compare::Task;
use crate::names::{Generation, ROOT};
use crate::overflow::OverflowLevel;
use crate::walk::Shown;

use super::pair::Pair;

/// So many of the worst nodes are listed.
const WORST: usize = 5;

/// Counts of all graphs of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    /// Graphs of the target.
    pub graphs: usize,
    /// Nodes of the target, without roots.
    pub target_nodes: usize,
    /// Of those, with a partner.
    pub target_matched: usize,
    /// Nodes of the golden side, without roots.
    pub golden_nodes: usize,
    /// Of those, with a partner.
    pub golden_matched: usize,
    /// Nodes below the root because nothing says where they belong.
    pub orphans: usize,
    /// Nodes by verdict: pass, warning, error.
    pub grades: [usize; 3],
    /// Nodes by how alarming they are: medium, high, critical.
    pub overflow: [usize; 3],
    /// The worst nodes, the worst first: how bad, where, which.
    pub worst: Vec<(f64, String, Arc<str>)>,
}

impl Tally {
    /// Counts the nodes of a pair.
    pub fn add_pair(&mut self, pair: &Pair) {
        let is_node = |node: &crate::hierarchy::Node| &*node.name != ROOT;
        let nodes = |nodes: &[crate::hierarchy::Node]| nodes.iter().filter(|node| is_node(node)).count();
        self.graphs += 1;
        self.target_nodes += nodes(&pair.target.hierarchy.nodes);
        self.orphans += pair.target.hierarchy.nodes.iter().filter(|node| node.orphan.is_some()).count();
        if let Some(golden) = &pair.golden {
            self.golden_nodes += nodes(&golden.graph.hierarchy.nodes);
            // The roots always belong together.
            let linked = |links: &[Option<u32>]| links.iter().skip(1).filter(|link| link.is_some()).count();
            self.target_matched += linked(&golden.links.to_golden);
            self.golden_matched += linked(&golden.links.to_target);
        }
    }

    /// Counts a node of the target.
    pub fn add_node(&mut self, pair: &Pair, place: &str, shown: &Shown) {
        if let Some(level) = shown.overflow {
            self.overflow[match level {
                OverflowLevel::Medium => 0,
                OverflowLevel::High => 1,
                OverflowLevel::Critical => 2,
            }] += 1;
        }
        let node = pair.target.hierarchy.node(shown.index);
        let (Some(index), Some(golden)) = (shown.result.index, &pair.golden) else { return };
        if node.kind.is_collection() {
            return;
        }
        let is_reversed =
            golden.task == Task::Values(Mode::Md5) && golden.comparer.generation == Generation::First;
        let bad = if is_reversed { 1.0 - index.number() } else { index.number() };
        // The ranges both generations colour: up to 0.3, up to 0.6, beyond.
        self.grades[if bad < 0.3 {
            0
        } else if bad < 0.6 {
            1
        } else {
            2
        }] += 1;
        let is_worse = |known: &(f64, String, Arc<str>)| bad <= known.0;
        if bad > 0.0 && (self.worst.len() < WORST || self.worst.last().is_some_and(|last| bad > last.0)) {
            let at = self.worst.iter().take_while(|known| is_worse(known)).count();
            self.worst.insert(at, (bad, place.to_owned(), node.name.clone()));
            self.worst.truncate(WORST);
        }
    }

    /// The lines a user sees.
    pub fn lines(&self, is_comparison: bool, has_overflow_check: bool) -> Vec<String> {
        let side = |nodes: usize, matched: usize| {
            format!("{nodes} nodes, {matched} matched, {} unmatched", nodes.saturating_sub(matched))
        };
        let mut lines = Vec::new();
        if is_comparison {
            lines.push(format!("target  {}", side(self.target_nodes, self.target_matched)));
            lines.push(format!("golden  {}", side(self.golden_nodes, self.golden_matched)));
            let [pass, warning, error] = self.grades;
            lines.push(format!("verdicts  {pass} pass, {warning} warning, {error} error"));
        } else {
            lines.push(format!("{} nodes in {}", self.target_nodes, crate::run::count(self.graphs, "graph")));
        }
        if self.orphans > 0 {
            let calls = crate::run::count(self.orphans, "node");
            lines.push(format!("{calls} without a known parent, below the root with a mark"));
        }
        if has_overflow_check {
            let [medium, high, critical] = self.overflow;
            lines.push(format!("overflow  {critical} critical, {high} high, {medium} medium"));
        }
        lines
    }

    /// The worst nodes, for a user.
    pub fn worst_lines(&self) -> Vec<String> {
        let line = |(bad, place, name): &(f64, String, Arc<str>)| {
            let place = if place.is_empty() { String::new() } else { format!("  ({place})") };
            format!("  {bad:<6.4} {name}{place}")
        };
        self.worst.iter().map(line).collect()
    }
}
