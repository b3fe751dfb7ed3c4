//! A tensor as Python describes it.

use msprobe_tensor::{DType, Endian, TensorView, ViewError};
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
    /// and is held by the caller's frame until the function returns, or next to this.
    pub(crate) fn view(&self) -> PyResult<TensorView<'_>> {
        let dtype = self.known_dtype()?;
        self.view_as(dtype).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// [`view`](Self::view) for threads without Python, of what was viewed before.
    pub(crate) fn checked_view(&self) -> Result<TensorView<'_>, ViewError> {
        self.view_as(DType::parse(&self.dtype).unwrap_or(DType::U8))
    }

    fn known_dtype(&self) -> PyResult<DType> {
        DType::parse(&self.dtype)
            .ok_or_else(|| PyTypeError::new_err(format!("unsupported dtype {}", self.dtype)))
    }

    fn view_as(&self, dtype: DType) -> Result<TensorView<'_>, ViewError> {
        let endian = if self.big_endian { Endian::Big } else { Endian::Little };
        let (shape, strides) = (self.shape.clone(), self.strides.clone());
        // SAFETY: address and size come from the library that owns the memory, and its owner is held by the
        // `Described` object that is an argument of the running call or kept beside this value; `TensorView`
        // checks that shape, strides and offset stay inside.
        #[allow(unsafe_code, reason = "memory of another library")]
        unsafe {
            let address = self.address as *const u8;
            TensorView::from_raw(dtype, shape, strides, address, self.storage_bytes, self.offset, endian)
        }
    }
}
