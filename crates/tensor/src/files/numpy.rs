//! What `.npy` files and pickled numpy arrays have in common.

use crate::DType;
use crate::view::{ViewError, contiguous_strides};

/// The dtype of a type code without its byte order: `f4`, `i8`.
pub(super) fn dtype_from_code(code: &str) -> Option<DType> {
    Some(match code {
        "b1" | "?" => DType::Bool,
        "u1" => DType::U8,
        "u2" => DType::U16,
        "u4" => DType::U32,
        "u8" => DType::U64,
        "i1" => DType::I8,
        "i2" => DType::I16,
        "i4" => DType::I32,
        "i8" => DType::I64,
        "f2" => DType::F16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        "c8" => DType::C64,
        "c16" => DType::C128,
        _ => return None,
    })
}

/// Strides of an array without gaps; in Fortran order the first dimension varies fastest.
pub(super) fn array_strides(shape: &[usize], fortran_order: bool) -> Result<Vec<isize>, ViewError> {
    let too_large = || ViewError::TooLarge { shape: shape.to_vec() };
    if !fortran_order {
        return contiguous_strides(shape).ok_or_else(too_large);
    }
    let reversed: Vec<usize> = shape.iter().rev().copied().collect();
    let mut strides = contiguous_strides(&reversed).ok_or_else(too_large)?;
    strides.reverse();
    Ok(strides)
}
