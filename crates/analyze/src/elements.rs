//! Where the tensors themselves were dumped: how many of their elements are bad, and which is the first.
//!
//! Files are as hostile as any others: what cannot be read is an error with its reason, and the rest goes on.

#[cfg(test)]
mod tests;

use std::path::Path;

use msprobe_dump::hash::FastMap;
use msprobe_tensor::files::TensorFile;
use msprobe_tensor::{Bounds, DType, Extremes, TensorView, extremes, statistics};
use rayon::prelude::*;

use crate::range::{
    AsDtype, Danger, Evidence, Kept, Offer, RangeFindings, RangeOptions, Reading, Warning, edges,
};
use crate::rank::{TensorFacts, TensorPlace, TensorWatch};
use crate::record::Role;

/// Tensors of a scan that are measured before their warnings are sorted out.
const BATCH: usize = 512;

/// What the elements of a tensor are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElementCounts {
    /// The dtype in the file. It can be wider than the one of the record, where the file format has no such dtype.
    pub dtype: DType,
    /// Size of each dimension.
    pub shape: Vec<u64>,
    /// All elements.
    pub elements: u64,
    /// NaN.
    pub nan: u64,
    /// +Inf; of complex tensors all infinite ones.
    pub positive_inf: u64,
    /// -Inf.
    pub negative_inf: u64,
    /// The index of the first NaN or infinity, in row-major order; empty for a scalar.
    pub first_bad: Option<Vec<u64>>,
    /// Not zero, but smaller than the smallest normal number.
    pub subnormal: u64,
    /// Zero.
    pub zero: u64,
}

impl ElementCounts {
    /// NaN and infinite ones together.
    pub fn bad(&self) -> u64 {
        self.nan + self.positive_inf + self.negative_inf
    }

    /// In words: `3 of 4096 elements are not finite (1 nan, 2 inf), the first at [0, 17]`.
    pub fn sentence(&self) -> String {
        let Some(first) = &self.first_bad else {
            return format!("all {} elements are finite", self.elements);
        };
        let kinds: Vec<String> = [(self.nan, "nan"), (self.positive_inf, "inf"), (self.negative_inf, "-inf")]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, kind)| format!("{count} {kind}"))
            .collect();
        let (bad, elements) = (self.bad(), self.elements);
        let are = if bad == 1 { "element is" } else { "elements are" };
        format!("{bad} of {elements} {are} not finite ({}), the first at {first:?}", kinds.join(", "))
    }
}

/// Counts the elements of a tensor of a dump. `data_name` comes from `dump.json` and must be the name of a file in the
/// directory, nothing else.
pub fn count(tensor_dir: &Path, data_name: &str) -> Result<ElementCounts, String> {
    with_tensor(tensor_dir, data_name, |view| {
        let counts = extremes(view, Bounds::NONE);
        let shape: Vec<u64> = view.shape().iter().map(|&size| size as u64).collect();
        ElementCounts {
            dtype: view.dtype(),
            first_bad: counts.first_bad.map(|place| index_of(place, &shape)),
            shape,
            elements: counts.elements,
            nan: counts.nan,
            positive_inf: counts.positive_inf,
            negative_inf: counts.negative_inf,
            subnormal: counts.subnormal,
            zero: counts.zero,
        }
    })
}

/// Index of the element that is `place`th in row-major order.
fn index_of(mut place: u64, shape: &[u64]) -> Vec<u64> {
    let mut index = vec![0; shape.len()];
    for (digit, &size) in index.iter_mut().zip(shape).rev() {
        let size = size.max(1);
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

/// A tensor that has a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpedTensor {
    /// Index of its record.
    pub record: u32,
    /// What it is of the record.
    pub role: Role,
    /// Its number among the tensors of that role.
    pub index: u16,
    /// Its dtype.
    pub dtype: DType,
    /// The name of its file.
    pub data_name: Box<str>,
}

/// Lists the floating-point tensors of a dump that have files, for [`scan`].
#[derive(Default)]
pub struct FileWatch {
    reading: Reading,
    /// How often a record was begun that had been there before.
    again: u32,
    /// The last of those, by record.
    last: FastMap<u32, u32>,
    tensors: Vec<(u32, DumpedTensor)>,
}

impl FileWatch {
    /// The tensors, in the order they were seen; of records that were superseded only the last form counts.
    pub fn finish(self) -> Vec<DumpedTensor> {
        let last = self.last;
        self.tensors
            .into_iter()
            .filter(|(again, tensor)| last.get(&tensor.record).is_none_or(|last| again >= last))
            .map(|(_, tensor)| tensor)
            .collect()
    }
}

impl TensorWatch for FileWatch {
    fn see(&mut self, place: TensorPlace<'_>, tensor: &TensorFacts<'_>) {
        let record = u32::try_from(place.record).unwrap_or(u32::MAX);
        if self.reading.begins(place) {
            self.again += 1;
            self.last.insert(record, self.again);
        }
        let dtype = tensor.dtype.filter(|dtype| dtype.float_range().is_some());
        if let (Some(dtype), Some(data_name)) = (dtype, tensor.data_name) {
            let index = u16::try_from(place.index).unwrap_or(u16::MAX);
            let tensor = DumpedTensor { record, role: place.role, index, dtype, data_name: data_name.into() };
            self.tensors.push((self.again, tensor));
        }
    }
}

/// Reads all files and reports the tensors of whose elements at least the share `least` underflowed, or would in the
/// dtype asked for, without being zero. This finds what statistics cannot prove: small elements among large ones.
/// Returns exact warnings of these two dangers, as many as [`RangeFindings`] keeps, and what could not be read.
pub fn scan(
    tensors: &[DumpedTensor],
    tensor_dir: &Path,
    options: RangeOptions,
    least: f64,
) -> (RangeFindings, Vec<String>) {
    let mut kept = Kept::default();
    let mut notes = Vec::new();
    let mut failures = 0_u64;
    for batch in tensors.chunks(BATCH) {
        let found: Vec<Result<Vec<Warning>, String>> =
            batch.par_iter().map(|tensor| underflows(tensor, tensor_dir, &options, least)).collect();
        for (tensor, warnings) in batch.iter().zip(found) {
            match warnings {
                Ok(warnings) => {
                    for warning in warnings {
                        let (record, danger) = (warning.record, warning.danger);
                        let severity = warning.share.unwrap_or(0.0);
                        kept.offer(&Offer { record, danger, severity, is_fill: false }, || warning);
                    }
                }
                Err(error) if failures < FEW => {
                    failures += 1;
                    notes.push(format!("the elements of {} could not be counted: {error}", tensor.data_name));
                }
                Err(_) => failures += 1,
            }
        }
    }
    if failures > FEW {
        notes.push(format!("{} more files could not be read", failures - FEW));
    }
    (kept.finish(options), notes)
}

/// How many unreadable files a scan names.
const FEW: u64 = 20;

fn underflows(
    tensor: &DumpedTensor,
    tensor_dir: &Path,
    options: &RangeOptions,
    least: f64,
) -> Result<Vec<Warning>, String> {
    with_tensor(tensor_dir, &tensor.data_name, |view| {
        let mut warnings = Vec::new();
        for danger in [Danger::Underflow, Danger::WouldUnderflow] {
            let Some(edge) = edges(tensor.dtype, options)[danger as usize] else { continue };
            let counts = extremes(view, Bounds { below: edge.at, ..Bounds::NONE });
            let share = counts.beneath as f64 / counts.elements.max(1) as f64;
            if counts.beneath == 0 || share < least {
                continue;
            }
            let norm = statistics(view).norm.map_or(f64::NAN, |norm| norm.as_f64().abs());
            warnings.push(Warning {
                record: tensor.record,
                role: tensor.role,
                index: tensor.index,
                danger,
                value: norm / (counts.elements as f64).sqrt(),
                limit: edge.limit,
                share: Some(share),
                evidence: Evidence::Elements {
                    affected: counts.beneath,
                    zero: counts.zero,
                    elements: counts.elements,
                },
                dtype: tensor.dtype,
                as_dtype: options.as_dtype.filter(|_: &AsDtype| danger == Danger::WouldUnderflow),
                data_name: Some(tensor.data_name.clone()),
            });
        }
        warnings
    })
}
