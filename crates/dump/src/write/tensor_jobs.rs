//! One file of the pool: what it is made of, and how it gets its name.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use msprobe_tensor::files::{npy, pt_write};
use msprobe_tensor::{DType, TensorView, ViewError};

use super::partial::PartialFile;
use super::same_content::ContentKey;
use super::saved_file::FilePromise;
use crate::names::TensorFormat;

/// What a file under way costs at least, so that many tiny ones are bounded too.
pub(super) const LEAST_BYTES: usize = 4096;

/// A file to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Where it belongs. The directory must exist; a file of that name is replaced.
    pub path: PathBuf,
    /// The time it is to bear. `None`: that of writing.
    pub modified: Option<SystemTime>,
}

/// A tensor in host memory that nobody changes any more.
pub trait HostTensor: Send {
    /// Its elements.
    fn view(&self) -> Result<TensorView<'_>, ViewError>;
}

/// Puts elements into a file.
pub(super) type Fill = Box<dyn FnOnce(&mut File, &TensorView<'_>) -> io::Result<()> + Send>;

/// A file under way.
pub(super) struct Job {
    pub(super) target: Target,
    pub(super) memory: Memory,
    pub(super) content: Content,
    pub(super) told: Told,
}

/// Who is told what becomes of a file.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// Further names for the same elements wait under this key.
    pub(super) key: Option<ContentKey>,
    /// Whoever names it in a record.
    pub(super) promise: Option<FilePromise>,
}

/// What becomes of its memory.
pub(super) enum Content {
    Tensor(Fill),
    Text(Box<dyn FnOnce() -> String + Send>),
}

/// What a job keeps until its file is written.
pub(super) enum Memory {
    Nothing,
    Buffer { bytes: Vec<u8>, dtype: DType, shape: Vec<usize> },
    Held { tensor: Box<dyn HostTensor>, size_bytes: usize },
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("target", &self.target).finish_non_exhaustive()
    }
}

impl Memory {
    pub(super) fn cost(&self) -> usize {
        match self {
            Memory::Nothing => cost(0),
            Memory::Buffer { bytes, .. } => cost(bytes.len()),
            Memory::Held { size_bytes, .. } => cost(*size_bytes),
        }
    }

    fn view(&self) -> Result<TensorView<'_>, ViewError> {
        match self {
            Memory::Nothing => TensorView::contiguous(DType::U8, vec![0], &[]),
            Memory::Buffer { bytes, dtype, shape } => TensorView::contiguous(*dtype, shape.clone(), bytes),
            Memory::Held { tensor, .. } => tensor.view(),
        }
    }
}

/// What so much memory counts in the budget.
pub(super) fn cost(buffer_bytes: usize) -> usize {
    buffer_bytes.max(LEAST_BYTES)
}

/// The dtype a tensor has in a file: 8-bit floats are widened to float32, and bfloat16 where there is no such thing.
pub(super) fn stored_dtype(dtype: DType, format: TensorFormat) -> DType {
    let is_widened = dtype.is_float8() || (dtype == DType::BF16 && format == TensorFormat::Npy);
    if is_widened { DType::F32 } else { dtype }
}

/// Writes a tensor as the frameworks of a format do.
pub(super) fn write_tensor(file: &mut File, view: &TensorView<'_>, format: TensorFormat) -> io::Result<()> {
    match format {
        TensorFormat::Pt => pt_write::write_tensor(file, view),
        TensorFormat::Npy => npy::write(file, view),
    }
}

/// Writes a file under a temporary name, which becomes its real one when the file is whole.
pub(super) fn write_file(target: &Target, memory: &Memory, content: Content) -> io::Result<()> {
    let mut partial = PartialFile::create(target.path.parent().unwrap_or(Path::new("")))?;
    match content {
        Content::Tensor(fill) => fill(partial.file(), &memory.view().map_err(io::Error::other)?)?,
        Content::Text(text) => partial.file().write_all(text().as_bytes())?,
    }
    if let Some(time) = target.modified {
        partial.file().set_modified(time)?;
    }
    partial.rename(&target.path)
}
