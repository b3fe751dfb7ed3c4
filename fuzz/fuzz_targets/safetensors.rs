//! Any bytes at all, taken for a `.safetensors` file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use msprobe_tensor::files::safetensors;

fuzz_target!(|file: &[u8]| {
    if let Ok(index) = safetensors::parse(file) {
        msprobe_fuzz::read_tensors(&index, file);
    }
});
