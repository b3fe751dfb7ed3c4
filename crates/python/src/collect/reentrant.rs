//! A lock that a thread may take again while it has it, like `threading.RLock`, only cheaper.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;

/// Taken with the interpreter attached; whoever has to wait lets other threads of Python run meanwhile, since the one
/// that holds it may need the interpreter to go on.
#[derive(Default)]
pub(crate) struct Lock {
    /// The thread that holds it; 0 is none.
    owner: AtomicUsize,
    mutex: Mutex<()>,
}

/// Gives the lock back.
pub(crate) struct Held<'a> {
    owner: &'a AtomicUsize,
    _guard: MutexGuard<'a, ()>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.owner.store(0, Ordering::Relaxed);
    }
}

thread_local! {
    /// Its address tells threads apart.
    static HERE: u8 = const { 0 };
}

impl Lock {
    /// Waits for the lock. `None` if this thread holds it already.
    pub(crate) fn hold(&self, py: Python<'_>) -> Option<Held<'_>> {
        let here = HERE.with(|here| std::ptr::from_ref(here) as usize);
        // Nobody else ever writes the number of this thread.
        if self.owner.load(Ordering::Relaxed) == here {
            return None;
        }
        let guard = self.mutex.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        self.owner.store(here, Ordering::Relaxed);
        Some(Held { owner: &self.owner, _guard: guard })
    }
}
