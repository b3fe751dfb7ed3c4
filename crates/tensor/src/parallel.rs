//! Splitting a tensor into chunks of fixed size, so that results do not depend on the number of threads, and
//! chunks into blocks that stay in L1.

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use crate::decode::Decoded;
use crate::view::{BLOCK_ELEMENTS, Element};

/// Elements reduced on one thread before partial results are merged. Part of the definition of every sum:
/// changing it changes last bits.
pub(crate) const CHUNK_ELEMENTS: usize = 1 << 16;

/// Below this size waking another thread costs more than it saves.
const PARALLEL_ELEMENTS: usize = 4 * CHUNK_ELEMENTS;

/// Threads of somebody else: calls the job on several of them at once, this one included, and returns when all are done.
/// The job may be called any number of times, also none.
pub type Crew = fn(&(dyn Fn() + Sync));

/// Who helps.
#[derive(Clone, Copy)]
enum Help {
    /// The current rayon pool.
    Pool,
    Nobody,
    Crew(Crew),
}

thread_local! {
    static HELP: Cell<Help> = const { Cell::new(Help::Pool) };
}

fn helped<T>(help: Help, work: impl FnOnce() -> T) -> T {
    struct Reset(Help);
    impl Drop for Reset {
        fn drop(&mut self) {
            HELP.set(self.0);
        }
    }
    let _reset = Reset(HELP.replace(help));
    work()
}

/// Runs `work` without help of other threads, with the same results. For callers in the middle of a computation
/// whose own threads own the cores.
pub fn on_this_thread<T>(work: impl FnOnce() -> T) -> T {
    helped(Help::Nobody, work)
}

/// Runs `work` with the help of threads that are there anyway and wait, with the same results.
pub fn with_crew<T>(crew: Crew, work: impl FnOnce() -> T) -> T {
    helped(Help::Crew(crew), work)
}

/// Something else to do with each chunk while it is in cache. Called once per chunk, in any order.
pub(crate) type OnChunk<'a> = &'a (dyn Fn(Range<usize>) + Sync);

/// Maps fixed chunks of `0..numel` (on several threads when there are many) and merges the results
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
    match HELP.get() {
        Help::Pool if numel >= PARALLEL_ELEMENTS => {
            let partials: Vec<P> = (0..count).into_par_iter().map(chunk).collect();
            partials.into_iter().reduce(merge)
        }
        Help::Crew(crew) if count > 1 => map_with_crew(crew, count, chunk).into_iter().reduce(merge),
        _ => (0..count).map(chunk).reduce(merge),
    }
}

/// The results for `0..count`, in order. Everybody takes the next number until there is none.
fn map_with_crew<P: Send>(crew: Crew, count: usize, map: impl Fn(usize) -> P + Sync) -> Vec<P> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, P)>> = Mutex::new(Vec::with_capacity(count));
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return;
            }
            let result = map(index);
            results.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
        }
    };
    crew(&work);
    // Nobody may have come.
    work();
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(results.len(), count, "a helper panicked");
    results.sort_unstable_by_key(|&(index, _)| index);
    results.into_iter().map(|(_, result)| result).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn order_of(numel: usize) -> Vec<usize> {
        let joined = |mut a: Vec<usize>, b: Vec<usize>| {
            a.extend(b);
            a
        };
        map_chunks(numel, |range| vec![range.start, range.end], joined).unwrap_or_default()
    }

    #[test]
    fn whoever_helps_results_are_merged_in_order() {
        let nobody_comes: Crew = |_| {};
        let many: Crew = |job| {
            std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(job))));
        };
        for numel in [0, 1, CHUNK_ELEMENTS, CHUNK_ELEMENTS + 1, 20 * CHUNK_ELEMENTS + 7] {
            let expected = on_this_thread(|| order_of(numel));
            assert_eq!(order_of(numel), expected);
            for crew in [nobody_comes, many] {
                assert_eq!(with_crew(crew, || order_of(numel)), expected);
            }
        }
    }
}
