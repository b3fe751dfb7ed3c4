//! The container of `torch.save` before 1.6 (and of `_use_new_zipfile_serialization=False`): five pickles
//! (magic number, protocol version, system info, the object, the storage keys), then each storage as an element
//! count and raw little-endian bytes.

use std::collections::HashMap;
use std::ops::Range;

use super::tensors::StorageId;
use super::{PtDocument, Storages, budget_bytes};
use crate::files::FormatError;
use crate::files::pickle::{self, Arena, Decoded, Global, NodeId};
use crate::view::Endian;

/// Byte ranges of storages by key.
pub(super) type StorageMap = HashMap<String, Range<usize>>;

/// 0x1950a86a20f9469cfc6c, as the little-endian integer it is pickled as.
const MAGIC: [u8; 10] = [0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19];
const PROTOCOL_VERSION: i64 = 1001;

pub(super) fn load(file: &[u8]) -> Result<PtDocument<'_>, FormatError> {
    let next = |at: usize| pickle::decode(file, at..file.len(), budget_bytes(file));
    let magic = next(0)?;
    if magic.arena.raw(file, magic.root) != Some(&MAGIC) {
        return Err(FormatError::Malformed(
            "neither a zip archive nor the magic number of torch.save: not a PyTorch file".into(),
        ));
    }
    let version = next(magic.end)?;
    if version.arena.int(version.root) != Some(PROTOCOL_VERSION) {
        return Err(FormatError::Unsupported("a protocol version of torch.save other than 1001".into()));
    }
    // Names the byte order of the machine that saved; storages are little-endian whatever it says.
    let info = next(version.end)?;
    if info.arena.dict(info.root).is_none() {
        return Err(FormatError::Malformed("the system info of torch.save is not a dict".into()));
    }
    let object = next(info.end)?;
    let keys = next(object.end)?;
    let storages = Storages::Legacy(locate(file, &object.arena, &keys)?);
    let Decoded { arena, root, .. } = object;
    Ok(PtDocument { file, arena, root, storages, endian: Endian::Little })
}

/// Steps over the storages, in the order of the key list.
fn locate(file: &[u8], objects: &Arena, keys: &Decoded) -> Result<StorageMap, FormatError> {
    let element_sizes = element_sizes(file, objects);
    let ids: &[NodeId] = keys
        .arena
        .sequence(keys.root)
        .ok_or_else(|| FormatError::Malformed("the storage keys of torch.save are not a list".into()))?;
    let mut storages = StorageMap::new();
    let mut at = keys.end;
    for &id in ids {
        let key = keys
            .arena
            .str(file, id)
            .ok_or_else(|| FormatError::Malformed("a storage key that is not text".into()))?;
        let &element_size = element_sizes
            .get(key)
            .ok_or_else(|| FormatError::Malformed(format!("no tensor uses storage {key:?}")))?;
        let left = file.get(at..).unwrap_or_default();
        let Some((count, data)) = left.split_first_chunk::<8>() else {
            let available = left.len() as u64;
            return Err(FormatError::Truncated { what: "storage size", needed: 8, available });
        };
        let count = i64::from_le_bytes(*count);
        let size_bytes =
            u64::try_from(count)
                .ok()
                .and_then(|count| count.checked_mul(element_size as u64))
                .ok_or_else(|| FormatError::Malformed(format!("storage {key:?} of {count} elements")))?;
        if size_bytes > data.len() as u64 {
            let available = data.len() as u64;
            return Err(FormatError::Truncated { what: "tensor storage", needed: size_bytes, available });
        }
        let start = at + 8;
        at = start + size_bytes as usize;
        if storages.insert(key.to_owned(), start..at).is_some() {
            return Err(FormatError::Malformed(format!("storage {key:?} is listed twice")));
        }
    }
    Ok(storages)
}

/// Bytes per element of each storage: what the first reference to it says, as in torch.
fn element_sizes<'a>(file: &'a [u8], arena: &'a Arena) -> HashMap<&'a str, usize> {
    let mut sizes = HashMap::new();
    for object in arena.objects() {
        if object.global.meaning() != Global::Persistent {
            continue;
        }
        if let Ok(id) = StorageId::read(file, arena, object.args) {
            sizes.entry(id.key).or_insert(id.element_size);
        }
    }
    sizes
}
