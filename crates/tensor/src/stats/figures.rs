//! Four figures of a tensor as its framework computes them.
//!
//! A framework measures integers and float64 as float32, and half precision with sums in float32 whose result is
//! rounded. Sums here are kept in f64; the figures are what float32 can say of them: a sum of squares beyond its
//! range has an infinite norm, as it has there.

use half::{bf16, f16};

use super::{Number, Statistics};
use crate::DType;

/// max, min, mean and L2 norm of a tensor with elements. All NaN if one element is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FourStatistics {
    /// Largest value.
    pub max: f64,
    /// Smallest value.
    pub min: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// L2 norm over all elements.
    pub norm: f64,
}

/// The type figures are computed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// float32, whatever the dtype; figures of half precision are rounded to it. PyTorch's way of key data.
    Float32,
    /// The tensor's own: float64 stays float64, largest and smallest of integers are exact. MindSpore's way.
    Own,
}

impl FourStatistics {
    /// What there is to say in `arithmetic` about a tensor of `dtype` that was measured.
    pub(crate) fn new(stats: &Statistics, dtype: DType, arithmetic: Arithmetic) -> FourStatistics {
        let [max, min, mean, norm] = [stats.max, stats.min, stats.mean, stats.norm]
            .map(|figure| figure.map_or(f64::NAN, Number::as_f64));
        let figures = FourStatistics { max, min, mean, norm: norm.abs() };
        let is_integer = !matches!(stats.max, Some(Number::Float(_)));
        match arithmetic {
            Arithmetic::Own if dtype == DType::F64 => figures,
            Arithmetic::Own if is_integer => FourStatistics { max, min, ..figures.in_float32(stats.count) },
            _ => figures.in_float32(stats.count).rounded_to(dtype),
        }
    }

    fn in_float32(self, count: u64) -> FourStatistics {
        let beyond = |sum: f64| self.norm.is_finite() && (sum as f32).is_infinite();
        let (sum, squares) = (self.mean * count as f64, self.norm * self.norm);
        // One element needs no sum.
        let summed = count > 1;
        FourStatistics {
            max: single(self.max),
            min: single(self.min),
            mean: if summed && beyond(sum) { f64::INFINITY.copysign(sum) } else { single(self.mean) },
            norm: match squares as f32 {
                squares if summed && squares == 0.0 => 0.0,
                _ if summed && beyond(squares) => f64::INFINITY,
                _ => single(self.norm),
            },
        }
    }

    fn rounded_to(self, dtype: DType) -> FourStatistics {
        let round: fn(f64) -> f64 = match dtype {
            DType::F16 => |value| f16::from_f32(value as f32).into(),
            DType::BF16 => |value| bf16::from_f32(value as f32).into(),
            _ => return self,
        };
        FourStatistics {
            max: round(self.max),
            min: round(self.min),
            mean: round(self.mean),
            norm: round(self.norm),
        }
    }
}

/// The nearest float32.
fn single(value: f64) -> f64 {
    f64::from(value as f32)
}
