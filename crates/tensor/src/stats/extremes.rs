//! How many elements stand at the edges of what their dtype can hold, and the first that is not finite.
//!
//! One pass over the tensor in logical order, so that "the first" means what indexing means. Complex elements
//! are taken by their modulus, as the other statistics do. Only counts are added up: the result is the same on any
//! number of threads.

use std::cmp::Ordering;

use crate::decode::{Decoded, as_c128, as_f32, as_f64};
use crate::parallel::reduce_blocks;
use crate::real::Real;
use crate::{DType, DTypeClass, TensorView};

/// What a floating-point dtype can hold; of a complex one, what each part can.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FloatRange {
    /// The largest finite number.
    pub largest: f64,
    /// The smallest positive number of full precision.
    pub smallest_normal: f64,
    /// The smallest positive number.
    pub smallest: f64,
    /// Numbers of at least this magnitude do not round to the largest number any more: they become infinite, or where
    /// there is no infinity NaN. Frameworks that saturate make the largest number of them all the same.
    pub overflow_from: f64,
    /// Numbers of at most this magnitude become zero when rounded to the dtype.
    pub zero_up_to: f64,
}

/// 2 to the power of `exponent`, which must be that of a normal number.
const fn power(exponent: i32) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

impl DType {
    /// What the dtype can hold; `None` for integers and bool.
    pub const fn float_range(self) -> Option<FloatRange> {
        // Rounding is to nearest, ties to even. The largest number of most formats is odd, so that half way to the
        // next one already rounds away from it; 448, the largest of e4m3fn, is even and keeps its half way.
        let (largest, smallest_normal, smallest, overflow_from) = match self {
            DType::F16 => (65504.0, power(-14), power(-24), 65520.0),
            DType::BF16 => {
                (power(127) * (2.0 - power(-7)), power(-126), power(-133), power(127) * (2.0 - power(-8)))
            }
            DType::F32 | DType::C64 => {
                (f32::MAX as f64, power(-126), power(-149), power(127) * (2.0 - power(-24)))
            }
            DType::F64 | DType::C128 => (f64::MAX, f64::MIN_POSITIVE, f64::from_bits(1), f64::INFINITY),
            DType::F8E4M3FN => (448.0, power(-6), power(-9), 464.0_f64.next_up()),
            DType::F8E5M2 => (57344.0, power(-14), power(-16), 61440.0),
            DType::F8E4M3FNUZ => (240.0, power(-7), power(-10), 248.0),
            DType::F8E5M2FNUZ => (57344.0, power(-15), power(-17), 61440.0),
            DType::Bool
            | DType::U8
            | DType::U16
            | DType::U32
            | DType::U64
            | DType::I8
            | DType::I16
            | DType::I32
            | DType::I64 => return None,
        };
        Some(FloatRange { largest, smallest_normal, smallest, overflow_from, zero_up_to: smallest / 2.0 })
    }
}

/// Which elements [`extremes`] also counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Finite elements of more than this magnitude are [`Extremes::beyond`].
    pub above: f64,
    /// Elements of at most this magnitude, but not zero, are [`Extremes::beneath`].
    pub below: f64,
}

impl Bounds {
    /// No element is beyond or beneath.
    pub const NONE: Bounds = Bounds { above: f64::INFINITY, below: 0.0 };
}

/// Counts of elements at the edges of a dtype.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extremes {
    /// All elements.
    pub elements: u64,
    /// NaN (complex: whose modulus is).
    pub nan: u64,
    /// +Inf (complex: of infinite modulus).
    pub positive_inf: u64,
    /// -Inf.
    pub negative_inf: u64,
    /// Not zero, and smaller than the smallest normal number of the tensor's dtype.
    pub subnormal: u64,
    /// Zero.
    pub zero: u64,
    /// Finite and larger than [`Bounds::above`].
    pub beyond: u64,
    /// Not zero and at most [`Bounds::below`].
    pub beneath: u64,
    /// The place of the first NaN or infinity, counted in logical (row-major) order.
    pub first_bad: Option<u64>,
}

impl Extremes {
    /// Joined with the counts of the elements that follow.
    fn then(self, next: Extremes) -> Extremes {
        Extremes {
            elements: self.elements + next.elements,
            nan: self.nan + next.nan,
            positive_inf: self.positive_inf + next.positive_inf,
            negative_inf: self.negative_inf + next.negative_inf,
            subnormal: self.subnormal + next.subnormal,
            zero: self.zero + next.zero,
            beyond: self.beyond + next.beyond,
            beneath: self.beneath + next.beneath,
            first_bad: self.first_bad.or(next.first_bad.map(|place| place + self.elements)),
        }
    }
}

/// Counts what stands at the edges. Large tensors use the threads of the current rayon pool. Integers have zeros, and
/// elements within the bounds, but nothing subnormal or infinite.
pub fn extremes(view: &TensorView<'_>, bounds: Bounds) -> Extremes {
    let dtype = view.dtype();
    let edges = Edges {
        // A bound that is not a number bounds nothing.
        above: if bounds.above.is_nan() { f64::INFINITY } else { bounds.above },
        below: bounds.below.max(0.0),
        normal: dtype.float_range().map_or(0.0, |range| range.smallest_normal),
    };
    let counts = match dtype.class() {
        DTypeClass::Complex => as_c128(view).and_then(|values| of_complex(view.numel(), &values, edges)),
        _ => match as_f32(view) {
            Some(values) => of_real(view.numel(), &values, edges.in_f32()),
            None => as_f64(view).and_then(|values| of_real(view.numel(), &values, edges)),
        },
    };
    counts.unwrap_or_default()
}

#[derive(Clone, Copy)]
struct Edges {
    above: f64,
    below: f64,
    normal: f64,
}

impl Edges {
    /// Numbers that `f32` holds and that part its numbers at the same places.
    fn in_f32(self) -> Edges {
        let down = |bound: f64| {
            let nearest = bound as f32;
            f64::from(if f64::from(nearest) > bound { nearest.next_down() } else { nearest })
        };
        Edges { above: down(self.above), below: down(self.below), normal: self.normal }
    }
}

fn of_real<W: Real>(numel: usize, values: &Decoded<'_, W>, edges: Edges) -> Option<Extremes> {
    reduce_blocks(numel, values, &|_| {}, |block| of_block(block, edges), Extremes::then)
}

fn of_complex(numel: usize, values: &Decoded<'_, [f64; 2]>, edges: Edges) -> Option<Extremes> {
    let of_pairs = |block: &[[f64; 2]]| {
        let moduli: Vec<f64> = block.iter().map(|[re, im]| re.hypot(*im)).collect();
        of_block(&moduli, edges)
    };
    reduce_blocks(numel, values, &|_| {}, of_pairs, Extremes::then)
}

/// Without branches in the loop, so that the compiler can take several elements at once.
fn of_block<W: Real>(block: &[W], edges: Edges) -> Extremes {
    let (above, below, normal) =
        (W::from_f64(edges.above), W::from_f64(edges.below), W::from_f64(edges.normal));
    let (mut numbers, mut positive, mut negative, mut zero) = (0_u32, 0_u32, 0_u32, 0_u32);
    let (mut small, mut beyond, mut beneath) = (0_u32, 0_u32, 0_u32);
    for &value in block {
        let magnitude = value.magnitude();
        numbers += u32::from(magnitude >= W::ZERO);
        positive += u32::from(value == W::INFINITY);
        negative += u32::from(value == W::NEG_INFINITY);
        zero += u32::from(magnitude == W::ZERO);
        small += u32::from(magnitude < normal);
        beyond += u32::from(magnitude > above);
        beneath += u32::from(magnitude <= below);
    }
    let elements = block.len() as u64;
    let (numbers, infinite, zero) = (u64::from(numbers), u64::from(positive + negative), u64::from(zero));
    let is_bad = |value: &W| value.magnitude().partial_cmp(&W::INFINITY) != Some(Ordering::Less);
    let has_bad = numbers < elements || infinite > 0;
    Extremes {
        elements,
        nan: elements - numbers,
        positive_inf: positive.into(),
        negative_inf: negative.into(),
        // Zeros are smaller than everything, infinities larger than every bound that is finite.
        subnormal: u64::from(small).saturating_sub(zero),
        zero,
        beyond: u64::from(beyond) - if edges.above < f64::INFINITY { infinite } else { 0 },
        beneath: u64::from(beneath) - zero,
        first_bad: if has_bad { block.iter().position(is_bad).map(|place| place as u64) } else { None },
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;
    use crate::float8::decode_table;

    /// Range of a format, by looking at all its non-negative numbers in ascending order.
    fn check(dtype: DType, numbers: &[f64]) {
        let range = dtype.float_range().unwrap();
        let finite: Vec<f64> = numbers.iter().copied().filter(|number| number.is_finite()).collect();
        assert!(finite.is_sorted());
        assert_eq!(range.largest, *finite.last().unwrap(), "{dtype}");
        assert_eq!((finite[0], range.smallest), (0.0, finite[1]), "{dtype}");
        // Subnormal numbers and the normal ones that follow them are equally far apart, up to twice the smallest normal.
        let first_wider = finite.windows(2).find(|pair| pair[1] - pair[0] > range.smallest).unwrap()[0];
        assert_eq!(range.smallest_normal * 2.0, first_wider, "{dtype}");
        let step = range.largest - finite[finite.len() - 2];
        let half_way = range.largest + step / 2.0;
        assert!(range.overflow_from == half_way || range.overflow_from == half_way.next_up(), "{dtype}");
    }

    #[test]
    fn ranges_are_those_of_all_their_numbers() {
        check(DType::F16, &(0..0x7c01).map(|bits| f16::from_bits(bits).to_f64()).collect::<Vec<_>>());
        check(DType::BF16, &(0..0x7f81).map(|bits| bf16::from_bits(bits).to_f64()).collect::<Vec<_>>());
        for dtype in DType::all().filter(|dtype| dtype.is_float8()) {
            let table = decode_table(dtype).unwrap();
            check(dtype, &table[..128].iter().map(|&value| value.into()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn rounding_begins_and_ends_where_the_range_says() {
        // From f32: machines round f64 to it first.
        let range = DType::F16.float_range().unwrap();
        let (overflow, zero) = (range.overflow_from as f32, range.zero_up_to as f32);
        assert_eq!(f16::from_f32(overflow), f16::INFINITY);
        assert_eq!(f16::from_f32(overflow.next_down()), f16::MAX);
        assert_eq!(f16::from_f32(zero).to_bits(), 0);
        assert_eq!(f16::from_f32(zero.next_up()).to_bits(), 1);
        let range = DType::BF16.float_range().unwrap();
        let (overflow, zero) = (range.overflow_from as f32, range.zero_up_to as f32);
        assert_eq!(bf16::from_f32(overflow), bf16::INFINITY);
        assert_eq!(bf16::from_f32(overflow.next_down()), bf16::MAX);
        assert_eq!(bf16::from_f32(zero).to_bits(), 0);
        assert_eq!(bf16::from_f32(zero.next_up()).to_bits(), 1);
        let range = DType::F32.float_range().unwrap();
        assert_eq!(range.overflow_from as f32, f32::INFINITY);
        assert_eq!(range.overflow_from.next_down() as f32, f32::MAX);
        assert_eq!(range.zero_up_to as f32, 0.0);
        assert_eq!(range.zero_up_to.next_up() as f32, f32::from_bits(1));
    }

    #[test]
    fn the_first_is_counted_in_logical_order() {
        let mut values = vec![1.0_f32; 300_000];
        values[299_999] = f32::NAN;
        values[70_001] = f32::NEG_INFINITY;
        let bytes: &[u8] = bytemuck::cast_slice(&values);
        let view = TensorView::contiguous(DType::F32, vec![300, 1000], bytes).unwrap();
        let counts = extremes(&view, Bounds::NONE);
        assert_eq!(counts.first_bad, Some(70_001));
        assert_eq!((counts.nan, counts.negative_inf, counts.positive_inf), (1, 1, 0));
        // Row 70, column 1 is row 1, column 70 of the transposed one.
        assert_eq!(extremes(&view.transposed(), Bounds::NONE).first_bad, Some(300 + 70));
    }

    #[test]
    fn bounds_that_are_odd() {
        let values = [0.0_f32, -0.0, 1.0, -2.0, f32::INFINITY, f32::NAN];
        let view = TensorView::contiguous(DType::F32, vec![6], bytemuck::cast_slice(&values)).unwrap();
        let of = |above, below| {
            let counts = extremes(&view, Bounds { above, below });
            (counts.beyond, counts.beneath)
        };
        assert_eq!(of(f64::NAN, f64::NAN), (0, 0));
        assert_eq!(of(-1.0, -1.0), (4, 0));
        assert_eq!(of(1.0, 1.0), (1, 1));
        assert_eq!(of(1.0_f64.next_down(), 1.0_f64.next_down()), (2, 0));
        assert_eq!(of(1e300, 1e300), (0, 2));
        assert_eq!(of(f64::INFINITY, f64::INFINITY), (0, 3));
    }
}
