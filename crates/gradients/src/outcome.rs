//! What came of a comparison of gradients, in words and as JSON for scripts.

mod answer;

use std::path::PathBuf;

use msprobe_compare::verdict::NOISE_FACTOR;
use msprobe_report::answer::Status;
use msprobe_report::{counted, some_of};
use serde_json::{Value, json};

use super::agreement::{Agreement, similarity_at};
use super::measure::Similarities;
use super::verdict::{Curve, Finding, RankVerdict, Reason, Thresholds};

/// One rank.
#[derive(Debug, Clone, PartialEq)]
pub struct RankOutcome {
    /// Its number, if the path names one.
    pub rank: Option<u64>,
    /// What was counted.
    pub similarities: Similarities,
    /// What is to be said of it.
    pub verdict: RankVerdict,
}

/// All ranks.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Those that could be compared, ascending.
    pub ranks: Vec<RankOutcome>,
    /// What could not be compared.
    pub failures: Vec<String>,
    /// Rows of the tables that are not the same, `step 3: fc1.weight`.
    pub differing_rows: Vec<String>,
    /// What counted as suspicious.
    pub thresholds: Thresholds,
    /// Further runs of the second side that showed what is noise.
    pub noise_runs: usize,
    /// Directory of the results.
    pub output: PathBuf,
    /// Files that were written, but for pictures.
    pub files: Vec<PathBuf>,
}

/// What an estimate is worth.
const CONFIDENCE: &str = "estimated from sketches: similarity is 1 - angle / 180°, and the true angle lies between 0.74 and 1.52 \
                          times the estimate in 95 of 100 cases; suspicious is what is so at 0.74 times";

/// Ranks that are listed by number.
const RANKS_SHOWN: usize = 16;

impl RankOutcome {
    fn name(&self, index: usize) -> &str {
        &self.similarities.parameters[index]
    }

    fn flagged_step(&self) -> Option<u64> {
        let finding = self.verdict.finding.as_ref()?;
        self.similarities.steps.get(finding.step).copied()
    }

    /// Parameters that are flagged at that step, in backward order.
    fn flagged(&self) -> Vec<&str> {
        let parameters = self.verdict.finding.iter().flat_map(|finding| &finding.parameters);
        parameters.map(|&index| self.name(index)).collect()
    }

    /// What is suspicious in its first suspicious step.
    fn accusation(&self) -> String {
        let Some(finding) = &self.verdict.finding else { return String::new() };
        let &Finding { compared, .. } = finding;
        let flagged = finding.parameters.len();
        let of = format!("{flagged} of {compared} parameters");
        let Some(&leader) = finding.parameters.first() else {
            let thresholds = self.verdict.summary.thresholds;
            let what = finding.summary.unwrap_or(Reason::Fall).said_of_one(thresholds);
            return format!("the summary of all parameters {what}, no single parameter did");
        };
        let thresholds = self.verdict.curves[leader].thresholds;
        let what = match finding.reasons[..] {
            [(reason, _)] => format!("{of} {}", reason.said(thresholds)),
            ref reasons => {
                let parts: Vec<String> = reasons
                    .iter()
                    .map(|(reason, count)| format!("{count} {}", reason.said(thresholds)))
                    .collect();
                format!("{of}: {}", parts.join(", "))
            }
        };
        format!("{what}, first in backward order: {}", self.name(leader))
    }

    /// The step at a position.
    pub(super) fn step(&self, position: usize) -> u64 {
        self.similarities.steps.get(position).copied().unwrap_or_default()
    }

    fn place(&self, step: u64, with_rank: bool) -> String {
        match self.rank {
            Some(rank) if with_rank => format!("step {step}, rank {rank}"),
            _ => format!("step {step}"),
        }
    }
}

impl Outcome {
    /// How the runs compare.
    pub fn status(&self) -> Status {
        let lowest = self.lowest().map(|(_, _, (_, similarity))| similarity);
        if self.decisive().is_some() {
            Status::Diverged
        } else if lowest.is_none() {
            Status::Failed
        } else if !self.failures.is_empty() {
            Status::Incomplete
        } else if lowest < Some(1.0) || !self.differing_rows.is_empty() {
            Status::WithinTolerance
        } else {
            Status::Identical
        }
    }

    /// The rank with the earliest suspicious step.
    fn decisive(&self) -> Option<(&RankOutcome, u64)> {
        let flagged = self.ranks.iter().filter_map(|rank| rank.flagged_step().map(|step| (rank, step)));
        flagged.min_by_key(|(rank, step)| (*step, rank.rank))
    }

    /// The answer, one statement per line.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        match self.decisive() {
            Some((rank, step)) => {
                lines.push(format!("{}: {}", self.place(rank, step), rank.accusation()));
            }
            None => lines.push(self.nothing_found()),
        }
        lines.extend(self.besides());
        if let Some(first) = self.failures.first() {
            let items = counted(self.failures.len(), "item");
            lines.push(format!("{items} could not be compared, the first: {first}; verdict.json lists all"));
        }
        lines
    }

    /// What is said whatever was found: other ranks, all parameters together, the tables.
    pub(super) fn besides(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some((rank, step)) = self.decisive() {
            lines.extend(self.other_ranks(rank, step));
        }
        lines.extend(self.summary_line());
        lines.extend(self.noise_text().map(|noise| format!("noise: {noise}")));
        if self.is_estimated() {
            lines.push(CONFIDENCE.to_owned());
            lines.extend(self.ranks.iter().filter_map(|rank| self.step_line(rank)));
        }
        if let Some(first) = self.differing_rows.first() {
            let rows = counted(self.differing_rows.len(), "row");
            lines.push(format!("the tables differ in {rows}, the first {first}"));
        }
        lines
    }

    /// How noise was measured, if it was.
    pub(super) fn noise_text(&self) -> Option<String> {
        let runs = counted(self.noise_runs, "further run");
        (self.noise_runs > 0).then(|| {
            format!("measured in {runs} of the second side: nothing is suspicious that is within {NOISE_FACTOR} times it")
        })
    }

    fn place(&self, rank: &RankOutcome, step: u64) -> String {
        rank.place(step, self.ranks.len() > 1)
    }

    /// Which other ranks are suspicious, and since when.
    fn other_ranks(&self, decisive: &RankOutcome, step: u64) -> Vec<String> {
        if self.ranks.len() < 2 {
            return Vec::new();
        }
        let mut at_once = Vec::new();
        let mut later = Vec::new();
        for rank in self.ranks.iter().filter(|rank| rank.rank != decisive.rank) {
            let number = rank.rank.unwrap_or_default();
            match rank.flagged_step() {
                Some(other) if other == step => at_once.push(number.to_string()),
                Some(other) => later.push(format!("{number} (step {other})")),
                None => {}
            }
        }
        let line = |when: &str, ranks: Vec<String>| {
            (!ranks.is_empty()).then(|| format!("{when} also in rank {}", some_of(ranks, RANKS_SHOWN)))
        };
        line("at the same step", at_once).into_iter().chain(line("later", later)).collect()
    }

    /// What is said where nothing is suspicious, with the status before it where it is not plain.
    fn nothing_found(&self) -> String {
        let status = self.status();
        let sentence = self.sentence_of_nothing();
        match status {
            Status::Identical | Status::Incomplete => format!("{}: {sentence}", status.as_str()),
            _ => sentence,
        }
    }

    fn sentence_of_nothing(&self) -> String {
        let known =
            |rank: &RankOutcome| rank.verdict.curves.iter().filter(|curve| curve.lowest.is_some()).count();
        let compared = self.ranks.iter().map(known).max().unwrap_or(0);
        let steps = self.ranks.iter().map(|rank| rank.similarities.steps.len()).max().unwrap_or(0);
        if compared == 0 {
            return "there was no element to compare".to_owned();
        }
        let ranks = match self.ranks.len() {
            1 => String::new(),
            count => format!(", {count} ranks"),
        };
        let size = format!("{}, {}{ranks}", counted(compared, "parameter"), counted(steps, "step"));
        if self.status() == Status::Identical {
            return format!("{size}, every direction and every row of the tables");
        }
        let scope = match self.status() {
            Status::Incomplete => "nothing suspicious in what could be compared",
            _ => "nothing suspicious",
        };
        let lowest = self.lowest().map(|(rank, index, (step, value))| {
            let place = self.place(rank, rank.step(step));
            format!(", lowest similarity {} ({}, {place})", short(value), rank.name(index))
        });
        format!("{scope}: {size}{}", lowest.unwrap_or_default())
    }

    /// The lowest similarity of any parameter.
    fn lowest(&self) -> Option<(&RankOutcome, usize, (usize, f64))> {
        let all = self.ranks.iter().flat_map(|rank| {
            let curves = rank.verdict.curves.iter().enumerate();
            curves.filter_map(move |(index, curve)| Some((rank, index, curve.lowest?)))
        });
        all.min_by(|a, b| a.2.1.total_cmp(&b.2.1))
    }

    fn summary_line(&self) -> Option<String> {
        let of_ranks = self.ranks.iter().filter_map(|rank| Some((rank, rank.verdict.summary.lowest?)));
        let (rank, (step, value)) = of_ranks.min_by(|a, b| a.1.1.total_cmp(&b.1.1))?;
        let place = self.place(rank, rank.step(step));
        Some(format!("all parameters together: lowest similarity {} at {place}", short(value)))
    }

    /// Whether similarities come from sketches.
    fn is_estimated(&self) -> bool {
        self.ranks.iter().any(|rank| rank.similarities.step_cosines.is_some())
    }

    /// How far the whole gradient turns from one step to the next, in each run.
    fn step_line(&self, rank: &RankOutcome) -> Option<String> {
        let runs = rank.similarities.step_cosines.as_ref()?;
        let ranges = runs.each_ref().map(|run| {
            let known = run.rows.last().into_iter().flatten().flatten();
            known.fold(None, |range: Option<(f64, f64)>, &cosine| {
                let (low, high) = range.unwrap_or((cosine, cosine));
                Some((low.min(cosine), high.max(cosine)))
            })
        });
        let text = |(low, high): (f64, f64)| format!("{low:.2} to {high:.2}");
        let [first, second] = [text(ranges[0]?), text(ranges[1]?)];
        let of_rank = match rank.rank {
            Some(number) if self.ranks.len() > 1 => format!("rank {number}, "),
            _ => String::new(),
        };
        Some(format!(
            "{of_rank}from one step to the next, cosine of all parameters together: {first} in the first run, {second} \
             in the second"
        ))
    }

    /// The answer for machines.
    pub fn to_json(&self) -> Value {
        let decisive = self.decisive();
        let finding = decisive.and_then(|(rank, _)| rank.verdict.finding.as_ref());
        let parameters = decisive.map(|(rank, _)| rank.flagged()).unwrap_or_default();
        json!({
            "status": self.status().as_str(),
            "step": decisive.map(|(_, step)| step),
            "rank": decisive.and_then(|(rank, _)| rank.rank),
            "first_in_backward_order": parameters.first(),
            "parameters": parameters,
            "compared_parameters": finding.map(|finding| finding.compared),
            "thresholds": {
                "first": self.thresholds.first,
                "fall": self.thresholds.fall,
                "floor": self.thresholds.floor,
                "total_fall": self.thresholds.total,
            },
            "noise_runs": self.noise_runs,
            "reasons": finding.map(|finding| {
                finding.reasons.iter().map(|(reason, count)| (reason.as_str().to_owned(), json!(count))).collect()
            }).map_or(Value::Null, Value::Object),
            "text": self.lines().join("\n"),
            "ranks": self.ranks.iter().map(rank_json).collect::<Vec<_>>(),
            "differing_rows": self.differing_rows.len(),
            "first_differing_row": self.differing_rows.first(),
            "failures": self.failures,
            "answer": self.answer().to_json(),
        })
    }
}

fn rank_json(rank: &RankOutcome) -> Value {
    let finding = rank.verdict.finding.as_ref();
    let curves = rank.similarities.parameters.iter().zip(&rank.verdict.curves);
    json!({
        "rank": rank.rank,
        "suspicious": finding.is_some(),
        "step": rank.flagged_step(),
        "parameters": rank.flagged(),
        "summary": curve_json(rank, "summary", &rank.verdict.summary, &rank.similarities.summary),
        "curves": curves
            .zip(&rank.similarities.agreements)
            .map(|((name, curve), agreements)| curve_json(rank, name, curve, agreements))
            .collect::<Vec<_>>(),
    })
}

fn curve_json(rank: &RankOutcome, name: &str, curve: &Curve, agreements: &[Option<Agreement>]) -> Value {
    let flags = curve.flags.iter().map(|&(step, reason)| {
        let mut flag = json!({
            "step": rank.step(step),
            "reason": reason.as_str(),
            "similarity": similarity_at(agreements, step),
        });
        let agreement = agreements.get(step).copied().flatten();
        if let (Some(flag), Some((cosine, (lowest, highest)))) =
            (flag.as_object_mut(), agreement.and_then(Agreement::cosine))
        {
            flag.insert("cosine".to_owned(), json!(cosine));
            flag.insert("cosine_interval_95".to_owned(), json!([lowest, highest]));
        }
        flag
    });
    json!({
        "name": name,
        "worst_step": curve.lowest.map(|(step, _)| rank.step(step)),
        "lowest_similarity": curve.lowest.map(|(_, similarity)| similarity),
        "largest_fall": curve.largest_fall.map(|(_, fall)| fall),
        "largest_fall_step": curve.largest_fall.map(|(step, _)| rank.step(step)),
        "flagged": flags.collect::<Vec<_>>(),
    })
}

/// Four digits tell similarities apart; 1 only if it is 1.
pub(super) fn short(similarity: f64) -> String {
    let rounded = format!("{similarity:.4}");
    if similarity < 1.0 && rounded == "1.0000" { "0.9999".to_owned() } else { rounded }
}

#[cfg(test)]
mod tests;
