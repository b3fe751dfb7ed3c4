//! Measuring: how far the directions of each parameter agree in both runs, step by step.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use msprobe_dump::grad_probe::SKETCHES_FILE;
use msprobe_report::console::Console;
use msprobe_tensor::files::read_direction;
use rayon::prelude::*;

use super::Notes;
use super::agreement::{Agreement, Count, total};
use super::find::{Numbered, Parameters, entries};
use super::names::file_stem;
use super::sketches::{self, StepCosines, has_sketches};

/// Forms of direction files. The first that is there is taken.
const ENDINGS: [&str; 2] = [".npy", ".bits"];

/// The similarities of a rank.
#[derive(Debug, Clone, PartialEq)]
pub struct Similarities {
    /// Steps of both sides, ascending.
    pub steps: Vec<u64>,
    /// Parameters in the order of the model.
    pub parameters: Vec<String>,
    /// For each parameter one per step; none where there is nothing to compare.
    pub agreements: Vec<Vec<Option<Agreement>>>,
    /// All parameters together, per step.
    pub summary: Vec<Option<Agreement>>,
    /// Cosines between consecutive steps of both runs, if both are kept as sketches.
    pub step_cosines: Option<[StepCosines; 2]>,
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
    let forms: Vec<Form> = listed.iter().map(Form::of).collect();
    note_unread(&listed, &forms, &parameters, notes);
    let names = &parameters.names;
    console.begin("comparing directions", total_bytes(&listed));
    let is_expected = |step: usize, name: &str| {
        let recorded = parameters.recorded.get(step).and_then(Option::as_ref);
        recorded.is_none_or(|recorded| recorded.contains(name))
    };
    let known: HashSet<&str> = names.iter().map(String::as_str).collect();
    let is_named = |step: usize, name: &str| {
        is_expected(step, name) && (parameters.strangers.contains(name) || known.contains(name))
    };
    // Steps of signs parameter by parameter, because files are large; those of sketches file by file.
    let of_signs: Vec<usize> = (0..steps.len()).filter(|&step| forms[step] == Form::Signs).collect();
    let mut cells: Vec<Cell> = (0..names.len() * of_signs.len())
        .into_par_iter()
        .with_max_len(1)
        .map(|index| {
            let (step, name) = (of_signs[index / names.len()], &names[index % names.len()]);
            compare(&listed[step], name, is_expected(step, name), console)
        })
        .collect();
    let of_sketches: Vec<Option<Result<sketches::OfStep, String>>> = (0..steps.len())
        .into_par_iter()
        .map(|step| {
            let previous = step.checked_sub(1).and_then(|before| listed.get(before));
            (forms[step] == Form::Sketches).then(|| {
                let found = sketches::compare_step(
                    &listed[step],
                    previous,
                    names,
                    |name| is_expected(step, name),
                    |name| is_named(step, name),
                );
                console.advance(found.as_ref().map_or(0, |found| found.bytes));
                found
            })
        })
        .collect();
    console.end();
    let mut agreements = vec![vec![None; steps.len()]; names.len()];
    let mut cosines: Option<[StepCosines; 2]> = None;
    // In order, whichever thread was first.
    let mut signs = cells.drain(..);
    for (step, found) in of_sketches.into_iter().enumerate() {
        let cells: Vec<Cell> = match (forms[step], found) {
            (Form::Signs, _) => signs.by_ref().take(names.len()).collect(),
            (Form::Sketches, Some(Ok(found))) => {
                let cosines = cosines.get_or_insert_with(|| {
                    let rows = vec![vec![None; steps.len()]; names.len() + 1];
                    [StepCosines { rows: rows.clone() }, StepCosines { rows }]
                });
                for (run, values) in cosines.iter_mut().zip(found.to_previous) {
                    for (row, value) in run.rows.iter_mut().zip(values) {
                        row[step] = value;
                    }
                }
                for text in found.unread {
                    notes.left_out(text);
                }
                found.cells
            }
            (Form::Sketches, Some(Err(text))) => {
                notes.failure(text);
                continue;
            }
            (form, _) => {
                form.note(&listed[step], notes);
                continue;
            }
        };
        for (row, cell) in agreements.iter_mut().zip(cells) {
            match cell {
                Cell::Compared(agreement, unread) => {
                    row[step] = Some(agreement);
                    for text in unread {
                        notes.left_out(text);
                    }
                }
                Cell::Absent => {}
                Cell::Failed(text) => notes.failure(text),
                Cell::Missing(text) => notes.missing(text),
            }
        }
    }
    let summary = (0..steps.len()).map(|step| total(agreements.iter().map(|row| row[step]))).collect();
    Similarities {
        steps: steps.iter().map(|step| step.number).collect(),
        parameters: parameters.names,
        agreements,
        summary,
        step_cosines: cosines,
    }
}

/// In which form both runs have a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Both have signs, or neither has anything.
    Signs,
    /// Both have sketches.
    Sketches,
    /// The run at this position has sketches, the other one signs.
    Mixed(usize),
    /// The run at this position has sketches, the other one nothing.
    Alone(usize),
}

impl Form {
    fn of(sides: &[StepFiles; 2]) -> Form {
        match [has_sketches(&sides[0]), has_sketches(&sides[1])] {
            [true, true] => Form::Sketches,
            [false, false] => Form::Signs,
            [is_first, _] => {
                let (ours, theirs) = if is_first { (0, 1) } else { (1, 0) };
                match [sides[ours].has_signs(), sides[theirs].has_signs()] {
                    [true, true] => Form::Signs,
                    [false, true] => Form::Mixed(ours),
                    _ => Form::Alone(ours),
                }
            }
        }
    }

    /// Says why a step is not compared.
    fn note(self, sides: &[StepFiles; 2], notes: &mut Notes<'_>) {
        match self {
            Form::Mixed(ours) => {
                let [ours, theirs] = [ours, 1 - ours].map(|side| sides[side].directory.display());
                notes.is_mixed = true;
                notes.failure(format!(
                    "{ours} has sketches, {theirs} has signs, and these cannot be compared: a sketch knows the \
                     angle between two gradients, not the sign of an element"
                ));
            }
            Form::Alone(ours) => {
                let path = sides[1 - ours].directory.join(SKETCHES_FILE);
                notes.missing(format!("no matched grad_file for comparison, missing: {}", path.display()));
            }
            Form::Signs | Form::Sketches => {}
        }
    }
}

/// Files nobody compares: of parameters no table names, in another form beside the one that is taken, of no form at all.
fn note_unread(listed: &[[StepFiles; 2]], forms: &[Form], parameters: &Parameters, notes: &mut Notes<'_>) {
    let of_steps =
        listed.iter().enumerate().flat_map(|(step, sides)| sides.iter().map(move |side| (step, side)));
    for (step, side) in of_steps {
        // A file that no table of its own step names may be left over from another run.
        let recorded = parameters.recorded.get(step).and_then(Option::as_ref);
        let is_recorded = |name: &&String| recorded.is_none_or(|recorded| recorded.contains(*name));
        let names = parameters.names.iter().chain(&parameters.strangers).filter(is_recorded);
        let taken: HashSet<PathBuf> = names.filter_map(|name| side.find(name)).collect();
        let of_sketches = forms[step] == Form::Sketches;
        let is_taken = |name: &str| {
            if name == SKETCHES_FILE {
                // Beside signs it is left over from another run; where nothing is compared, that is said of the step.
                return forms[step] != Form::Signs;
            }
            !of_sketches && taken.contains(&side.directory.join(name))
        };
        let mut unread: Vec<&String> =
            side.names.iter().filter(|name| !name.starts_with('.') && !is_taken(name)).collect();
        unread.sort_unstable();
        for name in unread {
            let path = side.directory.join(name);
            notes.left_out(if name == SKETCHES_FILE || of_sketches {
                format!("{} is not read: the step has directions of another form", path.display())
            } else {
                format!("no table names {}", path.display())
            });
        }
    }
}

pub(super) enum Cell {
    /// What was found, and what of the files it does not cover.
    Compared(Agreement, Vec<String>),
    /// No side has it, and none said it would.
    Absent,
    Missing(String),
    Failed(String),
}

/// The files of one side and step.
pub(super) struct StepFiles {
    pub(super) directory: PathBuf,
    pub(super) names: HashSet<String>,
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

    fn has_signs(&self) -> bool {
        self.names.iter().any(|name| ENDINGS.iter().any(|ending| name.ends_with(ending)))
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
                    {
                        let count = Count { same, total: a.numel() as u64 };
                        Cell::Compared(Agreement::Signs(count), unread.collect())
                    }
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
