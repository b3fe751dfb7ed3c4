//! The first operation, across ranks, whose results differ: before communication begins, on its way through
//! communication, or after it.

mod communication;
mod operations;
#[cfg(test)]
mod tests;

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use msprobe_report::console::Console;
use msprobe_report::error::CompareError;
use msprobe_report::paths::{make_directory, publish_stamped, timestamp};

use self::communication::Graph;
use self::operations::Rank;
use super::NewestTable;

const NOTHING_FOUND: &str = "Cannot find any diff node, no need to generate analyze file.";

/// The table of one rank. Tensor dumps are to be compared as statistics for this.
pub struct RankTable<'a> {
    /// Number of the rank.
    pub rank: u32,
    /// Its table.
    pub table: &'a NewestTable<'a>,
}

/// An operation of a rank: indexes into the ranks and into the operations of that one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OperationAt {
    rank: usize,
    operation: usize,
}

/// Files that were written.
#[derive(Debug)]
pub struct FirstDifference {
    /// Operations of each rank.
    pub tables: Vec<PathBuf>,
    /// What is known about the first difference; none if nothing differs.
    pub answer: Option<PathBuf>,
}

/// Writes the operations of every rank as json, looks for the first that differs, and writes what is known about it.
/// Gives the files of the ranks, and that of the answer if anything differs.
///
/// # Errors
///
/// If a file cannot be written.
pub fn first_difference(
    ranks: &[RankTable<'_>],
    output: &Path,
    console: &dyn Console,
) -> Result<FirstDifference, CompareError> {
    make_directory(output)?;
    let mut ranks: Vec<Rank<'_>> = ranks.iter().map(Rank::new).collect();
    // The answer must not depend on the order in which ranks were compared.
    ranks.sort_by_key(|rank| rank.number);
    let stamp = timestamp();
    let mut tables = Vec::with_capacity(ranks.len());
    for rank in &ranks {
        let path = output.join(format!("compare_result_rank{}_{stamp}.json", rank.number));
        tables.push(publish_stamped(&path, |file| {
            let mut out = BufWriter::new(file);
            rank.write_operations(&mut out)?;
            out.flush()
        })?);
    }
    let found = search(&ranks);
    if found.is_empty() {
        console.info(NOTHING_FOUND);
        return Ok(FirstDifference { tables, answer: None });
    }
    let nanoseconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let path = output.join(format!("diff_analyze_{nanoseconds}.json"));
    let path = publish_stamped(&path, |file| {
        let mut out = BufWriter::new(file);
        operations::write_findings(&ranks, &found, &mut out)?;
        out.flush()
    })?;
    console.info(&format!("The analyze result is saved in: {}", path.display()));
    Ok(FirstDifference { tables, answer: Some(path) })
}

/// The operations to report, by rank.
fn search(ranks: &[Rank<'_>]) -> Vec<OperationAt> {
    let first_of = |of: &dyn Fn(&Rank<'_>) -> Option<usize>| -> Vec<OperationAt> {
        let places = ranks.iter().enumerate();
        places.filter_map(|(rank, it)| of(it).map(|operation| OperationAt { rank, operation })).collect()
    };
    let before = first_of(&|rank| rank.first_difference(0..rank.first_communication()));
    if !before.is_empty() {
        return before;
    }
    let during = Graph::new(ranks).first_differences();
    if !during.is_empty() {
        return during;
    }
    first_of(&|rank| rank.first_difference(rank.after_communication()..rank.operations.len()))
}
