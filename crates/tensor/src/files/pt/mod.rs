//! PyTorch's `.pt`, `.pth` and `.bin` files: decoded without Python, and without running anything.
//!
//! Both containers of `torch.save` are read: the zip archive (a pickle beside one entry per storage) and the
//! older plain sequence of pickles followed by raw storages. [`parse`] lists the tensors; [`load`] keeps the
//! whole decoded value for callers that want the numbers and settings next to them.

mod flatten;
mod legacy;
mod tensors;
mod value;

use super::pickle::{self, Arena, NodeId};
use super::zip::{self, Archive};
use super::{FormatError, Index, PlainValue};
use crate::view::Endian;

pub use value::{PtValueKind, ValueRef};

/// Memory that decoding may take beyond the size of the file.
const BUDGET_BASE_BYTES: usize = 64 << 20;

/// Lists the tensors of a file written by `torch.save`.
pub fn parse(file: &[u8]) -> Result<Index, FormatError> {
    load(file)?.index()
}

/// Decodes a file written by `torch.save`, tensors and everything else. Tensor data is not read.
pub fn load(file: &[u8]) -> Result<PtDocument<'_>, FormatError> {
    if zip::is_zip(file) {
        return load_zip(file);
    }
    if file.get(257..262) == Some(b"ustar") {
        return Err(FormatError::Unsupported(
            "the tar format of PyTorch before 0.1.10; load it with torch and save it again".into(),
        ));
    }
    if file.starts_with(b"version https://git-lfs") {
        return Err(FormatError::Malformed(
            "this is a Git LFS pointer, not the file it stands for; fetch it with `git lfs pull`".into(),
        ));
    }
    legacy::load(file)
}

/// A decoded file: the values it holds, with tensors as layouts into the file.
#[derive(Debug)]
pub struct PtDocument<'a> {
    file: &'a [u8],
    arena: Arena,
    root: NodeId,
    storages: Storages<'a>,
    endian: Endian,
}

/// Where the bytes of a storage key are found.
#[derive(Debug)]
enum Storages<'a> {
    /// `<root>/data/<key>` in a zip archive.
    Zip { archive: Archive<'a>, root: &'a str },
    /// Byte ranges by key.
    Legacy(legacy::StorageMap),
}

impl PtDocument<'_> {
    /// The saved object.
    pub fn root(&self) -> ValueRef<'_> {
        ValueRef::new(self, self.root)
    }

    /// What is no tensor, by dotted path.
    pub fn plain_values(&self) -> Result<Vec<PlainValue>, FormatError> {
        flatten::plain_values(self)
    }

    /// The tensors, by dotted path.
    pub fn index(&self) -> Result<Index, FormatError> {
        flatten::index(self)
    }
}

fn budget_bytes(file: &[u8]) -> usize {
    file.len().saturating_add(BUDGET_BASE_BYTES)
}

fn load_zip(file: &[u8]) -> Result<PtDocument<'_>, FormatError> {
    let archive = Archive::parse(file)?;
    let mut roots = archive.entries().iter().filter_map(|entry| {
        let root = entry.name.strip_suffix("/data.pkl")?;
        (!root.contains('/')).then_some(root)
    });
    let (root, other) = (roots.next(), roots.next());
    drop(roots);
    let Some(root) = root else {
        return Err(FormatError::Unsupported(
            "a zip archive without `data.pkl`: not written by torch.save".into(),
        ));
    };
    if other.is_some() {
        return Err(FormatError::Malformed("a zip archive with several `data.pkl`".into()));
    }
    let is_script = archive.entries().iter().any(|entry| {
        let inner = entry.name.strip_prefix(root).and_then(|rest| rest.strip_prefix('/'));
        inner.is_some_and(|inner| inner == "constants.pkl" || inner.starts_with("code/"))
    });
    if is_script {
        return Err(FormatError::Unsupported(
            "a TorchScript archive; save the state_dict of the module with torch.save instead".into(),
        ));
    }
    let endian = match archive.get(&format!("{root}/byteorder")) {
        None => Endian::Little,
        Some(entry) => match file.get(entry.stored()?) {
            Some(b"little") => Endian::Little,
            Some(b"big") => Endian::Big,
            _ => return Err(FormatError::Malformed("`byteorder` is neither `little` nor `big`".into())),
        },
    };
    let pickle = archive
        .get(&format!("{root}/data.pkl"))
        .ok_or_else(|| FormatError::Malformed("no `data.pkl`".into()))?
        .stored()?;
    let decoded = pickle::decode(file, pickle, budget_bytes(file))?;
    let storages = Storages::Zip { archive, root };
    Ok(PtDocument { file, arena: decoded.arena, root: decoded.root, storages, endian })
}
