//! Dumps of statistics: what was seen answered identical, and what only one side has.

use std::fs;

use msprobe_compare::verdict::{GapKind, Status};
use serde_json::{Map, Value, json};

use crate::sides::{LINEAR, Sides, changed, integer, removed, run, statuses, tensor};

#[test]
fn equal_dumps_are_identical() {
    let sides = Sides::new();
    sides.write("target", &run());
    sides.write("golden", &run());
    let outcome = sides.compare("target", "golden").unwrap();
    assert_eq!(outcome.status(), Status::Identical, "{}", outcome.paragraph());
}

#[test]
fn what_was_seen_answered_identical_is_not() {
    let output = format!("{LINEAR}/output/0");
    let retyped = |dtype: &str| {
        let mut value = tensor(&[4, 2], 0.5);
        value["dtype"] = dtype.into();
        changed(&output, value)
    };
    let with = |key: &str, value: Value| changed(&format!("{output}/{key}"), value);
    let mut unmeasured = run();
    unmeasured.pointer_mut(&output).unwrap()["unmeasured"] = "a sparse layout".into();
    let any = "/data/Tensor.any.0.forward/output";
    let arguments = "/data/Functional.embedding.0.forward/input_args";
    let cases: Vec<(&str, Value, Status)> = vec![
        ("int32", retyped("torch.int32"), Status::Incomplete),
        ("int64", retyped("torch.int64"), Status::Incomplete),
        ("bool", retyped("torch.bool"), Status::Incomplete),
        ("complex64", retyped("torch.complex64"), Status::Incomplete),
        ("qint8", retyped("torch.qint8"), Status::Incomplete),
        ("null", with("Max", Value::Null), Status::Incomplete),
        ("text", with("Max", "0.5".into()), Status::Incomplete),
        ("no Max", removed(&output, "Max"), Status::Incomplete),
        ("no Norm", removed(&output, "Norm"), Status::Incomplete),
        ("no output", removed(LINEAR, "output"), Status::Incomplete),
        ("output []", changed(&format!("{LINEAR}/output"), json!([])), Status::Incomplete),
        ("output null", changed(&output, Value::Null), Status::Incomplete),
        ("output scalar", changed(&output, json!({"type": "float", "value": 0.5})), Status::Incomplete),
        ("True/False", changed(&format!("{any}/0/value"), false.into()), Status::Diverged),
        ("a/b", changed(&format!("{any}/1/value"), "b".into()), Status::Diverged),
        ("1/2", changed(&format!("{any}/2/value"), 2.into()), Status::Diverged),
        (
            "keyword missing",
            removed("/data/Functional.embedding.0.forward/input_kwargs", "scale"),
            Status::Incomplete,
        ),
        (
            "one more input",
            changed(
                arguments,
                json!([integer(9_007_199_254_740_993), tensor(&[10, 4], 2.0), tensor(&[1], 1.0)]),
            ),
            Status::Incomplete,
        ),
        (
            "one more output",
            changed(&format!("{LINEAR}/output"), json!([tensor(&[4, 2], 0.5), null, tensor(&[1], 1.0)])),
            Status::Diverged,
        ),
        ("shape", with("shape", json!([2, 4])), Status::Diverged),
        (
            "beyond 2^53",
            changed(&format!("{arguments}/0/Max"), 9_007_199_254_740_992_i64.into()),
            Status::DiffersAtInput,
        ),
        ("unmeasured", unmeasured, Status::Incomplete),
    ];
    for (what, dump, expected) in cases {
        let sides = Sides::new();
        sides.write("golden", &run());
        sides.write("target", &dump);
        assert_eq!(statuses(&sides), [Some(expected); 2], "{what}");
    }
}

#[test]
fn nan_against_a_number_is_a_difference() {
    let sides = Sides::new();
    sides.write("golden", &run());
    let text = run().to_string().replacen(r#""value":0.5"#, r#""value":NaN"#, 1);
    fs::create_dir_all(sides.path("target")).unwrap();
    fs::write(sides.path("target").join("dump.json"), text).unwrap();
    assert_eq!(statuses(&sides), [Some(Status::Diverged); 2]);
}

#[test]
fn records_ranks_and_steps_of_one_side_only_are_named() {
    let sides = Sides::new();
    let mut few = run();
    let data = few["data"].as_object_mut().unwrap();
    let first = data.iter().next().map(|(name, record)| (name.clone(), record.clone())).unwrap();
    *data = Map::from_iter([first]);
    sides.write("golden", &run());
    sides.write("target", &few);
    for (target, golden) in [("target", "golden"), ("golden", "target")] {
        let outcome = sides.compare(target, golden).unwrap();
        assert_eq!(outcome.status(), Status::Incomplete);
        assert!(
            outcome.paragraph().contains("Module.fc.Linear.forward.0 (only on the"),
            "{}",
            outcome.paragraph()
        );
        let allowed = sides.compare_allowing(target, golden, "unpaired").unwrap();
        assert_eq!(allowed.status(), Status::WithinTolerance, "what is allowed is still no proof");
        assert!(allowed.paragraph().contains("5 records or values"), "{}", allowed.paragraph());
    }

    let sides = Sides::new();
    for place in ["golden/step0/rank0", "golden/step0/rank1", "golden/step1/rank0", "target/step0/rank0"] {
        sides.write(place, &run());
    }
    for (target, golden) in [("target", "golden"), ("golden", "target")] {
        let outcome = sides.compare(target, golden).unwrap();
        assert_eq!(outcome.status(), Status::Incomplete);
        assert_eq!((outcome.gaps.count(GapKind::Steps), outcome.gaps.count(GapKind::Ranks)), (1, 1));
        assert!(outcome.paragraph().contains("step1") && outcome.paragraph().contains("rank1"));
    }
}

#[test]
fn a_rank_that_cannot_be_read_is_incomplete() {
    let sides = Sides::new();
    for place in ["golden/rank0", "golden/rank1", "target/rank0", "target/rank1"] {
        sides.write(place, &run());
    }
    fs::write(sides.path("target/rank1/dump.json"), "{\"task\": \"stat").unwrap();
    let outcome = sides.compare("target", "golden").unwrap();
    assert_eq!(outcome.status(), Status::Incomplete);
    assert_eq!(outcome.failures.len(), 1);
    assert!(outcome.paragraph().contains("rank1"), "{}", outcome.paragraph());
}

#[test]
fn steps_paired_by_position_are_said() {
    let sides = Sides::new();
    sides.write("target/step5/rank0", &run());
    sides.write("golden/step0/rank0", &run());
    let outcome = sides.compare("target", "golden").unwrap();
    assert_eq!(outcome.status(), Status::Identical);
    assert!(outcome.paragraph().contains("step 5 against step 0"), "{}", outcome.paragraph());
}

#[test]
fn items_of_one_name_pair_in_order() {
    let sides = Sides::new();
    let mut dump = run();
    dump["data"]["Module.fc.Linear.parameters_grad"] =
        json!({"weight": [tensor(&[2, 4], 0.01), tensor(&[2, 4], 1.01)]});
    sides.write("target", &dump);
    sides.write("golden", &dump);
    assert_eq!(statuses(&sides), [Some(Status::Identical); 2]);
}

#[test]
fn names_pair_across_wrappers() {
    for wrapped in [
        "Module.module.fc.Linear",
        "Module._fsdp_wrapped_module.fc.Linear",
        "Module._orig_mod.fc.Linear",
        "Module.base_model.model.fc.Linear",
        "Module.module._orig_mod._fsdp_wrapped_module.fc.Linear",
    ] {
        let sides = Sides::new();
        sides.write("golden", &run());
        let text = run().to_string().replace("Module.fc.Linear", wrapped);
        sides.write("target", &serde_json::from_str(&text).unwrap());
        assert_eq!(statuses(&sides), [Some(Status::Identical); 2], "{wrapped}");
    }
}

#[test]
fn an_argument_upstream_is_named_although_a_later_call_is_the_first_beyond_tolerance() {
    let sides = Sides::new();
    let mut dump = run();
    dump["data"]["Functional.embedding.0.forward"]["input_kwargs"]["scale"]["value"] = 0.3536.into();
    dump["data"]["Functional.embedding.0.forward"]["output"][0]["Mean"] = (0.25 * 1.5 * (1.0 + 1e-6)).into();
    dump["data"]["Module.fc.Linear.forward.0"]["output"][0]["Max"] = 0.6.into();
    sides.write("target", &dump);
    sides.write("golden", &run());
    for (target, golden) in [("target", "golden"), ("golden", "target")] {
        let outcome = sides.compare(target, golden).unwrap();
        assert_eq!(outcome.status(), Status::Diverged);
        let text = outcome.paragraph();
        assert!(text.contains("Functional.embedding.0.forward was called with another argument"), "{text}");
        assert!(text.contains("0.3536") && text.contains("0.3606"), "{text}");
    }
}
