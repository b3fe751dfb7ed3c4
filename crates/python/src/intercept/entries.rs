//! Code with an address of its own for each intercepted function, which is all it has to be told apart by.

use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use pyo3::ffi;

use super::{Entry, call_function, call_method, next};

/// torch 2.15 has about 500 functions and 500 methods on the list.
const ROWS: usize = 16;
const COLUMNS: usize = 64;

static WITH_KEYWORDS: [[AtomicPtr<Entry>; COLUMNS]; ROWS] =
    [const { [const { AtomicPtr::new(std::ptr::null_mut()) }; COLUMNS] }; ROWS];
static PLAIN: [[AtomicPtr<Entry>; COLUMNS]; ROWS] =
    [const { [const { AtomicPtr::new(std::ptr::null_mut()) }; COLUMNS] }; ROWS];
static VECTORCALL: [[AtomicPtr<Entry>; COLUMNS]; ROWS] =
    [const { [const { AtomicPtr::new(std::ptr::null_mut()) }; COLUMNS] }; ROWS];
static WITH_KEYWORDS_USED: AtomicUsize = AtomicUsize::new(0);
static PLAIN_USED: AtomicUsize = AtomicUsize::new(0);
static VECTORCALL_USED: AtomicUsize = AtomicUsize::new(0);

/// The signature of a vectorcall, which the stable interface of Python 3.9 does not have.
type Vectorcall = unsafe extern "C" fn(
    *mut ffi::PyObject,
    *const *mut ffi::PyObject,
    usize,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;

unsafe extern "C" fn enter_with_keywords<const ROW: usize, const COLUMN: usize>(
    own: *mut ffi::PyObject,
    arguments: *mut ffi::PyObject,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the entry was stored before this address was given to anybody.
    unsafe { call_method(WITH_KEYWORDS[ROW][COLUMN].load(Ordering::Acquire), own, arguments, keywords) }
}

unsafe extern "C" fn enter_plain<const ROW: usize, const COLUMN: usize>(
    own: *mut ffi::PyObject,
    argument: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as above.
    unsafe { call_method(PLAIN[ROW][COLUMN].load(Ordering::Acquire), own, argument, std::ptr::null_mut()) }
}

unsafe extern "C" fn enter_vectorcall<const ROW: usize, const COLUMN: usize>(
    _function: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: usize,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as above.
    unsafe { call_function(VECTORCALL[ROW][COLUMN].load(Ordering::Acquire), arguments, count, names) }
}

macro_rules! row {
    ($enter:ident, $row:literal) => {
        row!(@ $enter, $row, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23
            24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47
            48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63)
    };
    (@ $enter:ident, $row:literal, $($column:literal)*) => {
        [$($enter::<$row, $column>),*]
    };
}

macro_rules! rows {
    ($enter:ident, $($row:literal)*) => {
        [$(row!($enter, $row)),*]
    };
}

macro_rules! table {
    ($enter:ident) => {
        rows!($enter, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
}

static ENTER_WITH_KEYWORDS: [[ffi::PyCFunctionWithKeywords; COLUMNS]; ROWS] = table!(enter_with_keywords);
static ENTER_VECTORCALL: [[Vectorcall; COLUMNS]; ROWS] = table!(enter_vectorcall);
static ENTER_PLAIN: [[ffi::PyCFunction; COLUMNS]; ROWS] = table!(enter_plain);

/// The address of code for a method that takes keywords, called with this entry; none if all are taken.
pub(super) fn with_keywords(entry: &'static Entry) -> Option<ffi::PyMethodDefPointer> {
    let at = next(&WITH_KEYWORDS_USED, ROWS * COLUMNS)?;
    let (row, column) = (at / COLUMNS, at % COLUMNS);
    WITH_KEYWORDS.get(row)?.get(column)?.store(std::ptr::from_ref(entry).cast_mut(), Ordering::Release);
    let code = *ENTER_WITH_KEYWORDS.get(row)?.get(column)?;
    Some(ffi::PyMethodDefPointer { PyCFunctionWithKeywords: code })
}

/// The same for methods without keywords.
pub(super) fn plain(entry: &'static Entry) -> Option<ffi::PyMethodDefPointer> {
    let at = next(&PLAIN_USED, ROWS * COLUMNS)?;
    let (row, column) = (at / COLUMNS, at % COLUMNS);
    PLAIN.get(row)?.get(column)?.store(std::ptr::from_ref(entry).cast_mut(), Ordering::Release);
    let code = *ENTER_PLAIN.get(row)?.get(column)?;
    Some(ffi::PyMethodDefPointer { PyCFunction: code })
}

/// The same for functions.
pub(super) fn vectorcall(entry: &'static Entry) -> Option<usize> {
    let at = next(&VECTORCALL_USED, ROWS * COLUMNS)?;
    let (row, column) = (at / COLUMNS, at % COLUMNS);
    VECTORCALL.get(row)?.get(column)?.store(std::ptr::from_ref(entry).cast_mut(), Ordering::Release);
    Some(*ENTER_VECTORCALL.get(row)?.get(column)? as usize)
}
