//! Any bytes at all, opened as a file called `.pt`; what its content says otherwise is followed too.
#![no_main]

use libfuzzer_sys::fuzz_target;
use msprobe_tensor::files::Index;

fuzz_target!(|file: &[u8]| {
    if let Ok((_, index)) = Index::parse(Some("pt"), file) {
        msprobe_fuzz::read_tensors(&index, file);
    }
});
