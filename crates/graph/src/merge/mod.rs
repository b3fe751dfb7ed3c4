//! Ranks of one model, merged into one graph by the way their work is split.

use msprobe_report::console::Console;
use msprobe_report::error::CompareError;

use crate::run::{GraphOutcome, Options, Progress};

/// How the ranks of a side share the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strategies {}

#[allow(clippy::unnecessary_wraps)]
pub(crate) fn run(
    _: &Strategies,
    _: Vec<crate::run::StepDirs>,
    _: Option<Vec<crate::run::StepDirs>>,
    _: &Options,
    _: &mut GraphOutcome,
    _: &dyn Console,
    _: &Progress<'_>,
) -> Result<(), CompareError> {
    Ok(())
}
