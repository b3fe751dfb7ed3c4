//! Where to look first: the earliest call that made a difference, or a NaN, over all ranks by what they tell one another.

use std::collections::HashMap;

use rusqlite::params;

use super::detail::{cell_text, values_of};
use super::marks::Mark;
use super::open::{number, text};
use super::peers::Call;
use super::series::number_of;
use super::{Asking, Overflow, Scope, Verdict};
use crate::fault::Fault;
use crate::wire::{Found, Jump, Side};
use msprobe_report::Tone;

/// A call of a rank that may be the first of all.
struct Candidate {
    scope: Scope,
    order: i64,
    why: String,
    calls: Vec<Call>,
}

impl Asking<'_> {
    /// The earliest divergence of a rank, or of all.
    pub(crate) fn first_divergence(&self, step: Option<i64>, rank: Option<i64>) -> Result<Jump, Fault> {
        if !self.store.facts.is_comparison {
            return Ok(Jump { found: None, why: "nothing was compared: there is one side only".to_owned() });
        }
        self.earliest(
            step,
            rank,
            "no call was found whose inputs agree and whose outputs do not",
            |asking, scope| {
                let marks = asking.store.marks.require(asking, scope)?;
                let has_verdicts = asking.store.facts.has_verdicts;
                let answers = &asking.store.facts.answers;
                // What the answer names, where there is one: it knows more than one node shows.
                let of_answer =
                    answers.iter().find(|answer| answer.step == scope.step && answer.rank == scope.rank);
                if let Some(node) = of_answer.and_then(|answer| answer.node.as_ref())
                    && let Some(raw) = asking.raw(scope, super::Wanted::Name(node))?
                    && !raw.modified
                {
                    let why = of_answer.map_or_else(String::new, |answer| answer.headline.clone());
                    return Ok(Some((raw.order, why)));
                }
                let introduced =
                    |mark: &Mark| mark.verdict == Some(Verdict::Introduced) && !mark.kind.is_collection();
                let graded = |mark: &Mark| {
                    mark.tone == Tone::Bad && !mark.kind.is_collection() && mark.index.is_some()
                };
                let first = if has_verdicts {
                    marks
                        .iter()
                        .find(introduced)
                        .map(|mark| (mark.order, "the first call that made an error"))
                } else {
                    let leaf = marks.iter().filter(graded).find(|mark| mark.is_leaf);
                    leaf.or_else(|| marks.iter().find(graded))
                        .map(|mark| (mark.order, "the first node whose colour is that of an error"))
                };
                Ok(first.map(|(order, why)| (order, why.to_owned())))
            },
        )
    }

    /// The earliest call with finite inputs and results that are not, of a rank, or of all.
    pub(crate) fn first_nan(&self, step: Option<i64>, rank: Option<i64>) -> Result<Jump, Fault> {
        self.earliest(step, rank, "no call was found that made a NaN or an infinity", |asking, scope| {
            if asking.store.facts.overflow_check {
                let marks = asking.store.marks.require(asking, scope)?;
                let made =
                    marks.iter().find(|mark| mark.overflow == Some(Overflow::Critical) && mark.is_leaf);
                let made =
                    made.or_else(|| marks.iter().find(|mark| mark.overflow == Some(Overflow::Critical)));
                return Ok(
                    made.map(|mark| (mark.order, "its inputs are finite and its outputs are not".to_owned()))
                );
            }
            asking.first_not_finite(scope)
        })
    }

    /// Goes through values until one is not finite.
    fn first_not_finite(&self, scope: Scope) -> Result<Option<(i64, String)>, Fault> {
        let mut statement = self.connection.prepare_cached(
            "SELECT node_order, input_data, output_data FROM tb_nodes WHERE step = ?1 AND rank = ?2 AND data_source = ?3 \
             AND (output_data LIKE '%\"nan%' OR output_data LIKE '%\"inf%' OR output_data LIKE '%\"-inf%') ORDER BY node_order",
        )?;
        let mut rows = statement.query(params![scope.step, scope.rank, scope.side.source()])?;
        while let Some(row) = rows.next()? {
            let not_finite = |json: &str| {
                values_of(json).iter().any(|(_, members)| {
                    ["Max", "Min", "Mean"].iter().any(|statistic| {
                        let number = members.get(*statistic).and_then(|value| number_of(&cell_text(value)));
                        number.is_some_and(|number| !number.is_finite())
                    })
                })
            };
            if not_finite(&text(row, 2)?) && !not_finite(&text(row, 1)?) {
                return Ok(Some((
                    number(row, 0)?.unwrap_or(0),
                    "its inputs are finite and its outputs are not".to_owned(),
                )));
            }
        }
        Ok(None)
    }

    /// The earliest of what `find` finds in each rank of the first step in which it finds anything.
    fn earliest(
        &self,
        step: Option<i64>,
        rank: Option<i64>,
        nothing: &str,
        find: impl Fn(&Asking<'_>, Scope) -> Result<Option<(i64, String)>, Fault>,
    ) -> Result<Jump, Fault> {
        let facts = &self.store.facts;
        let steps: Vec<i64> =
            facts.steps.iter().copied().filter(|at| step.is_none_or(|step| step == *at)).collect();
        for step in steps {
            let mut candidates = Vec::new();
            for &at in facts.ranks.iter().filter(|at| rank.is_none_or(|rank| rank == **at)) {
                let scope = Scope { step, rank: at, side: Side::Target };
                if let Some((order, why)) = find(self, scope)? {
                    let calls = if rank.is_none() { self.communication(scope)? } else { Vec::new() };
                    candidates.push(Candidate { scope, order, why, calls });
                }
            }
            if let Some(first) = first_of(&candidates) {
                let Candidate { scope, order, why, .. } = first;
                let Some(raw) = self.raw(*scope, super::Wanted::Order(*order))? else { continue };
                let others = candidates.len() - 1;
                let among = match others {
                    0 => String::new(),
                    _ => {
                        format!("; {others} more ranks have one of their own, later or told by communication")
                    }
                };
                let found = Found { step, rank: scope.rank, side: scope.side, node: raw.name };
                return Ok(Jump { found: Some(found), why: format!("{why}{among}") });
            }
        }
        Ok(Jump { found: None, why: nothing.to_owned() })
    }
}

/// The one that no other comes before: another one does if it was before a call whose peer is before this one.
fn first_of(candidates: &[Candidate]) -> Option<&Candidate> {
    let orders: Vec<HashMap<&str, i64>> = candidates
        .iter()
        .map(|candidate| candidate.calls.iter().map(|call| (call.name.as_str(), call.order)).collect())
        .collect();
    let comes_before = |other: usize, this: usize| {
        let (earlier, later) = (&candidates[other], &candidates[this]);
        later.calls.iter().filter(|call| call.order <= later.order).any(|call| {
            call.peers.iter().any(|peer| {
                let there = orders[other].get(peer.node.as_str());
                peer.rank == earlier.scope.rank
                    && peer.way != "send"
                    && there.is_some_and(|there| *there >= earlier.order)
            })
        })
    };
    let is_first = |this: usize| {
        (0..candidates.len())
            .all(|other| other == this || !comes_before(other, this) || comes_before(this, other))
    };
    // Of several that nothing is known of, the one after the fewest communication calls.
    let depth = |this: usize| {
        let candidate = &candidates[this];
        candidate.calls.iter().filter(|call| call.order < candidate.order).count()
    };
    let first = (0..candidates.len()).filter(|&this| is_first(this)).min_by_key(|&this| (depth(this), this));
    first.map(|this| &candidates[this]).or_else(|| candidates.first())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Peer;

    fn call(order: i64, name: &str, peer: Option<(i64, &str, &str)>) -> Call {
        let peers = peer.map(|(rank, node, way)| Peer {
            rank,
            node: node.to_owned(),
            way: way.to_owned(),
            index: "Nan".to_owned(),
        });
        Call::for_test(order, name, peers.into_iter().collect())
    }

    fn candidate(rank: i64, order: i64, calls: Vec<Call>) -> Candidate {
        Candidate { scope: Scope { step: 0, rank, side: Side::Target }, order, why: String::new(), calls }
    }

    #[test]
    fn what_was_received_comes_after_what_was_sent() {
        let ranks = [
            candidate(
                0,
                7,
                vec![call(
                    5,
                    "Distributed.recv.0.forward",
                    Some((1, "Distributed.send.0.forward", "receive")),
                )],
            ),
            candidate(
                1,
                40,
                vec![call(50, "Distributed.send.0.forward", Some((0, "Distributed.recv.0.forward", "send")))],
            ),
        ];
        assert_eq!(first_of(&ranks).map(|first| first.scope.rank), Some(1));
        // What was sent before the candidate says nothing of it.
        let ranks = [
            candidate(
                0,
                7,
                vec![call(
                    5,
                    "Distributed.recv.0.forward",
                    Some((1, "Distributed.send.0.forward", "receive")),
                )],
            ),
            candidate(
                1,
                60,
                vec![call(50, "Distributed.send.0.forward", Some((0, "Distributed.recv.0.forward", "send")))],
            ),
        ];
        assert_eq!(first_of(&ranks).map(|first| first.scope.rank), Some(0));
    }
}
