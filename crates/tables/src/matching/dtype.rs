//! Which dtypes may stand next to each other.

use std::borrow::Cow;

const INTERCHANGEABLE: [[&str; 3]; 2] =
    [["Float16", "Float32", "BFloat16"], ["torch.float16", "torch.float32", "torch.bfloat16"]];

/// Whether two dtype cells may be compared: equal, or both among the float types of one framework.
pub fn dtypes_agree(target: &str, golden: &str) -> bool {
    target == golden || INTERCHANGEABLE.iter().any(|group| group.contains(&target) && group.contains(&golden))
}

/// The family of a dtype, for comparing across frameworks: `int`, `float`, `bool`, `complex`; others unchanged.
pub fn fold_to_family(dtype: &str) -> Cow<'_, str> {
    let bare = dtype.strip_prefix("torch.").unwrap_or(dtype).to_ascii_lowercase();
    let known = dtype.starts_with("torch.") || dtype.starts_with(|first: char| first.is_ascii_uppercase());
    let family = match bare.as_str() {
        "int8" | "int16" | "int32" | "int64" | "uint8" | "uint16" | "uint32" | "uint64" => "int",
        "float16" | "float32" | "float64" | "bfloat16" => "float",
        "bool" => "bool",
        "complex64" | "complex128" => "complex",
        _ => return Cow::Borrowed(dtype),
    };
    if known { Cow::Borrowed(family) } else { Cow::Borrowed(dtype) }
}
