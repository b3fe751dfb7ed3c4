//! Tensor files from Python.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use msprobe_report::output::save;
use msprobe_tensor::TensorView;
use msprobe_tensor::files::{FileError, TensorFile, npy, pt_write};
use pyo3::exceptions::{PyKeyError, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::tensor::Described;

#[pyfunction]
pub(crate) fn write_npy(py: Python<'_>, path: PathBuf, tensor: Described) -> PyResult<()> {
    let view = tensor.view()?;
    let written = py.detach(|| write_whole(&path, |out| npy::write(out, &view)));
    written.map_err(|error| os_error(&path, &error))
}

#[pyfunction]
pub(crate) fn write_pt(py: Python<'_>, path: PathBuf, tensor: Described) -> PyResult<()> {
    let view = tensor.view()?;
    let written = py.detach(|| write_whole(&path, |out| pt_write::write_tensor(out, &view)));
    written.map_err(|error| os_error(&path, &error))
}

#[pyfunction]
pub(crate) fn write_pt_dict(
    py: Python<'_>,
    path: PathBuf,
    tensors: Vec<(String, Described)>,
) -> PyResult<()> {
    let views = tensors
        .iter()
        .map(|(name, tensor)| Ok((name.as_str(), tensor.view()?)))
        .collect::<PyResult<Vec<(&str, TensorView<'_>)>>>()?;
    let written = py.detach(|| write_whole(&path, |out| pt_write::write_state_dict(out, &views)));
    written.map_err(|error| os_error(&path, &error))
}

/// A file under that name is always whole.
fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&mut File>) -> io::Result<()>,
) -> io::Result<()> {
    save(path, |file| {
        let mut out = BufWriter::new(file);
        write(&mut out)?;
        out.flush()
    })
}

/// `OSError` as Python itself raises it: the number picks the subclass, the path is its `filename`.
fn os_error(path: &Path, error: &io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(number) => {
            let text = error.to_string();
            let reason = text.split(" (os error").next().unwrap_or_default().to_owned();
            PyOSError::new_err((number, reason, path.as_os_str().to_owned()))
        }
        None => PyOSError::new_err(format!("cannot write {}: {error}", path.display())),
    }
}

#[pyfunction]
pub(crate) fn tensor_names(py: Python<'_>, path: PathBuf) -> PyResult<Vec<String>> {
    let file = py.detach(|| TensorFile::open(&path)).map_err(|error| exception(py, &error))?;
    Ok(file.entries().iter().map(|entry| entry.name.clone()).collect())
}

/// dtype, shape and the row-major bytes of one tensor.
#[pyfunction]
pub(crate) fn read_tensor<'py>(
    py: Python<'py>,
    path: PathBuf,
    name: &str,
) -> PyResult<(&'static str, Vec<usize>, Bound<'py, PyBytes>)> {
    let file = py.detach(|| TensorFile::open(&path)).map_err(|error| exception(py, &error))?;
    let index = file
        .find(name)
        .ok_or_else(|| PyKeyError::new_err(format!("{} has no tensor {name:?}", path.display())))?;
    let view = file.view(index).map_err(|error| exception(py, &error))?;
    let bytes = PyBytes::new_with(py, view.size_bytes(), |out| {
        py.detach(|| view.copy_to(out));
        Ok(())
    })?;
    Ok((view.dtype().name(), view.shape().to_vec(), bytes))
}

/// `msprobe.core.common.exceptions.TensorFileError`, which carries the hint too.
fn exception(py: Python<'_>, error: &FileError) -> PyErr {
    let path = match error {
        FileError::Open { path, .. } | FileError::Format { path, .. } | FileError::Tensor { path, .. } => {
            path
        }
    };
    let tensor = match error {
        FileError::Tensor { tensor, .. } => Some(tensor.as_str()),
        _ => None,
    };
    let raised = py
        .import("msprobe.core.common.exceptions")
        .and_then(|module| module.getattr("TensorFileError"))
        .and_then(|class| class.call1((error.to_string(), path, tensor, error.hint())));
    match raised {
        Ok(instance) => PyErr::from_value(instance),
        Err(error) => error,
    }
}
