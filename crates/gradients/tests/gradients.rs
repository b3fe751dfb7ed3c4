//! Gradients of two runs, from directories to files: the recorded case, damaged runs, many parameters.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::fs;
use std::path::{Path, PathBuf};

use msprobe_gradients::{
    Options, Outcome, Pictures, Status, Thresholds, compare_either, compare_rank, compare_ranks, file_stem,
};
use msprobe_report::console::{Level, Remembered, Silent};
use msprobe_report::error::Code;
use msprobe_tensor::files::{npy, write_bits};
use msprobe_tensor::{DType, TensorView};
use tempfile::TempDir;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/grad_probe/compare_two_runs");

fn quick(output: &Path) -> Options {
    Options { pictures: Pictures::None, html: false, ..Options::new(output) }
}

/// Writes one step: a table, and a file of directions per parameter.
fn write_step(rank: &Path, step: usize, parameters: &[(&str, &[u8])]) {
    let directory = rank.join(format!("step{step}"));
    fs::create_dir_all(&directory).unwrap();
    let rows: String = parameters.iter().map(|(name, _)| format!("{name},0.0,[1]\r\n")).collect();
    let table = format!("\u{feff}param_name,max,shape\r\n{rows}");
    fs::write(rank.join(format!("grad_summary_{step}.csv")), table).unwrap();
    for (name, directions) in parameters {
        write_npy(&directory.join(format!("{}.npy", file_stem(name, ".npy"))), directions);
    }
}

fn write_npy(path: &Path, directions: &[u8]) {
    let view = TensorView::contiguous(DType::Bool, vec![directions.len()], directions).unwrap();
    npy::write(&mut fs::File::create(path).unwrap(), &view).unwrap();
}

/// Two empty places for runs.
struct Runs {
    directory: TempDir,
}

impl Runs {
    fn new() -> Runs {
        Runs { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, place: &str, content: impl AsRef<[u8]>) {
        let path = self.path(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// The same steps in `a/rank0` and `b/rank0`.
    fn both(steps: usize, parameters: &[(&str, &[u8])]) -> Runs {
        let runs = Runs::new();
        for step in 0..steps {
            write_step(&runs.path("a/rank0"), step, parameters);
            write_step(&runs.path("b/rank0"), step, parameters);
        }
        runs
    }

    fn compare(&self) -> Outcome {
        let sides = [self.path("a"), self.path("b")];
        compare_ranks([&sides[0], &sides[1]], &quick(&self.path("out")), &Silent).unwrap()
    }

    fn table(&self) -> String {
        fs::read_to_string(self.path("out/rank0/similarities.csv")).unwrap().replace('\u{feff}', "")
    }
}

#[test]
fn the_recorded_case_byte_for_byte() {
    let output = tempfile::tempdir().unwrap();
    let golden = Path::new(GOLDEN);
    let (a, b) = (golden.join("run_a"), golden.join("run_b"));
    let outcome = compare_ranks([&a, &b], &Options::new(output.path()), &Silent).unwrap();
    let recorded = fs::read(golden.join("result_distributed/rank0/similarities.csv")).unwrap();
    assert_eq!(fs::read(output.path().join("rank0/similarities.csv")).unwrap(), recorded);
    let pictures = fs::read_to_string(golden.join("pictures.txt")).unwrap();
    let mut names: Vec<String> = fs::read_dir(output.path().join("rank0/similarities_picture"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let mut expected: Vec<&str> = pictures.split_whitespace().collect();
    expected.sort_unstable();
    assert_eq!(names, expected);
    assert_eq!(outcome.status(), Status::Diverged);
    assert_eq!(
        outcome.lines()[0],
        "step 0: 4 of 7 parameters begin below 0.97, first in backward order: norm.weight"
    );

    let single = output.path().join("single");
    let (a, b) = (a.join("rank0"), b.join("rank0"));
    for compare in [compare_rank, compare_either] {
        compare([&a, &b], &Options::new(&single), &Silent).unwrap();
        let recorded = fs::read(golden.join("result_single/similarities.csv")).unwrap();
        assert_eq!(fs::read(single.join("similarities.csv")).unwrap(), recorded);
    }
    for file in ["verdict.json", "similarities.html", "similarities_picture/summary_similarities.png"] {
        assert!(single.join(file).is_file(), "{file}");
    }
}

#[test]
fn a_run_agrees_with_itself_in_bits_too() {
    let runs = Runs::both(2, &[("w", &[1, 0, 1, 1, 0]), ("b", &[0, 1])]);
    for step in ["step0", "step1"] {
        let directory = runs.path("b/rank0").join(step);
        let view = TensorView::contiguous(DType::Bool, vec![5], &[1, 0, 1, 1, 1]).unwrap();
        write_bits(&mut fs::File::create(directory.join("w.bits")).unwrap(), &view).unwrap();
        fs::remove_file(directory.join("w.npy")).unwrap();
    }
    let outcome = runs.compare();
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
    assert_eq!(
        runs.table(),
        "step,0,1\r\nw,0.8,0.8\r\nb,1.0,1.0\r\nsummary,0.8571428571428571,0.8571428571428571\r\n"
    );
}

#[test]
fn each_fault_costs_its_own_cell() {
    let parameters: [(&str, &[u8]); 6] = [
        ("good", &[1, 0]),
        ("gone", &[1]),
        ("shape", &[1, 1]),
        ("kind", &[1]),
        ("torn", &[1]),
        ("empty", &[]),
    ];
    let runs = Runs::both(2, &parameters);
    let step = runs.path("b/rank0/step1");
    fs::remove_file(step.join("gone.npy")).unwrap();
    write_npy(&step.join("shape.npy"), &[1, 1, 1]);
    let numbers = TensorView::contiguous(DType::F32, vec![1], &[0; 4]).unwrap();
    npy::write(&mut fs::File::create(step.join("kind.npy")).unwrap(), &numbers).unwrap();
    fs::write(step.join("torn.npy"), b"\x93NUMPY\x01\0").unwrap();
    let outcome = runs.compare();
    assert_eq!(
        runs.table(),
        "step,0,1\r\ngood,1.0,1.0\r\ngone,1.0,\r\nshape,1.0,\r\nkind,1.0,\r\ntorn,1.0,\r\nempty,0,0\r\n\
         summary,1.0,1.0\r\n"
    );
    assert_eq!(outcome.status(), Status::Incomplete);
    let path = |name: &str| step.join(name).display().to_string();
    let pieces = [
        format!("missing: {}", path("gone.npy")),
        format!("tensor shape is not equal: {}", runs.path("a/rank0/step1/shape.npy").display()),
        format!("tensor type is not bool: {}", path("kind.npy")),
        format!("cannot read {}", path("torn.npy")),
    ];
    assert_eq!(outcome.failures.len(), 4);
    for (failure, piece) in outcome.failures.iter().zip(&pieces) {
        assert!(failure.contains(piece), "{failure}");
    }
    let verdict = fs::read_to_string(runs.path("out/verdict.json")).unwrap();
    assert!(verdict.contains("\"status\": \"incomplete\"") && verdict.contains("torn.npy"), "{verdict}");
}

#[test]
fn a_parameter_without_gradient_on_both_sides_is_no_fault() {
    let runs = Runs::new();
    for side in ["a/rank0", "b/rank0"] {
        write_step(&runs.path(side), 0, &[("x", &[1])]);
        write_step(&runs.path(side), 10, &[("late", &[1, 0]), ("x", &[1])]);
        write_step(&runs.path(side), 9, &[("late", &[0, 0])]);
    }
    let outcome = runs.compare();
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
    assert_eq!(runs.table(), "step,0,9,10\r\nx,1.0,,1.0\r\nlate,,1.0,1.0\r\nsummary,1.0,1.0,1.0\r\n");
}

#[test]
fn a_parameter_called_summary_has_its_own_row_and_picture() {
    // No file can be called `a/b`; it has a name that is safe.
    let runs = Runs::both(1, &[("summary", &[1]), ("a/b", &[1]), ("z", &[1, 1])]);
    let sides = [runs.path("a"), runs.path("b")];
    let options = Options { html: false, ..Options::new(runs.path("out")) };
    compare_ranks([&sides[0], &sides[1]], &options, &Silent).unwrap();
    assert_eq!(runs.table(), "step,0\r\nsummary,1.0\r\na/b,1.0\r\nz,1.0\r\nsummary,1.0\r\n");
    let pictures = fs::read_dir(runs.path("out/rank0/similarities_picture")).unwrap().count();
    assert_eq!(pictures, 4);
}

#[test]
fn nothing_in_common_is_an_error_scripts_know() {
    let runs = Runs::new();
    let sides = [runs.path("a"), runs.path("b")];
    let error = || {
        let sides = [sides[0].as_path(), sides[1].as_path()];
        compare_ranks(sides, &quick(&runs.path("out")), &Silent).unwrap_err()
    };
    assert_eq!(error().code, Code::IllegalPath);
    fs::create_dir_all(runs.path("a/rank0")).unwrap();
    fs::create_dir_all(runs.path("b/rank1")).unwrap();
    let same = "for comparison, please dump data in same configuration";
    assert_eq!(error().message, format!("no matched ranks {same}"));
    fs::create_dir_all(runs.path("b/rank0/step0")).unwrap();
    assert_eq!(error().message, format!("no matched steps {same}"));
    fs::create_dir_all(runs.path("a/rank0/step0")).unwrap();
    assert_eq!(error().message, format!("no matched grad_summary.csv {same}"));
    for side in ["a", "b"] {
        fs::write(runs.path(side).join("rank0/grad_summary_0.csv"), "param_name,max\r\nw,1\r\n").unwrap();
    }
    assert_eq!(error().message, format!("no matched grad_file {same}"));
    fs::write(runs.path("a/rank0/step0/w.npy"), "no array").unwrap();
    fs::write(runs.path("b/rank0/step0/w.npy"), "no array").unwrap();
    assert!(error().message.contains("a/rank0/step0/w.npy"), "{}", error().message);
    assert!(!runs.path("out").exists());
}

#[test]
fn a_rank_that_cannot_be_compared_costs_itself() {
    let runs = Runs::both(1, &[("w", &[1])]);
    fs::create_dir_all(runs.path("a/rank1/step0")).unwrap();
    fs::create_dir_all(runs.path("b/rank1/step1")).unwrap();
    let outcome = runs.compare();
    assert_eq!(outcome.ranks.len(), 1);
    assert_eq!(outcome.failures.len(), 1);
    assert!(outcome.failures[0].starts_with("rank 1: no matched steps"), "{:?}", outcome.failures);
}

#[test]
fn tables_of_either_spelling_torn_or_odd() {
    let runs = Runs::both(2, &[("w", &[1]), ("v", &[1, 1])]);
    let table = |text: &[u8]| fs::write(runs.path("a/rank0/grad_summary_0.csv"), text).unwrap();
    table(b"Param_name,Max\nv,1\nw,1\n");
    assert!(runs.compare().failures.is_empty());
    assert!(runs.table().starts_with("step,0,1\r\nv,1.0,1.0\r\nw,1.0,1.0\r\n"));
    table(b"param_name,max\r\nv,1\r\nnever_comp");
    let outcome = runs.compare();
    assert!(outcome.failures[0].contains("grad_summary_0.csv: row 2 is cut short"), "{:?}", outcome.failures);
    assert_eq!(outcome.ranks[0].similarities.parameters, ["v", "w"]);
    for broken in
        [&b"something,else\r\nv,1\r\n"[..], b"", b"\xff\xfe\0\0", b"param_name,max\r\n\xff\xff,1\r\n"]
    {
        table(broken);
        let outcome = runs.compare();
        assert!(outcome.failures[0].contains("grad_summary_0.csv"), "{:?}", outcome.failures);
        assert_eq!(outcome.ranks[0].similarities.parameters, ["w", "v"]);
    }
    // Names that lead elsewhere lead nowhere.
    table(b"param_name,max\r\n../../../b/rank0/step0/w,1\r\n");
    assert!(runs.compare().failures.iter().any(|failure| failure.contains("missing: ")));
}

#[test]
fn what_is_left_out_or_replaced_is_mentioned() {
    let runs = Runs::both(1, &[("w", &[1])]);
    fs::create_dir_all(runs.path("a/rank0/step7")).unwrap();
    fs::create_dir_all(runs.path("b/rank3")).unwrap();
    write_step(&runs.path("b/rank0"), 0, &[("w", &[1]), ("stranger", &[1])]);
    fs::create_dir_all(runs.path("out/rank0")).unwrap();
    fs::write(runs.path("out/rank0/similarities.csv"), "old").unwrap();
    let listener = Remembered::default();
    let sides = [runs.path("a"), runs.path("b")];
    let outcome = compare_ranks([&sides[0], &sides[1]], &quick(&runs.path("out")), &listener).unwrap();
    let warnings = listener.said(|level| level == Level::Warning);
    assert_eq!(warnings.len(), 4, "{warnings:?}");
    for (warning, piece) in warnings.iter().zip(["b: rank3", "step7", "stranger", "csv was there already"]) {
        assert!(warning.contains(piece), "{warning}");
    }
    // And it is counted: this is no complete comparison.
    assert_eq!(outcome.status(), Status::Incomplete);
    for (failure, piece) in
        outcome.failures.iter().zip(["b/rank3 is in one run only", "step7", "stranger is only in"])
    {
        assert!(failure.contains(piece), "{failure}");
    }
    assert!(runs.table().starts_with("step,0"));
}

#[test]
fn two_thousand_parameters_whatever_the_threads() {
    let names: Vec<String> = (0..2000).map(|index| format!("layers.{index}.weight")).collect();
    let runs = Runs::new();
    for step in 0..3usize {
        let ours: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &[1, 0, 1, 0][..])).collect();
        write_step(&runs.path("a/rank0"), step, &ours);
        let theirs: Vec<(&str, &[u8])> = names
            .iter()
            .enumerate()
            .map(|(index, name)| {
                let parted = step == 2 && (100..103).contains(&index);
                (name.as_str(), if parted { &[1, 0, 1, 1][..] } else { &[1, 0, 1, 0][..] })
            })
            .collect();
        write_step(&runs.path("b/rank0"), step, &theirs);
    }
    let sides = [runs.path("a"), runs.path("b")];
    let results: Vec<(Outcome, Vec<u8>)> = [1, 4]
        .into_iter()
        .map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let output = runs.path(&format!("out{threads}"));
            let options = Options { pictures: Pictures::Worst(5), ..Options::new(&output) };
            let mut outcome =
                pool.install(|| compare_ranks([&sides[0], &sides[1]], &options, &Silent)).unwrap();
            outcome.files.clear();
            outcome.output = PathBuf::new();
            assert_eq!(fs::read_dir(output.join("rank0/similarities_picture")).unwrap().count(), 6);
            (outcome, fs::read(output.join("rank0/similarities.csv")).unwrap())
        })
        .collect();
    assert_eq!(results[0], results[1]);
    assert_eq!(
        results[0].0.lines()[0],
        "step 2: 3 of 2000 parameters fell by more than 0.03, first in backward order: layers.102.weight"
    );
}

#[test]
fn thresholds_decide() {
    let runs = Runs::new();
    for step in 0..2 {
        write_step(&runs.path("a/rank0"), step, &[("w", &[1, 1, 1, 1])]);
    }
    write_step(&runs.path("b/rank0"), 0, &[("w", &[1, 1, 1, 0])]);
    write_step(&runs.path("b/rank0"), 1, &[("w", &[1, 1, 0, 0])]);
    let sides = [runs.path("a"), runs.path("b")];
    for (first, fall, status) in
        [(0.97, 0.03, Status::Diverged), (0.75, 0.2, Status::Diverged), (0.75, 0.25, Status::WithinTolerance)]
    {
        let options =
            Options { thresholds: Thresholds::new(first, fall, Some(0.0), None), ..quick(&runs.path("out")) };
        assert_eq!(compare_either([&sides[0], &sides[1]], &options, &Silent).unwrap().status(), status);
    }
}

/// The file of three signs.
fn signs() -> Vec<u8> {
    let mut file = Vec::new();
    npy::write(&mut file, &TensorView::contiguous(DType::Bool, vec![3], &[1, 0, 1]).unwrap()).unwrap();
    file
}

/// Two equal runs of two steps and two parameters.
fn gradient_runs() -> Runs {
    let runs = Runs::new();
    for side in ["a", "b"] {
        for step in 0..2 {
            runs.write(&format!("{side}/rank0/grad_summary_{step}.csv"), "param_name,max\nw,1\nv,2\n");
            for name in ["w", "v"] {
                runs.write(&format!("{side}/rank0/step{step}/{name}.npy"), signs());
            }
        }
    }
    runs
}

fn assert_gradients(runs: &Runs, expected: Status, what: &str) {
    for (ours, theirs) in [("a", "b"), ("b", "a")] {
        let options = quick(&runs.path("out"));
        let (ours, theirs) = (runs.path(ours), runs.path(theirs));
        let outcome = compare_ranks([&ours, &theirs], &options, &Silent).unwrap();
        assert_eq!(outcome.status(), expected, "{what}: {:?}", outcome.failures);
        let distinct: std::collections::HashSet<&String> = outcome.failures.iter().collect();
        assert_eq!(distinct.len(), outcome.failures.len(), "{what}: {:?}", outcome.failures);
    }
}

#[test]
fn gradients_that_are_compared_with_nothing_are_named() {
    use Status::{Identical, Incomplete};
    assert_gradients(&gradient_runs(), Identical, "equal");
    type Change = fn(&Runs);
    let cases: [(&str, Change); 9] = [
        ("a row of one side", |runs| runs.write("a/rank0/grad_summary_1.csv", "param_name,max\nw,1\n")),
        ("a row twice", |runs| runs.write("a/rank0/grad_summary_1.csv", "param_name,max\nw,1\nw,1\nv,2\n")),
        ("no rows", |runs| {
            for side in ["a", "b"] {
                runs.write(&format!("{side}/rank0/grad_summary_1.csv"), "param_name,max\n");
            }
        }),
        ("bytes behind an array", |runs| {
            runs.write("a/rank0/step1/w.npy", [signs(), b"zz".to_vec()].concat());
        }),
        ("bytes behind both", |runs| {
            for side in ["a", "b"] {
                runs.write(&format!("{side}/rank0/step1/w.npy"), [signs(), b"zz".to_vec()].concat());
            }
        }),
        ("a rank of no number", |runs| runs.write("a/rankX/step0/w.npy", signs())),
        ("a step of no number", |runs| fs::create_dir_all(runs.path("a/rank0/stepX")).unwrap()),
        ("another run", |runs| runs.write("a/old/rank0/grad_summary_0.csv", "param_name,max\nw,1\n")),
        ("a table without a step", |runs| {
            runs.write("a/rank0/grad_summary_9.csv", "param_name,max\nw,1\n");
        }),
    ];
    for (what, change) in cases {
        let runs = gradient_runs();
        change(&runs);
        assert_gradients(&runs, Incomplete, what);
    }
    // Results of an earlier comparison are no gradients.
    let runs = gradient_runs();
    runs.write("a/out/rank0/similarities.csv", "step,0\n");
    assert_gradients(&runs, Identical, "results");
}

#[test]
fn what_runs_that_should_agree_differ_by_is_not_suspicious() {
    // Of 100 signs so many are wrong, in both parameters.
    let write = |runs: &Runs, run: &str, wrong: [usize; 2]| {
        let [norm, weight] = wrong.map(|wrong| (0..100).map(|at| u8::from(at >= wrong)).collect::<Vec<u8>>());
        for step in 0..3 {
            write_step(&runs.path(run).join("rank0"), step, &[("norm", &norm), ("weight", &weight)]);
        }
    };
    let runs = Runs::new();
    write(&runs, "golden", [0, 0]);
    write(&runs, "noise", [4, 0]);
    write(&runs, "quiet", [2, 0]);
    let judge = |wrong: [usize; 2], noise: &[&str]| {
        write(&runs, "target", wrong);
        let noise = noise.iter().map(|run| runs.path(run)).collect();
        let options = Options { noise, ..quick(&runs.path("out")) };
        compare_either([&runs.path("target"), &runs.path("golden")], &options, &Silent).unwrap()
    };
    assert_eq!(judge([12, 0], &[]).status(), Status::Diverged);
    let tolerated = judge([12, 0], &["quiet", "noise"]);
    assert_eq!(tolerated.status(), Status::WithinTolerance);
    assert!(tolerated.lines().iter().any(|line| line.contains("noise: measured in 2 further runs")));
    // More than three times the noise, and as much in a parameter that has none.
    assert_eq!(judge([13, 0], &["noise"]).status(), Status::Diverged);
    let other = judge([12, 12], &["noise"]);
    let told = &other.lines()[0];
    assert!(told.contains("1 of 2 parameters begin below 0.97") && told.ends_with("weight"), "{told}");
    assert!(
        compare_either(
            [&runs.path("target"), &runs.path("golden")],
            &Options { noise: vec![runs.path("absent")], ..quick(&runs.path("out")) },
            &Silent
        )
        .is_err()
    );
}
