//! Why the values of a record are not finite: they were made there, or they came from another record.
//!
//! A dump does not say which tensor went where. A tensor that appears again has the same dtype, shape and statistics,
//! and that is what is followed; where it leads nowhere, the last record that was not finite is taken for the
//! source, since that is how such values spread.

mod calls;
mod excuses;
mod search;

use msprobe_dump::hash::FastMap;
use msprobe_dump::model::Construct;

use self::search::Search;
use crate::links::{At, Links};
use crate::rank::RankDump;
use crate::rules::{Rule, Rules};

/// Where the values of a record that are not finite come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Its inputs are finite, its outputs are not: it made them.
    Made(Making),
    /// It was given them, and nothing recorded made them: data, parameters, operations nobody watched.
    Entered,
    /// It read a parameter that was not finite before.
    Parameter,
    /// They came from this rank of the job, or from one nobody knows, of which there is no dump, or none of the call.
    Missing(Option<i64>),
    /// Another rank gave them in a communication.
    Arrived(At),
    /// An earlier record of the same rank. `sure`: it had this very tensor as an output.
    Spread {
        /// Which one.
        from: u32,
        /// Whether that is known.
        sure: bool,
    },
    /// A module: a record inside of it.
    Inside(u32),
    /// They mean no harm.
    Harmless(Rule),
}

/// How a record came to make them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Making {
    /// From finite inputs.
    Computed,
    /// From finite inputs of all ranks, in a communication.
    InCommunication,
    /// From a mask that hides all elements of a row.
    FullyMasked,
    /// From memory that was never written to.
    FromUninitialized,
    /// From a number that is not finite, given on purpose, and went on from there.
    FromArgument,
}

impl Cause {
    /// Whether nothing before it is to blame.
    pub fn is_origin(self) -> bool {
        matches!(self, Cause::Made(_) | Cause::Entered | Cause::Parameter | Cause::Missing(_))
    }
}

/// The causes of one rank.
#[derive(Debug, Default)]
pub struct Causes {
    /// By record; only those whose values are not finite.
    by_record: FastMap<u32, Cause>,
    /// The same records in the order in which their results were there.
    order: Vec<u32>,
    /// Records that got something nobody recorded made, gave only finite values, and of which nothing else came.
    absorbed: Vec<Absorbed>,
}

/// A record that got something nobody recorded made, and gave only finite values.
#[derive(Debug, Clone, Copy)]
struct Absorbed {
    record: u32,
    /// The first record that got the same.
    first: Option<u32>,
}

impl Causes {
    /// The cause of a record.
    pub fn of(&self, record: u32) -> Option<Cause> {
        self.by_record.get(&record).copied()
    }

    /// Says what became known of a record later.
    pub(crate) fn set(&mut self, record: u32, cause: Cause) {
        if self.by_record.insert(record, cause).is_none() {
            let place = self.order.partition_point(|known| *known < record);
            self.order.insert(place, record);
        }
    }

    /// Records that got something nobody recorded made, gave only finite values, and are not told of otherwise.
    pub fn absorbed(&self) -> impl Iterator<Item = u32> {
        let records = self.absorbed.iter().map(|absorbed| absorbed.record);
        records.filter(|record| !self.by_record.contains_key(record))
    }

    /// Takes what is absorbed for what it is: values that entered.
    pub(crate) fn tell_absorbed(&mut self) {
        for Absorbed { record, first } in self.absorbed.clone() {
            if self.of(record).is_none() {
                self.set(record, first.map_or(Cause::Entered, |from| Cause::Spread { from, sure: true }));
            }
        }
    }

    /// Records with a cause, in time.
    pub fn in_order(&self) -> impl Iterator<Item = (u32, Cause)> {
        self.order.iter().filter_map(|record| Some((*record, self.of(*record)?)))
    }

    /// Finds them for one rank.
    pub fn find(
        rank_index: usize,
        ranks: &[RankDump],
        links: &Links,
        construct: &Construct,
        rules: &Rules,
    ) -> Causes {
        let Some(dump) = ranks.get(rank_index) else { return Causes::default() };
        if dump.records.iter().all(|record| record.bad.is_empty() && !record.has_bad_number) {
            return Causes::default();
        }
        let (mut search, order) = Search::new(rank_index, ranks, dump, links, construct, rules);
        for &record in &order {
            search.look_at(record);
        }
        search.settle(&order);
        let causes = search.causes;
        let order = order.into_iter().filter(|record| causes.contains_key(record)).collect();
        Causes { by_record: causes, order, absorbed: search.absorbed }
    }
}
