//! The answer in words, for one rank and for several.

use super::*;
use crate::agreement::{Count, total};

const WHOLE: u64 = 10_000;

fn count(share: f64) -> Agreement {
    Agreement::Signs(Count { same: (share * WHOLE as f64).round() as u64, total: WHOLE })
}

/// A rank whose parameters are `p0`, `p1`, …; NaN is a cell that is missing.
fn rank(number: u64, steps: &[u64], rows: &[&[f64]]) -> RankOutcome {
    let cell = |share: f64| (!share.is_nan()).then(|| count(share));
    let agreements: Vec<Vec<Option<Agreement>>> =
        rows.iter().map(|row| row.iter().map(|&share| cell(share)).collect()).collect();
    let mean = |step: usize| total(agreements.iter().map(|row| row[step]));
    let similarities = Similarities {
        steps: steps.to_vec(),
        parameters: (0..rows.len()).map(|index| format!("p{index}")).collect(),
        summary: (0..steps.len()).map(mean).collect(),
        agreements,
        step_cosines: None,
    };
    let verdict = RankVerdict::judge(&similarities, Thresholds::default(), &crate::noise::Noise::default());
    RankOutcome { rank: Some(number), similarities, verdict }
}

fn outcome(ranks: Vec<RankOutcome>, failures: &[&str]) -> Outcome {
    Outcome {
        ranks,
        failures: failures.iter().map(|&text| text.to_owned()).collect(),
        differing_rows: Vec::new(),
        thresholds: Thresholds::default(),
        noise_runs: 0,
        output: PathBuf::from("out"),
        files: Vec::new(),
    }
}

#[test]
fn a_fall_is_said_in_one_line() {
    let one = rank(0, &[0, 2, 3], &[&[1.0, 1.0, 0.9], &[1.0, 1.0, 0.5], &[1.0; 3]]);
    let outcome = outcome(vec![one], &[]);
    assert_eq!(outcome.status(), Status::Diverged);
    assert_eq!(
        outcome.lines(),
        [
            "step 3: 2 of 3 parameters fell by more than 0.03, first in backward order: p1",
            "all parameters together: lowest similarity 0.8000 at step 3",
        ]
    );
}

#[test]
fn a_low_beginning_is_said_so() {
    let lines = outcome(vec![rank(0, &[0], &[&[0.9], &[1.0]])], &[]).lines();
    assert_eq!(lines[0], "step 0: 1 of 2 parameters begin below 0.97, first in backward order: p0");
    let late = rank(0, &[0, 1], &[&[1.0, 0.9], &[f64::NAN, 0.9]]);
    assert_eq!(
        outcome(vec![late], &["x"]).lines()[0],
        "step 1: 2 of 2 parameters: 1 begin below 0.97, 1 fell by more than 0.03, first in backward order: p1"
    );
}

#[test]
fn the_earliest_step_of_all_ranks_decides() {
    let ranks = vec![
        rank(0, &[0, 1, 2], &[&[1.0, 1.0, 0.5]]),
        rank(1, &[0, 1, 2], &[&[1.0, 0.9, 0.9]]),
        rank(2, &[0, 1, 2], &[&[1.0, 0.8, 0.8]]),
        rank(3, &[0, 1, 2], &[&[1.0; 3]]),
    ];
    let outcome = outcome(ranks, &[]);
    assert_eq!(
        outcome.lines(),
        [
            "step 1, rank 1: 1 of 1 parameters fell by more than 0.03, first in backward order: p0",
            "at the same step also in rank 2",
            "later also in rank 0 (step 2)",
            "all parameters together: lowest similarity 0.5000 at step 2, rank 0",
        ]
    );
    let json = outcome.to_json();
    assert_eq!((json["step"].as_u64(), json["rank"].as_u64()), (Some(1), Some(1)));
    assert_eq!(json["parameters"], json!(["p0"]));
    assert_eq!(json["ranks"][0]["step"], 2);
    assert_eq!(
        (&json["ranks"][3]["suspicious"], &json["ranks"][0]["suspicious"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(json["reasons"], json!({"fall": 1}));
    assert_eq!(json["ranks"][2]["curves"][0]["worst_step"], 1);
    assert_eq!(json["ranks"][2]["curves"][0]["flagged"][0]["reason"], "fall");
}

#[test]
fn nothing_suspicious_and_not_all_compared() {
    let good = || rank(0, &[0, 1], &[&[1.0, 0.99], &[f64::NAN, 1.0]]);
    let complete = outcome(vec![good()], &[]);
    assert_eq!(complete.status(), Status::WithinTolerance);
    assert_eq!(
        complete.lines()[0],
        "nothing suspicious: 2 parameters, 2 steps, lowest similarity 0.9900 (p0, step 1)"
    );
    let partial = outcome(vec![good()], &["a file", "another"]);
    assert_eq!(partial.status(), Status::Incomplete);
    assert!(partial.lines()[0].starts_with("incomplete: nothing suspicious in what could be compared: "));
    assert_eq!(
        partial.lines()[2],
        "2 items could not be compared, the first: a file; verdict.json lists all"
    );
    assert_eq!(partial.to_json()["failures"], json!(["a file", "another"]));
    assert_eq!(partial.to_json()["step"], Value::Null);
}

#[test]
fn there_may_be_nothing_to_say() {
    let outcome = outcome(vec![rank(0, &[0], &[&[f64::NAN]])], &[]);
    assert_eq!(outcome.lines(), ["there was no element to compare"]);
    assert_eq!(outcome.status(), Status::Failed);
}

#[test]
fn identical_are_only_equal_signs_and_equal_tables() {
    let mut same = outcome(vec![rank(0, &[0, 1], &[&[1.0, 1.0]])], &[]);
    assert_eq!(same.status(), Status::Identical);
    assert_eq!(
        same.lines()[0],
        "identical: 1 parameter, 2 steps, every direction and every row of the tables"
    );
    same.differing_rows = vec!["step 1: p0".to_owned()];
    assert_eq!(same.status(), Status::WithinTolerance);
    assert_eq!(same.lines()[2], "the tables differ in 1 row, the first step 1: p0");
    let one_flip = outcome(vec![rank(0, &[0], &[&[0.9999]])], &[]);
    assert_eq!(one_flip.status(), Status::WithinTolerance);
}

#[test]
fn sinking_is_said_in_its_own_words() {
    let curve: Vec<f64> = (0..30).map(|step| 1.0 - f64::from(step) * 0.01).collect();
    let steps: Vec<u64> = (0..30).collect();
    let outcome = outcome(vec![rank(0, &steps, &[&curve, &[1.0; 30]])], &[]);
    assert_eq!(
        outcome.lines()[0],
        "step 11: 1 of 2 parameters sank by more than 0.1 since the first steps, first in backward order: p0"
    );
    let json = outcome.to_json();
    assert_eq!(json["reasons"], json!({"total_fall": 1}));
    let words: Vec<&Value> = json["ranks"][0]["curves"][0]["flagged"]
        .as_array()
        .unwrap()
        .iter()
        .map(|flag| &flag["reason"])
        .collect();
    assert_eq!(words, ["total_fall", "floor"]);
}

#[test]
fn almost_one_is_not_one() {
    assert_eq!([short(1.0), short(0.999_999), short(0.5)], ["1.0000", "0.9999", "0.5000"]);
}
