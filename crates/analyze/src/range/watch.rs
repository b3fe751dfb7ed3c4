//! Looks at the statistics of every tensor of a dump while it is read.

use msprobe_tensor::DType;

use super::bound::small_elements;
use super::keep::Kept;
use super::{Danger, Edge, Evidence, RangeFindings, RangeOptions, Warning, edges};
use crate::rank::{TensorFacts, TensorPlace, TensorWatch};

/// Collects warnings. Give it to [`crate::rank::RankDump::read`].
pub struct RangeWatch {
    options: RangeOptions,
    /// By dtype.
    edges: Vec<[Option<Edge>; 4]>,
    reading: Reading,
    kept: Kept,
}

impl RangeWatch {
    /// One that has seen nothing.
    pub fn new(options: RangeOptions) -> RangeWatch {
        RangeWatch {
            options,
            edges: DType::all().map(|dtype| edges(dtype, &options)).collect(),
            reading: Reading::default(),
            kept: Kept::default(),
        }
    }

    /// What was found.
    pub fn finish(self) -> RangeFindings {
        self.kept.finish(self.options)
    }
}

impl TensorWatch for RangeWatch {
    fn see(&mut self, place: TensorPlace<'_>, tensor: &TensorFacts<'_>) {
        if self.reading.begins(place) {
            self.kept.forget(record_number(place));
        }
        let Some(dtype) = tensor.dtype else { return };
        let Some(&edges) = self.edges.get(dtype as usize) else { return };
        for danger in Danger::ALL {
            let Some(edge) = edges[danger as usize] else { continue };
            let found = if danger.is_underflow() {
                small_elements(tensor, dtype, edge.at)
                    .map(|small| (small.value, Some(small.share), small.severity))
            } else {
                largest_beyond(tensor, dtype, edge.at).map(|value| (value, None, value.abs() / edge.limit))
            };
            let Some((value, share, severity)) = found else { continue };
            let is_asked_for = matches!(danger, Danger::WouldOverflow | Danger::WouldUnderflow);
            let warning = Warning {
                record: record_number(place),
                role: place.role,
                index: u16::try_from(place.index).unwrap_or(u16::MAX),
                danger,
                value,
                limit: edge.limit,
                share,
                evidence: Evidence::Statistics,
                dtype,
                as_dtype: self.options.as_dtype.filter(|_| is_asked_for),
                data_name: None,
            };
            self.kept.offer(warning, severity, tensor.data_name);
        }
    }
}

/// Records are numbered within 32 bits, as in [`crate::rank`].
fn record_number(place: TensorPlace<'_>) -> u32 {
    u32::try_from(place.record).unwrap_or(u32::MAX)
}

/// The finite extreme of more than this magnitude. If both are, the larger, but rather one that is no mask's fill.
fn largest_beyond(tensor: &TensorFacts<'_>, dtype: DType, at: f64) -> Option<f64> {
    let is_beyond = |value: &f64| value.abs() > at && value.is_finite();
    let (max, min) = (tensor.max.filter(is_beyond), tensor.min.filter(is_beyond));
    match (max, min) {
        (Some(max), Some(min)) => {
            let is_fill = dtype.float_range().is_some_and(|range| min == -range.largest);
            Some(if is_fill && max != min || max.abs() >= min.abs() { max } else { min })
        }
        (max, min) => max.or(min),
    }
}

/// Notices when a record is read that was there before: a repeated name counts as its last value, and a damaged record
/// is left out, so that the next one gets its number.
#[derive(Default)]
struct Reading {
    /// The next record that was not there yet.
    fresh: usize,
    record: usize,
    name: String,
    /// The number of the next tensor, by role.
    next: [usize; 3],
}

impl Reading {
    /// Whether this tensor is the first of a record whose number was seen before.
    fn begins(&mut self, place: TensorPlace<'_>) -> bool {
        let next = &mut self.next[place.role as usize];
        if self.fresh > 0 && place.record == self.record && place.index == *next && place.name == self.name {
            *next += 1;
            return false;
        }
        let is_known = place.record < self.fresh;
        self.fresh = self.fresh.max(place.record.saturating_add(1));
        self.record = place.record;
        self.name.clear();
        self.name.push_str(place.name);
        self.next = [0; 3];
        self.next[place.role as usize] = place.index.saturating_add(1);
        is_known
    }
}
