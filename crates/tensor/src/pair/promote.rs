//! The type in which numpy would compute with two dtypes, which the recorded error figures depend on.

use crate::{DType, DTypeClass};

/// numpy's `result_type` of two dtypes. bfloat16 and float8, unknown to numpy, count as float32.
pub(super) fn result_type(a: DType, b: DType) -> DType {
    let (a, b) = (numpy_native(a), numpy_native(b));
    if a == b {
        return a;
    }
    let (low, high) = if rank(a) <= rank(b) { (a, b) } else { (b, a) };
    match (low.class(), high.class()) {
        (DTypeClass::Bool, _) => high,
        (DTypeClass::Unsigned, DTypeClass::Signed) => mixed_signs(low, high),
        (DTypeClass::Unsigned | DTypeClass::Signed, DTypeClass::Float) => float_holding(low, high),
        (DTypeClass::Unsigned | DTypeClass::Signed, DTypeClass::Complex) => {
            if low.size_bytes() <= 2 {
                high
            } else {
                DType::C128
            }
        }
        (DTypeClass::Float, DTypeClass::Complex) => {
            if low == DType::F64 {
                DType::C128
            } else {
                high
            }
        }
        _ => {
            if low.size_bytes() >= high.size_bytes() {
                low
            } else {
                high
            }
        }
    }
}

fn numpy_native(dtype: DType) -> DType {
    if dtype == DType::BF16 || dtype.is_float8() { DType::F32 } else { dtype }
}

fn rank(dtype: DType) -> u8 {
    match dtype.class() {
        DTypeClass::Bool => 0,
        DTypeClass::Unsigned => 1,
        DTypeClass::Signed => 2,
        DTypeClass::Float => 3,
        DTypeClass::Complex => 4,
    }
}

fn mixed_signs(unsigned: DType, signed: DType) -> DType {
    if unsigned.size_bytes() < signed.size_bytes() {
        return signed;
    }
    match unsigned {
        DType::U8 => DType::I16,
        DType::U16 => DType::I32,
        DType::U32 => DType::I64,
        _ => DType::F64,
    }
}

fn float_holding(integer: DType, float: DType) -> DType {
    let needed = match integer.size_bytes() {
        1 => DType::F16,
        2 => DType::F32,
        _ => DType::F64,
    };
    if needed.size_bytes() > float.size_bytes() { needed } else { float }
}
