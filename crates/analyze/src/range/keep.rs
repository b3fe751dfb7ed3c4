//! Which warnings are kept of a rank: a dump in trouble has far more than anybody reads.

use msprobe_dump::hash::FastMap;

use super::{RangeFindings, RangeOptions, Warning};

/// Per danger, the first ones.
const FIRST: usize = 20;
/// Per danger, the most severe ones besides.
const SEVERE: usize = 25;
/// Per danger, those that are masks most likely. They must not push out the others.
const FILLS: usize = 5;
/// All together.
pub(super) const MOST: usize = 4 * (FIRST + SEVERE + FILLS);

struct Entry {
    number: u64,
    severity: f64,
    warning: Warning,
}

#[derive(Default)]
struct Shelf {
    first: Vec<Entry>,
    severe: Vec<Entry>,
    fills: Vec<Entry>,
}

#[derive(Default, Clone, Copy)]
struct Tally {
    counts: [u32; 4],
    fills: [u32; 4],
}

/// Warnings so far.
#[derive(Default)]
pub(super) struct Kept {
    shelves: [Shelf; 4],
    counts: [u64; 4],
    fills: [u64; 4],
    /// By record, of those that have any: a record may turn out to be superseded.
    tallies: FastMap<u32, Tally>,
    number: u64,
}

impl Kept {
    /// Counts a warning, and keeps it, with the name of its file, if there is room. A larger `severity` is worse.
    pub(super) fn offer(&mut self, warning: Warning, severity: f64, data_name: Option<&str>) {
        let danger = warning.danger as usize;
        let tally = self.tallies.entry(warning.record).or_default();
        self.counts[danger] += 1;
        tally.counts[danger] += 1;
        self.number += 1;
        let (number, is_fill) = (self.number, warning.is_fill());
        let named = |warning| Warning { data_name: data_name.map(Box::from), ..warning };
        let entry = || Entry { number, severity, warning: named(warning) };
        let shelf = &mut self.shelves[danger];
        if is_fill {
            self.fills[danger] += 1;
            tally.fills[danger] += 1;
            if shelf.fills.len() < FILLS {
                shelf.fills.push(entry());
            }
        } else if shelf.first.len() < FIRST {
            shelf.first.push(entry());
        } else if shelf.severe.len() < SEVERE {
            shelf.severe.push(entry());
        } else {
            // The latest of the least severe gives way, so that of equals the first stay.
            let least = shelf
                .severe
                .iter_mut()
                .min_by(|a, b| a.severity.total_cmp(&b.severity).then(b.number.cmp(&a.number)));
            if let Some(least) = least
                && severity > least.severity
            {
                *least = entry();
            }
        }
    }

    /// Takes back what was said about a record.
    pub(super) fn forget(&mut self, record: u32) {
        let Some(tally) = self.tallies.remove(&record) else { return };
        for danger in 0..4 {
            self.counts[danger] -= u64::from(tally.counts[danger]);
            self.fills[danger] -= u64::from(tally.fills[danger]);
        }
        for shelf in &mut self.shelves {
            for entries in [&mut shelf.first, &mut shelf.severe, &mut shelf.fills] {
                entries.retain(|entry| entry.warning.record != record);
            }
        }
    }

    /// What was kept, in the order of the dump.
    pub(super) fn finish(self, options: RangeOptions) -> RangeFindings {
        let mut entries: Vec<Entry> = self
            .shelves
            .into_iter()
            .flat_map(|shelf| [shelf.first, shelf.severe, shelf.fills])
            .flatten()
            .collect();
        entries.sort_by_key(|entry| (entry.warning.record, entry.number));
        RangeFindings {
            warnings: entries.into_iter().map(|entry| entry.warning).collect(),
            counts: self.counts,
            fills: self.fills,
            options,
        }
    }
}
