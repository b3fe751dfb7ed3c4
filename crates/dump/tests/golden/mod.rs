//! Recorded cases of the PyTorch collector, in `tests/golden/dump_pytorch`.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// A JSON file of the recorded cases. Infinite values, which JSON has no numbers for, become null.
pub(crate) fn json(path: &str) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/dump_pytorch");
    let text = fs::read_to_string(root.join(path)).unwrap();
    let text = text.replace(": -Infinity", ": null").replace(": Infinity", ": null");
    serde_json::from_str(&text).unwrap()
}
