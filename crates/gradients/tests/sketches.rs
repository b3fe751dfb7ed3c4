//! Runs whose gradients are kept as sketches, from the writer to the verdict.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::fs;
use std::path::{Path, PathBuf};

use msprobe_dump::config::{GradLevel, GradProbe};
use msprobe_dump::grad_probe::{GradientWriter, Kept};
use msprobe_dump::names::{Rank, Step};
use msprobe_gradients::{Options, Outcome, Pictures, Status, compare_either};
use msprobe_report::console::Silent;
use msprobe_report::error::CompareError;
use msprobe_tensor::{DType, TensorView};
use tempfile::TempDir;

const PARAMETERS: [(&str, usize); 4] =
    [("fc1.weight", 6000), ("fc1.bias", 40), ("fc2.weight", 700), ("scale", 1)];
const STEPS: u64 = 6;

/// Numbers that are spread like gradients, the same on every machine.
fn gradient(parameter: usize, step: u64, count: usize) -> Vec<f32> {
    let mut state = (parameter as u32 + 1) * 7919 + step as u32 * 104_729;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 8_388_608.0 - 1.0
    };
    (0..count).map(|_| (next() + next() + next()) * 1e-3).collect()
}

fn settings(sketch: bool) -> GradProbe {
    GradProbe { level: GradLevel::L1, param_list: None, bounds: vec![], compact_direction: false, sketch }
}

/// Writes a run whose gradients went through `change`, which is told parameter and step.
fn write_run(at: &Path, sketch: bool, change: impl Fn(&str, u64, &mut [f32])) {
    let writer = GradientWriter::new(settings(sketch), at.to_owned(), 1 << 20).unwrap();
    for step in 0..STEPS {
        let mut begun = writer.begin(Rank(Some(0)), Step(step)).unwrap();
        for (position, (name, count)) in PARAMETERS.into_iter().enumerate() {
            let mut values = gradient(position, step, count);
            change(name, step, &mut values);
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            let view = TensorView::contiguous(DType::F32, vec![count], &bytes).unwrap();
            assert_eq!(writer.add(&mut begun, position, name, &view), Kept::All);
        }
        writer.finish(&begun);
    }
    writer.flush();
    assert_eq!(writer.take_failure(), None);
}

fn unchanged(_: &str, _: u64, _: &mut [f32]) {}

/// As another device would have it: each element off by up to a 256th of the largest.
fn noise(name: &str, step: u64, values: &mut [f32]) {
    let other = gradient(name.len() + 50, step, values.len());
    for (value, other) in values.iter_mut().zip(other) {
        *value += other / 256.0;
    }
}

struct Runs(TempDir);

impl Runs {
    fn new() -> Runs {
        Runs(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn compare(&self) -> Result<Outcome, CompareError> {
        let options = Options { pictures: Pictures::None, ..Options::new(self.path("out")) };
        compare_either([&self.path("a"), &self.path("b")], &options, &Silent)
    }

    /// The cells of a table by its first columns.
    fn table(&self, name: &str) -> Vec<Vec<String>> {
        let text = fs::read_to_string(self.path("out/rank0").join(name)).unwrap();
        let lines = text.trim_start_matches('\u{feff}').lines();
        lines.map(|line| line.split(',').map(str::to_owned).collect()).collect()
    }
}

#[test]
fn equal_runs_are_identical_and_files_are_small() {
    let runs = Runs::new();
    write_run(&runs.path("a"), true, unchanged);
    write_run(&runs.path("b"), true, unchanged);
    let outcome = runs.compare().unwrap();
    assert_eq!(outcome.status(), Status::Identical, "{:?}", outcome.lines());
    let directory = runs.path("a/rank0/step0");
    let names: Vec<_> = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["sketches.json"]);
    let bytes = fs::metadata(directory.join("sketches.json")).unwrap().len();
    assert!(bytes < 250 * PARAMETERS.len() as u64, "{bytes}");
    for row in &runs.table("cosines.csv")[1..] {
        assert!(row[1..].iter().all(|cell| cell == "1.0"), "{row:?}");
    }
}

#[test]
fn noise_passes_and_one_perturbed_parameter_is_named() {
    let runs = Runs::new();
    write_run(&runs.path("a"), true, noise);
    write_run(&runs.path("b"), true, unchanged);
    let outcome = runs.compare().unwrap();
    assert_eq!(outcome.status(), Status::WithinTolerance, "{:?}", outcome.lines());
    let said = outcome.lines().join("\n");
    assert!(said.contains("estimated from sketches") && said.contains("95 of 100 cases"), "{said}");

    for culprit in ["fc1.weight", "fc1.bias", "fc2.weight", "scale"] {
        write_run(&runs.path("a"), true, |name, step, values| {
            noise(name, step, values);
            if name == culprit && step >= 3 {
                for (at, value) in values.iter_mut().enumerate() {
                    *value *= if at % 3 == 0 { -1.0 } else { 1.0 };
                }
            }
        });
        let outcome = runs.compare().unwrap();
        assert_eq!(outcome.status(), Status::Diverged, "{:?}", outcome.lines());
        let json = outcome.to_json();
        assert_eq!((&json["step"], &json["parameters"]), (&3.into(), &vec![culprit].into()), "{culprit}");
        let flag =
            &json["ranks"][0]["curves"].as_array().unwrap().iter().find(|curve| curve["name"] == culprit);
        let flag = &flag.unwrap()["flagged"][0];
        let [cosine, low, high] =
            [&flag["cosine"], &flag["cosine_interval_95"][0], &flag["cosine_interval_95"][1]]
                .map(|number| number.as_f64().unwrap());
        assert!(low <= cosine && cosine <= high, "{flag}");
    }
}

#[test]
fn cosines_are_those_of_the_gradients() {
    let runs = Runs::new();
    let turn = |name: &str, step: u64, values: &mut [f32]| {
        let other = gradient(name.len() + 90, step, values.len());
        values.iter_mut().zip(other).for_each(|(value, other)| *value += other * 0.1 * step as f32);
    };
    write_run(&runs.path("a"), true, turn);
    write_run(&runs.path("b"), true, unchanged);
    runs.compare().unwrap();
    let changed = |position: usize, step: u64| {
        let (name, count) = PARAMETERS[position];
        let mut values = gradient(position, step, count);
        turn(name, step, &mut values);
        values
    };
    let cosine = |a: &[f32], b: &[f32]| {
        let dot = |a: &[f32], b: &[f32]| -> f64 {
            a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
        };
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
    };
    let between = runs.table("cosines.csv");
    let steps = runs.table("step_cosines.csv");
    assert_eq!(steps[0][..3], ["run", "step", "0"]);
    assert_eq!(steps.len(), 1 + 2 * (PARAMETERS.len() + 1));
    for (position, (name, count)) in PARAMETERS.into_iter().enumerate().take(3) {
        for step in 0..STEPS {
            let column = 1 + step as usize;
            let golden = gradient(position, step, count);
            let truth = cosine(&changed(position, step), &golden);
            let found: f64 = between[1 + position][column].parse().unwrap();
            // The estimate of 1 - cosine is as good as that of a squared distance.
            assert!((found - truth).abs() <= 0.9 * (1.0 - truth) + 1e-6, "{name} {step}: {found} {truth}");
            let row = &steps[1 + position];
            assert_eq!(row[..2], ["first", name]);
            if step == 0 {
                assert_eq!(row[2], "");
                continue;
            }
            let truth = cosine(&changed(position, step), &changed(position, step - 1));
            let found: f64 = row[1 + column].parse().unwrap();
            assert!((found - truth).abs() < 0.85, "{name} {step}: {found} {truth}");
        }
    }
}

#[test]
fn signs_and_sketches_are_not_compared_with_each_other() {
    let runs = Runs::new();
    write_run(&runs.path("a"), true, unchanged);
    write_run(&runs.path("b"), false, unchanged);
    let error = runs.compare().unwrap_err();
    assert!(error.message.contains("these cannot be compared"), "{error:?}");
    let hint = error.hint.unwrap();
    assert!(hint.contains("grad_probe.sketch"), "{hint}");
    // Both forms in one directory: what both have is compared, and the rest is said.
    write_run(&runs.path("b"), true, unchanged);
    let outcome = runs.compare().unwrap();
    assert_eq!(outcome.status(), Status::Incomplete);
    assert_eq!(outcome.failures.len(), STEPS as usize * PARAMETERS.len(), "{:?}", outcome.failures);
    assert!(outcome.failures[0].contains("is not read"), "{:?}", outcome.failures);
}

#[test]
fn what_is_damaged_costs_itself() {
    let runs = Runs::new();
    write_run(&runs.path("a"), true, unchanged);
    write_run(&runs.path("b"), true, unchanged);
    let path = |side: &str, step: u64| runs.path(side).join(format!("rank0/step{step}/sketches.json"));
    fs::write(path("a", 1), "{\"version\": 1").unwrap();
    fs::remove_file(path("b", 2)).unwrap();
    let text = fs::read_to_string(path("b", 3)).unwrap();
    fs::write(path("b", 3), text.replace("[40]", "[41]").replace("\"fc2.weight\"", "\"stranger\"")).unwrap();
    fs::write(path("b", 4), "{\"version\": 9, \"sketches\": {}}").unwrap();
    let outcome = runs.compare().unwrap();
    assert_eq!(outcome.status(), Status::Incomplete, "{:?}", outcome.lines());
    let said = outcome.failures.join("\n");
    for text in [
        "cannot read",
        "missing: ",
        "tensor shape is not equal: fc1.bias",
        "there is no fc2.weight",
        "no table names stranger",
        "is of version 9, not 1",
    ] {
        assert!(said.contains(text), "{text}: {said}");
    }
    let known = runs.table("cosines.csv")[1][1..].iter().filter(|cell| !cell.is_empty()).count();
    assert_eq!(known, 3, "steps 0, 3 and 5");
}
