//! Matching by names without call numbers, in order.

use msprobe_compare::pairing::{MatchMethod, RowPair, Unmatched};
use msprobe_compare::side::{Leaf, Side};
use msprobe_report::console::{Console, LimitedWarnings};

use super::exact::compatible;
use crate::names::before_direction;

/// Rows are taken from both sides one by one. The newest of each side is tried against all that wait on the other
/// one, oldest first; a match leaves everything older unmatched.
pub fn match_fuzzily(
    target: &Side,
    golden: &Side,
    across_frameworks: bool,
    console: &dyn Console,
) -> Vec<RowPair> {
    let (targets, goldens) = (Names::of(&target.rows), Names::of(&golden.rows));
    let unmatched = |row, reason| RowPair { target: row, golden: Err(reason), method: MatchMethod::Fuzzy };
    let mut pairs = Vec::with_capacity(target.rows.len());
    // What waits on each side is `waiting..seen`.
    let (mut target_waiting, mut golden_waiting) = (0, 0);
    let (mut target_seen, mut golden_seen) = (0, 0);
    let failures = LimitedWarnings::new(console, "fuzzy matches that failed");
    let matches = |row: usize, other: usize| {
        let found = target.rows[row].shape == golden.rows[other].shape && targets.equal(row, &goldens, other);
        if !found {
            failures.warning(|| {
                format!("{} and {} can not fuzzy match", target.rows[row].name, golden.rows[other].name)
            });
        }
        found
    };
    while target_seen < target.rows.len() || golden_seen < golden.rows.len() {
        target_seen = (target_seen + 1).min(target.rows.len());
        golden_seen = (golden_seen + 1).min(golden.rows.len());
        if (target_seen == target_waiting) != (golden_seen == golden_waiting) {
            break;
        }
        let newest_target = target_seen - 1;
        let newest_golden = golden_seen - 1;
        let found = (golden_waiting..golden_seen)
            .find(|&other| matches(newest_target, other))
            .map(|other| (newest_target, other))
            .or_else(|| {
                (target_waiting..newest_target)
                    .find(|&row| matches(row, newest_golden))
                    .map(|row| (row, newest_golden))
            });
        if let Some((row, other)) = found {
            pairs.extend((target_waiting..row).map(|row| unmatched(row, Unmatched::Missing)));
            pairs.push(
                if compatible(&target.rows[row].dtype, &golden.rows[other].dtype, across_frameworks) {
                    let method = if target.rows[row].name == golden.rows[other].name {
                        MatchMethod::Exact
                    } else {
                        MatchMethod::Fuzzy
                    };
                    RowPair { target: row, golden: Ok(other), method }
                } else {
                    unmatched(row, Unmatched::Dtype)
                },
            );
            target_waiting = row + 1;
            golden_waiting = other + 1;
        }
    }
    pairs.extend((target_waiting..target.rows.len()).map(|row| unmatched(row, Unmatched::Missing)));
    pairs
}

/// Row names with the part just before the direction taken out.
struct Names<'a> {
    rows: &'a [Leaf],
    /// Where that part begins and ends in each name; nothing without a direction.
    cuts: Vec<Option<(usize, usize)>>,
}

impl<'a> Names<'a> {
    fn of(rows: &'a [Leaf]) -> Names<'a> {
        Names { rows, cuts: rows.iter().map(|row| before_direction(&row.name)).collect() }
    }

    fn equal(&self, row: usize, others: &Names<'_>, other: usize) -> bool {
        let (name, other_name) = (&*self.rows[row].name, &*others.rows[other].name);
        match (self.cuts[row], others.cuts[other]) {
            (Some((start, end)), Some((other_start, other_end))) => {
                name[..start] == other_name[..other_start] && name[end..] == other_name[other_end..]
            }
            _ => name == other_name,
        }
    }
}
