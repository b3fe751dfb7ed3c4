//! Tables about all keys: how each compares, where token sequences part, what has no partner, what failed.

use msprobe_report::VecRows;
use msprobe_report::answer::Answer;
use msprobe_report::{Cell, Column, Row as TableRow, Table, Tone, json_number, rows_as_json};
use serde_json::{Value, json};

use super::flow;
use super::text::differs;
use super::tokens::{Parting, parting, word};
use super::verdict::{DifferenceKind, KeySummary, Verdict};
use super::{ArrayPlace, KeyComparison};

/// Partings that are looked for in one key; each costs opening two files.
const MOST_PARTINGS: usize = 1000;

const COLUMNS: [Column; 17] = [
    Column::text("key", "key"),
    Column::text("state", "state"),
    Column::number("step", "step"),
    Column::number("rank", "rank"),
    Column::number("micro_step", "micro_step"),
    Column::number("id", "id"),
    Column::text("difference", "difference"),
    Column::number("index", "index"),
    Column::number("rows", "rows"),
    Column::number("differing_rows", "differing"),
    Column::number("least_same_percentage", "least same %"),
    Column::number("max_abs_error", "max abs"),
    Column::number("max_relative_error", "max rel"),
    Column::number("nan_1", "NaN 1"),
    Column::number("nan_2", "NaN 2"),
    Column::text("one_sided", "only 1/2"),
    Column::number("failed_pairs", "failed"),
];

/// What fits on a terminal.
const BRIEF_COLUMNS: [Column; 9] = [
    Column::text("key", "key"),
    Column::text("state", "state"),
    Column::text("first_difference", "first difference"),
    Column::number("differing_rows", "differing"),
    Column::number("max_abs_error", "max abs"),
    Column::number("max_relative_error", "max rel"),
    Column::number("nan", "NaN 1/2"),
    Column::number("one_sided", "only 1/2"),
    Column::number("failed_pairs", "failed"),
];

const PARTING_COLUMNS: [Column; 10] = [
    Column::text("key", "key"),
    Column::number("step", "step"),
    Column::number("rank", "rank"),
    Column::number("micro_step", "micro_step"),
    Column::number("sample", "sample"),
    Column::number("token", "token"),
    Column::text("token_1", "token in 1"),
    Column::text("token_2", "token in 2"),
    Column::number("length_1", "length 1"),
    Column::number("length_2", "length 2"),
];

const PLACE_COLUMNS: [Column; 6] = [
    Column::text("key", "key"),
    Column::number("step", "step"),
    Column::number("rank", "rank"),
    Column::number("micro_step", "micro_step"),
    Column::number("id", "id"),
    Column::text("what", "what"),
];

/// A row per key, in the order in which data flows.
pub(super) fn key_table(verdict: &Verdict<'_>) -> Table {
    rows_of_keys(verdict, &COLUMNS, key_cells)
}

/// The same for a terminal.
pub(super) fn brief_key_table(verdict: &Verdict<'_>) -> Table {
    rows_of_keys(verdict, &BRIEF_COLUMNS, brief_cells)
}

fn rows_of_keys(verdict: &Verdict<'_>, columns: &[Column], cells: fn(&KeySummary<'_>) -> Vec<Cell>) -> Table {
    let rows = verdict.keys.iter().enumerate().map(|(index, summary)| TableRow {
        cells: cells(summary),
        tone: match summary.state() {
            "identical" => Tone::Good,
            _ if verdict.origin.is_some_and(|origin| origin.key == index) => Tone::Bad,
            _ => Tone::Warning,
        },
    });
    Table { columns: columns.to_vec(), rows: rows.collect() }
}

fn brief_cells(summary: &KeySummary<'_>) -> Vec<Cell> {
    let float = |value: Option<f64>| value.map_or(Cell::Empty, Cell::Float);
    let first = summary.first.map_or(Cell::Empty, |first| {
        let what = if first.kind == DifferenceKind::Values {
            String::new()
        } else {
            format!(" ({})", kind_word(first.kind))
        };
        Cell::Text(format!("{}{what}", first.place.text()))
    });
    let both = |[one, two]: [u64; 2]| Cell::Text(format!("{one}/{two}"));
    vec![
        Cell::Text(summary.key.name.clone()),
        Cell::Text(summary.state().to_owned()),
        first,
        both([summary.differing as u64, summary.key.rows.len() as u64]),
        float(summary.max_abs_error),
        float(summary.max_relative_error),
        both(summary.nan_counts),
        both([0, 1].map(|run| summary.key.one_sided[run].len() as u64)),
        Cell::Int(summary.key.failures.len() as i128),
    ]
}

fn key_cells(summary: &KeySummary<'_>) -> Vec<Cell> {
    let optional = |value: Option<i128>| value.map_or(Cell::Empty, Cell::Int);
    let float = |value: Option<f64>| value.map_or(Cell::Empty, Cell::Float);
    let place = summary.first.map(|first| first.place);
    let at = |of: fn(ArrayPlace) -> i64| optional(place.map(|place| of(place).into()));
    let [one, two] = [0, 1].map(|run| summary.key.one_sided[run].len());
    vec![
        Cell::Text(summary.key.name.clone()),
        Cell::Text(summary.state().to_owned()),
        at(|place| place.step),
        at(|place| place.rank),
        at(|place| place.micro_step),
        at(|place| place.id),
        summary.first.map_or(Cell::Empty, |first| Cell::Text(kind_word(first.kind).to_owned())),
        optional(summary.evidence().and_then(|row| row.first_difference).map(Into::into)),
        Cell::Int(summary.key.rows.len() as i128),
        Cell::Int(summary.differing as i128),
        float(summary.least_same_percentage),
        float(summary.max_abs_error),
        float(summary.max_relative_error),
        Cell::Int(summary.nan_counts[0].into()),
        Cell::Int(summary.nan_counts[1].into()),
        Cell::Text(format!("{one}/{two}")),
        Cell::Int(summary.key.failures.len() as i128),
    ]
}

fn kind_word(kind: DifferenceKind) -> &'static str {
    match kind {
        DifferenceKind::Values => "values",
        DifferenceKind::Shape => "shape",
        DifferenceKind::OnlyIn(0) => "only in 1",
        DifferenceKind::OnlyIn(_) => "only in 2",
    }
}

/// Where the samples of token keys part, for the first differing pairs of each.
pub(super) fn partings<'a>(verdict: &Verdict<'a>) -> Vec<(&'a KeyComparison, Parting)> {
    let keys = verdict.keys.iter().filter(|summary| flow::holds_tokens(&summary.key.name));
    keys.flat_map(|summary| {
        let rows = summary.key.rows.iter().filter(|row| differs(row)).take(MOST_PARTINGS);
        rows.filter_map(|row| Some((summary.key, parting(row)?)))
    })
    .collect()
}

/// The partings as a table.
pub(super) fn parting_table(partings: &[(&KeyComparison, Parting)]) -> Table {
    let token = |token: Option<_>| Cell::Text(token.map_or_else(|| "(ended)".to_owned(), word));
    let rows = partings.iter().map(|(key, parting)| TableRow {
        cells: vec![
            Cell::Text(key.name.clone()),
            Cell::Int(parting.place.step.into()),
            Cell::Int(parting.place.rank.into()),
            Cell::Int(parting.place.micro_step.into()),
            Cell::Int(parting.sample.into()),
            Cell::Int(parting.token as i128),
            token(parting.tokens[0]),
            token(parting.tokens[1]),
            Cell::Int(parting.lengths[0] as i128),
            Cell::Int(parting.lengths[1] as i128),
        ],
        tone: Tone::Plain,
    });
    Table { columns: PARTING_COLUMNS.to_vec(), rows: rows.collect() }
}

/// What has no partner or could not be compared.
pub(super) fn left_out_table(verdict: &Verdict<'_>) -> Table {
    let row = |key: &KeyComparison, place: ArrayPlace, what: String| TableRow {
        cells: vec![
            Cell::Text(key.name.clone()),
            Cell::Int(place.step.into()),
            Cell::Int(place.rank.into()),
            Cell::Int(place.micro_step.into()),
            Cell::Int(place.id.into()),
            Cell::Text(what),
        ],
        tone: Tone::Plain,
    };
    let mut rows = Vec::new();
    for summary in &verdict.keys {
        let key = summary.key;
        rows.extend(summary.other_dtype.iter().map(|&place| row(key, place, "other dtype".to_owned())));
        rows.extend(key.failures.iter().map(|failure| row(key, failure.place, failure.reason.clone())));
        for (run, what) in ["only in 1", "only in 2"].into_iter().enumerate() {
            rows.extend(key.one_sided[run].iter().map(|&place| row(key, place, what.to_owned())));
        }
    }
    rows.extend(verdict.unread.iter().map(|text| TableRow {
        cells: vec![
            Cell::Empty,
            Cell::Empty,
            Cell::Empty,
            Cell::Empty,
            Cell::Empty,
            Cell::Text(format!("not read: {text}")),
        ],
        tone: Tone::Plain,
    }));
    Table { columns: PLACE_COLUMNS.to_vec(), rows }
}

/// The rows of a table for a sheet: titles, cells, colours.
pub(super) fn as_sheet(table: Table) -> (Vec<String>, VecRows) {
    let headers = table.columns.iter().map(|column| column.title.to_owned()).collect();
    let (rows, tones) = table.rows.into_iter().map(|row| (row.cells, row.tone)).unzip();
    (headers, VecRows::coloured(rows, tones))
}

/// Everything for machines.
pub(super) fn as_json(
    verdict: &Verdict<'_>,
    partings: &[(&KeyComparison, Parting)],
    dirs: [&str; 2],
    lines: &[String],
    answer: &Answer,
) -> Value {
    let origin = verdict.origin;
    let place = origin.map(|origin| origin.difference.place);
    let at = |of: fn(ArrayPlace) -> i64| json!(place.map(of));
    let row = origin.and_then(|origin| verdict.row(origin));
    let layers = verdict.layers();
    let not_compared = verdict.not_compared();
    json!({
        "verdict": {
            "status": verdict.status.as_str(),
            "key": origin.map(|origin| &verdict.keys[origin.key].key.name),
            "also": origin.and_then(|origin| origin.beside).map(|key| &verdict.keys[key].key.name),
            "step": at(|place| place.step),
            "rank": at(|place| place.rank),
            "micro_step": at(|place| place.micro_step),
            "id": at(|place| place.id),
            "difference": origin.map(|origin| kind_word(origin.difference.kind)),
            "index": row.and_then(|row| row.first_difference),
            "max_abs_error": row.map(|row| json_number(row.metrics.max_abs_error)),
            "max_relative_error": row.map(|row| json_number(row.metrics.max_relative_error)),
            "look_at": verdict.look_at(),
            "phase": layers.map(|layers| layers.phase),
            "layer_switch": layers.map(|layers| layers.switch),
            "compared": verdict.compared(),
            "not_compared": {
                "unpaired": not_compared.unpaired,
                "failed": not_compared.failed,
                "dtype": not_compared.other_dtype,
                "unread": not_compared.unread,
            },
            "text": lines.join("\n"),
        },
        "directories": dirs,
        "keys": rows_as_json(&key_table(verdict)),
        "tokens": rows_as_json(&parting_table(partings)),
        "left_out": rows_as_json(&left_out_table(verdict)),
        "answer": answer.to_json(),
    })
}
