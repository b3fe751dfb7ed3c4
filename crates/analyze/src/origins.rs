//! The records that are to blame, in the order of time across ranks, and the paths from there to everything else.

use std::collections::BTreeMap;

use msprobe_dump::hash::FastSet;
use msprobe_dump::model::Construct;
use rayon::prelude::*;

use crate::causes::{Cause, Causes, Making};
use crate::findings::record_at;
use crate::links::{At, Links};
use crate::rank::RankDump;
use crate::record::Role;
use crate::rules::{Rule, Rules};

/// A path is not followed further than that.
const MAX_PATH: usize = 100_000;

/// Origins beyond so many are counted, and have no chain: nobody reads on.
pub(crate) const MOST_TOLD: usize = 50;

/// A record nothing before it is to blame for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Which.
    pub at: At,
    /// Why.
    pub cause: Cause,
    /// The way from it, itself included, to where it came last: the rank it reached last, or the last record. Empty if
    /// many came before it.
    pub chain: Vec<At>,
}

/// How a rank that was finite came to be so no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The first record of the rank with values that are not finite.
    pub at: At,
    /// Where they came from; nothing if that was not recorded.
    pub from: Option<At>,
}

/// Values that mean no harm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excused {
    /// By which rule.
    pub rule: Rule,
    /// The first record.
    pub at: At,
    /// Records of this function on this rank.
    pub count: usize,
}

/// Everything there is to say about a step.
#[derive(Debug, Default)]
pub struct Picture {
    /// Origins independent of each other, the earliest first.
    pub origins: Vec<Origin>,
    /// One per rank that did not begin it itself.
    pub arrivals: Vec<Arrival>,
    /// What was excused.
    pub excused: Vec<Excused>,
    /// Causes of all ranks.
    pub causes: Vec<Causes>,
}

impl Picture {
    /// Puts the causes of all ranks together.
    pub fn find(ranks: &[RankDump], links: &Links, constructs: &[Construct], rules: &Rules) -> Picture {
        let empty = Construct::default();
        let construct = |index| constructs.get(index).unwrap_or(&empty);
        let find = |index| Causes::find(index, ranks, links, construct(index), rules);
        let causes: Vec<Causes> = (0..ranks.len()).into_par_iter().map(find).collect();
        let mut picture = Picture { causes, ..Picture::default() };
        picture.find_cut_calls(ranks);
        picture.unite_exchanges(links);
        picture.give_everything_an_origin(ranks, links);
        // Where nothing worse is to be told, what came in from nowhere and did no harm so far is.
        if picture.all().all(|(_, cause)| matches!(cause, Cause::Harmless(_))) {
            picture.causes.iter_mut().for_each(Causes::tell_absorbed);
        }
        picture.excused = picture.find_excused(ranks, rules);
        let mut origins: Vec<Origin> = picture
            .all()
            .filter(|(_, cause)| cause.is_origin())
            .map(|(at, cause)| Origin { at, cause, chain: Vec::new() })
            .collect();
        // What came from a rank without a dump began elsewhere: what is known comes first.
        // So did what enters a rank from nowhere, where no communication was recorded that could tell who was first.
        let made_on = |other_than: u32| {
            origins.iter().any(|other| other.at.rank != other_than && matches!(other.cause, Cause::Made(_)))
        };
        let guesses: FastSet<At> = origins
            .iter()
            .filter(|origin| match origin.cause {
                Cause::Missing(_) => true,
                Cause::Entered => links.is_empty() && made_on(origin.at.rank),
                _ => false,
            })
            .map(|origin| origin.at)
            .collect();
        let is_guess = |origin: &Origin| guesses.contains(&origin.at);
        origins.sort_by_key(|origin| (is_guess(origin), links.time(origin.at), origin.at));
        // What enters a rank after something was made on another came from there, by communication nobody recorded.
        let is_explained = |origin: &Origin, earlier: &[Origin]| {
            origin.cause == Cause::Entered && earlier.iter().any(|other| other.at.rank != origin.at.rank)
        };
        for origin in origins {
            if is_explained(&origin, &picture.origins) {
                picture.arrivals.push(Arrival { at: origin.at, from: None });
            } else {
                picture.origins.push(origin);
            }
        }
        picture.find_arrivals(links);
        picture.find_chains();
        picture
    }

    /// Records of a rank whose values are not finite and not harmless.
    pub fn polluted(&self, rank: u32) -> impl Iterator<Item = u32> {
        let causes = self.causes.get(rank as usize);
        causes
            .into_iter()
            .flat_map(Causes::in_order)
            .filter(|(_, cause)| !matches!(cause, Cause::Harmless(_)))
            .map(|(record, _)| record)
    }

    /// The cause of a record.
    pub fn cause(&self, at: At) -> Option<Cause> {
        self.causes.get(at.rank as usize).and_then(|causes| causes.of(at.record))
    }

    /// The record its values came from.
    pub fn before(&self, at: At) -> Option<At> {
        match self.cause(at)? {
            Cause::Arrived(from) => Some(from),
            Cause::Spread { from, .. } | Cause::Inside(from) => Some(At { rank: at.rank, record: from }),
            _ => None,
        }
    }

    /// The way to a record from its origin, both included.
    pub fn path(&self, to: At) -> Vec<At> {
        let mut path = vec![to];
        let mut seen: FastSet<At> = FastSet::default();
        let mut at = to;
        while let Some(before) = self.before(at) {
            if !seen.insert(at) || path.len() >= MAX_PATH {
                break;
            }
            path.push(before);
            at = before;
        }
        path.reverse();
        path
    }

    /// A rank whose dump ends before a call the others made, and that was not finite by then, is where it came from.
    fn find_cut_calls(&mut self, ranks: &[RankDump]) {
        let missing: Vec<(At, i64)> = self
            .all()
            .filter_map(|(at, cause)| match cause {
                Cause::Missing(Some(rank)) => Some((at, rank)),
                _ => None,
            })
            .collect();
        for (at, rank) in missing {
            let index = ranks.iter().position(|dump| i64::from(dump.dir.rank) == rank);
            let last = index.and_then(|index| Some((index as u32, self.polluted(index as u32).last()?)));
            if let Some((rank, record)) = last {
                self.set(at, Cause::Arrived(At { rank, record }));
            }
        }
    }

    /// Causes must lead to an origin. Where they lead in a circle, the earliest record of it that computes, or at least was
    /// not given by another rank, is one: a receive that was posted early can be taken for the source of what came
    /// before it. Where they lead to values that were taken for harmless, those were not.
    fn give_everything_an_origin(&mut self, ranks: &[RankDump], links: &Links) {
        let mut is_settled: Vec<Vec<bool>> =
            ranks.iter().map(|dump| vec![false; dump.records.len()]).collect();
        let is_harmless = |cause: &Cause| matches!(cause, Cause::Harmless(_));
        let is_given = |at: At| {
            record_at(ranks, at).is_some_and(|(_, record)| {
                record.communication.is_some() && !record.kinds(Role::Input).is_finite()
            })
        };
        let all: Vec<At> = self.all().filter(|(_, cause)| !is_harmless(cause)).map(|(at, _)| at).collect();
        for start in all {
            let mut path: Vec<At> = Vec::new();
            let mut on_path: FastSet<At> = FastSet::default();
            let mut at = start;
            while !is_settled[at.rank as usize][at.record as usize] {
                if !on_path.insert(at) {
                    let circle = &path[path.iter().position(|known| *known == at).unwrap_or(0)..];
                    if let Some(first) = self.first_of_circle(circle, ranks, links) {
                        self.set(first, Cause::Entered);
                    }
                    break;
                }
                path.push(at);
                match (self.before(at), self.cause(at)) {
                    (Some(before), _) => at = before,
                    (None, None) => self.set(at, Cause::Entered),
                    // What was only let through.
                    (None, Some(Cause::Harmless(rule)))
                        if is_given(at)
                            || matches!(rule, Rule::ReceiveBuffer | Rule::Absorbed | Rule::Argument) =>
                    {
                        self.set(at, Cause::Entered);
                    }
                    (None, Some(Cause::Harmless(Rule::Mask))) => {
                        self.set(at, Cause::Made(Making::FullyMasked));
                    }
                    (None, Some(Cause::Harmless(_))) => self.set(at, Cause::Made(Making::FromArgument)),
                    (None, Some(_)) => break,
                }
                if self.cause(at).is_some_and(Cause::is_origin) {
                    break;
                }
            }
            for at in path {
                is_settled[at.rank as usize][at.record as usize] = true;
            }
        }
    }

    fn first_of_circle(&self, circle: &[At], ranks: &[RankDump], links: &Links) -> Option<At> {
        let is_given = |at: &At| matches!(self.cause(*at), Some(Cause::Arrived(_)));
        let is_call =
            |at: &At| record_at(ranks, *at).is_some_and(|(_, record)| record.communication.is_some());
        circle.iter().copied().min_by_key(|at| (is_given(at), is_call(at), links.time(*at), *at))
    }

    fn set(&mut self, at: At, cause: Cause) {
        if let Some(causes) = self.causes.get_mut(at.rank as usize) {
            causes.set(at.record, cause);
        }
    }

    /// What a communication made, or brought from a rank without a dump, began once, not on every rank that got it.
    fn unite_exchanges(&mut self, links: &Links) {
        let begins = |cause: Cause| matches!(cause, Cause::Made(Making::InCommunication) | Cause::Missing(_));
        let found: Vec<At> = self.all().filter(|(_, cause)| begins(*cause)).map(|(at, _)| at).collect();
        for at in found {
            let others = links.of(at).flat_map(|exchange| &exchange.members);
            let first = others.filter(|other| self.cause(**other).is_some_and(begins)).min().copied();
            if let Some(first) = first.filter(|first| first.rank < at.rank) {
                self.set(at, Cause::Arrived(first));
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = (At, Cause)> {
        self.causes.iter().zip(0..).flat_map(|(causes, rank)| {
            causes.in_order().map(move |(record, cause)| (At { rank, record }, cause))
        })
    }

    fn find_excused(&self, ranks: &[RankDump], rules: &Rules) -> Vec<Excused> {
        let mut excused: BTreeMap<(Rule, u32, &str), Excused> = BTreeMap::new();
        let by_cause = self.all().filter_map(|(at, cause)| match cause {
            Cause::Harmless(rule) => Some((at, rule)),
            _ => None,
        });
        let overflowed = ranks.iter().zip(0..).flat_map(|(dump, rank)| {
            let records =
                dump.unmeasured.iter().filter(|(_, unmeasured)| unmeasured.overflowed_sums.count > 0);
            records.map(move |(record, _)| (At { rank, record: *record }, Rule::NormOverflow))
        });
        let overflowed = overflowed.filter(|_| rules.has(Rule::NormOverflow));
        for (at, rule) in by_cause.chain(overflowed) {
            let Some((_, record)) = record_at(ranks, at) else { continue };
            let known = excused.entry((rule, at.rank, record.parts().stem()));
            known.or_insert(Excused { rule, at, count: 0 }).count += 1;
        }
        excused.into_values().collect()
    }

    fn find_arrivals(&mut self, links: &Links) {
        for rank in 0..self.causes.len() as u32 {
            let Some(record) = self.polluted(rank).next() else { continue };
            let at = At { rank, record };
            let is_origin = self.origins.iter().any(|origin| origin.at == at);
            let is_known = self.arrivals.iter().any(|arrival| arrival.at.rank == rank);
            if is_origin || is_known {
                continue;
            }
            self.arrivals.push(Arrival { at, from: self.before(at) });
        }
        self.arrivals.sort_by_key(|arrival| (links.time(arrival.at), arrival.at));
    }

    /// The longest story an origin has to tell: to the rank it reached last, or else to the last record it reached.
    fn find_chains(&mut self) {
        let told = &self.origins[..self.origins.len().min(MOST_TOLD)];
        let mut chains: Vec<Vec<At>> = told.iter().map(|origin| vec![origin.at]).collect();
        let number_of = |root: At| told.iter().position(|origin| origin.at == root);
        for arrival in &self.arrivals {
            let path = self.path(arrival.at);
            if let Some(number) = path.first().and_then(|root| number_of(*root)) {
                // Arrivals are in the order of time: the last one counts.
                chains[number] = path;
            }
        }
        for (origin, chain) in told.iter().zip(&mut chains) {
            if chain.len() > 1 {
                continue;
            }
            let reached: Vec<u32> = self.polluted(origin.at.rank).collect();
            let ends =
                reached.iter().rev().map(|record| self.path(At { rank: origin.at.rank, record: *record }));
            if let Some(path) = ends.take(MAX_ENDS).find(|path| path.first() == Some(&origin.at)) {
                *chain = path;
            }
        }
        for (origin, chain) in self.origins.iter_mut().zip(chains) {
            origin.chain = chain;
        }
    }
}

/// So many last records are tried to find one that goes back to an origin.
const MAX_ENDS: usize = 64;
