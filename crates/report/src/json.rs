//! Rows as JSON objects.

use serde_json::{Map, Value, json};

use crate::{Cell, Table};

/// One object per row, keyed by column. Strict JSON: non-finite numbers become the strings `NaN`, `Infinity`
/// and `-Infinity`, an empty cell `null`.
pub fn rows_as_json(table: &Table) -> Vec<Value> {
    table
        .rows
        .iter()
        .map(|row| {
            let cells = table.columns.iter().zip(&row.cells);
            Value::Object(
                cells
                    .map(|(column, cell)| (column.key.to_owned(), cell_as_json(cell)))
                    .collect::<Map<_, _>>(),
            )
        })
        .collect()
}

/// A cell as a value of JSON.
pub(crate) fn cell_as_json(cell: &Cell) -> Value {
    match cell {
        Cell::Empty => Value::Null,
        Cell::Text(text) => json!(text),
        Cell::Bool(value) => json!(value),
        Cell::Int(value) => match (i64::try_from(*value), u64::try_from(*value)) {
            (Ok(value), _) => json!(value),
            (_, Ok(value)) => json!(value),
            _ => json!(value.to_string()),
        },
        Cell::Float(value) => json_number(*value),
        Cell::Sizes(sizes) => json!(sizes),
    }
}

/// A number where JSON has one, a string where it has none.
pub fn json_number(value: f64) -> Value {
    if value.is_finite() { json!(value) } else { json!(not_finite(value)) }
}

/// The one spelling of a number that JSON has no word for.
pub(crate) fn not_finite(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}
