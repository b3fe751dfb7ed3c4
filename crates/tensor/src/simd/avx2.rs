//! Rows in AVX2 registers.
//!
//! The methods carry no `target_feature` of their own: they are always inlined into a kernel compiled with
//! AVX2, FMA and F16C enabled (`by_level!` is the only place that names these types), where each is one or two
//! instructions.
#![allow(unsafe_code, reason = "intrinsics; see the SAFETY note of the macro below")]

#[allow(clippy::wildcard_imports, reason = "every name starts with _mm256 or _CMP")]
use std::arch::x86_64::*;

use super::Vector;

/// Eight `f32` in one register.
#[derive(Clone, Copy)]
pub(crate) struct F32x8(__m256);

/// Eight `f64` in two registers.
#[derive(Clone, Copy)]
pub(crate) struct F64x8([__m256d; 2]);

/// Runs an intrinsic.
macro_rules! avx2 {
    // SAFETY: only reached from functions that `by_level!` compiled with AVX2, FMA and F16C, after detecting all three.
    ($call:expr) => {
        unsafe { $call }
    };
}

impl Vector for F32x8 {
    type Scalar = f32;
    type Wide = F64x8;
    type Count = __m256i;
    type Products = __m256i;
    const LANES: usize = 8;

    #[inline(always)]
    fn load(row: &[f32]) -> Self {
        debug_assert_eq!(row.len(), Self::LANES);
        let row: [f32; 8] = std::array::from_fn(|lane| row[lane]);
        F32x8(bytemuck::cast(row))
    }
    #[inline(always)]
    fn prefetch_after(row: &[f32], bytes: usize) {
        // A hint: an address outside every mapping is ignored.
        avx2!(_mm_prefetch::<_MM_HINT_T0>(row.as_ptr().wrapping_byte_add(bytes).cast()));
    }
    #[inline(always)]
    fn splat(value: f32) -> Self {
        F32x8(avx2!(_mm256_set1_ps(value)))
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        F32x8(avx2!(_mm256_add_ps(self.0, other.0)))
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        F32x8(avx2!(_mm256_sub_ps(self.0, other.0)))
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        F32x8(avx2!(_mm256_mul_ps(self.0, other.0)))
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        F32x8(avx2!(_mm256_div_ps(self.0, other.0)))
    }
    #[inline(always)]
    fn abs(self) -> Self {
        F32x8(avx2!(_mm256_andnot_ps(_mm256_set1_ps(-0.0), self.0)))
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        F32x8(avx2!(_mm256_max_ps(self.0, other.0)))
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        F32x8(avx2!(_mm256_min_ps(self.0, other.0)))
    }
    #[inline(always)]
    fn where_zero(self, value: Self) -> Self {
        F32x8(avx2!(_mm256_and_ps(_mm256_cmp_ps::<_CMP_EQ_OQ>(self.0, _mm256_setzero_ps()), value.0)))
    }
    #[inline(always)]
    fn finite_or(self, otherwise: Self) -> Self {
        let finite = avx2!(_mm256_cmp_ps::<_CMP_LT_OQ>(self.abs().0, _mm256_set1_ps(f32::INFINITY)));
        F32x8(avx2!(_mm256_blendv_ps(otherwise.0, self.0, finite)))
    }
    #[inline(always)]
    fn round_to_f16(self) -> Self {
        F32x8(avx2!(_mm256_cvtph_ps(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(self.0))))
    }
    #[inline(always)]
    fn widen(self) -> F64x8 {
        avx2!({
            let low = _mm256_castps256_ps128(self.0);
            let high = _mm256_extractf128_ps::<1>(self.0);
            F64x8([_mm256_cvtps_pd(low), _mm256_cvtps_pd(high)])
        })
    }
    #[inline(always)]
    fn add_product(sum: F64x8, a: F64x8, b: F64x8) -> F64x8 {
        F64x8(std::array::from_fn(|half| avx2!(_mm256_fmadd_pd(a.0[half], b.0[half], sum.0[half]))))
    }
    #[inline(always)]
    fn add_signed(self, row: Self, sign: Self) -> Self {
        F32x8(avx2!(_mm256_fmadd_ps(row.0, sign.0, self.0)))
    }
    #[inline(always)]
    fn store(self, row: &mut [f32]) {
        row.copy_from_slice(&bytemuck::cast::<_, [f32; 8]>(self.0));
    }
    #[inline(always)]
    fn no_products() -> __m256i {
        avx2!(_mm256_setzero_si256())
    }
    #[inline(always)]
    fn add_products(products: __m256i, row: Self, keys: &[u64]) -> __m256i {
        avx2!(add_products(products, _mm256_castps_si256(row.0), [keys[0], keys[1], keys[2], keys[3]]))
    }
    #[inline(always)]
    fn total_of_products(products: __m256i) -> u64 {
        let lanes: [u64; 4] = bytemuck::cast(products);
        lanes.into_iter().fold(0, u64::wrapping_add)
    }
    #[inline(always)]
    fn fold(self, start: f64, combine: impl Fn(f64, f64) -> f64) -> f64 {
        let lanes: [f32; 8] = bytemuck::cast(self.0);
        lanes.into_iter().fold(start, |folded, value| combine(folded, f64::from(value)))
    }

    #[inline(always)]
    fn no_count() -> __m256i {
        avx2!(_mm256_setzero_si256())
    }
    #[inline(always)]
    fn count_eq(count: __m256i, a: Self, b: Self) -> __m256i {
        avx2!(subtract_mask_32(count, _mm256_cmp_ps::<_CMP_EQ_OQ>(a.0, b.0)))
    }
    #[inline(always)]
    fn count_lt(count: __m256i, a: Self, b: Self) -> __m256i {
        avx2!(subtract_mask_32(count, _mm256_cmp_ps::<_CMP_LT_OQ>(a.0, b.0)))
    }
    #[inline(always)]
    fn count_le(count: __m256i, a: Self, b: Self) -> __m256i {
        avx2!(subtract_mask_32(count, _mm256_cmp_ps::<_CMP_LE_OQ>(a.0, b.0)))
    }
    #[inline(always)]
    fn count_nan(count: __m256i, a: Self) -> __m256i {
        avx2!(subtract_mask_32(count, _mm256_cmp_ps::<_CMP_UNORD_Q>(a.0, a.0)))
    }
    #[inline(always)]
    fn total(count: __m256i) -> u64 {
        let lanes: [u32; 8] = bytemuck::cast(count);
        lanes.into_iter().map(u64::from).sum()
    }
}

/// A true lane of a mask is -1: subtracting the mask counts it.
#[inline(always)]
unsafe fn subtract_mask_32(count: __m256i, mask: __m256) -> __m256i {
    avx2!(_mm256_sub_epi32(count, _mm256_castps_si256(mask)))
}

/// See [`Vector::add_products`].
#[inline(always)]
unsafe fn add_products(products: __m256i, words: __m256i, keys: [u64; 4]) -> __m256i {
    avx2!({
        let words = _mm256_add_epi32(words, bytemuck::cast(keys));
        _mm256_add_epi64(products, _mm256_mul_epu32(words, _mm256_srli_epi64::<32>(words)))
    })
}

impl F64x8 {
    #[inline(always)]
    fn zip(self, other: Self, apply: impl Fn(__m256d, __m256d) -> __m256d) -> Self {
        F64x8([apply(self.0[0], other.0[0]), apply(self.0[1], other.0[1])])
    }

    #[inline(always)]
    fn count(
        counts: [__m256i; 2],
        a: Self,
        b: Self,
        test: impl Fn(__m256d, __m256d) -> __m256d,
    ) -> [__m256i; 2] {
        let add = |count, a, b| avx2!(_mm256_sub_epi64(count, _mm256_castpd_si256(test(a, b))));
        [add(counts[0], a.0[0], b.0[0]), add(counts[1], a.0[1], b.0[1])]
    }
}

impl Vector for F64x8 {
    type Scalar = f64;
    type Wide = F64x8;
    type Count = [__m256i; 2];
    type Products = __m256i;
    const LANES: usize = 8;

    #[inline(always)]
    fn load(row: &[f64]) -> Self {
        debug_assert_eq!(row.len(), Self::LANES);
        let row: [f64; 8] = std::array::from_fn(|lane| row[lane]);
        F64x8(bytemuck::cast(row))
    }
    #[inline(always)]
    fn prefetch_after(row: &[f64], bytes: usize) {
        // A hint: an address outside every mapping is ignored.
        avx2!(_mm_prefetch::<_MM_HINT_T0>(row.as_ptr().wrapping_byte_add(bytes).cast()));
    }
    #[inline(always)]
    fn splat(value: f64) -> Self {
        F64x8([avx2!(_mm256_set1_pd(value)); 2])
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| avx2!(_mm256_add_pd(a, b)))
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| avx2!(_mm256_sub_pd(a, b)))
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.zip(other, |a, b| avx2!(_mm256_mul_pd(a, b)))
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self.zip(other, |a, b| avx2!(_mm256_div_pd(a, b)))
    }
    #[inline(always)]
    fn abs(self) -> Self {
        self.zip(self, |a, _| avx2!(_mm256_andnot_pd(_mm256_set1_pd(-0.0), a)))
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        self.zip(other, |a, b| avx2!(_mm256_max_pd(a, b)))
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        self.zip(other, |a, b| avx2!(_mm256_min_pd(a, b)))
    }
    #[inline(always)]
    fn where_zero(self, value: Self) -> Self {
        self.zip(value, |a, value| {
            avx2!(_mm256_and_pd(_mm256_cmp_pd::<_CMP_EQ_OQ>(a, _mm256_setzero_pd()), value))
        })
    }
    #[inline(always)]
    fn finite_or(self, otherwise: Self) -> Self {
        let magnitude = self.abs();
        let infinity = avx2!(_mm256_set1_pd(f64::INFINITY));
        F64x8(std::array::from_fn(|half| {
            let finite = avx2!(_mm256_cmp_pd::<_CMP_LT_OQ>(magnitude.0[half], infinity));
            avx2!(_mm256_blendv_pd(otherwise.0[half], self.0[half], finite))
        }))
    }
    #[inline(always)]
    fn round_to_f16(self) -> Self {
        let lanes: [f64; 8] = bytemuck::cast(self.0);
        F64x8(bytemuck::cast(lanes.map(|value| half::f16::from_f64(value).to_f64())))
    }
    #[inline(always)]
    fn widen(self) -> F64x8 {
        self
    }
    #[inline(always)]
    fn add_product(sum: F64x8, a: F64x8, b: F64x8) -> F64x8 {
        sum.add(a.mul(b))
    }
    #[inline(always)]
    fn add_signed(self, row: Self, sign: Self) -> Self {
        self.add(row.mul(sign))
    }
    #[inline(always)]
    fn store(self, row: &mut [f64]) {
        row.copy_from_slice(&bytemuck::cast::<_, [f64; 8]>(self.0));
    }
    #[inline(always)]
    fn no_products() -> __m256i {
        avx2!(_mm256_setzero_si256())
    }
    #[inline(always)]
    fn add_products(products: __m256i, row: Self, keys: &[u64]) -> __m256i {
        let [low, high] = row.0.map(|half| avx2!(_mm256_castpd_si256(half)));
        let products = avx2!(add_products(products, low, [keys[0], keys[1], keys[2], keys[3]]));
        avx2!(add_products(products, high, [keys[4], keys[5], keys[6], keys[7]]))
    }
    #[inline(always)]
    fn total_of_products(products: __m256i) -> u64 {
        F32x8::total_of_products(products)
    }
    #[inline(always)]
    fn fold(self, start: f64, combine: impl Fn(f64, f64) -> f64) -> f64 {
        let lanes: [f64; 8] = bytemuck::cast(self.0);
        lanes.into_iter().fold(start, combine)
    }

    #[inline(always)]
    fn no_count() -> [__m256i; 2] {
        [avx2!(_mm256_setzero_si256()); 2]
    }
    #[inline(always)]
    fn count_eq(count: [__m256i; 2], a: Self, b: Self) -> [__m256i; 2] {
        Self::count(count, a, b, |a, b| avx2!(_mm256_cmp_pd::<_CMP_EQ_OQ>(a, b)))
    }
    #[inline(always)]
    fn count_lt(count: [__m256i; 2], a: Self, b: Self) -> [__m256i; 2] {
        Self::count(count, a, b, |a, b| avx2!(_mm256_cmp_pd::<_CMP_LT_OQ>(a, b)))
    }
    #[inline(always)]
    fn count_le(count: [__m256i; 2], a: Self, b: Self) -> [__m256i; 2] {
        Self::count(count, a, b, |a, b| avx2!(_mm256_cmp_pd::<_CMP_LE_OQ>(a, b)))
    }
    #[inline(always)]
    fn count_nan(count: [__m256i; 2], a: Self) -> [__m256i; 2] {
        Self::count(count, a, a, |a, b| avx2!(_mm256_cmp_pd::<_CMP_UNORD_Q>(a, b)))
    }
    #[inline(always)]
    fn total(count: [__m256i; 2]) -> u64 {
        let lanes: [u64; 8] = bytemuck::cast(count);
        lanes.into_iter().sum()
    }
}
