//! Arithmetic as numpy does it in float16, float32 and float64.

use half::f16;

use crate::real::Real;
use crate::simd::Vector;

/// Arithmetic of one numpy float type, carried out in `Work` and rounded after every operation.
pub(super) trait Arithmetic {
    /// The type values are kept in.
    type Work: Real;
    /// Largest finite value; numpy's `nan_to_num` puts it in place of infinity.
    const LARGEST: f64;
    /// What shifts a golden zero, and its partner, before errors are taken relative to it.
    const ZERO_SHIFT: f64 = f64::EPSILON;
    fn round<V: Vector<Scalar = Self::Work>>(row: V) -> V;
    fn constant(value: f64) -> Self::Work;
}

pub(super) struct InF16;
pub(super) struct InF32;
pub(super) struct InF64;
/// float32 whose zeros are shifted by its own epsilon, not by that of float64.
pub(super) struct InF32OwnShift;

impl Arithmetic for InF16 {
    type Work = f32;
    const LARGEST: f64 = 65504.0;
    #[inline(always)]
    fn round<V: Vector<Scalar = f32>>(row: V) -> V {
        row.round_to_f16()
    }
    #[inline(always)]
    fn constant(value: f64) -> f32 {
        f16::from_f64(value).to_f32()
    }
}

impl Arithmetic for InF32 {
    type Work = f32;
    const LARGEST: f64 = f32::MAX as f64;
    #[inline(always)]
    fn round<V: Vector<Scalar = f32>>(row: V) -> V {
        row
    }
    #[inline(always)]
    fn constant(value: f64) -> f32 {
        value as f32
    }
}

impl Arithmetic for InF32OwnShift {
    type Work = f32;
    const LARGEST: f64 = f32::MAX as f64;
    const ZERO_SHIFT: f64 = f32::EPSILON as f64;
    #[inline(always)]
    fn round<V: Vector<Scalar = f32>>(row: V) -> V {
        row
    }
    #[inline(always)]
    fn constant(value: f64) -> f32 {
        value as f32
    }
}

impl Arithmetic for InF64 {
    type Work = f64;
    const LARGEST: f64 = f64::MAX;
    #[inline(always)]
    fn round<V: Vector<Scalar = f64>>(row: V) -> V {
        row
    }
    #[inline(always)]
    fn constant(value: f64) -> f64 {
        value
    }
}
