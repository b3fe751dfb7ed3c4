//! Which dtypes may stand next to each other.

use msprobe_tensor::{DType, DTypeClass};

const INTERCHANGEABLE: [[&str; 3]; 2] =
    [["Float16", "Float32", "BFloat16"], ["torch.float16", "torch.float32", "torch.bfloat16"]];

/// Whether two dtype cells may be compared: equal, or both among the float types of one framework.
pub fn dtypes_agree(target: &str, golden: &str) -> bool {
    target == golden || INTERCHANGEABLE.iter().any(|group| group.contains(&target) && group.contains(&golden))
}

/// The family of a dtype, for comparing across frameworks: `int`, `float`, `bool`, `complex`; others unchanged.
pub fn fold_to_family(dtype: &str) -> &str {
    // As frameworks write them: `torch.float32`, `Float32`.
    let is_known = dtype.starts_with("torch.") || dtype.starts_with(|first: char| first.is_ascii_uppercase());
    match DType::parse(dtype).filter(|_| is_known).map(DType::class) {
        Some(DTypeClass::Unsigned | DTypeClass::Signed) => "int",
        Some(DTypeClass::Float) => "float",
        Some(DTypeClass::Bool) => "bool",
        Some(DTypeClass::Complex) => "complex",
        None => dtype,
    }
}
