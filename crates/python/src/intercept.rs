//! Builtin functions and methods of another library, called through us while they stay the objects they are.
//!
//! Whoever holds such a function, compares it or looks it up in a table sees the same object as ever, and whoever
//! calls it, from wherever it was imported, is seen. What changes is one word in the object:
//! - a function that takes keywords is called the slow way, by its class, unless its `vectorcall` is set: it is. The
//!   rest of it is part of its hash, and stays;
//! - a method refers to the definition it was made from: it gets one of its own, equal but for the address of the
//!   code, so that methods bound to an object, and calls the interpreter has specialised, come here too. The
//!   definition of the library is not written to.
//!
//! The code that runs is not told which method was called, so everyone gets an entry of its own, and definitions
//! are kept for good: a method that was bound while it was intercepted goes on using it.

#![allow(unsafe_code, reason = "function objects of the interpreter have no other interface")]

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use pyo3::exceptions::{PyMemoryError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;

mod entries;

/// Words in front of the members of an object: reference count and class.
const HEADER_WORDS: usize = 2;
/// `builtin_function_or_method`: definition, self, module, weak references, vectorcall.
const FUNCTION_DEFINITION: usize = HEADER_WORDS;
const FUNCTION_WEAK_REFERENCES: usize = HEADER_WORDS + 3;
const FUNCTION_VECTORCALL: usize = HEADER_WORDS + 4;
/// `method_descriptor`: class, name, qualified name, definition, vectorcall.
const METHOD_DEFINITION: usize = HEADER_WORDS + 3;
/// Both have five members.
const SIZE_BYTES: usize = (HEADER_WORDS + 5) * size_of::<usize>();

/// What an entry needs to know, set before its address is given to anybody.
struct Entry {
    /// Called instead of the function, with the object of a method in front.
    wrapper: AtomicPtr<ffi::PyObject>,
    /// The second argument of a method's code is a tuple of arguments rather than one argument or none.
    takes_tuple: bool,
}

/// A builtin function or method that can be called through a wrapper. One object has one of these at most.
#[pyclass(frozen, module = "msprobe._native")]
pub(crate) struct Intercepted {
    function: Py<PyAny>,
    original: Py<PyAny>,
    /// The word of the object that is exchanged, and what it is with and without us.
    place: AtomicPtr<Word>,
    theirs: AtomicPtr<c_void>,
    ours: AtomicPtr<c_void>,
    entry: &'static Entry,
}

type Word = *mut c_void;

#[pymethods]
impl Intercepted {
    /// Raises `TypeError` for objects that are something else, and where the interpreter is not as expected.
    #[new]
    fn new(function: Bound<'_, PyAny>) -> PyResult<Intercepted> {
        let py = function.py();
        let (definition, is_method) = definition_of(&function)?;
        // SAFETY: `definition_of` has checked that it is one; it lives as long as its library.
        let flags = unsafe { (*definition).ml_flags };
        let flags = flags & !(ffi::METH_STATIC | ffi::METH_CLASS | ffi::METH_COEXIST);
        let takes_keywords = flags == ffi::METH_VARARGS | ffi::METH_KEYWORDS;
        let is_plain = matches!(flags, ffi::METH_NOARGS | ffi::METH_O | ffi::METH_VARARGS);
        if !(takes_keywords || is_plain && is_method) {
            return Err(PyTypeError::new_err("it is called in a way that cannot be intercepted"));
        }
        let original = original_of(py, &function, definition, is_method)?;
        let entry: &'static Entry = Box::leak(Box::new(Entry {
            wrapper: AtomicPtr::default(),
            takes_tuple: flags & ffi::METH_VARARGS != 0,
        }));
        let words = function.as_ptr().cast::<Word>();
        let none_left = || PyMemoryError::new_err("there are more functions than entries");
        let (place, ours): (_, Word) = if is_method {
            let code = if is_plain { entries::plain(entry) } else { entries::with_keywords(entry) };
            // SAFETY: as above. Name and documentation are the library's.
            let (ml_name, ml_doc, ml_flags) =
                unsafe { ((*definition).ml_name, (*definition).ml_doc, (*definition).ml_flags) };
            let ml_meth = code.ok_or_else(none_left)?;
            let ours = ffi::PyMethodDef { ml_name, ml_meth, ml_flags, ml_doc };
            (METHOD_DEFINITION, std::ptr::from_mut(Box::leak(Box::new(ours))).cast())
        } else {
            (FUNCTION_VECTORCALL, entries::vectorcall(entry).ok_or_else(none_left)? as Word)
        };
        // SAFETY: the object is as large as its words, as was checked.
        let place = unsafe { words.add(place) };
        // SAFETY: the same.
        let theirs = unsafe { *place };
        Ok(Intercepted {
            original,
            place: AtomicPtr::new(place),
            theirs: AtomicPtr::new(theirs),
            ours: AtomicPtr::new(ours),
            entry,
            function: function.unbind(),
        })
    }

    /// The same function as an object of its own, whose calls are never intercepted.
    #[getter]
    fn original(&self, py: Python<'_>) -> Py<PyAny> {
        self.original.clone_ref(py)
    }

    /// Who is called instead; for good, since methods bound today may be called tomorrow.
    fn wrap(&self, wrapper: Py<PyAny>) {
        // What was there before is never freed: another thread may be about to call it.
        self.entry.wrapper.store(wrapper.into_ptr(), Ordering::Release);
    }

    /// From now on calls go to the wrapper, or no longer.
    fn set(&self, _py: Python<'_>, is_on: bool) {
        if is_on && self.entry.wrapper.load(Ordering::Acquire).is_null() {
            return;
        }
        let wanted = if is_on { &self.ours } else { &self.theirs };
        // SAFETY: the object is alive (`self.function`), the place was checked, and the interpreter is attached,
        // so nobody reads it meanwhile.
        unsafe { *self.place.load(Ordering::Relaxed) = wanted.load(Ordering::Relaxed) };
    }

    #[getter]
    fn function(&self, py: Python<'_>) -> Py<PyAny> {
        self.function.clone_ref(py)
    }
}

/// The definition of a builtin function or method, and whether it is a method.
fn definition_of(function: &Bound<'_, PyAny>) -> PyResult<(*mut ffi::PyMethodDef, bool)> {
    let unexpected = || PyTypeError::new_err("function objects of this interpreter look different");
    let class = function.get_type();
    let is_method = match &*class.name()?.to_string() {
        "builtin_function_or_method" => false,
        "method_descriptor" => true,
        other => return Err(PyTypeError::new_err(format!("it is a {other}"))),
    };
    if class.getattr("__basicsize__")?.extract::<usize>()? != SIZE_BYTES {
        return Err(unexpected());
    }
    let words = function.as_ptr().cast::<Word>();
    if is_method {
        // SAFETY: the object is as large as the seven words of its class.
        let (class_of, definition) =
            unsafe { (*words.add(HEADER_WORDS), (*words.add(METHOD_DEFINITION)).cast::<ffi::PyMethodDef>()) };
        let is_expected = std::ptr::eq(class_of.cast(), function.getattr("__objclass__")?.as_ptr())
            && name_of(definition) == Some(function.getattr("__name__")?.extract::<String>()?);
        return if is_expected { Ok((definition, true)) } else { Err(unexpected()) };
    }
    let weak_references = class.getattr("__weakrefoffset__")?.extract::<usize>()?;
    // SAFETY: as above, and an object of that very class; the interpreter tells what its definition says. One that
    // takes keywords has no vectorcall, until it is intercepted.
    unsafe {
        let definition = (*words.add(FUNCTION_DEFINITION)).cast::<ffi::PyMethodDef>();
        let is_expected = weak_references == FUNCTION_WEAK_REFERENCES * size_of::<usize>()
            && ffi::PyCFunction_Check(function.as_ptr()) != 0
            && !definition.is_null()
            && (*definition).ml_flags == ffi::PyCFunction_GetFlags(function.as_ptr())
            && ffi::PyCFunction_GetFunction(function.as_ptr())
                .is_some_and(|code| code as usize == (*definition).ml_meth.PyCFunction as usize)
            && ((*definition).ml_flags & ffi::METH_KEYWORDS == 0
                || (*definition).ml_flags & ffi::METH_VARARGS == 0
                || (*words.add(FUNCTION_VECTORCALL)).is_null());
        if is_expected { Ok((definition, false)) } else { Err(unexpected()) }
    }
}

fn name_of(definition: *mut ffi::PyMethodDef) -> Option<String> {
    // SAFETY: the class and size of the object were checked, so it is a definition; they have names.
    unsafe {
        if definition.is_null() || (*definition).ml_name.is_null() {
            return None;
        }
        std::ffi::CStr::from_ptr((*definition).ml_name).to_str().ok().map(str::to_owned)
    }
}

/// An object of its own for the library's definition.
fn original_of(
    py: Python<'_>,
    function: &Bound<'_, PyAny>,
    definition: *mut ffi::PyMethodDef,
    is_method: bool,
) -> PyResult<Py<PyAny>> {
    if is_method {
        let class = function.getattr("__objclass__")?;
        // SAFETY: the class of the method, and a definition that outlives it.
        return unsafe {
            Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(class.as_ptr().cast(), definition))
        }
        .map(Bound::unbind);
    }
    let module = function.getattr("__module__").ok().filter(|module| !module.is_none());
    // SAFETY: what the function itself was made from; all of it is borrowed.
    unsafe {
        let own = ffi::PyCFunction_GetSelf(function.as_ptr());
        let module = module.as_ref().map_or(std::ptr::null_mut(), Bound::as_ptr);
        Bound::from_owned_ptr_or_err(py, ffi::PyCFunction_NewEx(definition, own, module))
    }
    .map(Bound::unbind)
}

/// All calls of intercepted methods come here; `argument` and `keywords` as the definition's flags say.
unsafe fn call_method(
    entry: *const Entry,
    own: *mut ffi::PyObject,
    argument: *mut ffi::PyObject,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: entries live for ever, and have a wrapper before their address is in any object. The interpreter
    // hands over living objects, and takes a new reference or null with an exception.
    unsafe {
        let entry = &*entry;
        let given =
            if entry.takes_tuple { ffi::PyTuple_Size(argument) } else { isize::from(!argument.is_null()) };
        let arguments = ffi::PyTuple_New(1 + given);
        if arguments.is_null() {
            return arguments;
        }
        ffi::Py_INCREF(own);
        ffi::PyTuple_SetItem(arguments, 0, own);
        for index in 0..given {
            let item = if entry.takes_tuple { ffi::PyTuple_GetItem(argument, index) } else { argument };
            ffi::Py_INCREF(item);
            ffi::PyTuple_SetItem(arguments, 1 + index, item);
        }
        let result = ffi::PyObject_Call(entry.wrapper.load(Ordering::Acquire), arguments, keywords);
        ffi::Py_DECREF(arguments);
        result
    }
}

/// All calls of intercepted functions come here: `count` positional arguments, then those called `names`.
unsafe fn call_function(
    entry: *const Entry,
    given: *const *mut ffi::PyObject,
    count: usize,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as above, and as many arguments as the interpreter says.
    unsafe {
        let count = (count & !ARGUMENTS_OFFSET) as isize;
        let arguments = ffi::PyTuple_New(count);
        if arguments.is_null() {
            return arguments;
        }
        for index in 0..count {
            let item = *given.offset(index);
            ffi::Py_INCREF(item);
            ffi::PyTuple_SetItem(arguments, index, item);
        }
        let mut keywords = std::ptr::null_mut();
        if !names.is_null() {
            keywords = ffi::PyDict_New();
            for index in 0..ffi::PyTuple_Size(names) {
                let name = ffi::PyTuple_GetItem(names, index);
                if keywords.is_null() || ffi::PyDict_SetItem(keywords, name, *given.offset(count + index)) < 0
                {
                    ffi::Py_DECREF(arguments);
                    ffi::Py_XDECREF(keywords);
                    return std::ptr::null_mut();
                }
            }
        }
        let result = ffi::PyObject_Call((*entry).wrapper.load(Ordering::Acquire), arguments, keywords);
        ffi::Py_DECREF(arguments);
        ffi::Py_XDECREF(keywords);
        result
    }
}

/// The bit of a vectorcall's count that says something else.
const ARGUMENTS_OFFSET: usize = 1 << (usize::BITS - 1);

/// The next free one of `length` entries.
fn next(used: &AtomicUsize, length: usize) -> Option<usize> {
    used.fetch_update(Ordering::AcqRel, Ordering::Acquire, |at| (at < length).then_some(at + 1)).ok()
}

/// Turns all of them on or off, in one call.
#[pyfunction]
pub(crate) fn set_intercepted(py: Python<'_>, functions: Vec<PyRef<'_, Intercepted>>, is_on: bool) {
    for function in &functions {
        function.set(py, is_on);
    }
}
