//! Recorded comparisons of single arrays, and the recorded defects that are none of ours.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod recorded;

use std::fs;
use std::path::Path;

use msprobe_report::console::{Remembered, Silent};
use msprobe_tables::common_dir::{compare_common_dirs, headers};
use recorded::{case, complaints};

fn read(path: &Path) -> Vec<Vec<String>> {
    let reader = csv::ReaderBuilder::new().has_headers(false).from_path(path).unwrap();
    let rows = reader.into_records().map(|row| row.unwrap().iter().map(str::to_owned).collect());
    rows.collect()
}

fn assert_close(actual: &str, expected: &str) {
    if let (Ok(a), Ok(b)) = (actual.parse::<f64>(), expected.parse::<f64>()) {
        assert!((a - b).abs() <= 2e-7 * b.abs(), "{actual} instead of {expected}");
    } else {
        assert_eq!(actual, expected);
    }
}

#[test]
fn recorded_directories() {
    let (case, output) = (case("ms_common_dir"), tempfile::tempdir().unwrap());
    let map = [("x".to_owned(), "y".to_owned())];
    let notes = Remembered::default();
    let written =
        compare_common_dirs(&case.join("npu"), &case.join("bench"), &map, output.path(), &notes).unwrap();
    let places = ["step0/rank0", "step0/rank1", "step1/rank0"].map(|place| format!("{place}/result.csv"));
    assert_eq!(written, places.clone().map(|place| output.path().join(place)));
    let root = format!("{}/", case.display());
    for place in &places[..2] {
        let (actual, expected) = (read(&output.path().join(place)), read(&case.join("expected").join(place)));
        assert_eq!(actual.len(), expected.len());
        for (row, recorded) in actual.iter().zip(&expected) {
            assert_eq!(row.len(), recorded.len());
            for (cell, wanted) in row.iter().zip(recorded) {
                assert_close(&cell.replace(&root, ""), wanted);
            }
        }
    }
    // A deviation: the reference cannot measure an array without dimensions and leaves the whole file empty.
    assert_eq!(fs::read_to_string(case.join("expected").join(&places[2])).unwrap().trim(), "");
    let rows = read(&output.path().join(&places[2]));
    assert_eq!(rows[0], headers());
    assert_eq!(
        rows[1][..9],
        ["k_0", "float32", "float32", "()", "()", "unsupported", "unsupported", "0.5", "0.20000000298"]
    );
    assert!(rows[1][20].starts_with("This is type of 0-d tensor, "));
    assert_eq!(complaints(&notes), ["Cosine or MaxAbsErr can not get float value."]);
}

#[test]
fn files_pair_by_index_and_every_name_has_rows() {
    let root = tempfile::tempdir().unwrap();
    let source = case("ms_common_dir").join("npu/step0/rank0/x_float32_0.npy");
    let scalar = case("ms_common_dir").join("npu/step1/rank0/k_float32_3.npy");
    let copy = |from: &Path, to: &str| {
        let to = root.path().join(to);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    };
    for name in ["a_float32_2", "a_float32_10", "b_float32_0", "c_float32_0", "d_float32_0"] {
        copy(&source, &format!("npu/s/{name}.npy"));
    }
    copy(&source, "npu/only/x_float32_0.npy");
    copy(&source, "bench/s/a_float32_3.npy");
    copy(&scalar, "bench/s/a_float32_11.npy");
    copy(&source, "bench/s/b_float32_0.npy");
    fs::write(root.path().join("bench/s/d_float32_0.npy"), "broken").unwrap();
    let (npu, bench, output) = (root.path().join("npu"), root.path().join("bench"), root.path().join("out"));
    let notes = Remembered::default();
    assert_eq!(
        compare_common_dirs(&npu, &bench, &[], &output, &notes).unwrap(),
        [output.join("s/result.csv")]
    );
    let rows = read(&output.join("s/result.csv"));
    let summary: Vec<String> =
        rows[1..].iter().map(|row| format!("{} {} {} {}", row[0], row[5], row[19], row[2])).collect();
    assert_eq!(
        summary,
        [
            "a_0 1.0 Yes float32",
            "a_1 shape unmatched Unmatched float32",
            "b_0 1.0 Yes float32",
            "c_0 unsupported None N/A",
            "d_0 unsupported None N/A",
        ]
    );
    assert_eq!(rows[4][20], "No bench data matched.");
    assert!(rows[5][20].starts_with("Dump file: ['") && rows[5][20].ends_with("] not found or read failed."));
    let notes = complaints(&notes);
    assert!(notes.iter().any(|note| note.contains("only")), "{notes:?}");
    assert!(compare_common_dirs(&npu, &root.path().join("none"), &[], &output, &Silent).is_err());
}
