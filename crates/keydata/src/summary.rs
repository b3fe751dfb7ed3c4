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

/// Where an array was saved, as [`place_cells`] says it.
const PLACE_COLUMNS: [Column; 4] = [
    Column::number("step", "step"),
    Column::number("rank", "rank"),
    Column::number("micro_step", "micro_step"),
    Column::number("id", "id"),
];

const KEY: Column = Column::text("key", "key");
const STATE: Column = Column::text("state", "state");

const DIFFERING: Column = Column::number("differing_rows", "differing");
const MAX_ABS: Column = Column::number("max_abs_error", "max abs");
const MAX_RELATIVE: Column = Column::number("max_relative_error", "max rel");
const FAILED: Column = Column::number("failed_pairs", "failed");

/// What follows the place of the first difference of a key.
const COLUMNS: [Column; 14] = [
    Column::text("difference", "difference"),
    Column::number("index", "index"),
    Column::number("rows", "rows"),
    DIFFERING,
    Column::number("least_same_percentage", "least same %"),
    MAX_ABS,
    MAX_RELATIVE,
    Column::number("nan_1", "NaN 1"),
    Column::number("nan_2", "NaN 2"),
    Column::text("one_sided", "only 1/2"),
    FAILED,
    Column::number("tolerated_rows", "tolerated"),
    Column::number("relative_error", "relative error"),
    Column::number("tolerated_error", "tolerated error"),
];

/// What fits on a terminal.
const BRIEF_COLUMNS: [Column; 9] = [
    KEY,
    STATE,
    Column::text("first_difference", "first difference"),
    DIFFERING,
    MAX_ABS,
    MAX_RELATIVE,
    Column::number("nan", "NaN 1/2"),
    Column::number("one_sided", "only 1/2"),
    FAILED,
];

/// What follows step, rank and micro step of a parting.
const PARTING_COLUMNS: [Column; 6] = [
    Column::number("sample", "sample"),
    Column::number("token", "token"),
    Column::text("token_1", "token in 1"),
    Column::text("token_2", "token in 2"),
    Column::number("length_1", "length 1"),
    Column::number("length_2", "length 2"),
];

/// A row per key, in the order in which data flows.
pub(super) fn key_table(verdict: &Verdict<'_>) -> Table {
    rows_of_keys(verdict, [&[KEY, STATE][..], &PLACE_COLUMNS, &COLUMNS].concat(), key_cells)
}

/// The same for a terminal.
pub(super) fn brief_key_table(verdict: &Verdict<'_>) -> Table {
    rows_of_keys(verdict, BRIEF_COLUMNS.to_vec(), brief_cells)
}

fn rows_of_keys(
    verdict: &Verdict<'_>,
    columns: Vec<Column>,
    cells: fn(&KeySummary<'_>) -> Vec<Cell>,
) -> Table {
    let rows = verdict.keys.iter().enumerate().map(|(index, summary)| TableRow {
        cells: cells(summary),
        tone: match summary.state() {
            "identical" | "tolerated" => Tone::Good,
            _ if verdict.origin.is_some_and(|origin| origin.key == index) => Tone::Bad,
            _ => Tone::Warning,
        },
    });
    Table { columns, rows: rows.collect() }
}

/// The cells of a place; empty ones for none.
fn place_cells(place: Option<ArrayPlace>) -> [Cell; 4] {
    match place {
        Some(ArrayPlace { step, rank, micro_step, id }) => {
            [step, rank, micro_step, id].map(|number| Cell::Int(number.into()))
        }
        None => [const { Cell::Empty }; 4],
    }
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
    let float = |value: Option<f64>| value.map_or(Cell::Empty, Cell::Float);
    let index = summary.evidence().and_then(|row| row.first_difference);
    let [one, two] = [0, 1].map(|run| summary.key.one_sided[run].len());
    let mut cells = vec![Cell::Text(summary.key.name.clone()), Cell::Text(summary.state().to_owned())];
    cells.extend(place_cells(summary.first.map(|first| first.place)));
    cells.extend([
        summary.first.map_or(Cell::Empty, |first| Cell::Text(kind_word(first.kind).to_owned())),
        index.map_or(Cell::Empty, |index| Cell::Int(index.into())),
        Cell::Int(summary.key.rows.len() as i128),
        Cell::Int(summary.differing as i128),
        float(summary.least_same_percentage),
        float(summary.max_abs_error),
        float(summary.max_relative_error),
        Cell::Int(summary.nan_counts[0].into()),
        Cell::Int(summary.nan_counts[1].into()),
        Cell::Text(format!("{one}/{two}")),
        Cell::Int(summary.key.failures.len() as i128),
        Cell::Int(summary.tolerated as i128),
        float(summary.worst.map(|worst| worst.error)),
        float(summary.worst.map(|worst| worst.tolerated)),
    ]);
    cells
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
    let rows = partings.iter().map(|(key, parting)| {
        let mut cells = vec![Cell::Text(key.name.clone())];
        cells.extend(place_cells(Some(parting.place)).into_iter().take(3));
        cells.extend([Cell::Int(parting.sample.into()), Cell::Int(parting.token as i128)]);
        cells.extend(parting.tokens.map(token));
        cells.extend(parting.lengths.map(|length| Cell::Int(length as i128)));
        TableRow { cells, tone: Tone::Plain }
    });
    Table { columns: [&[KEY][..], &PLACE_COLUMNS[..3], &PARTING_COLUMNS].concat(), rows: rows.collect() }
}

/// What has no partner or could not be compared.
pub(super) fn left_out_table(verdict: &Verdict<'_>) -> Table {
    let row = |key: Option<&KeyComparison>, place: Option<ArrayPlace>, what: String| {
        let mut cells = vec![key.map_or(Cell::Empty, |key| Cell::Text(key.name.clone()))];
        cells.extend(place_cells(place));
        cells.push(Cell::Text(what));
        TableRow { cells, tone: Tone::Plain }
    };
    let mut rows = Vec::new();
    for KeySummary { key, other_dtype, .. } in &verdict.keys {
        let of_key = |place: ArrayPlace, what: &str| row(Some(key), Some(place), what.to_owned());
        rows.extend(other_dtype.iter().map(|&place| of_key(place, "other dtype")));
        rows.extend(key.failures.iter().map(|failure| of_key(failure.place, &failure.reason)));
        for (places, what) in key.one_sided.iter().zip(["only in 1", "only in 2"]) {
            rows.extend(places.iter().map(|&place| of_key(place, what)));
        }
    }
    rows.extend(verdict.unread.iter().map(|text| row(None, None, format!("not read: {text}"))));
    Table { columns: [&[KEY][..], &PLACE_COLUMNS, &[Column::text("what", "what")]].concat(), rows }
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
            "limits": verdict.limits.origin().as_str(),
            "compared": verdict.compared(),
            "not_compared": {
                "unpaired": verdict.left_out_count("unpaired"),
                "failed": verdict.left_out_count("files"),
                "dtype": verdict.left_out_count("dtype"),
                "unread": verdict.left_out_count("unread"),
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
