//! The names a pickle may refer to. Nothing here is ever imported or called: each name stands for a way to
//! read the arguments as data. Everything else is refused.

use crate::DType;

/// What an allow-listed name means to this reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Global {
    /// `dict` and its subclasses that carry nothing but items.
    Dict,
    /// As `Dict`, but the first argument is the factory of missing values.
    DefaultDict,
    Set,
    List,
    Tuple,
    /// `int`, `float`, `bool`, `str` and enums of ints: the one argument is the value.
    Scalar,
    Bytes,
    /// `_codecs.encode`: bytes written as text before protocol 3.
    Encode,
    /// A class whose arguments or attributes are kept as they are.
    Object,
    /// `torch.Size`: the one argument is the tuple.
    Size,
    /// `numpy.ndarray`, `torch.Tensor`, …: named, never built directly.
    Class,
    /// `torch.<dtype>`, or a scalar type of ml_dtypes. `None`: a dtype this codebase has no decoder for.
    DType(Option<DType>),
    /// `torch.FloatStorage`, …; `None` is bytes without a dtype.
    Storage(Option<DType>),
    /// A storage of a quantized or otherwise undecodable dtype.
    OpaqueStorage,
    /// A storage named by a persistent id (no global: the pickle machine makes these).
    Persistent,
    RebuildTensor,
    RebuildTensorV2,
    RebuildTensorV3,
    /// The first argument is the tensor.
    RebuildParameter,
    RebuildParameterWithState,
    RebuildFromType,
    /// The first argument is an array, to be cast to the dtype that is the second.
    RebuildDeviceTensor,
    /// A tensor of a kind that is recognised but not decoded.
    OpaqueTensor,
    NumpyReconstruct,
    NumpyFromBuffer,
    NumpyScalar,
    NumpyDType,
}

/// A name of the allow-list.
#[derive(Debug)]
pub(crate) struct GlobalName {
    /// Python module.
    pub(crate) module: &'static str,
    /// Name in the module.
    pub(crate) name: &'static str,
    /// How it is read.
    pub(crate) meaning: Global,
}

const fn row(module: &'static str, name: &'static str, meaning: Global) -> GlobalName {
    GlobalName { module, name, meaning }
}

/// Index into the allow-list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GlobalId(u16);

impl GlobalId {
    /// What persistent ids become.
    pub(super) const PERSISTENT: GlobalId = GlobalId(0);

    pub(crate) fn get(self) -> &'static GlobalName {
        TABLE.get(self.0 as usize).unwrap_or(&TABLE[0])
    }

    pub(crate) fn meaning(self) -> Global {
        self.get().meaning
    }

    /// The allow-listed name, if it is one.
    pub(super) fn find(module: &str, name: &str) -> Option<GlobalId> {
        // Row 0 has no name of its own.
        let index = 1 + TABLE.get(1..)?.iter().position(|row| row.name == name && row.module == module)?;
        Some(GlobalId(index as u16))
    }
}

use Global as G;

#[rustfmt::skip]
static TABLE: &[GlobalName] = &[
    row("", "persistent id", G::Persistent),
    row("collections", "OrderedDict", G::Dict),
    row("torch._utils", "_rebuild_tensor_v2", G::RebuildTensorV2),
    row("collections", "defaultdict", G::DefaultDict),
    row("collections", "Counter", G::Dict),
    row("_codecs", "encode", G::Encode),
    row("builtins", "dict", G::Dict),
    row("builtins", "set", G::Set),
    row("builtins", "frozenset", G::Set),
    row("builtins", "list", G::List),
    row("builtins", "tuple", G::Tuple),
    row("builtins", "int", G::Scalar),
    row("builtins", "float", G::Scalar),
    row("builtins", "bool", G::Scalar),
    row("builtins", "str", G::Scalar),
    row("builtins", "bytes", G::Bytes),
    row("builtins", "bytearray", G::Bytes),
    row("builtins", "complex", G::Object),
    row("builtins", "slice", G::Object),
    row("__builtin__", "dict", G::Dict),
    row("__builtin__", "set", G::Set),
    row("__builtin__", "frozenset", G::Set),
    row("__builtin__", "list", G::List),
    row("__builtin__", "tuple", G::Tuple),
    row("__builtin__", "int", G::Scalar),
    row("__builtin__", "long", G::Scalar),
    row("__builtin__", "float", G::Scalar),
    row("__builtin__", "bool", G::Scalar),
    row("__builtin__", "str", G::Scalar),
    row("__builtin__", "unicode", G::Scalar),
    row("__builtin__", "bytes", G::Bytes),
    row("__builtin__", "bytearray", G::Bytes),
    row("__builtin__", "complex", G::Object),
    row("__builtin__", "slice", G::Object),
    row("argparse", "Namespace", G::Object),
    row("types", "SimpleNamespace", G::Object),
    row("pathlib", "PosixPath", G::Object),
    row("pathlib", "PurePosixPath", G::Object),
    row("pathlib", "WindowsPath", G::Object),
    row("pathlib", "PureWindowsPath", G::Object),
    // Python 3.13 moved the classes, and pickles say so.
    row("pathlib._local", "PosixPath", G::Object),
    row("pathlib._local", "PurePosixPath", G::Object),
    row("pathlib._local", "WindowsPath", G::Object),
    row("pathlib._local", "PureWindowsPath", G::Object),
    row("torch._utils", "_rebuild_tensor", G::RebuildTensor),
    row("torch._utils", "_rebuild_tensor_v3", G::RebuildTensorV3),
    row("torch._utils", "_rebuild_parameter", G::RebuildParameter),
    row("torch._utils", "_rebuild_parameter_with_state", G::RebuildParameterWithState),
    row("torch._utils", "_rebuild_device_tensor_from_numpy", G::RebuildDeviceTensor),
    row("torch._utils", "_rebuild_device_tensor_from_cpu_tensor", G::RebuildDeviceTensor),
    row("torch._utils", "_rebuild_meta_tensor_no_storage", G::OpaqueTensor),
    row("torch._utils", "_rebuild_sparse_tensor", G::OpaqueTensor),
    row("torch._utils", "_rebuild_sparse_csr_tensor", G::OpaqueTensor),
    row("torch._utils", "_rebuild_qtensor", G::OpaqueTensor),
    row("torch._utils", "_rebuild_nested_tensor", G::OpaqueTensor),
    row("torch._utils", "_rebuild_wrapper_subclass", G::OpaqueTensor),
    row("torch._tensor", "_rebuild_from_type_v2", G::RebuildFromType),
    // Ascend: what torch_npu wrote for tensors on the device; the storage is ordinary.
    row("torch_npu.utils.storage", "_rebuild_npu_tensor", G::RebuildTensor),
    row("torch_npu.npu._format", "Format", G::Scalar),
    row("torch", "Tensor", G::Class),
    row("torch.nn.parameter", "Parameter", G::Class),
    row("torch.nn.parameter", "Buffer", G::Class),
    row("torch", "Size", G::Size),
    row("torch", "device", G::Object),
    row("torch.serialization", "_get_layout", G::Object),
    row("torch", "per_tensor_affine", G::Class),
    row("torch", "per_channel_affine", G::Class),
    row("torch", "per_channel_affine_float_qparams", G::Class),
    row("torch", "FloatStorage", G::Storage(Some(DType::F32))),
    row("torch", "DoubleStorage", G::Storage(Some(DType::F64))),
    row("torch", "HalfStorage", G::Storage(Some(DType::F16))),
    row("torch", "BFloat16Storage", G::Storage(Some(DType::BF16))),
    row("torch", "ByteStorage", G::Storage(Some(DType::U8))),
    row("torch", "CharStorage", G::Storage(Some(DType::I8))),
    row("torch", "ShortStorage", G::Storage(Some(DType::I16))),
    row("torch", "IntStorage", G::Storage(Some(DType::I32))),
    row("torch", "LongStorage", G::Storage(Some(DType::I64))),
    row("torch", "BoolStorage", G::Storage(Some(DType::Bool))),
    row("torch", "ComplexFloatStorage", G::Storage(Some(DType::C64))),
    row("torch", "ComplexDoubleStorage", G::Storage(Some(DType::C128))),
    row("torch", "UntypedStorage", G::Storage(None)),
    row("torch.storage", "UntypedStorage", G::Storage(None)),
    row("torch.storage", "TypedStorage", G::OpaqueStorage),
    row("torch", "QInt8Storage", G::OpaqueStorage),
    row("torch", "QUInt8Storage", G::OpaqueStorage),
    row("torch", "QInt32Storage", G::OpaqueStorage),
    row("torch", "QUInt4x2Storage", G::OpaqueStorage),
    row("torch", "QUInt2x4Storage", G::OpaqueStorage),
    row("torch", "bool", G::DType(Some(DType::Bool))),
    row("torch", "uint8", G::DType(Some(DType::U8))),
    row("torch", "uint16", G::DType(Some(DType::U16))),
    row("torch", "uint32", G::DType(Some(DType::U32))),
    row("torch", "uint64", G::DType(Some(DType::U64))),
    row("torch", "int8", G::DType(Some(DType::I8))),
    row("torch", "int16", G::DType(Some(DType::I16))),
    row("torch", "int32", G::DType(Some(DType::I32))),
    row("torch", "int64", G::DType(Some(DType::I64))),
    row("torch", "float16", G::DType(Some(DType::F16))),
    row("torch", "bfloat16", G::DType(Some(DType::BF16))),
    row("torch", "float32", G::DType(Some(DType::F32))),
    row("torch", "float64", G::DType(Some(DType::F64))),
    row("torch", "complex64", G::DType(Some(DType::C64))),
    row("torch", "complex128", G::DType(Some(DType::C128))),
    row("torch", "float8_e4m3fn", G::DType(Some(DType::F8E4M3FN))),
    row("torch", "float8_e5m2", G::DType(Some(DType::F8E5M2))),
    row("torch", "float8_e4m3fnuz", G::DType(Some(DType::F8E4M3FNUZ))),
    row("torch", "float8_e5m2fnuz", G::DType(Some(DType::F8E5M2FNUZ))),
    row("torch", "float8_e8m0fnu", G::DType(None)),
    row("torch", "float4_e2m1fn_x2", G::DType(None)),
    row("torch", "complex32", G::DType(None)),
    row("torch", "bcomplex32", G::DType(None)),
    row("torch", "bits8", G::DType(None)),
    row("torch", "bits16", G::DType(None)),
    row("torch", "bits1x8", G::DType(None)),
    row("torch", "bits2x4", G::DType(None)),
    row("torch", "bits4x2", G::DType(None)),
    row("torch", "qint8", G::DType(None)),
    row("torch", "qint32", G::DType(None)),
    row("torch", "quint8", G::DType(None)),
    row("torch", "quint4x2", G::DType(None)),
    row("torch", "quint2x4", G::DType(None)),
    row("torch", "int1", G::DType(None)),
    row("torch", "int2", G::DType(None)),
    row("torch", "int3", G::DType(None)),
    row("torch", "int4", G::DType(None)),
    row("torch", "int5", G::DType(None)),
    row("torch", "int6", G::DType(None)),
    row("torch", "int7", G::DType(None)),
    row("torch", "uint1", G::DType(None)),
    row("torch", "uint2", G::DType(None)),
    row("torch", "uint3", G::DType(None)),
    row("torch", "uint4", G::DType(None)),
    row("torch", "uint5", G::DType(None)),
    row("torch", "uint6", G::DType(None)),
    row("torch", "uint7", G::DType(None)),
    row("ml_dtypes", "bfloat16", G::DType(Some(DType::BF16))),
    row("ml_dtypes", "float8_e4m3fn", G::DType(Some(DType::F8E4M3FN))),
    row("ml_dtypes", "float8_e5m2", G::DType(Some(DType::F8E5M2))),
    row("ml_dtypes", "float8_e4m3fnuz", G::DType(Some(DType::F8E4M3FNUZ))),
    row("ml_dtypes", "float8_e5m2fnuz", G::DType(Some(DType::F8E5M2FNUZ))),
    row("numpy", "ndarray", G::Class),
    row("numpy", "dtype", G::NumpyDType),
    row("numpy.core.multiarray", "_reconstruct", G::NumpyReconstruct),
    row("numpy._core.multiarray", "_reconstruct", G::NumpyReconstruct),
    row("numpy.core.multiarray", "scalar", G::NumpyScalar),
    row("numpy._core.multiarray", "scalar", G::NumpyScalar),
    row("numpy.core.numeric", "_frombuffer", G::NumpyFromBuffer),
    row("numpy._core.numeric", "_frombuffer", G::NumpyFromBuffer),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_once_and_nothing_else_is() {
        for (index, row) in TABLE.iter().enumerate().skip(1) {
            assert_eq!(GlobalId::find(row.module, row.name), Some(GlobalId(index as u16)), "{row:?}");
        }
        for (module, name) in
            [("os", "system"), ("builtins", "eval"), ("builtins", "getattr"), ("", "persistent id")]
        {
            assert_eq!(GlobalId::find(module, name), None);
        }
    }

    #[test]
    fn torch_dtypes_carry_their_own_names() {
        for row in TABLE {
            if let Global::DType(Some(dtype)) = row.meaning {
                assert_eq!(DType::from_torch_name(row.name), Some(dtype));
            }
        }
    }
}
