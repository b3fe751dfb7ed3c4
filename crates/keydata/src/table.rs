//! The table of a key, as users know it.

use std::fs::File;
use std::io;

use msprobe_report::{CellSink, Sheet, SheetRows, write_workbook};

use super::Row;

/// Titles of the columns.
pub const HEADERS: [&str; 12] = [
    "step",
    "rank",
    "micro_step",
    "id",
    "shape1",
    "shape2",
    "相同元素百分比(%)",
    "首个不匹配元素索引",
    "最大绝对误差",
    "最大相对误差",
    "误差在千分之一内元素占比(%)",
    "误差在百分之一内元素占比(%)",
];

/// Rows that fit on a sheet below its header.
const MOST_ROWS: usize = 1_048_575;

/// The rows of a key under [`HEADERS`].
pub struct KeyTable<'a>(pub &'a [Row]);

impl SheetRows for KeyTable<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn cells(&self, row: usize, sink: &mut dyn CellSink) {
        let Some(row) = self.0.get(row) else { return };
        let place = row.place;
        for number in [place.step, place.rank, place.micro_step, place.id] {
            sink.integer(number.into());
        }
        for shape in &row.shapes {
            sink.text(&format!("{shape:?}"));
        }
        let metrics = &row.metrics;
        put(metrics.same_percentage, sink);
        match metrics.first_mismatch_index {
            Some(index) => sink.integer(index.into()),
            None => sink.empty(),
        }
        put(metrics.max_abs_error, sink);
        put(metrics.max_relative_error, sink);
        put(metrics.percentage_within_thousandth, sink);
        put(metrics.percentage_within_hundredth, sink);
    }
}

/// Numbers have 16 digits here, as scripts that read these tables know them. The largest of all becomes infinite by
/// that, and infinity is a word.
fn put(value: f64, sink: &mut dyn CellSink) {
    if value.is_nan() {
        return sink.empty();
    }
    let short = if value.fract() == 0.0 && value.abs() < 1e15 {
        value
    } else {
        format!("{value:.15e}").parse().unwrap_or(value)
    };
    if short.is_finite() {
        sink.number(short);
    } else {
        sink.text(if short > 0.0 { "inf" } else { "-inf" });
    }
}

/// Writes the workbook of a key: `Sheet1`, or `part_0`, `part_1`, … where the rows do not fit on one sheet.
pub fn write_key_workbook(file: &mut File, rows: &[Row]) -> io::Result<()> {
    let pages: Vec<(String, KeyTable<'_>)> = pages(rows, MOST_ROWS);
    let sheets: Vec<Sheet<'_>> = pages
        .iter()
        .map(|(name, rows)| Sheet { name: name.clone(), headers: HEADERS.map(str::to_owned).to_vec(), rows })
        .collect();
    write_workbook(file, &sheets)
}

/// Rows cut into pieces of nearly the same size, as few as there can be.
fn pages(rows: &[Row], most: usize) -> Vec<(String, KeyTable<'_>)> {
    if rows.len() <= most {
        return vec![("Sheet1".to_owned(), KeyTable(rows))];
    }
    let size = rows.len().div_ceil(rows.len().div_ceil(most));
    rows.chunks(size).enumerate().map(|(index, rows)| (format!("part_{index}"), KeyTable(rows))).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::{ArrayPlace, Metrics};
    use super::*;
    use msprobe_report::Words;

    fn row(id: i64) -> Row {
        Row {
            place: ArrayPlace { step: 1, rank: 2, micro_step: 3, id },
            files: [PathBuf::from("a"), PathBuf::from("b")],
            shapes: [vec![2, 5], vec![]],
            dtypes: [msprobe_tensor::DType::F32; 2],
            compared: vec![1],
            metrics: Metrics {
                same_percentage: 0.1 + 0.2,
                first_mismatch_index: Some(7),
                max_abs_error: f64::NAN,
                max_relative_error: f64::MAX,
                percentage_within_thousandth: 100.0,
                percentage_within_hundredth: 2.0 / 3.0 * 100.0,
            },
            nan_counts: [0, 0],
            first_difference: None,
            distance: 0.0,
            norm: 1.0,
        }
    }

    #[test]
    fn cells_of_a_row() {
        let mut rows = [row(4)];
        let mut words = Words::default();
        KeyTable(&rows).cells(0, &mut words);
        let expected =
            ["1", "2", "3", "4", "'[2, 5]'", "'[]'", "0.3", "7", "-", "'inf'", "100", "66.66666666666666"];
        assert_eq!(words.0, expected);
        rows[0].metrics.first_mismatch_index = None;
        rows[0].metrics.max_abs_error = f64::INFINITY;
        let mut words = Words::default();
        KeyTable(&rows).cells(0, &mut words);
        assert_eq!(words.0[7..9], ["-", "'inf'"]);
    }

    #[test]
    fn long_tables_are_cut_into_parts_of_nearly_the_same_size() {
        let rows: Vec<Row> = (0..11).map(row).collect();
        let sizes = |most: usize| -> Vec<(String, usize)> {
            pages(&rows, most).into_iter().map(|(name, rows)| (name, rows.len())).collect()
        };
        assert_eq!(sizes(11), [("Sheet1".to_owned(), 11)]);
        assert_eq!(sizes(10), [("part_0".to_owned(), 6), ("part_1".to_owned(), 5)]);
        assert_eq!(sizes(4), [("part_0".to_owned(), 4), ("part_1".to_owned(), 4), ("part_2".to_owned(), 3)]);
        assert_eq!(pages(&[], 4).len(), 1);
    }

    #[test]
    fn a_key_without_rows_has_a_header() {
        let mut file = tempfile::tempfile().unwrap();
        write_key_workbook(&mut file, &[]).unwrap();
        assert!(file.metadata().unwrap().len() > 0);
    }
}
