//! The words of a framework, from Python.

use msprobe_collect::Framework;
use msprobe_dump::names::TensorFormat;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// `msprobe.core.framework.Framework`
#[derive(FromPyObject)]
pub(crate) struct Words {
    name: String,
    tensor_type: String,
    size_type: String,
    tensor_format: String,
    api_prefixes: Vec<String>,
    foreign_keys: Vec<(String, String)>,
}

impl Words {
    /// The framework, if it writes files in a format that there is.
    pub(crate) fn read(self) -> PyResult<Framework> {
        let Words { name, tensor_type, size_type, tensor_format, api_prefixes, foreign_keys } = self;
        let tensor_format = TensorFormat::from_word(&tensor_format).ok_or_else(|| {
            PyValueError::new_err(format!("{tensor_format:?} is no format of tensor files"))
        })?;
        Ok(Framework { name, tensor_type, size_type, tensor_format, api_prefixes, foreign_keys })
    }
}
