//! Any bytes at all, taken for a mapping file in YAML.
#![no_main]

use libfuzzer_sys::fuzz_target;
use msprobe_tables::mapping::data_mapping;

fuzz_target!(|file: &[u8]| {
    let _ = data_mapping(&msprobe_fuzz::written("mapping.yaml", file));
});
