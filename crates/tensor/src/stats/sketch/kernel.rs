//! Statistics and the sums of a sketch in one loop over rows of eight lanes.

use std::ops::Range;

use super::hash::{BLOCK_BYTES, ByteHash, KEYS, PAIR_BYTES};
use super::plan::{BlockSums, Cursor, Plan, SketchSums};
use crate::decode::Decoded;
use crate::parallel::{blocks, map_chunks};
use crate::real::Real;
use crate::simd::{LANES, Level, Row, Vector, by_level, split_rows};
use crate::stats::float::{FiniteSums, PREFETCH_BYTES, Partial, of_odd_block, of_rest};
use crate::{DType, TensorView};

/// From here on a value stands for infinity, as in masks, and would hide all others.
const MASK: f64 = 1e30;

/// What one pass finds.
pub(super) struct Measured {
    /// Of the statistics of a float tensor.
    pub(super) partial: Partial,
    pub(super) sums: SketchSums,
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
        let mut found = Found::EMPTY;
        let mut sweep =
            |care: Care| Sweep { level, plan, is_hashed, care }.run(chunk.clone(), values, &mut found);
        // Few tensors have masks: only where one is found, each block is looked at by itself.
        let partial = sweep(Care::None).or_else(|| sweep(Care::EachBlock))?;
        match bytes {
            Some(_) if is_hashed => {}
            Some(bytes) => {
                found.hash.add(level, chunk.start * size, &bytes[chunk.start * size..chunk.end * size]);
            }
            None => {
                let mut at = chunk.start * size;
                view.for_each_bytes(chunk, |bytes| {
                    found.hash.add(level, at, bytes);
                    at += bytes.len();
                });
            }
        }
        Some((partial, found.sums.finish(plan), found.hash))
    };
    let whole = map_chunks(view.numel(), of_chunk, |a, b| match (a, b) {
        (Some((partial, mut sums, hash)), Some(other)) => {
            sums.add(&other.1);
            Some((partial.merge(other.0), sums, hash.merge(other.2)))
        }
        (a, b) => a.or(b),
    });
    let (partial, sums, hash) = whole.flatten()?;
    Some(Measured { partial, sums, hash: hash.finish() })
}

/// What is found beside statistics.
#[derive(Clone, Copy)]
struct Found {
    sums: BlockSums,
    hash: ByteHash,
}

impl Found {
    const EMPTY: Found = Found { sums: BlockSums::EMPTY, hash: ByteHash::EMPTY };
}

/// What to do about elements that do not count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Care {
    /// There are none: the first one ends it.
    None,
    /// Blocks that have some are summed again without them.
    EachBlock,
}

/// A way through a chunk.
#[derive(Clone, Copy)]
struct Sweep<'a> {
    level: Level,
    plan: &'a Plan,
    is_hashed: bool,
    care: Care,
}

impl<'a> Sweep<'a> {
    /// Adds to what was found. `None` if there are no elements, or some that do not count and nobody takes care; then
    /// nothing was found.
    fn run<W: Real>(
        self,
        chunk: Range<usize>,
        values: &Decoded<'_, W>,
        found: &mut Found,
    ) -> Option<Partial> {
        let mut scratch = Vec::new();
        let mut cursor = self.plan.from(chunk.start);
        let mut partial: Option<Partial> = None;
        for (start, len) in blocks(chunk) {
            let block = values.read(start, len, &mut scratch);
            let of_block = match self.care {
                Care::None => {
                    let of_block = self.sums_of_block(block, &mut cursor, found);
                    if !of_block.is_below(MASK) {
                        *found = Found::EMPTY;
                        return None;
                    }
                    found.sums.squares += of_block.squares();
                    of_block
                }
                Care::EachBlock => self.of_odd_block(block, &mut cursor, found),
            };
            partial = Some(partial.map_or(of_block, |partial| partial.merge(of_block)));
        }
        partial
    }

    /// A block of which some elements may not count.
    fn of_odd_block<W: Real>(self, block: &[W], cursor: &mut Cursor<'a>, found: &mut Found) -> Partial {
        let (before, start) = (found.sums, cursor.at());
        let partial = self.sums_of_block(block, cursor, found);
        if partial.is_below(MASK) {
            found.sums.squares += partial.squares();
            return partial;
        }
        found.sums = before;
        *cursor = self.plan.from(start);
        let counts = |value: W| value.to_f64().abs() < MASK;
        let counted: Vec<W> =
            block.iter().map(|&value| if counts(value) { value } else { W::ZERO }).collect();
        let of_counted = Sweep { is_hashed: false, ..self }.sums_of_block(&counted, cursor, found);
        found.sums.squares += of_counted.squares();
        if partial.squares().is_finite() { partial } else { of_odd_block(self.level, block) }
    }

    /// Sums of a block, right if all elements are finite, and its hash.
    fn sums_of_block<W: Real>(self, block: &[W], cursor: &mut Cursor<'a>, found: &mut Found) -> Partial {
        let (rows, rest) = split_rows(block);
        let of_rows = if self.is_hashed { hashed_sums_of_rows } else { sums_of_rows };
        let partial = of_rows(self.level, rows, cursor, found).merge(of_rest(rest));
        if rest.is_empty() {
            return partial;
        }
        let strip = cursor.strip();
        let mut lanes = [0.0; LANES];
        let signs = W::sketch_signs()[cursor.sign_at()..].iter().zip(strip.signs);
        for ((lane, value), (sign, lane_sign)) in lanes.iter_mut().zip(rest).zip(signs) {
            *lane = value.to_f64() * sign.to_f64() * lane_sign;
        }
        if self.is_hashed {
            for (at, pair) in bytemuck::cast_slice(rest).chunks(PAIR_BYTES).enumerate() {
                found.hash.add_last(cursor.at() * size_of::<W>() + at * PAIR_BYTES, pair);
            }
        }
        let lanes = Row::<f64, LANES>::load(&lanes);
        cursor.end_run(&mut found.sums, lanes, rest.len());
        cursor.end_strip(&mut found.sums, lanes, strip.bucket);
        partial
    }
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

/// Goes through whole rows: strip by strip, and in them a run at a time, in which nothing but the elements changes.
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
        let strip = cursor.strip();
        let lane_signs = V::Wide::load(&strip.signs);
        let (mut of_strip, after) = rows.split_at(strip.elements.min(rows.len()));
        let mut strip_sum = V::Wide::splat(0.0);
        while !of_strip.is_empty() {
            let (run, later) = of_strip.split_at(cursor.run().min(of_strip.len()));
            let signs = &W::sketch_signs()[cursor.sign_at()..][..run.len()];
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
            let is_last = later.is_empty() && after.is_empty();
            if HASHED && (is_last || (start + size_of_val(run)).is_multiple_of(BLOCK_BYTES)) {
                found.hash.add_sum(start, V::total_of_products(products));
                products = V::no_products();
            }
            let lanes = signed.widen().mul(lane_signs);
            strip_sum = strip_sum.add(lanes);
            cursor.end_run(&mut found.sums, lanes, run.len());
            of_strip = later;
        }
        cursor.end_strip(&mut found.sums, strip_sum, strip.bucket);
        rows = after;
    }
    statistics.finish()
}
