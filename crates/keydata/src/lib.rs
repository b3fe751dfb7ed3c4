//! Key data of two reinforcement-learning runs: prompts, responses, log probabilities, losses.
//!
//! Arrays are found by their place in the tree, paired by it, measured, and judged in the order in which data flows
//! through a step.

mod answer;
mod flow;
mod limits;
mod measure;
mod run;
mod summary;
mod table;
mod text;
mod tokens;
pub mod tree;
mod verdict;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::SystemTime;

use msprobe_tensor::DType;

pub use self::limits::Judging;
pub use self::measure::{Incomparable, Measured, compare_arrays, compare_found, compare_keys};
pub use self::run::{Outcome, compare_data_directories, compare_key_data};
pub use self::table::{HEADERS, KeyTable, write_key_workbook};
pub use self::tree::{Arrays, find_arrays};
pub use msprobe_report::answer::Status;

/// Where an array of a key was saved. Ordered as the rows of a table are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArrayPlace {
    /// Training step.
    pub step: i64,
    /// Rank of the process.
    pub rank: i64,
    /// Which save of the key within the step.
    pub micro_step: i64,
    /// Which element of a list.
    pub id: i64,
}

/// The six metrics of a pair of arrays, as tables show them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metrics {
    /// Share of equal elements, 0 to 100; NaN equals nothing.
    pub same_percentage: f64,
    /// Row-major index, in the block both sides have, of the first element that is not equal.
    pub first_mismatch_index: Option<u64>,
    /// Largest `|a - b|`.
    pub max_abs_error: f64,
    /// Largest `|a - b| / max(|a|, |b|)`.
    pub max_relative_error: f64,
    /// Share of elements within 1/1000 of the larger magnitude, 0 to 100.
    pub percentage_within_thousandth: f64,
    /// Share of elements within 1/100.
    pub percentage_within_hundredth: f64,
}

/// A pair of arrays that was measured. Index 0 is the first run, 1 the second.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Where both were saved.
    pub place: ArrayPlace,
    /// Both files.
    pub files: [PathBuf; 2],
    /// Both shapes, before anything is cut.
    pub shapes: [Vec<usize>; 2],
    /// Both dtypes.
    pub dtypes: [DType; 2],
    /// The shape of the block that was compared.
    pub compared: Vec<usize>,
    /// What tables show.
    pub metrics: Metrics,
    /// NaNs in the compared block.
    pub nan_counts: [u64; 2],
    /// Like `first_mismatch_index`, but NaN against NaN is no difference.
    pub first_difference: Option<u64>,
    /// L2 norm of the difference; infinite if NaN or infinities are not the same.
    pub distance: f64,
    /// L2 norm of the second run's.
    pub norm: f64,
}

/// A pair the tables have no metrics for, bools or no elements, that could be compared all the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Bare {
    /// Where both were saved.
    pub place: ArrayPlace,
    /// Both shapes.
    pub shapes: [Vec<usize>; 2],
    /// Both dtypes.
    pub dtypes: [DType; 2],
    /// Row-major index of the first element that differs in the block both have.
    pub first_difference: Option<u64>,
}

/// A pair that could not be compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// Where both were saved.
    pub place: ArrayPlace,
    /// Both files.
    pub files: [PathBuf; 2],
    /// Why.
    pub reason: String,
}

/// One key of both runs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KeyComparison {
    /// Its name.
    pub name: String,
    /// Whether each run has the key at all.
    pub present: [bool; 2],
    /// Pairs, in order of their place.
    pub rows: Vec<Row>,
    /// Pairs without metrics that could be compared, in order of their place.
    pub bare: Vec<Bare>,
    /// Pairs that could not be compared, in order of their place.
    pub failures: Vec<Failure>,
    /// Places only one run has, in order.
    pub one_sided: [Vec<ArrayPlace>; 2],
    /// When the key was first saved, as far as files tell.
    pub first_saved: Option<SystemTime>,
}

/// Two runs, compared.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Comparison {
    /// Keys in order of their names.
    pub keys: Vec<KeyComparison>,
    /// What is in either tree and was not read, each with the reason.
    pub unread: Vec<String>,
}

impl Comparison {
    /// How the runs compare, with nothing said about what may differ.
    pub fn status(&self) -> Status {
        verdict::judge(self, &limits::Limits::new(self, None, &[])).status
    }
}
