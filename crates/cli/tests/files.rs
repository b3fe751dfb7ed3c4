//! What a command does to files: those it leaves, those it must not touch, and those it must not read.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod common;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use common::msprobe;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_msprobe");

fn tensor(size: f64, more: &str) -> String {
    format!(
        r#"{{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": {size}, "Min": 0.0, "Mean": 0.5,
        "Norm": {size}, "requires_grad": false{more}}}"#
    )
}

/// A dump of that many calls; `names` stands in the first of them.
fn write_dump(directory: &Path, task: &str, name: &str, calls: usize, more: &str) {
    let record = |name: &str| {
        format!(r#""{name}": {{"input_args": [{}], "output": [{}]}}"#, tensor(1.0, more), tensor(2.0, more))
    };
    let mut records = vec![record(name)];
    records.extend((1..calls).map(|call| record(&format!("Torch.exp.{call}.forward"))));
    fs::create_dir_all(directory).unwrap();
    let dump = format!(
        r#"{{"task": "{task}", "level": "L1", "framework": "pytorch", "dump_data_dir": "/", "data": {{{}}}}}"#,
        records.join(", ")
    );
    fs::write(directory.join("dump.json"), dump).unwrap();
}

/// Two equal runs in a directory.
fn two_runs(task: &str, name: &str, calls: usize, more: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for side in ["npu", "bench"] {
        write_dump(&directory.path().join(side), task, name, calls, more);
    }
    let paths = r#"{"npu_path": "npu/dump.json", "bench_path": "bench/dump.json"}"#;
    fs::write(directory.path().join("compare.json"), paths).unwrap();
    directory
}

fn names(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn start(directory: &Path, args: &[&str]) -> Child {
    Command::new(PROGRAM)
        .args(args)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn runs_at_the_same_time_leave_a_set_of_files_each() {
    let runs = two_runs("statistics", "Torch.exp.0.forward", 3, "");
    let older = ["-f", "pytorch", "compare", "-i", "compare.json", "-o", "out", "--format", "xlsx,csv"];
    let children: Vec<Child> = (0..6).map(|_| start(runs.path(), &older)).collect();
    for mut child in children {
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    let found = names(&runs.path().join("out"));
    let count = |start: &str, end: &str| {
        found.iter().filter(|name| name.starts_with(start) && name.ends_with(end)).count()
    };
    let counts = [
        count("compare_result_", ".xlsx"),
        count("compare_result_", ".csv"),
        count("advisor_", ".txt"),
        count("verdict", ".json"),
    ];
    assert_eq!((counts, found.len()), ([6; 4], 24), "{found:?}");
    for name in &found {
        let path = runs.path().join("out").join(name);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640, "{name}");
        // Scripts look for fourteen digits before the extension.
        let stem = name.split('.').next().unwrap();
        let digits = stem.rsplit('_').next().unwrap();
        assert!(name == "verdict.json" || digits.len() == 14, "{name}");
    }
    // The newest answer has the plain name, and who it replaced is said.
    let (_, _, stderr) = msprobe(runs.path(), &older);
    assert!(stderr.contains("out/verdict.json was there already, it is kept as verdict_2"), "{stderr}");
}

#[test]
fn links_that_wait_in_the_output_lead_nowhere() {
    let runs = two_runs("statistics", "Torch.exp.0.forward", 3, "");
    let (out, precious) = (runs.path().join("out"), runs.path().join("precious"));
    fs::create_dir(&out).unwrap();
    fs::write(&precious, "precious").unwrap();
    for name in ["verdict.json", "verdict.json.tmp", ".verdict.json"] {
        symlink(&precious, out.join(name)).unwrap();
    }
    // Every second at which the tables could be written, and names made of the number of the process.
    let script = r#"
        now=$(date +%s)
        for later in $(seq 0 60); do
            time=$(date -d @$((now + later)) +%Y%m%d%H%M%S)
            for file in compare_result_$time.xlsx advisor_$time.txt; do
                ln -s ../precious out/$file
                ln -s ../precious out/.$file.$$
            done
        done
        ln -s ../precious out/.verdict.json.$$
        exec "$0" -f pytorch compare -i compare.json -o out
    "#;
    let status = Command::new("sh")
        .args(["-c", script, PROGRAM])
        .current_dir(runs.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    let is_file = |name: &&String| fs::symlink_metadata(out.join(name)).unwrap().is_file();
    let found = names(&out);
    let written: Vec<&String> = found.iter().filter(is_file).collect();
    assert_eq!(written.len(), 3, "{written:?}");
    assert!(written.iter().any(|name| *name == "verdict.json"), "{written:?}");
}

fn signal(child: &Child, name: &str) {
    let _ = Command::new("kill").args([name, &child.id().to_string()]).stderr(Stdio::null()).status();
}

/// Nothing hidden, and nothing that is not whole.
fn check_left(out: &Path) {
    for name in names(out) {
        assert!(!name.starts_with('.'), "{name} is left");
        let bytes = fs::read(out.join(&name)).unwrap();
        let whole = match name.rsplit('.').next().unwrap() {
            // The end of an archive.
            "xlsx" => bytes.len() > 22 && bytes[bytes.len() - 22..].starts_with(b"PK\x05\x06"),
            "csv" => bytes.ends_with(b"\n"),
            "html" => bytes.trim_ascii_end().ends_with(b"</html>"),
            _ => serde_json::from_slice::<serde_json::Value>(&bytes).is_ok(),
        };
        assert!(whole, "{name} is not whole");
    }
}

#[test]
fn a_signal_takes_unfinished_files_along() {
    let runs = two_runs("statistics", "Torch.exp.0.forward", 20_000, "");
    let out = runs.path().join("out");
    let newer = ["compare", "-tp", "npu", "-gp", "bench", "-o", "out", "--format", "xlsx,csv,json,html"];
    for (delay_ms, name) in [
        (0, "-INT"),
        (30, "-TERM"),
        (80, "-INT"),
        (150, "-INT"),
        (250, "-TERM"),
        (400, "-INT"),
        (700, "-HUP"),
    ] {
        let mut child = start(runs.path(), &newer);
        thread::sleep(Duration::from_millis(delay_ms));
        signal(&child, name);
        child.wait().unwrap();
        check_left(&out);
    }
    // And when a file is certainly on its way; tried again where it was finished before the signal came.
    let met = (0..20).any(|_| {
        let mut child = start(runs.path(), &newer);
        let met = loop {
            if names(&out).iter().any(|name| name.starts_with('.')) {
                signal(&child, "-INT");
                break true;
            }
            if child.try_wait().unwrap().is_some() {
                break false;
            }
            thread::yield_now();
        };
        let status = child.wait().unwrap();
        check_left(&out);
        met && status.signal() == Some(2)
    });
    assert!(met, "no signal came while a file was written");
}

/// Two floats.
const NPY: &[u8] =
    b"\x93NUMPY\x01\x00\x38\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} \0\0\x80\x3f\0\0\0\x40";

#[test]
fn only_ordinary_files_inside_a_dump_are_read() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("x.npy"), NPY).unwrap();
    let absolute = outside.path().join("x.npy").to_str().unwrap().to_owned();
    let prepare = |data_name: &str| {
        let runs = two_runs("tensor", "Torch.exp.0.forward", 1, &format!(r#", "data_name": "{data_name}""#));
        for side in ["npu", "bench"] {
            fs::create_dir(runs.path().join(side).join("dump_tensor_data")).unwrap();
            fs::write(runs.path().join(side).join("dump_tensor_data/x.npy"), NPY).unwrap();
        }
        fs::write(runs.path().join("npu/x.npy"), NPY).unwrap();
        runs
    };
    let compare =
        |runs: &TempDir| msprobe(runs.path(), &["compare", "-tp", "npu", "-gp", "bench", "-o", "out"]);
    let runs = prepare("x.npy");
    let (code, stdout, stderr) = compare(&runs);
    assert_eq!(code, 0, "{stdout}{stderr}");

    let inside = runs.path().join("npu/dump_tensor_data/x.npy");
    let refused = |runs: &TempDir, why: &str| {
        let (code, stdout, stderr) = compare(runs);
        assert_ne!(code, 0, "{why}: {stdout}{stderr}");
        assert!(!stdout.starts_with("Identical"), "{why}: {stdout}");
        assert!(format!("{stdout}{stderr}").contains(why), "{why}: {stdout}{stderr}");
    };
    fs::remove_file(&inside).unwrap();
    symlink(&absolute, &inside).unwrap();
    refused(&runs, "it is a link");
    fs::remove_file(&inside).unwrap();
    assert!(Command::new("mkfifo").arg(&inside).status().unwrap().success());
    refused(&runs, "not an ordinary file");
    fs::remove_file(&inside).unwrap();
    symlink("/dev/zero", &inside).unwrap();
    refused(&runs, "it is a link");
    fs::remove_dir_all(runs.path().join("npu/dump_tensor_data")).unwrap();
    symlink(outside.path(), runs.path().join("npu/dump_tensor_data")).unwrap();
    refused(&runs, "link");
    for name in ["../x.npy", absolute.as_str(), ".."] {
        refused(&prepare(name), "cannot be compared");
    }
    // A directory of a dump that was linked as a whole may be used by the name it was given.
    let runs = prepare("x.npy");
    fs::rename(runs.path().join("npu"), runs.path().join("elsewhere")).unwrap();
    symlink("elsewhere", runs.path().join("npu")).unwrap();
    let (code, stdout, stderr) = compare(&runs);
    assert_eq!(code, 0, "{stdout}{stderr}");
}

#[test]
fn elements_are_counted_only_in_files_of_the_dump() {
    let runs = tempfile::tempdir().unwrap();
    let rank = runs.path().join("step0/rank0");
    fs::create_dir_all(rank.join("dump_tensor_data")).unwrap();
    let bad = tensor(1.0, r#", "data_name": "x.npy""#).replace("\"Max\": 1", "\"Max\": NaN");
    let record =
        format!(r#""Torch.exp.0.forward": {{"input_args": [{}], "output": [{bad}]}}"#, tensor(1.0, ""));
    let dump = format!(
        r#"{{"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": "/", "data": {{{record}}}}}"#
    );
    fs::write(rank.join("dump.json"), dump).unwrap();
    let outside = runs.path().join("outside.npy");
    fs::write(&outside, NPY).unwrap();
    symlink(&outside, rank.join("dump_tensor_data/x.npy")).unwrap();
    let (_, stdout, stderr) = msprobe(runs.path(), &["overflow_check", "-i", "step0", "-o", "out"]);
    assert!(format!("{stdout}{stderr}").contains("it is a link"), "{stdout}{stderr}");
    assert!(!stdout.contains("of 2 elements"), "{stdout}");

    fs::remove_file(rank.join("dump.json")).unwrap();
    assert!(Command::new("mkfifo").arg(rank.join("dump.json")).status().unwrap().success());
    let (code, _, stderr) = msprobe(runs.path(), &["overflow_check", "-i", "step0", "-o", "out"]);
    assert_eq!(code, 2, "{stderr}");
}

#[test]
fn names_do_nothing_to_a_terminal() {
    let hostile = "Torch.a\\u001b[31mred\\u001b[0m\\u202egnp\\nfake\\u009b.0.forward";
    let runs = two_runs("statistics", hostile, 2, "");
    let changed = fs::read_to_string(runs.path().join("npu/dump.json")).unwrap();
    fs::write(runs.path().join("npu/dump.json"), changed.replacen("\"Max\": 2", "\"Max\": NaN", 1)).unwrap();
    fs::create_dir_all(runs.path().join("step0")).unwrap();
    symlink("../npu", runs.path().join("step0/rank0")).unwrap();
    let header = r#"{"a\u001b[31m\u202e":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    for (file, value) in [("a.safetensors", 1_f32), ("b.safetensors", 2.0)] {
        let bytes =
            [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &value.to_le_bytes()].concat();
        fs::write(runs.path().join(file), bytes).unwrap();
    }
    let commands: [&[&str]; 6] = [
        &["-f", "pytorch", "compare", "-i", "compare.json", "-o", "out"],
        &["compare", "-tp", "npu", "-gp", "bench", "-o", "out"],
        &["-f", "pytorch", "nan_analyze", "-i", "step0", "-o", "out"],
        &["overflow_check", "-i", "step0", "-o", "out"],
        &["diff", "a.safetensors", "b.safetensors"],
        &["inspect", "a.safetensors"],
    ];
    for command in commands {
        let (_, stdout, stderr) = msprobe(runs.path(), command);
        let text = format!("{stdout}{stderr}");
        let acts = |letter: char| letter != '\n' && (letter.is_control() || letter == '\u{202e}');
        assert!(!text.contains(acts), "{command:?}: {text:?}");
        assert!(!text.lines().any(|line| line.starts_with("fake")), "{command:?}: {text}");
        assert!(stdout.contains("\\x1b[31m"), "{command:?}: {text}");
    }
}

#[test]
fn a_byte_order_mark_is_accepted() {
    let runs = two_runs("statistics", "Torch.exp.0.forward", 2, "");
    fs::write(runs.path().join("npu/stack.json"), "\u{feff}{\"0\": [[\"Torch.exp.0.forward\"], [\"here\"]]}")
        .unwrap();
    for file in ["npu/dump.json", "compare.json"] {
        let text = fs::read_to_string(runs.path().join(file)).unwrap();
        fs::write(runs.path().join(file), format!("\u{feff}{text}")).unwrap();
    }
    let (code, stdout, stderr) = msprobe(
        runs.path(),
        &["-f", "pytorch", "compare", "-i", "compare.json", "-o", "out", "--fail-on-difference"],
    );
    assert_eq!(code, 0, "{stdout}{stderr}");
    fs::write(runs.path().join("npu/construct.json"), "\u{feff}{}").unwrap();
    fs::create_dir_all(runs.path().join("step0")).unwrap();
    symlink("../npu", runs.path().join("step0/rank0")).unwrap();
    let (code, stdout, stderr) = msprobe(runs.path(), &["overflow_check", "-i", "step0", "-o", "out"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
}
