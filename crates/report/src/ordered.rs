//! Pieces of a long table made on all cores and handed on in order, a bounded number of them at a time.

use std::io;
use std::ops::Range;

use rayon::prelude::*;

/// Pieces in the making, per thread. More than one, so that a thread that is done early finds another.
const PIECES_PER_THREAD: usize = 4;
/// However many threads there are: memory stays bounded.
const MOST_PIECES: usize = 64;
/// Cells of a piece: enough to make handing over cheap, few enough to stay small in memory.
const CELLS_PER_PIECE: usize = 16_384;

/// Rows of a piece of a table with that many columns.
pub(crate) fn rows_per_piece(columns: usize) -> usize {
    (CELLS_PER_PIECE / columns.max(1)).clamp(16, 4096)
}

/// Calls `make` for every stretch of `piece` rows, on all cores, and `take` with the results in order, on this thread.
/// The next pieces are made while the last ones are taken.
pub(crate) fn in_order<T: Send>(
    rows: Range<usize>,
    piece: usize,
    make: impl Fn(Range<usize>) -> T + Sync,
    mut take: impl FnMut(T) -> io::Result<()>,
) -> io::Result<()> {
    let batch = (rayon::current_num_threads() * PIECES_PER_THREAD).clamp(1, MOST_PIECES);
    let piece = piece.max(1);
    let mut next = rows.start;
    let mut ready: Vec<T> = Vec::new();
    loop {
        let mut stretches = Vec::with_capacity(batch);
        while next < rows.end && stretches.len() < batch {
            let end = next.saturating_add(piece).min(rows.end);
            stretches.push(next..end);
            next = end;
        }
        let mut made: Vec<T> = Vec::new();
        let taken = rayon::in_place_scope(|scope| {
            if !stretches.is_empty() {
                scope.spawn(|_| made = stretches.into_par_iter().map(&make).collect());
            }
            ready.drain(..).try_for_each(&mut take)
        });
        taken?;
        if made.is_empty() {
            return Ok(());
        }
        ready = made;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_order_and_stops_at_an_error() {
        let mut seen = Vec::new();
        in_order(5..10_000, 7, Iterator::collect::<Vec<_>>, |rows| {
            seen.extend(rows);
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, (5..10_000).collect::<Vec<_>>());
        let mut calls = 0;
        let result = in_order(
            0..1000,
            1,
            |rows| rows,
            |_| {
                calls += 1;
                if calls == 3 { Err(io::Error::other("full")) } else { Ok(()) }
            },
        );
        assert_eq!((result.unwrap_err().to_string().as_str(), calls), ("full", 3));
    }

    #[test]
    fn no_rows_are_no_pieces() {
        in_order(3..3, 10, |rows| rows, |_| Err(io::Error::other("nothing to take"))).unwrap();
    }
}
