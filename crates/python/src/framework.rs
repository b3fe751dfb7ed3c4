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
    tells_autograd: bool,
    tells_places: bool,
    measures_singles: bool,
}

impl Words {
    /// The framework, if it writes files in a format that there is.
    pub(crate) fn read(self) -> PyResult<Framework> {
        let format = &self.tensor_format;
        let tensor_format = TensorFormat::from_word(format)
            .ok_or_else(|| PyValueError::new_err(format!("{format:?} is no format of tensor files")))?;
        Ok(Framework {
            name: self.name,
            tensor_type: self.tensor_type,
            size_type: self.size_type,
            tensor_format,
            api_prefixes: self.api_prefixes,
            foreign_keys: self.foreign_keys,
            tells_autograd: self.tells_autograd,
            tells_places: self.tells_places,
            measures_singles: self.measures_singles,
        })
    }
}
