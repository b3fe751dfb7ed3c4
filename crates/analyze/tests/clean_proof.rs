//! "Clean" is a proof: whatever is unmeasured, unreadable, missing or not finite, the answer is another one. Dumps that are
//! whole and finite are clean.
//!
//! What does not count by definition:
//! - inputs that were not recorded (`data_mode`): they are results of others, or data;
//! - records and values that were never written, and the ranks above the highest one: nothing says that they should be
//!   there, unless a group of communication names them;
//! - the elements in tensor files, which the statistics were made of (that the files are there and can be read does count);
//!   stack.json, construct.json and other members of the header.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its helpers too")]

use std::fs;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use msprobe_analyze::outcome::{Outcome, Status};
use msprobe_analyze::rules::{Rule, Rules};
use msprobe_analyze::run::{Options, analyze};
use msprobe_report::console::Silent;
use serde_json::{Value, json};

const DTYPES: [&str; 5] = ["torch.float32", "torch.float16", "torch.bfloat16", "torch.int64", "torch.bool"];

fn tensor(dice: &mut Rng, name: &str, with_file: bool) -> Value {
    let dtype = DTYPES[dice.usize(..DTYPES.len())];
    let shape = [json!([2, 3]), json!([]), json!([4])][dice.usize(..3)].clone();
    let number = dice.u64(..);
    let (max, min) = match dtype {
        "torch.bool" => (json!(true), json!(false)),
        "torch.int64" => (json!(7), json!(-2)),
        _ => (json!(1.5), json!(-0.5)),
    };
    let mut value = json!({"type": "torch.Tensor", "dtype": dtype, "shape": shape, "Max": max, "Min": min,
        "Mean": 0.25, "Norm": 2.0, "requires_grad": false});
    if with_file {
        value["data_name"] = json!(format!("{name}{number}.npy"));
    }
    value
}

/// A value of a record: a tensor, a list of some, nothing, a number, or a tensor without elements.
fn value(dice: &mut Rng, name: &str, with_file: bool) -> Value {
    match dice.usize(..7) {
        0 => json!([tensor(dice, name, with_file), tensor(dice, name, with_file)]),
        1 => Value::Null,
        2 => json!({"type": "float", "value": 0.5}),
        3 => {
            json!({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [0, 2], "Max": null, "Min": null,
            "Mean": null, "Norm": null, "requires_grad": false, "data_name": "empty.pt"})
        }
        _ => tensor(dice, name, with_file),
    }
}

fn dump(dice: &mut Rng) -> Value {
    let with_files = dice.usize(..2) == 0;
    let mut data = serde_json::Map::new();
    for number in 0..2 {
        let name = format!("Torch.exp.{number}.forward");
        let record = json!({
            "input_args": [value(dice, "a", with_files), value(dice, "b", with_files)],
            "input_kwargs": {"out": value(dice, "c", with_files)},
            "output": [tensor(dice, "d", with_files)],
        });
        data.insert(name, record);
        let name = format!("Module.fc.Linear.backward.{number}");
        let record =
            json!({"input": [tensor(dice, "e", with_files)], "output": [value(dice, "f", with_files)]});
        data.insert(name, record);
        let record = json!({
            "input_args": [tensor(dice, "h", with_files)],
            "input_kwargs": {},
            "parameters": {"weight": tensor(dice, "i", with_files)},
            "output": [tensor(dice, "j", with_files)],
        });
        data.insert(format!("Module.fc.Linear.forward.{number}"), record);
        let number = json!({"type": "float", "value": 0.5});
        let record = json!({"input_args": [tensor(dice, "k", with_files)], "output": [number]});
        data.insert(format!("Tensor.item.{}.forward", data.len()), record);
    }
    let weight = tensor(dice, "g", with_files);
    data.insert("Module.fc.Linear.parameters_grad".to_owned(), json!({"weight": [weight], "bias": [null]}));
    let task = if with_files { "tensor" } else { "statistics" };
    json!({"task": task, "level": "mix", "framework": "pytorch", "dump_data_dir": null, "data": data})
}

fn write(step: &Path, dumps: &[Value]) {
    for (rank, dump) in dumps.iter().enumerate() {
        let dir = step.join(format!("rank{rank}"));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("dump.json"), dump.to_string()).unwrap();
        let mut all = Vec::new();
        tensors(&dump["data"], "/data", &mut all);
        fs::create_dir_all(dir.join("dump_tensor_data")).unwrap();
        for name in all.iter().filter_map(|at| dump.pointer(at).unwrap()["data_name"].as_str()) {
            fs::write(dir.join("dump_tensor_data").join(name), npy()).unwrap();
        }
    }
}

/// A file with two float32.
fn npy() -> Vec<u8> {
    let mut header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }".to_owned();
    while !(10 + header.len() + 1).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    file.extend(header.as_bytes());
    file.extend([0; 8]);
    file
}

/// Paths of all tensors with elements, as JSON pointers.
fn tensors(json: &Value, at: &str, found: &mut Vec<String>) {
    match json {
        Value::Object(members) if members.contains_key("dtype") => {
            found.extend((json["shape"] != json!([0, 2])).then(|| at.to_owned()));
        }
        Value::Object(members) => {
            for (key, member) in members {
                tensors(member, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(elements) => {
            for (number, element) in elements.iter().enumerate() {
                tensors(element, &format!("{at}/{number}"), found);
            }
        }
        _ => {}
    }
}

fn pick<'a>(dice: &mut Rng, found: &'a [String]) -> &'a str {
    &found[dice.usize(..found.len())]
}

/// Spoils one thing and says what.
fn spoil(step: &Path, dumps: &[Value], dice: &mut Rng) -> String {
    let rank = dice.usize(..dumps.len());
    let dir = step.join(format!("rank{rank}"));
    let mut dump = dumps[rank].clone();
    let mut all = Vec::new();
    tensors(&dump["data"], "/data", &mut all);
    let at = pick(dice, &all).to_owned();
    let tensor = dump.pointer_mut(&at).unwrap();
    let records: Vec<String> = dumps[rank]["data"].as_object().unwrap().keys().cloned().collect();
    let figure = ["Max", "Min"][dice.usize(..2)];
    let what = match dice.usize(..25) {
        0 => {
            tensor[figure] = Value::Null;
            "null figure"
        }
        1 => {
            tensor.as_object_mut().unwrap().remove(figure);
            "no figure"
        }
        2 => {
            tensor[figure] = json!("what");
            "a figure that is a word"
        }
        3 => {
            tensor[figure] = json!(["NaN", "inf", "-inf"][dice.usize(..3)]);
            // A bare -Inf may be a mask.
            tensor["Max"] = json!("NaN");
            "not finite"
        }
        4 => {
            for key in ["Max", "Min", "Mean", "Norm"] {
                tensor.as_object_mut().unwrap().remove(key);
            }
            tensor["unmeasured"] = json!("a nested tensor");
            "unmeasured"
        }
        5 => {
            for key in ["dtype", "Max", "Min"] {
                tensor.as_object_mut().unwrap().remove(key);
            }
            "neither dtype nor figures"
        }
        6 => {
            tensor[figure] = json!([1.0]);
            "a figure that is a list"
        }
        7 => {
            let with_file = tensor.get("data_name").is_some();
            tensor["data_name"] = Value::Null;
            if !with_file {
                tensor["Max"] = Value::Null;
            }
            "no file"
        }
        8 => {
            let name = &records[dice.usize(..records.len())];
            dump["data"][name] = [Value::Null, json!(5), json!("gone"), json!([])][dice.usize(..4)].clone();
            "no record"
        }
        9 => {
            let name = records.iter().find(|name| !name.contains("parameters_grad")).unwrap();
            dump["data"][name]["output"] = [Value::Null, json!(5), json!("x")][dice.usize(..3)].clone();
            "no output"
        }
        10 => {
            let name = records.iter().find(|name| !name.contains("parameters_grad")).unwrap();
            dump["data"][name].as_object_mut().unwrap().remove("output");
            "output removed"
        }
        11 => {
            let text = dump.to_string();
            fs::write(dir.join("dump.json"), &text[..dice.usize(..text.len() - 1)]).unwrap();
            return format!("rank {rank}: cut");
        }
        12 => {
            fs::remove_file(dir.join("dump.json")).unwrap();
            return format!("rank {rank}: dump.json removed");
        }
        13 => {
            tensor["Max"] = json!(true);
            tensor["dtype"] = json!("torch.float32");
            "true for a number"
        }
        14 => {
            tensor[["Mean", "Norm"][dice.usize(..2)]] = json!(["NaN", "inf", "-inf"][dice.usize(..3)]);
            "mean or norm not finite"
        }
        15 => {
            let name = records.iter().find(|name| name.starts_with("Module.fc.Linear.forward"));
            let Some(name) = name else { return spoil(step, dumps, dice) };
            let weight = &mut dump["data"][name]["parameters"]["weight"];
            weight[figure] = json!(["NaN", "inf", "-inf"][dice.usize(..3)]);
            weight["requires_grad"] = json!(true);
            "a parameter"
        }
        16 => {
            let name = records.iter().find(|name| !name.contains("parameters_grad")).unwrap();
            let word = ["NaN", "inf", "-inf"][dice.usize(..3)];
            let number = json!({"type": "float", "value": word});
            dump["data"][name]["output"] =
                [json!([number.clone()]), json!([[number]])][dice.usize(..2)].clone();
            "a number as result"
        }
        17 => {
            // The last one wins in most readers.
            let text = dump.to_string();
            let at: Vec<usize> = text.match_indices("\"Max\":").map(|(at, _)| at).collect();
            let at = at[dice.usize(..at.len())];
            let first = ["\"Max\":NaN,", "\"Min\":null,", "\"dtype\":\"x\","][dice.usize(..3)];
            fs::write(dir.join("dump.json"), format!("{}{first}{}", &text[..at], &text[at..])).unwrap();
            return format!("rank {rank}: a key twice");
        }
        18 => {
            let name = &records[dice.usize(..records.len())];
            let bad = "{\"dtype\":\"torch.float32\",\"shape\":[2],\"Max\":NaN,\"Min\":NaN}";
            let twice = format!("\"data\":{{\"{name}\":{{\"output\":[{bad}]}},");
            let text = dump.to_string().replacen("\"data\":{", &twice, 1);
            fs::write(dir.join("dump.json"), text).unwrap();
            return format!("rank {rank}: {name} twice");
        }
        19..22 => {
            let Some(file) = tensor.get("data_name").and_then(Value::as_str) else {
                return spoil(step, dumps, dice);
            };
            let path = dir.join("dump_tensor_data").join(file);
            match dice.usize(..7) {
                0 => fs::remove_file(&path).unwrap(),
                1 => fs::write(&path, "").unwrap(),
                2 => fs::write(&path, "abc").unwrap(),
                3 => fs::write(&path, &npy()[..130]).unwrap(),
                4 => {
                    fs::remove_file(&path).unwrap();
                    fs::create_dir(&path).unwrap();
                }
                5 => fs::remove_dir_all(dir.join("dump_tensor_data")).unwrap(),
                _ => {
                    tensor["data_name"] = json!(["", "..", ".", "../dump.json", "gone.npy"][dice.usize(..5)]);
                    fs::write(dir.join("dump.json"), dump.to_string()).unwrap();
                }
            }
            return format!("rank {rank} {at}: file");
        }
        22 => {
            let names = ["other", "copy/rank0", "rank0/more", "ranks", "step1/rank0"];
            let other = step.join(names[dice.usize(..names.len())]);
            fs::create_dir_all(&other).unwrap();
            fs::write(other.join("dump.json"), dump.to_string()).unwrap();
            return format!("{} left out", other.display());
        }
        23 => {
            let mut deep = tensor.clone();
            deep["Max"] = json!("NaN");
            for _ in 0..100 {
                deep = json!([deep]);
            }
            let name = records.iter().find(|name| !name.contains("parameters_grad")).unwrap();
            dump["data"][name]["output"] = deep;
            "too deep"
        }
        _ if rank + 1 < dumps.len() => {
            fs::remove_dir_all(&dir).unwrap();
            return format!("rank {rank} removed");
        }
        _ => {
            dump["data"] = json!({});
            "no data"
        }
    };
    fs::write(dir.join("dump.json"), dump.to_string()).unwrap();
    format!("rank {rank} {at}: {what}")
}

/// Nothing if no rank can be read, which is an error and no answer.
fn status(step: &Path) -> Option<Status> {
    analyze(step, &Options::default(), &Silent).ok().map(|outcome| outcome.status())
}

/// Whether the answer names something that is not finite and does no harm.
fn is_told_as_harmless(step: &Path) -> bool {
    let outcome = analyze(step, &Options::default(), &Silent).unwrap();
    assert!(!outcome.headline().contains("no NaN and no Inf"), "{}", outcome.headline());
    !outcome.harmless().is_empty()
}

fn assert_not_clean(step: &Path, what: &str, seed: u64) {
    let found = status(step);
    let is_told =
        || ["not finite", "as result"].iter().any(|end| what.ends_with(end)) && is_told_as_harmless(step);
    assert!(found > Some(Status::Warning) || found.is_none() || is_told(), "seed {seed}: {what}: {found:?}");
}

#[test]
fn whatever_is_not_known_to_be_finite_is_not_clean() {
    let root = tempfile::tempdir().unwrap();
    for seed in 1..=1000_u64 {
        let mut dice = Rng::with_seed(seed);
        let dumps: Vec<Value> = (0..=dice.usize(..3)).map(|_| dump(&mut dice)).collect();
        let step = root.path().join("step0");
        write(&step, &dumps);
        if seed % 8 == 1 {
            assert_eq!(status(&step), Some(Status::Clean), "seed {seed}");
        }
        let what = spoil(&step, &dumps, &mut dice);
        assert_not_clean(&step, &what, seed);
        fs::remove_dir_all(&step).unwrap();
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn the_recorded_dump_without_anomaly() {
    let golden =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/nan_analyze/no_anomaly/input");
    assert_eq!(status(&golden), Some(Status::Clean));
    let root = tempfile::tempdir().unwrap();
    for seed in 1..=300_u64 {
        let mut dice = Rng::with_seed(seed);
        let step = root.path().join("step0");
        copy(&golden, &step);
        let dumps: Vec<Value> = (0..2)
            .map(|rank| {
                let text = fs::read_to_string(step.join(format!("rank{rank}/dump.json"))).unwrap();
                // The memory that `empty` returns is NaN there, which JSON has no word for; it is harmless by rule.
                serde_json::from_str(&text.replace("NaN", "1e30")).unwrap()
            })
            .collect();
        let what = spoil(&step, &dumps, &mut dice);
        assert_not_clean(&step, &what, seed);
        fs::remove_dir_all(&step).unwrap();
    }
}

#[test]
fn what_was_not_measured_is_counted_and_named() {
    let root = tempfile::tempdir().unwrap();
    let tensor = |max: Value| json!({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": max, "Min": -1.0});
    let nested = json!({"type": "torch.Tensor", "dtype": "torch.float32", "unmeasured": "a nested tensor"});
    let data = json!({
        "Torch.exp.0.forward": {"input_args": [tensor(json!(1.0))], "output": [tensor(Value::Null), nested]},
        "Torch.log.0.forward": {"input_args": [tensor(json!(1.0))], "output": [tensor(json!(1.0))]},
    });
    let dump = json!({"task": "statistics", "level": "L1", "framework": "pytorch", "data": data});
    write(&root.path().join("step0"), &[dump.clone(), dump.clone(), dump]);
    fs::remove_dir_all(root.path().join("step0/rank1")).unwrap();
    let outcome = analyze(&root.path().join("step0"), &Options::default(), &Silent).unwrap();
    assert_eq!(outcome.status(), Status::Incomplete);
    let text = outcome.answer().text(&outcome.sections());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "Incomplete: no NaN and no Inf in what was measured on 2 ranks, but 4 values were not measured, there is no dump \
         of 1 rank"
    );
    let first = "    rank 0: Torch.exp.0.forward: output 0 has no Max and Min";
    assert!(lines.contains(&first), "{text}");
    assert!(lines.contains(&"  4 values of which nobody can say that they are finite"), "{text}");
    let report: Value = serde_json::from_str(&outcome.json()).unwrap();
    assert_eq!((&report["status"], &report["unmeasured"]), (&json!("incomplete"), &json!(4)));
    assert_eq!((&report["missing_ranks"], &report["complete"]), (&json!([1]), &json!(false)));
}

#[test]
fn a_step_that_is_not_complete_is_told_before_clean_ones() {
    let root = tempfile::tempdir().unwrap();
    let mut dice = Rng::with_seed(11);
    let whole = dump(&mut dice);
    let mut torn = whole.clone();
    torn["data"]["Torch.exp.0.forward"]["output"] = Value::Null;
    for (step, dump) in [(0, &whole), (1, &torn), (2, &whole), (3, &torn)] {
        write(&root.path().join(format!("step{step}")), std::slice::from_ref(dump));
    }
    fs::create_dir(root.path().join("step4")).unwrap();
    let outcome = analyze(root.path(), &Options::default(), &Silent).unwrap();
    assert_eq!(outcome.status(), Status::Incomplete);
    assert!(outcome.step.ends_with("step1"));
    assert_eq!(
        (outcome.clean_steps.len(), outcome.incomplete_steps.len(), outcome.left_out.len()),
        (2, 1, 1)
    );
}

const NAN: &str = "NaN";

fn made_of(max: impl Into<Value>) -> Value {
    let max: Value = max.into();
    json!({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": max, "Min": -1.0, "Mean": 0.5,
        "Norm": 1.5, "requires_grad": false})
}

/// One rank with these records, and one that is finite.
fn analyzed(data: &Value, rules: Rules) -> Outcome {
    let root = tempfile::tempdir().unwrap();
    let dump = json!({"task": "statistics", "level": "mix", "framework": "pytorch", "data": data});
    write(root.path(), &[dump]);
    analyze(root.path(), &Options { rules, ..Options::default() }, &Silent).unwrap()
}

fn told(outcome: &Outcome) -> Vec<(&str, &str)> {
    outcome.origins.iter().map(|origin| (&*origin.operation, origin.kind.as_str())).collect()
}

fn excused(outcome: &Outcome) -> Vec<Rule> {
    outcome.harmless().iter().map(|excused| excused.rule).collect()
}

#[test]
fn parameters_are_told_once_though_results_are_finite() {
    let call = json!({"input_args": [made_of(json!(1.0))], "parameters": {"weight": made_of(json!(NAN))},
        "output": [made_of(json!(2.0))]});
    let data = json!({"Module.fc.Linear.forward.0": call, "Module.fc.Linear.forward.1": call});
    let outcome = analyzed(&data, Rules::default());
    assert_eq!(told(&outcome), [("Module.fc.Linear.forward.0", "parameter")]);
    assert_eq!(outcome.origins[0].parameter.as_deref(), Some("fc.weight"));
    assert!(outcome.origins[0].reason.ends_with("its results are finite"), "{}", outcome.origins[0].reason);
    assert_eq!(outcome.ranks[0].anomalies, 2);
}

#[test]
fn what_comes_from_nowhere_is_told_or_listed() {
    let call = |max: Value| json!({"input_args": [made_of(max)], "output": [made_of(json!(2.0))]});
    let linear =
        json!({"Functional.linear.0.forward": call(json!(NAN)), "Torch.add.0.forward": call(json!(NAN))});
    assert_eq!(told(&analyzed(&linear, Rules::default())), [("Functional.linear.0.forward", "input")]);
    // It is not the culprit where something was made.
    let mut made = linear;
    made["Torch.log.0.forward"] =
        json!({"input_args": [made_of(json!(1.0))], "output": [made_of(json!("inf"))]});
    let outcome = analyzed(&made, Rules::default());
    assert_eq!(told(&outcome), [("Torch.log.0.forward", "produced")]);
    assert_eq!(outcome.absorbed().0, 2);
    assert!(outcome.answer().text(&outcome.sections()).contains("\nAlso not finite on the way in"));
    // Calls that are made for it, and the module around.
    let replaced =
        json!({"Torch.nan_to_num.0.forward": call(json!(NAN)), "Module.a.A.forward.0": call(json!(NAN))});
    let outcome = analyzed(&replaced, Rules::default());
    assert_eq!((outcome.status(), excused(&outcome)), (Status::Clean, vec![Rule::Absorbed; 2]));
    let outcome = analyzed(&replaced, Rules::without(&[Rule::Absorbed]));
    assert_eq!(told(&outcome), [("Torch.nan_to_num.0.forward", "input")]);
    // Infinities have a limit, NaN has none.
    let clamped = |max| json!({"Torch.clamp.0.forward": call(max)});
    assert_eq!(excused(&analyzed(&clamped(json!("inf")), Rules::default())), [Rule::Absorbed]);
    assert_eq!(analyzed(&clamped(json!(NAN)), Rules::default()).status(), Status::Anomaly);
}

#[test]
fn masks_and_numbers_that_are_given_are_listed() {
    let mut mask = made_of(json!(1.0));
    mask["Min"] = json!("-inf");
    let finite = made_of(json!(2.0));
    let data = json!({
        "Functional.scaled_dot_product_attention.0.forward": {"input_args": [mask], "output": [finite]},
        "Torch.softmax.0.forward": {"input_args": [mask], "output": [finite]},
    });
    let outcome = analyzed(&data, Rules::default());
    assert_eq!((outcome.status(), excused(&outcome)), (Status::Clean, vec![Rule::Mask]));
    assert_eq!(outcome.headline(), "no harmful NaN or Inf on 1 rank");
    assert_eq!(analyzed(&data, Rules::without(&[Rule::Mask])).status(), Status::Anomaly);
    // No gradient is a mask.
    let gradient = json!({"Functional.linear.0.backward": {"input": [mask], "output": [finite]}});
    assert_eq!(told(&analyzed(&gradient, Rules::default())), [("Functional.linear.0.backward", "input")]);
    let bound = json!({"type": "float", "value": "inf"});
    let data = json!({"Torch.clamp.0.forward": {"input_args": [finite, bound], "output": [finite]}});
    let outcome = analyzed(&data, Rules::default());
    assert_eq!((outcome.status(), excused(&outcome)), (Status::Clean, vec![Rule::Argument]));
    let outcome = analyzed(&data, Rules::without(&[Rule::Argument]));
    assert_eq!(told(&outcome), [("Torch.clamp.0.forward", "input")]);
}

#[test]
fn what_buffers_held_is_listed() {
    let rank = json!({"type": "int", "value": 0});
    let received = json!({"input_args": [made_of(json!(NAN)), rank], "output": [made_of(json!(2.0))]});
    let outcome = analyzed(&json!({"Distributed.recv.0.forward": received}), Rules::default());
    assert_eq!(excused(&outcome), [Rule::ReceiveBuffer]);
    assert!(outcome.origins.is_empty());
}

#[test]
fn a_norm_that_does_not_fit_is_excused_only_where_elements_are_large() {
    let output = |max: f64| {
        let mut output = made_of(json!(max));
        output["Norm"] = json!("inf");
        json!({"Torch.mul.0.forward": {"input_args": [], "output": [output]}})
    };
    let outcome = analyzed(&output(1e30), Rules::default());
    assert_eq!((outcome.status(), excused(&outcome)), (Status::Clean, vec![Rule::NormOverflow]));
    let outcome = analyzed(&output(1e30), Rules::without(&[Rule::NormOverflow]));
    assert_eq!((outcome.status(), outcome.ranks[0].unmeasured), (Status::Incomplete, 1));
    assert_eq!(told(&analyzed(&output(1.0), Rules::default())), [("Torch.mul.0.forward", "produced")]);
}

#[test]
fn directories_with_a_dump_beside_steps_are_named() {
    let root = tempfile::tempdir().unwrap();
    let whole = dump(&mut Rng::with_seed(11));
    write(&root.path().join("step0"), std::slice::from_ref(&whole));
    fs::create_dir(root.path().join("notes")).unwrap();
    assert_eq!(status(root.path()), Some(Status::Clean));
    for other in ["stepX", "old/step0"] {
        write(&root.path().join(other), std::slice::from_ref(&whole));
    }
    let outcome = analyze(root.path(), &Options::default(), &Silent).unwrap();
    assert_eq!((outcome.status(), outcome.left_out.len()), (Status::Incomplete, 2));
    let text = outcome.answer().text(&outcome.sections());
    assert!(text.contains("stepX is left out"), "{text}");
}
