//! Kernel dumps of whole arrays: one `.npy` file per input and output.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use msprobe_compare::metrics::{Metric, Metrics, compare_tensors};
use msprobe_report::Cell;
use msprobe_report::console::{Console, Level, LimitedWarnings};
use msprobe_tensor::TensorView;
use msprobe_tensor::files::NpyArray;
use rayon::prelude::*;

use super::join::{Keyed, Time, outer_join};
use super::{DTYPES_DIFFER, SCALAR, reasons};
use crate::array::{shape_text, statistics_cells};
use crate::directories::Directory;
use crate::metrics::{self, Accuracy, NOT_JUDGED, in_columns};

const NO_ARRAY: &str = "Dump file is not ndarray.\n";
const EMPTY: &str = "This is empty data, can not compare.\n";
const SHAPES_DIFFER: &str = "Shape of NPU and bench Tensor do not match.\n";
const POSITIONS_DIFFER: &str = "The position of inf or nan in NPU and bench Tensor do not match.\n";

/// What tells one array from another, as its file name has it.
#[derive(Debug, PartialEq, Eq)]
struct ArrayName {
    key: String,
    time: Time,
}

impl ArrayName {
    /// Reads `{op_type}.{op_name}.{task}.{stream}.{timestamp[.n]}.{input|output[.i]}.{slot}.{format}.npy`.
    fn parse(name: &str) -> Option<ArrayName> {
        let stem = name.strip_suffix(".npy")?;
        let parts: Vec<&str> = stem.split('.').collect();
        if parts.iter().any(|part| part.is_empty()) {
            return None;
        }
        let (&[_, op_name, task, stream, time, ..], rest) = (parts.get(..5)?, parts.get(5..)?) else {
            return None;
        };
        let (number, rest) = match rest {
            [number, rest @ ..] if is_number(number) => (number.parse().ok()?, rest),
            rest => (0, rest),
        };
        let (direction, slot) = match *rest {
            [direction, slot, _] => (direction.to_owned(), slot),
            [direction, index, slot, _] if is_number(index) => (format!("{direction}.{index}"), slot),
            _ => return None,
        };
        let known = matches!(direction.split('.').next(), Some("input" | "output"));
        if !(known && is_number(task) && is_number(stream) && is_number(slot)) {
            return None;
        }
        let key = format!("{op_name}.{task}.{direction}.{slot}");
        Some(ArrayName { key, time: (time.parse().ok()?, number) })
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The rows of one rank and step, oldest kernel of the target first.
pub(super) fn rows(target: &[&Directory], golden: &[&Directory], console: &dyn Console) -> Vec<Vec<Cell>> {
    let pairs = outer_join(arrays(target, console), arrays(golden, console));
    let size = |path: &Option<PathBuf>| path.as_deref().map_or(0, size_bytes);
    let total = pairs.iter().map(|(target, golden)| size(target) + size(golden)).sum();
    let not_judged = LimitedWarnings::new(console, "arrays without a verdict");
    console.begin("comparing arrays", total);
    let rows = pairs
        .par_iter()
        .map(|(target, golden)| {
            // A console that ends the work by unwinding has to hear of a pair before it is read.
            console.advance(0);
            let row = row(target.as_deref(), golden.as_deref(), console, &not_judged);
            console.advance(size(target) + size(golden));
            row
        })
        .collect();
    console.end();
    rows
}

fn size_bytes(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// The arrays of one side, oldest first.
fn arrays(directories: &[&Directory], console: &dyn Console) -> Vec<Keyed<PathBuf>> {
    let mut found = Vec::new();
    for directory in directories {
        let full_names = full_names(directory, console);
        for file in directory.files.iter().filter(|file| file.strip_suffix(".npy").is_some()) {
            let name = full_names.get(file.as_str()).map_or(file.as_str(), String::as_str);
            if let Some(ArrayName { key, time }) = ArrayName::parse(name) {
                found.push(Keyed { key, time, item: directory.path.join(file) });
            } else {
                console
                    .log(Level::Debug, &format!("{file} does not have the name of an array, it is left out"));
            }
        }
    }
    found.sort_by(|a, b| (a.time, &a.item).cmp(&(b.time, &b.item)));
    found
}

/// File names that were too long for the disk, as `mapping.csv` restores them.
fn full_names(directory: &Directory, console: &dyn Console) -> HashMap<String, String> {
    let mut names = HashMap::new();
    if !directory.files.iter().any(|file| file == "mapping.csv") {
        return names;
    }
    let path = directory.path.join("mapping.csv");
    let with_suffix = |name: &str| {
        let name = name.trim();
        format!("{}.npy", name.strip_suffix(".npy").unwrap_or(name))
    };
    let reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_path(&path);
    let records = reader.into_iter().flat_map(csv::Reader::into_records);
    for record in records {
        match record {
            Ok(record) => {
                if let (Some(short), Some(full)) = (record.get(0), record.get(1)) {
                    names.insert(with_suffix(short), with_suffix(full));
                }
            }
            Err(error) => {
                console.warning(&format!("cannot read all of {}: {error}", path.display()));
                break;
            }
        }
    }
    names
}

fn open(path: Option<&Path>, console: &dyn Console) -> Option<NpyArray> {
    NpyArray::open(path?).map_err(|reason| console.error(&reason)).ok()
}

fn row(
    target: Option<&Path>,
    golden: Option<&Path>,
    console: &dyn Console,
    not_judged: &LimitedWarnings<'_>,
) -> Vec<Cell> {
    let files = [open(target, console), open(golden, console)];
    let [target_view, golden_view] =
        [&files[0], &files[1]].map(|file| file.as_ref().and_then(NpyArray::view));
    let views = [&target_view, &golden_view];
    let both = target_view.as_ref().zip(golden_view.as_ref());
    let (message, metrics) = both.map_or((NO_ARRAY.to_owned(), None), |(t, g)| compare(t, g));
    let accuracy = metrics.as_ref().map(Accuracy::of);
    if accuracy == Some(Accuracy::NotJudged) {
        not_judged.warning(|| NOT_JUDGED.to_owned());
    }

    let text = |text: Option<String>| text.map_or(Cell::Empty, Cell::Text);
    let mut row = Vec::with_capacity(22);
    row.extend([target, golden].map(|path| text(path.map(|path| path.display().to_string()))));
    row.extend(views.map(|view| text(view.as_ref().map(|view| view.dtype().numpy_name().to_owned()))));
    row.extend(views.map(|view| text(view.as_ref().map(|view| shape_text(view.shape())))));
    for view in views {
        row.extend(view.as_ref().map_or([const { Cell::Empty }; 4], statistics_cells));
    }
    row.push(text(accuracy.map(|accuracy| accuracy.as_str().to_owned())));
    row.push(text(Some(message)));
    row.extend(metrics.map_or([const { Cell::Empty }; 6], |metrics| in_columns(&metrics).map(metric_cell)));
    row
}

fn metric_cell(metric: Metric) -> Cell {
    match metric {
        Metric::Number(value) => Cell::Float(value),
        Metric::Missing(why) => Cell::Text(why.as_str().to_owned()),
    }
}

/// Why two arrays are not compared, or what comes of it.
fn compare(target: &TensorView<'_>, golden: &TensorView<'_>) -> (String, Option<Metrics>) {
    if target.numel() == 0 || golden.numel() == 0 {
        return (EMPTY.to_owned(), None);
    }
    let message = reasons([
        (target.shape().is_empty() || golden.shape().is_empty(), SCALAR),
        (target.shape() != golden.shape(), SHAPES_DIFFER),
        (target.dtype() != golden.dtype(), DTYPES_DIFFER),
    ]);
    if !message.is_empty() {
        return (message, None);
    }
    let comparison = compare_tensors(target, golden);
    let agree = |pair: &msprobe_tensor::PairMetrics| pair.nan_positions_agree && pair.inf_positions_agree;
    if comparison.pair.as_ref().is_some_and(|pair| !agree(pair)) {
        return (POSITIONS_DIFFER.to_owned(), None);
    }
    (metrics::message(&comparison), Some(comparison.metrics))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str) -> Option<(String, Time)> {
        ArrayName::parse(name).map(|name| (name.key, name.time))
    }

    #[test]
    fn names() {
        let name = "Conv2D.Default_Conv2D-op1.0.3.17.output.2.DefaultFormat.npy";
        assert_eq!(parse(name), Some(("Default_Conv2D-op1.0.output.2".into(), (17, 0))));
        let name = "Conv2D.Default_Conv2D-op1.0.3.17.4.input.1.2.NCHW.npy";
        assert_eq!(parse(name), Some(("Default_Conv2D-op1.0.input.1.2".into(), (17, 4))));
        for bad in [
            "badname.npy",
            "A.b.0.0.17.output.0.npy",
            "A.b.0.0.17.output.0.F.bin",
            "A.b.c.0.0.17.output.0.F.npy",
            "A.b.0.0.now.output.0.F.npy",
            "A.b.0.0.17.inputs.0.F.npy",
            "A..0.0.17.input.0.F.npy",
            "A.b.0.0.17.output.x.F.npy",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
