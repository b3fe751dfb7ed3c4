//! The answer: what was found in a step, and its words for people and for scripts.

mod answer;
mod json;
pub(crate) mod text;

use std::path::PathBuf;

pub use msprobe_report::answer::Status;
use serde::Serialize;

use crate::findings::{Finding, record_at};
use crate::links::Links;
use crate::origins::{Arrival, Excused, MOST_TOLD, Picture};
use crate::phases::Findings;
use crate::range::{RangeFindings, Warning};
use crate::rank::RankDump;
use crate::rules::Rules;

/// How it came to a rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// The rank.
    pub rank: u32,
    /// Its first record that was not finite.
    pub operation: String,
    /// The call of the other rank; nothing if that was not recorded.
    pub via: Option<String>,
    /// The other rank.
    pub from_rank: Option<u32>,
}

impl Spread {
    pub(crate) fn of(arrival: &Arrival, ranks: &[RankDump]) -> Option<Spread> {
        let (dump, record) = record_at(ranks, arrival.at)?;
        let from = arrival.from.and_then(|from| record_at(ranks, from));
        Some(Spread {
            rank: dump.dir.rank,
            operation: record.name.to_string(),
            via: from.map(|(_, record)| record.name.to_string()),
            from_rank: from.map(|(dump, _)| dump.dir.rank),
        })
    }
}

/// A rank in figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RankSummary {
    /// The rank.
    pub rank: u32,
    /// `L0`, `L1`, `mix`.
    pub level: String,
    /// Records in its dump.
    pub records: usize,
    /// Those with results, or arguments, that are not finite and not harmless.
    pub anomalies: usize,
    /// The first of them.
    pub first_anomaly: Option<String>,
    /// What is wrong with its dump.
    pub problems: Vec<String>,
    /// Values nobody can say of whether they are finite.
    pub unmeasured: u64,
    /// The first of them, and why.
    pub first_unmeasured: Option<String>,
}

impl RankSummary {
    pub(crate) fn of(dump: &RankDump, polluted: &[u32], rules: &Rules) -> RankSummary {
        let name = |record: &u32| dump.records.get(*record as usize).map(|record| record.name.to_string());
        let (unmeasured, first_unmeasured) = dump.not_measured(rules);
        RankSummary {
            rank: dump.dir.rank,
            level: dump.level.clone(),
            records: dump.records.len(),
            anomalies: polluted.len(),
            first_anomaly: polluted.first().and_then(name),
            problems: dump.problems.clone(),
            unmeasured,
            first_unmeasured: first_unmeasured.map(str::to_owned),
        }
    }
}

/// Values of a rank that are close to the end of their range.
#[derive(Debug)]
pub struct Warned {
    /// The rank.
    pub rank: u32,
    /// What was found.
    pub range: RangeFindings,
    /// The record and the sentence of each of its warnings.
    pub sentences: Vec<(String, String)>,
    /// Findings that were left out as masks: tensors filled with the lowest number of their dtype.
    pub filled: u64,
}

/// What was found in a step.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Its directory.
    pub step: PathBuf,
    /// Steps before it, in which there was nothing.
    pub clean_steps: Vec<PathBuf>,
    /// Other steps in which nothing was found, but not everything was measured or could be read.
    pub incomplete_steps: Vec<PathBuf>,
    /// Origins, the earliest first: that is the culprit.
    pub origins: Vec<Finding>,
    /// How it came to the other ranks.
    pub spread: Vec<Spread>,
    /// Values close to the end of their range.
    pub warnings: Vec<Warned>,
    /// The dtype values were tried for, if one was.
    pub as_dtype: Option<String>,
    /// The ranks that were read.
    pub ranks: Vec<RankSummary>,
    /// Ranks that could not be read at all.
    pub unreadable: Vec<u32>,
    /// Ranks that should be there and are not, ascending.
    pub missing_ranks: Vec<i64>,
    /// Directories that should hold a dump and were not looked at.
    pub left_out: Vec<String>,
    /// What could not be read, or not in full.
    pub problems: Vec<String>,
    /// What the reference would have named.
    pub phases: Findings,
    /// Files that were written.
    pub files: Vec<PathBuf>,
    pub(crate) dumps: Vec<RankDump>,
    pub(crate) picture: Picture,
    pub(crate) links: Links,
}

impl Outcome {
    /// How it ended.
    pub fn status(&self) -> Status {
        if !self.origins.is_empty() || self.ranks.iter().any(|rank| rank.anomalies > 0) {
            Status::Anomaly
        } else if !self.is_complete() {
            Status::Incomplete
        } else if self.warnings.iter().any(|warned| !warned.range.warnings.is_empty()) {
            Status::Warning
        } else {
            Status::Clean
        }
    }

    /// Whether every value of every rank was read and measured: only then is finding nothing a proof.
    pub fn is_complete(&self) -> bool {
        let is_whole =
            |rank: &RankSummary| rank.records > 0 && rank.problems.is_empty() && rank.unmeasured == 0;
        self.has_all_ranks()
            && self.left_out.is_empty()
            && self.incomplete_steps.is_empty()
            && self.ranks.iter().all(is_whole)
    }

    /// Whether no rank is missing and each could be opened.
    pub fn has_all_ranks(&self) -> bool {
        self.unreadable.is_empty() && self.missing_ranks.is_empty()
    }

    /// Where it began.
    pub fn culprit(&self) -> Option<&Finding> {
        self.origins.first()
    }

    /// Origins beyond those that are told.
    pub fn more_origins(&self) -> usize {
        self.picture.origins.len().saturating_sub(MOST_TOLD)
    }

    /// What was excused.
    pub fn harmless(&self) -> &[Excused] {
        &self.picture.excused
    }

    /// Records besides the origins that got something nobody recorded made, and gave only finite values: how many, and the
    /// first with its rank.
    pub fn absorbed(&self) -> (usize, Option<(u32, &str)>) {
        let of_rank = self.picture.causes.iter().zip(&self.dumps);
        let mut all = of_rank.flat_map(|(causes, dump)| causes.absorbed().map(move |record| (dump, record)));
        let first = all.next();
        let name =
            first.and_then(|(dump, record)| Some((dump.dir.rank, &*dump.records.get(record as usize)?.name)));
        (usize::from(first.is_some()) + all.count(), name)
    }

    /// Values close to the end of their range: the rank, what it is about, the record and the sentence.
    pub(crate) fn all_warnings(&self) -> impl Iterator<Item = (u32, &Warning, &str, &str)> {
        self.warnings.iter().flat_map(|warned| {
            let pairs = warned.range.warnings.iter().zip(&warned.sentences);
            pairs.map(|(warning, (operation, sentence))| (warned.rank, warning, &**operation, &**sentence))
        })
    }

    /// The record of an excuse.
    pub(crate) fn excused_name(&self, excused: &Excused) -> Option<(u32, &str)> {
        record_at(&self.dumps, excused.at).map(|(dump, record)| (dump.dir.rank, &*record.name))
    }
}
