//! Borrowed strided views of tensor memory, and reading them in blocks.
//!
//! A view never copies. Kernels ask for blocks of typed elements in logical (row-major) order: when the
//! view is contiguous, aligned and little-endian they get slices of the original memory, otherwise a
//! small scratch buffer that stays in cache is filled for them.

use std::convert::Infallible;
use std::ops::Range;

use bytemuck::Pod;
use half::{bf16, f16};

use crate::DType;
use crate::float8::decode_table;
use crate::parallel::blocks;

/// Elements handed to a kernel at a time: two scratch blocks of 8-byte elements fit in 64 KiB.
pub const BLOCK_ELEMENTS: usize = 4096;

/// Byte order of the elements of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are the documentation")]
pub enum Endian {
    Little,
    Big,
}

// Mapped files and dumps are little-endian, and so is every machine frameworks train on.
#[cfg(target_endian = "big")]
compile_error!("msprobe needs a little-endian machine");

/// Why a shape, its strides and its memory do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// `shape` and `strides` differ in length.
    #[error("{shape} dimensions but {strides} strides")]
    RankMismatch {
        /// Dimensions in the shape.
        shape: usize,
        /// Number of strides.
        strides: usize,
    },
    /// The number of elements, or their size in bytes, does not fit into 64 bits.
    #[error("shape {shape:?} is too large to address")]
    TooLarge {
        /// The shape as given.
        shape: Vec<usize>,
    },
    /// Some element would lie outside the memory given.
    #[error("elements {first}..={last} of the storage are addressed, it holds {available}")]
    OutOfBounds {
        /// Lowest element index addressed.
        first: i128,
        /// Highest element index addressed.
        last: i128,
        /// Whole elements in the memory given.
        available: usize,
    },
}

/// A tensor lying in somebody else's memory.
#[derive(Debug, Clone)]
pub struct TensorView<'a> {
    dtype: DType,
    shape: Vec<usize>,
    /// In elements, not bytes. May be zero (broadcast) or negative (flipped).
    strides: Vec<isize>,
    storage: &'a [u8],
    /// Element index in `storage` of the logical first element.
    offset: usize,
    endian: Endian,
    numel: usize,
}

/// Row-major strides of a shape, in elements. `None` if the size overflows.
pub fn contiguous_strides(shape: &[usize]) -> Option<Vec<isize>> {
    let mut strides = vec![1isize; shape.len()];
    let mut running = 1isize;
    for (stride, &size) in strides.iter_mut().zip(shape).rev() {
        *stride = running;
        running = running.checked_mul(isize::try_from(size.max(1)).ok()?)?;
    }
    Some(strides)
}

/// Number of elements of a shape. `None` if it overflows.
pub fn checked_numel(shape: &[usize]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1usize, |product, &size| product.checked_mul(size))
}

impl<'a> TensorView<'a> {
    /// A view with explicit strides. Every element it can reach is checked to lie inside `storage`. Strides that
    /// no step follows (of dimensions of one element, or of an empty tensor) are set to zero.
    pub fn new(
        dtype: DType,
        shape: Vec<usize>,
        mut strides: Vec<isize>,
        storage: &'a [u8],
        offset: usize,
        endian: Endian,
    ) -> Result<Self, ViewError> {
        if shape.len() != strides.len() {
            return Err(ViewError::RankMismatch { shape: shape.len(), strides: strides.len() });
        }
        let too_large = || ViewError::TooLarge { shape: shape.clone() };
        let numel = checked_numel(&shape)
            .filter(|numel| numel.checked_mul(dtype.size_bytes()).is_some_and(|n| isize::try_from(n).is_ok()))
            .ok_or_else(too_large)?;
        for (stride, &size) in strides.iter_mut().zip(&shape) {
            if numel == 0 || size == 1 {
                *stride = 0;
            }
        }
        if numel > 0 {
            let (mut first, mut last) = (offset as i128, offset as i128);
            for (&size, &stride) in shape.iter().zip(&strides) {
                let reach = (size as i128 - 1) * stride as i128;
                if reach < 0 { first += reach } else { last += reach }
            }
            let available = storage.len() / dtype.size_bytes();
            if first < 0 || last >= available as i128 {
                return Err(ViewError::OutOfBounds { first, last, available });
            }
        }
        Ok(TensorView { dtype, shape, strides, storage, offset, endian, numel })
    }

    /// A row-major view of memory that starts at the first byte.
    pub fn contiguous(dtype: DType, shape: Vec<usize>, storage: &'a [u8]) -> Result<Self, ViewError> {
        let strides =
            contiguous_strides(&shape).ok_or_else(|| ViewError::TooLarge { shape: shape.clone() })?;
        Self::new(dtype, shape, strides, storage, 0, Endian::Little)
    }

    /// A view of memory that another library owns.
    ///
    /// # Safety
    /// `address` must point to `len_bytes` readable bytes (or `len_bytes` be 0) that stay valid and are not
    /// written to while the view lives.
    #[allow(unsafe_code, reason = "memory of another library; see Safety")]
    pub unsafe fn from_raw(
        dtype: DType,
        shape: Vec<usize>,
        strides: Vec<isize>,
        address: *const u8,
        len_bytes: usize,
        offset: usize,
        endian: Endian,
    ) -> Result<Self, ViewError> {
        let storage = if len_bytes == 0 || address.is_null() {
            &[]
        } else {
            // SAFETY: promised by the caller.
            unsafe { std::slice::from_raw_parts(address, len_bytes) }
        };
        Self::new(dtype, shape, strides, storage, offset, endian)
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Size of each dimension; empty for a scalar.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Distance between neighbours in each dimension, in elements.
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        self.numel
    }

    /// Bytes of the elements when laid out contiguously.
    pub fn size_bytes(&self) -> usize {
        self.numel * self.dtype.size_bytes()
    }

    /// The elements as they lie in memory, if they are row-major without gaps and little-endian.
    pub fn as_bytes(&self) -> Option<&'a [u8]> {
        if self.numel == 0 {
            return Some(&[]);
        }
        if !self.is_row_major() || !self.is_native() {
            return None;
        }
        let start = self.offset * self.dtype.size_bytes();
        self.storage.get(start..start + self.size_bytes())
    }

    /// Whether elements follow each other in row-major order without gaps.
    pub fn is_row_major(&self) -> bool {
        if self.numel == 0 {
            return true;
        }
        let mut expected = 1isize;
        for (&size, &stride) in self.shape.iter().zip(&self.strides).rev() {
            if size != 1 {
                if stride != expected {
                    return false;
                }
                expected *= size as isize;
            }
        }
        true
    }

    fn is_native(&self) -> bool {
        self.endian == Endian::Little || self.dtype.size_bytes() == 1
    }

    /// The same elements visited in the order they lie in memory, for results that do not depend on order.
    /// Turns transposed and flipped views into contiguous ones.
    #[must_use]
    pub fn in_memory_order(&self) -> TensorView<'a> {
        if self.numel == 0 {
            return self.clone();
        }
        let mut dims: Vec<(usize, isize)> = Vec::with_capacity(self.shape.len());
        let mut offset = self.offset as isize;
        for (&size, &stride) in self.shape.iter().zip(&self.strides) {
            if size == 1 {
                continue;
            }
            if stride < 0 {
                offset += (size as isize - 1) * stride;
            }
            dims.push((size, stride.abs()));
        }
        dims.sort_by_key(|&(_, stride)| std::cmp::Reverse(stride));
        TensorView {
            shape: dims.iter().map(|&(size, _)| size).collect(),
            strides: dims.iter().map(|&(_, stride)| stride).collect(),
            offset: offset as usize,
            ..self.clone()
        }
    }

    /// The same elements with the dimensions in reverse.
    #[must_use]
    pub fn transposed(&self) -> TensorView<'a> {
        TensorView {
            shape: self.shape.iter().rev().copied().collect(),
            strides: self.strides.iter().rev().copied().collect(),
            ..self.clone()
        }
    }

    /// The leading block of the given shape (each size at most this view's).
    pub fn leading_block(&self, shape: &[usize]) -> Result<TensorView<'a>, ViewError> {
        TensorView::new(
            self.dtype,
            shape.to_vec(),
            self.strides.clone(),
            self.storage,
            self.offset,
            self.endian,
        )
    }

    /// One element, as a tensor of no dimensions. `None` if there is none at these indices.
    pub fn element(&self, at: &[usize]) -> Option<TensorView<'a>> {
        if at.len() != self.shape.len() || at.iter().zip(&self.shape).any(|(&index, &size)| index >= size) {
            return None;
        }
        let steps = at.iter().zip(&self.strides).map(|(&index, &stride)| index as isize * stride);
        let offset = self.offset.checked_add_signed(steps.sum())?;
        TensorView::new(self.dtype, Vec::new(), Vec::new(), self.storage, offset, self.endian).ok()
    }

    /// The first `count` elements in row-major order (at most all) as a vector. `None` if they lie in another order.
    pub fn flat_prefix(&self, count: usize) -> Option<TensorView<'a>> {
        if !self.is_row_major() {
            return None;
        }
        let count = count.min(self.numel);
        let (storage, offset, endian) = (self.storage, self.offset, self.endian);
        TensorView::new(self.dtype, vec![count], vec![1], storage, offset, endian).ok()
    }

    /// The real parts of a complex tensor, as a view of every second component.
    /// `None` if the tensor is not complex.
    pub fn real_part(&self) -> Option<TensorView<'a>> {
        let dtype = match self.dtype {
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            _ => return None,
        };
        Some(TensorView {
            dtype,
            // Only numbers that no element depends on can be this large: strides of single elements, the
            // offset of an empty tensor.
            strides: self.strides.iter().map(|stride| stride.saturating_mul(2)).collect(),
            offset: self.offset.saturating_mul(2),
            ..self.clone()
        })
    }

    /// Real and imaginary parts of a complex tensor, as a real one with another dimension of two; other tensors as they are.
    pub(crate) fn components(&self) -> TensorView<'a> {
        let Some(mut parts) = self.real_part() else { return self.clone() };
        parts.shape.push(2);
        parts.strides.push(1);
        parts.numel *= 2;
        parts
    }

    /// Calls `visit` with the little-endian bytes of the logical range `range`, in row-major order, piece by
    /// piece. Stops at the first error.
    pub(crate) fn try_for_each_bytes<E>(
        &self,
        range: Range<usize>,
        mut visit: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let size = self.dtype.size_bytes();
        if let Some(bytes) = self.as_bytes() {
            return visit(&bytes[range.start * size..range.end * size]);
        }
        match (self.dtype, size) {
            (DType::C64, _) => self.try_for_each_block_as::<[f32; 2], E>(range, visit),
            (DType::C128, _) => self.try_for_each_block_as::<[f64; 2], E>(range, visit),
            (_, 1) => self.try_for_each_block_as::<u8, E>(range, visit),
            (_, 2) => self.try_for_each_block_as::<u16, E>(range, visit),
            (_, 4) => self.try_for_each_block_as::<u32, E>(range, visit),
            _ => self.try_for_each_block_as::<u64, E>(range, visit),
        }
    }

    /// Copies the elements, row-major and little-endian, to the front of `out`, as many as fit.
    pub fn copy_to(&self, out: &mut [u8]) {
        let mut rest = out;
        self.for_each_bytes(0..self.numel, |bytes| {
            let len = bytes.len().min(rest.len());
            let (front, back) = std::mem::take(&mut rest).split_at_mut(len);
            front.copy_from_slice(&bytes[..len]);
            rest = back;
        });
    }

    /// Copies the elements of an 8-bit float or bfloat16 tensor as little-endian float32, row-major, to the front of
    /// `out`, as many as fit. Tensors of other dtypes are left alone.
    pub fn copy_widened(&self, out: &mut [u8]) {
        let mut wide = out.chunks_exact_mut(size_of::<f32>());
        if let Some(table) = decode_table(self.dtype) {
            self.for_each_bytes(0..self.numel, |codes| {
                for (&code, wide) in codes.iter().zip(&mut wide) {
                    wide.copy_from_slice(&table[usize::from(code)].to_le_bytes());
                }
            });
        } else if self.dtype == DType::BF16 {
            self.for_each_bytes(0..self.numel, |halves| {
                for (half, wide) in halves.chunks_exact(2).zip(&mut wide) {
                    // A bfloat16 is the upper half of a float32.
                    wide[..2].fill(0);
                    wide[2..].copy_from_slice(half);
                }
            });
        }
    }

    /// [`try_for_each_bytes`](Self::try_for_each_bytes) for visitors that cannot fail.
    pub(crate) fn for_each_bytes(&self, range: Range<usize>, mut visit: impl FnMut(&[u8])) {
        let done: Result<(), Infallible> = self.try_for_each_bytes(range, |bytes| {
            visit(bytes);
            Ok(())
        });
        let Ok(()) = done;
    }

    fn try_for_each_block_as<T: Element, E>(
        &self,
        range: Range<usize>,
        mut visit: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let elements = Blocks::<T>::new(self);
        let mut scratch = Vec::new();
        for (start, len) in blocks(range) {
            visit(bytemuck::cast_slice(elements.read(start, len, &mut scratch)))?;
        }
        Ok(())
    }
}

/// A type that tensor memory can hold.
pub(crate) trait Element: Pod + Send + Sync {
    fn swap_bytes(self) -> Self;
}

macro_rules! elements {
    ($($type:ty => |$value:ident| $swap:expr;)*) => { $(
        impl Element for $type {
            #[inline(always)]
            fn swap_bytes(self) -> Self {
                let $value = self;
                $swap
            }
        }
    )* };
}

elements! {
    u8 => |v| v;
    i8 => |v| v;
    u16 => |v| v.swap_bytes();
    i16 => |v| v.swap_bytes();
    u32 => |v| v.swap_bytes();
    i32 => |v| v.swap_bytes();
    u64 => |v| v.swap_bytes();
    i64 => |v| v.swap_bytes();
    f16 => |v| f16::from_bits(v.to_bits().swap_bytes());
    bf16 => |v| bf16::from_bits(v.to_bits().swap_bytes());
    f32 => |v| f32::from_bits(v.to_bits().swap_bytes());
    f64 => |v| f64::from_bits(v.to_bits().swap_bytes());
    [f32; 2] => |v| v.map(Element::swap_bytes);
    [f64; 2] => |v| v.map(Element::swap_bytes);
}

/// Random access to blocks of one view; cheap to make, meant to be made once per chunk of work.
pub(crate) struct Blocks<'a, T> {
    /// The whole tensor as a slice, when memory allows it.
    direct: Option<&'a [T]>,
    /// Dimensions merged where they can be, outermost first: (size, stride).
    dims: Vec<(usize, isize)>,
    storage: &'a [u8],
    offset: isize,
    swap: bool,
}

impl<'a, T: Element> Blocks<'a, T> {
    pub(crate) fn new(view: &TensorView<'a>) -> Self {
        assert_eq!(size_of::<T>(), view.dtype.size_bytes(), "block type must match the dtype");
        Blocks {
            direct: view.as_bytes().and_then(|bytes| bytemuck::try_cast_slice(bytes).ok()),
            dims: merged_dims(&view.shape, &view.strides),
            storage: view.storage,
            offset: view.offset as isize,
            swap: !view.is_native(),
        }
    }

    /// Elements `start..start + len` in logical order; `scratch` is filled only when they are not lying
    /// ready in memory. The range must be inside the view.
    pub(crate) fn read<'s>(&self, start: usize, len: usize, scratch: &'s mut Vec<T>) -> &'s [T]
    where
        'a: 's,
    {
        if let Some(all) = self.direct {
            return &all[start..start + len];
        }
        scratch.clear();
        scratch.reserve(len);
        self.gather(start, len, scratch);
        if self.swap {
            for value in scratch.iter_mut() {
                *value = value.swap_bytes();
            }
        }
        scratch
    }

    fn gather(&self, start: usize, len: usize, out: &mut Vec<T>) {
        let Some((&(inner_size, inner_stride), outer)) = self.dims.split_last() else {
            // A scalar: one element at the offset.
            out.extend(std::iter::repeat_n(self.load(self.offset), len));
            return;
        };
        let mut row = start / inner_size;
        let mut column = start % inner_size;
        while out.len() < len {
            let mut position = self.offset + column as isize * inner_stride;
            let mut rest = row;
            for &(size, stride) in outer.iter().rev() {
                position += (rest % size) as isize * stride;
                rest /= size;
            }
            let run = (inner_size - column).min(len - out.len());
            if inner_stride == 1 {
                let first = position as usize * size_of::<T>();
                let bytes = &self.storage[first..first + run * size_of::<T>()];
                let filled = out.len();
                out.resize(filled + run, T::zeroed());
                bytemuck::cast_slice_mut::<T, u8>(&mut out[filled..]).copy_from_slice(bytes);
            } else {
                out.extend((0..run).map(|step| self.load(position + step as isize * inner_stride)));
            }
            row += 1;
            column = 0;
        }
    }

    #[inline(always)]
    fn load(&self, element: isize) -> T {
        let first = element as usize * size_of::<T>();
        bytemuck::pod_read_unaligned(&self.storage[first..first + size_of::<T>()])
    }
}

/// Drops dimensions of size one and fuses neighbours that step through memory as one.
fn merged_dims(shape: &[usize], strides: &[isize]) -> Vec<(usize, isize)> {
    let mut merged: Vec<(usize, isize)> = Vec::with_capacity(shape.len());
    for (&size, &stride) in shape.iter().zip(strides) {
        if size == 1 {
            continue;
        }
        match merged.last_mut() {
            Some(last) if stride.checked_mul(size as isize) == Some(last.1) => {
                // Saturates in empty tensors only, which are never read.
                *last = (last.0.saturating_mul(size), stride);
            }
            _ => merged.push((size, stride)),
        }
    }
    merged
}
