//! Element types, and the names each framework gives them.

use std::fmt;

/// The type of one element of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are the documentation")]
pub enum DType {
    Bool,
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F16,
    BF16,
    F32,
    F64,
    C64,
    C128,
    F8E4M3FN,
    F8E5M2,
    F8E4M3FNUZ,
    F8E5M2FNUZ,
}

/// Broad families that share rules (how statistics are defined, whether arithmetic wraps, …).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are the documentation")]
pub enum DTypeClass {
    Bool,
    Unsigned,
    Signed,
    Float,
    Complex,
}

struct Names {
    dtype: DType,
    size_bytes: usize,
    class: DTypeClass,
    /// Without the `torch.` prefix; the second is an alias torch also prints or accepts.
    torch: &'static str,
    torch_alias: Option<&'static str>,
    /// numpy's name (bfloat16 and float8 as registered by ml_dtypes).
    numpy: &'static str,
    /// `str(dtype)` in MindSpore.
    mindspore: &'static str,
    safetensors: &'static str,
}

#[allow(clippy::too_many_arguments, reason = "one row of the table below, a column each")]
const fn names(
    dtype: DType,
    size_bytes: usize,
    class: DTypeClass,
    torch: &'static str,
    torch_alias: Option<&'static str>,
    numpy: &'static str,
    mindspore: &'static str,
    safetensors: &'static str,
) -> Names {
    Names { dtype, size_bytes, class, torch, torch_alias, numpy, mindspore, safetensors }
}

/// One row per dtype, in the order of the enum.
#[rustfmt::skip]
const TABLE: [Names; 19] = {
    use DType as D;
    use DTypeClass as C;
    [
        names(D::Bool, 1, C::Bool, "bool", None, "bool", "Bool", "BOOL"),
        names(D::U8, 1, C::Unsigned, "uint8", None, "uint8", "UInt8", "U8"),
        names(D::U16, 2, C::Unsigned, "uint16", None, "uint16", "UInt16", "U16"),
        names(D::U32, 4, C::Unsigned, "uint32", None, "uint32", "UInt32", "U32"),
        names(D::U64, 8, C::Unsigned, "uint64", None, "uint64", "UInt64", "U64"),
        names(D::I8, 1, C::Signed, "int8", None, "int8", "Int8", "I8"),
        names(D::I16, 2, C::Signed, "int16", Some("short"), "int16", "Int16", "I16"),
        names(D::I32, 4, C::Signed, "int32", Some("int"), "int32", "Int32", "I32"),
        names(D::I64, 8, C::Signed, "int64", Some("long"), "int64", "Int64", "I64"),
        names(D::F16, 2, C::Float, "float16", Some("half"), "float16", "Float16", "F16"),
        names(D::BF16, 2, C::Float, "bfloat16", None, "bfloat16", "BFloat16", "BF16"),
        names(D::F32, 4, C::Float, "float32", Some("float"), "float32", "Float32", "F32"),
        names(D::F64, 8, C::Float, "float64", Some("double"), "float64", "Float64", "F64"),
        names(D::C64, 8, C::Complex, "complex64", Some("cfloat"), "complex64", "Complex64", "C64"),
        names(D::C128, 16, C::Complex, "complex128", Some("cdouble"), "complex128", "Complex128", "C128"),
        names(D::F8E4M3FN, 1, C::Float, "float8_e4m3fn", None, "float8_e4m3fn", "Float8E4M3FN", "F8_E4M3"),
        names(D::F8E5M2, 1, C::Float, "float8_e5m2", None, "float8_e5m2", "Float8E5M2", "F8_E5M2"),
        names(D::F8E4M3FNUZ, 1, C::Float, "float8_e4m3fnuz", None, "float8_e4m3fnuz", "Float8E4M3FNUZ", "F8_E4M3FNUZ"),
        names(D::F8E5M2FNUZ, 1, C::Float, "float8_e5m2fnuz", None, "float8_e5m2fnuz", "Float8E5M2FNUZ", "F8_E5M2FNUZ"),
    ]
};

impl DType {
    /// Every dtype there is.
    pub fn all() -> impl Iterator<Item = DType> {
        TABLE.iter().map(|row| row.dtype)
    }

    fn row(self) -> &'static Names {
        &TABLE[self as usize]
    }

    /// Bytes of one element.
    pub fn size_bytes(self) -> usize {
        self.row().size_bytes
    }

    /// The family this dtype belongs to.
    pub fn class(self) -> DTypeClass {
        self.row().class
    }

    /// Whether this is one of the four 8-bit float formats.
    pub fn is_float8(self) -> bool {
        self.class() == DTypeClass::Float && self.size_bytes() == 1
    }

    /// The name without a framework prefix, which torch and numpy share: `float32`.
    pub fn name(self) -> &'static str {
        self.row().torch
    }

    /// `str(dtype)` in PyTorch: `torch.float32`.
    pub fn torch_name(self) -> String {
        format!("torch.{}", self.row().torch)
    }

    /// numpy's name: `float32`, `bfloat16` (ml_dtypes).
    pub fn numpy_name(self) -> &'static str {
        self.row().numpy
    }

    /// `str(dtype)` in MindSpore: `Float32`.
    pub fn mindspore_name(self) -> &'static str {
        self.row().mindspore
    }

    /// The tag in a `.safetensors` header: `F32`.
    pub fn safetensors_name(self) -> &'static str {
        self.row().safetensors
    }

    /// Reads a PyTorch name, with or without the `torch.` prefix, long or short form.
    pub fn from_torch_name(name: &str) -> Option<DType> {
        let bare = name.strip_prefix("torch.").unwrap_or(name);
        Self::find(|row| row.torch == bare || row.torch_alias == Some(bare))
    }

    /// Reads a numpy name, with or without the `numpy.` prefix. `bool_` is numpy's own alias.
    pub fn from_numpy_name(name: &str) -> Option<DType> {
        let bare = name.strip_prefix("numpy.").or_else(|| name.strip_prefix("np.")).unwrap_or(name);
        Self::find(|row| row.numpy == bare || (bare == "bool_" && row.dtype == DType::Bool))
    }

    /// Reads a MindSpore name: `Float32`, also `mindspore.float32`.
    pub fn from_mindspore_name(name: &str) -> Option<DType> {
        match name.strip_prefix("mindspore.") {
            Some(bare) => {
                Self::find(|row| row.torch == bare || (bare == "bool_" && row.dtype == DType::Bool))
            }
            None => Self::find(|row| row.mindspore == name),
        }
    }

    /// Reads a `.safetensors` header tag.
    pub fn from_safetensors_name(name: &str) -> Option<DType> {
        Self::find(|row| row.safetensors == name)
    }

    /// Reads a name in any of the four spellings.
    pub fn parse(name: &str) -> Option<DType> {
        Self::from_torch_name(name)
            .or_else(|| Self::from_numpy_name(name))
            .or_else(|| Self::from_mindspore_name(name))
            .or_else(|| Self::from_safetensors_name(name))
    }

    fn find(matches: impl Fn(&Names) -> bool) -> Option<DType> {
        TABLE.iter().find(|row| matches(row)).map(|row| row.dtype)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_rows_stand_where_the_enum_expects_them() {
        for (index, row) in TABLE.iter().enumerate() {
            assert_eq!(row.dtype as usize, index);
        }
    }

    #[test]
    fn every_name_maps_back() {
        for dtype in DType::all() {
            assert_eq!(DType::from_torch_name(&dtype.torch_name()), Some(dtype));
            assert_eq!(DType::from_numpy_name(dtype.numpy_name()), Some(dtype));
            assert_eq!(DType::from_mindspore_name(dtype.mindspore_name()), Some(dtype));
            assert_eq!(DType::from_safetensors_name(dtype.safetensors_name()), Some(dtype));
            assert_eq!(DType::parse(dtype.mindspore_name()), Some(dtype));
            assert_eq!(DType::parse(dtype.safetensors_name()), Some(dtype));
        }
    }

    #[test]
    fn aliases_and_prefixes() {
        assert_eq!(DType::from_torch_name("torch.half"), Some(DType::F16));
        assert_eq!(DType::from_torch_name("long"), Some(DType::I64));
        assert_eq!(DType::from_numpy_name("numpy.bool_"), Some(DType::Bool));
        assert_eq!(DType::from_mindspore_name("mindspore.bfloat16"), Some(DType::BF16));
        assert_eq!(DType::parse("torch.quint8"), None);
    }
}
