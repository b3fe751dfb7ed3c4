//! Directories of a dump: `step3/rank0`.

use std::fmt;

use super::{all_digits, parse_index};

/// A step of training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Step(pub u64);

impl Step {
    /// The step whose directory is called so: `step` and a number without leading zeros.
    pub fn of_dir(name: &str) -> Option<Step> {
        numbered_dir(name, "step").map(Step)
    }
}

impl fmt::Display for Step {
    /// The directory's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step{}", self.0)
    }
}

/// The rank of a process; `None` where training is not distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rank(pub Option<u32>);

impl Rank {
    /// The rank whose directory is called so: `rank` and a number without leading zeros, or `rank` alone.
    pub fn of_dir(name: &str) -> Option<Rank> {
        match name.strip_prefix("rank")? {
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
            Some(rank) => write!(f, "rank{rank}"),
            None => f.write_str("rank"),
        }
    }
}

/// The number of a directory called `prefix` and a number without leading zeros.
pub fn numbered_dir(name: &str, prefix: &str) -> Option<u64> {
    name.strip_prefix(prefix).and_then(parse_index)
}

/// Whether a directory is called after a process without a rank, as some versions of the reference do: `proc12`.
pub fn is_process_dir(name: &str) -> bool {
    name.strip_prefix("proc").is_some_and(all_digits)
}
