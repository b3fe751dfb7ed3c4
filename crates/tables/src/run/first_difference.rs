//! The first difference across the ranks of a step, in the files the newest form leaves.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use msprobe_compare::Mode;
use msprobe_compare::side::{Side, Stacks};
use msprobe_report::console::Console;
use msprobe_report::error::CompareError;

use super::Options;
use super::discover::{DumpPair, place_of};
use super::one::resolve_keys;
use super::setup::{check_records, read_both, read_stacks};
use crate::matching::Keys;
use crate::newest::{NewestOptions, NewestTable, RankTable, first_difference};

/// Two sides of a rank, ready to be compared.
struct Rank {
    number: u32,
    target: Side,
    golden: Side,
    mode: Mode,
    stacks: Option<Stacks>,
    keys: Keys,
}

/// Looks for the first difference, step by step. Dumps that cannot be compared were reported before.
pub(super) fn find_first_differences(
    pairs: &[DumpPair],
    options: &Options,
    console: &dyn Console,
) -> Result<Vec<PathBuf>, CompareError> {
    let mut steps: BTreeMap<Option<u64>, Vec<Rank>> = BTreeMap::new();
    for pair in pairs {
        let (step, rank) = place_of(&pair.target);
        let number = u32::try_from(rank.unwrap_or(0)).unwrap_or(u32::MAX);
        if let Ok(rank) = read_rank(&pair.target, &pair.golden, number, options, console) {
            steps.entry(step).or_default().push(rank);
        }
    }
    let several = steps.len() > 1;
    let mut files = Vec::new();
    for (step, ranks) in steps {
        let output = match step {
            Some(step) if several => options.output.join(format!("step{step}")),
            _ => options.output.clone(),
        };
        let tables: Vec<(u32, NewestTable<'_>)> =
            ranks.iter().map(|rank| (rank.number, rank.table(options, console))).collect();
        let tables: Vec<RankTable<'_>> =
            tables.iter().map(|(rank, table)| RankTable { rank: *rank, table }).collect();
        let written = first_difference(&tables, &output, console)?;
        files.extend(written.tables.into_iter().chain(written.answer));
    }
    Ok(files)
}

fn read_rank(
    target: &Path,
    golden: &Path,
    number: u32,
    options: &Options,
    console: &dyn Console,
) -> Result<Rank, CompareError> {
    let (mut target, mut golden, mode) = read_both(target, golden, console)?;
    let stacks = read_stacks(&target, options, console)?;
    check_records(&mut target, &mut golden, console)?;
    let keys = resolve_keys(&target, &golden, options, console)?;
    // Statistics say enough to find a difference.
    let mode = if mode == Mode::All { Mode::Summary } else { mode };
    Ok(Rank { number, target, golden, mode, stacks, keys })
}

impl Rank {
    fn table(&self, options: &Options, console: &dyn Console) -> NewestTable<'_> {
        let options = NewestOptions {
            fuzzy: options.fuzzy,
            across_frameworks: self.target.is_of_other_framework_than(&self.golden),
            keys: self.keys.clone(),
            log_tensors: false,
        };
        NewestTable::compare(&self.target, &self.golden, self.mode, self.stacks.as_ref(), &options, console)
    }
}
