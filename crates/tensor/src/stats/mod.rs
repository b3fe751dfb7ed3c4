//! Statistics of one tensor in one pass over its memory.
//!
//! What each number means follows the dump format: NaN anywhere makes all four NaN; bool has max = any and
//! min = all; complex is measured by modulus and has no norm; a scalar stands for all four itself (its
//! "norm" keeps the sign); an empty tensor has none. Sums are kept in f64 (integers: exactly), in fixed lanes
//! and chunks, so the same elements give the same bits on any number of threads and any CPU.

mod complex;
mod extremes;
mod figures;
pub(crate) mod float;
mod gradient;
mod integer;
mod sketch;

pub use extremes::{Bounds, Extremes, FloatRange, extremes};
pub use figures::{Arithmetic, FourStatistics};
pub use gradient::{GradientFigures, GradientWork, measure_gradient};
pub use sketch::{
    Eighths, Sketch, SketchCuts, SketchDifference, SketchPart, SketchSums, SketchText, SketchTextError,
    sketch, sketch_cuts, sketch_tables, sketch_width, statistics_and_sketch,
};
pub(crate) use sketch::{SIGN_PERIOD, is_negative};

use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::checksum::{crc32, crc32_of_range, join_crc32};
use crate::decode::{Integer, as_f32, as_f64, as_integer};
use crate::parallel::OnChunk;
use crate::simd::Level;
use crate::{DType, TensorView};

/// A statistic in the terms of its dtype, so that integers and bools stay exact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// Of a bool tensor.
    Bool(bool),
    /// Of an integer tensor; wide enough for `i64` and `u64`.
    Int(i128),
    /// Everything else.
    Float(f64),
}

impl Number {
    /// The nearest `f64`.
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Bool(value) => f64::from(u8::from(value)),
            Number::Int(value) => value as f64,
            Number::Float(value) => value,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Bool(value) => f.pad(if *value { "True" } else { "False" }),
            Number::Int(value) => f.pad(&value.to_string()),
            Number::Float(value) => f.pad(&value.to_string()),
        }
    }
}

/// What there is to say about the values of one tensor.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Statistics {
    /// Largest value.
    pub max: Option<Number>,
    /// Smallest value.
    pub min: Option<Number>,
    /// Arithmetic mean.
    pub mean: Option<Number>,
    /// L2 norm over all elements.
    pub norm: Option<Number>,
    /// Number of elements.
    pub count: u64,
    /// Elements that are NaN (complex: whose modulus is).
    pub nan_count: u64,
    /// Elements that are +Inf (complex: with infinite modulus).
    pub pos_inf_count: u64,
    /// Elements that are -Inf.
    pub neg_inf_count: u64,
    /// Elements equal to zero (bool: false).
    pub zero_count: u64,
}

/// Measures a tensor. Large tensors use the threads of the current rayon pool.
pub fn statistics(view: &TensorView<'_>) -> Statistics {
    statistics_at(Level::detected(), view, &|_| {})
}

/// Statistics and the checksum of dump files ([`crc32`]) together, touching row-major memory once.
pub fn statistics_and_crc32(view: &TensorView<'_>) -> (Statistics, u32) {
    if !view.is_row_major() {
        return (statistics(view), crc32(view));
    }
    let parts = Mutex::new(Vec::new());
    let stats = statistics_at(Level::detected(), view, &|range| {
        let part = (range.start, crc32_of_range(view, range));
        parts.lock().unwrap_or_else(PoisonError::into_inner).push(part);
    });
    (stats, join_crc32(parts.into_inner().unwrap_or_else(PoisonError::into_inner)))
}

fn statistics_at(level: Level, view: &TensorView<'_>, on_chunk: OnChunk<'_>) -> Statistics {
    if view.numel() == 0 {
        return Statistics::default();
    }
    // The result does not depend on the order of elements, memory prefers its own.
    let flat = view.in_memory_order();
    let mut stats = match view.dtype() {
        DType::Bool => {
            return match as_integer::<u8>(&flat) {
                Some(values) => integer::of_bool(flat.numel(), &values, on_chunk),
                None => Statistics::default(),
            };
        }
        DType::U8 => of_integer::<u8>(level, &flat, on_chunk),
        DType::U16 => of_integer::<u16>(level, &flat, on_chunk),
        DType::U32 => of_integer::<u32>(level, &flat, on_chunk),
        DType::U64 => of_integer::<u64>(level, &flat, on_chunk),
        DType::I8 => of_integer::<i8>(level, &flat, on_chunk),
        DType::I16 => of_integer::<i16>(level, &flat, on_chunk),
        DType::I32 => of_integer::<i32>(level, &flat, on_chunk),
        DType::I64 => of_integer::<i64>(level, &flat, on_chunk),
        DType::C64 | DType::C128 => return complex::of_complex(&flat, on_chunk),
        DType::F64 => match as_f64(&flat) {
            Some(values) => float::of_float(level, flat.numel(), &values, on_chunk),
            None => Statistics::default(),
        },
        _ => match as_f32(&flat) {
            Some(values) => float::of_float(level, flat.numel(), &values, on_chunk),
            None => Statistics::default(),
        },
    };
    if view.shape().is_empty() {
        stats.mean = stats.max;
        stats.norm = stats.max;
    }
    stats
}

fn of_integer<I: Integer>(level: Level, view: &TensorView<'_>, on_chunk: OnChunk<'_>) -> Statistics {
    match as_integer::<I>(view) {
        Some(values) => integer::of_integer(level, view.numel(), &values, on_chunk),
        None => Statistics::default(),
    }
}

#[cfg(test)]
mod tests;
