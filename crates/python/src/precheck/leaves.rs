//! Outputs as Python has them.

use msprobe_precheck::{Leaf, Plain};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};

use crate::tensor::Described;

/// An output, with what keeps its memory.
pub(super) enum Held {
    Tensor(Described),
    Leaf(Leaf<'static>),
}

impl Held {
    fn of(value: &Bound<'_, PyAny>) -> PyResult<Held> {
        let type_text = || value.get_type().str().map(|text| text.to_string());
        let plain = |value: Plain| -> PyResult<Held> {
            Ok(Held::Leaf(Leaf::Plain { type_text: type_text()?, value }))
        };
        if value.is_none() {
            return Ok(Held::Leaf(Leaf::None));
        }
        if let Ok(flag) = value.cast::<PyBool>() {
            return plain(Plain::Int(i32::from(flag.is_true()).to_string()));
        }
        if value.is_instance_of::<PyInt>() {
            return plain(Plain::Int(value.str()?.to_string()));
        }
        if let Ok(number) = value.cast::<PyFloat>() {
            return plain(Plain::Float(number.value()));
        }
        if let Ok(text) = value.cast::<PyString>() {
            return plain(Plain::Text(text.to_string_lossy().into_owned()));
        }
        if value.hasattr("storage_bytes")? {
            return value.extract().map(Held::Tensor);
        }
        let keys = value.cast::<PyDict>().ok().map(|dict| {
            dict.keys()
                .iter()
                .map(|key| key.repr().map(|text| text.to_string()))
                .collect::<PyResult<Vec<_>>>()
        });
        Ok(Held::Leaf(Leaf::Other { type_text: type_text()?, keys: keys.transpose()? }))
    }

    fn leaf(&self) -> PyResult<Leaf<'_>> {
        Ok(match self {
            Held::Tensor(described) => Leaf::Tensor(described.view()?),
            Held::Leaf(leaf) => leaf.clone(),
        })
    }
}

/// Holds all outputs of one side.
pub(super) fn hold(values: &[Bound<'_, PyAny>]) -> PyResult<Vec<Held>> {
    values.iter().map(Held::of).collect()
}

/// Borrows them.
pub(super) fn leaves(held: &[Held]) -> PyResult<Vec<Leaf<'_>>> {
    held.iter().map(Held::leaf).collect()
}
