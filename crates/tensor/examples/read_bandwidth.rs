//! Plain read bandwidth of this machine in GB/s, the yardstick of `bench/run.py`: the best of several passes of
//! two threads over a buffer of the given number of bytes, doing nothing but XOR.

use std::hint::black_box;
use std::time::Instant;

const THREADS: usize = 2;
const PASSES: usize = 15;

fn main() {
    let bytes: usize = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).unwrap_or(64 << 20);
    let words: Vec<u64> = (0..bytes as u64 / 8).collect();
    let best_secs = (0..PASSES).map(|_| one_pass(&words)).fold(f64::INFINITY, f64::min);
    println!("{:.3}", bytes as f64 / best_secs / 1e9);
}

fn one_pass(words: &[u64]) -> f64 {
    let start = Instant::now();
    std::thread::scope(|scope| {
        for part in words.chunks(words.len().div_ceil(THREADS)) {
            scope.spawn(move || black_box(part.iter().fold(0, |xor, word| xor ^ word)));
        }
    });
    start.elapsed().as_secs_f64()
}
