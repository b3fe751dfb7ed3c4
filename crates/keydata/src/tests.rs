//! Verdicts on runs made up for it.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use msprobe_tensor::DType;

use msprobe_compare::verdict::Tolerances;

use super::Status;
use super::limits::Limits;
use super::verdict::{DifferenceKind, Verdict, judge};
use super::{ArrayPlace, Bare, Comparison, Failure, KeyComparison, Metrics, Row};

fn place(step: i64, rank: i64, micro_step: i64, id: i64) -> ArrayPlace {
    ArrayPlace { step, rank, micro_step, id }
}

fn row(place: ArrayPlace, first_difference: Option<u64>) -> Row {
    let same = first_difference.is_none();
    Row {
        place,
        files: [PathBuf::from("a.npy"), PathBuf::from("b.npy")],
        shapes: [vec![4], vec![4]],
        dtypes: [DType::F32; 2],
        compared: vec![4],
        metrics: Metrics {
            same_percentage: if same { 100.0 } else { 75.0 },
            first_mismatch_index: first_difference,
            max_abs_error: if same { 0.0 } else { 0.5 },
            max_relative_error: if same { 0.0 } else { 0.25 },
            percentage_within_thousandth: 75.0,
            percentage_within_hundredth: 75.0,
        },
        nan_counts: [0, 0],
        first_difference,
        distance: if same { 0.0 } else { 0.5 },
        norm: 2.0,
    }
}

/// A key of both runs: two steps of two ranks with two micro steps, different at the given places.
fn key(name: &str, different: &[ArrayPlace]) -> KeyComparison {
    let mut rows = Vec::new();
    for step in 0..3 {
        for rank in 0..2 {
            for micro_step in 0..2 {
                let at = place(step, rank, micro_step, 0);
                rows.push(row(at, different.contains(&at).then_some(1)));
            }
        }
    }
    KeyComparison { name: name.to_owned(), present: [true, true], rows, ..KeyComparison::default() }
}

fn judged(keys: &[KeyComparison]) -> Verdict<'static> {
    let comparison = Comparison { keys: keys.to_vec(), unread: Vec::new() };
    judged_with(comparison, None, &[])
}

fn judged_with(
    comparison: Comparison,
    tolerances: Option<Tolerances>,
    noise: &[Comparison],
) -> Verdict<'static> {
    let limits = Limits::new(&comparison, tolerances, noise);
    judge(Box::leak(Box::new(comparison)), Box::leak(Box::new(limits)))
}

fn headline(keys: &[KeyComparison]) -> String {
    lines(&judged(keys))[0].clone()
}

fn lines(verdict: &Verdict<'_>) -> Vec<String> {
    verdict.lines([Path::new("run_a"), Path::new("run_b")])
}

#[test]
fn the_first_key_of_the_flow_is_named_with_what_came_before_it() {
    let keys = [
        key("log_prob", &[place(2, 0, 0, 0)]),
        key("loss", &[place(1, 0, 0, 0), place(2, 0, 0, 0)]),
        key("prompts", &[]),
        key("ref_log_prob", &[place(1, 0, 1, 0), place(1, 1, 0, 0)]),
        key("responses", &[]),
    ];
    let verdict = judged(&keys);
    let names: Vec<&str> = verdict.keys.iter().map(|summary| summary.key.name.as_str()).collect();
    assert_eq!(names, ["prompts", "responses", "ref_log_prob", "log_prob", "loss"]);
    assert_eq!(
        lines(&verdict),
        [
            "prompts, responses identical; ref_log_prob differs first at step 1 rank 0 micro_step 1 id 0: look at the \
             reference model",
            "75 % of the elements are the same, the first that is not has index 1; largest absolute error 0.5, largest \
             relative error 0.25.",
            "At the same step: loss. From step 2 on: log_prob.",
            "Next, for the layer: run both again with reference_dump: true, step_start: 1, step_end: 1; then msprobe \
             compare -tp run_a/reference_compute_log_prob/step1 -gp run_b/reference_compute_log_prob/step1 -o OUT --tolerance 0",
        ]
    );
}

#[test]
fn an_earlier_step_comes_before_an_earlier_key() {
    let keys = [key("responses", &[place(2, 1, 0, 0)]), key("loss", &[place(1, 0, 0, 0)])];
    assert_eq!(
        headline(&keys),
        "responses identical until step 2; loss differs first at step 1 rank 0 micro_step 0 id 0: look at the loss \
         function"
    );
}

#[test]
fn within_the_update_an_earlier_micro_batch_comes_first() {
    let keys = [key("log_prob", &[place(0, 0, 1, 0)]), key("loss", &[place(0, 1, 0, 0)])];
    assert!(
        headline(&keys).contains("loss differs first at step 0 rank 1 micro_step 0"),
        "{}",
        headline(&keys)
    );
}

#[test]
fn both_models_are_named_when_both_log_probabilities_differ() {
    let keys = [key("old_log_prob", &[place(1, 0, 0, 0)]), key("ref_log_prob", &[place(1, 0, 0, 0)])];
    assert_eq!(
        headline(&keys),
        "old_log_prob and ref_log_prob both differ first at step 1 rank 0 micro_step 0 id 0: look at the actor's \
         forward pass before the update and at the reference model, or at the update that ended step 0"
    );
    let keys = [key("old_log_prob", &[place(1, 0, 0, 0)]), key("ref_log_prob", &[place(2, 0, 0, 0)])];
    assert!(headline(&keys).starts_with("old_log_prob differs first at step 1"));
}

#[test]
fn unknown_keys_follow_in_the_order_they_were_saved() {
    let second = |seconds| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
    let mut late = key("a_late", &[place(0, 0, 0, 0)]);
    late.first_saved = second(20);
    let mut early = key("z_early", &[place(0, 0, 0, 0)]);
    early.first_saved = second(10);
    let keys = [late, key("loss", &[]), early];
    assert!(headline(&keys).starts_with("loss identical; z_early differs first"), "{}", headline(&keys));
}

#[test]
fn nothing_differs() {
    let keys = [key("loss", &[]), key("prompts", &[])];
    assert_eq!(judged(&keys).status, Status::Identical);
    assert_eq!(lines(&judged(&keys)), ["identical: 24 arrays in 2 keys"]);
    assert_eq!(judged(&[]).status, Status::Failed);
}

#[test]
fn what_the_longer_run_has_is_no_difference() {
    let mut loss = key("loss", &[]);
    loss.one_sided[1] = vec![place(3, 0, 0, 0), place(3, 1, 0, 0)];
    let keys = [loss];
    let verdict = judged(&keys);
    assert_eq!((verdict.status, verdict.origin), (Status::Incomplete, None));
    assert_eq!(
        lines(&verdict),
        [
            "incomplete: no difference in 12 arrays in 1 key, but not everything could be compared",
            "run_a ends with step 2, run_b with step 3: what follows was not compared.",
            "Arrays without a partner: 0 of the first run, 2 of the second, the first loss step 3 rank 0 micro_step 0 id 0.",
        ]
    );
}

#[test]
fn an_entry_missing_in_the_middle_is_one() {
    let mut responses = key("responses", &[]);
    responses.one_sided[0] = vec![place(1, 1, 0, 5)];
    let keys = [responses, key("loss", &[place(1, 0, 0, 0)])];
    let verdict = judged(&keys);
    let origin = verdict.origin.unwrap();
    assert_eq!(
        (origin.difference.kind, origin.difference.place),
        (DifferenceKind::OnlyIn(0), place(1, 1, 0, 5))
    );
    let lines = lines(&verdict);
    assert!(lines[0].starts_with("responses is missing in one run first at step 1 rank 1 micro_step 0 id 5"));
    assert_eq!(lines[1], "Only run_a has it there.");
}

#[test]
fn a_key_of_one_run_is_told_and_not_blamed() {
    let mut values = key("values", &[]);
    values.present = [false, true];
    values.one_sided[1] = values.rows.drain(..).map(|row| row.place).collect();
    let keys = [values, key("loss", &[])];
    let verdict = judged(&keys);
    assert_eq!(verdict.status, Status::Incomplete);
    assert!(lines(&verdict).contains(&"Only run_b has values.".to_owned()));
    assert_eq!(verdict.keys[0].state(), "only in 2");
}

#[test]
fn a_rank_of_one_run_is_not_blamed_either() {
    let mut loss = key("loss", &[place(2, 0, 0, 0)]);
    loss.one_sided[0] = vec![place(0, 7, 0, 0)];
    assert!(headline(&[loss]).starts_with("loss differs first at step 2"));
}

#[test]
fn nan_on_both_sides_is_told_but_no_difference() {
    let mut loss = key("loss", &[]);
    loss.rows[3].nan_counts = [1, 1];
    loss.rows[3].metrics.first_mismatch_index = Some(0);
    loss.rows[3].metrics.max_abs_error = f64::NAN;
    let keys = [loss];
    let verdict = judged(&keys);
    assert_eq!(verdict.status, Status::Identical);
    assert_eq!(lines(&verdict)[1], "NaN in loss (1 in the first run, 1 in the second).");
    assert_eq!(verdict.keys[0].max_abs_error, Some(0.0));
}

#[test]
fn what_could_not_be_read_is_counted() {
    let mut loss = key("loss", &[]);
    let at = loss.rows.remove(0).place;
    let files = [PathBuf::from("a"), PathBuf::from("b")];
    loss.failures.push(Failure { place: at, files, reason: "broken".to_owned() });
    let keys = [loss];
    let verdict = judged(&keys);
    assert_eq!((verdict.status, verdict.failures()), (Status::Incomplete, 1));
    assert_eq!(
        lines(&verdict)[1],
        "1 pair could not be compared, the first loss step 0 rank 0 micro_step 0 id 0; the log and summary.json say why."
    );
}

#[test]
fn another_shape_is_a_difference() {
    let mut responses = key("responses", &[]);
    responses.rows[0].shapes[1] = vec![6];
    let keys = [responses];
    let verdict = judged(&keys);
    assert_eq!(verdict.origin.unwrap().difference.kind, DifferenceKind::Shape);
    let lines = lines(&verdict);
    assert!(lines[0].starts_with("responses has another shape first at step 0"));
    assert!(lines[1].starts_with("Shapes [4] and [6]. 100 % of the elements are the same; largest"));
}

#[test]
fn another_dtype_is_not_identical() {
    let mut loss = key("loss", &[]);
    loss.rows[5].dtypes[1] = DType::I32;
    let verdict = judged(&[loss]);
    assert_eq!((verdict.status, verdict.keys[0].state()), (Status::Incomplete, "other dtype"));
    assert_eq!(
        lines(&verdict)[1],
        "The same values in another dtype: 1 pair, the first loss step 1 rank 0 micro_step 1 id 0."
    );
}

#[test]
fn bools_and_empty_arrays_are_compared_without_metrics() {
    let bare = |shapes: [Vec<usize>; 2], first_difference| {
        let mut flags = key("flags", &[]);
        flags.rows.clear();
        flags.bare.push(Bare {
            place: place(0, 0, 0, 0),
            shapes,
            dtypes: [DType::Bool; 2],
            first_difference,
        });
        judged(&[flags])
    };
    let same = bare([vec![4], vec![4]], None);
    assert_eq!(lines(&same), ["identical: 1 array in 1 key"]);
    assert_eq!(same.keys[0].state(), "identical");
    for other in [bare([vec![4], vec![4]], Some(2)), bare([vec![0], vec![0, 1]], None)] {
        assert_eq!((other.status, other.keys[0].state()), (Status::Diverged, "differs"));
    }
}

#[test]
fn what_was_not_read_and_ranks_of_one_run_are_said() {
    let mut loss = key("loss", &[]);
    loss.one_sided[1] = vec![place(0, 7, 0, 0)];
    let comparison = Comparison { keys: vec![loss], unread: vec!["x: it is no .npy file".to_owned()] };
    let verdict = judged_with(comparison, None, &[]);
    assert_eq!(verdict.status, Status::Incomplete);
    let lines = lines(&verdict);
    assert!(lines.contains(&"Only run_b has rank 7.".to_owned()), "{lines:?}");
    assert!(
        lines.contains(&"1 entry was not read, the first x: it is no .npy file.".to_owned()),
        "{lines:?}"
    );
}

/// Keys of models in three steps, all apart by these shares of their norm.
fn apart(shares: &[(&str, f64)]) -> Comparison {
    let of_key = |&(name, share): &(&str, f64)| {
        let mut all = key(name, &[]);
        for row in &mut all.rows {
            row.first_difference = (share > 0.0).then_some(1);
            row.distance = share * row.norm;
        }
        all
    };
    Comparison { keys: shares.iter().map(of_key).collect(), unread: Vec::new() }
}

#[test]
fn rounding_of_another_device_names_no_key() {
    let healthy = [("prompts", 0.0), ("old_log_prob", 4e-4), ("ref_log_prob", 3e-4), ("log_prob", 5e-4)];
    let verdict = judged_with(apart(&healthy), None, &[]);
    assert_eq!((verdict.status, verdict.origin), (Status::WithinTolerance, None));
    let text = &lines(&verdict)[0];
    assert!(text.contains("36 of 48 arrays in 4 keys differ") && text.contains("(rounding)"), "{text}");
    let broken = judged_with(apart(&[("old_log_prob", 4e-4), ("ref_log_prob", 0.1)]), None, &[]);
    assert_eq!(broken.status, Status::Diverged);
    assert_eq!(broken.keys[broken.origin.unwrap().key].key.name, "ref_log_prob");
    let text = &lines(&broken)[0];
    assert!(text.starts_with("old_log_prob within tolerance; ref_log_prob differs first"), "{text}");
    // Tokens are the same or not.
    let mut tokens = apart(&healthy);
    tokens.keys[0] = key("prompts", &[place(1, 0, 0, 0)]);
    tokens.keys[0].rows.iter_mut().for_each(|row| row.dtypes = [DType::I64; 2]);
    let verdict = judged_with(tokens, None, &[]);
    assert_eq!(verdict.keys[verdict.origin.unwrap().key].key.name, "prompts");
}

#[test]
fn runs_that_repeat_each_other_are_judged_to_the_last_bit() {
    let mut repeats = apart(&[("old_log_prob", 1e-7), ("ref_log_prob", 1e-7)]);
    let verdict = judged_with(repeats.clone(), None, &[]);
    assert_eq!(verdict.status, Status::WithinTolerance);
    repeats.keys[1].rows[0] = row(place(0, 0, 0, 0), None);
    let verdict = judged_with(repeats.clone(), None, &[]);
    assert_eq!(verdict.keys[verdict.origin.unwrap().key].key.name, "old_log_prob");
    let asked = |text: &str| judged_with(repeats.clone(), Tolerances::default().with(text).ok(), &[]).status;
    assert_eq!(
        (asked("1e-6"), asked("0"), asked("float32=1e-8")),
        (Status::WithinTolerance, Status::Diverged, Status::Diverged)
    );
}

#[test]
fn noise_is_measured_key_by_key() {
    let noise = [apart(&[("old_log_prob", 1e-3), ("ref_log_prob", 1e-5)])];
    let status = |old: f64, reference: f64| {
        let verdict = judged_with(apart(&[("old_log_prob", old), ("ref_log_prob", reference)]), None, &noise);
        (verdict.status, verdict.origin.map(|origin| verdict.keys[origin.key].key.name.clone()))
    };
    assert_eq!(status(2.9e-3, 2.9e-5), (Status::WithinTolerance, None));
    assert_eq!(status(2.9e-3, 3.1e-5), (Status::Diverged, Some("ref_log_prob".to_owned())));
    assert_eq!(status(3.1e-3, 2.9e-5), (Status::Diverged, Some("old_log_prob".to_owned())));
}

#[test]
fn what_is_made_of_log_probabilities_is_measured_by_them() {
    let mut runs = apart(&[("old_log_prob", 1e-3), ("kl_loss", 0.5)]);
    for row in &mut runs.keys[1].rows {
        (row.norm, row.distance) = (1e-4, 5e-5);
    }
    assert_eq!(judged_with(runs.clone(), None, &[]).status, Status::WithinTolerance);
    for row in &mut runs.keys[1].rows {
        (row.norm, row.distance) = (1.0, 0.5);
    }
    assert_eq!(judged_with(runs, None, &[]).status, Status::Diverged);
}
