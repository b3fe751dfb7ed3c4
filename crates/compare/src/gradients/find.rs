//! What two runs have in common: ranks, steps, and parameters in the order of the model.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Notes;
use crate::error::{Code, CompareError};

/// A directory that is on both sides.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Numbered {
    pub(super) number: u64,
    pub(super) name: String,
}

/// Directories called `prefix` and digits that are on both sides, ascending. Those of one side alone are mentioned.
pub(super) fn common_directories(
    sides: [&Path; 2],
    prefix: &str,
    notes: &mut Notes<'_>,
) -> Result<Vec<Numbered>, CompareError> {
    let [ours, theirs] = [numbered(sides[0], prefix)?, numbered(sides[1], prefix)?];
    let alone = |ours: &[Numbered], theirs: &[Numbered]| -> Vec<String> {
        ours.iter().filter(|one| !theirs.contains(one)).map(|one| one.name.clone()).collect()
    };
    let alone = [alone(&ours, &theirs), alone(&theirs, &ours)];
    let common: Vec<Numbered> = ours.into_iter().filter(|one| theirs.contains(one)).collect();
    if common.is_empty() {
        let message = format!("no matched {prefix}s for comparison, please dump data in same configuration");
        let [first, second] = sides.map(Path::display);
        return Err(CompareError::new(Code::InvalidCompareMode, message)
            .with_hint(format!("no directory {prefix}0, {prefix}1, … is both in {first} and in {second}")));
    }
    for (side, alone) in sides.iter().zip(&alone) {
        if !alone.is_empty() {
            notes.warning(&format!("only in {}: {}", side.display(), some_of(alone)));
        }
    }
    Ok(common)
}

/// The first few of many.
pub(super) fn some_of(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// Whether there is a directory called `prefix` and digits.
pub(super) fn has_numbered(directory: &Path, prefix: &str) -> bool {
    numbered(directory, prefix).is_ok_and(|found| !found.is_empty())
}

fn numbered(directory: &Path, prefix: &str) -> Result<Vec<Numbered>, CompareError> {
    let mut found: Vec<Numbered> = entries(directory)
        .map_err(|error| unlisted(directory, &error))?
        .into_iter()
        .filter_map(|name| {
            let digits = name.strip_prefix(prefix)?;
            let number = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())??;
            directory.join(&name).is_dir().then_some(Numbered { number, name })
        })
        .collect();
    found.sort();
    Ok(found)
}

fn unlisted(directory: &Path, error: &io::Error) -> CompareError {
    CompareError::new(Code::IllegalPath, format!("cannot list {}: {error}", directory.display()))
}

/// Names in a directory, sorted. Those that are no text belong to nobody's dump.
pub(super) fn entries(directory: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        if let Ok(name) = entry?.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// The parameters of a rank.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    /// In the order of the model.
    pub(super) names: Vec<String>,
    /// For each step those the first side recorded, where that is known.
    pub(super) recorded: Vec<Option<HashSet<String>>>,
}

/// The names in the first side's tables: those of the lowest step, then what later steps have besides.
pub(super) fn parameters(
    sides: [&Path; 2],
    steps: &[Numbered],
    notes: &mut Notes<'_>,
) -> Result<Parameters, CompareError> {
    let tables: Vec<PathBuf> =
        steps.iter().map(|step| sides[0].join(format!("grad_summary_{}.csv", step.number))).collect();
    let mut matched = tables
        .iter()
        .any(|table| table.is_file() && table.file_name().is_some_and(|name| sides[1].join(name).is_file()));
    let mut found = Parameters::default();
    let mut known = HashSet::new();
    let mut read = 0;
    let mut add = |names: &[String]| {
        for name in names {
            if known.insert(name.clone()) {
                found.names.push(name.clone());
            }
        }
    };
    for table in &tables {
        // A step without a table has its files still.
        let names = if table.is_file() { read_names(table, notes) } else { None };
        if let Some(names) = &names {
            read += 1;
            add(names);
        }
        found.recorded.push(names.map(|names| names.into_iter().collect()));
    }
    if read == 0 {
        // Any other table will do, as long as both sides have it.
        for name in entries(sides[0]).map_err(|error| unlisted(sides[0], &error))? {
            let table = sides[0].join(&name);
            if table.extension().is_some_and(|extension| extension == "csv")
                && !tables.contains(&table)
                && sides[1].join(&name).is_file()
            {
                matched = true;
                if let Some(names) = read_names(&table, notes) {
                    read += 1;
                    add(&names);
                    break;
                }
            }
        }
    }
    if !matched {
        let message = "no matched grad_summary.csv for comparison, please dump data in same configuration";
        let [first, second] = sides.map(Path::display);
        return Err(CompareError::new(Code::InvalidCompareMode, message)
            .with_hint(format!("no grad_summary_0.csv or the like is both in {first} and in {second}")));
    }
    if read == 0 {
        let message = format!("no grad_summary csv of {} could be read", sides[0].display());
        return Err(CompareError::new(Code::InvalidFile, message));
    }
    mention_strangers(sides[1], steps, &found.names, notes);
    Ok(found)
}

/// Parameters of the second side alone are not compared; that should not go unnoticed.
fn mention_strangers(side: &Path, steps: &[Numbered], names: &[String], notes: &mut Notes<'_>) {
    let Some(step) = steps.first() else { return };
    let table = side.join(format!("grad_summary_{}.csv", step.number));
    let known: HashSet<&String> = names.iter().collect();
    // What is wrong with this table costs nothing.
    if let Ok((theirs, _)) = names_of(&table) {
        let strangers: Vec<String> = theirs.into_iter().filter(|name| !known.contains(name)).collect();
        if !strangers.is_empty() {
            notes.warning(&format!("only in {}: {}", table.display(), some_of(&strangers)));
        }
    }
}

/// The names in a table. A fault is noted; names before it are kept.
fn read_names(table: &Path, notes: &mut Notes<'_>) -> Option<Vec<String>> {
    match names_of(table) {
        Ok((names, fault)) => {
            if let Some(fault) = fault {
                notes.failure(format!("cannot read all of {}: {fault}", table.display()));
            }
            Some(names)
        }
        Err(error) => {
            notes.failure(format!("cannot read {}: {error}", table.display()));
            None
        }
    }
}

/// The column of names, and what is wrong with the rest of the table.
fn names_of(table: &Path) -> Result<(Vec<String>, Option<String>), String> {
    if !table.is_file() {
        return Err("it is not an ordinary file".to_owned());
    }
    let mut reader =
        csv::ReaderBuilder::new().flexible(true).from_path(table).map_err(|error| error.to_string())?;
    let headers = reader.headers().map_err(|error| error.to_string())?;
    let is_name = |header: &str| header.trim_start_matches('\u{feff}').eq_ignore_ascii_case("param_name");
    let column = headers.iter().position(is_name).ok_or("it has no column param_name")?;
    let columns = headers.len();
    let mut names = Vec::new();
    let mut fault = None;
    for (row, record) in reader.records().enumerate() {
        match record {
            // The name itself may be cut short.
            Ok(record) if record.len() < columns => {
                fault = Some(format!("row {} is cut short", row + 1));
            }
            Ok(record) => names.extend(record.get(column).map(str::to_owned)),
            Err(error) => {
                fault = Some(error.to_string());
                if error.is_io_error() {
                    break;
                }
            }
        }
    }
    Ok((names, fault))
}
