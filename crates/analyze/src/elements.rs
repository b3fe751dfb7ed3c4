//! Where the tensors themselves were dumped: how many of their elements are bad, and which is the first.
//!
//! Files are as hostile as any others: what cannot be read is an error with its reason, and the rest goes on.

#[cfg(test)]
mod tests;

use std::path::Path;

use msprobe_tensor::files::TensorFile;
use msprobe_tensor::{Bounds, DType, Extremes, TensorView, extremes};
use rayon::prelude::*;

use crate::range::{Danger, Evidence, RangeFindings, RangeOptions, edges};

/// Counts the elements of a tensor of a dump, and finds the index of the first NaN or infinity, in row-major order; it is
/// empty for a scalar. `data_name` comes from `dump.json` and must be the name of a file in the directory, nothing else.
pub fn count(tensor_dir: &Path, data_name: &str) -> Result<(Extremes, Option<Vec<u64>>), String> {
    with_tensor(tensor_dir, data_name, |view| {
        let counts = extremes(view, Bounds::NONE);
        (counts, counts.first_bad.map(|place| index_of(place, view.shape())))
    })
}

/// Index of the element that is `place`th in row-major order.
fn index_of(mut place: u64, shape: &[usize]) -> Vec<u64> {
    let mut index = vec![0; shape.len()];
    for (digit, &size) in index.iter_mut().zip(shape).rev() {
        let size = size.max(1) as u64;
        *digit = place % size;
        place /= size;
    }
    index
}

fn with_tensor<T>(
    tensor_dir: &Path,
    data_name: &str,
    work: impl FnOnce(&TensorView<'_>) -> T,
) -> Result<T, String> {
    let file = TensorFile::open_inside(tensor_dir, data_name).map_err(|error| error.to_string())?;
    match file.entries().len() {
        1 => Ok(work(&file.view(0).map_err(|error| error.to_string())?)),
        count => Err(format!("{data_name} holds {count} tensors, not one")),
    }
}

/// Exact shares for the warnings that have files, in place of what statistics prove. Underflows that turn out to be
/// nothing but zeros are taken back. Returns what went wrong and what was taken back.
pub fn refine(findings: &mut RangeFindings, tensor_dir: &Path) -> Vec<String> {
    let options = findings.options;
    let counts: Vec<Option<Result<Extremes, String>>> = findings
        .warnings
        .par_iter()
        .map(|warning| {
            let data_name = warning.data_name.as_deref()?;
            let bounds = bounds_of(warning.dtype, warning.danger, &options)?;
            Some(with_tensor(tensor_dir, data_name, |view| extremes(view, bounds)))
        })
        .collect();
    let mut notes = Vec::new();
    let mut sparse = 0_u64;
    let mut counts = counts.into_iter();
    findings.warnings.retain_mut(|warning| {
        let data_name = warning.data_name.as_deref().unwrap_or_default();
        match counts.next().flatten() {
            None => true,
            Some(Err(error)) => {
                notes.push(format!("the elements of {data_name} could not be counted: {error}"));
                true
            }
            Some(Ok(counts)) => {
                let affected = if warning.danger.is_underflow() { counts.beneath } else { counts.beyond };
                let is_bound = warning.share.is_some_and(|share| share < 1.0);
                if affected == 0 && is_bound && counts.zero > 0 {
                    findings.counts[warning.danger as usize] =
                        findings.counts[warning.danger as usize].saturating_sub(1);
                    sparse += 1;
                    return false;
                }
                if affected == 0 {
                    notes.push(format!("{data_name} does not hold what its statistics say"));
                    return true;
                }
                warning.share = Some(affected as f64 / counts.elements as f64);
                warning.evidence =
                    Evidence::Elements { affected, zero: counts.zero, elements: counts.elements };
                true
            }
        }
    });
    if sparse > 0 {
        notes.push(format!(
            "{sparse} tensors that could have underflowed by their statistics are only sparse: their small elements are \
             all zero"
        ));
    }
    notes
}

/// What to count for a danger; the dtype is that of the record, not of the file.
fn bounds_of(dtype: DType, danger: Danger, options: &RangeOptions) -> Option<Bounds> {
    let edge = edges(dtype, options)[danger as usize]?;
    Some(if danger.is_underflow() {
        Bounds { below: edge.at, ..Bounds::NONE }
    } else {
        Bounds { above: edge.at, ..Bounds::NONE }
    })
}
