//! Statistics and the sums of a sketch in one loop over rows of eight lanes.

use std::ops::Range;

use super::hash::{BLOCK_BYTES, ByteHash, KEYS, PAIR_BYTES};
use super::plan::{BlockSums, Cursor, Plan};
use crate::decode::Decoded;
use crate::parallel::{blocks, map_chunks};
use crate::real::Real;
use crate::simd::{LANES, Level, Vector, by_level, split_rows};
use crate::stats::float::{FiniteSums, PREFETCH_BYTES, Partial, of_odd_block, of_rest};
use crate::{DType, TensorView};

/// From here on a value stands for infinity, as in masks, and would hide all others.
const MASK: f64 = 1e30;

/// What one pass finds.
pub(super) struct Measured {
    /// Of the statistics of a float tensor.
    pub(super) partial: Partial,
    pub(super) sums: BlockSums,
    pub(super) hash: u64,
}

/// Goes through the elements in row-major order. `None` if there are none.
pub(super) fn measure<W: Real>(
    level: Level,
    view: &TensorView<'_>,
    plan: &Plan,
    values: &Decoded<'_, W>,
) -> Option<Measured> {
    let size = view.dtype().size_bytes();
    let bytes = view.as_bytes();
    // Elements that are read as they lie in memory are hashed on the way.
    let is_hashed = bytes.is_some() && matches!(view.dtype(), DType::F32 | DType::F64);
    let of_chunk = |chunk: Range<usize>| {
        let mut scratch = Vec::new();
        let mut found = Found { sums: BlockSums::EMPTY, hash: ByteHash::default() };
        let mut partial: Option<Partial> = None;
        for (start, len) in blocks(chunk.clone()) {
            let block = values.read(start, len, &mut scratch);
            let of_block = of_block(level, plan, start, block, &mut found, is_hashed);
            partial = Some(partial.map_or(of_block, |partial| partial.merge(of_block)));
            if let Some(bytes) = bytes.filter(|_| !is_hashed) {
                found.hash.add(level, start * size, &bytes[start * size..(start + len) * size]);
            }
        }
        if bytes.is_none() {
            let mut at = chunk.start * size;
            view.for_each_bytes(chunk, |bytes| {
                found.hash.add(level, at, bytes);
                at += bytes.len();
            });
        }
        partial.map(|partial| (partial, found))
    };
    let whole = map_chunks(view.numel(), of_chunk, |a, b| match (a, b) {
        (Some((partial, mut found)), Some(other)) => {
            found.sums.add(&other.1.sums);
            found.hash = found.hash.merge(other.1.hash);
            Some((partial.merge(other.0), found))
        }
        (a, b) => a.or(b),
    });
    let (partial, found) = whole.flatten()?;
    Some(Measured { partial, sums: found.sums, hash: found.hash.finish() })
}

/// What is found beside statistics.
#[derive(Clone, Copy)]
struct Found {
    sums: BlockSums,
    hash: ByteHash,
}

fn of_block<W: Real>(
    level: Level,
    plan: &Plan,
    start: usize,
    block: &[W],
    found: &mut Found,
    is_hashed: bool,
) -> Partial {
    let before = found.sums;
    let partial = sums_of_block(level, plan, start, block, found, is_hashed);
    if partial.is_below(MASK) {
        found.sums.squares += partial.squares();
        return partial;
    }
    found.sums = before;
    let counts = |value: W| value.to_f64().abs() < MASK;
    let counted: Vec<W> = block.iter().map(|&value| if counts(value) { value } else { W::ZERO }).collect();
    let of_counted = sums_of_block(level, plan, start, &counted, found, false);
    found.sums.squares += of_counted.squares();
    if partial.squares().is_finite() { partial } else { of_odd_block(level, block) }
}

/// Sums of a block, right if all elements are finite, and its hash.
fn sums_of_block<W: Real>(
    level: Level,
    plan: &Plan,
    start: usize,
    block: &[W],
    found: &mut Found,
    is_hashed: bool,
) -> Partial {
    let (rows, rest) = split_rows(block);
    let mut cursor = plan.from(start);
    let of_rows = if is_hashed { hashed_sums_of_rows } else { sums_of_rows };
    let partial = of_rows(level, rows, &mut cursor, found).merge(of_rest(rest));
    if rest.is_empty() {
        return partial;
    }
    let mut lanes = [0.0; LANES];
    for ((lane, value), sign) in lanes.iter_mut().zip(rest).zip(&W::sketch_signs()[cursor.sign_at()..]) {
        *lane = value.to_f64() * sign.to_f64();
    }
    if is_hashed {
        for (at, pair) in bytemuck::cast_slice(rest).chunks(PAIR_BYTES).enumerate() {
            found.hash.add_last(cursor.at() * size_of::<W>() + at * PAIR_BYTES, pair);
        }
    }
    cursor.flush(&mut found.sums, &lanes, rest.len());
    partial
}

by_level! { fn sums_of_rows<W: Real>(rows: &[W], cursor: &mut Cursor<'_>, found: &mut Found) -> Partial = plain_sums on W }
by_level! { fn hashed_sums_of_rows<W: Real>(rows: &[W], cursor: &mut Cursor<'_>, found: &mut Found) -> Partial = hashed_sums on W }

#[inline(always)]
fn plain_sums<V: Vector<Scalar = W>, W: Real>(
    rows: &[W],
    cursor: &mut Cursor<'_>,
    found: &mut Found,
) -> Partial {
    sums::<V, W, false>(rows, cursor, found)
}

#[inline(always)]
fn hashed_sums<V: Vector<Scalar = W>, W: Real>(
    rows: &[W],
    cursor: &mut Cursor<'_>,
    found: &mut Found,
) -> Partial {
    sums::<V, W, true>(rows, cursor, found)
}

/// Goes through whole rows; a run at a time, in which nothing but the elements changes.
#[inline(always)]
fn sums<V: Vector<Scalar = W>, W: Real, const HASHED: bool>(
    mut rows: &[W],
    cursor: &mut Cursor<'_>,
    found: &mut Found,
) -> Partial {
    let pairs = V::LANES * size_of::<W>() / PAIR_BYTES;
    let mut statistics = FiniteSums::<V>::new();
    let mut products = V::no_products();
    while !rows.is_empty() {
        let (run, after) = rows.split_at(cursor.run().min(rows.len()));
        let signs = &W::sketch_signs()[cursor.sign_at()..];
        let start = cursor.at() * size_of::<W>();
        let keys = &KEYS[start % BLOCK_BYTES / PAIR_BYTES..];
        let mut signed = V::splat(W::ZERO);
        for ((row, sign), keys) in
            run.chunks_exact(V::LANES).zip(signs.chunks_exact(V::LANES)).zip(keys.chunks_exact(pairs))
        {
            V::prefetch_after(row, PREFETCH_BYTES);
            let row = V::load(row);
            statistics.add(row);
            signed = signed.add_signed(row, V::load(sign));
            if HASHED {
                products = V::add_products(products, row, keys);
            }
        }
        if HASHED && (after.is_empty() || (start + size_of_val(run)).is_multiple_of(BLOCK_BYTES)) {
            found.hash.add_sum(start, V::total_of_products(products));
            products = V::no_products();
        }
        let mut lanes = [0.0; LANES];
        signed.widen().store(&mut lanes);
        cursor.flush(&mut found.sums, &lanes, run.len());
        rows = after;
    }
    statistics.finish()
}
