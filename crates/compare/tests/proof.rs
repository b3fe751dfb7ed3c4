//! "Identical" is a proof: whatever is changed in one place of one side, the answer is another one, both ways round.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its helpers too")]

use std::fs;
use std::path::{Path, PathBuf};

use msprobe_compare::console::Silent;
use msprobe_compare::run::{Form, Formats, Mappings, Options, Outcome, StackSource, compare_dumps};
use msprobe_compare::verdict::{Allowed, GapKind, Status, Tolerances};
use serde_json::{Map, Value, json};

fn options(output: &Path, allowed: Allowed) -> Options {
    Options {
        form: Form::Newest,
        output: output.to_owned(),
        formats: Formats::default(),
        stack: StackSource::Off,
        advisor: false,
        fuzzy: false,
        mappings: Mappings::default(),
        log_rows: false,
        first_difference: false,
        tolerances: Tolerances::default(),
        allowed,
    }
}

/// Two sides in a directory of their own.
struct Sides {
    dir: tempfile::TempDir,
}

impl Sides {
    fn new() -> Sides {
        Sides { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, side: &str) -> PathBuf {
        self.dir.path().join(side)
    }

    fn write(&self, place: &str, dump: &Value) {
        let path = self.path(place).join("dump.json");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, dump.to_string()).unwrap();
    }

    fn compare(&self, target: &str, golden: &str) -> Result<Outcome, String> {
        self.compare_allowing(target, golden, "")
    }

    fn compare_allowing(&self, target: &str, golden: &str, allowed: &str) -> Result<Outcome, String> {
        let options = options(&self.path("out"), Allowed::parse(allowed).unwrap());
        compare_dumps(&self.path(target), &self.path(golden), &options, &Silent)
            .map_err(|error| error.message)
    }
}

fn tensor(shape: &[usize], max: f64) -> Value {
    json!({"type": "torch.Tensor", "dtype": "torch.float32", "shape": shape, "Max": max, "Min": -max, "Mean": 0.25 * max,
           "Norm": 3.0 * max, "requires_grad": false})
}

fn integer(max: i64) -> Value {
    json!({"type": "torch.Tensor", "dtype": "torch.int64", "shape": [4], "Max": max, "Min": 0, "Mean": 1.5, "Norm": 3.0,
           "requires_grad": false})
}

/// A small run with everything a record can hold.
fn run() -> Value {
    json!({"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": null, "data": {
        "Functional.embedding.0.forward": {
            "input_args": [integer(9_007_199_254_740_993), tensor(&[10, 4], 2.0)],
            "input_kwargs": {"padding_idx": {"type": "int", "value": 3}, "scale": {"type": "float", "value": 0.3606},
                             "name": {"type": "str", "value": "table"}, "shape": {"type": "torch.Size", "value": [2, 3]},
                             "requires_grad": {"type": "bool", "value": true}},
            "output": [tensor(&[4, 4], 1.5)], "is_recompute": false},
        "Module.fc.Linear.forward.0": {
            "input_args": [tensor(&[4, 4], 1.5)], "input_kwargs": {},
            "output": [tensor(&[4, 2], 0.5), null], "parameters": {"weight": tensor(&[2, 4], 0.7), "bias": tensor(&[2], 0.1)},
            "is_recompute": false},
        "Tensor.item.0.forward": {
            "input_args": [tensor(&[], 0.5)], "input_kwargs": {}, "output": [{"type": "float", "value": 0.5}],
            "is_recompute": false},
        "Tensor.any.0.forward": {
            "input_args": [tensor(&[4, 2], 0.5)], "input_kwargs": {},
            "output": [{"type": "bool", "value": true}, {"type": "str", "value": "a"}, {"type": "int", "value": 1}],
            "is_recompute": false},
        "Module.fc.Linear.backward.0": {"input": [tensor(&[4, 2], 0.2)], "output": [tensor(&[4, 4], 0.3)], "is_recompute": false},
        "Module.fc.Linear.parameters_grad": {"weight": [tensor(&[2, 4], 0.01)], "bias": [tensor(&[2], 0.02)]},
    }})
}

/// The status of one way, or `None` where the comparison was refused.
fn statuses(sides: &Sides) -> [Option<Status>; 2] {
    [("target", "golden"), ("golden", "target")]
        .map(|(target, golden)| sides.compare(target, golden).ok().map(|outcome| outcome.status()))
}

/// Changes `/data/…` of the target.
fn changed(pointer: &str, value: Value) -> Value {
    let mut dump = run();
    *dump.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
    dump
}

fn removed(pointer: &str, key: &str) -> Value {
    let mut dump = run();
    dump.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(key).unwrap();
    dump
}

const LINEAR: &str = "/data/Module.fc.Linear.forward.0";

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

/// A source of numbers that is the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 33) as usize % end
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

fn pointers(value: &Value, here: &str, found: &mut Vec<String>) {
    let mut add = |key: &str, inner: &Value| {
        let place = format!("{here}/{}", key.replace('~', "~0").replace('/', "~1"));
        pointers(inner, &place, found);
        found.push(place);
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(key, inner)| add(key, inner)),
        Value::Array(elements) => {
            elements.iter().enumerate().for_each(|(index, inner)| add(&index.to_string(), inner));
        }
        _ => {}
    }
}

/// Changes, removes, adds or retypes one random place of the records. `None` if nothing has changed.
fn mutated(dump: &Value, random: &mut Random) -> Option<(String, Value)> {
    let mut dump = dump.clone();
    let data = dump.get("data")?.clone();
    let mut all = Vec::new();
    pointers(&data, "", &mut all);
    if all.is_empty() {
        return None;
    }
    let place = random.one_of(&all).clone();
    let (parent, key) = place.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/").replace("~0", "~");
    // Where data lies is compared by what lies there.
    if key == "data_name" {
        return None;
    }
    let old = data.pointer(&place).unwrap().clone();
    let others = [
        json!(null),
        json!("text"),
        json!(7),
        json!(2.5),
        json!(true),
        json!([]),
        json!({}),
        json!({"type": "float", "value": 1.0}),
    ];
    let new = match (random.below(4), &old) {
        (0, _) => None,
        (1, _) => Some(random.one_of(&others).clone()),
        (_, Value::Bool(old)) => Some((!old).into()),
        (_, Value::Number(old)) => Some(match (old.as_i64(), old.as_f64()) {
            (Some(old), _) => old.wrapping_add(*random.one_of(&[1, -1, 1000])).into(),
            (None, Some(old)) => random.one_of(&[json!(old * 2.0 + 1.0), json!(-old), json!(0.0)]).clone(),
            (None, None) => return None,
        }),
        (_, Value::String(old)) => Some(format!("{old}x").into()),
        _ => None,
    };
    let holder = dump.get_mut("data")?.pointer_mut(parent)?;
    match (holder, new) {
        (Value::Object(members), Some(new)) => {
            members.insert(key, new);
        }
        (Value::Object(members), None) if random.below(2) == 0 => {
            members.insert("extra".to_owned(), random.one_of(&others).clone());
        }
        (Value::Object(members), None) => {
            members.remove(&key);
        }
        (Value::Array(elements), Some(new)) => elements[key.parse::<usize>().unwrap()] = new,
        (Value::Array(elements), None) if random.below(2) == 0 => elements.push(old),
        (Value::Array(elements), None) => {
            elements.remove(key.parse::<usize>().unwrap());
        }
        _ => return None,
    }
    (dump["data"] != data).then_some((place, dump))
}

fn recorded_dumps() -> Vec<Value> {
    let mut dumps = Vec::new();
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden")];
    while let Some(directory) = open.pop() {
        let mut entries: Vec<PathBuf> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            let is_small = || path.metadata().unwrap().len() < 60_000;
            if path.is_dir() {
                open.push(path);
            } else if path.file_name().unwrap() == "dump.json" && is_small() {
                let dump = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap_or_default();
                let is_statistics = |dump: &Value| dump["task"] == "statistics" && dump["data"].is_object();
                dumps.extend(Some(dump).filter(is_statistics));
            }
        }
    }
    assert!(dumps.len() > 30, "{}", dumps.len());
    dumps
}

/// `MSPROBE_PROOF_CASES` for more than a test can afford.
fn cases() -> u64 {
    std::env::var("MSPROBE_PROOF_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(2000)
}

#[test]
fn any_change_of_one_leaf_is_noticed_both_ways_round() {
    let mut dumps = recorded_dumps();
    dumps.extend(std::iter::repeat_n(run(), dumps.len()));
    let sides = Sides::new();
    let mut tried = 0;
    for seed in 0..cases() {
        let mut random = Random(seed);
        let dump = random.one_of(&dumps).clone();
        let Some((place, other)) = mutated(&dump, &mut random) else { continue };
        sides.write("target", &dump);
        sides.write("golden", &other);
        tried += 1;
        for status in statuses(&sides) {
            assert_ne!(status, Some(Status::Identical), "seed {seed}: {place} was changed");
        }
    }
    assert!(tried > cases() / 2, "{tried}");
}

/// An `.npy` file of little-endian values.
fn npy(descr: &str, shape: &[usize], bytes: &[u8]) -> Vec<u8> {
    let sizes: String = shape.iter().map(|size| format!("{size}, ")).collect();
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({sizes}), }}");
    header.push_str(&" ".repeat(63 - (header.len() + 10) % 64));
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(bytes);
    file
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// A run of real data: one call with one tensor in and one out.
fn real_run() -> Value {
    let tensor = |file: &str| {
        json!({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [3], "Max": 3.0, "Min": 1.0, "Mean": 2.0,
               "Norm": 3.741_657_4, "requires_grad": false, "data_name": file})
    };
    json!({"task": "tensor", "data": {"Torch.relu.0.forward": {
        "input_args": [tensor("Torch.relu.0.forward.input.0.npy")], "input_kwargs": {},
        "output": [tensor("Torch.relu.0.forward.output.0.npy")]}}})
}

const REAL_OUTPUT: &str = "/data/Torch.relu.0.forward/output/0";

impl Sides {
    fn of_real_data() -> Sides {
        let sides = Sides::new();
        for side in ["target", "golden"] {
            sides.write(side, &real_run());
            let directory = sides.path(side).join("dump_tensor_data");
            fs::create_dir_all(&directory).unwrap();
            for file in ["Torch.relu.0.forward.input.0.npy", "Torch.relu.0.forward.output.0.npy"] {
                fs::write(directory.join(file), npy("<f4", &[3], &floats(&[1.0, 2.0, 3.0]))).unwrap();
            }
        }
        sides
    }

    fn replace_output(&self, file: Option<&[u8]>) {
        let path = self.path("target/dump_tensor_data/Torch.relu.0.forward.output.0.npy");
        match file {
            Some(bytes) => fs::write(path, bytes).unwrap(),
            None => fs::remove_file(path).unwrap(),
        }
    }
}

#[test]
fn files_that_are_not_what_their_records_say_are_not_compared() {
    let sides = Sides::of_real_data();
    assert_eq!(statuses(&sides), [Some(Status::Identical); 2]);
    let whole = npy("<f4", &[3], &floats(&[1.0, 2.0, 3.0]));
    let integers: Vec<u8> = [1_i32, 2, 3].iter().flat_map(|value| value.to_le_bytes()).collect();
    let cases: Vec<(&str, Option<Vec<u8>>, Status)> = vec![
        ("more elements", Some(npy("<f4", &[4], &floats(&[1.0, 2.0, 3.0, 9.0]))), Status::Incomplete),
        ("another shape", Some(npy("<f4", &[3, 1], &floats(&[1.0, 2.0, 3.0]))), Status::Incomplete),
        ("another dtype", Some(npy("<i4", &[3], &integers)), Status::Incomplete),
        ("a narrower dtype", Some(npy("<f2", &[3], &[0, 0x3c, 0, 0x40, 0, 0x42])), Status::Incomplete),
        ("missing", None, Status::Incomplete),
        ("cut", Some(whole[..whole.len() - 4].to_vec()), Status::Incomplete),
        ("empty", Some(Vec::new()), Status::Incomplete),
        ("other values", Some(npy("<f4", &[3], &floats(&[1.0, 2.0, 4.0]))), Status::Diverged),
        ("one bit", Some(npy("<f4", &[3], &floats(&[1.0, 2.0, 3.000_000_2]))), Status::WithinTolerance),
    ];
    for (what, file, expected) in cases {
        let sides = Sides::of_real_data();
        sides.replace_output(file.as_deref());
        assert_eq!(statuses(&sides), [Some(expected); 2], "{what}");
    }
}

#[test]
fn records_that_name_no_file_are_not_compared() {
    let with = |data_name: Value| {
        let mut dump = real_run();
        dump.pointer_mut(REAL_OUTPUT).unwrap()["data_name"] = data_name;
        dump
    };
    let mut absent = real_run();
    absent.pointer_mut(REAL_OUTPUT).unwrap().as_object_mut().unwrap().remove("data_name");
    for dump in [with(json!(null)), with(json!("")), with(json!(5)), with(json!("elsewhere.npy")), absent] {
        let sides = Sides::of_real_data();
        sides.write("target", &dump);
        assert_eq!(statuses(&sides), [Some(Status::Incomplete); 2], "{}", dump.pointer(REAL_OUTPUT).unwrap());
    }
}

#[test]
fn any_change_of_one_leaf_of_real_data_is_noticed_both_ways_round() {
    let sides = Sides::of_real_data();
    for seed in 0..cases() / 4 {
        let mut random = Random(seed);
        let Some((place, other)) = mutated(&real_run(), &mut random) else { continue };
        sides.write("target", &other);
        for status in statuses(&sides) {
            assert_ne!(status, Some(Status::Identical), "seed {seed}: {place} was changed");
        }
    }
}

/// The bytes of elements of any type.
macro_rules! bytes_of {
    ($type:ty: $($value:expr),*) => { [$($value as $type),*].iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>() };
}

impl Sides {
    /// Real data whose output is of a dtype, with its elements on each side; what is recorded of them is equal.
    fn of_output(dtype: &str, descr: &str, shape: &[usize], [target, golden]: [&[u8]; 2]) -> Sides {
        let sides = Sides::of_real_data();
        for (side, bytes) in [("target", target), ("golden", golden)] {
            let mut dump = real_run();
            let output = dump.pointer_mut(REAL_OUTPUT).unwrap();
            output["dtype"] = dtype.into();
            output["shape"] = json!(shape);
            sides.write(side, &dump);
            let path = sides.path(side).join("dump_tensor_data/Torch.relu.0.forward.output.0.npy");
            fs::write(path, npy(descr, shape, bytes)).unwrap();
        }
        sides
    }
}

#[test]
fn every_element_of_real_data_is_compared_exactly() {
    const EXACT: i64 = 1 << 53;
    let integers = |values: [i64; 3]| bytes_of!(i64: values[0], values[1], values[2]);
    let doubles = |values: [f64; 3]| bytes_of!(f64: values[0], values[1], values[2]);
    let singles = |values: [f32; 3]| bytes_of!(f32: values[0], values[1], values[2]);
    let many: Vec<i64> = (0..100_000_i64).map(|index| index.wrapping_mul(0x1234_5678_9abc_def1)).collect();
    let mut one_off = many.clone();
    one_off[77_777] -= 1;
    let long = |values: &[i64]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let (infinity, nan) = (f32::INFINITY, f32::NAN);
    type Case<'a> = (&'a str, &'a str, &'a str, &'a [usize], Vec<u8>, Vec<u8>, Status);
    let cases: Vec<Case<'_>> = vec![
        (
            "beyond 2^53",
            "torch.int64",
            "<i8",
            &[3],
            integers([5, EXACT, 1 << 60]),
            integers([5, EXACT + 1, 1 << 60]),
            Status::Diverged,
        ),
        (
            "2^60 and 100 more",
            "torch.int64",
            "<i8",
            &[3],
            integers([5, 6, 1 << 60]),
            integers([5, 6, (1 << 60) + 100]),
            Status::Diverged,
        ),
        ("one of many", "torch.int64", "<i8", &[100_000], long(&many), long(&one_off), Status::Diverged),
        (
            "0-d",
            "torch.int64",
            "<i8",
            &[],
            bytes_of!(i64: EXACT),
            bytes_of!(i64: EXACT + 1),
            Status::Diverged,
        ),
        (
            "uint64",
            "torch.uint64",
            "<u8",
            &[2],
            bytes_of!(u64: 1, u64::MAX),
            bytes_of!(u64: 1, u64::MAX - 1),
            Status::Diverged,
        ),
        (
            "nothing beside the others",
            "torch.float64",
            "<f8",
            &[3],
            doubles([1e300, 1e-300, -1e300]),
            doubles([1e300, 2e-300, -1e300]),
            Status::WithinTolerance,
        ),
        (
            "sign of zero",
            "torch.float32",
            "<f4",
            &[3],
            singles([0.0, 1.0, 2.0]),
            singles([-0.0, 1.0, 2.0]),
            Status::WithinTolerance,
        ),
        (
            "infinities of other signs",
            "torch.float32",
            "<f4",
            &[3],
            singles([infinity, -infinity, 2.0]),
            singles([-infinity, infinity, 2.0]),
            Status::Diverged,
        ),
        (
            "complex with NaN",
            "torch.complex64",
            "<c8",
            &[1],
            bytes_of!(f32: nan, 1.0),
            bytes_of!(f32: nan, 2.0),
            Status::Diverged,
        ),
        (
            "NaN at the same place",
            "torch.float32",
            "<f4",
            &[3],
            singles([nan, 1.0, infinity]),
            singles([-nan, 1.0, infinity]),
            Status::Identical,
        ),
    ];
    for (what, dtype, descr, shape, target, golden, expected) in cases {
        let sides = Sides::of_output(dtype, descr, shape, [&target, &golden]);
        assert_eq!(statuses(&sides), [Some(expected); 2], "{what}");
        let sides = Sides::of_output(dtype, descr, shape, [&golden, &golden]);
        assert_eq!(statuses(&sides), [Some(Status::Identical); 2], "{what}, the same on both sides");
    }
}

#[test]
fn an_element_that_no_metric_shows_is_named() {
    let sides = Sides::of_output(
        "torch.int64",
        "<i8",
        &[3],
        [&bytes_of!(i64: 5, 1_i64 << 53, 1_i64 << 60), &bytes_of!(i64: 5, (1_i64 << 53) + 1, 1_i64 << 60)],
    );
    let text = sides.compare("target", "golden").unwrap().paragraph();
    assert!(text.contains("element 1 is the first that differs"), "{text}");
}

#[test]
fn data_of_results_that_are_not_judged_is_no_proof() {
    let sides = Sides::of_real_data();
    for side in ["target", "golden"] {
        let text = real_run().to_string().replace("Torch.relu.0.forward\"", "Torch.empty.0.forward\"");
        sides.write(side, &serde_json::from_str(&text).unwrap());
    }
    assert_eq!(statuses(&sides), [Some(Status::Identical); 2]);
    sides.replace_output(Some(&npy("<f4", &[3], &floats(&[1.0, 2.0, 4.0]))));
    assert_eq!(statuses(&sides), [Some(Status::WithinTolerance); 2]);
    let text = sides.compare("target", "golden").unwrap().paragraph();
    assert!(!text.contains("are equal") && text.contains("1 value that is not judged differs"), "{text}");
}

/// A run with a call that gets and gives whole numbers.
fn run_of_whole_numbers(max: &str, result: &str, argument: &str) -> String {
    let tensor = |max: &str| {
        json!({"type": "torch.Tensor", "dtype": "torch.uint64", "shape": [4], "Max": max, "Min": 0, "Mean": 1.5, "Norm": 3.0,
               "requires_grad": false})
    };
    let dump = json!({"task": "statistics", "data": {"Torch.mul.0.forward": {
        "input_args": [{"type": "int", "value": "ARGUMENT"}], "input_kwargs": {},
        "output": [tensor("MAX"), {"type": "int", "value": "RESULT"}]}}});
    dump.to_string().replace("\"MAX\"", max).replace("\"ARGUMENT\"", argument).replace("\"RESULT\"", result)
}

#[test]
fn whole_numbers_are_compared_digit_by_digit() {
    let of = run_of_whole_numbers;
    let (max, large, exact) = ("18446744073709551615", "9223372036854775808", "9007199254740993");
    let (large_result, next) = ("1000000000000000000000000000000", "1000000000000000000000000000001");
    let cases = [
        ("2^64 - 1", of(max, "1", "1"), of("18446744073709551614", "1", "1"), Status::Diverged),
        ("2^63", of(large, "1", "1"), of("9223372036854775809", "1", "1"), Status::Diverged),
        ("written as a float", of(exact, "1", "1"), of("9007199254740992.0", "1", "1"), Status::Diverged),
        ("a result", of("1", large_result, "1"), of("1", next, "1"), Status::Diverged),
        ("an argument", of("1", "1", large), of("1", "1", "9223372036854775813"), Status::DiffersAtInput),
    ];
    for (what, target, golden, expected) in cases {
        let sides = Sides::new();
        for (side, text) in [("target", &target), ("golden", &golden)] {
            fs::create_dir_all(sides.path(side)).unwrap();
            fs::write(sides.path(side).join("dump.json"), text).unwrap();
        }
        assert_eq!(statuses(&sides), [Some(expected); 2], "{what}");
        let paragraph = sides.compare("target", "golden").unwrap().paragraph();
        assert!(!paragraph.contains("equal in the numbers of the table"), "{what}: {paragraph}");
        fs::write(sides.path("target").join("dump.json"), golden).unwrap();
        assert_eq!(statuses(&sides), [Some(Status::Identical); 2], "{what}, the same on both sides");
    }
}

#[test]
fn files_of_another_dtype_than_recorded_are_not_compared() {
    let cases = [
        ("torch.float32", "<f8", bytes_of!(f64: 1.0, 2.0, 3.0), Status::Incomplete),
        ("torch.float16", "<f4", bytes_of!(f32: 1.0, 2.0, 3.0), Status::Incomplete),
        ("torch.int8", "<i8", bytes_of!(i64: 1, 2, 3), Status::Incomplete),
        ("torch.int32", "<i8", bytes_of!(i64: 1, 2, 3), Status::Incomplete),
        ("torch.bfloat16", "<f8", bytes_of!(f64: 1.0, 2.0, 3.0), Status::Incomplete),
        ("torch.bool", "|u1", vec![1, 1, 1], Status::Incomplete),
        ("torch.complex64", "<c16", bytes_of!(f64: 1.0, 0.0, 2.0, 0.0, 3.0, 0.0), Status::Incomplete),
        ("torch.qint8", "<f4", bytes_of!(f32: 1.0, 2.0, 3.0), Status::Incomplete),
        // These are saved as float32.
        ("torch.bfloat16", "<f4", bytes_of!(f32: 1.0, 2.0, 3.0), Status::Identical),
        ("BFloat16", "<f4", bytes_of!(f32: 1.0, 2.0, 3.0), Status::Identical),
        ("torch.float8_e4m3fn", "<f4", bytes_of!(f32: 1.0, 2.0, 3.0), Status::Identical),
        ("torch.float8_e5m2", "<f4", bytes_of!(f32: 1.0, 2.0, 3.0), Status::Identical),
    ];
    for (dtype, descr, bytes, expected) in cases {
        let sides = Sides::of_output(dtype, descr, &[3], [&bytes, &bytes]);
        assert_eq!(statuses(&sides), [Some(expected); 2], "{dtype} in {descr}");
        if expected == Status::Incomplete {
            let gaps = sides.compare("target", "golden").unwrap().parts[0].verdict.gaps.clone();
            assert_eq!((gaps.total(), gaps.count(GapKind::Files)), (1, 1), "{dtype} in {descr}");
        }
    }
    // The record says what was saved in its place.
    let bytes = bytes_of!(f32: 1.0, 2.0, 3.0);
    let sides = Sides::of_output("torch.qint8", "<f4", &[3], [&bytes, &bytes]);
    let mut dump = real_run();
    dump.pointer_mut(REAL_OUTPUT).unwrap()["dtype"] = "torch.qint8".into();
    dump.pointer_mut(REAL_OUTPUT).unwrap()["stored_dtype"] = "torch.float32".into();
    for side in ["target", "golden"] {
        sides.write(side, &dump);
    }
    assert_eq!(statuses(&sides), [Some(Status::Identical); 2]);
}

/// The run with checksums.
fn run_of_checksums() -> Value {
    fn add(value: &mut Value) {
        match value {
            Value::Array(elements) => elements.iter_mut().for_each(add),
            Value::Object(members) if members.contains_key("dtype") => {
                let checksum = format!("{:08x}", members["Max"].to_string().len() * 7919);
                members.insert("md5".to_owned(), checksum.into());
            }
            Value::Object(members) => members.values_mut().for_each(add),
            _ => {}
        }
    }
    let mut dump = run();
    add(&mut dump);
    dump
}

#[test]
fn values_without_checksum_are_not_compared_in_md5_mode() {
    let output = format!("{LINEAR}/output/0");
    let without = |max: f64| {
        let mut dump = run_of_checksums();
        let value = dump.pointer_mut(&output).unwrap();
        value.as_object_mut().unwrap().remove("md5").unwrap();
        value["Max"] = max.into();
        dump
    };
    let sides = Sides::new();
    sides.write("target", &run_of_checksums());
    sides.write("golden", &run_of_checksums());
    assert_eq!(statuses(&sides), [Some(Status::Identical); 2]);
    // On one side, on both, on both with other statistics.
    sides.write("target", &without(0.5));
    assert_eq!(statuses(&sides), [Some(Status::Incomplete); 2]);
    sides.write("golden", &without(0.5));
    assert_eq!(statuses(&sides), [Some(Status::Incomplete); 2]);
    let gaps = sides.compare("target", "golden").unwrap().parts[0].verdict.gaps.clone();
    assert_eq!((gaps.total(), gaps.count(GapKind::Unmeasured)), (1, 1));
    sides.write("golden", &without(0.6));
    assert_eq!(statuses(&sides), [Some(Status::Diverged); 2]);
    let text = sides.compare("target", "golden").unwrap().paragraph();
    assert!(!text.contains("checksums differ") && !text.contains("equal in the numbers"), "{text}");
    assert!(text.contains("max 0.5, bench 0.6"), "{text}");
}

#[test]
fn statistics_that_contradict_equal_checksums_are_told() {
    let cases = [
        ("NaN", Status::Diverged),
        ("Infinity", Status::Diverged),
        ("4.5", Status::Diverged),
        ("null", Status::Incomplete),
        ("\"text\"", Status::Incomplete),
    ];
    for (max, expected) in cases {
        let sides = Sides::new();
        sides.write("golden", &run_of_checksums());
        let mut dump = run_of_checksums();
        dump.pointer_mut(&format!("{LINEAR}/output/0")).unwrap()["Max"] = "MAX".into();
        fs::create_dir_all(sides.path("target")).unwrap();
        fs::write(sides.path("target/dump.json"), dump.to_string().replace("\"MAX\"", max)).unwrap();
        assert_eq!(statuses(&sides), [Some(expected); 2], "{max}");
    }
    // Checksums need no statistics.
    let sides = Sides::new();
    let mut dump = run_of_checksums();
    for key in ["Max", "Min", "Mean", "Norm"] {
        dump.pointer_mut(&format!("{LINEAR}/output/0"))
            .unwrap()
            .as_object_mut()
            .unwrap()
            .remove(key)
            .unwrap();
    }
    sides.write("golden", &dump);
    sides.write("target", &dump);
    assert_eq!(statuses(&sides), [Some(Status::Identical); 2]);
}

#[test]
fn what_was_left_out_is_not_said_to_be_equal() {
    let output = format!("{LINEAR}/output/0");
    let sides = Sides::new();
    let mut value = tensor(&[4, 2], 900.0);
    value["dtype"] = "torch.int32".into();
    sides.write("golden", &run());
    sides.write("target", &changed(&output, value));
    let outcome = sides.compare_allowing("target", "golden", "dtype").unwrap();
    assert_eq!(outcome.status(), Status::WithinTolerance);
    let first = outcome.lines(80).remove(0);
    assert_eq!(
        first,
        "Within tolerance: what was compared of 6 records is equal; 1 thing was not compared, as allowed"
    );

    let sides = Sides::new();
    for place in ["golden/rank0", "golden/rank1", "target/rank0"] {
        sides.write(place, &run());
    }
    let outcome = sides.compare_allowing("target", "golden", "ranks").unwrap();
    let first = outcome.lines(80).remove(0);
    assert!(first.contains("what was compared of 6 records is equal; 1 thing was not compared"), "{first}");
}

#[test]
fn a_table_without_rows_is_left_out() {
    let sides = Sides::new();
    sides.write("golden", &run());
    sides.write(
        "target",
        &changed("/data/Functional.embedding.0.forward/input_kwargs/padding_idx/value", 4.into()),
    );
    let outcome = sides.compare("target", "golden").unwrap();
    assert_eq!(outcome.status(), Status::DiffersAtInput);
    let lines = outcome.lines(80);
    assert!(!lines.iter().any(|line| line.contains("Records that differ")), "{lines:#?}");
}

#[test]
fn a_record_that_is_null_counts_alike_both_ways_round() {
    let sides = Sides::new();
    sides.write("golden", &run());
    for record in run()["data"].as_object().unwrap().keys() {
        sides.write("target", &changed(&format!("/data/{record}"), Value::Null));
        let totals = [("target", "golden"), ("golden", "target")].map(|(target, golden)| {
            let outcome = sides.compare(target, golden).unwrap();
            assert_eq!(outcome.status(), Status::Incomplete, "{record}");
            outcome.parts[0].verdict.gaps.total()
        });
        assert_eq!(totals[0], totals[1], "{record}");
    }
}
