//! Counting: how many directions of each parameter are the same in both runs, step by step.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use msprobe_report::console::Console;
use msprobe_tensor::files::read_direction;
use rayon::prelude::*;

use super::Notes;
use super::find::{Numbered, Parameters, entries};
use super::names::file_stem;

/// Forms of direction files. The first that is there is taken.
const ENDINGS: [&str; 2] = [".npy", ".bits"];

/// Elements with the same direction, of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Elements whose direction is the same on both sides.
    pub same: u64,
    /// Elements.
    pub total: u64,
}

impl Count {
    /// The similarity; nothing where there is no element.
    pub fn similarity(self) -> Option<f64> {
        (self.total > 0).then(|| self.same as f64 / self.total as f64)
    }

    fn plus(self, other: Count) -> Count {
        Count { same: self.same.saturating_add(other.same), total: self.total.saturating_add(other.total) }
    }
}

/// The similarity at a position of a curve, if it is known.
pub(super) fn similarity_at(counts: &[Option<Count>], position: usize) -> Option<f64> {
    counts.get(position).copied().flatten().and_then(Count::similarity)
}

/// The similarities of a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Similarities {
    /// Steps of both sides, ascending.
    pub steps: Vec<u64>,
    /// Parameters in the order of the model.
    pub parameters: Vec<String>,
    /// For each parameter a count per step; none where there is nothing to compare.
    pub counts: Vec<Vec<Option<Count>>>,
    /// All parameters together, per step.
    pub summary: Vec<Option<Count>>,
}

/// Compares the files of a rank, on all threads. What cannot be compared costs its own count and is noted.
pub(super) fn measure(
    sides: [&Path; 2],
    steps: &[Numbered],
    parameters: Parameters,
    notes: &mut Notes<'_>,
) -> Similarities {
    let console = notes.console;
    let listed: Vec<[StepFiles; 2]> =
        steps.iter().map(|step| sides.map(|side| StepFiles::list(side.join(&step.name), notes))).collect();
    note_unread(&listed, &parameters, notes);
    let names = &parameters.names;
    let pairs = names.len() * steps.len();
    console.begin("comparing directions", total_bytes(&listed));
    let cells: Vec<Cell> = (0..pairs)
        .into_par_iter()
        .with_max_len(1)
        .map(|index| {
            let (step, name) = (index / names.len(), &names[index % names.len()]);
            let recorded = parameters.recorded.get(step).and_then(Option::as_ref);
            let expected = recorded.is_none_or(|recorded| recorded.contains(name));
            compare(&listed[step], name, expected, console)
        })
        .collect();
    console.end();
    let mut counts = vec![vec![None; steps.len()]; names.len()];
    // In order, whichever thread was first.
    for (index, cell) in cells.into_iter().enumerate() {
        match cell {
            Cell::Counted(count, unread) => {
                counts[index % names.len()][index / names.len()] = Some(count);
                for text in unread {
                    notes.left_out(text);
                }
            }
            Cell::Absent => {}
            Cell::Failed(text) => notes.failure(text),
            Cell::Missing(text) => notes.missing(text),
        }
    }
    let summary = (0..steps.len()).map(|step| total(counts.iter().map(|row| row[step]))).collect();
    Similarities {
        steps: steps.iter().map(|step| step.number).collect(),
        parameters: parameters.names,
        counts,
        summary,
    }
}

/// Files nobody compares: of parameters no table names, in another form beside the one that is taken, of no form at all.
fn note_unread(listed: &[[StepFiles; 2]], parameters: &Parameters, notes: &mut Notes<'_>) {
    let of_steps =
        listed.iter().enumerate().flat_map(|(step, sides)| sides.iter().map(move |side| (step, side)));
    for (step, side) in of_steps {
        // A file that no table of its own step names may be left over from another run.
        let recorded = parameters.recorded.get(step).and_then(Option::as_ref);
        let is_recorded = |name: &&String| recorded.is_none_or(|recorded| recorded.contains(*name));
        let names = parameters.names.iter().chain(&parameters.strangers).filter(is_recorded);
        let taken: HashSet<PathBuf> = names.filter_map(|name| side.find(name)).collect();
        let mut unread: Vec<&String> = side
            .names
            .iter()
            .filter(|name| !name.starts_with('.') && !taken.contains(&side.directory.join(name)))
            .collect();
        unread.sort_unstable();
        for name in unread {
            notes.left_out(format!("no table names {}", side.directory.join(name).display()));
        }
    }
}

/// The sum of what is known; nothing if nothing is.
fn total(counts: impl Iterator<Item = Option<Count>>) -> Option<Count> {
    let mut counts = counts.peekable();
    if counts.peek().is_none() {
        return Some(Count::default());
    }
    counts.flatten().reduce(Count::plus)
}

enum Cell {
    /// A count, and what of the files it does not cover.
    Counted(Count, Vec<String>),
    /// No side has it, and none said it would.
    Absent,
    Missing(String),
    Failed(String),
}

/// The direction files of one side and step.
struct StepFiles {
    directory: PathBuf,
    names: HashSet<String>,
}

impl StepFiles {
    fn list(directory: PathBuf, notes: &mut Notes<'_>) -> StepFiles {
        let names = entries(&directory).unwrap_or_else(|error| {
            notes.failure(format!("cannot list {}: {error}", directory.display()));
            Vec::new()
        });
        StepFiles { directory, names: names.into_iter().collect() }
    }

    fn find(&self, parameter: &str) -> Option<PathBuf> {
        let names = ENDINGS.map(|ending| format!("{}{ending}", file_stem(parameter, ending)));
        let name = names.into_iter().find(|name| self.names.contains(name))?;
        Some(self.directory.join(name))
    }

    /// Where a parameter's file should be.
    fn usual(&self, parameter: &str) -> PathBuf {
        self.directory.join(format!("{}{}", file_stem(parameter, ENDINGS[0]), ENDINGS[0]))
    }
}

/// Bytes of the files that may be read, for the bar; a rough number is enough.
fn total_bytes(listed: &[[StepFiles; 2]]) -> u64 {
    let size = |path: PathBuf| path.metadata().map_or(0, |metadata| metadata.len());
    let of_side =
        |side: &StepFiles| side.names.iter().map(|name| size(side.directory.join(name))).sum::<u64>();
    listed.par_iter().flatten().map(of_side).sum()
}

fn compare(files: &[StepFiles; 2], name: &str, expected: bool, console: &dyn Console) -> Cell {
    let (ours, theirs) = match [files[0].find(name), files[1].find(name)] {
        [Some(ours), Some(theirs)] => (ours, theirs),
        [None, None] if !expected => return Cell::Absent,
        found => {
            let missing = found.iter().zip(files).filter(|(found, _)| found.is_none());
            let paths: Vec<String> =
                missing.map(|(_, side)| side.usual(name).display().to_string()).collect();
            return Cell::Missing(format!(
                "no matched grad_file for comparison, missing: {}",
                paths.join(", ")
            ));
        }
    };
    match (read_direction(&ours), read_direction(&theirs)) {
        (Ok(a), Ok(b)) => {
            let cell = match a.equal_elements(&b) {
                Some(same) => {
                    let behind = [(&ours, a.trailing_bytes()), (&theirs, b.trailing_bytes())];
                    let behind = behind.into_iter().filter(|(_, bytes)| *bytes > 0);
                    let unread = behind.map(|(path, bytes)| {
                        format!("{bytes} bytes of {} are behind its array", path.display())
                    });
                    Cell::Counted(Count { same, total: a.numel() as u64 }, unread.collect())
                }
                None => Cell::Failed(format!(
                    "tensor shape is not equal: {} {:?}, {} {:?}",
                    ours.display(),
                    a.shape(),
                    theirs.display(),
                    b.shape()
                )),
            };
            console.advance(a.size_bytes() + b.size_bytes());
            cell
        }
        (Err(a), Err(b)) => Cell::Failed(format!("{a}; {b}")),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Cell::Failed(error.to_string()),
    }
}
