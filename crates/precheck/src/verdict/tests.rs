//! Recorded verdicts and metrics of the reference.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use half::{bf16, f16};
use msprobe_tensor::{DType, OperatorLimits, UlpLimits, operator_errors};
use serde_json::Value;

use super::*;
use crate::standards::Standard;

fn recorded(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/precheck/metrics_and_verdicts");
    serde_json::from_str(&fs::read_to_string(path.join(name)).unwrap()).unwrap()
}

struct Owned {
    dtype: DType,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Owned {
    fn view(&self) -> TensorView<'_> {
        TensorView::contiguous(self.dtype, self.shape.clone(), &self.bytes).unwrap()
    }
}

fn number(value: &Value) -> f64 {
    match value {
        Value::Bool(value) => f64::from(u8::from(*value)),
        Value::String(text) => text.parse().unwrap(),
        value => value.as_f64().unwrap(),
    }
}

fn owned(value: &Value) -> Owned {
    let dtype = DType::parse(value["t"].as_str().unwrap()).unwrap();
    let shape = value["s"].as_array().unwrap().iter().map(|size| size.as_u64().unwrap() as usize).collect();
    let mut bytes = Vec::new();
    for value in value["v"].as_array().unwrap() {
        let value = number(value);
        match dtype {
            DType::F16 => bytes.extend(f16::from_f64(value).to_le_bytes()),
            DType::BF16 => bytes.extend(bf16::from_f64(value).to_le_bytes()),
            DType::F32 => bytes.extend((value as f32).to_le_bytes()),
            DType::F64 => bytes.extend(value.to_le_bytes()),
            DType::I64 => bytes.extend((value as i64).to_le_bytes()),
            DType::I32 => bytes.extend((value as i32).to_le_bytes()),
            DType::Bool | DType::U8 | DType::I8 => bytes.push(value as u8),
            other => panic!("{other:?}"),
        }
    }
    Owned { dtype, shape, bytes }
}

fn all_owned(value: &Value) -> Vec<Option<Owned>> {
    let one = |value: &Value| value.is_object().then(|| owned(value));
    match value {
        Value::Array(values) => values.iter().map(one).collect(),
        value => vec![one(value)],
    }
}

fn leaves<'a>(value: &Value, owned: &'a [Option<Owned>]) -> Vec<Leaf<'a>> {
    let values: Vec<Value> = match value {
        Value::Array(values) => values.clone(),
        value => vec![value.clone()],
    };
    let leaf = |(value, owned): (&Value, &'a Option<Owned>)| match (value, owned) {
        (_, Some(owned)) => Leaf::Tensor(owned.view()),
        (Value::String(text), _) => {
            Leaf::Plain { type_text: "<class 'str'>".into(), value: Plain::Text(text.clone()) }
        }
        (Value::Number(number), _) if number.is_f64() => {
            Leaf::Plain { type_text: "<class 'float'>".into(), value: Plain::Float(number.as_f64().unwrap()) }
        }
        (Value::Number(number), _) => {
            Leaf::Plain { type_text: "<class 'int'>".into(), value: Plain::Int(number.to_string()) }
        }
        _ => Leaf::None,
    };
    values.iter().zip(owned).map(leaf).collect()
}

fn outcome(case: &Value, judging: Judging) -> Result<Outcome, TooFewOutputs> {
    let sides = |bench: &str, device: &str| [bench, device].map(|key| all_owned(&case[key]));
    let (forward, gradients) = (sides("bench", "device"), sides("bench_grad", "device_grad"));
    let [bench, device] = [("bench", 0), ("device", 1)].map(|(key, at)| leaves(&case[key], &forward[at]));
    let [bench_grad, device_grad] =
        [("bench_grad", 0), ("device_grad", 1)].map(|(key, at)| leaves(&case[key], &gradients[at]));
    let has_backward = case.get("bench_grad").is_some();
    let backward = has_backward.then_some(Sides { bench: &bench_grad, device: &device_grad });
    let message = case.get("backward_message").and_then(Value::as_str).unwrap_or_default();
    let forward = Sides { bench: &bench, device: &device };
    compare(case["api"].as_str().unwrap(), forward, backward, message, judging, Notes::default())
}

/// float64 within 1e-12 relative or a unit of its last decimal, float32 within two units in the last place.
fn is_close(found: &str, expected: &str) -> bool {
    let (Ok(a), Ok(b)) = (found.parse::<f64>(), expected.parse::<f64>()) else { return false };
    let is_fixed = expected.split_once('.').is_some_and(|(_, decimals)| decimals.len() == 14);
    let limit = if is_fixed { 1.01e-14_f64.max(b.abs() * 1e-12) } else { b.abs() * 2.5e-7 };
    is_fixed == found.split_once('.').is_some_and(|(_, decimals)| decimals.len() == 14)
        && (a - b).abs() <= limit
}

#[test]
fn verdicts_are_those_of_the_reference() {
    let (inputs, expected) = (recorded("inputs.json"), recorded("expected.json"));
    let cases = inputs["cases"].as_array().unwrap();
    let verdicts = expected["verdicts"].as_array().unwrap();
    assert!(cases.len() > 60 && cases.len() == verdicts.len());
    for (case, verdict) in cases.iter().zip(verdicts) {
        let id = verdict["id"].as_str().unwrap();
        assert_eq!(case["id"], verdict["id"]);
        let found = outcome(case, Judging::default());
        if let Some(exception) = verdict["exception"].as_str() {
            assert_eq!(format!("IndexError: {}", found.unwrap_err()), exception);
            continue;
        }
        let found = found.unwrap();
        assert_eq!(serde_json::json!([found.result]), verdict["result_rows"], "{id}");
        let good = |status: Status| matches!(status, Status::Pass | Status::None);
        let returned = serde_json::json!([good(found.forward), good(found.backward)]);
        assert_eq!(returned, verdict["return"], "{id}");
        let rows = verdict["detail_rows"].as_array().unwrap();
        assert_eq!(found.details.len(), rows.len(), "{id}");
        for (row, expected) in found.details.iter().zip(rows) {
            let expected: HashMap<&str, &str> = expected
                .as_object()
                .unwrap()
                .iter()
                .map(|(key, value)| (&**key, value.as_str().unwrap()))
                .collect();
            for (header, cell) in DETAILS.iter().zip(row) {
                let wanted = expected.get(header).copied().unwrap_or(" ");
                assert!(cell == wanted || is_close(cell, wanted), "{id} {header}: {cell:?}, not {wanted:?}");
            }
        }
    }
}

#[test]
fn metrics_are_those_of_the_reference() {
    let (inputs, expected) = (recorded("inputs.json"), recorded("expected.json"));
    let cases = inputs["metric_cases"].as_array().unwrap();
    for (case, wanted) in cases.iter().zip(expected["standards"].as_array().unwrap()) {
        let id = wanted["id"].as_str().unwrap();
        let (bench, device) = (owned(&case["bench"]), owned(&case["device"]));
        let with = |standard: Standard| {
            let limits = standard.limits(device.dtype);
            operator_errors(&device.view(), &bench.view(), &limits).unwrap().unwrap()
        };
        let is_narrow = bench.dtype == DType::F32;
        let check = |path: &[&str], found: f64| {
            let value = path.iter().fold(wanted, |value, key| &value[*key]);
            let expected = number(&value["value"]);
            let is_narrow = value["type"] == "float32";
            let limit = if is_narrow { 2.4e-7 } else { 1e-12 };
            let is_close = found == expected
                || found.is_nan() && expected.is_nan()
                || (found - expected).abs() <= limit * expected.abs();
            assert!(is_close, "{id} {path:?}: {found}, not {expected}");
        };
        let errors = with(Standard::UlpCompare);
        check(&["cosine"], errors.cosine);
        check(&["max_abs_err"], errors.max_error);
        for (key, share) in ["hundredth", "thousandth", "ten_thousandth"].iter().zip(errors.within) {
            check(&[key], share.ratio().unwrap());
        }
        check(&["error_rate"], errors.unequal.ratio().unwrap());
        let ulp = errors.ulp.unwrap();
        check(&["ulp", "max"], ulp.max);
        check(&["ulp", "mean"], ulp.mean);
        check(&["ulp", "proportion"], ulp.above_limit.ratio().unwrap());
        let errors = with(Standard::Benchmark);
        check(&["benchmark", "small_value_err_ratio"], errors.small_far.ratio().unwrap_or(0.0));
        check(&["benchmark", "rmse"], errors.rmse);
        check(&["benchmark", "eb"], errors.balance);
        let (max, mean) = errors.relative.unwrap_or_default();
        check(&["benchmark", "max_rel"], max);
        check(&["benchmark", "mean_rel"], mean);
        assert_eq!(is_narrow, wanted["benchmark"]["max_rel"]["type"] == "float32", "{id}");
        for (key, standard) in
            [("absolute", Standard::AbsoluteThreshold), ("accumulative", Standard::AccumulativeErrorCompare)]
        {
            let errors = with(standard);
            check(&[key, "inf_nan"], errors.non_finite_far.ratio().unwrap_or(0.0));
            check(&[key, "rel"], errors.normal_far.ratio().unwrap_or(0.0));
            check(&[key, "abs"], errors.small_far.ratio().unwrap_or(0.0));
        }
        let limits = OperatorLimits {
            ulp: Some(UlpLimits { element_limit: 0.0, min_exponent: -14, mantissa_bits: 10 }),
            ..Standard::UlpCompare.limits(DType::F16)
        };
        assert!(operator_errors(&device.view(), &bench.view(), &limits).unwrap().unwrap().ulp.is_some());
    }
}

fn strictly(case: &Value) -> Outcome {
    outcome(case, Judging { is_strict: true, ..Judging::default() }).unwrap()
}

#[test]
fn strict_verdicts_have_no_mistakes_of_the_reference() {
    let inputs = recorded("inputs.json");
    let case = |id: &str| {
        strictly(inputs["cases"].as_array().unwrap().iter().find(|case| case["id"] == id).unwrap())
    };
    // What agrees on NaN or infinity agrees.
    for id in ["nan-both-float16", "inf-both-float16", "nan-both-float32", "overflow-cast-f16"] {
        assert_eq!(case(id).forward, Status::Pass, "{id}");
    }
    for id in ["nan-device-float16", "inf-sign-bfloat16", "nan-device-float32"] {
        assert_eq!(case(id).forward, Status::Error, "{id}");
    }
    // The worst of several wins, in any order.
    assert_eq!(case("error-then-warning").forward, Status::Error);
    assert_eq!(case("warning-then-error").forward, Status::Error);
    // Nothing compared is no pass, and whole numbers of any width are compared.
    assert_eq!(case("none").forward, Status::Skip);
    assert_eq!(case("int8").forward, Status::Pass);
    assert_eq!(case("empty").forward, Status::Pass);
    assert_eq!(case("list-shorter-device").forward, Status::Error);
    assert_eq!(case("list-longer-device").forward, Status::Error);
}

#[test]
fn outcomes_go_through_json() {
    let inputs = recorded("inputs.json");
    for case in inputs["cases"].as_array().unwrap() {
        if let Ok(found) = outcome(case, Judging::default()) {
            assert_eq!(Outcome::from_json(&found.to_json()).unwrap(), found);
        }
    }
}
