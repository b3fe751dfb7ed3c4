//! `msprobe graph` and `msprobe graph_visualize` as they are run: flags, exit codes, what is printed, errors with hints.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod common;

use std::fs;
use std::path::Path;

use common::msprobe;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/graph");

fn files(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> =
        entries.map(name).map(|name| name.replace(|letter: char| letter.is_ascii_digit(), "")).collect();
    names.sort();
    names
}

/// A compare.json for a recorded case.
fn config(directory: &Path, case: &str, compare: bool) {
    let bench =
        if compare { format!(", \"bench_path\": \"{GOLDEN}/{case}/bench_dump\"") } else { String::new() };
    fs::write(
        directory.join("compare.json"),
        format!("{{\"npu_path\": \"{GOLDEN}/{case}/npu_dump\"{bench}}}"),
    )
    .unwrap();
}

#[test]
fn the_older_form_writes_a_file_and_says_what_is_in_it() {
    let directory = tempfile::tempdir().unwrap();
    config(directory.path(), "compare_statistics_unmatched_and_fuzzy", true);
    let args = ["-f", "pytorch", "graph", "-i", "compare.json", "-o", "out", "-f", "-oc", "-cs"];
    let (code, stdout, stderr) = msprobe(directory.path(), &args);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(files(&directory.path().join("out")), ["compare_.vis"]);
    for said in ["target  ", " matched, ", "golden  ", "verdicts  ", "overflow  ", "Worst nodes", "Culprit  "]
    {
        assert!(stdout.contains(said), "{said}: {stdout}");
    }
    let differs = [&args[..], &["--fail-on-difference"]].concat();
    assert_eq!(msprobe(directory.path(), &differs).0, 1);
    config(directory.path(), "build_mix_statistics", false);
    let (code, stdout, _) =
        msprobe(directory.path(), &["-f", "pytorch", "graph", "-i", "compare.json", "-o", "built"]);
    assert!(code == 0 && stdout.starts_with("Clean: 1 graph built with "), "{stdout}");
    assert_eq!(files(&directory.path().join("built")), ["build_.vis"]);
}

#[test]
fn the_newer_form_writes_one_file_for_all_ranks() {
    let directory = tempfile::tempdir().unwrap();
    let target = format!("{GOLDEN}/multi_rank_distributed_compare/npu_dump");
    let golden = format!("{GOLDEN}/multi_rank_distributed_compare/bench_dump");
    let args = [
        "graph_visualize",
        "-tp",
        &target,
        "-gp",
        &golden,
        "-o",
        "out",
        "-fm",
        "-progress_log",
        "-tensor_log",
    ];
    let (code, stdout, stderr) = msprobe(directory.path(), &args);
    assert_eq!(code, 1, "{stdout}{stderr}");
    assert_eq!(files(&directory.path().join("out")), ["compare_.vis.db"]);
    assert!(
        stdout.contains("PROGRESS: {\"current_progress\":100,\"process_running\":false,\"error_msg\":[]}"),
        "{stdout}"
    );
}

#[test]
fn wrong_usage_is_told_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    config(directory.path(), "compare_md5", true);
    let dump = format!("{GOLDEN}/visdb_parallel_merge_tp/npu_dump");
    for (args, said) in [
        (&["graph", "-i", "compare.json", "-o", "out"][..], "msprobe -f pytorch graph"),
        (&["-f", "pytorch", "graph", "-i", "none.json", "-o", "out"], "does not exist"),
        (&["graph_visualize", "-tp", "nowhere", "-o", "out"], "does not exist"),
        (&["graph_visualize", "-tp", &dump, "-o", "out", "--tp", "2"], "--rank_size, --tp and --pp together"),
        (&["graph_visualize", "-tp", &dump, "-o", "out", "--vpp", "2"], "--vpp needs"),
        (
            &[
                "graph_visualize",
                "-tp",
                &dump,
                "-o",
                "out",
                "--rank_size",
                "2",
                "3",
                "--tp",
                "2",
                "--pp",
                "1",
            ],
            "of 1 numbers",
        ),
        (
            &["graph_visualize", "-tp", &dump, "-o", "out", "--rank_size", "4", "--tp", "2", "--pp", "2"],
            "has 2 ranks",
        ),
        (
            &["graph_visualize", "-tp", &dump, "-gp", &dump, "-o", "out", "--file_type", "json"],
            "not a comparison",
        ),
    ] {
        let (code, stdout, stderr) = msprobe(directory.path(), args);
        assert_eq!(code, 2, "{args:?}: {stdout}{stderr}");
        assert!(stderr.contains(said), "{args:?}: {stderr}");
        assert!(stderr.contains("hint: ") || said == "does not exist", "{args:?}: {stderr}");
        assert!(files(&directory.path().join("out")).is_empty(), "{args:?}");
    }
}

#[test]
fn merged_ranks_are_written_as_a_dump_that_can_be_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let dump = format!("{GOLDEN}/visdb_parallel_merge_tp/npu_dump");
    let merge = ["--rank_size", "2", "--tp", "2", "--pp", "1", "--file_type", "json"];
    let args = [&["graph_visualize", "-tp", &dump, "-o", "out"][..], &merge].concat();
    assert_eq!(msprobe(directory.path(), &args).0, 0);
    let text = fs::read_to_string(directory.path().join("out/step0/rank0/dump.json")).unwrap();
    assert!(text.contains("\"is_merged\": true") && text.contains("parallel_merge_info"), "{text}");
    let (code, stdout, stderr) = msprobe(directory.path(), &["graph_visualize", "-tp", "out", "-o", "again"]);
    assert!(code == 0 && stdout.contains("1 graph"), "{stdout}{stderr}");
}

#[test]
fn help_shows_all_flags() {
    let directory = tempfile::tempdir().unwrap();
    for (command, flags) in [
        ("graph", &["--layer_mapping", "-lm", "--overflow_check", "--fuzzy_match", "--complete_stack"][..]),
        (
            "graph_visualize",
            &["--target_path", "--golden_path", "--rank_size", "--vpp", "--order", "--file_type"],
        ),
    ] {
        let (code, stdout, _) = msprobe(directory.path(), &[command, "--help"]);
        assert!(code == 0 && flags.iter().all(|flag| stdout.contains(flag)), "{stdout}");
        assert!(stdout.contains("Exit codes:") && stdout.contains("Examples:"), "{stdout}");
    }
}
