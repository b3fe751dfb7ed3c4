//! One answer in all its forms.

use serde_json::json;

use super::*;
use crate::{Column, Row, Table};

fn answer() -> Answer {
    let at = StepAndRank { step: Some(5), rank: Some(1) };
    let scope = Scope { at, against: Some(StepAndRank { step: Some(0), ..at }) };
    let headline = Status::Diverged.headline(&scope.to_string(), "x gives something else");
    Answer {
        culprit: Some(Culprit {
            name: "Torch.exp.0.forward".to_owned(),
            kind: "computes_differently",
            direction: Some("forward"),
            facts: vec![("called at", "File train.py, line 3".to_owned()), ("", "File run.py".to_owned())],
        }),
        evidence: vec![
            Evidence::of_sides(
                "Torch.exp.0.forward",
                "output.0",
                "max",
                Cell::Float(f64::NEG_INFINITY),
                Cell::Int(1),
            ),
            Evidence::of_pair("Torch.exp.0.forward", "", "relative_error", Cell::Float(f64::INFINITY))
                .tolerating(3e-5),
        ],
        not_compared: vec![NotCompared {
            kind: "files",
            count: 5,
            text: "5 tensor files cannot be compared".to_owned(),
            first: (0..4).map(|index| (format!("{index}.pt"), "not there".to_owned())).collect(),
        }],
        next_step: Some("msprobe diff a b".to_owned()),
        output: Some("out".into()),
        files: vec!["out/rank1/a.csv".into(), "out/\u{1b}verdict.json".into()],
        ..Answer::new("compare", Status::Diverged, headline, scope)
    }
}

#[test]
fn the_text_begins_with_the_status_and_ends_with_the_files() {
    let table = Table {
        columns: vec![Column::text("key", "key")],
        rows: vec![Row { cells: vec![Cell::Text("loss".to_owned())], tone: Tone::Bad }],
    };
    let sections = [
        Section::lines("Empty", Vec::new()),
        Section::lines("Besides", vec!["  one".to_owned()]),
        Section::table("", table),
    ];
    let mut text = Vec::new();
    answer().write(&sections, false, &mut text).unwrap();
    let expected = "\
Diverged in step 5 against step 0, rank 1: x gives something else

Culprit  Torch.exp.0.forward  (forward)
  called at  File train.py, line 3
             File run.py

Not compared
  5 tensor files cannot be compared
    0.pt (not there)
    1.pt (not there)
    2.pt (not there)
    … 2 more

Besides
  one

key
loss

Next  msprobe diff a b

Results are in out:
  rank1/a.csv
  \\x1bverdict.json
";
    assert_eq!(String::from_utf8(text).unwrap(), expected);
    let (before_files, _) = expected.split_once("\n\nResults").unwrap();
    assert_eq!(answer().text(&sections), before_files);
    let mut coloured = Vec::new();
    answer().write(&[], true, &mut coloured).unwrap();
    assert!(coloured.starts_with(b"\x1b[1m\x1b[31mDiverged in step 5"));
}

#[test]
fn the_json_has_every_member_and_one_spelling_of_what_is_not_finite() {
    assert_eq!(
        answer().to_json(),
        json!({
            "schema": 1,
            "command": "compare",
            "status": "diverged",
            "headline": "Diverged in step 5 against step 0, rank 1: x gives something else",
            "scope": {"step": 5, "rank": 1, "against": {"step": 0, "rank": 1}},
            "culprit": {
                "name": "Torch.exp.0.forward",
                "kind": "computes_differently",
                "direction": "forward",
                "facts": [
                    {"label": "called at", "text": "File train.py, line 3"},
                    {"label": "", "text": "File run.py"},
                ],
            },
            "evidence": [
                {"record": "Torch.exp.0.forward", "value": "output.0", "measure": "max", "target": "-Infinity",
                 "golden": 1, "measured": null, "tolerated": null},
                {"record": "Torch.exp.0.forward", "value": null, "measure": "relative_error", "target": null,
                 "golden": null, "measured": "Infinity", "tolerated": 3e-5},
            ],
            "not_compared": [{
                "kind": "files",
                "count": 5,
                "text": "5 tensor files cannot be compared",
                "first": (0..4).map(|index| json!({"name": format!("{index}.pt"), "reason": "not there"}))
                    .collect::<Vec<_>>(),
            }],
            "next_step": "msprobe diff a b",
            "files": ["out/rank1/a.csv", "out/\u{1b}verdict.json"],
        })
    );
}

#[test]
fn the_page_has_the_colour_of_the_status() {
    let block = answer().block("Two dumps", [("Rule".to_owned(), "none".to_owned())]);
    assert_eq!((block.tone, &*block.text), (Tone::Bad, &*answer().headline));
    let labels: Vec<&str> = block.facts.iter().map(|(label, _)| label.as_str()).collect();
    assert_eq!(labels, ["Status", "Culprit", "Direction", "Called at", "Not compared", "Next", "Rule"]);
}

#[test]
fn one_run_is_measured_and_not_compared() {
    let one = Answer { scope: Scope::of_one(StepAndRank::default()), ..answer() };
    assert!(one.text(&[]).contains("\n\nNot measured\n"));
    assert_eq!(one.to_json()["scope"]["against"], serde_json::Value::Null);
}
