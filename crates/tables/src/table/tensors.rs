//! Real data: the tensor files of every pair, measured on all cores.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use msprobe_compare::metrics::{Note, TensorComparison};
use msprobe_compare::pairing::RowPair;
use msprobe_compare::side::{Leaf, Side, ValueShape, Which};
use msprobe_report::console::{Console, LimitedWarnings};
use msprobe_tensor::files::{FileError, TensorFile};
use msprobe_tensor::{DType, TensorView};
use rayon::prelude::*;

use crate::metrics::{Accuracy, NOT_JUDGED, in_columns, message, metric_text};

/// Puts two tensors side by side.
pub type CompareViews = fn(&TensorView<'_>, &TensorView<'_>) -> TensorComparison;

/// Says of each row that has no metric to judge by that it has none.
pub(crate) fn warn_of_rows_not_judged(comparisons: &[TensorComparison], console: &dyn Console) {
    let not_judged = LimitedWarnings::new(console, "rows without a figure to judge by");
    for _ in comparisons.iter().filter(|it| Accuracy::of(&it.metrics) == Accuracy::NotJudged) {
        not_judged.warning(|| NOT_JUDGED.to_owned());
    }
}

/// Measures every pair. A file that cannot be read costs its own rows and is among the failures.
pub(crate) fn compare_tensor_files(
    compare: CompareViews,
    (target, golden): (&Side, &Side),
    pairs: &[RowPair],
    log_rows: bool,
    console: &dyn Console,
) -> (Vec<TensorComparison>, Vec<String>) {
    let files = TensorFiles::new(compare, target.tensor_dir(), golden.tensor_dir());
    let sizes: Vec<u64> = pairs.par_iter().map(|pair| files.size(target, golden, pair)).collect();
    console.begin("comparing tensors", sizes.iter().sum());
    let results: Vec<(TensorComparison, Option<Failure>)> = pairs
        .par_iter()
        .zip(&sizes)
        .with_max_len(1)
        .map(|(pair, &size)| {
            // A console that ends the work by unwinding has to hear of a pair before it is read.
            console.advance(0);
            let result = files.compare(&target.rows[pair.target], golden_of(golden, pair));
            console.advance(size);
            result
        })
        .collect();
    console.end();
    for failure in results.iter().filter_map(|(_, failure)| failure.as_ref()) {
        console.error(&failure.line);
    }
    let mut failures = Vec::new();
    let mut comparisons = Vec::with_capacity(results.len());
    for (pair, (comparison, failure)) in pairs.iter().zip(results) {
        if log_rows {
            log_row(&target.rows[pair.target], &comparison, console);
        }
        failures.extend(failure.map(|failure| failure.reason));
        comparisons.push(comparison);
    }
    (comparisons, failures)
}

fn golden_of<'a>(golden: &'a Side, pair: &RowPair) -> Option<&'a Leaf> {
    pair.golden.ok().map(|row| &golden.rows[row])
}

/// The tensor files of two dumps.
pub struct TensorFiles {
    compare: CompareViews,
    target: PathBuf,
    golden: PathBuf,
}

impl TensorFiles {
    /// Files in these two directories, put side by side so.
    pub fn new(compare: CompareViews, target: PathBuf, golden: PathBuf) -> TensorFiles {
        TensorFiles { compare, target, golden }
    }

    /// Measures the files of two values. A file that could not be read is told as well.
    pub fn measure(&self, target: &Leaf, golden: Option<&Leaf>) -> (TensorComparison, Option<String>) {
        let (comparison, failure) = self.compare(target, golden);
        (comparison, failure.map(|failure| failure.reason))
    }

    /// Bytes that have to be read for a pair.
    fn size(&self, target: &Side, golden: &Side, pair: &RowPair) -> u64 {
        let (Some(name), Some(other)) = (
            &target.rows[pair.target].data_name,
            golden_of(golden, pair).and_then(|leaf| leaf.data_name.as_ref()),
        ) else {
            return 0;
        };
        let size = |dir: &Path, name: &str| dir.join(name).metadata().map_or(0, |metadata| metadata.len());
        size(&self.target, name) + size(&self.golden, other)
    }

    fn compare(&self, target: &Leaf, golden: Option<&Leaf>) -> (TensorComparison, Option<Failure>) {
        let unnamed = |which: Which| format!("its record on the {} side names no tensor file", which);
        let Some(target_name) = &target.data_name else {
            return (TensorComparison::refused(Note::NoGolden).because(unnamed(Which::Target)), None);
        };
        let Some(golden) = golden else { return (TensorComparison::refused(Note::NoGolden), None) };
        let Some(golden_name) = &golden.data_name else {
            return (TensorComparison::refused(Note::NoGoldenFile).because(unnamed(Which::Golden)), None);
        };
        let opened =
            open(&self.target, target_name).and_then(|target| Ok((target, open(&self.golden, golden_name)?)));
        let failure = match &opened {
            Ok((target_file, golden_file)) => match (target_file.view(0), golden_file.view(0)) {
                (Ok(target_view), Ok(golden_view)) => {
                    let mut comparison = (self.compare)(&target_view, &golden_view);
                    let unlike = unlike_its_record(&target_view, target, Which::Target)
                        .or_else(|| unlike_its_record(&golden_view, golden, Which::Golden));
                    if let Some(reason) = unlike {
                        comparison.pair = None;
                        comparison = comparison.because(reason);
                    }
                    return (comparison, None);
                }
                (Err(error), _) => Failure::unreadable(&self.target.join(&**target_name), &error),
                (_, Err(error)) => Failure::unreadable(&self.golden.join(&**golden_name), &error),
            },
            Err(failure) => failure.clone(),
        };
        let note = Note::NotRead([target_name.to_string(), golden_name.to_string()]);
        let comparison = TensorComparison::refused(note).because(failure.reason.clone());
        (comparison, Some(failure))
    }
}

/// What is wrong with a file that does not hold what its record says.
fn unlike_its_record(view: &TensorView<'_>, leaf: &Leaf, which: Which) -> Option<String> {
    let held = view.dtype();
    let dtype = leaf.stored_dtype.as_ref().unwrap_or(&leaf.dtype);
    let same_dtype = DType::parse(dtype).is_some_and(|dtype| dtype == held || is_saved_as(dtype, held));
    let same_shape = match &leaf.shape {
        ValueShape::Unknown => true,
        recorded => recorded
            .sizes()
            .is_some_and(|sizes| sizes.iter().copied().eq(view.shape().iter().map(|size| *size as u64))),
    };
    (!(same_dtype && same_shape)).then(|| {
        format!(
            "its file on the {which} side holds {held} {:?}, its record says {dtype} {}",
            view.shape(),
            leaf.shape
        )
    })
}

/// Whether collection saves one dtype as another: numpy knows neither bfloat16 nor 8-bit floats, so they are widened to
/// float32, which holds all their values.
fn is_saved_as(dtype: DType, held: DType) -> bool {
    held == DType::F32 && (dtype == DType::BF16 || dtype.is_float8())
}

/// Why a file could not be used.
#[derive(Debug, Clone)]
struct Failure {
    /// The line users of the tool know.
    line: String,
    /// All that is known.
    reason: String,
}

impl Failure {
    fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> Failure {
        let kind = path.extension().unwrap_or_default().to_string_lossy();
        Failure {
            line: format!("Failed to load the .{kind} file at {}.", path.display()),
            reason: error.to_string(),
        }
    }
}

/// A file that holds one tensor and nothing else.
fn open(dir: &Path, name: &str) -> Result<TensorFile, Failure> {
    let path = dir.join(name);
    // A dump names files in its own directory, and nothing outside of it.
    let file = TensorFile::open_inside(dir, name).map_err(|error| match &error {
        FileError::Open { source, .. } if source.kind() == ErrorKind::NotFound => {
            let line = format!("The file path {} does not exist.", path.display());
            Failure { reason: line.clone(), line }
        }
        FileError::Open { .. } => Failure { line: error.to_string(), reason: error.to_string() },
        _ => Failure::unreadable(&path, &error),
    })?;
    match file.entries() {
        [only] if only.name.is_empty() => Ok(file),
        _ => Err(Failure {
            line: "Failed to detach the loaded tensor.".to_owned(),
            reason: format!("{}: not a single tensor", path.display()),
        }),
    }
}

fn log_row(target: &Leaf, comparison: &TensorComparison, console: &dyn Console) {
    let [cosine, _, max_abs, max_relative, thousandth, five_thousandths] =
        in_columns(&comparison.metrics).map(metric_text);
    console.info(&format!("start compare: {}", target.name));
    console.info(&format!(
        "[{}] Compare result: cosine {cosine}, max_abs_err {max_abs}, max_relative_err {max_relative}, {}, \
         one_thousand_err_ratio {thousandth}, five_thousand_err_ratio {five_thousandths}",
        target.name,
        message(comparison)
    ));
}
