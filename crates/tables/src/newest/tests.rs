use std::collections::HashMap;
use std::path::Path;

use msprobe_compare::metrics::{Metric, Metrics, Missing};
use msprobe_compare::pairing::{MatchMethod, Unmatched};
use msprobe_compare::side::{Scalar, Which, read_side};
use msprobe_report::console::Silent;

use super::*;

/// A side with the given records, as members of `data`.
pub(super) fn side_in(directory: &Path, which: Which, task: &str, records: &str) -> Side {
    std::fs::create_dir_all(directory).unwrap();
    let path = directory.join("dump.json");
    std::fs::write(&path, format!(r#"{{"task": "{task}", "data": {{{records}}}}}"#)).unwrap();
    read_side(&path, which, &Silent).unwrap()
}

pub(super) fn sides(target: &str, golden: &str) -> (Side, Side) {
    let directory = tempfile::tempdir().unwrap();
    let side =
        |name: &str, which, records| side_in(&directory.path().join(name), which, "statistics", records);
    (side("npu", Which::Target, target), side("bench", Which::Golden, golden))
}

fn tensor(fields: &str) -> String {
    let plain =
        r#""type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 3], "requires_grad": false"#;
    // The last value of a key counts.
    format!(r#"{{{plain}, "Max": 1.0, "Min": -1.0, "Mean": 0.1, "Norm": 2.0, {fields}}}"#)
}

fn norm(norm: f64) -> String {
    tensor(&format!("\"Norm\": {norm:?}"))
}

fn call(name: &str, inputs: &[String], outputs: &[String]) -> String {
    format!(r#""{name}": {{"input_args": [{}], "output": [{}]}}"#, inputs.join(", "), outputs.join(", "))
}

/// The verdicts of a call, row by row, by the first words of their messages.
fn verdicts(mode: Mode, target: &str, golden: &str) -> Vec<String> {
    let (target, golden) = sides(target, golden);
    let table = NewestTable::compare(&target, &golden, mode, None, &NewestOptions::default(), &Silent);
    let short = |message: String| {
        let known = [
            ("nan/inf", "not finite"),
            ("NormRelativeErr", "norm"),
            ("10 times", "growth"),
            ("Required_Grad", "grad"),
            ("scalar", "scalar"),
            ("dtype", "dtype"),
            ("shape", "shape"),
            ("CRC-32", "crc"),
            ("parameter of NPU", "one side"),
        ];
        known.iter().find(|(part, _)| message.contains(part)).unwrap().1
    };
    let describe = |verdict: &Verdict| {
        let messages: Vec<&str> = verdict.messages().map(short).collect();
        format!("{} {}", verdict.grade().as_str(), messages.join("+"))
    };
    table.verdicts().iter().map(describe).collect()
}

fn verdicts_of(name: &str, target: [&[String]; 2], golden: [&[String]; 2]) -> Vec<String> {
    verdicts(Mode::Summary, &call(name, target[0], target[1]), &call(name, golden[0], golden[1]))
}

fn text(text: &str) -> Scalar {
    Scalar::Text(text.into())
}

#[test]
fn equal_values_of_any_kind_differ_by_nothing() {
    let nan = Scalar::Float(f64::NAN);
    let infinite = Scalar::Float(f64::INFINITY);
    for value in [Scalar::Null, Scalar::Bool(true), text("a"), nan, infinite, Scalar::Int(3), text("cpu")] {
        let found = difference(&value, &value);
        assert_eq!(found, Difference::Equal, "{value:?}");
        assert_eq!((found.text(), found.relative_text()), ("0".to_owned(), "0".to_owned()));
    }
}

#[test]
fn differences_as_texts() {
    let float = Scalar::Float;
    let cases = [
        (float(2.0), float(1.0), "1.0", "100.0%"),
        (Scalar::Int(3), Scalar::Int(4), "-1.0", "25.0%"),
        (float(1.0), float(-4.0), "5.0", "125.0%"),
        (float(1.0), float(0.0), "1.0", "inf"),
        (Scalar::Int(0), float(0.0), "0.0", "0.0%"),
        (float(f64::INFINITY), float(1.0), "inf", "inf"),
        (float(1.0), float(f64::INFINITY), "-inf", "inf"),
        (float(f64::NAN), float(1.0), "Nan", "Nan"),
        (float(1.0), float(f64::NAN), "Nan", "Nan"),
        (Scalar::Null, float(1.0), "Diff", "Diff"),
        (Scalar::Bool(true), Scalar::Bool(false), "Diff", "Diff"),
        (text("3"), text("4"), "Diff", "Diff"),
        (text("npu:0"), text("cuda:0"), "N/A", "N/A"),
        (text("npu:0"), text("cuda"), "N/A", "N/A"),
        (text("cpu:None"), text("NPU"), "N/A", "N/A"),
        (text("npu:0"), text("sum"), "Diff", "Diff"),
        (float(1.0), text("N/A"), "N/A", "N/A"),
    ];
    for (target, golden, expected, relative) in cases {
        let found = difference(&target, &golden);
        assert_eq!((&*found.text(), &*found.relative_text()), (expected, relative), "{target:?} {golden:?}");
    }
}

#[test]
fn norms_that_grow() {
    let rows = |input: [f64; 2], output: [f64; 2]| {
        verdicts_of(
            "Torch.f.0.forward",
            [&[norm(input[0])], &[norm(output[0])]],
            [&[norm(input[1])], &[norm(output[1])]],
        )
    };
    assert_eq!(rows([2.0, 2.0], [4.0, 2.0]), ["pass ", "error norm+growth"]);
    assert_eq!(rows([2.02, 2.0], [2.6, 2.0]), ["pass ", "warning growth"]);
    assert_eq!(rows([2.0, 2.0], [11.0, 10.0]), ["pass ", "pass "], "exactly a tenth is no more than that");
    assert_eq!(rows([2.4, 2.0], [4.0, 2.0]), ["pass ", "pass "], "the input is off too");
    assert_eq!(rows([2.18, 2.0], [3.2, 2.0]), ["pass ", "error norm"]);
    assert_eq!(rows([2.0, 2.0], [1.0, 0.0]), ["pass ", "error norm+growth"], "against zero");
}

#[test]
fn growth_is_said_of_the_first_result_and_errors_of_each() {
    let rows = verdicts_of(
        "Torch.f.0.forward",
        [&[norm(2.0)], &[norm(2.0), norm(4.0), norm(8.0)]],
        [&[norm(2.0)], &[norm(2.0), norm(2.0), norm(2.0)]],
    );
    assert_eq!(rows, ["pass ", "warning growth", "error norm", "error norm"]);
    let without_inputs = verdicts_of("Torch.rand.0.forward", [&[], &[norm(4.0)]], [&[], &[norm(2.0)]]);
    assert_eq!(without_inputs, ["pass "]);
}

#[test]
fn values_that_are_not_finite() {
    let rows = |target: &str, golden: &str| {
        verdicts_of("Torch.f.0.forward", [&[], &[tensor(target)]], [&[], &[tensor(golden)]])
    };
    assert_eq!(rows("\"Max\": NaN", "\"Max\": 1.0"), ["error not finite"]);
    assert_eq!(rows("\"Min\": -Infinity", "\"Max\": 1.0"), ["error not finite"]);
    assert_eq!(rows("\"Max\": NaN", "\"Max\": NaN"), ["pass "]);
    assert_eq!(rows("\"Max\": 1.0", "\"Max\": Infinity"), ["pass "]);
    assert_eq!(rows("\"Mean\": NaN", "\"Mean\": 1.0"), ["pass "]);
    assert_eq!(rows("\"Max\": \"nan\"", "\"Max\": 1.0"), ["error not finite"]);
}

#[test]
fn what_is_inconsistent_is_listed_in_order() {
    let rows = verdicts_of(
        "Torch.f.0.forward",
        [&[], &[tensor(r#""requires_grad": true, "dtype": "torch.bfloat16", "shape": [6], "Max": NaN"#)]],
        [&[], &[tensor("\"Max\": 1.0")]],
    );
    assert_eq!(rows, ["error not finite+grad+dtype+shape"]);
}

#[test]
fn scalars_are_judged_as_arguments_only() {
    let scalar = |value: &str| format!(r#"{{"type": "x", "value": {value}}}"#);
    let rows = |target: &str, golden: &str| {
        verdicts_of(
            "Torch.f.0.forward",
            [&[scalar(target)], &[scalar(target)]],
            [&[scalar(golden)], &[scalar(golden)]],
        )
    };
    assert_eq!(rows("3", "4"), ["error scalar", "pass "]);
    assert_eq!(rows("\"a\"", "\"b\""), ["error scalar", "pass "]);
    assert_eq!(rows("true", "false"), ["error scalar", "pass "]);
    assert_eq!(rows("\"npu:0\"", "\"cuda:0\""), ["pass ", "pass "]);
    assert_eq!(rows("0.0", "-0.0"), ["pass ", "pass "]);
}

#[test]
fn some_calls_are_exempt() {
    let target = [norm(4.0), tensor(r#""Max": Infinity, "requires_grad": true"#)];
    let golden = [norm(2.0), tensor("\"Max\": 1.0")];
    let rows = |name: &str| verdicts_of(name, [&target[1..], &target], [&golden[1..], &golden]);
    let nothing = ["pass ", "pass ", "pass "];
    for name in ["empty", "empty_like", "numpy", "to", "__setitem__", "new_empty", "empty_strided"] {
        assert_eq!(rows(&format!("Tensor.{name}.0.forward")), nothing);
    }
    for name in ["_reduce_scatter_base", "_all_gather_base", "all_to_all_single", "batch_isend_irecv"] {
        let judged = rows(&format!("Distributed.{name}.0.forward"));
        assert_eq!(judged, ["error grad", "pass ", "error not finite+grad"], "{name}");
    }
    assert_eq!(rows("Module.to.Linear.forward.0")[1], "error norm+growth", "a module may be called anything");
}

#[test]
fn checksums() {
    let checksum = |text: &str| tensor(&format!("\"md5\": \"{text}\""));
    let (target, golden) = (["11111111", "22222222"].map(checksum), ["11111111", "33333333"].map(checksum));
    let only = call("Torch.only.0.forward", &[], &[checksum("44444444")]);
    let target = format!("{}, {only}", call("Torch.f.0.forward", &[], &target));
    let rows = verdicts(Mode::Md5, &target, &call("Torch.f.0.forward", &[], &golden));
    assert_eq!(rows, ["pass ", "error crc", "warning one side"]);
}

#[test]
fn rows_are_matched_by_name_alone() {
    let target = [
        call("Torch.f.0.forward", &[tensor("\"shape\": [6]")], &[tensor("\"dtype\": \"torch.int32\"")]),
        call("Functional.relu.3.backward", &[norm(1.0)], &[]),
        call("Functional.relu.1.backward", &[norm(2.0)], &[]),
        call("Module.fc.Linear.backward.1", &[norm(2.0)], &[]),
    ];
    let golden = [
        call("Functional.relu.2.backward", &[norm(1.0)], &[]),
        call("Functional.relu.1.backward", &[norm(2.0)], &[]),
        call("Module.fc.Linear.backward.0", &[norm(2.0)], &[]),
        call("Torch.f.0.forward", &[tensor("\"shape\": [2, 3]")], &[tensor("\"dtype\": \"torch.int64\"")]),
    ];
    let (target, golden) = sides(&target.join(", "), &golden.join(", "));
    let options = NewestOptions::default();
    let table = NewestTable::compare(&target, &golden, Mode::Summary, None, &options, &Silent);
    let found: Vec<_> = table.pairs().iter().map(|pair| (pair.golden, pair.method)).collect();
    assert_eq!(
        found,
        [
            (Ok(3), MatchMethod::Exact),
            (Err(Unmatched::Dtype), MatchMethod::Exact),
            (Ok(0), MatchMethod::Aligned),
            (Ok(1), MatchMethod::Exact),
            (Err(Unmatched::Missing), MatchMethod::Exact),
        ]
    );
    let fuzzy = NewestOptions { fuzzy: true, ..NewestOptions::default() };
    let table = NewestTable::compare(&target, &golden, Mode::Summary, None, &fuzzy, &Silent);
    assert_eq!(table.pairs().len(), target.rows.len());
}

#[test]
fn mapped_names() {
    let (target, golden) = sides(
        &call("Functional.dense.5.backward", &[norm(1.0), norm(1.0)], &[]),
        &call("Functional.linear.4.backward", &[norm(1.0), tensor("\"dtype\": \"torch.int64\"")], &[]),
    );
    let mapped = "Functional.linear.5.backward.input.0".to_owned();
    let options = NewestOptions { keys: Keys::PerRow(vec![Some(mapped), None]), ..NewestOptions::default() };
    let table = NewestTable::compare(&target, &golden, Mode::Summary, None, &options, &Silent);
    assert_eq!(table.pairs()[0].golden, Ok(0));
    assert_eq!(table.pairs()[0].method, MatchMethod::Mapped);
    assert_eq!(table.pairs()[1].golden, Err(Unmatched::Missing));
    let names = HashMap::from([(
        "Functional.dense.5.backward.input.1".to_owned(),
        "Functional.linear.4.backward.input.1".to_owned(),
    )]);
    let options = NewestOptions { keys: Keys::Mapping(names), ..NewestOptions::default() };
    let table = NewestTable::compare(&target, &golden, Mode::Summary, None, &options, &Silent);
    assert_eq!(table.pairs()[1].golden, Ok(1), "a mapping of rows does not test dtypes");
}

#[test]
fn frameworks_spell_dtypes_differently() {
    let (target, golden) = sides(
        &call("Torch.f.0.forward", &[tensor("\"dtype\": \"Float32\""), tensor("\"dtype\": \"Int32\"")], &[]),
        &call("Torch.f.0.forward", &[norm(2.0), tensor("\"dtype\": \"torch.int64\"")], &[]),
    );
    let options = NewestOptions { across_frameworks: true, ..NewestOptions::default() };
    let table = NewestTable::compare(&target, &golden, Mode::Summary, None, &options, &Silent);
    let grades: Vec<Grade> = table.verdicts().iter().map(|verdict| verdict.grade()).collect();
    assert_eq!(grades, [Grade::Pass, Grade::Error]);
}

#[test]
fn an_empty_side_makes_an_empty_table() {
    let (target, golden) = sides(&call("Torch.f.0.forward", &[norm(2.0)], &[]), "");
    let options = NewestOptions::default();
    let table = NewestTable::compare(&target, &golden, Mode::Summary, None, &options, &Silent);
    assert!(table.is_empty());
}

#[test]
fn headers_of_all_modes() {
    let (target, golden) = sides("", "");
    let stacks = Stacks::default();
    let headers = |mode, stacks| {
        let options = NewestOptions::default();
        NewestTable::compare(&target, &golden, mode, stacks, &options, &Silent).headers()
    };
    assert_eq!(
        headers(Mode::Md5, Some(&stacks))[6..],
        [
            "NPU Requires_grad",
            "Bench Requires_grad",
            "NPU MD5",
            "BENCH MD5",
            "Requires_grad Consistent",
            "Result",
            "Err_message",
            "NPU_Stack_Info"
        ]
    );
    assert_eq!(headers(Mode::All, Some(&stacks))[24..], ["Err_message", "NPU_Stack_Info", "Data_name"]);
    assert_eq!(headers(Mode::Summary, None).len(), 27);
}

/// A side of real data: one call with one argument and one result of four numbers each.
fn real_side(directory: &Path, which: Which, input: [f32; 4], output: [f32; 4]) -> Side {
    let data = directory.join("dump_tensor_data");
    std::fs::create_dir_all(&data).unwrap();
    let leaf = |name: &str, values: [f32; 4]| {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let view =
            msprobe_tensor::TensorView::contiguous(msprobe_tensor::DType::F32, vec![4], &bytes).unwrap();
        let file = format!("Torch.f.0.forward.{name}.0.npy");
        let mut out = std::fs::File::create(data.join(&file)).unwrap();
        msprobe_tensor::files::npy::write(&mut out, &view).unwrap();
        tensor(&format!("\"shape\": [4], \"data_name\": \"{file}\""))
    };
    let record = call("Torch.f.0.forward", &[leaf("input", input)], &[leaf("output", output)]);
    side_in(directory, which, "tensor", &record)
}

fn real_verdicts(target: [[f32; 4]; 2], golden: [[f32; 4]; 2]) -> Vec<(&'static str, String)> {
    let directory = tempfile::tempdir().unwrap();
    let target = real_side(&directory.path().join("npu"), Which::Target, target[0], target[1]);
    let golden = real_side(&directory.path().join("bench"), Which::Golden, golden[0], golden[1]);
    let options = NewestOptions { log_tensors: true, ..NewestOptions::default() };
    let table = NewestTable::compare(&target, &golden, Mode::All, None, &options, &Silent);
    assert_eq!(table.failures(), [""; 0]);
    table.verdicts().iter().map(|verdict| (verdict.grade().as_str(), verdict.json())).collect()
}

#[test]
fn real_data_is_judged_by_ratio_and_cosine() {
    let (plain, passed) = ([1.0, 2.0, 3.0, 4.0], ("pass", "[]".to_owned()));
    assert_eq!(real_verdicts([plain; 2], [plain; 2]), [passed.clone(), passed.clone()]);
    // All off by a hundredth: no element within a thousandth, but the direction is the same.
    let scaled = plain.map(|value| value * 1.01);
    let ratio = "[\"error: The input/parameters of One Thousandth Err Ratio > 0.9 while the output < 0.6.\"]";
    let found = real_verdicts([plain, scaled], [plain, plain]);
    assert_eq!(found, [passed.clone(), ("error", ratio.to_owned())]);
    // Half of them right: no error, but another direction.
    let cosine = "[\"warning: The input/parameters of Cosine > 0.9, and input/parameters - output > 0.1\"]";
    let found = real_verdicts([plain, [1.0, 2.0, -3.0, 4.0]], [plain, plain]);
    assert_eq!(found, [passed.clone(), ("warning", cosine.to_owned())]);
    // Wrong before already.
    let found = real_verdicts([scaled, scaled], [plain, plain]);
    assert_eq!(found, [passed.clone(), passed]);
}

#[test]
fn zeros_are_shifted_by_the_epsilon_of_float32() {
    let directory = tempfile::tempdir().unwrap();
    let zeros = [0.0, 1.0, 1.0, 1.0];
    let target = real_side(&directory.path().join("npu"), Which::Target, zeros, [1.0; 4]);
    let golden = real_side(&directory.path().join("bench"), Which::Golden, zeros, zeros);
    std::fs::write(golden.tensor_dir().join("Torch.f.0.forward.input.0.npy"), b"broken").unwrap();
    let options = NewestOptions::default();
    let table = NewestTable::compare(&target, &golden, Mode::All, None, &options, &Silent);
    assert_eq!(table.failures().len(), 1, "one bad file costs its row");
    assert_eq!(table.tensors()[0].metrics, Metrics::missing(Missing::Unsupported));
    let metrics = &table.tensors()[1].metrics;
    assert_eq!(metrics.max_relative, Metric::Number(8_388_608.0));
    assert_eq!(metrics.within_thousandth, Metric::Number(0.75));
}
