//! Memory that may be refused: what runs inside somebody's training must not end it for want of memory.
//!
//! Whatever is as large as a tensor is asked for with [`try_zeroed`], and whoever asks has an answer to "no". The many
//! small things in between are not asked for one by one: there is a [`Fund`] of address space that nothing uses. When
//! the system refuses memory to one of them, the fund is given back, the request is repeated, and [`is_short`] says
//! from then on that it is time to stop. Nothing of the fund is ever touched, so it costs no memory while it is there.

#![allow(unsafe_code, reason = "an allocator, and memory that may be refused")]

use std::alloc::{GlobalAlloc, Layout, System, alloc_zeroed};
use std::cell::Cell;
use std::collections::TryReserveError;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// Address space kept for bad times. More than the C library ever keeps for itself when it is freed (32 MiB).
const FUND_BYTES: usize = 40 << 20;
const FUND_LAYOUT: Layout = match Layout::from_size_align(FUND_BYTES, 4096) {
    Ok(layout) => layout,
    Err(_) => panic!("a size and a power of two"),
};

static FUND: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
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
        // SAFETY: the layout is not empty.
        let address = unsafe { System.alloc(FUND_LAYOUT) };
        if address.is_null() {
            return false;
        }
        IS_SHORT.store(false, Ordering::Relaxed);
        free(FUND.swap(address, Ordering::AcqRel));
        true
    }

    /// Whether it is worth asking again for memory that was refused.
    fn spend(size: usize) -> bool {
        if size > FUND_BYTES || IS_ASKING.try_with(Cell::get).unwrap_or(false) {
            return false;
        }
        IS_SHORT.store(true, Ordering::Relaxed);
        // If it is gone, another thread may have freed it just now.
        free(FUND.swap(ptr::null_mut(), Ordering::AcqRel));
        true
    }
}

fn free(fund: *mut u8) {
    if !fund.is_null() {
        // SAFETY: it was made with this layout, and whoever takes it out of the static frees it.
        unsafe { System.dealloc(fund, FUND_LAYOUT) };
    }
}

// SAFETY: all memory comes from the system's allocator and goes back to it, with the layouts that are given.
unsafe impl GlobalAlloc for Fund {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as promised by the caller, here and below.
        let address = unsafe { System.alloc(layout) };
        if address.is_null() && Fund::spend(layout.size()) {
            // SAFETY: as above.
            return unsafe { System.alloc(layout) };
        }
        address
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let address = unsafe { System.alloc_zeroed(layout) };
        if address.is_null() && Fund::spend(layout.size()) {
            // SAFETY: as above.
            return unsafe { System.alloc_zeroed(layout) };
        }
        address
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        let address = unsafe { System.realloc(old, layout, size) };
        if address.is_null() && Fund::spend(size) {
            // SAFETY: the old memory is as it was where a request is refused.
            return unsafe { System.realloc(old, layout, size) };
        }
        address
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
