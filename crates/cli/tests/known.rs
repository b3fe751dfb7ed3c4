//! What users of the tool type out of habit: commands that are not in this version, two plain paths, tensor files.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod common;

use std::fs;
use std::path::Path;

use tempfile::TempDir;

fn write_dump(directory: &Path, norm: f64) {
    fs::create_dir_all(directory).unwrap();
    let tensor = format!(
        r#"{{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1.0, "Min": 0.0,
        "Mean": 0.5, "Norm": {norm}, "requires_grad": false}}"#
    );
    let dump = format!(
        r#"{{"task": "statistics", "framework": "pytorch", "data":
        {{"Torch.exp.0.forward": {{"input_args": [], "input_kwargs": {{}}, "output": [{tensor}]}}}}}}"#
    );
    fs::write(directory.join("dump.json"), dump).unwrap();
}

#[test]
fn known_commands_that_are_not_here_say_so() {
    let here = TempDir::new().unwrap();
    for (args, instead) in [
        (&["-f", "pytorch", "config_check", "-d"][..], "msprobe diff"),
        (&["-f", "pytorch", "config_check", "-c", "a", "b"], "msprobe diff"),
        (&["-f", "pytorch", "parse"], "msprobe inspect"),
        (&["data2db", "--db", "a", "--data", "b"], "msprobe grad compare"),
    ] {
        let (code, stdout, stderr) = common::msprobe(here.path(), args);
        let command =
            args.iter().find(|arg| stderr.contains(&format!("error: {arg} is not in this version")));
        assert!(command.is_some(), "{args:?}: {stderr}");
        assert!(stderr.contains("hint: ") && stderr.contains(instead), "{args:?}: {stderr}");
        assert!(!stderr.contains("tip:") && stdout.is_empty(), "{args:?}: {stdout}{stderr}");
        assert_eq!(code, 2, "{args:?}");
    }
}

#[test]
fn compare_takes_two_plain_paths() {
    let here = TempDir::new().unwrap();
    write_dump(&here.path().join("a"), 1.0);
    write_dump(&here.path().join("b"), 1.0);
    write_dump(&here.path().join("c"), 3.0);
    let (code, _, stderr) = common::msprobe(here.path(), &["compare", "a", "b", "-o", "same"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(here.path().join("same/verdict.json").is_file());
    let (code, _, stderr) = common::msprobe(here.path(), &["compare", "-o", "other", "a", "c"]);
    assert_eq!(code, 1, "{stderr}");
}

#[test]
fn tensor_files_belong_to_diff() {
    let here = TempDir::new().unwrap();
    write_dump(&here.path().join("dump"), 1.0);
    for name in ["a.pt", "b.pt"] {
        fs::write(here.path().join(name), b"anything").unwrap();
    }
    for args in [&["compare", "a.pt", "b.pt"][..], &["compare", "-tp", "a.pt", "-gp", "b.pt"]] {
        let (code, _, stderr) = common::msprobe(here.path(), args);
        assert_eq!(code, 2);
        assert!(stderr.contains("a.pt is a tensor file, not a dump"), "{stderr}");
        assert!(stderr.contains("msprobe diff TARGET GOLDEN"), "{stderr}");
    }
    let (code, _, stderr) = common::msprobe(here.path(), &["compare", "dump", "b.pt"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("b.pt is a tensor file"), "{stderr}");
}

#[test]
fn compare_json_may_have_the_keys_of_the_python_function() {
    let here = TempDir::new().unwrap();
    write_dump(&here.path().join("npu_dump"), 1.0);
    write_dump(&here.path().join("bench_dump"), 1.0);
    let file = r#"{"npu_json_path": "npu_dump/dump.json", "bench_json_path": "bench_dump/dump.json",
        "is_print_compare_log": true}"#;
    fs::write(here.path().join("compare.json"), file).unwrap();
    let (code, _, stderr) =
        common::msprobe(here.path(), &["-f", "pytorch", "compare", "-i", "compare.json", "-o", "out"]);
    assert_eq!(code, 0, "{stderr}");
    fs::write(here.path().join("compare.json"), "{}").unwrap();
    let (code, _, stderr) =
        common::msprobe(here.path(), &["-f", "pytorch", "compare", "-i", "compare.json", "-o", "out"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("Missing npu_path") && stderr.contains("hint: "), "{stderr}");
}
