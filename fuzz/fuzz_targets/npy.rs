//! Any bytes at all, taken for a `.npy` file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use msprobe_tensor::files::npy;

fuzz_target!(|file: &[u8]| {
    if let Ok(index) = npy::parse(file) {
        msprobe_fuzz::read_tensors(&index, file);
    }
});
