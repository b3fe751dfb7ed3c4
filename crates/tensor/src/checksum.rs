//! Checksums of a tensor's values in row-major order, whatever its layout in memory.

use std::ops::Range;

use md5::{Digest, Md5};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::decode::as_f32;
use crate::parallel::{blocks, map_chunks};
use crate::{DType, TensorView};

/// Bytes per task when a checksum of plain bytes is spread over threads.
const CHUNK_BYTES: usize = 1 << 20;

/// The checksum that dump files keep under `md5`: CRC-32 (zlib's polynomial) of the row-major bytes, with
/// bfloat16 and float8 widened to float32 first, because numpy could not hold them. Print it with `{:08x}`.
pub fn crc32(view: &TensorView<'_>) -> u32 {
    match view.as_bytes() {
        Some(bytes) if !is_widened(view.dtype()) => crc32_of_bytes(bytes),
        _ => {
            let merged = map_chunks(view.numel(), |range| crc32_of_range(view, range), combined);
            merged.map_or(0, crc32fast::Hasher::finalize)
        }
    }
}

fn is_widened(dtype: DType) -> bool {
    dtype == DType::BF16 || dtype.is_float8()
}

/// The part of [`crc32`] that a range of elements contributes.
pub(crate) fn crc32_of_range(view: &TensorView<'_>, range: Range<usize>) -> crc32fast::Hasher {
    let mut hasher = crc32fast::Hasher::new();
    let widened = if is_widened(view.dtype()) { as_f32(view) } else { None };
    match widened {
        Some(values) => {
            let mut scratch = Vec::new();
            for (start, len) in blocks(range) {
                hasher.update(bytemuck::cast_slice(values.read(start, len, &mut scratch)));
            }
        }
        None => view.for_each_bytes(range, |bytes| hasher.update(bytes)),
    }
    hasher
}

/// Puts parts together that were hashed in any order, each with the position it starts at.
pub(crate) fn join_crc32(mut parts: Vec<(usize, crc32fast::Hasher)>) -> u32 {
    parts.sort_by_key(|&(start, _)| start);
    let whole = parts.into_iter().map(|(_, part)| part).reduce(combined);
    whole.map_or(0, crc32fast::Hasher::finalize)
}

#[allow(clippy::needless_pass_by_value, reason = "the shape `reduce` wants")]
fn combined(mut first: crc32fast::Hasher, second: crc32fast::Hasher) -> crc32fast::Hasher {
    first.combine(&second);
    first
}

/// CRC-32 of plain bytes, on all threads of the current pool when there are many.
pub fn crc32_of_bytes(bytes: &[u8]) -> u32 {
    use rayon::prelude::*;
    if bytes.len() < 2 * CHUNK_BYTES {
        return crc32fast::hash(bytes);
    }
    let of_chunk = |chunk: &[u8]| {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(chunk);
        hasher
    };
    let parts: Vec<crc32fast::Hasher> = bytes.par_chunks(CHUNK_BYTES).map(of_chunk).collect();
    parts.into_iter().reduce(combined).map_or(0, crc32fast::Hasher::finalize)
}

/// MD5 of the row-major bytes as they are, nothing widened.
pub fn md5(view: &TensorView<'_>) -> [u8; 16] {
    let mut hasher = Md5::new();
    view.for_each_bytes(0..view.numel(), |bytes| hasher.update(bytes));
    hasher.finalize().into()
}

/// A fast hash of the row-major bytes for finding equal tensors: two that differ have different ones, as far as chance
/// goes. Equal dtype and shape are the caller's to check. Not stable between versions: never write it to a file.
pub fn hash128(view: &TensorView<'_>) -> u128 {
    let size = view.dtype().size_bytes();
    let of_chunk = |range: Range<usize>| match view.as_bytes() {
        Some(bytes) => xxh3_128(&bytes[range.start * size..range.end * size]),
        None => {
            let mut hasher = Xxh3::new();
            view.for_each_bytes(range, |bytes| hasher.update(bytes));
            hasher.digest128()
        }
    };
    let joined = |before: u128, next: u128| {
        let mut both = [0; 32];
        both[..16].copy_from_slice(&before.to_le_bytes());
        both[16..].copy_from_slice(&next.to_le_bytes());
        xxh3_128(&both)
    };
    map_chunks(view.numel(), of_chunk, joined).unwrap_or_else(|| xxh3_128(&[]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Endian;

    fn hex(digest: [u8; 16]) -> String {
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn known_digests() {
        let view = TensorView::contiguous(DType::U8, vec![9], b"123456789").unwrap();
        assert_eq!(crc32(&view), 0xcbf4_3926);
        assert_eq!(hex(md5(&view)), "25f9e794323b453885f5181f1b624d0b");
        let empty = TensorView::contiguous(DType::F32, vec![0], &[]).unwrap();
        assert_eq!(crc32(&empty), 0);
    }

    #[test]
    fn bfloat16_is_widened() {
        let narrow = [half::bf16::from_f32(1.5), half::bf16::from_f32(-3.0)];
        let wide = [1.5f32, -3.0];
        let narrow = TensorView::contiguous(DType::BF16, vec![2], bytemuck::cast_slice(&narrow)).unwrap();
        let wide = TensorView::contiguous(DType::F32, vec![2], bytemuck::cast_slice(&wide)).unwrap();
        assert_eq!(crc32(&narrow), crc32(&wide));
        assert_ne!(md5(&narrow), md5(&wide));
    }

    #[test]
    fn layout_and_byte_order_do_not_matter() {
        let values: Vec<u32> = (0..600_000).collect();
        let transposed: Vec<u32> = (0..600_000).map(|i| (i % 600) * 1000 + i / 600).collect();
        let swapped: Vec<u32> = values.iter().map(|value| value.swap_bytes()).collect();
        let shape = vec![600, 1000];
        let plain = TensorView::contiguous(DType::U32, shape.clone(), bytemuck::cast_slice(&values)).unwrap();
        let storage = bytemuck::cast_slice(&transposed);
        let strided = TensorView::new(DType::U32, shape.clone(), vec![1, 600], storage, 0, Endian::Little);
        let storage = bytemuck::cast_slice(&swapped);
        let big = TensorView::new(DType::U32, shape, vec![1000, 1], storage, 0, Endian::Big);
        for other in [strided.unwrap(), big.unwrap()] {
            assert_eq!(crc32(&plain), crc32(&other));
            assert_eq!(md5(&plain), md5(&other));
            assert_eq!(hash128(&plain), hash128(&other));
        }
        assert_eq!(crc32(&plain), crc32fast::hash(bytemuck::cast_slice(&values)));
    }
}
