//! Recorded tables of the newest form, and its analysis of the first difference, byte by byte.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

use msprobe_compare::pairing::MatchMethod;
use msprobe_compare::python_text::float_repr;
use msprobe_compare::side::{Side, Stacks, Which, read_side};
use msprobe_report::console::Silent;
use msprobe_report::{CellSink, SheetRows};
use msprobe_tables::newest::{Mode, NewestOptions, NewestTable, RankTable, first_difference};

fn golden(case: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/compare").join(case)
}

fn sides(target: &Path, golden: &Path) -> (Side, Side) {
    let read = |path: &Path, which| read_side(&path.join("dump.json"), which, &Silent).unwrap();
    (read(target, Which::Target), read(golden, Which::Golden))
}

/// Cells as Python writes them.
#[derive(Default)]
struct Cells(Vec<String>);

impl CellSink for Cells {
    fn empty(&mut self) {
        self.0.push(String::new());
    }
    fn text(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }
    fn number(&mut self, value: f64) {
        assert!(value.is_finite());
        self.0.push(float_repr(value));
    }
    fn integer(&mut self, value: i128) {
        self.0.push(value.to_string());
    }
}

fn csv_of(table: &NewestTable<'_>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(table.headers()).unwrap();
    for row in 0..table.len() {
        let mut cells = Cells::default();
        table.cells(row, &mut cells);
        writer.write_record(cells.0).unwrap();
    }
    String::from_utf8(writer.into_inner().unwrap()).unwrap()
}

#[test]
fn recorded_statistics() {
    let case = golden("newest_statistics");
    let (target, golden) = sides(&case.join("npu"), &case.join("bench"));
    let options = NewestOptions::default();
    let table = NewestTable::compare(&target, &golden, Mode::Summary, None, &options, &Silent);
    let expected = fs::read_to_string(case.join("expected/compare_result.csv")).unwrap();
    for (line, expected) in csv_of(&table).lines().zip(expected.lines()) {
        assert_eq!(line, expected);
    }
    assert_eq!(csv_of(&table), expected);
    let renumbered = &table.pairs()[table.len() - 1];
    assert_eq!(renumbered.method, MatchMethod::Aligned);
}

fn only_file(directory: &Path, prefix: &str) -> String {
    let mut found = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(prefix));
    let path = found.next().unwrap();
    assert!(found.next().is_none());
    fs::read_to_string(path).unwrap()
}

#[test]
fn recorded_first_difference() {
    let case = golden("newest_first_diff");
    let directory = |side: &str, rank: u32| case.join(side).join(format!("step0/rank{rank}"));
    let inputs: Vec<(Side, Side, Stacks)> = (0..2)
        .map(|rank| {
            let (target, golden) = sides(&directory("npu", rank), &directory("bench", rank));
            let stacks = Stacks::read(&directory("npu", rank).join("stack.json"), &Silent).unwrap();
            (target, golden, stacks)
        })
        .collect();
    let options = NewestOptions::default();
    let tables: Vec<NewestTable<'_>> = inputs
        .iter()
        .map(|(target, golden, stacks)| {
            NewestTable::compare(target, golden, Mode::Summary, Some(stacks), &options, &Silent)
        })
        .collect();
    // Given in the wrong order on purpose.
    let ranks = [RankTable { rank: 1, table: &tables[1] }, RankTable { rank: 0, table: &tables[0] }];
    let output = tempfile::tempdir().unwrap();
    let analysis = first_difference(&ranks, output.path(), &Silent).unwrap().answer.unwrap();
    assert!(analysis.file_name().unwrap().to_str().unwrap().starts_with("diff_analyze_"));
    for (name, recorded) in [
        ("compare_result_rank0_", "compare_result_rank0.json"),
        ("compare_result_rank1_", "compare_result_rank1.json"),
        ("diff_analyze_", "diff_analyze.json"),
    ] {
        let expected = fs::read_to_string(case.join("expected").join(recorded)).unwrap();
        assert_eq!(only_file(output.path(), name), expected, "{recorded}");
    }
}

#[test]
fn real_data_of_hard_tensors() {
    let case = golden("tensor_edge");
    let (target, golden) = sides(&case.join("npu"), &case.join("bench"));
    let options = NewestOptions::default();
    let table = NewestTable::compare(&target, &golden, Mode::All, None, &options, &Silent);
    let headers = table.headers();
    assert_eq!(
        headers[6..14],
        [
            "NPU Requires_grad",
            "Bench Requires_grad",
            "Cosine",
            "EucDist",
            "MaxAbsErr",
            "MaxRelativeErr",
            "One Thousandth Err Ratio",
            "Five Thousandths Err Ratio"
        ]
    );
    assert_eq!(headers[22..], ["Requires_grad Consistent", "Result", "Err_message", "Data_name"]);
    assert_eq!(table.tensors().len(), table.len());
    assert!(table.tensor_pairs().len() < table.len(), "some rows have no partner");
    for row in 0..table.len() {
        let (mut csv, mut workbook) = (Cells::default(), Cells::default());
        table.cells(row, &mut csv);
        table.workbook().cells(row, &mut workbook);
        assert_eq!((csv.0.len(), workbook.0.len()), (headers.len(), headers.len()));
        for (cell, other) in csv.0.iter().zip(&workbook.0) {
            assert!(cell == other || cell.trim_start() == other.trim_end(), "{cell} {other}");
        }
        assert!(csv.0[24].starts_with('[') && csv.0[24].ends_with(']'));
    }
    assert!(!table.failures().is_empty(), "a file of this case cannot be read, and costs only its row");
}
