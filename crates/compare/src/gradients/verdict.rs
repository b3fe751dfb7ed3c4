//! The judgement: at which step did the gradients part, and which parameter was first.
//!
//! A curve of similarities is flagged where it begins below a threshold, and at each step at which it falls by more than
//! another one. Where a step could not be compared, the next one is measured against the last that could.

use super::measure::{Count, Similarities};

/// What counts as suspicious.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// A curve must not begin below this.
    pub first: f64,
    /// A curve must not fall by more than this from one step to the next.
    pub fall: f64,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds { first: 0.97, fall: 0.03 }
    }
}

/// Differences of similarities are rounded: 1.0 - 0.97 is a little more than 0.03, and no fall beyond it.
const ROUNDING: f64 = 1e-12;

/// Why a step of a curve is flagged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The curve begins too low.
    First,
    /// The curve falls too far.
    Fall,
}

impl Reason {
    /// The word for machines.
    pub fn word(self) -> &'static str {
        match self {
            Reason::First => "first",
            Reason::Fall => "fall",
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
}

impl Curve {
    /// Judges a curve.
    pub fn judge(counts: &[Option<Count>], thresholds: Thresholds) -> Curve {
        let mut curve = Curve::default();
        let mut before: Option<f64> = None;
        for (step, count) in counts.iter().enumerate() {
            let Some(similarity) = count.and_then(Count::similarity) else { continue };
            if curve.lowest.is_none_or(|(_, lowest)| similarity < lowest) {
                curve.lowest = Some((step, similarity));
            }
            match before {
                None if similarity < thresholds.first => curve.flags.push((step, Reason::First)),
                None => {}
                Some(before) => {
                    let fall = before - similarity;
                    if fall > 0.0 && curve.largest_fall.is_none_or(|(_, largest)| fall > largest) {
                        curve.largest_fall = Some((step, fall));
                    }
                    if fall > thresholds.fall + ROUNDING {
                        curve.flags.push((step, Reason::Fall));
                    }
                }
            }
            before = Some(similarity);
        }
        curve
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
    /// How many of them begin too low; the others fell.
    pub began_low: usize,
    /// Parameters that could be compared at this step.
    pub compared: usize,
    /// Why all together are flagged, if they are.
    pub summary: Option<Reason>,
}

impl RankVerdict {
    /// Judges every curve of a rank.
    pub fn judge(similarities: &Similarities, thresholds: Thresholds) -> RankVerdict {
        let curves: Vec<Curve> =
            similarities.counts.iter().map(|counts| Curve::judge(counts, thresholds)).collect();
        let summary = Curve::judge(&similarities.summary, thresholds);
        let first = |curve: &Curve| curve.flags.first().map(|(step, _)| *step);
        let step = curves.iter().chain([&summary]).filter_map(first).min();
        let finding = step.map(|step| {
            let flagged = |&index: &usize| curves[index].reason_at(step).is_some();
            let parameters: Vec<usize> = (0..curves.len()).rev().filter(flagged).collect();
            let began_low = |&&index: &&usize| curves[index].reason_at(step) == Some(Reason::First);
            Finding {
                step,
                began_low: parameters.iter().filter(began_low).count(),
                parameters,
                compared: similarities.counts.iter().filter(|counts| is_known(counts, step)).count(),
                summary: summary.reason_at(step),
            }
        });
        RankVerdict { curves, summary, finding }
    }

    /// Parameters by position, worst first: flagged ones, then by their lowest similarity, then in backward order.
    pub fn worst_first(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.curves.len()).rev().collect();
        let lowest = |index: usize| self.curves[index].lowest.map_or(f64::INFINITY, |(_, lowest)| lowest);
        order.sort_by(|&a, &b| {
            let unflagged = |index: usize| self.curves[index].flags.is_empty();
            unflagged(a).cmp(&unflagged(b)).then(lowest(a).total_cmp(&lowest(b)))
        });
        order
    }
}

fn is_known(counts: &[Option<Count>], step: usize) -> bool {
    counts.get(step).copied().flatten().and_then(Count::similarity).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(similarities: &[Option<f64>]) -> Vec<Option<Count>> {
        let count = |share: f64| Count { same: (share * 10_000.0).round() as u64, total: 10_000 };
        similarities.iter().map(|share| share.map(count)).collect()
    }

    fn known(similarities: &[f64]) -> Vec<Option<Count>> {
        counts(&similarities.iter().copied().map(Some).collect::<Vec<_>>())
    }

    fn flags(counts: &[Option<Count>]) -> Vec<(usize, Reason)> {
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
        assert_eq!(flags(&known(&[1.0, 0.98, 0.9499, 1.0, 0.9])), [(2, Reason::Fall), (4, Reason::Fall)]);
        assert_eq!(flags(&counts(&[Some(1.0), None, Some(0.96)])), [(2, Reason::Fall)]);
    }

    #[test]
    fn a_fall_by_exactly_the_threshold_is_none() {
        // As numbers, both falls are above 0.03 by a rounding error.
        assert_eq!(flags(&known(&[1.0, 0.97, 1.0, 0.9699])), [(3, Reason::Fall)]);
        assert_eq!(flags(&known(&[0.98, 0.95])), []);
    }

    #[test]
    fn nothing_is_said_of_no_elements() {
        let empty = Some(Count::default());
        assert_eq!(Curve::judge(&[empty, empty], Thresholds::default()), Curve::default());
        assert_eq!(flags(&[empty, known(&[1.0])[0], empty, known(&[0.96])[0]]), [(3, Reason::Fall)]);
    }

    #[test]
    fn thresholds_can_be_moved() {
        let judge = |first, fall| Curve::judge(&known(&[0.9, 0.85]), Thresholds { first, fall }).flags.len();
        assert_eq!([judge(0.9, 0.05), judge(0.91, 0.05), judge(0.91, 0.04)], [0, 1, 2]);
    }

    #[test]
    fn extremes_have_their_step() {
        let curve = Curve::judge(&known(&[0.99, 0.98, 0.99, 0.97, 0.97]), Thresholds::default());
        assert_eq!(curve.lowest, Some((3, 0.97)));
        assert_eq!(curve.largest_fall.map(|(step, _)| step), Some(3));
    }

    fn rank(rows: &[&[f64]]) -> Similarities {
        let counts: Vec<_> = rows.iter().map(|row| known(row)).collect();
        Similarities {
            steps: (0..rows[0].len() as u64).collect(),
            parameters: (0..rows.len()).map(|index| format!("p{index}")).collect(),
            summary: vec![Some(Count { same: 1, total: 1 }); rows[0].len()],
            counts,
        }
    }

    #[test]
    fn the_first_in_backward_order_is_the_last_of_the_model() {
        let similarities =
            rank(&[&[1.0, 1.0, 0.5], &[1.0, 0.9, 0.9], &[1.0, 0.9, 0.2], &[1.0, 1.0, 0.1], &[1.0; 3]]);
        let verdict = RankVerdict::judge(&similarities, Thresholds::default());
        let finding = verdict.finding.clone().unwrap();
        assert_eq!((finding.step, &finding.parameters[..]), (1, &[2, 1][..]));
        assert_eq!((finding.began_low, finding.compared, finding.summary), (0, 5, None));
        assert_eq!(verdict.worst_first(), [3, 2, 0, 1, 4]);
    }

    #[test]
    fn the_summary_can_be_alone() {
        let mut similarities = rank(&[&[1.0, 1.0]]);
        similarities.summary = known(&[1.0, 0.5]);
        let finding = RankVerdict::judge(&similarities, Thresholds::default()).finding.unwrap();
        assert_eq!((finding.step, finding.parameters.len(), finding.summary), (1, 0, Some(Reason::Fall)));
    }
}
