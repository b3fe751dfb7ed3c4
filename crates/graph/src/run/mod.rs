//! From paths to files: all ranks of all steps, built or compared, linked, and stored.

mod layout;
mod outcome;
mod pair;
mod tally;
mod to_db;
mod to_vis;

use std::path::{Path, PathBuf};

use msprobe_report::console::Console;
use msprobe_report::error::{Code, CompareError};
use msprobe_report::paths::make_directory;

use self::layout::{Content, StepPairs, find, pair_up};
pub use self::layout::{RankDir, StepDirs};
pub use self::outcome::GraphOutcome;
pub(crate) use self::outcome::rank_place;
pub use self::pair::{LayerMapping, Pair, put_together, read_graph};
pub use self::tally::Tally;
pub(crate) use self::to_db::{DbError, Filling};
use crate::merge::Strategies;
use crate::names::Generation;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Options {
    /// Like which form of the reference.
    pub generation: Generation,
    /// The dump in question: of a rank, a step, or several steps.
    pub target: PathBuf,
    /// What it is compared with; nothing to build graphs only.
    pub golden: Option<PathBuf>,
    /// Directory for results.
    pub output: PathBuf,
    /// How names of layers are mapped.
    pub layer_mapping: Option<LayerMapping>,
    /// Whether functions are matched by their order.
    pub fuzzy: bool,
    /// Whether NaN, infinities and jumps are looked for.
    pub overflow_check: bool,
    /// Whether all lines of stacks are shown; the third generation always does.
    pub complete_stacks: bool,
    /// How ranks are merged.
    pub merge: Option<Strategies>,
    /// Whether merged ranks are written as dumps instead.
    pub as_dump: bool,
}

impl Options {
    /// To build the graph of a dump, with nothing else asked for.
    pub fn new(generation: Generation, target: &Path, output: &Path) -> Options {
        Options {
            generation,
            target: target.to_owned(),
            golden: None,
            output: output.to_owned(),
            layer_mapping: None,
            fuzzy: false,
            overflow_check: false,
            complete_stacks: generation == Generation::Third,
            merge: None,
            as_dump: false,
        }
    }
}

/// Hears how much is done, in percent.
pub type Progress<'a> = dyn Fn(u8) + 'a;

/// Does what is asked for.
pub fn run(
    options: &Options,
    console: &dyn Console,
    progress: &Progress<'_>,
) -> Result<GraphOutcome, CompareError> {
    let (content, target) = find(&options.target, console)?;
    let golden = match &options.golden {
        None => None,
        Some(path) => {
            let (other, golden) = find(path, console)?;
            // Merging compares what several ranks make together, whatever the number of them.
            if other != content && options.merge.is_none() {
                return Err(inconsistent(content, other));
            }
            Some(golden)
        }
    };
    if options.fuzzy && options.layer_mapping.is_some() {
        console.warning("fuzzy matching was asked for too: the layer mapping is not used");
    }
    let mut outcome = GraphOutcome::new(options);
    if let Some(strategies) = &options.merge {
        make_directory(&options.output)?;
        crate::merge::run(strategies, &target, golden.as_deref(), options, &mut outcome, console, progress)?;
        return outcome.finish();
    }
    let mut left_out = Vec::new();
    let steps = pair_up(target, golden, &mut left_out);
    for message in left_out {
        console.warning(&format!("{message}, it is left out"));
        outcome.leave_out(message);
    }
    if steps.is_empty() {
        return Err(CompareError::new(Code::InvalidPath, "the two sides have no rank in common")
            .with_hint("give two dumps of the same steps and ranks, or two directories of one rank each"));
    }
    make_directory(&options.output)?;
    match options.generation {
        Generation::First => to_vis::write(&steps, options, &mut outcome, console, progress),
        Generation::Third => to_db::write(&steps, options, &mut outcome, console, progress)?,
    }
    outcome.finish()
}

fn inconsistent(target: Content, golden: Content) -> CompareError {
    let words = |content: Content| match content {
        Content::Files => "the files of one rank",
        Content::Ranks => "directories of ranks",
        Content::Steps => "directories of steps",
    };
    let message = "The directory structures of npu_path and bench_path are inconsistent.";
    let hint = format!(
        "the target has {}, the golden side {}: give two paths of the same kind",
        words(target),
        words(golden)
    );
    CompareError::new(Code::InvalidPath, message).with_hint(hint)
}

/// `step 0, rank 1`, as far as known.
fn place_of(step: Option<u32>, rank: Option<u32>) -> String {
    let parts = [step.map(|step| format!("step {step}")), rank.map(|rank| format!("rank {rank}"))];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// How many ranks there are.
fn ranks_in(steps: &[StepPairs]) -> usize {
    steps.iter().map(|step| step.ranks.len()).sum()
}

/// `1 node`, `2 nodes`.
pub(crate) fn count(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Percent of some work.
pub(crate) fn percent(done: usize, all: usize) -> u8 {
    (done * 100 / all.max(1)).min(100) as u8
}
