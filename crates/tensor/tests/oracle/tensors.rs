//! Random tensors: every dtype, shape and layout, with values from the corners of each format.

use half::{bf16, f16};
use msprobe_tensor::{DType, DTypeClass, Endian, TensorView};
use proptest::prelude::*;

use super::{decode, float_format};

/// A tensor with memory of its own, laid out in some odd way.
#[derive(Clone)]
pub(crate) struct Tensor {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
    strides: Vec<isize>,
    memory: Vec<u8>,
    /// Bytes before the storage starts, so that it may be unaligned.
    skip: usize,
    offset: usize,
    endian: Endian,
}

impl Tensor {
    pub(crate) fn view(&self) -> TensorView<'_> {
        let storage = &self.memory[self.skip..];
        let (shape, strides) = (self.shape.clone(), self.strides.clone());
        TensorView::new(self.dtype, shape, strides, storage, self.offset, self.endian).unwrap()
    }

    /// Where in memory each element starts, in row-major order.
    fn positions(&self) -> Vec<usize> {
        let mut indices = vec![self.offset as isize];
        for (&size, &stride) in self.shape.iter().zip(&self.strides) {
            let along = |&start: &isize| (0..size).map(move |step| start + step as isize * stride);
            indices = indices.iter().flat_map(along).collect();
        }
        indices.iter().map(|&index| self.skip + index as usize * self.dtype.size_bytes()).collect()
    }

    /// Little-endian bytes of the elements in row-major order.
    pub(crate) fn row_major(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for position in self.positions() {
            let start = bytes.len();
            bytes.extend_from_slice(&self.memory[position..position + self.dtype.size_bytes()]);
            self.order_bytes(&mut bytes[start..]);
        }
        bytes
    }

    /// Between little-endian and the byte order of this tensor.
    fn order_bytes(&self, element: &mut [u8]) {
        if self.endian == Endian::Big {
            let parts = if self.dtype.class() == DTypeClass::Complex { 2 } else { 1 };
            let size = element.len() / parts;
            element.chunks_mut(size).for_each(<[u8]>::reverse);
        }
    }

    /// The same tensor over a fresh copy with a plain layout.
    pub(crate) fn materialised(&self) -> Tensor {
        let recipe = Recipe {
            dtype: self.dtype,
            dims: Vec::new(),
            lead: 0,
            skip: 0,
            big: false,
            fill: Fill::Ordinary,
            seed: 0,
        };
        let mut copy = recipe.build();
        copy.strides = plain_strides(&self.shape);
        copy.shape.clone_from(&self.shape);
        copy.memory = self.row_major();
        copy
    }

    /// Overwrites elements with what stands at the same row-major index of `other`, exactly or nearly.
    pub(crate) fn approach(&mut self, other: &Tensor, closeness: Closeness, seed: u64) {
        let mut random = Random(seed);
        let theirs = other.row_major();
        for (position, theirs) in self.positions().into_iter().zip(theirs.chunks(other.dtype.size_bytes())) {
            let factor = match closeness {
                Closeness::Unrelated => continue,
                Closeness::Equal => 1.0,
                Closeness::Near => random.factor_near_one(),
                Closeness::Mixed => match random.below(4) {
                    0 => continue,
                    1 => 1.0,
                    _ => random.factor_near_one(),
                },
            };
            let mut bytes = if factor == 1.0 && self.dtype == other.dtype {
                theirs.to_vec()
            } else {
                let (re, im) = decode(other.dtype, theirs).parts();
                encode(self.dtype, re * factor, im * factor)
            };
            self.order_bytes(&mut bytes);
            self.memory[position..position + bytes.len()].copy_from_slice(&bytes);
        }
    }
}

fn plain_strides(shape: &[usize]) -> Vec<isize> {
    (0..shape.len()).map(|dim| shape[dim + 1..].iter().product::<usize>() as isize).collect()
}

/// An element close to a value, if the dtype has one.
fn encode(dtype: DType, re: f64, im: f64) -> Vec<u8> {
    match dtype {
        DType::Bool => vec![u8::from(re != 0.0)],
        DType::U8 => (re as u8).to_le_bytes().to_vec(),
        DType::U16 => (re as u16).to_le_bytes().to_vec(),
        DType::U32 => (re as u32).to_le_bytes().to_vec(),
        DType::U64 => (re as u64).to_le_bytes().to_vec(),
        DType::I8 => (re as i8).to_le_bytes().to_vec(),
        DType::I16 => (re as i16).to_le_bytes().to_vec(),
        DType::I32 => (re as i32).to_le_bytes().to_vec(),
        DType::I64 => (re as i64).to_le_bytes().to_vec(),
        DType::F16 => f16::from_f64(re).to_le_bytes().to_vec(),
        DType::BF16 => bf16::from_f64(re).to_le_bytes().to_vec(),
        DType::F32 => (re as f32).to_le_bytes().to_vec(),
        DType::F64 => re.to_le_bytes().to_vec(),
        DType::C64 => [(re as f32).to_le_bytes(), (im as f32).to_le_bytes()].concat(),
        DType::C128 => [re.to_le_bytes(), im.to_le_bytes()].concat(),
        DType::F8E4M3FN | DType::F8E5M2 | DType::F8E4M3FNUZ | DType::F8E5M2FNUZ => {
            // Codes of positive values ascend: set each bit that does not lead beyond.
            let value = |code: u8| decode(dtype, &[code]).parts().0;
            let code = (0..7)
                .rev()
                .map(|bit| 1 << bit)
                .fold(0, |code, bit| if value(code | bit) <= re.abs() { code | bit } else { code });
            vec![if re < 0.0 && code > 0 { code | 0x80 } else { code }]
        }
    }
}

/// How much alike the two sides of a pair are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Closeness {
    Unrelated,
    Equal,
    Near,
    Mixed,
}

pub(crate) fn closeness() -> impl Strategy<Value = Closeness> {
    use Closeness::{Equal, Mixed, Near, Unrelated};
    prop_oneof![2 => Just(Mixed), 1 => Just(Near), 1 => Just(Equal), 1 => Just(Unrelated)]
}

/// How one dimension lies in memory.
#[derive(Debug, Clone, Copy)]
enum Step {
    Dense,
    Sliced(usize),
    Flipped(usize),
    Broadcast,
    /// Neighbours along this dimension are neighbours in memory, whatever the other dimensions do.
    Overlapping,
}

/// What values a tensor holds.
#[derive(Debug, Clone, Copy)]
enum Fill {
    Ordinary,
    Zeros,
    Finite,
    Tiny,
    Huge,
    Infinite,
    Wild,
    Bits,
}

/// Which part of a format a value is taken from; weights in this order.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Ordinary,
    Zero,
    Subnormal,
    Tiny,
    Huge,
    Infinite,
    Nan,
    Bits,
}

impl Fill {
    fn weights(self) -> [u64; 8] {
        match self {
            Fill::Ordinary => [1, 0, 0, 0, 0, 0, 0, 0],
            Fill::Zeros => [1, 20, 0, 0, 0, 0, 0, 0],
            Fill::Finite => [20, 4, 2, 2, 2, 0, 0, 0],
            Fill::Tiny => [0, 1, 4, 2, 0, 0, 0, 0],
            Fill::Huge => [0, 0, 0, 0, 1, 0, 0, 0],
            Fill::Infinite => [200, 20, 4, 4, 4, 1, 0, 0],
            Fill::Wild => [200, 20, 10, 10, 10, 2, 2, 10],
            Fill::Bits => [0, 0, 0, 0, 0, 0, 0, 1],
        }
    }
}

/// Everything that determines a random tensor.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    pub(crate) dtype: DType,
    /// Size, rank in memory order and step of each dimension.
    dims: Vec<(usize, u8, Step)>,
    lead: usize,
    skip: usize,
    big: bool,
    fill: Fill,
    seed: u64,
}

pub(crate) fn any_dtype() -> impl Strategy<Value = DType> {
    prop::sample::select(DType::all().collect::<Vec<_>>())
}

fn any_dim() -> impl Strategy<Value = (usize, u8, Step)> {
    let size = prop_oneof![4 => Just(1), 20 => 2usize..=9, 1 => Just(0), 4 => 10usize..=5000];
    let step = prop_oneof![
        6 => Just(Step::Dense),
        1 => (2usize..=4).prop_map(Step::Sliced),
        2 => (1usize..=3).prop_map(Step::Flipped),
        1 => Just(Step::Broadcast),
        1 => Just(Step::Overlapping),
    ];
    (size, any::<u8>(), step)
}

fn any_fill() -> impl Strategy<Value = Fill> {
    use Fill::{Bits, Finite, Huge, Infinite, Ordinary, Tiny, Wild, Zeros};
    prop::sample::select(vec![Ordinary, Zeros, Finite, Tiny, Huge, Infinite, Wild, Wild, Bits])
}

/// Tensors of at most `most` elements.
pub(crate) fn any_recipe(dtype: impl Strategy<Value = DType>, most: usize) -> impl Strategy<Value = Recipe> {
    let dims = prop::collection::vec(any_dim(), 0..=5);
    let row_major = prop::bool::weighted(0.3);
    let place = (0usize..4, prop_oneof![2 => Just(0usize), 1 => 1usize..16], prop::bool::weighted(0.25));
    (dtype, dims, row_major, place, any_fill(), any::<u64>()).prop_map(
        move |(dtype, mut dims, row_major, (lead, skip, big), fill, seed)| {
            while dims.iter().map(|dim| dim.0.max(1)).product::<usize>() > most {
                dims.iter_mut().max_by_key(|dim| dim.0).unwrap().0 /= 2;
            }
            if row_major {
                for dim in &mut dims {
                    (dim.1, dim.2) = (0, Step::Dense);
                }
            }
            Recipe { dtype, dims, lead, skip, big, fill, seed }
        },
    )
}

/// Tensors large enough to be worked on by several threads.
pub(crate) fn large_recipe(dtype: impl Strategy<Value = DType>) -> impl Strategy<Value = Recipe> {
    (any_recipe(dtype, 2), 300_000usize..330_000, any_dim(), any_dim()).prop_map(
        |(mut recipe, numel, mut outer, mut inner)| {
            inner.0 = inner.0.clamp(1, 40);
            outer.0 = numel.div_ceil(inner.0);
            recipe.dims = vec![outer, inner];
            recipe
        },
    )
}

impl Recipe {
    pub(crate) fn build(&self) -> Tensor {
        let shape: Vec<usize> = self.dims.iter().map(|dim| dim.0).collect();
        let mut innermost_first: Vec<usize> = (0..shape.len()).rev().collect();
        innermost_first.sort_by_key(|&dim| self.dims[dim].1);
        let (mut strides, mut offset, mut reach) = (vec![0; shape.len()], self.lead, 0);
        let mut next = 1;
        for dim in innermost_first {
            let (size, _, step) = self.dims[dim];
            // Gaps multiply; keep the memory in proportion.
            let gap = |wanted: usize| if next * size < 20_000 { wanted } else { 1 };
            let (stride, backwards) = match step {
                Step::Dense => (next, false),
                Step::Sliced(wanted) => (next * gap(wanted), false),
                Step::Flipped(wanted) => (next * gap(wanted), true),
                Step::Broadcast => (0, false),
                Step::Overlapping => (1, false),
            };
            let span = size.saturating_sub(1) * stride;
            strides[dim] = if backwards { -(stride as isize) } else { stride as isize };
            offset += if backwards { span } else { 0 };
            reach += span;
            next = next.max(stride * size.max(1));
        }
        let elements = self.lead + reach + 1;
        let mut tensor = Tensor {
            dtype: self.dtype,
            shape,
            strides,
            memory: vec![0xa5; self.skip],
            skip: self.skip,
            offset,
            endian: if self.big { Endian::Big } else { Endian::Little },
        };
        let mut random = Random(self.seed);
        for _ in 0..elements {
            let mut element = random.element(self.dtype, self.fill);
            tensor.order_bytes(&mut element);
            tensor.memory.extend_from_slice(&element);
        }
        tensor
    }

    /// The same recipe for one flat dimension of `numel` elements.
    pub(crate) fn flattened(&self, numel: usize) -> Recipe {
        let step = self.dims.first().map_or(Step::Dense, |dim| dim.2);
        Recipe { dims: vec![(numel, 0, step)], ..self.clone() }
    }

    /// The same recipe with the sizes of another.
    pub(crate) fn shaped_like(&self, other: &Recipe) -> Recipe {
        let mut dims = other.dims.clone();
        for (dim, own) in dims.iter_mut().zip(&self.dims) {
            (dim.1, dim.2) = (own.1, own.2);
        }
        Recipe { dims, ..self.clone() }
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn bits(&mut self, count: u32) -> u64 {
        self.next() >> (64 - count)
    }

    /// Around the limits that relative errors are held against.
    fn factor_near_one(&mut self) -> f64 {
        let limits = [1e-6, 0.001, 0.005, 0.01, 0.05];
        let offset = limits[self.below(5) as usize] * (self.bits(53) as f64 / (1u64 << 52) as f64);
        if self.below(2) == 0 { 1.0 + offset } else { 1.0 - offset }
    }

    fn kind(&mut self, fill: Fill) -> Kind {
        use Kind::{Bits, Huge, Infinite, Nan, Ordinary, Subnormal, Tiny, Zero};
        let weights = fill.weights();
        let mut left = self.below(weights.iter().sum());
        for (kind, weight) in
            [Ordinary, Zero, Subnormal, Tiny, Huge, Infinite, Nan, Bits].into_iter().zip(weights)
        {
            if left < weight {
                return kind;
            }
            left -= weight;
        }
        Bits
    }

    /// Little-endian bytes of one element.
    fn element(&mut self, dtype: DType, fill: Fill) -> Vec<u8> {
        let size = dtype.size_bytes();
        match dtype.class() {
            DTypeClass::Complex => {
                let mut bytes = self.float(dtype, fill, size / 2);
                bytes.extend(self.float(dtype, fill, size / 2));
                bytes
            }
            DTypeClass::Float => self.float(dtype, fill, size),
            DTypeClass::Bool => vec![match self.kind(fill) {
                Kind::Zero => 0,
                Kind::Bits => self.next() as u8,
                _ => 1,
            }],
            DTypeClass::Unsigned | DTypeClass::Signed => {
                self.integer(dtype.class() == DTypeClass::Signed, fill, size)
            }
        }
    }

    fn float(&mut self, dtype: DType, fill: Fill, size: usize) -> Vec<u8> {
        let (exponent_bits, mantissa_bits, bias, _) = float_format(dtype).unwrap();
        let sign = self.bits(1) << (exponent_bits + mantissa_bits);
        let highest = (1u64 << exponent_bits) - 1;
        let mantissa = self.bits(mantissa_bits);
        let (exponent, mantissa) = match self.kind(fill) {
            Kind::Ordinary => (bias as u64 - 4 + self.below(7), mantissa),
            Kind::Zero => (0, 0),
            Kind::Subnormal => (0, mantissa | 1),
            Kind::Tiny => (1 + self.below(2), mantissa),
            // Of one sign as a rule, so that sums go beyond the range of the type.
            Kind::Huge if self.below(8) > 0 => {
                return (((highest - 1) << mantissa_bits) | mantissa).to_le_bytes()[..size].to_vec();
            }
            Kind::Huge => (highest - 1, mantissa),
            Kind::Infinite => (highest, 0),
            Kind::Nan => (highest, mantissa | 1 << (mantissa_bits - 1)),
            Kind::Bits => (self.bits(exponent_bits), mantissa),
        };
        (sign | exponent << mantissa_bits | mantissa).to_le_bytes()[..size].to_vec()
    }

    fn integer(&mut self, signed: bool, fill: Fill, size: usize) -> Vec<u8> {
        let bits = 8 * size as u32;
        let (lowest, highest) = if signed {
            (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
        } else {
            (0, (1i128 << bits) - 1)
        };
        let value = match self.kind(fill) {
            Kind::Ordinary if signed => i128::from(self.below(201)) - 100,
            Kind::Ordinary => i128::from(self.below(101)),
            Kind::Zero => 0,
            Kind::Subnormal | Kind::Tiny => i128::from(self.below(2)),
            Kind::Huge => highest,
            Kind::Infinite => lowest,
            Kind::Nan => [lowest + 1, highest - 1][self.below(2) as usize],
            Kind::Bits => i128::from(self.next()),
        };
        value.to_le_bytes()[..size].to_vec()
    }
}
