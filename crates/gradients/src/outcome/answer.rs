//! The answer of a comparison of gradients.

use msprobe_report::Cell;
use msprobe_report::answer::{Answer, Culprit, Evidence, NotCompared, Scope, Section, Status, StepAndRank};

use super::{Agreement, Outcome, RankOutcome, Reason, counted, short, similarity_at};
use crate::table::SUMMARY;
use crate::verdict::{Curve, Finding};

/// Parameters whose numbers are shown.
const SHOWN: usize = 10;

impl Outcome {
    /// The answer.
    pub fn answer(&self) -> Answer {
        let status = self.status();
        let decisive = self.decisive();
        let headline = match decisive {
            Some((rank, step)) => status.headline(&self.place(rank, step), &rank.accusation()),
            None => status.headline("", &self.sentence_of_nothing()),
        };
        let at = decisive
            .map_or_else(StepAndRank::default, |(rank, step)| StepAndRank::new(Some(step), rank.rank));
        let found = decisive.and_then(|(rank, step)| Some((rank, step, rank.verdict.finding.as_ref()?)));
        let failures = self.failures.iter().map(|failure| (failure.clone(), String::new()));
        let items = format!("{} could not be compared", counted(self.failures.len(), "item"));
        Answer {
            culprit: found.map(|(rank, step, finding)| rank.culprit(step, finding)),
            evidence: found.map(|(rank, _, finding)| rank.evidence(finding)).unwrap_or_default(),
            not_compared: NotCompared::of("items", self.failures.len(), items, failures)
                .into_iter()
                .collect(),
            next_step: match (found, status) {
                (Some((_, step, _)), _) => Some(format!(
                    "collect step {step} of both runs with \"task\": \"statistics\" and \"level\": \"mix\", and \
                     run msprobe compare on the two dumps"
                )),
                (None, Status::Incomplete) => Some(
                    "collect both runs with the same settings for the same steps, and compare again"
                        .to_owned(),
                ),
                _ => None,
            },
            output: Some(self.output.clone()),
            files: self.files.clone(),
            ..Answer::new("grad compare", status, headline, Scope::of_two(at))
        }
    }

    /// What people are shown besides.
    pub fn sections(&self) -> Vec<Section> {
        vec![Section::lines("", self.besides())]
    }
}

impl RankOutcome {
    fn culprit(&self, step: u64, finding: &Finding) -> Culprit {
        let leader = finding.parameters.first().copied();
        let curve = leader.map_or(&self.verdict.summary, |leader| &self.verdict.curves[leader]);
        let mut facts = Vec::new();
        let steps = &self.similarities.steps;
        facts.push(("curve", curve.note(steps)));
        if let Some((lowest, similarity)) = curve.lowest {
            facts.push(("lowest", format!("similarity {} at step {}", short(similarity), self.step(lowest))));
        }
        let agreements =
            leader.map_or(&self.similarities.summary, |leader| &self.similarities.agreements[leader]);
        let agreement = agreements.get(finding.step).copied().flatten();
        if let Some((cosine, (lowest, highest))) = agreement.and_then(Agreement::cosine) {
            let interval = format!("between {lowest:.4} and {highest:.4} in 95 of 100 cases");
            facts.push(("cosine", format!("{cosine:.4} at step {step}, {interval}")));
        }
        let others = finding.parameters.len().saturating_sub(1);
        if others > 0 {
            let named = finding.parameters.iter().skip(1).take(3).map(|&index| self.name(index));
            let more = if others > 3 { ", …" } else { "" };
            let named = named.collect::<Vec<_>>().join(", ");
            facts.push(("also", format!("{} at step {step}: {named}{more}", counted(others, "parameter"))));
        }
        Culprit {
            name: leader.map_or(SUMMARY, |leader| self.name(leader)).to_owned(),
            kind: curve.reason_at(finding.step).map_or("suspicious", Reason::as_str),
            direction: Some("backward"),
            facts,
        }
    }

    /// The similarity of the first parameters at the step, and what is too much of it.
    fn evidence(&self, finding: &Finding) -> Vec<Evidence> {
        let (similarities, verdict) = (&self.similarities, &self.verdict);
        let mut curves: Vec<(&str, &Curve, &[Option<Agreement>])> = finding
            .parameters
            .iter()
            .take(SHOWN)
            .map(|&index| (self.name(index), &verdict.curves[index], &*similarities.agreements[index]))
            .collect();
        if curves.is_empty() {
            curves.push((SUMMARY, &verdict.summary, &similarities.summary));
        }
        let place = format!("step {}", self.step(finding.step));
        curves
            .into_iter()
            .filter_map(|(name, curve, agreements)| {
                let now = similarity_at(agreements, finding.step)?;
                let before = (0..finding.step).rev().find_map(|step| similarity_at(agreements, step));
                let best = curve.beginning.map_or(now, |(_, best)| best);
                let limits = curve.thresholds;
                let (measure, measured, tolerated) = match curve.reason_at(finding.step)? {
                    Reason::First => ("similarity", now, limits.first),
                    Reason::Fall => ("fall", before.unwrap_or(now) - now, limits.fall),
                    Reason::Sunk => ("total_fall", best - now, limits.total),
                    Reason::Floor => ("similarity", now, limits.floor),
                };
                let one = |measure, value| Evidence::of_pair(name, &place, measure, Cell::Float(value));
                let shown = one(measure, measured).tolerating(tolerated);
                let similarity = (measure != "similarity").then(|| one("similarity", now));
                let agreement = agreements.get(finding.step).copied().flatten();
                let cosine = agreement.and_then(Agreement::cosine).map(|(cosine, _)| one("cosine", cosine));
                Some(std::iter::once(shown).chain(similarity).chain(cosine))
            })
            .flatten()
            .collect()
    }
}
