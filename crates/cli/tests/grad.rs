//! `msprobe grad compare` as it is run: the recorded case, exit codes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod common;

use std::fs;
use std::path::Path;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/grad_probe/compare_two_runs");

fn msprobe(directory: &Path, args: &[&str]) -> (i32, String, String) {
    common::msprobe(directory, &[&["grad", "compare"], args].concat())
}

fn golden(name: &str) -> String {
    format!("{GOLDEN}/{name}")
}

#[test]
fn the_recorded_case() {
    let directory = tempfile::tempdir().unwrap();
    let (code, stdout, stderr) =
        msprobe(directory.path(), &[&golden("run_a"), &golden("run_b"), "-o", "out"]);
    assert_eq!(code, 1, "{stderr}");
    assert_eq!(
        stdout,
        "Diverged in step 0: 4 of 7 parameters begin below 0.97, first in backward order: norm.weight\n\n\
         Culprit  norm.weight  (backward)\n  \
           curve      begins below 0.97 at step 0\n  \
           lowest     similarity 0.6250 at step 1\n  \
           also       3 parameters at step 0: fc1.bias, fc1.weight, embed.weight\n\n\
         all parameters together: lowest similarity 0.8405 at step 1\n\
         the tables differ in 28 rows, the first step 0: scale\n\n\
         Next  collect step 0 of both runs with \"task\": \"statistics\" and \"level\": \"mix\", and run msprobe compare on \
         the two dumps\n\n\
         Results are in out:\n  rank0/similarities.csv\n  similarities.html\n  verdict.json\n"
    );
    let ours = fs::read(directory.path().join("out/rank0/similarities.csv")).unwrap();
    assert_eq!(ours, fs::read(golden("result_distributed/rank0/similarities.csv")).unwrap());
    let pictures = fs::read_dir(directory.path().join("out/rank0/similarities_picture")).unwrap();
    assert_eq!(pictures.count(), 8);
}

#[test]
fn two_ranks_and_what_can_be_chosen() {
    let directory = tempfile::tempdir().unwrap();
    let (a, b) = (golden("run_a/rank0"), golden("run_b/rank0"));
    let options =
        ["--pictures", "none", "--no-html", "--first", "0.5", "--fall", "0.3", "--total-fall", "0.5"];
    let (code, stdout, _) =
        msprobe(directory.path(), &[&[a.as_str(), &b, "-o", "out"], &options[..]].concat());
    assert_eq!(code, 0);
    assert!(stdout.starts_with(
        "Within tolerance: nothing suspicious: 7 parameters, 4 steps, lowest similarity 0.6250 (norm.weight, "
    ));
    let mut files: Vec<_> =
        fs::read_dir(directory.path().join("out")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["similarities.csv", "verdict.json"]);
    let ours = fs::read(directory.path().join("out/similarities.csv")).unwrap();
    assert_eq!(ours, fs::read(golden("result_single/similarities.csv")).unwrap());
}

#[test]
fn failures_and_wrong_usage() {
    let directory = tempfile::tempdir().unwrap();
    let (code, stdout, stderr) = msprobe(directory.path(), &["nowhere", &golden("run_b")]);
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(stderr.contains("nowhere does not exist"), "{stderr}");
    let (a, b) = (golden("run_a"), golden("result_single"));
    let (code, _, stderr) = msprobe(directory.path(), &[&a, &b]);
    assert_eq!(code, 2);
    assert!(stderr.contains("no matched ranks for comparison") && stderr.contains("hint:"), "{stderr}");
    for wrong in [["--first", "2"], ["--fall", "x"], ["--pictures", "worst:"], ["--pictures", "some"]] {
        let (code, stdout, stderr) = msprobe(directory.path(), &[&[a.as_str(), &b], &wrong[..]].concat());
        assert_eq!((code, stdout.as_str()), (2, ""));
        assert!(stderr.contains(wrong[0]), "{stderr}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_a_failure() {
    let directory = tempfile::tempdir().unwrap();
    let copied = directory.path().join("run/rank0");
    for step in ["step0", "step1", "step2", "step3"] {
        fs::create_dir_all(copied.join(step)).unwrap();
        for entry in fs::read_dir(format!("{}/{step}", golden("run_b/rank0"))).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), copied.join(step).join(entry.file_name())).unwrap();
        }
    }
    fs::copy(golden("run_b/rank0/grad_summary_0.csv"), copied.join("grad_summary_0.csv")).unwrap();
    fs::write(copied.join("step2/scale.npy"), "torn").unwrap();
    let (code, stdout, stderr) =
        msprobe(directory.path(), &[&golden("run_a"), "run", "-o", "out", "--pictures", "none"]);
    assert_eq!(code, 1);
    assert!(stdout.contains("4 items could not be compared\n    missing: "), "{stdout}");
    assert!(stderr.contains("step2/scale.npy"), "{stderr}");
}
