//! The call stack of a hook: walked without looking at source, looked up by where its frames are.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use msprobe_collect::{Collector, FrameKey, StackRef};
use msprobe_dump::hash::FastMap;
use pyo3::intern;
use pyo3::prelude::*;

use super::adapter::Adapter;

/// Code objects seen, kept so that their addresses stay theirs.
#[derive(Default)]
pub(crate) struct SeenCode(Mutex<FastMap<usize, Py<PyAny>>>);

impl SeenCode {
    fn keep(&self, codes: Vec<Bound<'_, PyAny>>) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for code in codes {
            seen.entry(code.as_ptr() as usize).or_insert_with(|| code.unbind());
        }
    }
}

/// The stack from `frame` outwards.
pub(crate) fn stack_of(
    collector: &Collector,
    adapter: &Adapter,
    seen: &SeenCode,
    frame: &Bound<'_, PyAny>,
) -> PyResult<StackRef> {
    let py = frame.py();
    let (f_code, f_lasti, f_back) = (intern!(py, "f_code"), intern!(py, "f_lasti"), intern!(py, "f_back"));
    let mut keys: Vec<FrameKey> = Vec::with_capacity(32);
    let mut at = frame.clone();
    while !at.is_none() {
        let code = at.getattr(f_code)?;
        let last: isize = at.getattr(f_lasti)?.extract()?;
        keys.push((code.as_ptr() as usize, last as usize));
        at = at.getattr(f_back)?;
    }
    if let Some(stack) = collector.stacks().find(&keys) {
        return Ok(stack);
    }
    let (frames, is_recompute) = adapter.describe_stack(frame)?;
    let mut codes = Vec::with_capacity(keys.len());
    let mut at = frame.clone();
    while !at.is_none() {
        codes.push(at.getattr(f_code)?);
        at = at.getattr(f_back)?;
    }
    seen.keep(codes);
    Ok(collector.stacks().insert(keys, frames, is_recompute))
}

/// Which code is the way into what the framework has compiled. Asked for only where something was.
#[derive(Default)]
pub(crate) struct CompiledCode {
    is_watched: AtomicBool,
    known: Mutex<FastMap<usize, (bool, Py<PyAny>)>>,
}

impl CompiledCode {
    pub(crate) fn watch(&self) {
        self.is_watched.store(true, Ordering::Relaxed);
    }

    /// Whether compiled code is running somewhere between `frame` and the outermost one.
    pub(crate) fn runs_in(&self, adapter: &Adapter, frame: &Bound<'_, PyAny>) -> PyResult<bool> {
        if !self.is_watched.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let py = frame.py();
        let (f_code, f_back) = (intern!(py, "f_code"), intern!(py, "f_back"));
        let mut at = frame.clone();
        while !at.is_none() {
            let code = at.getattr(f_code)?;
            let key = code.as_ptr() as usize;
            let known = self.known().get(&key).map(|(is_entry, _)| *is_entry);
            let is_entry = match known {
                Some(is_entry) => is_entry,
                None => {
                    let is_entry = adapter.is_compiled_code(&code)?;
                    self.known().insert(key, (is_entry, code.unbind()));
                    is_entry
                }
            };
            if is_entry {
                return Ok(true);
            }
            at = at.getattr(f_back)?;
        }
        Ok(false)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, FastMap<usize, (bool, Py<PyAny>)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
