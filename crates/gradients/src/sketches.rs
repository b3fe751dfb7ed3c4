//! Gradients that are kept as sketches: the angle between those of two runs, and between those of two steps of one run.

use std::collections::HashMap;
use std::path::PathBuf;

use msprobe_dump::grad_probe::{GradientSketch, SKETCHES_FILE, read_sketches};

use super::agreement::{Agreement, Cosine, total};
use super::measure::{Cell, StepFiles};

/// Cosines between each step and the one before it, of one run: for each parameter one per step, all together last.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StepCosines {
    /// Nothing at the first step, and where one of the two is not known.
    pub rows: Vec<Vec<Option<f64>>>,
}

/// What is found of one step.
pub(super) struct OfStep {
    /// One per parameter.
    pub(super) cells: Vec<Cell>,
    /// Cosines to the step before, one per parameter and one of all together; of both runs.
    pub(super) to_previous: [Vec<Option<f64>>; 2],
    /// What of the files nobody compares.
    pub(super) unread: Vec<String>,
    pub(super) bytes: u64,
}

/// The sketches of one run and step.
struct Sketches {
    path: PathBuf,
    by_name: HashMap<String, Result<GradientSketch, String>>,
}

impl Sketches {
    fn read(files: &StepFiles) -> Result<Sketches, String> {
        let path = files.directory.join(SKETCHES_FILE);
        let by_name = read_sketches(&path).map_err(|error| error.to_string())?;
        Ok(Sketches { path, by_name })
    }

    fn get(&self, name: &str) -> Option<&GradientSketch> {
        self.by_name.get(name)?.as_ref().ok()
    }
}

/// Whether a step of a run has sketches.
pub(super) fn has_sketches(files: &StepFiles) -> bool {
    files.names.contains(SKETCHES_FILE)
}

/// Compares the sketches of a step. `is_expected` says of which parameters there should be some, `is_named` which a table
/// names.
pub(super) fn compare_step(
    sides: &[StepFiles; 2],
    previous: Option<&[StepFiles; 2]>,
    names: &[String],
    is_expected: impl Fn(&str) -> bool,
    is_named: impl Fn(&str) -> bool,
) -> Result<OfStep, String> {
    let [target, golden] = [Sketches::read(&sides[0]), Sketches::read(&sides[1])];
    let (target, golden) = match (target, golden) {
        (Ok(target), Ok(golden)) => (target, golden),
        (Err(a), Err(b)) => return Err(format!("{a}; {b}")),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => return Err(error),
    };
    let cells = names.iter().map(|name| compare([&target, &golden], name, is_expected(name))).collect();
    let mut unread = Vec::new();
    for sketches in [&target, &golden] {
        let mut strangers: Vec<&String> = sketches.by_name.keys().filter(|name| !is_named(name)).collect();
        strangers.sort_unstable();
        let path = sketches.path.display();
        unread.extend(strangers.into_iter().map(|name| format!("no table names {name} of {path}")));
    }
    let runs = [&target, &golden];
    let to_previous = std::array::from_fn(|side| {
        // What is wrong with that step is said when it is its turn.
        let before = previous.filter(|steps| has_sketches(&steps[side])).map(|steps| &steps[side]);
        let before = before.and_then(|files| Sketches::read(files).ok());
        before.map_or_else(
            || vec![None; names.len() + 1],
            |before| cosines(names.iter().map(|name| (before.get(name), runs[side].get(name)))),
        )
    });
    let size = |sketches: &Sketches| sketches.path.metadata().map_or(0, |metadata| metadata.len());
    Ok(OfStep { cells, to_previous, unread, bytes: size(&target) + size(&golden) })
}

/// The cosine of each two, and that of all together.
fn cosines<'a>(
    pairs: impl Iterator<Item = (Option<&'a GradientSketch>, Option<&'a GradientSketch>)>,
) -> Vec<Option<f64>> {
    let angles: Vec<Option<Agreement>> = pairs
        .map(|(a, b)| {
            let (a, b) = (a?, b?);
            (a.shape == b.shape).then(|| Cosine::new(a, b).map(Agreement::Sketches)).flatten()
        })
        .collect();
    let all = total(angles.iter().copied());
    angles.into_iter().chain([all]).map(|angle| Some(angle?.cosine()?.0)).collect()
}

fn compare(sides: [&Sketches; 2], name: &str, is_expected: bool) -> Cell {
    let place = |side: usize| format!("{name} of {}", sides[side].path.display());
    let found = sides.map(|side| side.by_name.get(name));
    let (target, golden) = match found {
        [Some(Ok(target)), Some(Ok(golden))] => (target, golden),
        [None, None] if !is_expected => return Cell::Absent,
        found => {
            let reasons: Vec<String> = (0..2)
                .filter_map(|side| match found[side] {
                    Some(Ok(_)) => None,
                    Some(Err(reason)) => Some(format!("cannot read {}: {reason}", place(side))),
                    None => Some(format!("there is no {}", place(side))),
                })
                .collect();
            let is_damaged = found.iter().any(|found| found.is_some_and(Result::is_err));
            let text = reasons.join("; ");
            return if is_damaged { Cell::Failed(text) } else { Cell::Missing(text) };
        }
    };
    if target.shape != golden.shape {
        return Cell::Failed(format!(
            "tensor shape is not equal: {} {:?}, {} {:?}",
            place(0),
            target.shape,
            place(1),
            golden.shape
        ));
    }
    match Cosine::new(target, golden) {
        Some(cosine) => Cell::Compared(Agreement::Sketches(cosine), Vec::new()),
        None => Cell::Failed(format!("the sketches say nothing: {}, {}", place(0), place(1))),
    }
}
