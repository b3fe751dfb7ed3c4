//! A tensor as Python describes it.

use msprobe_tensor::{DType, Endian, TensorView};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// Where a tensor of another library lies: `msprobe.core.tensor.Described`.
#[derive(FromPyObject)]
pub(crate) struct Described {
    address: usize,
    storage_bytes: usize,
    dtype: String,
    shape: Vec<usize>,
    strides: Vec<isize>,
    offset: usize,
    big_endian: bool,
}

impl Described {
    /// Borrows the memory described. The Python object this was extracted from keeps the memory's owner alive,
    /// and is held by the caller's frame until the function returns.
    pub(crate) fn view(&self) -> PyResult<TensorView<'_>> {
        let dtype = DType::parse(&self.dtype)
            .ok_or_else(|| PyTypeError::new_err(format!("unsupported dtype {}", self.dtype)))?;
        let endian = if self.big_endian { Endian::Big } else { Endian::Little };
        let (shape, strides) = (self.shape.clone(), self.strides.clone());
        // SAFETY: address and size come from the library that owns the memory, read a moment ago, and its
        // owner is held by the `Described` object that is an argument of the running call; `TensorView`
        // checks that shape, strides and offset stay inside.
        #[allow(unsafe_code, reason = "memory of another library")]
        let view = unsafe {
            let address = self.address as *const u8;
            TensorView::from_raw(dtype, shape, strides, address, self.storage_bytes, self.offset, endian)
        };
        view.map_err(|error| PyValueError::new_err(error.to_string()))
    }
}
