//! One `.npy` file that holds an array of a dump.

use std::path::Path;

use super::{Format, TensorFile};
use crate::TensorView;

/// An array that was found and could be read.
#[derive(Debug)]
pub struct NpyArray {
    file: TensorFile,
}

impl NpyArray {
    /// Opens an `.npy` file of a dump; otherwise says why it cannot be used.
    pub fn open(path: &Path) -> Result<NpyArray, String> {
        let file = TensorFile::open_found(path).map_err(|error| error.to_string())?;
        if file.format() != Format::Npy {
            return Err(format!("cannot read {}: it is not an .npy file", path.display()));
        }
        file.view(0).map_err(|error| error.to_string())?;
        Ok(NpyArray { file })
    }

    /// Bytes of the file behind the array.
    pub fn trailing_bytes(&self) -> u64 {
        self.file.unclaimed_bytes()
    }

    /// The elements. `None` only if the file changed under our feet.
    pub fn view(&self) -> Option<TensorView<'_>> {
        self.file.view(0).ok()
    }
}
