//! The answer of two tensor files.

use std::path::Path;

use msprobe_report::answer::{Answer, Culprit, Evidence, NotCompared, Scope, Status, StepAndRank};
use msprobe_report::{Cell, short_number};

use super::{COLUMNS, Compared, Outcome, relative_distance};
use crate::output::{display_name, tensors};

/// How two files compare.
pub(super) fn status(compared: &[Compared]) -> Status {
    let is_unreadable = |pair: &Compared| pair.outcome == Outcome::Unreadable;
    if !compared.is_empty() && compared.iter().all(is_unreadable) {
        return Status::Failed;
    }
    compared.iter().map(|pair| pair.outcome.status()).max().unwrap_or(Status::Identical)
}

/// The answer; `a` is the first file.
pub(super) fn answer(compared: &[Compared], equal_plain: usize, a: &Path) -> Answer {
    let status = status(compared);
    // Worst first, but what is on one side only does not show a difference.
    let worst = compared.iter().find(|pair| pair.outcome.status().is_difference());
    Answer {
        culprit: worst.map(|pair| Culprit {
            name: display_name(&pair.name).to_owned(),
            kind: kind(pair.outcome),
            direction: None,
            facts: facts(pair),
        }),
        evidence: worst.map(evidence).unwrap_or_default(),
        not_compared: not_compared(compared),
        next_step: worst.and_then(|pair| next_step(pair, a)),
        ..Answer::new(
            "diff",
            status,
            status.headline("", &sentence(compared, equal_plain)),
            Scope::of_two(StepAndRank::default()),
        )
    }
}

/// The answer in a sentence, without its status.
pub(super) fn sentence(compared: &[Compared], equal_plain: usize) -> String {
    let differing = compared.iter().filter(|pair| pair.outcome != Outcome::Same).count();
    let Some(worst) = compared.first().filter(|_| differing > 0) else {
        let besides = match equal_plain {
            0 => String::new(),
            1 => ", and 1 value besides".to_owned(),
            count => format!(", and {count} values besides"),
        };
        return match compared.len() {
            0 => format!("no tensors on either side{besides}"),
            count => format!("{}, every value equal{besides}", tensors(count)),
        };
    };
    let name = display_name(&worst.name);
    let evidence = match (&worst.metrics, worst.outcome) {
        (Some(metrics), Outcome::ValuesDiffer) => format!(
            "{name}, relative distance {}, max abs error {}, cosine {}",
            short_number(relative_distance(metrics)),
            short_number(metrics.max_abs_error),
            short_number(metrics.cosine())
        ),
        _ => format!("{name}, {}", worst.outcome.as_str()),
    };
    let total = compared.len();
    format!("{differing} of {total} not equal ({}); worst: {evidence}", breakdown(compared))
}

/// How a culprit is recognised.
fn kind(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Unreadable => "unreadable",
        Outcome::OnlyInA => "only_in_target",
        Outcome::OnlyInB => "only_in_golden",
        Outcome::ShapeDiffers => "shape_differs",
        Outcome::NonFiniteDiffers => "not_finite_differs",
        Outcome::ValuesDiffer => "values_differ",
        Outcome::DtypeDiffers => "dtype_differs",
        Outcome::PlainDiffers => "no_tensor_differs",
        Outcome::Unclaimed => "bytes_of_no_tensor",
        Outcome::Same => "same",
    }
}

/// The cell of a column.
fn cell<'a>(pair: &'a Compared, key: &str) -> &'a Cell {
    let index = COLUMNS.iter().position(|column| column.key == key);
    index.and_then(|index| pair.row.cells.get(index)).unwrap_or(&Cell::Empty)
}

fn facts(pair: &Compared) -> Vec<(&'static str, String)> {
    let mut facts = vec![("result", pair.outcome.as_str().to_owned())];
    for (label, key) in [("first at", "first_mismatch"), ("evidence", "error")] {
        let found = cell(pair, key);
        if *found != Cell::Empty {
            facts.push((label, found.to_string()));
        }
    }
    facts
}

fn evidence(pair: &Compared) -> Vec<Evidence> {
    let name = display_name(&pair.name);
    let mut all = Vec::new();
    for (measure, a, b) in [("dtype", "dtype_a", "dtype_b"), ("shape", "shape_a", "shape_b")] {
        let (target, golden) = (cell(pair, a), cell(pair, b));
        if (target, golden) != (&Cell::Empty, &Cell::Empty) {
            all.push(Evidence::of_sides(name, "", measure, target.clone(), golden.clone()));
        }
    }
    let is_measure = |key: &str| {
        !matches!(key, "name" | "result" | "dtype_a" | "dtype_b" | "shape_a" | "shape_b" | "error")
    };
    for column in COLUMNS.iter().filter(|column| is_measure(column.key)) {
        let measured = cell(pair, column.key);
        if *measured != Cell::Empty {
            all.push(Evidence::of_pair(name, "", column.key, measured.clone()));
        }
    }
    all
}

fn not_compared(compared: &[Compared]) -> Vec<NotCompared> {
    let kinds = [
        (
            "unpaired",
            ["is in one file only", "are in one file only"],
            &[Outcome::OnlyInA, Outcome::OnlyInB][..],
        ),
        ("files", ["cannot be read"; 2], &[Outcome::Unreadable]),
        ("unread", ["has bytes of no tensor", "have bytes of no tensor"], &[Outcome::Unclaimed]),
    ];
    let of_kind = |(kind, words, outcomes): (&'static str, [&str; 2], &[Outcome])| {
        let all = || compared.iter().filter(|pair| outcomes.contains(&pair.outcome));
        let number = all().count();
        let first = all().map(|pair| {
            let reason = match cell(pair, "error") {
                Cell::Empty => pair.outcome.as_str().to_owned(),
                error => error.to_string(),
            };
            (display_name(&pair.name).to_owned(), reason)
        });
        NotCompared::of(kind, number, format!("{number} {}", words[usize::from(number > 1)]), first)
    };
    kinds.into_iter().filter_map(of_kind).collect()
}

/// Where a look at one file says more than the table.
fn next_step(pair: &Compared, a: &Path) -> Option<String> {
    let name = if pair.name.is_empty() { String::new() } else { format!(" --tensor {}", pair.name) };
    let next = || format!("msprobe inspect {}{name}, and the same of B, to count NaN and Inf", a.display());
    (pair.outcome == Outcome::NonFiniteDiffers).then(next)
}

fn count(compared: &[Compared], outcome: Outcome) -> usize {
    compared.iter().filter(|pair| pair.outcome == outcome).count()
}

/// How many differ in which way, worst first.
fn breakdown(compared: &[Compared]) -> String {
    let ways = [
        (Outcome::Unreadable, "unreadable"),
        (Outcome::OnlyInA, "only in A"),
        (Outcome::OnlyInB, "only in B"),
        (Outcome::ShapeDiffers, "in shape"),
        (Outcome::NonFiniteDiffers, "in NaN/Inf"),
        (Outcome::ValuesDiffer, "in values"),
        (Outcome::DtypeDiffers, "in dtype only"),
        (Outcome::PlainDiffers, "in what is no tensor"),
        (Outcome::Unclaimed, "with bytes of no tensor"),
    ];
    let counted = ways.map(|(outcome, text)| (count(compared, outcome), text));
    let told: Vec<String> = counted
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, text)| format!("{count} {text}"))
        .collect();
    told.join(", ")
}
