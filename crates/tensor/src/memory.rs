//! Memory that may be refused: what runs inside somebody's training must not end it for want of memory.
//!
//! Whatever is as large as a tensor is asked for with [`try_zeroed`], and whoever asks has an answer to "no". The many
//! small things in between are not asked for one by one: there is a [`Fund`] of address space that nothing uses. When
//! the system refuses memory to one of them, the fund is given back, the request is repeated, and [`is_short`] says
//! from then on that it is time to stop. Little of the fund is ever touched, so it costs no memory while it is there.
//! It grows with the largest thing that was asked for: what grows by doubling is covered twice over. If it cannot grow,
//! that is a shortage too, noticed before anything has failed.

#![allow(unsafe_code, reason = "an allocator, and memory that may be refused")]

use std::alloc::{GlobalAlloc, Layout, System, alloc_zeroed};
use std::cell::Cell;
use std::collections::TryReserveError;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// Address space kept for bad times, at least. More than the C library ever keeps for itself when it is freed (32 MiB).
const LEAST_FUND_BYTES: usize = 40 << 20;
/// What the fund is, in times of the largest thing there is besides tensors.
const FUND_FACTOR: usize = 4;
/// More is not kept for any of them.
const MOST_FUND_BYTES: usize = 4 << 30;

/// The fund, or nothing. Its first word is its size.
static FUND: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
/// Its size, 0 if there is none: a glance before a large request.
static FUND_BYTES: AtomicUsize = AtomicUsize::new(0);
static IS_SHORT: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whoever asks takes no for an answer.
    static IS_ASKING: Cell<bool> = const { Cell::new(false) };
}

/// So many zeros, or nothing if the system refuses the memory.
pub fn try_zeroed(len: usize) -> Option<Vec<u8>> {
    if len == 0 {
        return Some(Vec::new());
    }
    let layout = Layout::array::<u8>(len).ok()?;
    asking(|| {
        // SAFETY: the layout is not empty.
        let address = unsafe { alloc_zeroed(layout) };
        let bytes = ptr::slice_from_raw_parts_mut(address, len);
        // SAFETY: the global allocator made the memory for this layout, and all of it is zero.
        (!address.is_null()).then(|| unsafe { Box::from_raw(bytes) }.into_vec())
    })
}

/// Makes room for so much more text, or says that the system refuses it.
pub fn try_grow(text: &mut String, bytes: usize) -> Result<(), TryReserveError> {
    asking(|| text.try_reserve(bytes))
}

/// Makes room for so many more bytes, or says that the system refuses it.
pub fn try_grow_bytes(buffer: &mut Vec<u8>, bytes: usize) -> Result<(), TryReserveError> {
    asking(|| buffer.try_reserve(bytes))
}

fn asking<R>(ask: impl FnOnce() -> R) -> R {
    let before = IS_ASKING.replace(true);
    let answer = ask();
    IS_ASKING.set(before);
    answer
}

/// Whether memory was refused that could not be done without. It is time to stop.
pub fn is_short() -> bool {
    IS_SHORT.load(Ordering::Relaxed)
}

/// The process's allocator with a fund for bad times. It has one only where it is the global allocator and after
/// [`Fund::fill`].
#[derive(Debug)]
pub struct Fund;

impl Fund {
    /// Sets address space aside, and forgets earlier shortages. False if there is none to set aside.
    pub fn fill() -> bool {
        if !FUND.load(Ordering::Acquire).is_null() {
            return true;
        }
        let is_there = replace_fund(LEAST_FUND_BYTES);
        if is_there {
            IS_SHORT.store(false, Ordering::Relaxed);
        }
        is_there
    }

    /// Whether it is worth asking again for memory that was refused.
    fn spend(size: usize) -> bool {
        if is_asking() {
            return false;
        }
        IS_SHORT.store(true, Ordering::Relaxed);
        // If it is gone, another thread may have freed it just now.
        FUND_BYTES.store(0, Ordering::Release);
        free(FUND.swap(ptr::null_mut(), Ordering::AcqRel));
        size <= MOST_FUND_BYTES
    }

    /// Something this large was made, and may grow: the fund keeps up with it.
    fn keep_up(size: usize) {
        let fund_bytes = FUND_BYTES.load(Ordering::Acquire);
        let wanted = size.saturating_mul(FUND_FACTOR).min(MOST_FUND_BYTES);
        if fund_bytes != 0 && wanted > fund_bytes && !is_asking() && !replace_fund(wanted) {
            IS_SHORT.store(true, Ordering::Relaxed);
        }
    }
}

fn is_asking() -> bool {
    IS_ASKING.try_with(Cell::get).unwrap_or(false)
}

/// A fund of another size in place of the one there is. False, and nothing changed, if the system refuses it.
fn replace_fund(bytes: usize) -> bool {
    let Some(layout) = fund_layout(bytes) else { return false };
    // SAFETY: the layout is not empty.
    let address = unsafe { System.alloc(layout) };
    if address.is_null() {
        return false;
    }
    // SAFETY: the memory is ours, and large enough for a word.
    unsafe { address.cast::<usize>().write_unaligned(bytes) };
    FUND_BYTES.store(bytes, Ordering::Release);
    free(FUND.swap(address, Ordering::AcqRel));
    true
}

fn fund_layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.max(size_of::<usize>()), 4096).ok()
}

fn free(fund: *mut u8) {
    if fund.is_null() {
        return;
    }
    // SAFETY: whoever makes a fund writes its size there first.
    let bytes = unsafe { fund.cast::<usize>().read_unaligned() };
    if let Some(layout) = fund_layout(bytes) {
        // SAFETY: it was made with this layout, and whoever takes it out of the static frees it.
        unsafe { System.dealloc(fund, layout) };
    }
}

/// What was asked for, or what the fund makes of a refusal.
fn granted(address: *mut u8, size: usize, again: impl FnOnce() -> *mut u8) -> *mut u8 {
    if address.is_null() {
        return if Fund::spend(size) { again() } else { address };
    }
    if size > LEAST_FUND_BYTES / FUND_FACTOR {
        Fund::keep_up(size);
    }
    address
}

// SAFETY: all memory comes from the system's allocator and goes back to it, with the layouts that are given.
unsafe impl GlobalAlloc for Fund {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as promised by the caller, here and below.
        let ask = || unsafe { System.alloc(layout) };
        granted(ask(), layout.size(), ask)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let ask = || unsafe { System.alloc_zeroed(layout) };
        granted(ask(), layout.size(), ask)
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above; the old memory is as it was where a request is refused.
        let ask = || unsafe { System.realloc(old, layout, size) };
        granted(ask(), size, ask)
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(address, layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_is_refused() {
        assert_eq!(try_zeroed(3), Some(vec![0; 3]));
        assert_eq!(try_zeroed(0), Some(Vec::new()));
        // Within what an address can say, beyond what any machine has.
        assert_eq!(try_zeroed(isize::MAX as usize), None);
        assert_eq!(try_zeroed(usize::MAX), None);
        let mut text = String::from("text");
        assert!(try_grow(&mut text, 10).is_ok());
        assert!(try_grow(&mut text, isize::MAX as usize - 100).is_err());
        // Memory that nobody looks at the compiler need not ask for.
        let mut bytes = Vec::new();
        assert!(try_grow_bytes(std::hint::black_box(&mut bytes), isize::MAX as usize - 100).is_err());
        assert!(std::hint::black_box(bytes).is_empty());
        assert_eq!(text, "text");
        assert!(!is_short(), "whoever asks takes no for an answer");
    }
}
