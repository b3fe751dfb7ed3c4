//! What came of all pairs of dumps of one call, and its verdict.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::discover::place_of;
use crate::console::Console;
use crate::error::CompareError;
use crate::output::publish;
use crate::verdict::{Status, Tolerances, Verdict};

/// One pair of dumps.
#[derive(Debug)]
pub struct Part {
    /// Step of the dumps, if their path names one.
    pub step: Option<u64>,
    /// Rank of the dumps, if their path names one.
    pub rank: Option<u64>,
    /// Its verdict.
    pub verdict: Verdict,
    /// Files that were written.
    pub files: Vec<PathBuf>,
}

impl Part {
    /// Step and rank are read off the path of the dump.
    pub(super) fn new(dump: &Path, verdict: Verdict, files: Vec<PathBuf>) -> Part {
        let (step, rank) = place_of(dump);
        Part { step, rank, verdict, files }
    }

    /// `step 0, rank 1`, as far as known.
    pub fn place(&self) -> String {
        let step = self.step.map(|step| format!("step {step}"));
        let rank = self.rank.map(|rank| format!("rank {rank}"));
        step.into_iter().chain(rank).collect::<Vec<_>>().join(", ")
    }

    /// Earlier is more likely the cause: step, forward before backward, computation before communication, place.
    fn order(&self) -> (u64, bool, bool, usize, u64) {
        let culprit = self.verdict.culprit.as_ref();
        (
            self.step.unwrap_or(0),
            culprit.is_some_and(|culprit| culprit.name.starts_with("Distributed.")),
            culprit.is_some_and(|culprit| culprit.direction == "backward"),
            culprit.map_or(usize::MAX, |culprit| culprit.position),
            self.rank.unwrap_or(0),
        )
    }
}

/// All pairs of dumps of one call.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Those that could be compared.
    pub parts: Vec<Part>,
    /// What could not be compared, be it a rank or a tensor.
    pub failures: Vec<String>,
}

impl Outcome {
    /// The part that decides.
    pub fn decisive(&self) -> Option<&Part> {
        let differing = self.parts.iter().filter(|part| !part.verdict.status.agrees());
        let diverged = differing.clone().filter(|part| part.verdict.status != Status::Failed);
        let worst = |part: &&Part| part.verdict.status == Status::WithinTolerance;
        diverged
            .min_by_key(|part| part.order())
            .or_else(|| differing.min_by_key(|part| part.order()))
            .or_else(|| self.parts.iter().find(worst))
            .or_else(|| self.parts.first())
    }

    /// How the runs compare.
    pub fn status(&self) -> Status {
        self.decisive().map_or(Status::Failed, |part| part.verdict.status)
    }

    /// The answer, in a paragraph.
    pub fn paragraph(&self) -> String {
        let Some(part) = self.decisive() else {
            return "Nothing could be compared.".to_owned();
        };
        let differing: Vec<&Part> = self.parts.iter().filter(|part| !part.verdict.status.agrees()).collect();
        // Where all agree no place stands out.
        let place = if differing.is_empty() && self.parts.len() > 1 {
            format!("{} dumps", self.parts.len())
        } else {
            part.place()
        };
        let mut text = part.verdict.paragraph(&place);
        if self.parts.len() > 1 && !differing.is_empty() {
            let places: Vec<String> = differing.iter().map(|part| part.place()).take(16).collect();
            let more = differing.len().saturating_sub(16);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let _ = write!(
                text,
                " {} of {} dumps differ: {}{more}.",
                differing.len(),
                self.parts.len(),
                places.join("; ")
            );
        }
        match self.failures.len() {
            0 => {}
            1 => text.push_str(" 1 item could not be compared, see the log."),
            count => {
                let _ = write!(text, " {count} items could not be compared, see the log.");
            }
        }
        text
    }

    /// The answer for machines.
    pub fn to_json(&self, tolerances: &Tolerances) -> Value {
        let mut object = match self.decisive() {
            Some(part) => {
                let mut object = part.verdict.to_json();
                object.insert("step".into(), json!(part.step));
                object.insert("rank".into(), json!(part.rank));
                object
            }
            None => {
                let mut object = Map::new();
                object.insert("status".into(), Status::Failed.word().into());
                for key in ["culprit", "direction", "step", "rank", "evidence", "match_method"] {
                    object.insert(key.into(), Value::Null);
                }
                let tolerances: Map<String, Value> =
                    tolerances.named().map(|(name, value)| (name.to_owned(), value.into())).collect();
                object.insert("tolerances".into(), tolerances.into());
                object
            }
        };
        object.insert("text".into(), self.paragraph().into());
        let parts = self.parts.iter().map(|part| {
            let culprit = part.verdict.culprit.as_ref();
            json!({
                "step": part.step,
                "rank": part.rank,
                "status": part.verdict.status.word(),
                "culprit": culprit.map(|culprit| &culprit.name),
                "direction": culprit.map(|culprit| culprit.direction),
                "files": part.files.iter().map(|file| file.file_name().unwrap_or_default().to_string_lossy())
                    .collect::<Vec<_>>(),
            })
        });
        object.insert("dumps".into(), parts.collect());
        object.insert("failures".into(), json!(self.failures));
        Value::Object(object)
    }

    /// Leaves verdict.json in the directory of the results.
    pub fn write_verdict(
        &self,
        output: &Path,
        tolerances: &Tolerances,
        console: &dyn Console,
    ) -> Result<PathBuf, CompareError> {
        let path = output.join("verdict.json");
        let text = format!("{:#}\n", self.to_json(tolerances));
        crate::output::make_directory(output)?;
        publish(&path, console, |path| std::fs::write(path, text))?;
        Ok(path)
    }
}
