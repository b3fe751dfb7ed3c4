//! Communication between ranks: which calls wait for which, as marks on lanes.

use std::collections::HashMap;

use msprobe_report::Tone;
use rusqlite::params;
use serde_json::{Value, json};

use super::brief::is_nothing;
use super::detail::peers_of;
use super::open::{number, real, text};
use super::words::{Overflow, weight};
use super::{Asking, Scope};
use crate::fault::Fault;
use crate::wire::{Peer, Side};

/// Communication calls of one rank that are looked at.
const MOST_CALLS: i64 = 20_000;
/// Marks on one lane.
const MOST_MARKS: usize = 1500;

/// A call that ranks make together.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) order: i64,
    pub(crate) name: String,
    pub(crate) peers: Vec<Peer>,
    tone: Tone,
}

impl Asking<'_> {
    /// The communication of a rank, in order.
    pub(crate) fn communication(&self, scope: Scope) -> Result<Vec<Call>, Fault> {
        // Names that begin so lie together in the index of names.
        let mut statement = self.connection.prepare_cached(
            "SELECT node_order, node_name, matched_distributed, precision_index, overflow_level FROM tb_nodes \
             WHERE step = ?1 AND rank = ?2 AND data_source = ?3 AND node_name >= 'Distributed' AND node_name < 'Distributee' \
             ORDER BY node_order LIMIT ?4",
        )?;
        let mut rows = statement.query(params![scope.step, scope.rank, scope.side.source(), MOST_CALLS])?;
        let mut calls = Vec::new();
        while let Some(row) = rows.next()? {
            let peers = text(row, 2)?;
            let index = real(row, 3)?;
            calls.push(Call {
                order: number(row, 0)?.unwrap_or(0),
                name: text(row, 1)?,
                peers: if is_nothing(&peers) { Vec::new() } else { peers_of(&peers) },
                tone: super::brief::tone(&self.store.facts, None, index, Overflow::of(&text(row, 4)?)),
            });
        }
        Ok(calls)
    }

    /// Lanes of ranks for the page that draws them: `TimelineDescription` of the web sources.
    pub(crate) fn timeline(&self, step: i64) -> Result<Value, Fault> {
        let facts = &self.store.facts;
        let (mut lanes, mut links) = (Vec::new(), Vec::new());
        let mut marked: Vec<HashMap<String, usize>> = Vec::new();
        let mut calls_of: Vec<Vec<Call>> = Vec::new();
        let mut is_cut = false;
        for &rank in &facts.ranks {
            let scope = Scope { step, rank, side: Side::Target };
            let mut calls = self.communication(scope)?;
            is_cut |= calls.len() > MOST_MARKS;
            calls.truncate(MOST_MARKS);
            let last = self
                .connection
                .prepare_cached(
                    "SELECT max(node_order) FROM tb_nodes WHERE step = ?1 AND rank = ?2 AND data_source = ?3",
                )?
                .query_row(params![step, rank, scope.side.source()], |row| number(row, 0))?
                .unwrap_or(0);
            let answer = facts.answers.iter().find(|answer| answer.step == step && answer.rank == rank);
            let mut marks: Vec<Value> = Vec::new();
            let mut names = HashMap::new();
            for call in &calls {
                names.insert(call.name.clone(), marks.len());
                let ways: Vec<String> = call
                    .peers
                    .iter()
                    .take(8)
                    .map(|peer| format!("{} rank {}: {}", peer.way, peer.rank, peer.node))
                    .collect();
                marks.push(json!([call.order, call.tone.as_str(), call.name, ways.join("\n"), 0]));
            }
            if let Some((answer, node)) = answer.and_then(|answer| Some((answer, answer.node.as_ref()?)))
                && let Some(raw) = self.raw(scope, super::Wanted::Name(node))?
            {
                let mark = json!([raw.order, answer.tone.as_str(), node, answer.headline, 1]);
                match names.get(node) {
                    Some(&at) => marks[at] = mark,
                    None => marks.push(mark),
                }
            }
            let note = answer.map_or_else(String::new, |answer| answer.headline.clone());
            lanes.push(json!([format!("rank {rank}"), last, note, [], marks]));
            marked.push(names);
            calls_of.push(calls);
        }
        for (lane, calls) in calls_of.iter().enumerate() {
            for (at, call) in calls.iter().enumerate() {
                for peer in &call.peers {
                    let Some(there) = facts.ranks.iter().position(|rank| *rank == peer.rank) else {
                        continue;
                    };
                    let Some(&mark) = marked[there].get(&peer.node) else { continue };
                    // Each link once: from who gives, or from the first of those who both do.
                    let is_first = peer.way == "send" || peer.way != "receive" && there > lane;
                    if is_first {
                        let other = &calls_of[there][mark];
                        let tone =
                            if weight(other.tone) > weight(call.tone) { other.tone } else { call.tone };
                        links.push(json!([lane, at, there, mark, tone.as_str(), peer.way]));
                    }
                }
            }
        }
        let note = if is_cut {
            format!("the first {MOST_MARKS} calls of each rank are shown")
        } else {
            String::new()
        };
        Ok(json!({
            "name": format!("step {step}"),
            "count": calls_of.iter().map(Vec::len).sum::<usize>(),
            "note": note,
            "lanes": lanes,
            "links": links,
            "legend": [["bad", "differs"], ["warning", "worth a look"], ["good", "agrees"], ["plain", "not compared"]],
        }))
    }
}

#[cfg(test)]
impl Call {
    pub(crate) fn for_test(order: i64, name: &str, peers: Vec<Peer>) -> Call {
        Call { order, name: name.to_owned(), peers, tone: Tone::Plain }
    }
}
