//! From two dump paths to tables, a summary and an answer.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use msprobe_report::Formats;
use msprobe_report::answer::{Answer, Section};
use msprobe_report::console::Console;
use msprobe_report::error::{Code, CompareError};
use msprobe_report::paths::{make_directory, publish};
use msprobe_report::{
    Block, Cell, CellSink, CsvOptions, Page, PageTable, Sheet, SheetRows, Tone, VecRows, write_page,
    write_sheet_csv, write_sheet_json, write_workbook,
};
use rayon::prelude::*;
use serde_json::Value;

use super::limits::{Judging, Limits};
use super::summary::{as_json, as_sheet, key_table, left_out_table, parting_table, partings};
use super::table::{HEADERS, KeyTable, write_key_workbook};
use super::text::differs;
use super::tokens::Parting;
use super::verdict::{Verdict, judge};
use super::{Comparison, KeyComparison, compare_keys};

/// The directory of key data in a dump path.
const DATA: &str = "data";
const SUMMARY: &str = "summary";

/// What came of a comparison.
#[derive(Debug)]
pub struct Outcome {
    /// What is to be said.
    pub answer: Answer,
    /// What people are shown besides: a row per key, and what only one run has.
    pub sections: Vec<Section>,
}

/// Compares the key data below two dump paths. Runs on the current rayon pool.
pub fn compare_key_data(
    dirs: [&Path; 2],
    judging: &Judging,
    output: &Path,
    formats: Formats,
    console: &dyn Console,
) -> Result<Outcome, CompareError> {
    let data_of = |dir: &Path| {
        let data = dir.join(DATA);
        if data.is_dir() { Ok(data) } else { Err(no_key_data(dir, &data)) }
    };
    let [target, golden] = dirs;
    let (target, golden) = (data_of(target)?, data_of(golden)?);
    let noise: Result<Vec<PathBuf>, CompareError> = judging.noise.iter().map(|dir| data_of(dir)).collect();
    let judging = Judging { noise: noise?, ..judging.clone() };
    compare_data_directories([&target, &golden], &judging, output, formats, console)
}

/// The same, given the directories of the key data themselves; the dump paths are those above them.
pub fn compare_data_directories(
    data: [&Path; 2],
    judging: &Judging,
    output: &Path,
    formats: Formats,
    console: &dyn Console,
) -> Result<Outcome, CompareError> {
    let comparison = compare_keys(data, console)?;
    let against_golden = |run: &PathBuf| compare_keys([run, data[1]], console);
    let noise: Result<Vec<Comparison>, CompareError> = judging.noise.iter().map(against_golden).collect();
    let limits = Limits::new(&comparison, judging.tolerances, &noise?);
    let dirs = data.map(|data| match data.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => data,
    });
    report(&comparison, &limits, dirs, output, formats, console)
}

fn no_key_data(dir: &Path, data: &Path) -> CompareError {
    let message = format!("The path {} does not exist or is no directory", data.display());
    let hint = if dir.file_name().is_some_and(|name| name == DATA) {
        "give the dump_path of the run, which is the directory above data".to_owned()
    } else {
        "give the dump_path of a run with key_data_dump: true; key data is in its directory data".to_owned()
    };
    CompareError::new(Code::IllegalPath, message).with_hint(hint)
}

/// Judges and writes what was compared.
fn report(
    comparison: &Comparison,
    limits: &Limits,
    dirs: [&Path; 2],
    output: &Path,
    formats: Formats,
    console: &dyn Console,
) -> Result<Outcome, CompareError> {
    make_directory(output)?;
    let verdict = judge(comparison, limits);
    let lines = verdict.lines(dirs);
    let keys = &comparison.keys;
    let mut answer = Answer { output: Some(output.to_owned()), ..verdict.answer(dirs) };
    let report = Report { keys, partings: partings(&verdict), verdict: &verdict, lines: &lines, dirs };
    answer.files = report.tables(output, formats, console)?;
    report.summary(output, formats, console, &mut answer)?;
    Ok(Outcome { answer, sections: verdict.sections(dirs) })
}

struct Report<'a> {
    keys: &'a [KeyComparison],
    verdict: &'a Verdict<'a>,
    partings: Vec<(&'a KeyComparison, Parting)>,
    lines: &'a [String],
    dirs: [&'a Path; 2],
}

impl Report<'_> {
    /// A table per key, in each format.
    fn tables(
        &self,
        output: &Path,
        formats: Formats,
        console: &dyn Console,
    ) -> Result<Vec<PathBuf>, CompareError> {
        let written: Vec<Result<Vec<PathBuf>, CompareError>> =
            self.keys.par_iter().map(|key| write_tables(key, output, formats, console)).collect();
        let files: Result<Vec<Vec<PathBuf>>, CompareError> = written.into_iter().collect();
        Ok(files?.concat())
    }

    /// The files about all keys, which come first in the answer. They give way to a key of their name.
    fn summary(
        &self,
        output: &Path,
        formats: Formats,
        console: &dyn Console,
        answer: &mut Answer,
    ) -> Result<(), CompareError> {
        let names: BTreeSet<&str> = self.keys.iter().map(|key| key.name.as_str()).collect();
        let mut stem = SUMMARY.to_owned();
        while names.contains(stem.as_str()) {
            stem.insert(0, '_');
        }
        if stem != SUMMARY {
            console.warning(&format!("{SUMMARY} is the table of a key, the summary of all keys is {stem}"));
        }
        let mut files = Files { stem: output.join(stem), console, written: Vec::new() };
        if formats.xlsx {
            files.write("xlsx", |file| self.workbook(file))?;
        }
        if formats.csv {
            let (headers, rows) = as_sheet(key_table(self.verdict));
            files.write("csv", |file| csv(file, headers, &rows))?;
        }
        if formats.html {
            files.write("html", |file| self.page(file))?;
        }
        // It names itself too.
        let path = files.path("json");
        answer.files.splice(0..0, files.written.into_iter().chain([path.clone()]));
        publish(&path, console, |file| writeln!(file, "{:#}", self.json(answer)))
    }

    fn json(&self, answer: &Answer) -> Value {
        let dirs = self.dirs.map(Path::to_string_lossy);
        as_json(self.verdict, &self.partings, [&dirs[0], &dirs[1]], self.lines, answer)
    }

    fn workbook(&self, file: &mut File) -> io::Result<()> {
        let lines = self.lines.iter().map(|line| vec![Cell::Text(line.clone())]).collect();
        let named = [
            ("Keys", as_sheet(key_table(self.verdict))),
            ("Verdict", (vec!["verdict".to_owned()], VecRows::new(lines))),
            ("Tokens", as_sheet(parting_table(&self.partings))),
            ("Left out", as_sheet(left_out_table(self.verdict))),
        ];
        let sheets: Vec<Sheet<'_>> = named
            .iter()
            .map(|(name, (headers, rows))| Sheet { name: (*name).to_owned(), headers: headers.clone(), rows })
            .collect();
        write_workbook(file, &sheets)
    }

    fn page(&self, file: &mut File) -> io::Result<()> {
        let all = AllRows::new(self.verdict);
        let (key_headers, keys) = as_sheet(key_table(self.verdict));
        let (token_headers, tokens) = as_sheet(parting_table(&self.partings));
        let (left_headers, left) = as_sheet(left_out_table(self.verdict));
        let table = |name: &str, headers, rows, first_row| {
            Block::Table(PageTable { first_row, ..PageTable::new(name, headers, rows) })
        };
        let row_headers = std::iter::once("key").chain(HEADERS).map(str::to_owned).collect();
        let origin = self.verdict.origin;
        let title = "msprobe: key data of two runs".to_owned();
        let mut facts: Vec<(String, String)> = self.verdict.notes(self.dirs);
        facts.push(("First run".to_owned(), self.dirs[0].display().to_string()));
        facts.push(("Second run".to_owned(), self.dirs[1].display().to_string()));
        let answer = self.verdict.answer(self.dirs).block(&title, facts);
        let mut blocks = vec![
            Block::Answer(answer),
            table("Keys", key_headers, &keys as &dyn SheetRows, origin.map(|origin| origin.key)),
            table("Rows", row_headers, &all, all.origin),
        ];
        if !tokens.is_empty() {
            blocks.push(table("Tokens", token_headers, &tokens, None));
        }
        if !left.is_empty() {
            blocks.push(table("Left out", left_headers, &left, None));
        }
        write_page(&Page { title, blocks }, BufWriter::new(file))
    }
}

/// Files of one name with several endings.
struct Files<'a> {
    stem: PathBuf,
    console: &'a dyn Console,
    written: Vec<PathBuf>,
}

impl Files<'_> {
    fn path(&self, extension: &str) -> PathBuf {
        let mut path = self.stem.clone().into_os_string();
        path.push(format!(".{extension}"));
        path.into()
    }

    fn write(
        &mut self,
        extension: &str,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<(), CompareError> {
        let path = self.path(extension);
        publish(&path, self.console, write)?;
        self.written.push(path);
        Ok(())
    }
}

fn write_tables(
    key: &KeyComparison,
    output: &Path,
    formats: Formats,
    console: &dyn Console,
) -> Result<Vec<PathBuf>, CompareError> {
    let mut files = Files { stem: output.join(&key.name), console, written: Vec::new() };
    let headers = || HEADERS.map(str::to_owned).to_vec();
    let rows = KeyTable(&key.rows);
    if formats.xlsx {
        files.write("xlsx", |file| write_key_workbook(file, &key.rows))?;
    }
    if formats.csv {
        files.write("csv", |file| csv(file, headers(), &rows))?;
    }
    if formats.json {
        files.write("json", |file| {
            let mut out = BufWriter::new(file);
            let sheet = Sheet { name: String::new(), headers: headers(), rows: &rows };
            write_sheet_json(&sheet, &mut out)?;
            writeln!(out)?;
            out.flush()
        })?;
    }
    Ok(files.written)
}

fn csv(file: &mut File, headers: Vec<String>, rows: &dyn SheetRows) -> io::Result<()> {
    let sheet = Sheet { name: String::new(), headers, rows };
    // Excel takes Chinese headers for something else without the mark.
    let options = CsvOptions { bom: true, escape_formulas: true, ..CsvOptions::default() };
    write_sheet_csv(&sheet, options, BufWriter::new(file))
}

/// The rows of all keys under one another, each with its key.
struct AllRows<'a> {
    keys: Vec<&'a KeyComparison>,
    /// Where the rows of each key begin.
    starts: Vec<usize>,
    count: usize,
    origin: Option<usize>,
}

impl<'a> AllRows<'a> {
    fn new(verdict: &Verdict<'a>) -> AllRows<'a> {
        let keys: Vec<&KeyComparison> = verdict.keys.iter().map(|summary| summary.key).collect();
        let mut count = 0;
        let starts: Vec<usize> = keys
            .iter()
            .map(|key| {
                count += key.rows.len();
                count - key.rows.len()
            })
            .collect();
        let origin = verdict.origin.and_then(|origin| Some(starts[origin.key] + origin.difference.row?));
        AllRows { keys, starts, count, origin }
    }

    fn find(&self, row: usize) -> Option<(&'a KeyComparison, usize)> {
        // Keys without rows begin where the next one does.
        let key = self.starts.partition_point(|&start| start <= row).checked_sub(1)?;
        Some((self.keys[key], row - self.starts[key]))
    }
}

impl SheetRows for AllRows<'_> {
    fn len(&self) -> usize {
        self.count
    }

    fn cells(&self, row: usize, sink: &mut dyn CellSink) {
        if let Some((key, row)) = self.find(row) {
            sink.text(&key.name);
            KeyTable(&key.rows).cells(row, sink);
        }
    }

    fn tone(&self, row: usize) -> Tone {
        match self.find(row) {
            _ if self.origin == Some(row) => Tone::Bad,
            Some((key, at)) if key.rows.get(at).is_some_and(differs) => Tone::Warning,
            _ => Tone::Plain,
        }
    }
}
