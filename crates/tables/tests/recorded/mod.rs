//! Recorded tables and workbooks as rows of cells, and a console that remembers.
#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "a test fails by panicking, its helpers too; not all use all"
)]

use std::fs;
use std::path::{Path, PathBuf};

use calamine::{Data, Reader, Xlsx, open_workbook};
use msprobe_report::console::{Level, Remembered};

/// The directory of a recorded case.
pub(crate) fn case(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/compare").join(name);
    fs::canonicalize(path).unwrap()
}

/// One cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Empty,
    Text(String),
    Number(f64),
}

impl Value {
    /// Equal, numbers up to a relative error.
    pub(crate) fn is_close(&self, other: &Value, tolerance: f64) -> bool {
        match (self, other) {
            (Value::Number(a), Value::Number(b)) => (a - b).abs() <= tolerance * a.abs().max(b.abs()),
            _ => self == other,
        }
    }
}

/// A header and the rows under it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    pub(crate) headers: Vec<String>,
    pub(crate) rows: Vec<Vec<Value>>,
}

/// A recorded rendering: two more columns tell the colour (none in these tables) and the kind of each cell.
pub(crate) fn rendering(path: &Path) -> Table {
    let mut reader = csv::Reader::from_path(path).unwrap();
    let mut headers: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    assert_eq!(headers.split_off(headers.len() - 2), ["__highlight__", "__types__"]);
    let rows = reader.records().map(|record| {
        let record = record.unwrap();
        let kinds = &record[record.len() - 1];
        assert_eq!(kinds.len(), headers.len());
        let cell = |(text, kind): (&str, char)| match kind {
            'e' => Value::Empty,
            'n' => Value::Number(text.parse().unwrap()),
            _ => Value::Text(text.to_owned()),
        };
        record.iter().zip(kinds.chars()).map(cell).collect()
    });
    let rows = rows.collect();
    Table { headers, rows }
}

/// The sheets of a workbook.
pub(crate) fn workbook(path: &Path) -> Vec<(String, Table)> {
    let mut workbook: Xlsx<_> = open_workbook(path).unwrap();
    let names = workbook.sheet_names();
    names.into_iter().map(|name| (name.clone(), table(&workbook.worksheet_range(&name).unwrap()))).collect()
}

fn table(range: &calamine::Range<Data>) -> Table {
    let cell = |data: &Data| match data {
        Data::Empty => Value::Empty,
        Data::Float(number) => Value::Number(*number),
        Data::Int(number) => Value::Number(*number as f64),
        other => Value::Text(other.to_string()),
    };
    let mut rows = range.rows().map(|row| row.iter().map(cell).collect::<Vec<_>>());
    let headers = rows.next().unwrap();
    let headers = headers.into_iter().map(|header| match header {
        Value::Text(text) => text,
        other => format!("{other:?}"),
    });
    let headers = headers.collect();
    Table { headers, rows: rows.collect() }
}

/// Fails at the first cell that is not as recorded. `tolerance` is asked for each column.
pub(crate) fn assert_rows(actual: &Table, expected: &Table, tolerance: impl Fn(&str) -> f64) {
    assert_eq!(actual.headers, expected.headers);
    assert_eq!(actual.rows.len(), expected.rows.len());
    for (row, recorded) in actual.rows.iter().zip(&expected.rows) {
        for ((cell, wanted), header) in row.iter().zip(recorded).zip(&actual.headers) {
            let close = cell.is_close(wanted, tolerance(header));
            assert!(close, "{header} of {:?}: {cell:?} instead of {wanted:?}", row.first());
        }
        assert_eq!(row.len(), recorded.len());
    }
}

/// What was said that users should look at.
pub(crate) fn complaints(console: &Remembered) -> Vec<String> {
    console.said(|level| level >= Level::Warning)
}
