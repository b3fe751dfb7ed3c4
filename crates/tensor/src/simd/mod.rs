//! Vector arithmetic with a runtime choice of instructions.
//!
//! Kernels are written once over [`Vector`], a row of numbers worked on together, and compiled for each
//! [`Level`]. Every level does the same operations in the same lanes, reorders nothing, and fuses only where that
//! cannot be seen, so all of them give the same bits; only the speed differs.
//!
//! `MSPROBE_SIMD=off` turns our vector code off for a process: what other architectures run is tested and measured
//! that way. The crates for CRC-32 and half floats choose their instructions by themselves.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod portable;

use std::ffi::OsStr;
use std::sync::atomic::{AtomicU8, Ordering};

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::{F32x8, F64x8};
pub(crate) use portable::Row;

use crate::real::Real;

/// Lanes of a row. Part of the definition of every sum: changing it changes last bits.
pub(crate) const LANES: usize = 8;

/// A row of numbers.
pub(crate) trait Vector: Copy {
    /// The type of one number.
    type Scalar: Real;
    /// The same row in f64.
    type Wide: Vector<Scalar = f64>;
    /// One counter per lane, good for at least 2^31 steps.
    type Count: Copy;
    /// Sums of products of words.
    type Products: Copy;
    const LANES: usize;

    /// Reads a row from a slice of exactly `LANES` numbers.
    fn load(row: &[Self::Scalar]) -> Self;
    /// Hints that memory this many bytes after a row will be read soon.
    fn prefetch_after(row: &[Self::Scalar], bytes: usize);
    fn splat(value: Self::Scalar) -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    fn abs(self) -> Self;
    /// `self > other ? self : other` in each lane: the second if either is NaN.
    fn max(self, other: Self) -> Self;
    /// `self < other ? self : other` in each lane.
    fn min(self, other: Self) -> Self;
    /// `value` in the lanes where `self == 0`, zero elsewhere.
    fn where_zero(self, value: Self) -> Self;
    /// The lanes that are finite, `otherwise` in the others.
    fn finite_or(self, otherwise: Self) -> Self;
    /// The nearest float16 of each lane, ties to even. Of `f32` rows only.
    fn round_to_f16(self) -> Self;
    fn widen(self) -> Self::Wide;
    /// `sum + a * b` of rows that [`widen`](Self::widen) gave. The product of two widened `f32` is exact, so
    /// that fusing it with the addition changes no bit; products of `f64` are rounded first.
    fn add_product(sum: Self::Wide, a: Self::Wide, b: Self::Wide) -> Self::Wide;
    /// `self + row * sign` where every lane of `sign` is 1 or -1: the product is exact, so that fusing changes no bit.
    fn add_signed(self, row: Self, sign: Self) -> Self;
    /// Writes the row to a slice of exactly `LANES` numbers.
    fn store(self, row: &mut [Self::Scalar]);
    fn no_products() -> Self::Products;
    /// Adds, for each pair of 32-bit words of the row and its key, `(first + key's lower half) * (second + its upper half)`;
    /// the sums in parentheses modulo 2^32, all else modulo 2^64. One key per eight bytes of the row.
    fn add_products(products: Self::Products, row: Self, keys: &[u64]) -> Self::Products;
    fn total_of_products(products: Self::Products) -> u64;
    /// Combines the lanes from first to last.
    fn fold(self, start: f64, combine: impl Fn(f64, f64) -> f64) -> f64;

    fn no_count() -> Self::Count;
    fn count_eq(count: Self::Count, a: Self, b: Self) -> Self::Count;
    fn count_lt(count: Self::Count, a: Self, b: Self) -> Self::Count;
    fn count_le(count: Self::Count, a: Self, b: Self) -> Self::Count;
    fn count_nan(count: Self::Count, a: Self) -> Self::Count;
    fn total(count: Self::Count) -> u64;

    /// Sum of the lanes, from first to last.
    #[inline(always)]
    fn sum(self) -> f64 {
        self.fold(0.0, |a, b| a + b)
    }
}

/// An instruction set kernels were compiled for, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// What the target triple guarantees (SSE2 on x86-64, NEON on aarch64).
    Baseline = 1,
    /// AVX2, FMA and F16C.
    Avx2 = 2,
}

impl Level {
    /// The best level of this machine that the user allows, found out once.
    pub(crate) fn detected() -> Level {
        static CACHE: AtomicU8 = AtomicU8::new(0);
        match CACHE.load(Ordering::Relaxed) {
            1 => Level::Baseline,
            2 => Level::Avx2,
            _ => {
                let level = Self::allowed_by(std::env::var_os("MSPROBE_SIMD").as_deref());
                CACHE.store(level as u8, Ordering::Relaxed);
                level
            }
        }
    }

    /// The level for a value of the variable `MSPROBE_SIMD`.
    fn allowed_by(setting: Option<&OsStr>) -> Level {
        if setting.is_some_and(|value| value == "off") { Level::Baseline } else { Self::of_machine() }
    }

    #[cfg(target_arch = "x86_64")]
    fn of_machine() -> Level {
        use std::arch::is_x86_feature_detected as has;
        if has!("avx2") && has!("fma") && has!("f16c") { Level::Avx2 } else { Level::Baseline }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn of_machine() -> Level {
        Level::Baseline
    }

    /// Every level this machine can run and the user allows.
    #[cfg(test)]
    pub(crate) fn available() -> Vec<Level> {
        [Level::Baseline, Level::Avx2].into_iter().filter(|&level| level <= Self::detected()).collect()
    }
}

/// Defines `fn name<G: Bound>(level, args) -> Result`, which runs `kernel::<V, G>(args)` with the vectors of
/// that level for the scalar type given, or, without one, `kernel::<G>(args)` compiled for that level.
/// `level` must not exceed [`Level::detected`].
macro_rules! by_level {
    (fn $name:ident<$generic:ident: $bound:path>($($arg:ident: $type:ty),*) -> $result:ty = $kernel:ident on $scalar:ty) => {
        by_level! { @ $name, $generic, $bound, ($($arg: $type),*), $result,
            $kernel::<<$scalar as $crate::real::Real>::Avx2, $generic>,
            $kernel::<$crate::simd::Row<$scalar, { $crate::simd::LANES }>, $generic> }
    };
    (fn $name:ident<$generic:ident: $bound:path>($($arg:ident: $type:ty),*) -> $result:ty = $kernel:ident) => {
        by_level! { @ $name, $generic, $bound, ($($arg: $type),*), $result, $kernel::<$generic>, $kernel::<$generic> }
    };
    (@ $name:ident, $generic:ident, $bound:path, ($($arg:ident: $type:ty),*), $result:ty, $avx2:expr, $portable:expr) => {
        fn $name<$generic: $bound>(level: $crate::simd::Level, $($arg: $type),*) -> $result {
            #[cfg(target_arch = "x86_64")]
            if level == $crate::simd::Level::Avx2 {
                #[target_feature(enable = "avx2,fma,f16c")]
                fn avx2<$generic: $bound>($($arg: $type),*) -> $result {
                    $avx2($($arg),*)
                }
                debug_assert!(level <= $crate::simd::Level::detected());
                // SAFETY: this level was detected on this machine, so the instructions exist.
                #[allow(unsafe_code, reason = "runtime dispatch")]
                return unsafe { avx2::<$generic>($($arg),*) };
            }
            $portable($($arg),*)
        }
    };
}
pub(crate) use by_level;

/// Splits a block into whole rows and the few elements left over, which kernels take as rows of one.
pub(crate) fn split_rows<T>(block: &[T]) -> (&[T], &[T]) {
    block.split_at(block.len() - block.len() % LANES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_word_off_turns_vector_code_off() {
        assert_eq!(Level::allowed_by(Some(OsStr::new("off"))), Level::Baseline);
        for setting in [None, Some(""), Some("on"), Some("OFF ")] {
            assert_eq!(Level::allowed_by(setting.map(OsStr::new)), Level::of_machine(), "{setting:?}");
        }
    }

    #[test]
    fn the_variable_is_what_decides() {
        let setting = std::env::var_os("MSPROBE_SIMD");
        assert_eq!(Level::detected(), Level::allowed_by(setting.as_deref()));
    }
}
