//! `msprobe._native.KeyDataWriter`: what `SingleSave` hands over.

use std::path::PathBuf;
use std::sync::Arc;

use msprobe_dump::key_data::{self, AddError, Elements, Entry, Grouping};
use msprobe_dump::write::{HostTensor, LayoutError, create_dir};
use msprobe_tensor::files::npy_measured::Stored;
use msprobe_tensor::{Arithmetic, TensorView, ViewError};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::exceptions::rule_exception;
use crate::tensor::Described;

/// Memory for tensors on their way to disk. Several processes of a run share a machine.
const BUDGET_BYTES: usize = 256 << 20;
/// What a script gets for a tensor without elements; scripts know it from PyTorch.
const NO_ELEMENTS: &str = "max(): Expected reduction dim to be specified for input.numel() == 0. \
                           Specify the reduction dim with the 'dim' argument.";

/// Makes a directory by the rules for paths that are written.
#[pyfunction]
pub(crate) fn make_directory(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    py.detach(|| create_dir(&path)).map_err(|error| path_exception(py, &error))
}

/// Writes key data on a thread of its own.
#[pyclass(frozen, module = "msprobe._native")]
pub(crate) struct KeyDataWriter {
    writer: Arc<key_data::KeyDataWriter>,
}

/// A value being saved.
#[pyclass(frozen, module = "msprobe._native")]
pub(crate) struct KeyDataEntry {
    writer: Arc<key_data::KeyDataWriter>,
    entry: Entry,
    key: String,
}

#[pymethods]
impl KeyDataWriter {
    /// `own_dtype`: files keep the dtype; `own_arithmetic`: and figures are computed in it; `names_dtype`: and the
    /// JSON files tell it.
    #[new]
    fn new(own_dtype: bool, own_arithmetic: bool, names_dtype: bool) -> PyResult<KeyDataWriter> {
        let stored = match (own_dtype, own_arithmetic) {
            (false, _) => Stored::Float32,
            (true, false) => Stored::Own(Arithmetic::Float32),
            (true, true) => Stored::Own(Arithmetic::Own),
        };
        let writer = key_data::KeyDataWriter::new(stored, names_dtype, BUDGET_BYTES)?;
        Ok(KeyDataWriter { writer: Arc::new(writer) })
    }

    /// Makes the directory of a value. `None` when nothing is written any more.
    fn begin(&self, py: Python<'_>, directory: PathBuf, key: String) -> PyResult<Option<KeyDataEntry>> {
        let begun = py.detach(|| self.writer.begin(directory));
        let entry = begun.map_err(|error| path_exception(py, &error))?;
        Ok(entry.map(|entry| KeyDataEntry { writer: Arc::clone(&self.writer), entry, key }))
    }

    /// Waits until everything is on disk.
    fn flush(&self, py: Python<'_>) {
        py.detach(|| self.writer.flush());
    }

    /// Why nothing is written any more, the first time it is asked after that happened.
    fn take_failure(&self) -> Option<String> {
        self.writer.take_failure().map(|failure| failure.to_string())
    }
}

#[pymethods]
impl KeyDataEntry {
    /// Saves one tensor. `held`: nobody will change its memory, so it is kept instead of copied.
    fn add(
        &self,
        py: Python<'_>,
        name: &str,
        label: &str,
        tensor: Bound<'_, PyAny>,
        held: bool,
    ) -> PyResult<()> {
        let described: Described = tensor.extract()?;
        let added = if held {
            // Whether the description is right is found out here, not on the writer's thread.
            described.view()?;
            let elements = Elements::Own(Box::new(HeldTensor { described, _owner: tensor.unbind() }));
            py.detach(|| self.writer.add(&self.entry, name, label, elements))
        } else {
            let view = described.view()?;
            py.detach(|| self.writer.add(&self.entry, name, label, Elements::Shared(&view)))
        };
        added.map_err(|error| exception(py, "numpy", &error))
    }

    /// Saves the figures of the tensors so far, after them: of a `tensor`, a `list` or a `dict`.
    fn finish(&self, py: Python<'_>, grouping: &str) -> PyResult<()> {
        let grouping = match grouping {
            "tensor" => Grouping::Single,
            "list" => Grouping::List,
            "dict" => Grouping::Mapping,
            other => return Err(PyValueError::new_err(format!("unknown grouping {other}"))),
        };
        let finished = py.detach(|| self.writer.finish(&self.entry, &self.key, grouping));
        finished.map_err(|error| exception(py, "json", &error))
    }
}

/// What a script gets for a `kind` of file that cannot be.
fn exception(py: Python<'_>, kind: &str, error: &AddError) -> PyErr {
    match error {
        AddError::Empty => PyRuntimeError::new_err(NO_ELEMENTS),
        AddError::Path(error) => path_exception(py, error),
        AddError::NoDirectory(path) => {
            PyRuntimeError::new_err(format!("Save {kind} file {} failed.", path.display()))
        }
        AddError::View(error) => PyValueError::new_err(error.to_string()),
    }
}

/// A copy in host memory that nobody else has.
struct HeldTensor {
    described: Described,
    /// Keeps the memory. Given back when Python runs next in a thread of its own.
    _owner: Py<PyAny>,
}

impl HostTensor for HeldTensor {
    fn view(&self) -> Result<TensorView<'_>, ViewError> {
        self.described.checked_view()
    }
}

/// The exception of a path, in the words scripts may look for.
fn path_exception(py: Python<'_>, error: &LayoutError) -> PyErr {
    let text = match error {
        LayoutError::SpecialCharacters(path) => {
            format!("The file path {} contains special characters.", path.display())
        }
        LayoutError::TooLong(_) => "The file path length exceeds limit.".to_owned(),
        error => error.to_string(),
    };
    rule_exception(py, error, text)
}
