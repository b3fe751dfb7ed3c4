//! The first anomaly as the reference finds it: before communication, during it, or after it.
//!
//! An anomaly is a record with finite inputs and an output that is not. Three searches follow each other, and the
//! first that finds something ends the analysis: each rank up to its first communication call; the communication calls,
//! linked across ranks, with the records between them; each rank after its last communication call.
//!
//! Unlike the reference, ranks are visited in ascending order whatever the order of directories, every component of a
//! round is looked at, partners have the very same function name (not one that merely begins with it), and what makes
//! the reference stop is passed over with a note.

mod connect;
mod nodes;
mod output;
mod peers;
mod search;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

pub use self::output::write;

use self::nodes::Graph;
use crate::rank::RankDump;
use crate::record::Record;

/// A record that made a NaN or infinity of finite inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anomaly {
    /// Index of its rank in the slice of ranks.
    pub rank_index: usize,
    /// Index of the record in its rank.
    pub record: usize,
}

/// Which search found something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Before the first communication call of each rank.
    Before,
    /// Along the communication calls.
    During,
    /// After the last communication call of each rank.
    After,
}

/// What the reference's analysis finds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Findings {
    /// Which search found it; none if nothing was found.
    pub phase: Option<Phase>,
    /// What was found, in ascending order of ranks: one of each rank at most, and only one during communication.
    pub anomalies: Vec<Anomaly>,
    /// What could not be used.
    pub notes: Vec<String>,
}

/// Looks for the first anomaly.
pub fn find(ranks: &[RankDump]) -> Findings {
    let mut order: Vec<usize> = (0..ranks.len()).collect();
    order.sort_by(|&left, &right| ranks[left].dir.cmp(&ranks[right].dir));
    let mut notes: Vec<String> = order
        .iter()
        .filter(|&&index| ranks[index].records.is_empty())
        .map(|&index| format!("Rank {} has no dump data!", ranks[index].dir.rank))
        .collect();

    let before: Vec<Anomaly> = order.iter().filter_map(|&index| before_communication(ranks, index)).collect();
    if !before.is_empty() {
        return Findings { phase: Some(Phase::Before), anomalies: before, notes };
    }
    let mut graph = Graph::new(ranks, &order);
    graph.connect();
    note_obstacles(&graph, &mut notes);
    if let Some((rank, record)) = graph.first_anomaly() {
        let during = vec![Anomaly { rank_index: order[rank as usize], record: record as usize }];
        return Findings { phase: Some(Phase::During), anomalies: during, notes };
    }
    let after: Vec<Anomaly> = graph
        .after
        .iter()
        .map(|&(rank, record)| Anomaly { rank_index: order[rank as usize], record: record as usize })
        .collect();
    Findings { phase: (!after.is_empty()).then_some(Phase::After), anomalies: after, notes }
}

fn before_communication(ranks: &[RankDump], rank_index: usize) -> Option<Anomaly> {
    ranks[rank_index]
        .records
        .iter()
        .take_while(|record| record.communication.is_none())
        .position(is_anomaly)
        .map(|record| Anomaly { rank_index, record })
}

/// What the reference calls an anomaly: tensors inside of nested lists do not count.
fn is_anomaly(record: &Record) -> bool {
    let plain = record.plain;
    plain.output && !(plain.input || plain.input_args || plain.input_kwargs) && !is_ignored(&record.name)
}

/// Records whose results are not computed: `Torch.empty` or `Torch.fill` is anywhere in the name, as the reference has
/// it. Every record is asked, so the name is gone through only once.
fn is_ignored(name: &str) -> bool {
    let name = name.as_bytes();
    name.iter().enumerate().filter(|(_, byte)| **byte == b'.').any(|(at, _)| {
        let after = &name[at + 1..];
        name[..at].ends_with(b"Torch") && (after.starts_with(b"empty") || after.starts_with(b"fill"))
    })
}

/// Says what of the communication could not be used.
fn note_obstacles(graph: &Graph<'_>, notes: &mut Vec<String>) {
    let place = |index: usize| format!("rank {} {}", graph.rank_of(index), graph.record_of(index).name);
    if let Some((count, first)) = counted(graph.nodes.iter().map(|node| node.has_short_name)) {
        notes.push(format!(
            "{count} communication call(s) have no number and direction in their names, such as {}: they are paired by \
             their order",
            place(first)
        ));
    }
    if let Some((count, first)) = counted(graph.nodes.iter().map(|node| node.has_list)) {
        notes.push(format!(
            "{count} communication call(s) with a root are given lists by position, such as {}: the tensors in them are \
             not looked at",
            place(first)
        ));
    }
    let missing: BTreeSet<i64> = graph.peers.missing().collect();
    if !missing.is_empty() {
        notes.push(format!(
            "communication calls name rank(s) that have no dump here: {}. Links to them are left out",
            shortened(&missing)
        ));
    }
    if graph.ranks.len() > 1
        && let Some((count, first)) = counted(
            graph.nodes.iter().map(|node| !node.is_linked && graph.peers.names_others(node.peers, node.rank)),
        )
    {
        notes.push(format!(
            "{count} communication call(s) have no partner on another rank, such as {}",
            place(first)
        ));
    }
}

/// How many are true, and the first of them.
fn counted(flags: impl Iterator<Item = bool>) -> Option<(usize, usize)> {
    let mut found = flags.enumerate().filter(|(_, flag)| *flag).map(|(index, _)| index);
    let first = found.next()?;
    Some((1 + found.count(), first))
}

/// Numbers in one line, be there many.
fn shortened(numbers: &BTreeSet<i64>) -> String {
    const SHOWN: usize = 16;
    let mut text: Vec<String> = numbers.iter().take(SHOWN).map(i64::to_string).collect();
    if numbers.len() > SHOWN {
        text.push(format!("and {} more", numbers.len() - SHOWN));
    }
    text.join(", ")
}
