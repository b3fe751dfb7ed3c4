//! What is written about the elements of a tensor: the four statistics and, on demand, checksum and sketch.

use msprobe_dump::write::JsonText;
use msprobe_tensor::{
    DType, DTypeClass, Number, SketchText, Statistics, TensorView, crc32, sketch, statistics,
    statistics_and_crc32, statistics_and_sketch,
};

/// The figures of one tensor.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Measured {
    /// Max, Min, Mean and Norm; all absent for a tensor without elements or without data.
    pub stats: Statistics,
    /// The CRC-32 of the elements, if it was asked for.
    pub crc32: Option<u32>,
    /// The sketch of the elements, if it was asked for: as text, because it is only written, and often more than once.
    pub sketch: Option<SketchText>,
}

/// What is asked for beside statistics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wanted {
    /// A checksum.
    pub crc32: bool,
    /// A sketch.
    pub sketch: bool,
}

impl Measured {
    /// A tensor whose elements cannot be read: meta tensors, freed storage.
    pub fn unreadable() -> Measured {
        Measured::default()
    }

    /// As 32-bit floats measure it: doubles are narrowed before, complex numbers have a norm.
    #[must_use]
    pub fn as_singles(mut self, view: &TensorView<'_>) -> Measured {
        match view.dtype() {
            DType::C64 | DType::C128 => {
                self.stats.norm = (self.stats.count > 0).then(|| Number::Float(complex_norm(view)));
            }
            // A scalar stands for itself.
            _ if view.shape().is_empty() => {}
            DType::F64 => self.stats = narrowed(self.stats),
            _ => {}
        }
        self
    }

    /// With so many zeros besides, of the same dtype: a sparse tensor does not store them.
    #[must_use]
    pub fn with_zeros(mut self, zeros: u64, dtype: DType) -> Measured {
        if zeros > 0 {
            self.stats = with_zeros(self.stats, zeros, dtype);
            // Nobody knows where they are.
            self.sketch = None;
        }
        self
    }
}

fn with_zeros(stats: Statistics, zeros: u64, dtype: DType) -> Statistics {
    let zero = match dtype {
        DType::Bool => Number::Bool(false),
        _ if matches!(dtype.class(), DTypeClass::Signed | DTypeClass::Unsigned) => Number::Int(0),
        _ => Number::Float(0.0),
    };
    let count = stats.count + zeros;
    let has_norm = !matches!(dtype.class(), DTypeClass::Bool | DTypeClass::Complex);
    let nothing = Number::Float(0.0);
    let mean = match stats.mean {
        Some(mean) => Some(Number::Float(mean.as_f64() * (stats.count as f64 / count as f64))),
        None => (stats.count == 0 && dtype != DType::Bool).then_some(nothing),
    };
    Statistics {
        max: Some(stats.max.map_or(zero, |max| if max.as_f64() < 0.0 { zero } else { max })),
        min: Some(stats.min.map_or(zero, |min| match min {
            Number::Bool(_) => zero,
            // NaN stays: no comparison with it holds.
            _ if min.as_f64() > 0.0 => zero,
            _ => min,
        })),
        mean,
        norm: stats.norm.or((stats.count == 0 && has_norm).then_some(nothing)),
        count,
        zero_count: stats.zero_count + zeros,
        ..stats
    }
}

/// The statistics of the same numbers after each was narrowed to 32 bits. Sums lose less than that costs.
fn narrowed(stats: Statistics) -> Statistics {
    let narrow = |number: Option<Number>| number.map(|number| f64::from(number.as_f64() as f32));
    let (max, min) = (narrow(stats.max), narrow(stats.min));
    let (above, below) = (max == Some(f64::INFINITY), min == Some(f64::NEG_INFINITY));
    let mean = match (above, below) {
        _ if max.is_some_and(f64::is_nan) => Some(f64::NAN),
        (true, true) => Some(f64::NAN),
        (true, false) => max,
        (false, true) => min,
        (false, false) => narrow(stats.mean),
    };
    let norm = if (above || below) && !max.is_some_and(f64::is_nan) {
        Some(f64::INFINITY)
    } else {
        narrow(stats.norm)
    };
    let float = |number: Option<f64>| number.map(Number::Float);
    Statistics { max: float(max), min: float(min), mean: float(mean), norm: float(norm), ..stats }
}

/// The 2-norm of complex numbers.
fn complex_norm(view: &TensorView<'_>) -> f64 {
    let parts = match view.dtype() {
        DType::C64 => DType::F32,
        _ => DType::F64,
    };
    let mut bytes = vec![0; view.size_bytes()];
    view.copy_to(&mut bytes);
    let shape = vec![bytes.len() / parts.size_bytes()];
    TensorView::contiguous(parts, shape, &bytes)
        .ok()
        .and_then(|parts| statistics(&parts).norm)
        .map_or(f64::NAN, Number::as_f64)
}

/// Reads every element once, for checksum and sketch together twice.
pub fn measure(view: &TensorView<'_>, wanted: Wanted) -> Measured {
    match wanted {
        Wanted { crc32: false, sketch: false } => Measured { stats: statistics(view), ..Measured::default() },
        Wanted { crc32: true, sketch: false } => {
            let (stats, crc32) = statistics_and_crc32(view);
            Measured { stats, crc32: Some(crc32), sketch: None }
        }
        Wanted { crc32: wants_crc32, sketch: true } => {
            let (stats, sketch) = statistics_and_sketch(view);
            Measured { stats, crc32: wants_crc32.then(|| crc32(view)), sketch: Some(sketch.text()) }
        }
    }
}

impl Measured {
    /// Whether nothing is missing that is wanted.
    pub fn has(&self, wanted: Wanted) -> bool {
        (self.crc32.is_some() || !wanted.crc32) && (self.sketch.is_some() || !wanted.sketch)
    }

    /// With what is wanted and missing, found in the elements.
    #[must_use]
    pub fn completed(mut self, view: &TensorView<'_>, wanted: Wanted) -> Measured {
        if wanted.crc32 && self.crc32.is_none() {
            self.crc32 = Some(crc32(view));
        }
        if wanted.sketch && self.sketch.is_none() {
            self.sketch = Some(sketch(view).text());
        }
        self
    }
}

/// How the numbers of a tensor are told apart in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberStyle {
    /// Tensors of a framework: integers of one with dimensions are written as floats, as long as that is exact; a bool
    /// tensor has neither mean nor norm.
    Tensor,
    /// Arrays of numpy: integers stay integers, bools are averaged as 0 and 1.
    Array,
}

/// `Max`, `Min`, `Mean` and `Norm`.
pub(crate) fn write_statistics(json: &mut JsonText, stats: &Statistics, style: NumberStyle, is_scalar: bool) {
    let keeps_integers = is_scalar || style == NumberStyle::Array;
    let (mean, norm) = match style {
        NumberStyle::Array => {
            (of_bools(stats, |ones, count| ones / count), of_bools(stats, |ones, _| ones.sqrt()))
        }
        NumberStyle::Tensor => (None, None),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn with(values: &[f32], zeros: u64) -> Statistics {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let view = TensorView::contiguous(DType::F32, vec![values.len()], &bytes).unwrap();
        measure(&view, Wanted::default()).with_zeros(zeros, DType::F32).stats
    }

    #[test]
    fn zeros_that_are_not_stored_count() {
        for values in [&[1.0, 3.0][..], &[-1.0, -3.0], &[2.0, -2.0], &[f32::INFINITY, 1.0], &[]] {
            let all: Vec<f32> = values.iter().copied().chain([0.0; 6]).collect();
            assert_eq!(with(values, 6), with(&all, 0), "{values:?}");
        }
        assert_eq!(with(&[-1.0], 0), with(&[-1.0], 0));
        let nan = with(&[f32::NAN, 1.0], 2);
        let is_nan = |number: Option<Number>| number.is_some_and(|number| number.as_f64().is_nan());
        assert!([nan.max, nan.min, nan.mean, nan.norm].into_iter().all(is_nan));
        assert_eq!((nan.count, nan.zero_count, nan.nan_count), (4, 2, 1));
    }

    #[test]
    fn doubles_are_measured_as_singles() {
        let of = |values: &[f64]| {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            let view = TensorView::contiguous(DType::F64, vec![values.len()], &bytes).unwrap();
            let stats = measure(&view, Wanted::default()).as_singles(&view).stats;
            [stats.max, stats.min, stats.mean, stats.norm].map(|number| number.unwrap().as_f64())
        };
        assert_eq!(of(&[1.5, -2.0, 1e300]), [f64::INFINITY, -2.0, f64::INFINITY, f64::INFINITY]);
        assert_eq!(of(&[3.0, 4.0]), [4.0, 3.0, 3.5, 5.0]);
        let [max, min, mean, norm] = of(&[1e300, -1e300]);
        assert!(max == f64::INFINITY && min == f64::NEG_INFINITY && mean.is_nan() && norm == f64::INFINITY);
        assert!(of(&[f64::NAN, 1e300]).iter().all(|number| number.is_nan()));
    }

    #[test]
    fn complex_numbers_have_a_norm() {
        let bytes: Vec<u8> = [3.0_f32, 4.0, 1.0, -1.0].iter().flat_map(|part| part.to_le_bytes()).collect();
        let view = TensorView::contiguous(DType::C64, vec![2], &bytes).unwrap();
        let stats = measure(&view, Wanted::default()).as_singles(&view).stats;
        assert_eq!(stats.max, Some(Number::Float(5.0)));
        assert!((stats.norm.unwrap().as_f64() - 27.0_f64.sqrt()).abs() < 1e-12);
        let scalar = TensorView::contiguous(DType::C64, vec![], &bytes[..8]).unwrap();
        let stats = measure(&scalar, Wanted::default()).as_singles(&scalar).stats;
        assert_eq!((stats.max, stats.norm), (Some(Number::Float(5.0)), Some(Number::Float(5.0))));
    }

    #[test]
    fn zeros_are_of_the_dtype() {
        let none = |dtype| Measured::default().with_zeros(3, dtype).stats;
        assert_eq!(none(DType::I64).max, Some(Number::Int(0)));
        assert_eq!(none(DType::Bool).max, Some(Number::Bool(false)));
        assert_eq!((none(DType::Bool).mean, none(DType::Bool).norm), (None, None));
        assert_eq!((none(DType::C64).mean, none(DType::C64).norm), (Some(Number::Float(0.0)), None));
        let both = |min| Statistics {
            max: Some(Number::Bool(true)),
            min: Some(Number::Bool(min)),
            count: 2,
            ..Statistics::default()
        };
        let stats = with_zeros(both(true), 1, DType::Bool);
        assert_eq!((stats.max, stats.min), (Some(Number::Bool(true)), Some(Number::Bool(false))));
    }
}
