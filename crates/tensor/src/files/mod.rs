//! Tensor files: what every format is reduced to, and opening one by its content.
//!
//! Each parser turns bytes into an [`Index`]: named tensors, each a region of the file plus a strided
//! layout. Nothing is read but headers; [`TensorFile::view`] then borrows straight from the mapped file, so
//! only the tensor asked for is touched. Parsers treat every file as hostile: no allocation follows an
//! untrusted length, no recursion follows untrusted nesting, arithmetic is checked.

mod array;
pub mod bits;
pub mod npy;
pub mod npy_measured;
mod numpy;
mod open;
mod pickle;
pub mod pt;
pub mod pt_write;
mod regular;
pub mod safetensors;
mod zip;

pub use array::NpyArray;
pub use bits::{DirectionError, DirectionFile, read_direction, write_bits};
pub use open::{FileError, Format, TensorFile};
pub use regular::{Links, open_inside, open_regular};

use std::sync::Arc;

use crate::DType;
use crate::view::{Endian, TensorView, ViewError, checked_numel};

/// Why bytes could not be understood as a tensor file, or one tensor of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The file ends before something it promises.
    #[error("truncated: {what} needs {needed} bytes, {available} are left")]
    Truncated {
        /// What was being read.
        what: &'static str,
        /// Bytes it needs.
        needed: u64,
        /// Bytes that are there.
        available: u64,
    },
    /// The bytes contradict the format.
    #[error("malformed: {0}")]
    Malformed(String),
    /// Well formed as far as can be told, but of a kind this reader does not decode.
    #[error("unsupported: {0}")]
    Unsupported(String),
    /// Something no honest file contains: code to run, or a size out of all proportion.
    #[error("refused: {0}")]
    Refused(String),
    /// Shape, strides and storage do not fit together.
    #[error("malformed: {0}")]
    View(#[from] ViewError),
}

/// [`FormatError::Malformed`], for parsers.
pub(crate) fn malformed(text: impl Into<String>) -> FormatError {
    FormatError::Malformed(text.into())
}

/// [`FormatError::Truncated`], for parsers.
pub(crate) fn truncated(what: &'static str, needed: usize, available: usize) -> FormatError {
    FormatError::Truncated { what, needed: needed as u64, available: available as u64 }
}

/// Where one tensor lies in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorLayout {
    /// Element type.
    pub dtype: DType,
    /// Size of each dimension.
    pub shape: Vec<usize>,
    /// Distance between neighbours, in elements.
    pub strides: Vec<isize>,
    /// Bytes that the file holds only in another form (old pickles keep numpy arrays as text): the storage then
    /// is in here instead of in the file.
    pub decoded: Option<Arc<[u8]>>,
    /// First byte of the storage in the file.
    pub storage_start: usize,
    /// Bytes of the storage.
    pub storage_len: usize,
    /// Element of the storage at which the tensor begins.
    pub offset: usize,
    /// Byte order of the elements.
    pub endian: Endian,
}

impl TensorLayout {
    /// Borrows the tensor from the bytes of its whole file, checking every bound.
    pub fn view<'a>(&'a self, file: &'a [u8]) -> Result<TensorView<'a>, FormatError> {
        let source = self.decoded.as_deref().unwrap_or(file);
        let storage = self
            .storage_start
            .checked_add(self.storage_len)
            .and_then(|end| source.get(self.storage_start..end))
            .ok_or_else(|| FormatError::Truncated {
                what: "tensor data",
                needed: self.storage_len as u64,
                available: source.len().saturating_sub(self.storage_start) as u64,
            })?;
        let (shape, strides) = (self.shape.clone(), self.strides.clone());
        Ok(TensorView::new(self.dtype, shape, strides, storage, self.offset, self.endian)?)
    }

    /// Bytes of the elements when laid out contiguously, or `None` if that overflows.
    pub fn size_bytes(&self) -> Option<usize> {
        checked_numel(&self.shape)?.checked_mul(self.dtype.size_bytes())
    }
}

/// One named tensor of a file. A tensor that cannot be decoded does not spoil its neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorEntry {
    /// Dotted path inside the file; empty when the file is one bare tensor.
    pub name: String,
    /// Where it lies, or why it cannot be used.
    pub layout: Result<TensorLayout, FormatError>,
}

/// Something of a file that is no tensor: a number, a text, a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainValue {
    /// Dotted path inside the file.
    pub name: String,
    /// What it is, `int 3`, so that equal texts are equal values.
    pub text: String,
}

/// What a parser found in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index {
    /// The tensors, in file order (for `.pt`: the order of the pickled containers).
    pub entries: Vec<TensorEntry>,
    /// Bytes where `.npy` and `.safetensors` have their data that belong to no tensor: behind the last one, or between two.
    pub unclaimed_bytes: u64,
}
