//! Calls between backward and the end of a step: clipping, the optimizer.
//!
//! They compute with gradients element by element, also with those that are nothing but rounding, such as that of the bias
//! of a key projection. What they give is small beside what other calls of the same function give, and counts as that.

use msprobe_dump::hash::FastMap;
use msprobe_dump::names::{RecordName, is_of_module};

use super::align::{CallName, Pass};
use super::errors;
use super::functions::divisor_of;
use crate::side::{Leaf, Side};

/// The share of the largest value of its kind below which a value counts as rounding.
const SMALL: f64 = 0.05;

/// Divisors reach down to rounding where the smallest is this share of the largest of all calls.
const RESIDUE: f64 = 1e-3;

/// The calls of a run after its last backward.
pub(super) struct Update<'a> {
    /// The first record of them.
    begin: usize,
    /// Largest magnitude of values at a place of an operation.
    sizes: FastMap<(&'a str, &'a str), f64>,
}

impl<'a> Update<'a> {
    pub(super) fn of(side: &'a Side) -> Update<'a> {
        let is_backward = |name: &str| CallName::of(name).pass == Pass::Backward;
        let last = side.records.iter().rposition(|record| is_backward(&record.name));
        let begin = last.map_or(side.records.len(), |last| last + 1);
        let mut update = Update { begin, sizes: FastMap::default() };
        for (index, record) in side.records.iter().enumerate().skip(begin) {
            if !update.has(index, &record.name) {
                continue;
            }
            for leaf in side.rows_of(index) {
                if let Some(size) = errors::size_of(leaf).filter(|_| leaf.is_tensor()) {
                    let kind = (RecordName::parse(&record.name).operation(), &*leaf.place);
                    let known = update.sizes.entry(kind).or_default();
                    *known = known.max(size);
                }
            }
        }
        update
    }

    /// Whether a record is one of them.
    pub(super) fn has(&self, record: usize, name: &str) -> bool {
        record >= self.begin && CallName::of(name).pass == Pass::Forward && !is_of_module(name)
    }

    /// The size below which a value of a record counts as rounding; 0 before the update.
    pub(super) fn floor(&self, record: usize, name: &str, leaf: &Leaf) -> f64 {
        if !self.has(record, name) {
            return 0.0;
        }
        let kind = (RecordName::parse(name).operation(), &*leaf.place);
        SMALL * self.sizes.get(&kind).copied().unwrap_or_default()
    }

    /// Whether a record divides by values of which some are nothing but rounding: then so is what it gives.
    pub(super) fn divides_by_residue(&self, record: usize, name: &str, values: &[Leaf]) -> bool {
        if !self.has(record, name) {
            return false;
        }
        let operation = RecordName::parse(name).operation();
        let Some(place) = divisor_of(operation) else { return false };
        let kind = (operation, place);
        let largest = self.sizes.get(&kind).copied().unwrap_or_default();
        // Of divisors of both signs nobody knows how close to 0 they come.
        let smallest = |divisor: &Leaf| divisor.statistics[1].number().map(|min| min.max(0.0));
        values
            .iter()
            .filter(|leaf| leaf.is_tensor() && &*leaf.place == place)
            .filter_map(smallest)
            .any(|smallest| smallest <= RESIDUE * largest)
    }
}
