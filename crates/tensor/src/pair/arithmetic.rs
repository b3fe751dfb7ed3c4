//! Arithmetic as numpy does it in float16, float32 and float64.

use crate::real::Real;

/// Arithmetic of one numpy float type, carried out in `Work` and rounded after every operation.
pub(super) trait Arithmetic {
    /// The type values are kept in.
    type Work: Real;
    /// Largest finite value; numpy's `nan_to_num` puts it in place of infinity.
    const LARGEST: f64;
    fn round(value: Self::Work) -> Self::Work;
    fn constant(value: f64) -> Self::Work {
        Self::round(Self::Work::from_f64(value))
    }
}

pub(super) struct InF16;
pub(super) struct InF32;
pub(super) struct InF64;

impl Arithmetic for InF16 {
    type Work = f32;
    const LARGEST: f64 = 65504.0;
    #[inline(always)]
    fn round(value: f32) -> f32 {
        round_to_f16(value)
    }
}

impl Arithmetic for InF32 {
    type Work = f32;
    const LARGEST: f64 = f32::MAX as f64;
    #[inline(always)]
    fn round(value: f32) -> f32 {
        value
    }
}

impl Arithmetic for InF64 {
    type Work = f64;
    const LARGEST: f64 = f64::MAX;
    #[inline(always)]
    fn round(value: f64) -> f64 {
        value
    }
}

/// The nearest float16, ties to even, as an `f32`. Without branches, so that loops over it vectorise.
#[inline(always)]
fn round_to_f16(value: f32) -> f32 {
    const SIGN: u32 = 0x8000_0000;
    let bits = value.to_bits() & !SIGN;
    let magnitude = f32::from_bits(bits);
    // 10 of 23 mantissa bits stay.
    let normal = f32::from_bits((bits.wrapping_add(0xfff + ((bits >> 13) & 1))) & !0x1fff);
    // Subnormal halves are multiples of 2^-24, the spacing of f32 just above 0.5.
    let subnormal = (magnitude + 0.5) - 0.5;
    let rounded = if magnitude < 6.103_515_6e-5 { subnormal } else { normal };
    // 65520 is halfway between the largest half and the first one out of range.
    let limited = if magnitude >= 65520.0 { f32::INFINITY } else { rounded };
    let result = if value.is_nan() { f32::NAN } else { limited };
    f32::from_bits(result.to_bits() | (value.to_bits() & SIGN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_like_the_half_crate() {
        let mut bits = 0u32;
        loop {
            let value = f32::from_bits(bits);
            let expected = half::f16::from_f32(value).to_f32();
            let got = round_to_f16(value);
            assert!(
                got.to_bits() == expected.to_bits() || (got.is_nan() && expected.is_nan()),
                "{value:e}: {got:e} instead of {expected:e}"
            );
            let Some(next) = bits.checked_add(1013) else { break };
            bits = next;
        }
    }
}
