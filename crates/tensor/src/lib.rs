//! Numbers: dtypes, borrowed strided views, one-pass statistics, checksums, error metrics of a pair, and the
//! files tensors are kept in. Knows nothing of dumps or Python.

mod dtype;
pub mod files;
mod view;

pub use dtype::{DType, DTypeClass};
pub use view::{BLOCK_ELEMENTS, Endian, TensorView, ViewError, checked_numel, contiguous_strides};
