//! Dumps of tensors: files are what their records say, and equal element by element.

use std::fs;

use fastrand::Rng;
use msprobe_compare::verdict::{GapKind, Status};
use serde_json::{Value, json};

use crate::mutation::{cases, mutated};
use crate::sides::{Sides, statuses};

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
        let mut random = Rng::with_seed(seed);
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
