//! Rows as plain arrays, for machines without special instructions and for what is left over of a block.

use half::f16;

use super::Vector;
use crate::real::Real;

/// `N` numbers side by side.
#[derive(Clone, Copy)]
pub(crate) struct Row<T, const N: usize>([T; N]);

impl<T: Real, const N: usize> Row<T, N> {
    #[inline(always)]
    fn map(self, apply: impl Fn(T) -> T) -> Self {
        Row(self.0.map(apply))
    }

    #[inline(always)]
    fn zip(self, other: Self, apply: impl Fn(T, T) -> T) -> Self {
        Row(std::array::from_fn(|lane| apply(self.0[lane], other.0[lane])))
    }

    #[inline(always)]
    fn count(mut counts: [u32; N], a: Self, b: Self, test: impl Fn(T, T) -> bool) -> [u32; N] {
        for lane in 0..N {
            counts[lane] += u32::from(test(a.0[lane], b.0[lane]));
        }
        counts
    }
}

impl<T: Real, const N: usize> Vector for Row<T, N> {
    type Scalar = T;
    type Wide = Row<f64, N>;
    type Count = [u32; N];
    type Products = u64;
    const LANES: usize = N;

    #[inline(always)]
    fn load(row: &[T]) -> Self {
        Row(std::array::from_fn(|lane| row[lane]))
    }
    #[inline(always)]
    fn prefetch_after(_row: &[T], _bytes: usize) {}
    #[inline(always)]
    fn splat(value: T) -> Self {
        Row([value; N])
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.zip(other, |a, b| a * b)
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self.zip(other, |a, b| a / b)
    }
    #[inline(always)]
    fn abs(self) -> Self {
        self.map(T::magnitude)
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        self.zip(other, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        self.zip(other, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    fn where_zero(self, value: Self) -> Self {
        self.zip(value, |a, value| if a == T::ZERO { value } else { T::ZERO })
    }
    #[inline(always)]
    fn finite_or(self, otherwise: Self) -> Self {
        self.zip(otherwise, |a, otherwise| if a.magnitude() < T::INFINITY { a } else { otherwise })
    }
    #[inline(always)]
    fn round_to_f16(self) -> Self {
        self.map(|value| T::from_f64(f16::from_f64(value.to_f64()).to_f64()))
    }
    #[inline(always)]
    fn widen(self) -> Row<f64, N> {
        Row(self.0.map(T::to_f64))
    }
    #[inline(always)]
    fn add_product(sum: Row<f64, N>, a: Row<f64, N>, b: Row<f64, N>) -> Row<f64, N> {
        sum.add(a.mul(b))
    }
    #[inline(always)]
    fn add_signed(self, row: Self, sign: Self) -> Self {
        self.add(row.mul(sign))
    }
    #[inline(always)]
    fn store(self, row: &mut [T]) {
        row.copy_from_slice(&self.0);
    }
    #[inline(always)]
    fn no_products() -> u64 {
        0
    }
    #[inline(always)]
    fn add_products(products: u64, row: Self, keys: &[u64]) -> u64 {
        let (pairs, _) = bytemuck::cast_slice::<T, u8>(&row.0).as_chunks::<8>();
        pairs.iter().zip(keys).fold(products, |sum, (&pair, &key)| {
            let pair = u64::from_le_bytes(pair);
            let first = (pair as u32).wrapping_add(key as u32);
            let second = ((pair >> 32) as u32).wrapping_add((key >> 32) as u32);
            sum.wrapping_add(u64::from(first) * u64::from(second))
        })
    }
    #[inline(always)]
    fn total_of_products(products: u64) -> u64 {
        products
    }
    #[inline(always)]
    fn fold(self, start: f64, combine: impl Fn(f64, f64) -> f64) -> f64 {
        self.0.into_iter().fold(start, |folded, value| combine(folded, value.to_f64()))
    }

    #[inline(always)]
    fn no_count() -> [u32; N] {
        [0; N]
    }
    #[inline(always)]
    fn count_eq(count: [u32; N], a: Self, b: Self) -> [u32; N] {
        Self::count(count, a, b, |a, b| a == b)
    }
    #[inline(always)]
    fn count_lt(count: [u32; N], a: Self, b: Self) -> [u32; N] {
        Self::count(count, a, b, |a, b| a < b)
    }
    #[inline(always)]
    fn count_le(count: [u32; N], a: Self, b: Self) -> [u32; N] {
        Self::count(count, a, b, |a, b| a <= b)
    }
    #[inline(always)]
    fn count_nan(count: [u32; N], a: Self) -> [u32; N] {
        Self::count(count, a, a, |a, _| a.to_f64().is_nan())
    }
    #[inline(always)]
    fn total(count: [u32; N]) -> u64 {
        count.iter().map(|&lane| u64::from(lane)).sum()
    }
}
