//! Kernel dumps of statistics: one `statistic.csv` with a line per input and output.

use std::path::Path;

use csv::StringRecord;
use msprobe_compare::python_text::float_repr;
use msprobe_report::Cell;
use msprobe_report::console::Console;
use msprobe_report::error::{Code, CompareError};

use super::join::{Keyed, outer_join};
use super::{DTYPES_DIFFER, SCALAR, reasons};
use crate::directories::Directory;

/// The file statistics are kept in.
pub(super) const FILE_NAME: &str = "statistic.csv";

const FEWEST_COLUMNS: usize = 13;
/// Kernel, task, input or output, slot.
const KEY_COLUMNS: [usize; 4] = [1, 2, 5, 6];
const TIME_COLUMN: usize = 4;
const TEXT_HEADERS: [&str; 2] = ["Data Type", "Shape"];
const VALUE_HEADERS: [&str; 4] = ["Max Value", "Min Value", "Avg Value", "L2Norm Value"];

const SHAPES_DIFFER: &str = "Tensor shapes do not match.\n";

/// One line of the file.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    name: String,
    /// Type and shape, where the file has such columns.
    dtype: Option<String>,
    shape: Option<String>,
    /// Maximum, minimum, mean and L2 norm; NaN where there is none.
    values: [f32; 4],
}

/// The rows of one rank and step, in the order of the target's file.
pub(super) fn rows(
    target: &[&Directory],
    golden: &[&Directory],
    console: &dyn Console,
) -> Result<Vec<Vec<Cell>>, CompareError> {
    let pairs = outer_join(entries(target, console)?, entries(golden, console)?);
    Ok(pairs.iter().map(|(target, golden)| row(target.as_ref(), golden.as_ref())).collect())
}

fn entries(directories: &[&Directory], console: &dyn Console) -> Result<Vec<Keyed<Entry>>, CompareError> {
    let mut found = Vec::new();
    for directory in directories {
        if directory.files.iter().any(|file| file == FILE_NAME) {
            read(&directory.path.join(FILE_NAME), console, &mut found)?;
        }
    }
    Ok(found)
}

fn read(path: &Path, console: &dyn Console, found: &mut Vec<Keyed<Entry>>) -> Result<(), CompareError> {
    let unusable = |reason: &str| {
        CompareError::new(Code::InvalidFile, format!("cannot read {}: {reason}", path.display()))
    };
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .from_path(path)
        .map_err(|error| unusable(&error.to_string()))?;
    let headers = reader.byte_headers().map_err(|error| unusable(&error.to_string()))?;
    let headers = StringRecord::from_byte_record_lossy(headers.clone());
    if headers.len() < FEWEST_COLUMNS {
        let message = format!("Dump file {} has been modified into incorrect format!", path.display());
        return Err(CompareError::new(Code::InvalidFile, message));
    }
    let position = |name: &str| {
        let place = headers.iter().position(|header| header.trim() == name);
        if place.is_none() {
            console.warning(&format!("{} has no column {name:?}, its cells stay empty", path.display()));
        }
        place
    };
    let (texts, values) = (TEXT_HEADERS.map(position), VALUE_HEADERS.map(position));
    for record in reader.byte_records() {
        match record {
            Ok(record) => {
                let record = StringRecord::from_byte_record_lossy(record);
                found.extend(entry(path, &record, texts, values));
            }
            Err(error) => console.error(&unusable(&error.to_string()).message),
        }
    }
    Ok(())
}

/// `None` for a line that does not even name its kernel.
fn entry(
    path: &Path,
    record: &StringRecord,
    texts: [Option<usize>; 2],
    values: [Option<usize>; 4],
) -> Option<Keyed<Entry>> {
    let [kernel, task, direction, slot] = KEY_COLUMNS.map(|column| record.get(column));
    let key = [kernel?, task?, direction?, slot?].join(".");
    let cell = |column: Option<usize>| record.get(column?).map(str::trim);
    let [dtype, shape] = texts.map(|column| cell(column).map(str::to_owned));
    let values = values.map(|column| cell(column).map_or(f32::NAN, value));
    // A time that is no number is as good as none: such lines keep their order.
    let time = record.get(TIME_COLUMN).and_then(|time| time.trim().parse().ok()).unwrap_or(u128::MAX);
    let item = Entry { name: format!("{key} {}", path.display()), dtype, shape, values };
    Some(Keyed { key, time: (time, 0), item })
}

fn value(text: &str) -> f32 {
    match text {
        "null" | "False" => 0.0,
        "True" => 1.0,
        number => number.parse::<f64>().unwrap_or(f64::NAN) as f32,
    }
}

fn row(target: Option<&Entry>, golden: Option<&Entry>) -> Vec<Cell> {
    let sides = [target, golden];
    let text = |text: Option<&String>| text.map_or(Cell::Empty, |text| Cell::Text(text.clone()));
    let mut row = Vec::with_capacity(24);
    row.extend(sides.map(|side| text(side.map(|entry| &entry.name))));
    row.extend(sides.map(|side| text(side.and_then(|entry| entry.dtype.as_ref()))));
    row.extend(sides.map(|side| text(side.and_then(|entry| entry.shape.as_ref()))));
    for side in sides {
        row.extend(side.map_or([f32::NAN; 4], |entry| entry.values).map(|value| Cell::Float(value.into())));
    }
    let message = message(target, golden);
    match (target, golden) {
        (Some(target), Some(golden)) if message.is_empty() => {
            let verdict = if is_close(target.values[0], golden.values[0]) { "Yes" } else { "No" };
            row.extend([Cell::Text(verdict.into()), Cell::Empty]);
            let pairs: [(f32, f32); 4] =
                std::array::from_fn(|place| (target.values[place], golden.values[place]));
            row.extend(pairs.map(|(target, golden)| Cell::Float((target - golden).abs().into())));
            row.extend(pairs.map(|(target, golden)| Cell::Text(percentage(target, golden))));
        }
        _ => {
            row.extend([Cell::Empty, Cell::Text(message)]);
            row.extend([const { Cell::Empty }; 8]);
        }
    }
    row
}

/// Why two lines are not compared; empty if they are.
fn message(target: Option<&Entry>, golden: Option<&Entry>) -> String {
    let (Some(target), Some(golden)) = (target, golden) else {
        return [SHAPES_DIFFER, DTYPES_DIFFER].concat();
    };
    let is_empty = |entry: &Entry| entry.shape.as_deref() == Some("");
    reasons([
        (is_empty(target) || is_empty(golden), SCALAR),
        (target.shape != golden.shape, SHAPES_DIFFER),
        (target.dtype != golden.dtype, DTYPES_DIFFER),
    ])
}

/// The error as a share of the golden, where that is positive.
fn percentage(target: f32, golden: f32) -> String {
    if golden > 0.0 {
        let share = f64::from((target - golden).abs() / golden);
        format!("{}%", float_repr(share * 100.0))
    } else {
        "0%".to_owned()
    }
}

/// Whether the maxima differ by no more than half of the larger one.
fn is_close(target: f32, golden: f32) -> bool {
    if target.is_nan() && golden.is_nan() {
        return true;
    }
    let error = f64::from((target - golden).abs());
    error / (f64::from(target.max(golden)) + 1e-10) <= 0.5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages() {
        assert_eq!(percentage(3.0, 1.0), "200.0%");
        assert_eq!(percentage(3.0, -1.0), "0%");
        assert_eq!(percentage(f32::INFINITY, 1.0), "inf%");
        assert_eq!(percentage(f32::NAN, 1.0), "nan%");
    }

    #[test]
    fn maxima_are_close_within_half() {
        assert!(is_close(1.5, 1.0) && is_close(0.0, 0.0) && is_close(f32::NAN, f32::NAN));
        assert!(!is_close(3.0, 1.0) && !is_close(f32::NAN, 1.0));
    }

    #[test]
    fn values() {
        assert_eq!(["null", "False", "True", "0.5"].map(value), [0.0, 0.0, 1.0, 0.5]);
        assert!(value("").is_nan() && value("nan").is_nan() && value("words").is_nan());
        assert_eq!(value("-inf"), f32::NEG_INFINITY);
    }
}
