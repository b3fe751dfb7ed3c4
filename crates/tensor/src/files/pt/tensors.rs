//! From the pickled arguments of a tensor to its layout in the file.

use std::borrow::Cow;

use crate::DType;
use crate::files::numpy::{array_strides, dtype_from_code};
use crate::files::pickle::{Arena, Global, GlobalId, Node, NodeId};
use crate::files::{FormatError, TensorLayout, malformed};
use crate::view::{Endian, ViewError, contiguous_strides};

use super::{PtDocument, Storages};

/// More dimensions than any framework has; keeps a layout small.
const MAX_DIMENSIONS: usize = 64;
/// Storage keys are small numbers; hashing a long one over and over is a way to keep a reader busy.
const MAX_KEY_BYTES: usize = 256;

fn unsupported(text: impl Into<String>) -> FormatError {
    FormatError::Unsupported(text.into())
}

/// A persistent id: `("storage", class, key, location, count[, view])`.
#[derive(Debug)]
pub(super) struct StorageId<'a> {
    /// `None`: bytes.
    dtype: Option<DType>,
    pub(super) key: &'a str,
    pub(super) element_size: usize,
    count: u64,
    /// Legacy only: a part of the storage, first element and count.
    view: Option<(u64, u64)>,
}

impl<'a> StorageId<'a> {
    pub(super) fn read(file: &'a [u8], arena: &'a Arena, id: NodeId) -> Result<Self, FormatError> {
        let items = arena.tuple(id).unwrap_or_default();
        let &[tag, class, key, _location, count, ref view @ ..] = items else {
            return Err(malformed("a persistent id that is not the five parts of a storage"));
        };
        if arena.raw(file, tag) != Some(b"storage") {
            return Err(unsupported("a persistent id that is not a storage"));
        }
        let class = arena.global(class).ok_or_else(|| malformed("a storage without a class"))?;
        let (dtype, element_size) = match class.meaning() {
            Global::Storage(dtype) => (dtype, dtype.map_or(1, DType::size_bytes)),
            _ => return Err(unsupported(format!("storage of class `torch.{}`", class.get().name))),
        };
        let too_long = arena.raw(file, key).is_some_and(|raw| raw.len() > MAX_KEY_BYTES);
        let key = (!too_long).then(|| arena.str(file, key)).flatten();
        let key = key.ok_or_else(|| malformed("a storage whose key is no short text"))?;
        let non_negative = |id| arena.int(id).and_then(|value| u64::try_from(value).ok());
        let count =
            non_negative(count).ok_or_else(|| malformed(format!("storage {key:?} has no valid size")))?;
        let view = match view.first().map(|&view| (view, arena.node(view))) {
            None | Some((_, Node::None)) => None,
            Some((view, _)) => match arena.tuple(view) {
                Some(&[_, offset, size]) => non_negative(offset).zip(non_negative(size)),
                _ => None,
            }
            .map(Some)
            .ok_or_else(|| malformed(format!("storage {key:?} has a broken view")))?,
        };
        Ok(StorageId { dtype, key, element_size, count, view })
    }
}

/// A storage found in the file.
struct Storage {
    dtype: Option<DType>,
    start: usize,
    len: usize,
}

impl PtDocument<'_> {
    /// The layout of a node that is a tensor or a numpy array; `None` if it is neither.
    pub(super) fn layout(&self, id: NodeId) -> Option<Result<TensorLayout, FormatError>> {
        let object = self.arena.object(id)?;
        let args = self.arena.tuple(object.args).unwrap_or_default();
        match object.global.meaning() {
            Global::RebuildTensor => Some(self.torch_layout(args, None, None)),
            Global::RebuildTensorV2 => Some(self.torch_layout(args, None, args.get(6).copied())),
            Global::RebuildTensorV3 => Some(match args.get(6) {
                Some(&dtype) => self.torch_layout(args, Some(dtype), args.get(7).copied()),
                None => Err(malformed("`_rebuild_tensor_v3` without a dtype")),
            }),
            Global::RebuildDeviceTensor => Some(self.device_layout(args)),
            Global::OpaqueTensor => Some(Err(opaque(object.global.get().name))),
            Global::NumpyReconstruct | Global::NumpyFromBuffer => Some(self.numpy_layout(id)),
            _ => None,
        }
    }

    fn storage(&self, id: NodeId) -> Result<Storage, FormatError> {
        let object = self.arena.object(id).filter(|object| object.global.meaning() == Global::Persistent);
        let object = object.ok_or_else(|| malformed("a tensor without a storage"))?;
        let id = StorageId::read(self.file, &self.arena, object.args)?;
        let range = match &self.storages {
            Storages::Zip { archive, root } => archive
                .get(&format!("{root}/data/{}", id.key))
                .ok_or_else(|| malformed(format!("storage {:?} is not in the archive", id.key)))?
                .stored()?,
            Storages::Legacy(storages) => storages
                .get(id.key)
                .cloned()
                .ok_or_else(|| malformed(format!("storage {:?} is not in the file", id.key)))?,
        };
        let size_of = |count: u64| count.checked_mul(id.element_size as u64);
        let (skip, needed) = match id.view {
            None => (Some(0), size_of(id.count)),
            Some((offset, count)) => (size_of(offset), size_of(count)),
        };
        let end = skip.zip(needed).and_then(|(skip, needed)| skip.checked_add(needed));
        let (Some(skip), Some(needed)) = (skip, needed) else {
            return Err(malformed(format!("storage {:?} is too large to address", id.key)));
        };
        if end.is_none_or(|end| end > range.len() as u64) {
            return Err(FormatError::Truncated {
                what: "tensor storage",
                needed: end.unwrap_or(u64::MAX),
                available: range.len() as u64,
            });
        }
        Ok(Storage { dtype: id.dtype, start: range.start + skip as usize, len: needed as usize })
    }

    /// Arguments `(storage, offset, size, stride, …)`.
    fn torch_layout(
        &self,
        args: &[NodeId],
        dtype: Option<NodeId>,
        metadata: Option<NodeId>,
    ) -> Result<TensorLayout, FormatError> {
        let &[storage, offset, size, stride, ..] = args else {
            return Err(malformed("a tensor without storage, offset, size and stride"));
        };
        self.check_metadata(metadata)?;
        let storage = self.storage(storage)?;
        let dtype = match dtype {
            None => storage.dtype.ok_or_else(|| malformed("a tensor of untyped storage without a dtype"))?,
            Some(dtype) => self.dtype(dtype)?,
        };
        let offset = self
            .arena
            .int(offset)
            .and_then(|offset| usize::try_from(offset).ok())
            .ok_or_else(|| malformed("a tensor without a valid storage offset"))?;
        let strides: Vec<isize> = self.sizes(stride, "stride")?.into_iter().map(|s| s as isize).collect();
        self.checked(TensorLayout {
            dtype,
            shape: self.sizes(size, "size")?,
            strides,
            storage_start: storage.start,
            storage_len: storage.len,
            decoded: None,
            offset,
            endian: self.endian,
        })
    }

    fn dtype(&self, id: NodeId) -> Result<DType, FormatError> {
        let global = self.arena.global(id).ok_or_else(|| malformed("a tensor whose dtype is no dtype"))?;
        match global.meaning() {
            Global::DType(Some(dtype)) => Ok(dtype),
            Global::DType(None) => Err(unsupported(format!("dtype `torch.{}`", global.get().name))),
            _ => Err(malformed(format!("`{}` is no dtype", global.get().name))),
        }
    }

    /// Non-negative numbers of a tuple or list, each small enough for a signed index.
    fn sizes(&self, id: NodeId, what: &str) -> Result<Vec<usize>, FormatError> {
        let ids =
            self.arena.sequence(id).ok_or_else(|| malformed(format!("a tensor whose {what} is no tuple")))?;
        if ids.len() > MAX_DIMENSIONS {
            return Err(unsupported(format!("a tensor of {} dimensions", ids.len())));
        }
        ids.iter()
            .map(|&id| match self.arena.int(id) {
                Some(value) => usize::try_from(value)
                    .map_err(|_| malformed(format!("a tensor with negative {what} {value}"))),
                None => Err(malformed(format!("a tensor whose {what} is not a 64-bit number"))),
            })
            .collect()
    }

    fn check_metadata(&self, metadata: Option<NodeId>) -> Result<(), FormatError> {
        let Some(dict) = metadata.and_then(|id| self.arena.dict(id)) else {
            return Ok(());
        };
        for &(key, value) in &dict.items {
            if self.arena.node(value) == Node::Bool(true) {
                let flag = self.arena.raw(self.file, key).unwrap_or_default();
                let flag = flag.get(..20).unwrap_or(flag).escape_ascii();
                return Err(unsupported(format!(
                    "a tensor with a pending `{flag}`; save it after `.resolve_conj().resolve_neg()`"
                )));
            }
        }
        Ok(())
    }

    fn device_layout(&self, args: &[NodeId]) -> Result<TensorLayout, FormatError> {
        let &[data, dtype, ..] = args else {
            return Err(malformed("a device tensor without data and dtype"));
        };
        if self.arena.meaning(data) == Some(Global::RebuildDeviceTensor) {
            return Err(malformed("a device tensor made of a device tensor"));
        }
        let layout = self.layout(data).unwrap_or_else(|| Err(malformed("a device tensor without data")))?;
        let dtype = self.dtype(dtype)?;
        if layout.dtype != dtype {
            return Err(unsupported(format!("a {dtype} tensor of a device saved as {}", layout.dtype)));
        }
        Ok(layout)
    }

    fn numpy_layout(&self, id: NodeId) -> Result<TensorLayout, FormatError> {
        let array = self.numpy_array(id)?;
        let bytes = self.arena.bytes(self.file, array.data);
        let bytes = bytes.ok_or_else(|| unsupported("a numpy array of Python objects"))?;
        let place = match (&bytes, self.arena.node(array.data)) {
            (
                Cow::Borrowed(_),
                Node::Bytes { start, .. } | Node::Str { start, .. } | Node::Latin1 { start, .. },
            ) => usize::try_from(start)
                .ok()
                .filter(|start| start.saturating_add(bytes.len()) <= self.file.len()),
            _ => None,
        };
        let shape = self.sizes(array.shape, "shape")?;
        self.checked(TensorLayout {
            dtype: array.dtype,
            strides: array_strides(&shape, array.fortran)?,
            shape,
            storage_start: place.unwrap_or(0),
            storage_len: bytes.len(),
            decoded: if place.is_none() { Some(bytes.into()) } else { None },
            offset: 0,
            endian: array.endian,
        })
    }

    /// The parts of a pickled numpy array.
    fn numpy_array(&self, id: NodeId) -> Result<NumpyArray, FormatError> {
        let arena = &self.arena;
        let object = arena.object(id).ok_or_else(|| malformed("no numpy array"))?;
        let broken = || malformed("a numpy array without shape, dtype and data");
        let (shape, dtype, order, data) = match object.global.meaning() {
            Global::NumpyFromBuffer => match arena.tuple(object.args) {
                Some(&[data, dtype, shape, order, ..]) => (shape, dtype, order, data),
                _ => return Err(broken()),
            },
            _ => match object.state.and_then(|state| arena.tuple(state)) {
                Some(&[shape, dtype, order, data] | &[_, shape, dtype, order, data]) => {
                    (shape, dtype, order, data)
                }
                _ => return Err(broken()),
            },
        };
        let fortran = match arena.node(order) {
            Node::Bool(fortran) => fortran,
            Node::Int(value) => value != 0,
            _ => arena.raw(self.file, order) == Some(b"F"),
        };
        let (dtype, endian) = self.numpy_dtype(dtype)?;
        Ok(NumpyArray { dtype, endian, shape, fortran, data })
    }

    /// `numpy.dtype("f4", False, True)` with the state `(3, "<", …)`.
    pub(super) fn numpy_dtype(&self, id: NodeId) -> Result<(DType, Endian), FormatError> {
        let arena = &self.arena;
        let object = arena.object(id).filter(|object| object.global.meaning() == Global::NumpyDType);
        let object = object.ok_or_else(|| malformed("a numpy value without a dtype"))?;
        let endian = match object.state.and_then(|state| arena.tuple(state)) {
            Some(&[_, order, ..]) if arena.raw(self.file, order) == Some(b">") => Endian::Big,
            _ => Endian::Little,
        };
        let name = arena.tuple(object.args).and_then(<[NodeId]>::first).copied();
        let name = name.ok_or_else(|| malformed("a numpy dtype without a name"))?;
        if let Some(Global::DType(Some(dtype))) = arena.global(name).map(GlobalId::meaning) {
            return Ok((dtype, endian));
        }
        let raw = arena.raw(self.file, name).unwrap_or_default();
        let code = std::str::from_utf8(raw).ok().and_then(dtype_from_code);
        let dtype = code.ok_or_else(|| {
            let name = raw.get(..20).unwrap_or(raw).escape_ascii();
            unsupported(format!("numpy dtype `{name}`"))
        })?;
        Ok((dtype, endian))
    }

    /// The layout, once every element is known to lie in the file and no later arithmetic can overflow.
    fn checked(&self, mut layout: TensorLayout) -> Result<TensorLayout, FormatError> {
        let too_large = || ViewError::TooLarge { shape: layout.shape.clone() };
        let row_major = contiguous_strides(&layout.shape).ok_or_else(too_large)?;
        if layout.shape.contains(&0) {
            // Nothing is addressed: whatever the file says about where, it does not matter.
            layout.strides = row_major;
            layout.offset = 0;
        } else {
            for (stride, &size) in layout.strides.iter_mut().zip(&layout.shape) {
                if size == 1 && *stride > self.file.len() as isize {
                    *stride = 1;
                }
            }
        }
        layout.view(self.file)?;
        Ok(layout)
    }
}

/// A numpy array as it was pickled.
struct NumpyArray {
    dtype: DType,
    endian: Endian,
    shape: NodeId,
    fortran: bool,
    data: NodeId,
}

fn opaque(function: &str) -> FormatError {
    unsupported(match function {
        "_rebuild_meta_tensor_no_storage" => "meta tensor: no data",
        "_rebuild_sparse_tensor" | "_rebuild_sparse_csr_tensor" => {
            "sparse tensor; save it after `.to_dense()`"
        }
        "_rebuild_qtensor" => "quantized tensor; save it after `.dequantize()` or `.int_repr()`",
        "_rebuild_nested_tensor" => "nested tensor; save it after `.unbind()`",
        _ => "tensor subclass that wraps other tensors",
    })
}
