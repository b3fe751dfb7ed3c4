//! The answer every command ends with: how it ended, what is to blame, what shows it, what was left out, what to do next.
//!
//! Crates that look at data keep verdicts of their own kind, and turn them into an [`Answer`] when they are to be told:
//! as lines for a terminal ([`Answer::write`]), as a block of a page ([`Answer::block`]), as JSON ([`Answer::to_json`]).
//! `docs/answers.md` and `docs/answer.schema.json` describe the JSON to users.

mod json;
mod status;
mod text;

use std::fmt;
use std::path::PathBuf;

pub use self::status::{Exit, Habit, Status};
pub use self::text::{Body, Section};
use crate::html::AnswerBlock;
use crate::{Cell, Tone};

/// What a command has to say.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The command: `compare`, `rl compare`.
    pub command: &'static str,
    /// How it ended.
    pub status: Status,
    /// One sentence, made by [`Status::headline`].
    pub headline: String,
    /// Which step and rank it is about.
    pub scope: Scope,
    /// What is to blame.
    pub culprit: Option<Culprit>,
    /// The numbers that show it.
    pub evidence: Vec<Evidence>,
    /// What could not be looked at.
    pub not_compared: Vec<NotCompared>,
    /// What to do now: a command, or an instruction.
    pub next_step: Option<String>,
    /// Directory of the files, if there are any.
    pub output: Option<PathBuf>,
    /// Files that were written.
    pub files: Vec<PathBuf>,
}

/// Which part of a run an answer is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scope {
    /// Where; nothing of it where the answer is about all of the run.
    pub at: StepAndRank,
    /// What it was compared with; none where one run is looked at.
    pub against: Option<StepAndRank>,
}

/// A step and a rank, as far as they are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StepAndRank {
    /// The step.
    pub step: Option<i64>,
    /// The rank.
    pub rank: Option<i64>,
}

impl StepAndRank {
    /// From numbers of any kind; one that is out of range is none.
    pub fn new<N: TryInto<i64>>(step: Option<N>, rank: Option<N>) -> StepAndRank {
        let number = |number: Option<N>| number.and_then(|number| number.try_into().ok());
        StepAndRank { step: number(step), rank: number(rank) }
    }
}

impl Scope {
    /// One run.
    pub fn of_one(at: StepAndRank) -> Scope {
        Scope { at, against: None }
    }

    /// Two runs at the same place.
    pub fn of_two(at: StepAndRank) -> Scope {
        Scope { at, against: Some(at) }
    }
}

impl fmt::Display for Scope {
    /// `step 0, rank 1`, as far as known; `step 5 against step 0` where they were paired by position.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let against = self.against.unwrap_or(self.at);
        let parts = [("step", self.at.step, against.step), ("rank", self.at.rank, against.rank)];
        let named = parts.into_iter().filter_map(|(word, own, other)| Some((word, own?, other)));
        for (index, (word, own, other)) in named.enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{word} {own}")?;
            if let Some(other) = other.filter(|other| *other != own) {
                write!(f, " against {word} {other}")?;
            }
        }
        Ok(())
    }
}

/// What is to blame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Culprit {
    /// A record, a key, a parameter, a tensor.
    pub name: String,
    /// How it was recognised; an identifier.
    pub kind: &'static str,
    /// `forward` or `backward`, where it is of one.
    pub direction: Option<&'static str>,
    /// What is known of it, for people: labels and texts. Without a label, a text goes on with the one before.
    pub facts: Vec<(&'static str, String)>,
}

/// One thing that was measured of a value of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// The record, the key, the tensor.
    pub record: String,
    /// The value of it: `output.0`; empty for all of it.
    pub value: String,
    /// What was measured; an identifier.
    pub measure: &'static str,
    /// The target's.
    pub target: Cell,
    /// The golden run's.
    pub golden: Cell,
    /// That of both together: an error, a similarity, a place.
    pub measured: Cell,
    /// How far it may go.
    pub tolerated: Option<f64>,
}

impl Evidence {
    /// The same thing measured of each side.
    pub fn of_sides(
        record: &str,
        value: &str,
        measure: &'static str,
        target: Cell,
        golden: Cell,
    ) -> Evidence {
        let (record, value) = (record.to_owned(), value.to_owned());
        Evidence { record, value, measure, target, golden, measured: Cell::Empty, tolerated: None }
    }

    /// What was measured of both together.
    pub fn of_pair(record: &str, value: &str, measure: &'static str, measured: Cell) -> Evidence {
        Evidence { measured, ..Evidence::of_sides(record, value, measure, Cell::Empty, Cell::Empty) }
    }

    /// With how far it may go.
    #[must_use]
    pub fn tolerating(self, tolerated: f64) -> Evidence {
        Evidence { tolerated: Some(tolerated), ..self }
    }
}

/// Things of one kind that could not be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotCompared {
    /// What kind of thing; an identifier.
    pub kind: &'static str,
    /// How many.
    pub count: usize,
    /// The same for people: `3 ranks cannot be compared`.
    pub text: String,
    /// The first ones, each with the reason.
    pub first: Vec<(String, String)>,
}

/// So many things that were not compared are named in an answer.
const NAMED: usize = 10;

impl NotCompared {
    /// Nothing if there are none.
    pub fn of(
        kind: &'static str,
        count: usize,
        text: impl Into<String>,
        first: impl IntoIterator<Item = (String, String)>,
    ) -> Option<NotCompared> {
        let first = || first.into_iter().take(NAMED).collect();
        (count > 0).then(|| NotCompared { kind, count, text: text.into(), first: first() })
    }
}

impl Answer {
    /// An answer with nothing but a headline.
    pub fn new(command: &'static str, status: Status, headline: String, scope: Scope) -> Answer {
        Answer {
            command,
            status,
            headline,
            scope,
            culprit: None,
            evidence: Vec::new(),
            not_compared: Vec::new(),
            next_step: None,
            output: None,
            files: Vec::new(),
        }
    }

    /// What is known beyond the headline: labels and texts, for pages and sheets.
    pub fn facts(&self) -> Vec<(String, String)> {
        let mut facts = vec![("Status".to_owned(), self.status.as_str().to_owned())];
        if let Some(culprit) = &self.culprit {
            facts.push(("Culprit".to_owned(), culprit.name.clone()));
            facts.extend(culprit.direction.map(|direction| ("Direction".to_owned(), direction.to_owned())));
            for (label, text) in &culprit.facts {
                match facts.last_mut() {
                    // Without a label it goes on with the one before.
                    Some((_, before)) if label.is_empty() => *before = format!("{before}\n{text}"),
                    _ => facts.push((capitalised(label), text.clone())),
                }
            }
        }
        let left_out = self.left_out_lines();
        if !left_out.is_empty() {
            facts.push((self.left_out_title().to_owned(), left_out.join("\n")));
        }
        facts.extend(self.next_step.iter().map(|next| ("Next".to_owned(), next.clone())));
        facts
    }

    /// The answer on a page, with more facts below its own.
    pub fn block(&self, heading: &str, more: impl IntoIterator<Item = (String, String)>) -> AnswerBlock {
        let facts = self.facts().into_iter().chain(more).collect();
        AnswerBlock { heading: heading.to_owned(), tone: self.tone(), text: self.headline.clone(), facts }
    }

    /// Its colour.
    pub fn tone(&self) -> Tone {
        self.status.tone()
    }
}

fn capitalised(label: &str) -> String {
    let mut letters = label.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests;
