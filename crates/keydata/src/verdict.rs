//! Which key parted first, at which step and rank.
//!
//! A step is over before the next begins, so an earlier step always comes first. Within a step, keys are in the order
//! in which data flows ([`super::flow`]); those nobody knows come after them, in the order of their first save.

use std::collections::BTreeSet;

use msprobe_report::answer::Status;

use super::flow::{self, FLOW};
use super::limits::{Judged, Limits};
use super::{ArrayPlace, Comparison, KeyComparison, Row};

/// In what two entries differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DifferenceKind {
    /// Some elements.
    Values,
    /// The shape; the block both have is the same.
    Shape,
    /// Only one run has it: 0 or 1.
    OnlyIn(usize),
}

impl DifferenceKind {
    /// How a culprit is recognised.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            DifferenceKind::Values => "values_differ",
            DifferenceKind::Shape => "shape_differs",
            DifferenceKind::OnlyIn(0) => "only_in_target",
            DifferenceKind::OnlyIn(_) => "only_in_golden",
        }
    }
}

/// A place at which two runs differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Difference {
    /// Where.
    pub(super) place: ArrayPlace,
    /// In what.
    pub(super) kind: DifferenceKind,
    /// The row that shows it.
    pub(super) row: Option<usize>,
}

/// What is to say about one key.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct KeySummary<'a> {
    /// All that is known of it.
    pub(super) key: &'a KeyComparison,
    /// The first difference in the order of the table.
    pub(super) first: Option<Difference>,
    /// The first difference in the order in which things happen.
    earliest: Option<Difference>,
    /// Rows that differ, be it within tolerance.
    pub(super) differing: usize,
    /// Of those, rows that differ within tolerance.
    pub(super) tolerated: usize,
    /// The row furthest from what is tolerated, or nearest to it, of those that differ: how far it is and may be.
    pub(super) worst: Option<Judged>,
    /// Smallest share of equal elements, 0 to 100.
    pub(super) least_same_percentage: Option<f64>,
    /// Largest metrics of all rows, NaN left aside.
    pub(super) max_abs_error: Option<f64>,
    /// See `max_abs_error`.
    pub(super) max_relative_error: Option<f64>,
    /// NaNs of each run.
    pub(super) nan_counts: [u64; 2],
    /// Pairs of the same values in another dtype, in order of their place.
    pub(super) other_dtype: Vec<ArrayPlace>,
}

impl KeySummary<'_> {
    /// The state of the key in a word or two.
    pub(super) fn state(&self) -> &'static str {
        match self.key.present {
            [true, false] => "only in 1",
            [false, true] => "only in 2",
            _ if self.first.is_some() => "differs",
            _ if !self.key.failures.is_empty() => "incomplete",
            _ if self.key.rows.is_empty() && self.key.bare.is_empty() => "nothing in common",
            _ if self.key.one_sided.iter().any(|places| !places.is_empty()) => "one-sided",
            _ if !self.other_dtype.is_empty() => "other dtype",
            _ if self.tolerated > 0 => "tolerated",
            _ => "identical",
        }
    }

    /// The row that shows the first difference.
    pub(super) fn evidence(&self) -> Option<&Row> {
        self.key.rows.get(self.first?.row?)
    }
}

/// Where two runs parted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Origin {
    /// Index of the key in [`Verdict::keys`].
    pub(super) key: usize,
    /// A key of the same stage that differs at the same step.
    pub(super) beside: Option<usize>,
    /// Where and in what.
    pub(super) difference: Difference,
}

/// The answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Verdict<'a> {
    /// In one word.
    pub(super) status: Status,
    /// Where two runs parted, if they did.
    pub(super) origin: Option<Origin>,
    /// All keys, in the order in which data flows.
    pub(super) keys: Vec<KeySummary<'a>>,
    /// The first step both runs have.
    pub(super) first_step: Option<i64>,
    /// The last step of each run.
    pub(super) last_steps: [Option<i64>; 2],
    /// Ranks only one run has.
    pub(super) lone_ranks: [Vec<i64>; 2],
    /// What was not read, each with the reason.
    pub(super) unread: &'a [String],
    /// How far arrays may be apart.
    pub(super) limits: &'a Limits,
}

impl Verdict<'_> {
    /// Pairs that could not be compared.
    pub(super) fn failures(&self) -> usize {
        self.keys.iter().map(|summary| summary.key.failures.len()).sum()
    }

    /// Pairs that were compared.
    pub(super) fn compared(&self) -> usize {
        self.keys.iter().map(|summary| summary.key.rows.len() + summary.key.bare.len()).sum()
    }
}

/// Steps and ranks both runs got to: beyond them a missing entry says nothing about the entry's key.
struct Common {
    steps: Option<(i64, i64)>,
    ranks: BTreeSet<i64>,
}

impl Common {
    fn holds(&self, place: ArrayPlace) -> bool {
        self.steps.is_some_and(|(first, last)| (first..=last).contains(&place.step))
            && self.ranks.contains(&place.rank)
    }
}

/// Judges all keys of two runs.
pub(super) fn judge<'a>(comparison: &'a Comparison, limits: &'a Limits) -> Verdict<'a> {
    let keys = &comparison.keys;
    let places = |run: usize| {
        keys.iter().flat_map(move |key| {
            let pairs = key.rows.iter().map(|row| row.place);
            let bare = key.bare.iter().map(|bare| bare.place);
            let failed = key.failures.iter().map(|failure| failure.place);
            pairs.chain(bare).chain(failed).chain(key.one_sided[run].iter().copied())
        })
    };
    let range = |run| {
        places(run).map(|place| place.step).fold(None, |range: Option<(i64, i64)>, step| {
            Some(range.map_or((step, step), |(first, last)| (first.min(step), last.max(step))))
        })
    };
    let ranks = |run| places(run).map(|place| place.rank).collect::<BTreeSet<i64>>();
    let ranges = [range(0), range(1)];
    let all_ranks = [ranks(0), ranks(1)];
    let common = Common {
        steps: match ranges {
            [Some(one), Some(two)] => Some((one.0.max(two.0), one.1.min(two.1))),
            _ => None,
        },
        ranks: all_ranks[0].intersection(&all_ranks[1]).copied().collect(),
    };

    let mut ordered: Vec<&KeyComparison> = keys.iter().collect();
    ordered.sort_by_key(|key| {
        let known = flow::position(&key.name).unwrap_or(FLOW.len());
        // Without a time a key comes after those with one.
        (known, key.first_saved.is_none(), key.first_saved, key.name.as_str())
    });
    let positions: Vec<usize> = ordered
        .iter()
        .enumerate()
        .map(|(index, key)| flow::position(&key.name).unwrap_or(FLOW.len() + index))
        .collect();
    let summaries: Vec<KeySummary<'_>> = ordered
        .iter()
        .zip(&positions)
        .map(|(key, &position)| summarise(key, position, &common, limits))
        .collect();

    let origin = summaries
        .iter()
        .enumerate()
        .filter_map(|(index, summary)| Some((index, summary.earliest?)))
        .min_by_key(|&(index, difference)| moment(positions[index], difference.place))
        .map(|(key, difference)| Origin {
            key,
            beside: beside(&summaries, key, difference.place.step),
            difference,
        });
    let mut verdict = Verdict {
        status: Status::Identical,
        origin,
        keys: summaries,
        first_step: common.steps.map(|(first, _)| first),
        last_steps: ranges.map(|range| range.map(|(_, last)| last)),
        lone_ranks: [0, 1].map(|run| all_ranks[run].difference(&all_ranks[1 - run]).copied().collect()),
        unread: &comparison.unread,
        limits,
    };
    verdict.status = if origin.is_some() {
        Status::Diverged
    } else if verdict.compared() == 0 {
        Status::Failed
    } else if !verdict.left_out().is_empty() {
        Status::Incomplete
    } else if verdict.keys.iter().any(|summary| summary.tolerated > 0) {
        Status::WithinTolerance
    } else {
        Status::Identical
    };
    verdict
}

/// When an entry came to be.
fn moment(position: usize, place: ArrayPlace) -> (i64, (usize, i64, usize), i64, i64, i64) {
    let ArrayPlace { step, rank, micro_step, id } = place;
    (step, flow::moment(position, micro_step), rank, micro_step, id)
}

/// The actor's and the reference's log probabilities do not depend on each other: if both differ, both count.
fn beside(summaries: &[KeySummary<'_>], origin: usize, step: i64) -> Option<usize> {
    if summaries[origin].key.name != "old_log_prob" {
        return None;
    }
    summaries.iter().position(|summary| {
        summary.key.name == "ref_log_prob" && summary.earliest.is_some_and(|first| first.place.step == step)
    })
}

fn summarise<'a>(
    key: &'a KeyComparison,
    position: usize,
    common: &Common,
    limits: &Limits,
) -> KeySummary<'a> {
    let (mut tolerated, mut worst) = (0, None::<Judged>);
    let mut rows = Vec::with_capacity(key.rows.len());
    for (index, row) in key.rows.iter().enumerate() {
        let mut kind = difference_of(row.first_difference, &row.shapes);
        if kind == Some(DifferenceKind::Values) {
            let judged = limits.judge(key, row);
            if worst.is_none_or(|worst| judged.error * worst.tolerated >= worst.error * judged.tolerated) {
                worst = Some(judged);
            }
            if row.shapes[0] == row.shapes[1] && judged.is_tolerated() {
                tolerated += 1;
                kind = None;
            }
        }
        rows.push((row.place, row.dtypes, kind, Some(index)));
    }
    let bare = key.bare.iter().map(|bare| {
        let kind = difference_of(bare.first_difference, &bare.shapes);
        (bare.place, bare.dtypes, kind, None)
    });
    let (mut differences, mut other_dtype) = (Vec::new(), Vec::new());
    for (place, [one, two], kind, row) in rows.into_iter().chain(bare) {
        match kind {
            Some(kind) => differences.push(Difference { place, kind, row }),
            None if one != two => other_dtype.push(place),
            None => {}
        }
    }
    other_dtype.sort_unstable();
    let differing = differences.len() + tolerated;
    // A key one run does not save at all is a matter of its settings.
    for (run, places) in key.one_sided.iter().enumerate().filter(|_| key.present == [true, true]) {
        let missing = places.iter().copied().filter(|place| common.holds(*place));
        let kind = DifferenceKind::OnlyIn(run);
        differences.extend(missing.map(|place| Difference { place, kind, row: None }));
    }
    let largest =
        |of: fn(&Row) -> f64| key.rows.iter().map(of).filter(|value| !value.is_nan()).reduce(f64::max);
    KeySummary {
        key,
        first: differences.iter().min_by_key(|difference| difference.place).copied(),
        earliest: differences.iter().min_by_key(|difference| moment(position, difference.place)).copied(),
        differing,
        tolerated,
        worst,
        least_same_percentage: key.rows.iter().map(|row| row.metrics.same_percentage).reduce(f64::min),
        max_abs_error: largest(|row| row.metrics.max_abs_error),
        max_relative_error: largest(|row| row.metrics.max_relative_error),
        nan_counts: [0, 1].map(|run| key.rows.iter().map(|row| row.nan_counts[run]).sum()),
        other_dtype,
    }
}

fn difference_of(first_difference: Option<u64>, shapes: &[Vec<usize>; 2]) -> Option<DifferenceKind> {
    match first_difference {
        Some(_) => Some(DifferenceKind::Values),
        None => (shapes[0] != shapes[1]).then_some(DifferenceKind::Shape),
    }
}
