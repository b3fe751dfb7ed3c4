//! A comparison from paths to files: what is asked for, which dumps belong together, what is left behind.

mod answer;
mod directories;
mod discover;
mod first_difference;
mod json;
mod one;
mod outcome;
mod reports;
mod setup;

use std::collections::HashMap;
use std::path::PathBuf;

pub use self::directories::{compare_dumps, compare_ranks};
pub use self::discover::{DumpPair, FoundPairs, find_dump, find_pairs, find_ranks};
pub use self::one::compare_files;
pub use self::outcome::{Outcome, Part};

use msprobe_compare::verdict::{Allowed, Tolerances};
use msprobe_report::Formats;

/// Which generation of tables is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `Accuracy Reached or Not`, colours, advice.
    Old,
    /// `Result` in all modes, consistency of requires_grad.
    Newest,
}

/// Where call stacks come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StackSource {
    /// stack.json beside the dump, if it is there.
    Detect,
    /// A file that was named.
    File(PathBuf),
    /// Nowhere.
    Off,
}

/// A mapping: rules that are built in, or a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MappingChoice {
    /// The rules that are built in.
    BuiltIn,
    /// The rules of a file.
    File(PathBuf),
}

/// A mapping of row names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataMapping {
    /// Read from a file.
    File(PathBuf),
    /// Given by the caller.
    Names(HashMap<String, String>),
}

/// Names that differ on both sides and still belong together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mappings {
    /// Of APIs.
    pub api: Option<MappingChoice>,
    /// Of cells and modules.
    pub cell: Option<MappingChoice>,
    /// Of layers.
    pub layer: Option<MappingChoice>,
    /// Of rows.
    pub data: Option<DataMapping>,
}

/// What is asked of a comparison, resolved once.
#[derive(Debug, Clone)]
pub struct Options {
    /// Generation of the tables.
    pub form: Form,
    /// Directory for results.
    pub output: PathBuf,
    /// Kinds of files.
    pub formats: Formats,
    /// Where call stacks come from.
    pub stack: StackSource,
    /// Whether an advisor file is written.
    pub advisor: bool,
    /// Whether call numbers are left out of matching.
    pub fuzzy: bool,
    /// Names that differ.
    pub mappings: Mappings,
    /// Whether each row of real data is logged.
    pub log_rows: bool,
    /// Whether the first difference across ranks is looked for (newest form).
    pub first_difference: bool,
    /// What the verdict tolerates.
    pub tolerances: Tolerances,
    /// Further runs of the golden side, which show what is noise: dump files, or directories laid out as the golden one.
    pub noise: Vec<PathBuf>,
    /// What may be left out of the comparison.
    pub allowed: Allowed,
}
