//! Recorded cases of the PyTorch collector, in `tests/golden/dump_pytorch`.

use std::fs;
use std::path::Path;

use msprobe_dump::framework::Framework;
use msprobe_dump::names::TensorFormat;
use serde_json::Value;

/// The words of the framework the cases were recorded with.
pub(crate) fn framework() -> Framework {
    let prefixes = [
        "Distributed",
        "Functional",
        "Torch",
        "Tensor",
        "Mint",
        "MintFunctional",
        "Primitive",
        "Aten",
        "VF",
        "NPU",
        "Jit",
    ];
    Framework {
        name: "pytorch".to_owned(),
        tensor_type: "torch.Tensor".to_owned(),
        size_type: "torch.Size".to_owned(),
        tensor_format: TensorFormat::Pt,
        api_prefixes: prefixes.map(str::to_owned).to_vec(),
        foreign_keys: Vec::new(),
        tells_autograd: true,
        tells_places: true,
        measures_singles: false,
    }
}

/// A JSON file of the recorded cases. Infinite values, which JSON has no numbers for, become null.
pub(crate) fn json(path: &str) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/dump_pytorch");
    let text = fs::read_to_string(root.join(path)).unwrap();
    let text = text.replace(": -Infinity", ": null").replace(": Infinity", ": null");
    serde_json::from_str(&text).unwrap()
}
