//! Errors about paths as the exceptions scripts know.

use msprobe_dump::write::LayoutError;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

/// A path that breaks the rules is the script's mistake, and the exception is the one scripts know; a directory that
/// cannot be made is the system's.
pub(crate) fn layout_exception(py: Python<'_>, error: &LayoutError) -> PyErr {
    if error.is_of_system() {
        return PyOSError::new_err(error.to_string());
    }
    rule_exception(py, error, error.to_string())
}

/// The exception for a broken rule, with a text of the caller's.
pub(crate) fn rule_exception(py: Python<'_>, error: &LayoutError, text: String) -> PyErr {
    let (class, code) = match error.file_check_code() {
        Some(code) => ("FileCheckException", code),
        None => ("MsprobeException", 2),
    };
    let raised = py
        .import("msprobe.core.common.exceptions")
        .and_then(|module| module.getattr(class))
        .and_then(|class| class.call1((code, text)));
    match raised {
        Ok(instance) => PyErr::from_value(instance),
        Err(error) => error,
    }
}
