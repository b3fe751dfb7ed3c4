//! What came of all pairs of dumps of one call, and its verdict.

use std::path::{Path, PathBuf};

use msprobe_compare::verdict::{Allowed, Asides, Gap, GapKind, Gaps, Status, Tolerances, Verdict};
use msprobe_dump::names::is_of_communication;
use msprobe_report::answer::{Answer, Scope, StepAndRank};
use msprobe_report::console::Console;
use msprobe_report::error::CompareError;
use msprobe_report::paths::{make_directory, publish};
use serde_json::{Value, json};

use super::discover::place_of;
use super::json::{gaps_json, tolerances_json, verdict_json};

/// The file of the answer.
const VERDICT: &str = "verdict.json";

/// One pair of dumps.
#[derive(Debug)]
pub struct Part {
    /// Step and rank of both dumps, as far as their paths name them.
    pub scope: Scope,
    /// Its verdict.
    pub verdict: Verdict,
    /// Files that were written.
    pub files: Vec<PathBuf>,
}

impl Part {
    /// Step and rank are read off the path of the dump.
    pub(super) fn new((target, golden): (&Path, &Path), verdict: Verdict, files: Vec<PathBuf>) -> Part {
        Part { scope: scope_of(target, golden), verdict, files }
    }

    /// `step 0, rank 1`, as far as known; `step 5 against step 0` where they were paired by position.
    pub fn place(&self) -> String {
        self.scope.to_string()
    }

    /// Earlier is more likely the cause: step, forward before backward, computation before communication, place.
    fn order(&self) -> (i64, bool, bool, usize, i64) {
        let culprit = self.verdict.culprit.as_ref();
        (
            self.scope.at.step.unwrap_or(0),
            culprit.is_some_and(|culprit| is_of_communication(&culprit.name)),
            culprit.is_some_and(|culprit| culprit.direction == "backward"),
            culprit.map_or(usize::MAX, |culprit| culprit.position),
            self.scope.at.rank.unwrap_or(0),
        )
    }
}

/// Step and rank of both dumps, read off their paths. A golden dump whose path does not tell is taken for the same.
pub(super) fn scope_of(target: &Path, golden: &Path) -> Scope {
    let ((step, rank), (golden_step, golden_rank)) = (place_of(target), place_of(golden));
    let against = StepAndRank::new(golden_step.or(step), golden_rank.or(rank));
    Scope { at: StepAndRank::new(step, rank), against: Some(against) }
}

/// What is left out of the comparison on both sides.
pub(super) fn gap(kind: GapKind, name: String, reason: &str) -> Gap {
    Gap { kind, name, only: None, reason: reason.to_owned() }
}

/// All pairs of dumps of one call.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Those that could be compared.
    pub parts: Vec<Part>,
    /// What could not be read, be it a rank or a tensor.
    pub failures: Vec<String>,
    /// Ranks and steps that could not be compared.
    pub gaps: Gaps,
    /// What may be left out of the comparison.
    pub allowed: Allowed,
}

impl Outcome {
    /// Nothing was compared yet.
    pub(super) fn new(allowed: Allowed) -> Outcome {
        Outcome { allowed, ..Outcome::default() }
    }

    /// A dump that could not be compared.
    pub fn add_failure(&mut self, name: &str, reason: &str) {
        self.failures.push(format!("{name}: {reason}"));
        self.gaps.add(GapKind::Ranks, || gap(GapKind::Ranks, name.to_owned(), reason));
    }

    /// A pair that was compared, and the tensors of it that could not be read.
    pub(super) fn add_part(&mut self, (part, failures): (Part, Vec<String>)) {
        self.parts.push(part);
        self.failures.extend(failures);
    }

    /// The part that decides.
    pub fn decisive(&self) -> Option<&Part> {
        let of = |wanted: fn(Status) -> bool| {
            self.parts.iter().filter(move |part| wanted(part.verdict.status)).min_by_key(|part| part.order())
        };
        of(Status::is_difference)
            .or_else(|| of(|status| status == Status::Incomplete))
            .or_else(|| of(|status| status == Status::WithinTolerance))
            .or_else(|| of(|status| status == Status::Identical))
            .or_else(|| self.parts.first())
    }

    /// How the runs compare.
    pub fn status(&self) -> Status {
        let Some(part) = self.decisive() else { return Status::Failed };
        let status = part.verdict.status;
        let nothing_paired = |part: &Part| part.verdict.status == Status::Failed;
        if !status.agrees() {
            status
        } else if self.gaps.is_blocked(self.allowed) || self.parts.iter().any(nothing_paired) {
            Status::Incomplete
        } else if self.gaps.is_empty() {
            status
        } else {
            Status::WithinTolerance
        }
    }

    /// The part that decides, and the verdict on all parts together: what differs is told of that one, the rest of all.
    pub(super) fn overall(&self) -> Option<(&Part, Verdict)> {
        let part = self.decisive()?;
        let mut verdict = part.verdict.clone();
        verdict.status = self.status();
        verdict.gaps = self.all_gaps();
        verdict.is_equal = self.parts.iter().all(|part| part.verdict.is_equal);
        if !verdict.status.is_difference() {
            verdict.counts = self.parts.iter().map(|part| part.verdict.counts).sum();
            verdict.asides = Asides::default();
            for part in &self.parts {
                verdict.asides.extend(&part.verdict.asides);
            }
        }
        Some((part, verdict))
    }

    /// Everything that could not be compared, in all dumps.
    fn all_gaps(&self) -> Gaps {
        let mut gaps = self.gaps.clone();
        for part in &self.parts {
            let place = if self.parts.len() > 1 { part.place() } else { String::new() };
            gaps.extend(&part.verdict.gaps, &place);
            if part.verdict.status == Status::Failed {
                gaps.add(GapKind::Ranks, || gap(GapKind::Ranks, part.place(), "no record has a partner"));
            }
        }
        gaps
    }

    /// The answer for machines. `output` is where verdict.json goes.
    pub fn to_json(&self, tolerances: &Tolerances, output: &Path) -> Value {
        let mut object = match self.overall() {
            Some((part, verdict)) => {
                let mut object = verdict_json(&verdict);
                object["step"] = json!(part.scope.at.step);
                object["rank"] = json!(part.scope.at.rank);
                object
            }
            None => json!({
                "status": Status::Failed.as_str(),
                "culprit": null,
                "direction": null,
                "step": null,
                "rank": null,
                "evidence": null,
                "match_method": null,
                "tolerances": tolerances_json(tolerances),
                "incomplete": gaps_json(&self.gaps),
            }),
        };
        object["text"] = self.paragraph().into();
        let parts = self.parts.iter().map(|part| {
            let culprit = part.verdict.culprit.as_ref();
            let Scope { at, against } = part.scope;
            json!({
                "step": at.step,
                "rank": at.rank,
                "bench_step": against.and_then(|golden| golden.step),
                "bench_rank": against.and_then(|golden| golden.rank),
                "status": part.verdict.status.as_str(),
                "culprit": culprit.map(|culprit| &culprit.name),
                "direction": culprit.map(|culprit| culprit.direction),
                "files": part.files.iter().map(|file| file.file_name().unwrap_or_default().to_string_lossy())
                    .collect::<Vec<_>>(),
            })
        });
        object["dumps"] = parts.collect();
        object["failures"] = json!(self.failures);
        object["answer"] = self.answer(output).to_json();
        object
    }

    /// The answer, with the files in the directory of the results.
    pub fn answer(&self, output: &Path) -> Answer {
        let files = self.parts.iter().flat_map(|part| part.files.iter().cloned());
        Answer {
            files: files.chain([output.join(VERDICT)]).collect(),
            output: Some(output.to_owned()),
            ..self.to_answer()
        }
    }

    /// Leaves verdict.json in the directory of the results.
    pub fn write_verdict(
        &self,
        output: &Path,
        tolerances: &Tolerances,
        console: &dyn Console,
    ) -> Result<PathBuf, CompareError> {
        let path = output.join(VERDICT);
        let text = format!("{:#}\n", self.to_json(tolerances, output));
        make_directory(output)?;
        publish(&path, console, |file| std::io::Write::write_all(file, text.as_bytes()))?;
        Ok(path)
    }
}
