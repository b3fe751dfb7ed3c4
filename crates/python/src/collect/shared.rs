//! Figures of tensors that were measured a moment ago: the output of one operation is the input of the next, or a view
//! of it is.
//!
//! A figure is reused only while the very object it was measured of is alive (known by a weak reference, so nothing is
//! kept alive), with the same memory, the same version counter of autograd, and unchanged elements at sampled places.
//! It serves that object, and others that lie in the same memory without gaps: views share the version counter. Statistics
//! do not depend on the order of elements, so that a transposed view has those of what it is a view of; a checksum and a sketch
//! do, and a sketch depends on how many columns there are.
//! The counter misses writes through `.data`, from C++ or by other processes; the samples are there for those.

use std::sync::{Mutex, PoisonError};

use msprobe_collect::Measured;
use msprobe_dump::hash::FastMap;
use msprobe_tensor::DType;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

/// More than any model keeps alive between two of its operations.
const MAX_ENTRIES: usize = 8192;
/// Places looked at.
const SAMPLES: usize = 24;

/// What was measured.
#[derive(Default)]
pub(crate) struct Shared(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    /// By the address of the Python object.
    by_object: FastMap<usize, Entry>,
    /// The object, by the address of its elements; of several, one in row-major order.
    by_memory: FastMap<usize, usize>,
}

struct Entry {
    object: Py<PyWeakrefReference>,
    address: usize,
    dtype: DType,
    bytes: usize,
    is_row_major: bool,
    width: u16,
    version: i64,
    sample: u64,
    measured: Measured,
}

/// The elements of a tensor as they lie in memory, without gaps.
#[derive(Clone, Copy)]
pub(crate) struct Memory<'a> {
    pub(crate) address: usize,
    pub(crate) dtype: DType,
    pub(crate) bytes: &'a [u8],
    pub(crate) is_row_major: bool,
    /// What a sketch depends on beside the elements (`sketch_width`).
    pub(crate) width: u16,
}

impl Shared {
    /// What was measured of this tensor or of one with the same elements, unless it may have changed; without what
    /// depends on their order where that is another. `data_ptr` is the framework's function of that name.
    pub(crate) fn find(
        &self,
        object: &Bound<'_, PyAny>,
        memory: Memory<'_>,
        data_ptr: &Py<PyAny>,
    ) -> Option<Measured> {
        let py = object.py();
        let (entry, is_same_order) = match self.of_object(object).filter(|entry| entry.is_of(object, memory))
        {
            Some(entry) => (entry, true),
            None => {
                let entry = self.of_memory(py, memory.address)?;
                if !entry.has_elements_of(py, memory, data_ptr) {
                    return None;
                }
                let is_same_order = entry.is_row_major && memory.is_row_major;
                (entry, is_same_order)
            }
        };
        let is_unchanged = version(object) == Some(entry.version) && sample(memory.bytes) == entry.sample;
        let is_same_shape = is_same_order && entry.width == memory.width;
        is_unchanged.then_some(Measured {
            stats: entry.measured.stats,
            crc32: entry.measured.crc32.filter(|_| is_same_order),
            sketch: entry.measured.sketch.filter(|_| is_same_shape),
        })
    }

    // What is asked of the framework may let other threads run, which may wait for the lock: it is not held then.

    fn of_object(&self, object: &Bound<'_, PyAny>) -> Option<Entry> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.by_object.get(&(object.as_ptr() as usize))?;
        Some(entry.clone_ref(object.py()))
    }

    fn of_memory(&self, py: Python<'_>, address: usize) -> Option<Entry> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.by_object.get(entries.by_memory.get(&address)?)?;
        Some(entry.clone_ref(py))
    }

    /// Remembers what was measured. Tensors without a version (inference mode) are not remembered.
    pub(crate) fn keep(&self, object: &Bound<'_, PyAny>, memory: Memory<'_>, measured: &Measured) {
        let Some(version) = version(object) else { return };
        let Ok(weak) = PyWeakrefReference::new(object) else { return };
        let Memory { address, dtype, bytes, is_row_major, width } = memory;
        let entry = Entry {
            object: weak.unbind(),
            address,
            dtype,
            bytes: bytes.len(),
            is_row_major,
            width,
            version,
            sample: sample(bytes),
            measured: *measured,
        };
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.by_object.len() >= MAX_ENTRIES {
            *entries = Entries::default();
        }
        let key = object.as_ptr() as usize;
        entries.by_object.insert(key, entry);
        if is_row_major {
            entries.by_memory.insert(address, key);
        } else {
            entries.by_memory.entry(address).or_insert(key);
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Entries::default();
    }
}

impl Entry {
    fn clone_ref(&self, py: Python<'_>) -> Entry {
        Entry { object: self.object.clone_ref(py), ..*self }
    }

    /// Whether it was measured of this very object, in this memory.
    fn is_of(&self, object: &Bound<'_, PyAny>, memory: Memory<'_>) -> bool {
        self.address == memory.address
            && self.object.bind(object.py()).upgrade().is_some_and(|alive| alive.is(object))
    }

    /// Whether it was measured of the same memory, and what it was measured of still lies there.
    fn has_elements_of(&self, py: Python<'_>, memory: Memory<'_>, data_ptr: &Py<PyAny>) -> bool {
        let holds_them = |alive: Bound<'_, PyAny>| {
            let address = data_ptr.bind(py).call1((&alive,)).and_then(|address| address.extract());
            address.is_ok_and(|address: usize| address == self.address)
                && version(&alive) == Some(self.version)
        };
        self.address == memory.address
            && self.dtype == memory.dtype
            && self.bytes == memory.bytes.len()
            && self.object.bind(py).upgrade().is_some_and(holds_them)
    }
}

fn version(object: &Bound<'_, PyAny>) -> Option<i64> {
    object.getattr(intern!(object.py(), "_version")).ok()?.extract().ok()
}

/// A fingerprint of eight bytes at each of some places spread over the memory.
fn sample(bytes: &[u8]) -> u64 {
    let last = bytes.len().saturating_sub(8);
    let mut hash = bytes.len() as u64;
    for index in 0..SAMPLES {
        let at = last / (SAMPLES - 1) * index;
        if let Some(chunk) = bytes.get(at..at + 8).and_then(|chunk| <[u8; 8]>::try_from(chunk).ok()) {
            hash = (hash.rotate_left(9) ^ u64::from_le_bytes(chunk)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
    }
    hash
}
