//! Splitting a tensor into chunks of fixed size, so that results do not depend on the number of threads.

use std::ops::Range;

use rayon::prelude::*;

/// Elements reduced on one thread before partial results are merged. Part of the definition of every sum:
/// changing it changes last bits.
pub(crate) const CHUNK_ELEMENTS: usize = 1 << 16;

/// Below this size waking another thread costs more than it saves.
const PARALLEL_ELEMENTS: usize = 4 * CHUNK_ELEMENTS;

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
    if numel < PARALLEL_ELEMENTS {
        (0..count).map(chunk).reduce(merge)
    } else {
        let partials: Vec<P> = (0..count).into_par_iter().map(chunk).collect();
        partials.into_iter().reduce(merge)
    }
}
