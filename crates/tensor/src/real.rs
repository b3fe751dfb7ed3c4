//! The two floating-point types kernels work in.

use std::ops::{Add, Div, Mul, Sub};

use crate::view::Element;

/// `f32` or `f64`, with the few operations kernels need.
pub(crate) trait Real:
    Element + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    /// Rows of this type in AVX2 registers.
    #[cfg(target_arch = "x86_64")]
    type Avx2: crate::simd::Vector<Scalar = Self>;
    const ZERO: Self;
    const INFINITY: Self;
    const NEG_INFINITY: Self;
    fn to_f64(self) -> f64;
    fn from_f64(value: f64) -> Self;
    fn magnitude(self) -> Self;
    /// The signs of a sketch, 1 or -1, by place.
    fn sketch_signs() -> &'static [Self; crate::stats::SIGN_PERIOD];
}

macro_rules! real {
    ($($type:ident, $avx2:ident;)*) => { $(
        impl Real for $type {
            #[cfg(target_arch = "x86_64")]
            type Avx2 = crate::simd::$avx2;
            const ZERO: Self = 0.0;
            const INFINITY: Self = $type::INFINITY;
            const NEG_INFINITY: Self = $type::NEG_INFINITY;
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn from_f64(value: f64) -> Self { value as $type }
            #[inline(always)]
            fn magnitude(self) -> Self { self.abs() }
            #[inline(always)]
            fn sketch_signs() -> &'static [Self; crate::stats::SIGN_PERIOD] {
                static SIGNS: [$type; crate::stats::SIGN_PERIOD] = {
                    let mut signs = [1.0; crate::stats::SIGN_PERIOD];
                    let mut at = 0;
                    while at < signs.len() {
                        if crate::stats::is_negative(at) {
                            signs[at] = -1.0;
                        }
                        at += 1;
                    }
                    signs
                };
                &SIGNS
            }
        }
    )* };
}

real! {
    f32, F32x8;
    f64, F64x8;
}
