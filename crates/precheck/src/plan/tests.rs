use std::fs;

use msprobe_dump::read::Json;
use serde_json::Value;

use super::*;

fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/precheck/filter_and_split")
}

fn choice(is_filtered: bool) -> Choice {
    Choice { checker: Checker::PyTorch, is_filtered, white_list: Vec::new(), black_list: Vec::new() }
}

fn written(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dump.json");
    fs::write(&path, text).unwrap();
    (dir, path)
}

#[test]
fn filter_and_split_are_those_of_the_reference() {
    let dir = recorded();
    let expected: Value =
        serde_json::from_str(&fs::read_to_string(dir.join("expected.json")).unwrap()).unwrap();
    for (is_filtered, key) in [(true, "kept"), (false, "all")] {
        let plan = Plan::read(&dir.join("dump.json"), choice(is_filtered)).unwrap();
        assert_eq!(serde_json::json!(plan.names().collect::<Vec<_>>()), expected[key]);
        for count in [1, 4, 20] {
            let word = if is_filtered { "True" } else { "False" };
            let case = &expected["split"][format!("filter={word},n={count}")];
            assert_eq!(plan.len() as u64, case["total"].as_u64().unwrap());
            let out = tempfile::tempdir().unwrap();
            let paths = plan.write_parts(count, out.path()).unwrap();
            let files = case["files"].as_array().unwrap();
            assert_eq!(paths.len(), files.len());
            for (path, file) in paths.iter().zip(files) {
                assert_eq!(path.file_name().unwrap().to_str(), file["name"].as_str());
                let text = fs::read_to_string(path).unwrap();
                let (Ok(part), Ok(_)) = (serde_json::from_str::<Value>(&text), Json::parse(text.as_bytes()))
                else {
                    panic!("{text}")
                };
                let keys: Vec<&String> = part["data"].as_object().unwrap().keys().collect();
                assert_eq!(serde_json::json!(keys), file["keys"]);
                assert!(part.get("dump_data_dir").is_some());
            }
        }
    }
}

#[test]
fn what_is_skipped_before_it_runs() {
    let names = [
        "Torch.exp.0",
        "Torch.to.0",
        "Distributed.all_reduce.0",
        "Torch.a.b.c.0",
        "Torch.add.0",
        "Torch.mul.0",
    ];
    let entries: Vec<String> = names
        .iter()
        .map(|name| format!(r#""{name}.forward": {{"input_args": [], "input_kwargs": {{}}}}"#))
        .collect();
    let (_dir, path) = written(&format!(r#"{{"data": {{{}}}}}"#, entries.join(",")));
    let lists = Choice {
        white_list: vec!["exp".into(), "add".into(), "to".into()],
        black_list: vec!["add".into()],
        ..choice(false)
    };
    let plan = Plan::read(&path, lists).unwrap();
    let skips: Vec<Option<String>> = (0..plan.len()).map(|at| plan.case(at).unwrap().unwrap().skip).collect();
    let listed = |name: &str| Some(format!("API {name} in black list or not in white list. SKIP."));
    let unsupported = |name: &str| Some(format!("API {name} not support for run ut. SKIP."));
    assert_eq!(
        skips,
        [
            None,
            listed("to"),
            unsupported("Distributed.all_reduce.0"),
            unsupported("Torch.a.b.c.0"),
            listed("add"),
            listed("mul")
        ]
    );
    assert!(plan.case(99).unwrap().is_none());
}

#[test]
fn reasons_against_a_backward_run_follow_each_other() {
    let (_dir, path) = written(
        r#"{"data": {"Torch.masked_select.0.forward": {"input_args": [], "input_kwargs": {"out": null}},
            "Torch.masked_select.0.backward": {"input": []}}, "dump_data_dir": "/somewhere"}"#,
    );
    let plan = Plan::read(&path, choice(false)).unwrap();
    let case = plan.case(0).unwrap().unwrap();
    assert_eq!(
        case.backward_message,
        "function with out=... arguments don't support automatic differentiation, skip backward.\
         This API does not support backward ut, skip backward."
    );
    assert_eq!(case.backward.as_deref(), Some(r#"{"input": []}"#));
    assert_eq!(plan.data_dir(), Some(&*path.parent().unwrap().join("dump_tensor_data")));
}

#[test]
fn what_is_no_dump_is_said() {
    let read = |text: &str| {
        let (_dir, path) = written(text);
        Plan::read(&path, choice(false)).map(|plan| plan.len()).map_err(|error| error.to_string())
    };
    assert!(read(r#"{"task": "x"}"#).unwrap_err().contains("no data found in dump.json"));
    assert!(
        read(r#"{"data": {"Torch.exp.0.sideways": {}}}"#)
            .unwrap_err()
            .contains("Unexpected name in json: Torch.exp.0.sideways")
    );
    assert!(
        read(r#"{"data": {"Torch.exp.0.forward.1": {}}}"#).unwrap_err().contains("Unexpected name in json")
    );
    assert_eq!(
        read(r#"{"data": {"=1.exp.0.forward": {}}}"#).unwrap_err(),
        "api name contains special characters, please check!"
    );
    assert!(read("{").is_err() && read("").is_err() && read("[]").is_err());
    assert_eq!(read(r#"{"data": {}}"#), Ok(0));
    assert_eq!(
        read(r#"{"data": {"Module.a.0.forward": {}, "Torch.exp.0.forward": {"input_args": [NaN]}}}"#),
        Ok(1)
    );
}

#[test]
fn mindspore_checks_what_it_knows() {
    let header = r#""task": "statistics", "framework": "mindspore""#;
    let entries = r#""Mint.add.0.forward": {}, "Mint.add.0.backward": {}, "Tensor.add.1.forward": {},
        "Tensor.nope.0.forward": {}, "Cell.x.y.0.forward": {}, "Functional.relu.0.forward": {},
        "Functional.flash_attention_score.0.forward": {}, "Mint.nn.functional.0.forward": {}, "Mint.cos.0.backward": {}"#;
    let (_dir, path) = written(&format!("{{{header}, \"data\": {{{entries}}}}}"));
    let mindspore = Choice { checker: Checker::MindSpore, ..choice(false) };
    let plan = Plan::read(&path, mindspore.clone()).unwrap();
    let names: Vec<&str> = plan.names().collect();
    assert_eq!(
        names,
        [
            "Mint.add.0",
            "Tensor.add.1",
            "Functional.flash_attention_score.0",
            "Mint.nn.functional.0",
            "Mint.cos.0"
        ]
    );
    assert!(plan.case(4).unwrap().unwrap().forward.is_none());
    let (_dir, path) = written(r#"{"task": "md5", "data": {}}"#);
    assert!(
        Plan::read(&path, mindspore)
            .unwrap_err()
            .to_string()
            .starts_with("[msprobe] Api Accuracy Checker parse json failed")
    );
}
