//! Directories of a dump: `step3/rank0`.

use std::fmt;
use std::str::FromStr;

use super::{NameError, parse_index};

/// A step of training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Step(pub u64);

impl fmt::Display for Step {
    /// The directory's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step{}", self.0)
    }
}

impl FromStr for Step {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Step, NameError> {
        let index = text.strip_prefix("step").and_then(parse_index);
        index.map(Step).ok_or_else(|| NameError {
            text: text.to_owned(),
            what: "the directory of a step",
            form: "step0",
        })
    }
}

/// The rank of a process; `None` where training is not distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rank(pub Option<u32>);

impl fmt::Display for Rank {
    /// The directory's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(rank) => write!(f, "rank{rank}"),
            None => f.write_str("rank"),
        }
    }
}

impl FromStr for Rank {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Rank, NameError> {
        let rank = match text.strip_prefix("rank") {
            Some("") => Some(Rank(None)),
            Some(index) => {
                parse_index(index).and_then(|rank| u32::try_from(rank).ok()).map(|rank| Rank(Some(rank)))
            }
            None => None,
        };
        rank.ok_or_else(|| NameError {
            text: text.to_owned(),
            what: "the directory of a rank",
            form: "rank0, or rank for a process without one",
        })
    }
}
