//! Splitting a tensor into chunks of fixed size, so that results do not depend on the number of threads, and
//! chunks into blocks that stay in L1.

use std::cell::Cell;
use std::ops::Range;

use rayon::prelude::*;

use crate::decode::Decoded;
use crate::view::{BLOCK_ELEMENTS, Element};

/// Elements reduced on one thread before partial results are merged. Part of the definition of every sum:
/// changing it changes last bits.
pub(crate) const CHUNK_ELEMENTS: usize = 1 << 16;

/// Below this size waking another thread costs more than it saves.
const PARALLEL_ELEMENTS: usize = 4 * CHUNK_ELEMENTS;

thread_local! {
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` without help of other threads, with the same results. For callers in the middle of a computation
/// whose own threads own the cores.
pub fn on_this_thread<T>(work: impl FnOnce() -> T) -> T {
    struct Reset(bool);
    impl Drop for Reset {
        fn drop(&mut self) {
            ALONE.set(self.0);
        }
    }
    let _reset = Reset(ALONE.replace(true));
    work()
}

/// Something else to do with each chunk while it is in cache. Called once per chunk, in any order.
pub(crate) type OnChunk<'a> = &'a (dyn Fn(Range<usize>) + Sync);

/// Maps fixed chunks of `0..numel` (on the current rayon pool when there are many) and merges the results
/// strictly in order. `None` for an empty range.
pub(crate) fn map_chunks<P: Send>(
    numel: usize,
    map: impl Fn(Range<usize>) -> P + Send + Sync,
    merge: impl FnMut(P, P) -> P,
) -> Option<P> {
    let chunk = |index: usize| {
        let start = index * CHUNK_ELEMENTS;
        map(start..numel.min(start + CHUNK_ELEMENTS))
    };
    let count = numel.div_ceil(CHUNK_ELEMENTS);
    if numel < PARALLEL_ELEMENTS || ALONE.get() {
        (0..count).map(chunk).reduce(merge)
    } else {
        let partials: Vec<P> = (0..count).into_par_iter().map(chunk).collect();
        partials.into_iter().reduce(merge)
    }
}

/// The blocks of a range: where each starts, and its length.
pub(crate) fn blocks(range: Range<usize>) -> impl Iterator<Item = (usize, usize)> {
    let end = range.end;
    range.step_by(BLOCK_ELEMENTS).map(move |start| (start, BLOCK_ELEMENTS.min(end - start)))
}

/// Reduces a tensor block by block: chunks on all threads, blocks of a chunk and then chunks merged in order.
/// `None` for an empty tensor.
pub(crate) fn reduce_blocks<W: Element, P: Send>(
    numel: usize,
    values: &Decoded<'_, W>,
    on_chunk: OnChunk<'_>,
    of_block: impl Fn(&[W]) -> P + Sync + Send,
    merge: impl Fn(P, P) -> P + Sync + Send,
) -> Option<P> {
    let of_chunk = |range: Range<usize>| {
        let mut scratch = Vec::new();
        let parts = blocks(range.clone()).map(|(start, len)| of_block(values.read(start, len, &mut scratch)));
        let reduced = parts.reduce(&merge);
        on_chunk(range);
        reduced
    };
    map_chunks(numel, of_chunk, |a, b| match (a, b) {
        (Some(a), Some(b)) => Some(merge(a, b)),
        (a, b) => a.or(b),
    })
    .flatten()
}
