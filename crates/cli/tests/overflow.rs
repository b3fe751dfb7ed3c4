//! `msprobe nan_analyze` and `msprobe overflow_check` as they are run: recorded cases, exit codes, flags.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod common;

use std::fs;
use std::path::Path;

use common::msprobe;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/nan_analyze");

fn golden(case: &str) -> String {
    format!("{GOLDEN}/{case}/input")
}

/// File names without their times.
fn files(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> =
        entries.map(name).map(|name| name.replace(|letter: char| letter.is_ascii_digit(), "")).collect();
    names.sort();
    names
}

#[test]
fn a_pipeline_of_three_ranks() {
    let directory = tempfile::tempdir().unwrap();
    let (code, stdout, stderr) = msprobe(
        directory.path(),
        &["-f", "pytorch", "nan_analyze", "-i", &golden("p2p_pipeline"), "-o", "out"],
    );
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("The analyze result is saved in: out/anomaly_analyze_"), "{stderr}");
    let report = stdout.split("\nResults are in out:").next().unwrap();
    assert_eq!(
        report,
        "Anomaly: Inf first made by Torch.exp.0.forward on rank 0\n\
         \n\
         Culprit  Torch.exp.0.forward  (forward)\n  \
           reason     its inputs and parameters are finite, its output is not\n  \
           module     Module.net.Net.forward.0 > Module.net.layer.Linear.forward.0\n  \
           evidence   input.0    float32 [2, 2]  Max 1  Min -1  Mean 0.1  Norm 2\n             \
                      output.0   float32 [2, 2]  Max inf  Min -1  Mean inf  Norm inf\n  \
           called at  File model.py, line 12, in forward, y = self.layer(x)\n             \
                      File train.py, line 3, in <module>, loss = net(x)\n\
         \n\
         Spread\n  \
           rank 0  Torch.exp.0.forward  (produced)\n  \
           rank 0  Distributed.isend.1.forward\n  \
           rank 1  Distributed.irecv.1.forward  (arrived)\n  \
           rank 1  Functional.gelu.1.forward\n  \
           rank 1  Distributed.send.0.forward\n  \
           rank 2  Distributed.recv.0.forward  (arrived)\n\
         \n\
         First on the other ranks\n  \
           rank 1: Distributed.irecv.1.forward, from rank 0 (Distributed.isend.1.forward)\n  \
           rank 2: Distributed.recv.0.forward, from rank 1 (Distributed.send.0.forward)\n\
         \n\
         Records that are not finite\n  \
           rank 0: 2 of 4 (50.0 %)\n  \
           rank 1: 3 of 5 (60.0 %)\n  \
           rank 2: 2 of 3 (66.7 %)\n\
         \n\
         Next  collect again with \"task\": \"tensor\" and \"list\": [\"Module.net.layer.Linear.forward.0\"], to see which \
         elements\n"
    );
    let left = ["anomaly_analyze_.json", "overflow_report_.html", "overflow_report_.json"];
    assert_eq!(files(&directory.path().join("out")), left);
    let args = ["nan_analyze", "-i", &golden("p2p_pipeline"), "-o", "out", "--fail-on-anomaly"];
    assert_eq!(msprobe(directory.path(), &args).0, 1);
}

#[test]
fn nothing_found_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (code, stdout, stderr) = msprobe(directory.path(), &["overflow_check", "-i", &golden("no_anomaly")]);
    assert_eq!(code, 0);
    assert_eq!(
        stdout,
        "Clean: no harmful NaN or Inf on 2 ranks\n\n\
         Harmless by rule (--no-rule NAME to count it)\n  \
           uninitialized: 2 records, first Torch.empty.0.forward on rank 0\n"
    );
    assert!(stderr.contains("Cannot find any anomaly node, no need to generate analyze file."), "{stderr}");
    assert!(!directory.path().join("output").exists());
}

#[test]
fn json_is_what_the_file_holds() {
    let directory = tempfile::tempdir().unwrap();
    let args =
        ["overflow_check", "-i", &golden("all_reduce_4ranks"), "-o", "out", "--format", "json", "--no-html"];
    let (code, stdout, _) = msprobe(directory.path(), &args);
    assert_eq!(code, 1);
    let answer: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(answer["culprit"]["operation"], "Torch.sqrt.0.forward");
    assert_eq!(answer["culprit"]["rank"], 2);
    assert_eq!(answer["culprit"]["outputs"][0]["Max"], "NaN");
    assert_eq!(answer["spread"].as_array().unwrap().len(), 3);
    assert_eq!(files(&directory.path().join("out")), ["anomaly_analyze_.json", "overflow_report_.json"]);
    let path = answer["files"][1].as_str().unwrap();
    assert_eq!(fs::read_to_string(directory.path().join(path)).unwrap(), stdout);
}

#[test]
fn values_that_would_not_fit_are_early_warnings() {
    let directory = tempfile::tempdir().unwrap();
    let rank = directory.path().join("step0/rank0");
    fs::create_dir_all(&rank).unwrap();
    let tensor = "{\"type\": \"torch.Tensor\", \"dtype\": \"torch.float32\", \"shape\": [4], \"Max\": 70000.0, \"Min\": 1.0, \
                  \"Mean\": 2.0, \"Norm\": 70000.0, \"requires_grad\": false}";
    let dump = format!(
        "{{\"task\": \"statistics\", \"level\": \"L1\", \"framework\": \"pytorch\", \"dump_data_dir\": null, \"data\": \
         {{\"Torch.mul.0.forward\": {{\"input_args\": [], \"input_kwargs\": {{}}, \"output\": [{tensor}]}}}}}}"
    );
    fs::write(rank.join("dump.json"), dump).unwrap();
    let (code, stdout, _) = msprobe(directory.path(), &["overflow_check", "-i", "step0"]);
    assert_eq!((code, stdout.as_str()), (0, "Clean: no NaN and no Inf on 1 rank\n"));
    let (code, stdout, _) =
        msprobe(directory.path(), &["overflow_check", "-i", "step0", "--as-dtype", "fp16"]);
    assert_eq!(code, 0);
    assert!(stdout.contains("Early warnings (1, also for float16)"), "{stdout}");
    assert!(stdout.contains("70000"), "{stdout}");
    assert_eq!(files(&directory.path().join("output")), ["overflow_report_.html", "overflow_report_.json"]);
}

#[test]
fn wrong_usage_says_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    for (args, part) in [
        (&["nan_analyze", "-i", "nowhere"][..], "hint: give the directory of a step"),
        (&["nan_analyze"], "--input_path"),
        (&["nan_analyze", "-i", ".", "--as-dtype", "int8"], "float16"),
        (&["nan_analyze", "-i", ".", "--no-rule", "x"], "uninitialized"),
        (&["-f", "mindspore", "nan_analyze", "-i", "."], "PyTorch"),
    ] {
        let (code, stdout, stderr) = msprobe(directory.path(), args);
        assert_eq!((code, stdout.as_str()), (2, ""), "{args:?}: {stderr}");
        assert!(stderr.contains(part), "{args:?}: {stderr}");
    }
    let (code, stdout, _) = msprobe(directory.path(), &["overflow_check", "--list-rules"]);
    assert_eq!((code, stdout.lines().count()), (0, 7));
}
