//! "Identical" is a proof of everything that lies in two directories: what is there and is compared with nothing makes
//! another answer, both ways round, and is named.

use std::fs;
use std::path::{Path, PathBuf};

use msprobe_compare::verdict::{Allowed, GapKind, Status};
use msprobe_report::Formats;
use msprobe_report::console::{Level, Remembered, Silent};
use msprobe_tables::run::{Form, Options, Outcome, StackSource, compare_dumps, compare_ranks};
use serde_json::{Value, json};

use crate::sides::options;

fn with_stacks(output: &Path) -> Options {
    options(output, StackSource::Detect, Allowed::default())
}

/// Two sides, `a` and `b`, in a directory of their own.
struct Sides {
    dir: tempfile::TempDir,
}

impl Sides {
    fn new() -> Sides {
        Sides { dir: tempfile::tempdir().unwrap() }
    }

    /// The same dump at the same place of both sides.
    fn with(place: &str) -> Sides {
        let sides = Sides::new();
        for side in ["a", "b"] {
            sides.dump(&format!("{side}/{place}"), 1.0);
        }
        sides
    }

    fn path(&self, place: &str) -> PathBuf {
        self.dir.path().join(place)
    }

    fn write(&self, place: &str, content: impl AsRef<[u8]>) {
        let path = self.path(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn make(&self, place: &str) {
        fs::create_dir_all(self.path(place)).unwrap();
    }

    fn dump(&self, place: &str, max: f64) {
        self.write(&format!("{place}/dump.json"), run(&[("Torch.add.0.forward", &call(max))]));
    }

    fn outcome(&self, target: &str, golden: &str) -> Outcome {
        compare_dumps(&self.path(target), &self.path(golden), &with_stacks(&self.path("out")), &Silent)
            .unwrap()
    }

    /// The answers of both ways, which have to be the same.
    fn answer(&self) -> (Status, Outcome) {
        let (one, other) = (self.outcome("a", "b"), self.outcome("b", "a"));
        assert_eq!(one.status(), other.status(), "{}\n{}", one.paragraph(), other.paragraph());
        (one.status(), one)
    }

    /// It is incomplete for so many gaps of a kind, and the answer names the place.
    fn assert_gap(&self, kind: GapKind, count: usize, named: &str) {
        let (status, outcome) = self.answer();
        let text = outcome.paragraph();
        assert_eq!(status, Status::Incomplete, "{text}");
        assert_eq!(outcome.gaps.count(kind), count, "{text}");
        assert!(text.contains(named), "{named}: {text}");
    }
}

fn tensor(max: f64) -> Value {
    json!({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 2], "Max": max, "Min": -1.0, "Mean": 0.0,
           "Norm": 2.0, "requires_grad": false})
}

fn call(max: f64) -> String {
    json!({"input_args": [tensor(1.0)], "input_kwargs": {}, "output": [tensor(max)]}).to_string()
}

/// The text of a dump, in which a name may stand more than once.
fn run(records: &[(&str, &str)]) -> String {
    let records: Vec<String> = records.iter().map(|(name, body)| format!("{name:?}: {body}")).collect();
    let data = records.join(", ");
    format!(r#"{{"task": "statistics", "level": "mix", "framework": "pytorch", "data": {{{data}}}}}"#)
}

#[test]
fn a_rank_or_step_without_a_dump_on_both_sides_is_not_compared() {
    let cases: [(&[&str], GapKind, &str); 4] = [
        (&["step0/rank1"], GapKind::Ranks, "step0/rank1 (no dump.json on either side)"),
        (&["step0/rank1/dump_tensor_data"], GapKind::Ranks, "step0/rank1 (no dump.json"),
        (&["step1/rank0"], GapKind::Ranks, "step1/rank0 (no dump.json"),
        (&["step1"], GapKind::Steps, "step1 (no dump.json"),
    ];
    for (made, kind, named) in cases {
        let sides = Sides::with("step0/rank0");
        for place in made {
            sides.make(&format!("a/{place}"));
            sides.make(&format!("b/{place}"));
        }
        sides.assert_gap(kind, 1, named);
    }
}

#[test]
fn a_dump_that_is_a_link_or_a_directory_on_both_sides_is_not_passed_over() {
    let sides = Sides::with("rank0");
    for side in ["a", "b"] {
        sides.make(&format!("{side}/rank1/dump.json"));
        sides.make(&format!("{side}/rank2"));
        std::os::unix::fs::symlink("nowhere", sides.path(side).join("rank2/dump.json")).unwrap();
    }
    sides.assert_gap(GapKind::Ranks, 2, "rank1/dump.json");
}

#[test]
fn dumps_in_directories_of_other_names_are_named() {
    for (place, kind) in [
        ("step0/rank01", GapKind::Ranks),
        ("step0/foo", GapKind::Ranks),
        ("stepX/rank0", GapKind::Steps),
        ("old/step0/rank0", GapKind::Ranks),
    ] {
        let sides = Sides::with("step0/rank0");
        sides.dump(&format!("a/{place}"), 2.0);
        let shown = place.strip_suffix("/step0/rank0").or(place.strip_suffix("/rank0")).unwrap_or(place);
        sides.assert_gap(kind, 1, &format!("{shown} (it holds a dump"));
        sides.dump(&format!("b/{place}"), 2.0);
        sides.assert_gap(kind, 2, &format!("{shown} (it holds a dump"));
    }
    // What is no dump is nobody's rank, and one run may lie in the other.
    let sides = Sides::with("step0/rank0");
    sides.make("a/step0/notes/more");
    sides.write("a/tables/compare_result.csv", "");
    assert_eq!(sides.answer().0, Status::Identical);
    sides.dump("a/golden/step0/rank0", 1.0);
    assert_eq!(sides.outcome("a", "a/golden").status(), Status::Identical);
}

#[test]
fn the_directory_of_a_process_is_that_of_a_rank() {
    let sides = Sides::new();
    sides.dump("a/step0/proc12", 1.0);
    sides.dump("b/step0/proc345", 1.0);
    assert_eq!(sides.answer().0, Status::Identical);
    sides.dump("b/step0/proc345", 2.0);
    assert_eq!(sides.answer().0, Status::Diverged);

    let sides = Sides::with("step0/rank0");
    sides.dump("a/step0/proc2", 1.0);
    sides.assert_gap(GapKind::Ranks, 1, "step0/proc2 (only on the");
    sides.dump("b/step0/proc2", 2.0);
    assert_eq!(sides.answer().0, Status::Diverged);
}

#[test]
fn the_older_form_names_what_lies_beside_its_step() {
    let sides = Sides::with("step0/rank0");
    let compare = || {
        let options = Options { form: Form::Old, ..with_stacks(&sides.path("out")) };
        compare_ranks(&sides.path("a"), &sides.path("b"), &options, &Silent).unwrap()
    };
    assert_eq!(compare().status(), Status::Identical);
    sides.dump("b/stepX/rank0", 1.0);
    assert_eq!(compare().status(), Status::Incomplete);
}

#[test]
fn a_name_that_stands_twice_hides_no_record() {
    const NAME: &str = "Torch.add.0.forward";
    let whole = call(1.0);
    let other = call(7.0);
    let status = |ours: &[&str], theirs: &[&str]| {
        let sides = Sides::new();
        for (side, bodies) in [("a", ours), ("b", theirs)] {
            let records: Vec<(&str, &str)> = bodies.iter().map(|body| (NAME, *body)).collect();
            sides.write(&format!("{side}/dump.json"), run(&records));
        }
        let (status, outcome) = sides.answer();
        assert!(status != Status::Incomplete || outcome.paragraph().contains("stands more than once"));
        status
    };
    for hidden in [&other, &whole, r#"{"output": [null]}"#, "null"] {
        assert_eq!(status(&[hidden, &whole], &[&whole]), Status::Incomplete, "{hidden}");
        assert_eq!(status(&[hidden, &whole], &[hidden, &whole]), Status::Identical, "{hidden}");
    }
    assert_eq!(status(&[&other, &whole], &[&call(8.0), &whole]), Status::Incomplete);
    // As our own writer leaves them: a place that was held, and a record without its results.
    let begun = json!({"input_args": [tensor(1.0)], "input_kwargs": {}}).to_string();
    for version in ["{}", &begun] {
        assert_eq!(status(&[version, &whole], &[&whole]), Status::Identical, "{version}");
    }
    assert_eq!(status(&["{}", &whole], &[&other]), Status::Diverged);
}

#[test]
fn a_member_that_stands_twice_hides_no_value() {
    let sides = Sides::new();
    for (side, max) in [("a", 1.0), ("b", 2.0)] {
        let (hidden, last) = (tensor(max), tensor(1.0));
        let body = format!(r#"{{"input_args": [], "output": [{hidden}], "output": [{last}]}}"#);
        sides.write(&format!("{side}/dump.json"), run(&[("Torch.add.0.forward", &body)]));
    }
    assert_ne!(sides.answer().0, Status::Identical);
}

#[test]
fn stacks_and_modules_that_cannot_be_read_cost_nothing_but_themselves() {
    for file in ["stack.json", "construct.json"] {
        for content in [Some("{"), Some(""), Some(r#"{"0": 3}"#), None] {
            let sides = Sides::with("rank0");
            let path = sides.path("a/rank0").join(file);
            match content {
                Some(content) => fs::write(&path, content).unwrap(),
                None => std::os::unix::fs::symlink("nowhere", &path).unwrap(),
            }
            assert_eq!(sides.answer().0, Status::Identical, "{file} {content:?}");
            let warnings = Remembered::default();
            compare_dumps(&sides.path("a"), &sides.path("b"), &with_stacks(&sides.path("out")), &warnings)
                .unwrap();
            let said = warnings.said(|level| level == Level::Warning).join("\n");
            let is_valid = file == "construct.json" && content == Some(r#"{"0": 3}"#);
            assert_eq!(said.contains(&format!("{file} is not used: ")), !is_valid, "{said}");
        }
    }
}

#[test]
fn tables_show_values_of_a_paired_call_that_only_the_bench_side_has() {
    let sides = Sides::with("rank0");
    let body = json!({"input_args": [tensor(1.0)], "input_kwargs": {}, "output": [tensor(1.0), tensor(3.0)]});
    sides.write(
        "b/rank0/dump.json",
        run(&[("Torch.add.0.forward", &body.to_string()), ("Torch.mul.0.forward", &call(1.0))]),
    );
    let options = Options {
        formats: Formats { json: true, xlsx: true, html: true, csv: true },
        ..with_stacks(&sides.path("out"))
    };
    let outcome = compare_dumps(&sides.path("a"), &sides.path("b"), &options, &Silent).unwrap();
    assert_eq!(outcome.status(), Status::Diverged);
    let files = &outcome.parts[0].files;
    let file =
        |kind: &str| files.iter().find(|path| path.extension().is_some_and(|one| one == kind)).unwrap();
    let report: Value = serde_json::from_str(&fs::read_to_string(file("json")).unwrap()).unwrap();
    let only: Vec<(&str, &str)> = report["bench_only"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["Bench Name"].as_str().unwrap(), row["NPU API"].as_str().unwrap()))
        .collect();
    assert_eq!(
        only,
        [
            ("Torch.add.0.forward.output.1", "Torch.add.0.forward"),
            ("Torch.mul.0.forward.input.0", "N/A"),
            ("Torch.mul.0.forward.output.0", "N/A"),
        ]
    );
    assert!(fs::read_to_string(file("html")).unwrap().contains("Torch.add.0.forward.output.1"));
    let mut workbook: calamine::Xlsx<_> = calamine::open_workbook(file("xlsx")).unwrap();
    let sheet = calamine::Reader::worksheet_range(&mut workbook, "Bench Only").unwrap();
    assert_eq!(sheet.get_value((1, 1)).unwrap().to_string(), "Torch.add.0.forward.output.1");
}
