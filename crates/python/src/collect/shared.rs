//! Figures of tensors that were measured a moment ago: the output of one operation is the input of the next.
//!
//! A figure is reused only for the very same Python object (known by a weak reference, so nothing is kept alive),
//! with the same memory, the same version counter of autograd, and unchanged elements at sampled places. The
//! version counter misses writes through `.data`, from C++ or by other processes; the samples are there for those.

use std::sync::{Mutex, PoisonError};

use msprobe_collect::Measured;
use msprobe_dump::hash::FastMap;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

/// More than any model keeps alive between two of its operations.
const MAX_ENTRIES: usize = 8192;
/// Places looked at.
const SAMPLES: usize = 24;

/// What was measured, by the address of the Python object.
#[derive(Default)]
pub(crate) struct Shared(Mutex<FastMap<usize, Entry>>);

struct Entry {
    object: Py<PyWeakrefReference>,
    address: usize,
    version: i64,
    sample: u64,
    measured: Measured,
}

impl Shared {
    /// What was measured of this tensor, unless it may have changed.
    pub(crate) fn find(&self, object: &Bound<'_, PyAny>, address: usize, bytes: &[u8]) -> Option<Measured> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.get(&(object.as_ptr() as usize))?;
        let is_same = entry.address == address
            && entry.object.bind(object.py()).upgrade().is_some_and(|alive| alive.is(object))
            && version(object) == Some(entry.version)
            && sample(bytes) == entry.sample;
        is_same.then_some(entry.measured)
    }

    /// Remembers what was measured. Tensors without a version (inference mode) are not remembered.
    pub(crate) fn keep(&self, object: &Bound<'_, PyAny>, address: usize, bytes: &[u8], measured: Measured) {
        let Some(version) = version(object) else { return };
        let Ok(weak) = PyWeakrefReference::new(object) else { return };
        let entry = Entry { object: weak.unbind(), address, version, sample: sample(bytes), measured };
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= MAX_ENTRIES {
            entries.clear();
        }
        entries.insert(object.as_ptr() as usize, entry);
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
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
