//! The call stack of a hook: walked without looking at source, looked up by where its frames are.

use msprobe_collect::{Collector, FrameKey, StackRef};
use pyo3::intern;
use pyo3::prelude::*;

use super::adapter::Adapter;

/// Code objects seen, kept so that their addresses stay theirs.
#[derive(Default)]
pub(crate) struct SeenCode(std::sync::Mutex<std::collections::HashMap<usize, Py<PyAny>>>);

impl SeenCode {
    fn keep(&self, codes: Vec<Bound<'_, PyAny>>) {
        let mut seen = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
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
