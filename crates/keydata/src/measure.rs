//! Pairing the arrays of two runs by their place, and measuring each pair in one pass over both files.

use std::collections::BTreeSet;
use std::fs;
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use msprobe_report::console::Console;
use msprobe_report::error::CompareError;
use msprobe_tensor::files::NpyArray;
use msprobe_tensor::{DType, PairMetrics, TensorView, compare_pair, on_this_thread};
use rayon::prelude::*;

use super::tree::{Arrays, find_everything};
use super::{ArrayPlace, Bare, Comparison, Failure, KeyComparison, Metrics, Row};

/// Why two arrays have no metrics, in numpy's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Incomparable {
    /// Bools cannot be subtracted.
    #[error(
        "numpy boolean subtract, the `-` operator, is not supported, use the bitwise_xor, the `^` operator, or the \
         logical_xor function instead."
    )]
    Bools,
    /// There is no element both sides have.
    #[error("zero-size array to reduction operation maximum which has no identity")]
    Empty,
    /// The memory of a side is not what its shape says.
    #[error("{0}")]
    Layout(String),
}

/// What a pair of arrays has in common, measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// What tables show.
    pub metrics: Metrics,
    /// The shape of the block that was compared.
    pub compared: Vec<usize>,
    /// NaNs in the compared block.
    pub nan_counts: [u64; 2],
    /// Like `metrics.first_mismatch_index`, but NaN against NaN is no difference.
    pub first_difference: Option<u64>,
    /// L2 norm of the difference; infinite if NaN or infinities are not the same.
    pub distance: f64,
    /// L2 norm of the second array.
    pub norm: f64,
}

/// Measures the block two arrays have in common: the leading one, or as many elements in row-major order where the
/// number of dimensions differs.
pub fn compare_arrays(a: &TensorView<'_>, b: &TensorView<'_>) -> Result<Measured, Incomparable> {
    if a.dtype() == DType::Bool && b.dtype() == DType::Bool {
        return Err(Incomparable::Bools);
    }
    common_block(a, b, measure)
}

/// Gives `work` the block two arrays have in common.
fn common_block<T>(
    a: &TensorView<'_>,
    b: &TensorView<'_>,
    work: impl FnOnce(&TensorView<'_>, &TensorView<'_>) -> Result<T, Incomparable>,
) -> Result<T, Incomparable> {
    let layout = |error: &dyn std::fmt::Display| Incomparable::Layout(error.to_string());
    if a.shape().len() == b.shape().len() {
        let common: Vec<usize> = a.shape().iter().zip(b.shape()).map(|(&a, &b)| a.min(b)).collect();
        let (a, b) = (a.leading_block(&common), b.leading_block(&common));
        work(&a.map_err(|error| layout(&error))?, &b.map_err(|error| layout(&error))?)
    } else {
        let count = a.numel().min(b.numel());
        with_flat(a, count, |a| with_flat(b, count, |b| work(a, b)))
    }
}

/// Gives `work` the first elements in row-major order. Only a layout in another order has to be copied for it.
fn with_flat<T>(
    view: &TensorView<'_>,
    count: usize,
    work: impl FnOnce(&TensorView<'_>) -> Result<T, Incomparable>,
) -> Result<T, Incomparable> {
    if let Some(flat) = view.flat_prefix(count) {
        return work(&flat);
    }
    let mut bytes = vec![0; count * view.dtype().size_bytes()];
    view.copy_to(&mut bytes);
    let flat = TensorView::contiguous(view.dtype(), vec![count], &bytes);
    work(&flat.map_err(|error| Incomparable::Layout(error.to_string()))?)
}

fn measure(a: &TensorView<'_>, b: &TensorView<'_>) -> Result<Measured, Incomparable> {
    let metrics = compare_pair(a, b).map_err(|error| Incomparable::Layout(error.to_string()))?;
    let metrics = metrics.ok_or(Incomparable::Empty)?;
    Ok(Measured {
        metrics: of_pair(&metrics).ok_or(Incomparable::Bools)?,
        compared: a.shape().to_vec(),
        nan_counts: [metrics.target_non_finite.nan, metrics.golden_non_finite.nan],
        first_difference: metrics.first_difference,
        distance: if metrics.non_finite_agree { metrics.euclidean_distance } else { f64::INFINITY },
        norm: metrics.golden_norm,
    })
}

fn of_pair(pair: &PairMetrics) -> Option<Metrics> {
    let scaled = pair.scaled?;
    // In this order: 2 of 3 are 66.66666666666666, not …67.
    let percentage = |elements: u64| pair.share(elements) * 100.0;
    Some(Metrics {
        same_percentage: percentage(pair.equal_count),
        first_mismatch_index: pair.first_mismatch,
        max_abs_error: scaled.max_abs_error,
        max_relative_error: scaled.max_relative_error,
        percentage_within_thousandth: percentage(scaled.within_thousandth),
        percentage_within_hundredth: percentage(scaled.within_hundredth),
    })
}

/// Compares the `data` directories of two runs, on the current thread pool. Keys are in order of their names.
pub fn compare_keys(dirs: [&Path; 2], console: &dyn Console) -> Result<Comparison, CompareError> {
    let [target, golden] = dirs;
    let (target, golden) = (find_everything(target, console)?, find_everything(golden, console)?);
    let mut comparison = compare_found([target.arrays, golden.arrays], console);
    comparison.unread = [target.unread, golden.unread, comparison.unread].concat();
    Ok(comparison)
}

/// Compares arrays that were found already.
pub fn compare_found(runs: [Arrays; 2], console: &dyn Console) -> Comparison {
    let mut unread = Vec::new();
    let names: BTreeSet<String> = runs.iter().flat_map(|run| run.keys().cloned()).collect();
    let [mut target, mut golden] = runs;
    let (mut keys, mut pairs) = (Vec::with_capacity(names.len()), Vec::new());
    for name in names {
        let sides = [target.remove(&name), golden.remove(&name)];
        let present = [sides[0].is_some(), sides[1].is_some()];
        let sides = sides.map(Option::unwrap_or_default);
        let first_saved = sides.iter().find(|side| !side.is_empty()).and_then(|side| first_saved(side));
        let one_sided = pair_up(keys.len(), sides, &mut pairs);
        keys.push(KeyComparison { name, present, one_sided, first_saved, ..KeyComparison::default() });
    }
    let results = measure_pairs(&pairs, console);
    for (pair, result) in pairs.into_iter().zip(results) {
        let Some(key) = keys.get_mut(pair.key) else { continue };
        match result {
            Ok(side_by_side) => {
                for (file, bytes) in pair.files.iter().zip(side_by_side.trailing_bytes) {
                    if bytes > 0 {
                        unread.push(format!("{}: {bytes} bytes behind the array", file.display()));
                    }
                }
                key.rows.push(side_by_side.row(pair));
            }
            Err(Refused::NoMetrics { reason, shapes, dtypes, first_difference }) => {
                report(&pair, &reason.to_string(), console);
                key.bare.push(Bare { place: pair.place, shapes, dtypes, first_difference });
            }
            Err(refused) => key.failures.push(refused.report(pair, console)),
        }
    }
    Comparison { keys, unread }
}

/// Two files to compare.
struct Pair {
    /// Index of its key.
    key: usize,
    place: ArrayPlace,
    files: [PathBuf; 2],
}

/// Adds the pairs of one key; what is left over stands on one side only. Both sides are in order.
fn pair_up(
    key: usize,
    sides: [Vec<(ArrayPlace, PathBuf)>; 2],
    pairs: &mut Vec<Pair>,
) -> [Vec<ArrayPlace>; 2] {
    let mut one_sided = [Vec::new(), Vec::new()];
    let [target, golden] = sides;
    let (mut target, mut golden) = (target.into_iter().peekable(), golden.into_iter().peekable());
    loop {
        let next = [target.peek(), golden.peek()].into_iter().flatten().map(|(place, _)| *place).min();
        let Some(place) = next else { return one_sided };
        let (here, there) = (next_place(&mut target, place), next_place(&mut golden, place));
        let (paired, left) = pair_place(here, there);
        pairs.extend(paired.into_iter().map(|files| Pair { key, place, files }));
        for (places, count) in one_sided.iter_mut().zip(left) {
            places.extend(std::iter::repeat_n(place, count));
        }
    }
}

/// The next entries of one place.
fn next_place(
    side: &mut Peekable<impl Iterator<Item = (ArrayPlace, PathBuf)>>,
    place: ArrayPlace,
) -> Vec<PathBuf> {
    std::iter::from_fn(|| side.next_if(|(at, _)| *at == place)).map(|(_, file)| file).collect()
}

/// Pairs the files of one place: the only ones whatever they are called, several by their names. Returns those that are
/// left over.
fn pair_place(mut target: Vec<PathBuf>, mut golden: Vec<PathBuf>) -> (Vec<[PathBuf; 2]>, [usize; 2]) {
    if let ([_], [_]) = (&target[..], &golden[..]) {
        return (target.into_iter().zip(golden).map(|(a, b)| [a, b]).collect(), [0, 0]);
    }
    let mut paired = Vec::new();
    target.retain(|file| {
        let partner = golden.iter().position(|other| other.file_name() == file.file_name());
        if let Some(partner) = partner {
            paired.push([file.clone(), golden.remove(partner)]);
        }
        partner.is_none()
    });
    (paired, [target.len(), golden.len()])
}

/// When the arrays of the lowest step were written.
fn first_saved(arrays: &[(ArrayPlace, PathBuf)]) -> Option<SystemTime> {
    let lowest = arrays.first()?.0.step;
    let of_lowest = arrays.iter().take_while(|(place, _)| place.step == lowest);
    of_lowest.filter_map(|(_, file)| fs::metadata(file).ok()?.modified().ok()).min()
}

/// A pair that was measured, without what its [`Pair`] knows.
struct SideBySide {
    shapes: [Vec<usize>; 2],
    dtypes: [DType; 2],
    /// Bytes of the files that are no elements.
    trailing_bytes: [u64; 2],
    measured: Measured,
}

impl SideBySide {
    fn row(self, pair: Pair) -> Row {
        let Measured { metrics, compared, nan_counts, first_difference, distance, norm } = self.measured;
        Row {
            place: pair.place,
            files: pair.files,
            shapes: self.shapes,
            dtypes: self.dtypes,
            compared,
            metrics,
            nan_counts,
            first_difference,
            distance,
            norm,
        }
    }
}

/// Why a pair was not measured.
enum Refused {
    /// The file of that side is a link.
    Link(usize),
    /// The file of that side cannot be read.
    Unreadable(usize, String),
    /// Both can, and the tables have no metrics for them.
    NoMetrics {
        reason: Incomparable,
        shapes: [Vec<usize>; 2],
        dtypes: [DType; 2],
        first_difference: Option<u64>,
    },
    /// Both can, but not be compared.
    Incomparable(Incomparable),
}

/// Says why a pair has no row, in words scripts know.
fn report(pair: &Pair, reason: &str, console: &dyn Console) {
    let [target, golden] = &pair.files;
    console.error(&format!("Error comparing {} and {}: {reason}", target.display(), golden.display()));
}

impl Refused {
    fn report(self, pair: Pair, console: &dyn Console) -> Failure {
        let path =
            |side: usize| pair.files.get(side).map_or_else(String::new, |file| file.display().to_string());
        let reason = match self {
            Refused::Link(side) => {
                console.error(&format!("The file path {} is a soft link.", path(side)));
                "[msprobe] 检测到软链接： ".to_owned()
            }
            Refused::Unreadable(side, cause) => {
                let path = path(side);
                console.error(&format!("The numpy file failed to load. Please check the path: {path}."));
                console.warning(&cause);
                format!("Load numpy file {path} failed.")
            }
            Refused::NoMetrics { reason, .. } | Refused::Incomparable(reason) => reason.to_string(),
        };
        report(&pair, &reason, console);
        Failure { place: pair.place, files: pair.files, reason }
    }
}

/// Measures pairs on all threads of the pool. The results are in order and small; files are open only while it is
/// their turn.
fn measure_pairs(pairs: &[Pair], console: &dyn Console) -> Vec<Result<SideBySide, Refused>> {
    let size_of = |file: &PathBuf| fs::metadata(file).map_or(0, |found| found.len());
    let sizes: Vec<u64> = pairs.par_iter().map(|pair| pair.files.iter().map(size_of).sum()).collect();
    let total: u64 = sizes.iter().sum();
    // Threads that help with one large pair are threads that do not begin another one, which is better while there
    // are enough of them.
    let large = total / (4 * rayon::current_num_threads() as u64).max(1);
    console.begin("comparing", total);
    let results = pairs
        .par_iter()
        .zip(&sizes)
        .with_max_len(1)
        .map(|(pair, &size)| {
            let work = || measure_files(&pair.files);
            let result = if size > large { work() } else { on_this_thread(work) };
            console.advance(size);
            result
        })
        .collect();
    console.end();
    results
}

fn measure_files(files: &[PathBuf; 2]) -> Result<SideBySide, Refused> {
    let open = |side: usize, file: &Path| {
        if fs::symlink_metadata(file).is_ok_and(|found| found.is_symlink()) {
            return Err(Refused::Link(side));
        }
        NpyArray::open(file).map_err(|cause| Refused::Unreadable(side, cause))
    };
    let [target, golden] = files;
    let arrays = (open(0, target)?, open(1, golden)?);
    let gone = |side: usize| Refused::Unreadable(side, "the file changed while it was read".to_owned());
    let a = arrays.0.view().ok_or_else(|| gone(0))?;
    let b = arrays.1.view().ok_or_else(|| gone(1))?;
    let shapes = [a.shape().to_vec(), b.shape().to_vec()];
    let dtypes = [a.dtype(), b.dtype()];
    let trailing_bytes = [arrays.0.trailing_bytes(), arrays.1.trailing_bytes()];
    match compare_arrays(&a, &b) {
        Ok(measured) => Ok(SideBySide { shapes, dtypes, trailing_bytes, measured }),
        // Nothing tells what the bytes are: no array without metrics can be called the same.
        Err(reason) if trailing_bytes != [0, 0] => Err(Refused::Incomparable(reason)),
        Err(reason @ (Incomparable::Bools | Incomparable::Empty)) => {
            let metrics = common_block(&a, &b, |a, b| {
                compare_pair(a, b).map_err(|error| Incomparable::Layout(error.to_string()))
            });
            let metrics = metrics.map_err(Refused::Incomparable)?;
            let first_difference = metrics.and_then(|metrics| metrics.first_difference);
            Err(Refused::NoMetrics { reason, shapes, dtypes, first_difference })
        }
        Err(reason) => Err(Refused::Incomparable(reason)),
    }
}

#[cfg(test)]
mod tests;
