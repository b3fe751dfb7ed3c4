//! Directories of a dump: `step3/rank0`.

use std::fmt;

use super::{all_digits, parse_index};

const STEP: &str = "step";
const RANK: &str = "rank";

/// A step of training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Step(pub u64);

impl Step {
    /// The step whose directory is called so: `step` and a number without leading zeros.
    pub fn of_dir(name: &str) -> Option<Step> {
        numbered_dir(name, STEP).map(Step)
    }

    /// Whether a directory that is none of a step may be meant to be one: `step_3`.
    pub fn is_meant_by(name: &str) -> bool {
        name.starts_with(STEP)
    }
}

impl fmt::Display for Step {
    /// The directory's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{STEP}{}", self.0)
    }
}

/// The rank of a process; `None` where training is not distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rank(pub Option<u32>);

impl Rank {
    /// The rank whose directory is called so: `rank` and a number without leading zeros, or `rank` alone.
    pub fn of_dir(name: &str) -> Option<Rank> {
        match name.strip_prefix(RANK)? {
            "" => Some(Rank(None)),
            number => {
                parse_index(number).and_then(|rank| u32::try_from(rank).ok()).map(|rank| Rank(Some(rank)))
            }
        }
    }

    /// Its number; that of the only process is 0.
    pub fn number(self) -> u32 {
        self.0.unwrap_or(0)
    }
}

impl fmt::Display for Rank {
    /// The directory's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(rank) => write!(f, "{RANK}{rank}"),
            None => f.write_str(RANK),
        }
    }
}

/// The number of a directory called `prefix` and a number without leading zeros.
pub fn numbered_dir(name: &str, prefix: &str) -> Option<u64> {
    name.strip_prefix(prefix).and_then(parse_index)
}

/// What follows the prefix in the name of a directory of key data is no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoNumber;

/// The number of a directory of key data: what follows `prefix`, as Python's `int` reads it, with blanks around it, a sign,
/// leading zeros and single underscores between digits. Nothing if it is called otherwise.
///
/// Wider than [`numbered_dir`], because the reference reads these trees so, scripts make some of them by hand, and a name
/// that is no number ends its comparison: `rank01` is rank 1 there.
pub fn key_data_dir(name: &str, prefix: &str) -> Option<Result<i64, NoNumber>> {
    name.strip_prefix(prefix).map(|number| python_int(number).ok_or(NoNumber))
}

fn python_int(text: &str) -> Option<i64> {
    let text = text.trim();
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let groups: Vec<&str> = rest.split('_').collect();
    if !groups.iter().all(|group| all_digits(group)) {
        return None;
    }
    format!("{sign}{}", groups.concat()).parse().ok()
}

/// Whether a directory is called after a process without a rank, as some versions of the reference do: `proc12`.
pub fn is_process_dir(name: &str) -> bool {
    name.strip_prefix("proc").is_some_and(all_digits)
}
