//! `msprobe compare` as it is run: answers, files, exit codes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod common;

use std::fmt::Write;
use std::fs;
use std::path::Path;

use insta::assert_snapshot;
use tempfile::TempDir;

/// What a run printed, without what changes from run to run.
struct Ran {
    code: i32,
    stdout: String,
    stderr: String,
}

fn msprobe(directory: &Path, args: &[&str]) -> Ran {
    let (code, stdout, stderr) = common::msprobe(directory, args);
    Ran { code, stdout, stderr }
}

/// Digits of times and process numbers.
fn without_times(text: &str) -> String {
    let mut out = String::new();
    let mut digits = String::new();
    let flush = |digits: &mut String, out: &mut String| {
        out.push_str(if digits.len() == 14 { "[TIME]" } else { digits });
        digits.clear();
    };
    for character in text.chars() {
        if character.is_ascii_digit() {
            digits.push(character);
        } else {
            flush(&mut digits, &mut out);
            out.push(character);
        }
    }
    flush(&mut digits, &mut out);
    out
}

/// A dump of two calls, the second one's output scaled.
fn write_dump(directory: &Path, scale: f64) {
    let tensor = |size: f64| {
        format!(
            r#"{{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": {size}, "Min": 0.0,
            "Mean": 0.5, "Norm": {size}, "requires_grad": false}}"#
        )
    };
    let call = |name: &str, input: f64, output: f64| {
        format!(r#""{name}": {{"input_args": [{}], "output": [{}]}}"#, tensor(input), tensor(output))
    };
    let records = [call("Torch.exp.0.forward", 1.0, 2.0), call("Torch.mul.0.forward", 2.0, 3.0 * scale)];
    fs::create_dir_all(directory).unwrap();
    let dump =
        format!(r#"{{"task": "statistics", "framework": "pytorch", "data": {{{}}}}}"#, records.join(", "));
    fs::write(directory.join("dump.json"), dump).unwrap();
}

/// Two runs in a directory; the target's second call is off by 10 %.
fn two_runs() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    write_dump(&directory.path().join("npu"), 1.1);
    write_dump(&directory.path().join("bench"), 1.0);
    let paths = r#"{"npu_path": "npu/dump.json", "bench_path": "bench/dump.json"}"#;
    fs::write(directory.path().join("compare.json"), paths).unwrap();
    directory
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| without_times(entry.unwrap().file_name().to_str().unwrap()))
        .collect();
    names.sort();
    names
}

#[test]
fn help() {
    let directory = tempfile::tempdir().unwrap();
    assert_snapshot!("compare_help", msprobe(directory.path(), &["compare", "--help"]).stdout);
    assert_snapshot!("merge_result_help", msprobe(directory.path(), &["merge_result", "--help"]).stdout);
    let short = msprobe(directory.path(), &["-f", "pytorch"]);
    assert_eq!((short.code, short.stderr.as_str()), (0, ""));
    assert!(short.stdout.contains("merge_result"));
}

#[test]
fn merging_without_a_table_that_cannot_be_read_is_no_success() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let case =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/compare/merge_result_statistics");
    fs::create_dir(at("in")).unwrap();
    for entry in fs::read_dir(case.join("input")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, at("in").join(path.file_name().unwrap())).unwrap();
    }
    fs::copy(case.join("config.yaml"), at("config.yaml")).unwrap();
    let merge =
        || msprobe(directory.path(), &["merge_result", "-i", "in", "-o", "out", "-config", "config.yaml"]);
    assert_eq!(merge().code, 0);
    fs::write(at("in/compare_result_rank2_20250101000000.xlsx"), "no workbook").unwrap();
    let ran = merge();
    assert_eq!(ran.code, 2);
    assert!(ran.stdout.contains("the tables of rank 2 could not be read"), "{}", ran.stdout);
}

#[test]
fn the_newer_form_says_what_differs_and_exits_with_1() {
    let runs = two_runs();
    let ran = msprobe(runs.path(), &["compare", "-tp", "npu", "-gp", "bench", "-o", "out"]);
    assert_eq!(ran.code, 1);
    assert_snapshot!("compare_newer", without_times(&ran.stdout));
    assert_eq!(names(&runs.path().join("out")), ["compare_result_[TIME].csv", "verdict.json"]);
    let verdict = fs::read_to_string(runs.path().join("out/verdict.json")).unwrap();
    assert_snapshot!("compare_verdict", without_times(&verdict));
}

#[test]
fn two_paths_are_enough() {
    let runs = two_runs();
    let ran = msprobe(runs.path(), &["compare", "npu", "bench", "-o", "out"]);
    assert_eq!(
        (ran.code, ran.stdout.starts_with("Diverged: Torch.mul.0.forward")),
        (1, true),
        "{}",
        ran.stdout
    );
}

#[test]
fn the_only_dump_below_is_taken_and_several_are_listed() {
    let runs = tempfile::tempdir().unwrap();
    for side in ["npu", "bench"] {
        write_dump(&runs.path().join(side).join("step0/rank"), 1.0);
    }
    let args = ["compare", "npu/dump.json", "bench/dump.json", "-o", "out"];
    let ran = msprobe(runs.path(), &args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("npu/step0/rank/dump.json is taken, the only one."), "{}", ran.stderr);
    write_dump(&runs.path().join("npu/step1/rank"), 1.0);
    let ran = msprobe(runs.path(), &args);
    assert_eq!(ran.code, 2);
    let hint = "choose one: npu/step0/rank/dump.json, npu/step1/rank/dump.json";
    assert!(ran.stderr.contains(hint), "{}", ran.stderr);
}

#[test]
fn the_older_form_exits_with_0_unless_asked() {
    let runs = two_runs();
    let older = ["-f", "pytorch", "compare", "-i", "compare.json", "-o", "out"];
    let ran = msprobe(runs.path(), &older);
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.contains("stack.json is not found in dump dir npu."));
    assert_eq!(
        names(&runs.path().join("out")),
        ["advisor_[TIME].txt", "compare_result_[TIME].xlsx", "verdict.json"]
    );
    let strict = [&older[..], &["--fail-on-difference", "-c"]].concat();
    assert_eq!(msprobe(runs.path(), &strict).code, 1);
}

#[test]
fn equal_runs_and_tolerated_ones_exit_with_0() {
    let runs = two_runs();
    let same = msprobe(runs.path(), &["compare", "-tp", "npu", "-gp", "npu", "-o", "out"]);
    assert_eq!(same.code, 0);
    assert!(same.stdout.starts_with("Identical: all 2 records with 4 values are equal in their statistics"));
    let tolerant =
        msprobe(runs.path(), &["compare", "-tp", "npu", "-gp", "bench", "-o", "out", "--tolerance", "0.2"]);
    assert_eq!(tolerant.code, 0);
    assert!(tolerant.stdout.starts_with("Within tolerance: "), "{}", tolerant.stdout);
}

#[test]
fn every_format_is_written_and_nothing_half_written_is_left() {
    let runs = two_runs();
    let formats = ["compare", "-tp", "npu", "-gp", "bench", "-o", "out", "--format", "xlsx,csv,json,html"];
    assert_eq!(msprobe(runs.path(), &formats).code, 1);
    assert_eq!(
        names(&runs.path().join("out")),
        [
            "compare_result_[TIME].csv",
            "compare_result_[TIME].html",
            "compare_result_[TIME].json",
            "compare_result_[TIME].xlsx",
            "verdict.json"
        ]
    );
    let json =
        fs::read_dir(runs.path().join("out")).unwrap().map(|entry| entry.unwrap().path()).find(|path| {
            path.file_name().unwrap().to_str().unwrap().ends_with("json") && !path.ends_with("verdict.json")
        });
    let report: serde_json::Value = serde_json::from_slice(&fs::read(json.unwrap()).unwrap()).unwrap();
    assert_eq!(report["rows"][3]["Answer"], "introduced");
    assert_eq!(report["rows"][3]["Error Origin"], "introduced");
    assert_eq!(report["rows"][3]["Match Method"], "exact");
    assert_eq!(report["verdict"]["culprit"], "Torch.mul.0.forward");
}

#[test]
fn one_bad_rank_costs_only_itself_and_the_exit_code() {
    let runs = tempfile::tempdir().unwrap();
    for side in ["npu", "bench"] {
        for rank in ["rank0", "rank1"] {
            write_dump(&runs.path().join(side).join("step0").join(rank), 1.0);
        }
    }
    fs::write(runs.path().join("npu/step0/rank0/dump.json"), "{").unwrap();
    let ran = msprobe(runs.path(), &["compare", "-tp", "npu", "-gp", "bench", "-o", "out"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.starts_with("Incomplete"), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("1 rank cannot be compared\n    npu/step0/rank0/dump.json"),
        "{}",
        ran.stdout
    );
    assert_eq!(names(&runs.path().join("out")), ["compare_result_step0_rank1_[TIME].csv", "verdict.json"]);
}

#[test]
fn wrong_usage_and_input_exit_with_2_and_say_what_to_do() {
    let runs = two_runs();
    fs::write(runs.path().join("a.pt"), "").unwrap();
    let cases: [&[&str]; 11] = [
        &["compare"],
        &["compare", "npu"],
        &["compare", "a.pt", "a.pt"],
        &["compare", "npu", "bench", "--allow-incomplete", "shapes"],
        &["compare", "-tp", "npu"],
        &["compare", "-i", "compare.json"],
        &["compare", "-tp", "npu", "-gp", "nowhere"],
        &["compare", "-tp", "npu", "-gp", "bench/dump.json"],
        &["compare", "-tp", "npu", "-gp", "bench", "--tolerance", "float33=1"],
        &["compare", "-tp", "npu", "-gp", "bench", "-m", "torchair"],
        &["-f", "pytorch", "compare", "-i", "compare.json", "-am"],
    ];
    let mut transcript = String::new();
    for args in cases {
        let ran = msprobe(runs.path(), args);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{args:?}");
        let messages: String = ran
            .stderr
            .lines()
            .map(|line| line.split_once("] ").map_or(line, |(_, message)| message).to_owned() + "\n")
            .collect();
        writeln!(transcript, "$ msprobe {}\n{messages}", args.join(" ")).unwrap();
    }
    assert_snapshot!("compare_wrong_usage", transcript);
}
