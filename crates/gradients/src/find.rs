//! What two runs have in common: ranks, steps, and parameters in the order of the model.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io;
use std::path::Path;

use msprobe_dump::names::numbered_dir;
use msprobe_report::error::{Code, CompareError};
use msprobe_report::some_of;

use super::Notes;

/// Names that are listed before the rest becomes a number.
const NAMES_SHOWN: usize = 8;

/// A directory that is on both sides.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Numbered {
    pub(super) number: u64,
    pub(super) name: String,
}

/// Directories called `prefix` and digits that are on both sides, ascending. Those of one side alone are not compared.
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
        let [target, golden] = sides.map(Path::display);
        return Err(CompareError::new(Code::InvalidCompareMode, message)
            .with_hint(format!("no directory {prefix}0, {prefix}1, … is both in {target} and in {golden}")));
    }
    for side in sides {
        for name in strays(side, prefix) {
            notes.left_out(format!("{} is no directory of a {prefix}", side.join(name).display()));
        }
    }
    for (side, alone) in sides.iter().zip(&alone) {
        if !alone.is_empty() {
            notes.warning(&format!("only in {}: {}", side.display(), some_of(alone, NAMES_SHOWN)));
        }
        for name in alone {
            notes.left_out(format!("{} is in one run only", side.join(name).display()));
        }
    }
    Ok(common)
}

/// Directories that may be meant to be of a rank or step, and are not read: by their name, or by what is in them.
fn strays(directory: &Path, prefix: &str) -> Vec<String> {
    let numbered = numbered(directory, prefix).unwrap_or_default();
    let is_read = |name: &String| numbered.iter().any(|one| one.name == *name);
    let is_hidden = |name: &String| name.starts_with('.');
    let is_stray = |name: &String| {
        let path = directory.join(name);
        path.is_dir() && (name.starts_with(prefix) || holds_tables(&path, STRAY_DEPTH))
    };
    let mut names = entries(directory).unwrap_or_default();
    names.retain(|name| !is_hidden(name) && !is_read(name) && is_stray(name));
    names
}

/// A stray may be a whole dump.
const STRAY_DEPTH: usize = 2;

fn holds_tables(directory: &Path, depth: usize) -> bool {
    let names = entries(directory).unwrap_or_default();
    names.iter().any(|name| step_of_table(name).is_some())
        || depth > 1
            && names.iter().map(|name| directory.join(name)).any(|path| holds_tables(&path, depth - 1))
}

/// The step a table is of, by its name.
fn step_of_table(name: &str) -> Option<&str> {
    name.strip_prefix("grad_summary_")?.strip_suffix(".csv")
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
            let number = numbered_dir(&name, prefix)?;
            directory.join(&name).is_dir().then_some(Numbered { number, name })
        })
        .collect();
    found.sort();
    Ok(found)
}

fn unlisted(directory: &Path, error: &io::Error) -> CompareError {
    CompareError::new(Code::IllegalPath, format!("cannot list {}: {error}", directory.display()))
        .with_hint("check the permissions of the directory")
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
    /// Those only tables of the second side have.
    pub(super) strangers: HashSet<String>,
    /// For each step those either side recorded, where that is known.
    pub(super) recorded: Vec<Option<HashSet<String>>>,
}

/// The names in the tables: those of the first side's lowest step, then what its later steps have besides. Where no table
/// of the first side can be read, the second side's stand in.
pub(super) fn parameters(
    sides: [&Path; 2],
    steps: &[Numbered],
    notes: &mut Notes<'_>,
) -> Result<Parameters, CompareError> {
    let files: Vec<String> = steps.iter().map(|step| format!("grad_summary_{}.csv", step.number)).collect();
    let mut matched = files.iter().any(|name| sides.iter().all(|side| side.join(name).is_file()));
    let mut tables: Vec<[Option<Table>; 2]> = Vec::new();
    for (name, step) in files.iter().zip(steps) {
        let tables_of_step = sides.map(|side| {
            let path = side.join(name);
            // A step without a table has its files still.
            if path.is_file() { read_table(&path, notes) } else { None }
        });
        for (side, other) in [(0, 1), (1, 0)] {
            if !sides[side].join(name).exists() && sides[other].join(name).is_file() {
                notes.missing(format!("missing: {}", sides[side].join(name).display()));
            }
        }
        if let [Some(ours), Some(theirs)] = &tables_of_step {
            let paths = sides.map(|side| side.join(name));
            note_differing_rows([ours, theirs], [&paths[0], &paths[1]], step.number, notes);
        }
        tables.push(tables_of_step);
    }
    note_unread_tables(sides, &files, notes);
    let has_table = |side: usize| tables.iter().any(|tables| tables[side].is_some());
    let mut others: Vec<String> = Vec::new();
    if !has_table(0) && !has_table(1) {
        // Any other table will do, as long as both sides have it.
        for name in entries(sides[0]).map_err(|error| unlisted(sides[0], &error))? {
            let table = sides[0].join(&name);
            if table.extension().is_some_and(|extension| extension == "csv")
                && !files.contains(&name)
                && sides[1].join(&name).is_file()
            {
                matched = true;
                if let Some(table) = read_table(&table, notes) {
                    others = table.names;
                    break;
                }
            }
        }
    }
    if !matched {
        let message = "no matched grad_summary.csv for comparison, please dump data in same configuration";
        let [target, golden] = sides.map(Path::display);
        return Err(CompareError::new(Code::InvalidCompareMode, message)
            .with_hint(format!("no grad_summary_0.csv or the like is both in {target} and in {golden}")));
    }
    if !has_table(0) && !has_table(1) && others.is_empty() {
        let message = format!("no grad_summary csv of {} could be read", sides[0].display());
        return Err(CompareError::new(Code::InvalidFile, message)
            .with_hint("the log says what is wrong with each of them; collect again with task grad_probe"));
    }
    let leading = usize::from(!has_table(0) && has_table(1));
    let mut found = Parameters::default();
    let mut known = HashSet::new();
    let of_tables =
        tables.iter().filter_map(|tables| tables[leading].as_ref()).flat_map(|table| &table.names);
    for name in of_tables.chain(&others) {
        if known.insert(name.clone()) {
            found.names.push(name.clone());
        }
    }
    for (tables_of_step, step) in tables.iter().zip(&files) {
        if let Some(table) = &tables_of_step[1 - leading] {
            let strangers: Vec<&String> = table.names.iter().filter(|name| !known.contains(*name)).collect();
            let path = sides[1 - leading].join(step);
            for name in strangers {
                // Where both have a table of the step, it was said of its row.
                if tables_of_step[leading].is_none() {
                    notes.left_out(format!("{name} is only in {}", path.display()));
                }
                found.strangers.insert(name.clone());
            }
        }
        let names = tables_of_step.iter().flatten().flat_map(|table| table.names.iter().cloned());
        found.recorded.push(tables_of_step.iter().any(Option::is_some).then(|| names.collect()));
    }
    if !found.strangers.is_empty() {
        let mut strangers: Vec<&String> = found.strangers.iter().collect();
        strangers.sort_unstable();
        notes.warning(&format!(
            "only in {}: {}",
            sides[1 - leading].display(),
            some_of(strangers, NAMES_SHOWN)
        ));
    }
    Ok(found)
}

/// A table of a step: its names in order, and all cells by name and column.
#[derive(Debug, Default)]
struct Table {
    names: Vec<String>,
    rows: HashMap<String, Vec<Row>>,
}

/// Cells by their column, as written.
type Row = BTreeMap<String, String>;

/// Counts rows that are not the same on both sides: signs alone do not make two runs identical. A row of one side alone
/// is compared with nothing.
fn note_differing_rows(tables: [&Table; 2], paths: [&Path; 2], step: u64, notes: &mut Notes<'_>) {
    let [ours, theirs] = tables;
    let is_new = |name: &&String| !ours.rows.contains_key(*name);
    for name in ours.names.iter().chain(theirs.names.iter().filter(is_new)) {
        let rows = tables.map(|table| table.rows.get(name).map_or(&[][..], Vec::as_slice));
        if rows[0].len() != rows[1].len() {
            let more = usize::from(rows[0].len() < rows[1].len());
            let how = if rows[1 - more].is_empty() { "is only in" } else { "has more rows in" };
            notes.left_out(format!("{name} {how} {}", paths[more].display()));
        } else if rows[0] != rows[1] {
            notes.differing_rows.push(format!("step {step}: {name}"));
        }
    }
}

/// Tables of steps that have no directory.
fn note_unread_tables(sides: [&Path; 2], read: &[String], notes: &mut Notes<'_>) {
    for side in sides {
        for name in entries(side).unwrap_or_default() {
            let Some(step) = step_of_table(&name).filter(|_| !read.contains(&name)) else { continue };
            if !side.join(format!("step{step}")).is_dir() {
                notes.left_out(format!("{} has no step{step} beside it", side.join(&name).display()));
            }
        }
    }
}

/// Reads a table. A fault is noted; rows before it are kept.
fn read_table(path: &Path, notes: &mut Notes<'_>) -> Option<Table> {
    match table_of(path) {
        Ok((table, fault)) => {
            if let Some(fault) = fault {
                notes.failure(format!("cannot read all of {}: {fault}", path.display()));
            }
            Some(table)
        }
        Err(error) => {
            notes.failure(format!("cannot read {}: {error}", path.display()));
            None
        }
    }
}

/// The table, and what is wrong with the rest of it.
fn table_of(path: &Path) -> Result<(Table, Option<String>), String> {
    if !path.is_file() {
        return Err("it is not an ordinary file".to_owned());
    }
    let mut reader =
        csv::ReaderBuilder::new().flexible(true).from_path(path).map_err(|error| error.to_string())?;
    let headers = reader.headers().map_err(|error| error.to_string())?;
    let headers: Vec<String> =
        headers.iter().map(|header| header.trim_start_matches('\u{feff}').to_ascii_lowercase()).collect();
    let column =
        headers.iter().position(|header| header == "param_name").ok_or("it has no column param_name")?;
    let mut table = Table::default();
    let mut fault = None;
    for (row, record) in reader.records().enumerate() {
        match record {
            // The name itself may be cut short.
            Ok(record) if record.len() < headers.len() => {
                fault = Some(format!("row {} is cut short", row + 1));
            }
            Ok(record) => {
                let Some(name) = record.get(column).map(str::to_owned) else { continue };
                let cells = record.iter().enumerate().map(|(at, cell)| {
                    let header = headers.get(at).cloned().unwrap_or_else(|| format!("column {at}"));
                    (header, cell.to_owned())
                });
                let rows = table.rows.entry(name.clone()).or_default();
                if rows.is_empty() {
                    table.names.push(name);
                }
                rows.push(cells.collect());
            }
            Err(error) => {
                fault = Some(error.to_string());
                if error.is_io_error() {
                    break;
                }
            }
        }
    }
    Ok((table, fault))
}
