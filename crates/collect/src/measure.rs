//! What is written about the elements of a tensor: the four statistics and, on demand, the checksum.

use msprobe_dump::write::JsonText;
use msprobe_tensor::{Number, Statistics, TensorView, crc32_of_bytes, statistics, statistics_and_crc32};

/// The figures of one tensor.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Measured {
    /// Max, Min, Mean and Norm; all absent for a tensor without elements or without data.
    pub stats: Statistics,
    /// The CRC-32 of the elements, if it was asked for.
    pub crc32: Option<u32>,
}

impl Measured {
    /// A tensor whose elements cannot be read: meta tensors, freed storage.
    pub fn unreadable() -> Measured {
        Measured::default()
    }
}

/// Reads every element once.
pub fn measure(view: &TensorView<'_>, with_crc32: bool) -> Measured {
    if !with_crc32 {
        return Measured { stats: statistics(view), crc32: None };
    }
    if view.numel() == 0 {
        return Measured { stats: Statistics::default(), crc32: Some(crc32_of_bytes(&[])) };
    }
    let (stats, crc32) = statistics_and_crc32(view);
    Measured { stats, crc32: Some(crc32) }
}

/// How the numbers of a tensor are told apart in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberStyle {
    /// PyTorch: integers of a tensor with dimensions are written as floats, as long as that is exact; a bool
    /// tensor has neither mean nor norm.
    Torch,
    /// numpy: integers stay integers, bools are averaged as 0 and 1.
    Numpy,
}

/// `Max`, `Min`, `Mean` and `Norm`.
pub(crate) fn write_statistics(json: &mut JsonText, stats: &Statistics, style: NumberStyle, is_scalar: bool) {
    let keeps_integers = is_scalar || style == NumberStyle::Numpy;
    let (mean, norm) = match style {
        NumberStyle::Numpy => {
            (of_bools(stats, |ones, count| ones / count), of_bools(stats, |ones, _| ones.sqrt()))
        }
        NumberStyle::Torch => (None, None),
    };
    for (key, number) in
        [("Max", stats.max), ("Min", stats.min), ("Mean", mean.or(stats.mean)), ("Norm", norm.or(stats.norm))]
    {
        json.key(key);
        match number {
            None => json.null(),
            Some(Number::Bool(value)) => json.bool(value),
            Some(Number::Float(value)) => json.float(value),
            Some(Number::Int(value)) if keeps_integers || (value as f64) as i128 != value => json.int(value),
            Some(Number::Int(value)) => json.float(value as f64),
        }
    }
}

/// A figure of a bool tensor taken as numbers; `None` for any other.
fn of_bools(stats: &Statistics, figure: impl Fn(f64, f64) -> f64) -> Option<Number> {
    matches!(stats.max, Some(Number::Bool(_))).then(|| {
        let ones = (stats.count - stats.zero_count) as f64;
        Number::Float(figure(ones, stats.count as f64))
    })
}
