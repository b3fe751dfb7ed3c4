//! What a sketch costs beside statistics, in nanoseconds per 1000 elements that lie in cache: the best of many passes
//! on one thread.

use std::hint::black_box;
use std::time::Instant;

use msprobe_tensor::{DType, TensorView, on_this_thread, statistics, statistics_and_sketch};

const PASSES: usize = 400;

fn main() {
    for (dtype, shape) in [
        (DType::F32, &[128, 1024][..]),
        (DType::BF16, &[128, 1024]),
        (DType::F32, &[256, 512]),
        (DType::F32, &[131_072]),
        (DType::F16, &[128, 1024]),
        (DType::F64, &[128, 1024]),
        (DType::F32, &[8, 1024]),
        (DType::F32, &[16, 64]),
        (DType::F32, &[64]),
    ] {
        let count: usize = shape.iter().product();
        // Ordinary numbers in any float type: small exponents.
        let bytes: Vec<u8> =
            (0..count * dtype.size_bytes()).map(|at| (at * 167 % 251) as u8 & 0xb7).collect();
        let Ok(view) = TensorView::contiguous(dtype, shape.to_vec(), &bytes) else { continue };
        let [plain, sketched] = on_this_thread(|| {
            let mut best = [f64::INFINITY; 2];
            for _ in 0..PASSES {
                let start = Instant::now();
                black_box(statistics(black_box(&view)));
                let middle = Instant::now();
                black_box(statistics_and_sketch(black_box(&view)));
                let times = [middle - start, middle.elapsed()];
                for (best, time) in best.iter_mut().zip(times) {
                    *best = best.min(time.as_secs_f64());
                }
            }
            best.map(|secs| secs * 1e9)
        });
        println!(
            "{dtype} {shape:?}: {plain:.0} ns, with a sketch {sketched:.0} ns, {:.2} times",
            sketched / plain
        );
    }
}
