//! Recorded comparisons of kernel dumps, and what recorded ones leave out.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its helpers too")]

mod recorded;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use msprobe_report::console::{Remembered, Silent};
use msprobe_report::error::Code;
use msprobe_tables::static_graph::compare_graphs;
use recorded::{Table, Value, assert_rows, case, complaints, rendering, workbook};

/// The only sheet of a result, with the given root taken off the names.
fn result(path: &Path, root: &Path) -> Table {
    let mut sheets = workbook(path);
    assert_eq!(sheets.len(), 1);
    let (name, mut table) = sheets.remove(0);
    assert_eq!(name, "Sheet1");
    let root = format!("{}/", root.display());
    for row in &mut table.rows {
        for cell in row.iter_mut().take(2) {
            if let Value::Text(text) = cell {
                *text = text.replace(&root, "");
            }
        }
    }
    table
}

/// numpy sums float32 arrays in float32, we in float64: recorded means and norms are a few of its last digits off.
fn tolerance(header: &str) -> f64 {
    if header.ends_with(" mean") || header.ends_with(" l2norm") { 1e-6 } else { 1e-9 }
}

fn sorted(mut table: Table) -> Table {
    table.rows.sort_by_key(|row| format!("{:?}", &row[..2]));
    table
}

#[test]
fn arrays() {
    let (case, output) = (case("ms_graph_npy"), tempfile::tempdir().unwrap());
    let notes = Remembered::default();
    let written =
        compare_graphs(&case.join("npu"), &case.join("bench"), &[], &[], output.path(), &notes).unwrap();
    let [path] = written.as_slice() else { panic!("{written:?}") };
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(
        name.starts_with("compare_result_0_0_") && name.len() == "compare_result_0_0_.xlsx".len() + 14,
        "{name}"
    );
    assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o640);
    let actual = result(path, &case);
    // The recorded rows are in the order in which a directory was listed; ours in that of time.
    let expected = sorted(rendering(&case.join("expected/compare_result_0_0.csv")));
    assert_rows(&sorted(actual.clone()), &expected, tolerance);
    let stamps: Vec<&str> = actual.rows.iter().filter_map(|row| time(&row[0])).collect();
    assert!(stamps.is_sorted() && stamps.len() == 9);
    assert_eq!(actual.rows[9][0], Value::Empty);
    assert_eq!(complaints(&notes), ["Cosine or MaxAbsErr can not get float value."]);
}

fn time(cell: &Value) -> Option<&str> {
    match cell {
        Value::Text(text) => text.rsplit('/').next()?.split('.').nth(4),
        _ => None,
    }
}

#[test]
fn statistics() {
    let (case, output) = (case("ms_graph_statistic"), tempfile::tempdir().unwrap());
    let notes = Remembered::default();
    let (npu, bench) = (case.join("npu"), case.join("bench"));
    let written = compare_graphs(&npu, &bench, &[0], &[1], output.path(), &notes).unwrap();
    assert!(written[0].file_name().unwrap().to_str().unwrap().starts_with("compare_result_0_1_"));
    let expected = rendering(&case.join("expected/compare_result_0_1.csv"));
    assert_rows(&result(&written[0], &case), &expected, |_| 1e-9);
    assert_eq!(complaints(&notes), [""; 0]);

    let error = compare_graphs(&npu, &bench, &[3], &[], output.path(), &Silent).unwrap_err();
    assert_eq!(error.code, Code::InvalidPath);
}

/// A tree of two sides with one step, to be filled.
struct Sides {
    root: tempfile::TempDir,
}

impl Sides {
    fn new(place: &str) -> (Sides, [PathBuf; 2]) {
        let root = tempfile::tempdir().unwrap();
        let steps = ["npu", "bench"].map(|side| root.path().join(side).join(place));
        for step in &steps {
            fs::create_dir_all(step).unwrap();
        }
        (Sides { root }, steps)
    }

    fn compare(&self, notes: &Remembered) -> Result<Table, String> {
        let root = fs::canonicalize(self.root.path()).unwrap();
        let written =
            compare_graphs(&root.join("npu"), &root.join("bench"), &[], &[], &root.join("out"), notes)
                .map_err(|error| error.message)?;
        assert_eq!(written.len(), 1);
        Ok(result(&written[0], &root))
    }
}

fn array(case_file: &str) -> Vec<u8> {
    fs::read(case("ms_graph_npy").join("npu/rank_0/Net/0/0").join(case_file)).unwrap()
}

const CONV: &str = "Conv2D.Default_Conv2D-op1.0.0.1700000000000001.input.0.DefaultFormat.npy";

#[test]
fn long_names_are_restored_and_dots_in_directories_do_not_matter() {
    let (sides, [npu, bench]) = Sides::new("run.v1.2/rank_0/Net.x/0/5");
    let long = "Conv2D.Default_a-very-long-name.0.0.17.output.0.DefaultFormat.npy";
    fs::write(npu.join("123.npy"), array(CONV)).unwrap();
    fs::write(npu.join("mapping.csv"), format!("123.npy,{long}\n")).unwrap();
    fs::write(bench.join(long), array(CONV)).unwrap();
    let table = sides.compare(&Remembered::default()).unwrap();
    assert_eq!(table.rows.len(), 1);
    assert_eq!(table.rows[0][0], Value::Text("npu/run.v1.2/rank_0/Net.x/0/5/123.npy".into()));
    assert_eq!(table.rows[0][1], Value::Text(format!("bench/run.v1.2/rank_0/Net.x/0/5/{long}")));
    assert_eq!(table.rows[0][16], Value::Number(1.0));
}

#[test]
fn a_broken_file_costs_its_row_only() {
    let (sides, [npu, bench]) = Sides::new("0/0/5");
    let other = CONV.replace("op1", "op2");
    for (name, bytes) in [(CONV, array(CONV)), (&other, b"no array at all".to_vec())] {
        fs::write(npu.join(name), bytes).unwrap();
        fs::write(bench.join(name), array(CONV)).unwrap();
    }
    let notes = Remembered::default();
    let table = sides.compare(&notes).unwrap();
    assert_eq!(table.rows.len(), 2);
    assert_eq!(table.rows[0][14], Value::Text("Yes".into()));
    assert_eq!(table.rows[1][2], Value::Empty);
    assert_eq!(table.rows[1][15], Value::Text("Dump file is not ndarray.\n".into()));
    let notes = complaints(&notes);
    assert!(notes.len() == 1 && notes[0].contains("op2"), "{notes:?}");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let (sides, [npu, bench]) = Sides::new("0/0/5");
    assert_eq!(sides.compare(&Remembered::default()).unwrap_err(), "Error mode.");
    fs::write(npu.join("statistic.csv"), "Op Type,Op Name\n").unwrap();
    fs::write(bench.join("x.npy"), array(CONV)).unwrap();
    let error = sides.compare(&Remembered::default()).unwrap_err();
    assert_eq!(error, "NPU mode STATISTIC_MODE not equal to MATCH mode NPY_MODE.");
    fs::remove_file(bench.join("x.npy")).unwrap();
    fs::write(bench.join("statistic.csv"), "Op Type,Op Name\n").unwrap();
    let error = sides.compare(&Remembered::default()).unwrap_err();
    assert!(error.starts_with("Dump file /") && error.ends_with(" has been modified into incorrect format!"));
}

#[test]
fn statistics_without_some_columns() {
    let (sides, steps) = Sides::new("0/0/5");
    let header =
        "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value,Min Value,x";
    for step in &steps {
        fs::write(
            step.join("statistic.csv"),
            format!("{header}\nA,a,0,0,1,input,0,4,f32,,2,1,\nshort,line\n"),
        )
        .unwrap();
    }
    let notes = Remembered::default();
    let table = sides.compare(&notes).unwrap();
    assert_eq!(table.rows.len(), 1);
    assert_eq!(table.rows[0][6..10], [Value::Number(2.0), Value::Number(1.0), Value::Empty, Value::Empty]);
    let scalar = "This is type of scalar data, can not compare.\n";
    assert_eq!(table.rows[0][15], Value::Text(scalar.into()));
    assert_eq!(complaints(&notes).len(), 4, "two columns are missing on both sides");
}
