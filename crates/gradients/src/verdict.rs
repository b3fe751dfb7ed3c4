//! The judgement: at which step did the gradients part, and which parameter was first.
//!
//! A curve of similarities is flagged where it begins below a threshold, at each step at which it falls by more than
//! another one, and, since a curve can sink without any large step, where it comes to lie below a floor or too far below
//! its own beginning. Where a step could not be compared, the next one is measured against the last that could.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::agreement::{Agreement, similarity_at};
use super::measure::Similarities;
use super::noise::Noise;

/// What agreements as suspicious.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// A curve must not begin below this.
    pub first: f64,
    /// A curve must not fall by more than this from one step to the next.
    pub fall: f64,
    /// A curve must not come to lie below this, whatever its course. Signs that have nothing to do with each other
    /// agree in half of the elements.
    pub floor: f64,
    /// A curve must not come to lie further than this below the best of its first steps.
    pub total: f64,
}

impl Thresholds {
    /// The floor unless another is asked for.
    pub const FLOOR: f64 = 0.8;
    /// The total fall unless another is asked for.
    pub const TOTAL: f64 = 0.1;

    /// Who relaxes the rules of a single step means the other two as well, unless those are given.
    pub fn new(first: f64, fall: f64, floor: Option<f64>, total: Option<f64>) -> Thresholds {
        Thresholds {
            first,
            fall,
            floor: floor.unwrap_or(Self::FLOOR.min(first)),
            total: total.unwrap_or(Self::TOTAL.max(fall)),
        }
    }
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds::new(0.97, 0.03, None, None)
    }
}

/// The best of so many first steps is what a total fall is measured from.
const FIRST_STEPS: usize = 3;

/// Differences of similarities are rounded: 1.0 - 0.97 is a little more than 0.03, and no fall beyond it.
const ROUNDING: f64 = 1e-12;

/// Why a step of a curve is flagged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The curve begins too low.
    First,
    /// The curve falls too far from the step before.
    Fall,
    /// The curve has sunk too far since its first steps.
    Sunk,
    /// The curve has come below the floor.
    Floor,
}

impl Reason {
    /// Its name in reports for scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::First => "first",
            Reason::Fall => "fall",
            Reason::Sunk => "total_fall",
            Reason::Floor => "floor",
        }
    }

    /// What the curve did, for people: `fell by more than 0.03`.
    pub(super) fn said(self, thresholds: Thresholds) -> String {
        let Thresholds { first, fall, floor, total } = thresholds;
        match self {
            Reason::First => format!("begin below {first}"),
            Reason::Fall => format!("fell by more than {fall}"),
            Reason::Sunk => format!("sank by more than {total} since the first steps"),
            Reason::Floor => format!("came below {floor}"),
        }
    }

    /// The same of one curve.
    pub(super) fn said_of_one(self, thresholds: Thresholds) -> String {
        match self {
            Reason::First => format!("begins below {}", thresholds.first),
            other => other.said(thresholds),
        }
    }
}

/// What is to be said of one curve. Steps are positions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Curve {
    /// The steps that are flagged, ascending.
    pub flags: Vec<(usize, Reason)>,
    /// The lowest similarity and its first step.
    pub lowest: Option<(usize, f64)>,
    /// The largest fall and the step it leads to.
    pub largest_fall: Option<(usize, f64)>,
    /// The best similarity of the first steps, and the first step of all.
    pub beginning: Option<(usize, f64)>,
    /// What counted as suspicious.
    pub thresholds: Thresholds,
}

impl Curve {
    /// Judges a curve. What is only estimated is judged by the end of its interval that speaks for it: it is suspicious where
    /// it would be in 95 of 100 cases.
    pub fn judge(agreements: &[Option<Agreement>], thresholds: Thresholds) -> Curve {
        let mut curve = Curve { thresholds, ..Curve::default() };
        let mut before: Option<f64> = None;
        // The lower ends of intervals, of the step before and the best of the first steps.
        let (mut surely_before, mut surely_best) = (0f64, 0f64);
        let mut known = 0;
        // Each is told when it begins, not at every step it lasts.
        let (mut is_sunk, mut is_low) = (false, false);
        for (step, agreement) in agreements.iter().enumerate() {
            let Some(similarity) = agreement.and_then(Agreement::similarity) else { continue };
            let (lowest, highest) =
                agreement.and_then(Agreement::interval).unwrap_or((similarity, similarity));
            if curve.lowest.is_none_or(|(_, lowest)| similarity < lowest) {
                curve.lowest = Some((step, similarity));
            }
            let (start, best) = curve.beginning.unwrap_or((step, similarity));
            if known < FIRST_STEPS {
                curve.beginning = Some((start, best.max(similarity)));
                surely_best = surely_best.max(lowest);
            }
            known += 1;
            let fall = before.map_or(0.0, |before| before - similarity);
            if fall > 0.0 && curve.largest_fall.is_none_or(|(_, largest)| fall > largest) {
                curve.largest_fall = Some((step, fall));
            }
            let surely_fell = before.is_some() && surely_before - highest > thresholds.fall + ROUNDING;
            let sinks = surely_best - highest > thresholds.total + ROUNDING;
            let is_below = highest < thresholds.floor - ROUNDING;
            // The rule that says most about the step comes first.
            let reason = if before.is_none() && highest < thresholds.first {
                Some(Reason::First)
            } else if surely_fell {
                Some(Reason::Fall)
            } else if sinks && !is_sunk {
                Some(Reason::Sunk)
            } else if is_below && !is_low {
                Some(Reason::Floor)
            } else {
                None
            };
            curve.flags.extend(reason.map(|reason| (step, reason)));
            (is_sunk, is_low) = (sinks, is_below);
            before = Some(similarity);
            surely_before = lowest;
        }
        curve
    }

    /// The level the curve must not come below, whatever the rule that says so.
    pub fn limit(&self) -> Option<f64> {
        self.beginning.map(|(_, best)| self.thresholds.floor.max(best - self.thresholds.total))
    }

    /// What is first said against it: `sank by more than 0.1 since the first steps at step 101`. Empty if nothing is.
    pub(super) fn note(&self, steps: &[u64]) -> String {
        let first = self.flags.first().and_then(|&(position, reason)| Some((reason, steps.get(position)?)));
        first.map_or_else(String::new, |(reason, step)| {
            format!("{} at step {step}", reason.said_of_one(self.thresholds))
        })
    }

    /// Flagged curves come first, then those with a lower similarity.
    pub(super) fn worse_first(&self, other: &Curve) -> Ordering {
        let lowest = |curve: &Curve| curve.lowest.map_or(f64::INFINITY, |(_, lowest)| lowest);
        let unflagged = self.flags.is_empty().cmp(&other.flags.is_empty());
        unflagged.then(lowest(self).total_cmp(&lowest(other)))
    }

    /// Why it is flagged at a step.
    pub fn reason_at(&self, step: usize) -> Option<Reason> {
        self.flags.iter().find(|(flagged, _)| *flagged == step).map(|(_, reason)| *reason)
    }
}

/// The judgement of a rank.
#[derive(Debug, Clone, PartialEq)]
pub struct RankVerdict {
    /// One per parameter.
    pub curves: Vec<Curve>,
    /// All parameters together.
    pub summary: Curve,
    /// The first step at which anything is flagged.
    pub finding: Option<Finding>,
}

/// What is flagged at the first step at which anything is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Position of the step.
    pub step: usize,
    /// Parameters by position, in backward order: gradients are computed from the last layer to the first.
    pub parameters: Vec<usize>,
    /// How many of them are flagged for which reason, in the order of [`Reason`].
    pub reasons: Vec<(Reason, usize)>,
    /// Parameters that could be compared at this step.
    pub compared: usize,
    /// Why all together are flagged, if they are.
    pub summary: Option<Reason>,
}

impl RankVerdict {
    /// Judges every curve of a rank.
    pub fn judge(similarities: &Similarities, thresholds: Thresholds, noise: &Noise) -> RankVerdict {
        let named = similarities.parameters.iter().zip(&similarities.agreements);
        let curves: Vec<Curve> = named
            .map(|(name, agreements)| Curve::judge(agreements, noise.thresholds_of(name, thresholds)))
            .collect();
        let summary = Curve::judge(&similarities.summary, noise.thresholds_of_all(thresholds));
        let first = |curve: &Curve| curve.flags.first().map(|(step, _)| *step);
        let step = curves.iter().chain([&summary]).filter_map(first).min();
        let finding = step.map(|step| {
            let flagged = |&index: &usize| curves[index].reason_at(step).is_some();
            let parameters: Vec<usize> = (0..curves.len()).rev().filter(flagged).collect();
            let mut reasons: BTreeMap<Reason, usize> = BTreeMap::new();
            for reason in parameters.iter().filter_map(|&index| curves[index].reason_at(step)) {
                *reasons.entry(reason).or_default() += 1;
            }
            Finding {
                step,
                reasons: reasons.into_iter().collect(),
                parameters,
                compared: similarities
                    .agreements
                    .iter()
                    .filter(|agreements| similarity_at(agreements, step).is_some())
                    .count(),
                summary: summary.reason_at(step),
            }
        });
        RankVerdict { curves, summary, finding }
    }

    /// Parameters by position, worst first: flagged ones, then by their lowest similarity, then in backward order.
    pub fn worst_first(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.curves.len()).rev().collect();
        order.sort_by(|&a, &b| self.curves[a].worse_first(&self.curves[b]));
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agreement::Count;

    fn counts(similarities: &[Option<f64>]) -> Vec<Option<Agreement>> {
        let count =
            |share: f64| Agreement::Signs(Count { same: (share * 10_000.0).round() as u64, total: 10_000 });
        similarities.iter().map(|share| share.map(count)).collect()
    }

    fn known(similarities: &[f64]) -> Vec<Option<Agreement>> {
        counts(&similarities.iter().copied().map(Some).collect::<Vec<_>>())
    }

    fn flags(counts: &[Option<Agreement>]) -> Vec<(usize, Reason)> {
        Curve::judge(counts, Thresholds::default()).flags
    }

    #[test]
    fn the_first_step_has_to_be_high() {
        assert_eq!(flags(&known(&[0.9699, 0.98])), [(0, Reason::First)]);
        assert_eq!(flags(&known(&[0.97, 0.96])), []);
        assert_eq!(flags(&counts(&[None, Some(0.5)])), [(1, Reason::First)]);
    }

    #[test]
    fn falls_are_measured_from_step_to_step() {
        assert_eq!(flags(&known(&[1.0, 0.98, 0.96, 0.94, 0.92])), []);
        assert_eq!(flags(&known(&[0.98, 1.0, 0.97, 0.94, 0.91])), []);
        assert_eq!(flags(&known(&[1.0, 0.98, 0.9499, 1.0, 0.9])), [(2, Reason::Fall), (4, Reason::Fall)]);
        assert_eq!(flags(&counts(&[Some(1.0), None, Some(0.96)])), [(2, Reason::Fall)]);
    }

    /// From 1 down to 0.52, a thousandth at a time.
    fn sinking() -> Vec<f64> {
        (0..=480).map(|step| 1.0 - f64::from(step) / 1000.0).collect()
    }

    #[test]
    fn sinking_bit_by_bit_is_seen() {
        assert_eq!(flags(&known(&sinking())), [(101, Reason::Sunk), (201, Reason::Floor)]);
        // Without one of the rules, the other still sees it.
        let judge = |floor, total| {
            let thresholds = Thresholds::new(0.97, 0.03, Some(floor), Some(total));
            Curve::judge(&known(&sinking()), thresholds).flags
        };
        assert_eq!(judge(0.0, 0.1), [(101, Reason::Sunk)]);
        assert_eq!(judge(0.8, 1.0), [(201, Reason::Floor)]);
        assert_eq!(judge(0.0, 1.0), []);
    }

    #[test]
    fn a_total_fall_is_measured_from_the_best_of_the_first_steps() {
        assert_eq!(flags(&known(&[0.97, 0.98, 1.0, 0.98, 0.95, 0.93, 0.91, 0.89])), [(7, Reason::Sunk)]);
        // What is reached later is no beginning.
        assert_eq!(flags(&known(&[0.97, 0.97, 0.97, 1.0, 0.98, 0.95, 0.92, 0.9, 0.88])), []);
    }

    #[test]
    fn what_recovers_can_sink_again() {
        let curve = [1.0, 0.98, 0.95, 0.92, 0.89, 0.88, 0.91, 0.89];
        assert_eq!(flags(&known(&curve)), [(4, Reason::Sunk), (7, Reason::Sunk)]);
    }

    #[test]
    fn the_level_of_a_curve_is_the_higher_of_both_rules() {
        let limit = |shares: &[f64]| Curve::judge(&known(shares), Thresholds::default()).limit().unwrap();
        assert!((limit(&[1.0, 0.9]) - 0.9).abs() < 1e-12);
        assert!((limit(&[0.85]) - 0.8).abs() < 1e-12);
        assert_eq!(Curve::default().limit(), None);
    }

    #[test]
    fn a_fall_by_exactly_the_threshold_is_none() {
        // As numbers, both falls are above 0.03 by a rounding error.
        assert_eq!(flags(&known(&[1.0, 0.97, 1.0, 0.9699])), [(3, Reason::Fall)]);
        assert_eq!(flags(&known(&[0.98, 0.95])), []);
    }

    #[test]
    fn nothing_is_said_of_no_elements() {
        let empty = Some(Agreement::Signs(Count::default()));
        assert_eq!(Curve::judge(&[empty, empty], Thresholds::default()), Curve::default());
        assert_eq!(flags(&[empty, known(&[1.0])[0], empty, known(&[0.96])[0]]), [(3, Reason::Fall)]);
    }

    #[test]
    fn thresholds_can_be_moved() {
        let judge = |first, fall| {
            Curve::judge(&known(&[0.9, 0.85]), Thresholds::new(first, fall, None, None)).flags.len()
        };
        assert_eq!([judge(0.9, 0.05), judge(0.91, 0.05), judge(0.91, 0.04)], [0, 1, 2]);
        let relaxed = Thresholds::new(0.5, 0.3, None, None);
        assert_eq!((relaxed.floor, relaxed.total), (0.5, 0.3));
        let strict = Thresholds::new(0.5, 0.3, Some(0.9), Some(0.01));
        assert_eq!((strict.floor, strict.total), (0.9, 0.01));
    }

    #[test]
    fn extremes_have_their_step() {
        let curve = Curve::judge(&known(&[0.99, 0.98, 0.99, 0.97, 0.97]), Thresholds::default());
        assert_eq!(curve.lowest, Some((3, 0.97)));
        assert_eq!(curve.largest_fall.map(|(step, _)| step), Some(3));
    }

    fn rank(rows: &[&[f64]]) -> Similarities {
        let agreements: Vec<_> = rows.iter().map(|row| known(row)).collect();
        let all = Agreement::Signs(Count { same: 1, total: 1 });
        Similarities {
            steps: (0..rows[0].len() as u64).collect(),
            parameters: (0..rows.len()).map(|index| format!("p{index}")).collect(),
            summary: vec![Some(all); rows[0].len()],
            agreements,
            step_cosines: None,
        }
    }

    #[test]
    fn the_first_in_backward_order_is_the_last_of_the_model() {
        let similarities =
            rank(&[&[1.0, 1.0, 0.5], &[1.0, 0.9, 0.9], &[1.0, 0.9, 0.2], &[1.0, 1.0, 0.1], &[1.0; 3]]);
        let verdict = RankVerdict::judge(&similarities, Thresholds::default(), &Noise::default());
        let finding = verdict.finding.clone().unwrap();
        assert_eq!((finding.step, &finding.parameters[..]), (1, &[2, 1][..]));
        assert_eq!(finding.reasons, [(Reason::Fall, 2)]);
        assert_eq!((finding.compared, finding.summary), (5, None));
        assert_eq!(verdict.worst_first(), [3, 2, 0, 1, 4]);
    }

    #[test]
    fn the_summary_can_be_alone() {
        let mut similarities = rank(&[&[1.0, 1.0]]);
        similarities.summary = known(&[1.0, 0.5]);
        let finding =
            RankVerdict::judge(&similarities, Thresholds::default(), &Noise::default()).finding.unwrap();
        assert_eq!((finding.step, finding.parameters.len(), finding.summary), (1, 0, Some(Reason::Fall)));
    }
}
