//! The pre-check of operators as the binary does it, without Python.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/precheck").join(name)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn two_checks_are_compared() {
    let here = TempDir::new().unwrap();
    let case = golden("apc_standards");
    let (npu, gpu) = (case.join("npu.csv"), case.join("gpu.csv"));
    let args =
        ["-f", "pytorch", "api_precision_compare", "-npu", text(&npu), "-gpu", text(&gpu), "-o", "out"];
    let (code, stdout, stderr) = common::msprobe(here.path(), &args);
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(stdout.contains("operators failed") && stdout.contains("Torch.mm.0"), "{stdout}");
    let written = files(&here.path().join("out"));
    let names: Vec<String> =
        written.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert!(
        names[0].starts_with("api_precision_compare_details_")
            && names[1].starts_with("api_precision_compare_result_")
    );
    for (path, kind) in written.iter().zip(["details", "result"]) {
        let expected = fs::read(case.join(format!("expected/api_precision_compare_{kind}.csv"))).unwrap();
        assert!(fs::read(path).unwrap() == expected, "{kind}");
    }
    let (code, _, _) = common::msprobe(here.path(), &[&args[..], &["--fail-on-error"]].concat());
    assert_eq!(code, 1);
}

#[test]
fn what_is_no_check_is_refused_before_anything_is_written() {
    let here = TempDir::new().unwrap();
    fs::write(here.path().join("a.csv"), "a,b\n1,2\n").unwrap();
    let args = ["api_precision_compare", "-npu", "a.csv", "-gpu", "a.csv", "-o", "out"];
    let (code, stdout, stderr) = common::msprobe(here.path(), &args);
    assert_eq!(code, 2);
    assert!(stderr.contains("are missing innpu_csv") && stderr.contains("hint:"), "{stdout}{stderr}");
    assert!(!here.path().join("out").exists());
    let (code, _, _) =
        common::msprobe(here.path(), &["api_precision_compare", "-npu", "nowhere.csv", "-gpu", "a.csv"]);
    assert_eq!(code, 2);
}

#[test]
fn a_failing_row_becomes_a_script() {
    let here = TempDir::new().unwrap();
    fs::write(here.path().join("d.csv"), "API Name,Status\nTorch.exp.0.forward.output.0,error\n").unwrap();
    let dump = golden("op_generate_pytorch/dump.json");
    let args =
        ["op_generate", "--from", "d.csv", "--api", "Torch.exp.0", "-api_info", text(&dump), "-o", "scripts"];
    let (code, stdout, stderr) = common::msprobe(here.path(), &args);
    assert_eq!((code, stdout.as_str()), (0, "scripts/Torch.exp.0.forward.py\n"), "{stderr}");
    assert_eq!(files(&here.path().join("scripts")).len(), 2);
    let (code, _, stderr) = common::msprobe(here.path(), &["op_generate", "-o", "scripts"]);
    assert!(code == 2 && stderr.contains("--from DETAILS.csv --api NAME"), "{stderr}");
}

#[test]
fn commands_that_run_operators_are_handed_to_python() {
    let run = |python: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_msprobe"))
            .args(["-f", "pytorch", "run_ut", "-api_info", "dump.json", "-h"])
            .env("MSPROBE_PYTHON", python)
            .env_remove("MSPROBE_STARTED_PYTHON")
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, stdout, _) = run("/bin/echo");
    assert_eq!((code, stdout.as_str()), (Some(0), "-m msprobe -f pytorch run_ut -api_info dump.json -h\n"));
    let (code, stdout, stderr) = run("/nowhere/python");
    assert_eq!(code, Some(2));
    assert!(stdout.is_empty() && stderr.contains("run_ut runs operators and needs Python"), "{stderr}");
}
