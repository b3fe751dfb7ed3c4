//! `msprobe code_mapping` as it is run: the recorded cases, what is refused, what is left out.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/dump_mindspore");

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn case(name: &str) -> TempDir {
    let here = TempDir::new().unwrap();
    copy(&Path::new(GOLDEN).join(name), here.path());
    here
}

/// Rows split at the path they begin with, since cells have line breaks.
fn rows(text: &str) -> BTreeSet<String> {
    text.split("<case>/").map(|row| row.trim_end().to_owned()).collect()
}

fn only_table(directory: &Path) -> PathBuf {
    let mut found = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let table = found.next().unwrap();
    assert!(found.next().is_none());
    table
}

#[test]
fn the_recorded_files_of_tensors() {
    let here = case("code_mapping_npy");
    let args = [
        "-f",
        "mindspore",
        "code_mapping",
        "--ir",
        "trace_code_graph_0.ir",
        "--dump_data",
        "dump",
        "-o",
        "out",
    ];
    let (code, stdout, stderr) = common::msprobe(here.path(), &args);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.starts_with("17 of 21 files have lines of code\nout/code_mapping_2"), "{stdout}");
    let table = only_table(&here.path().join("out"));
    let root = here.path().canonicalize().unwrap();
    let ours = fs::read_to_string(&table).unwrap().replace(root.to_str().unwrap(), "<case>");
    let golden = fs::read_to_string(here.path().join("expected/code_mapping_TIMESTAMP.csv")).unwrap();
    assert_eq!(rows(&ours), rows(&golden));
}

#[test]
fn the_recorded_tables() {
    let here = case("code_mapping_statistic");
    let args = ["code_mapping", "--ir", "validate.ir", "--dump_data", "dump"];
    let (code, stdout, stderr) = common::msprobe(here.path(), &args);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(stdout, "7 rows of 2 tables have lines of code\ndump/0/statistic.csv\ndump/1/statistic.csv\n");
    for table in ["0/statistic.csv", "1/statistic.csv"] {
        let read = |side: &str| fs::read_to_string(here.path().join(side).join(table)).unwrap();
        assert_eq!(read("dump"), read("expected_dump"));
    }
}

#[test]
fn nothing_is_touched_without_a_graph() {
    let here = case("code_mapping_statistic");
    let before = fs::read(here.path().join("dump/0/statistic.csv")).unwrap();
    fs::write(here.path().join("empty.ir"), "").unwrap();
    for (ir, told) in
        [("nowhere.ir", "does not exist"), ("dump", "cannot read dump"), ("empty.ir", "has no node")]
    {
        let args = ["code_mapping", "--ir", ir, "--dump_data", "dump", "-o", "out"];
        let (code, stdout, stderr) = common::msprobe(here.path(), &args);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains(told) && stdout.is_empty(), "{stdout}{stderr}");
    }
    assert_eq!(fs::read(here.path().join("dump/0/statistic.csv")).unwrap(), before);
    assert!(!here.path().join("out").exists());
}

#[test]
fn what_cannot_be_looked_up_is_left_out_and_said() {
    let here = case("code_mapping_npy");
    fs::write(here.path().join("dump/99.npy"), "").unwrap();
    fs::write(here.path().join("dump/bare.npy"), "").unwrap();
    let args = ["code_mapping", "--ir", "trace_code_graph_0.ir", "--dump_data", "dump", "--output", "out"];
    let (code, stdout, stderr) = common::msprobe(here.path(), &args);
    assert_eq!(code, 1, "{stdout}");
    assert!(
        stderr.contains("99.npy is not in mapping.csv") && stderr.contains("bare.npy has no name"),
        "{stderr}"
    );
    assert!(stdout.starts_with("17 of 23 files"), "{stdout}");

    let tables = case("code_mapping_statistic");
    fs::write(tables.path().join("dump/0/statistic.csv"), "no table\n").unwrap();
    let args = ["code_mapping", "--ir", "validate.ir", "--dump_data", "dump"];
    let (code, stdout, stderr) = common::msprobe(tables.path(), &args);
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("dump/0/statistic.csv stays as it is: it has no column \"Op Name\""), "{stderr}");
    assert!(stdout.starts_with("2 rows of 1 table have"), "{stdout}");
    assert_eq!(fs::read_to_string(tables.path().join("dump/0/statistic.csv")).unwrap(), "no table\n");
}

#[test]
fn an_empty_dump_is_nothing_to_do() {
    let here = case("code_mapping_npy");
    fs::create_dir(here.path().join("empty")).unwrap();
    let args = ["code_mapping", "--ir", "trace_code_graph_0.ir", "--dump_data", "empty", "-o", "out"];
    let (code, stdout, stderr) = common::msprobe(here.path(), &args);
    assert_eq!((code, stdout.as_str()), (0, ""), "{stderr}");
    assert!(!here.path().join("out").exists());
}
