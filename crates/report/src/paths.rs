//! Paths users give and files they get; what cannot be read or written is an error of the comparison.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::console::Console;
use crate::error::{Code, CompareError};
use crate::output;
pub use crate::output::timestamp;

/// Refuses a path that is not there, is a link, or has characters that do not belong in a path of a dump.
pub fn check_exists(path: &Path) -> Result<(), CompareError> {
    let illegal = |message: String| Err(CompareError::new(Code::IllegalPath, message));
    let shown = path.display();
    match path.symlink_metadata() {
        Err(_) => illegal(format!("The file path {shown} does not exist.")),
        Ok(metadata) if metadata.file_type().is_symlink() => {
            illegal(format!("The file path {shown} is a soft link."))
        }
        Ok(_) => Ok(()),
    }
}

/// Refuses what is not a directory.
pub fn check_directory(path: &Path) -> Result<(), CompareError> {
    check_exists(path)?;
    if !path.is_dir() {
        let message = format!("The path {} is not a directory.", path.display());
        return Err(CompareError::new(Code::IllegalPath, message));
    }
    Ok(())
}

/// Makes a directory for results, with its parents, for the user and the group.
pub fn make_directory(path: &Path) -> Result<(), CompareError> {
    output::make_directory(path).map_err(|error| cannot_write(path, &error))
}

/// Makes a directory in the one for results, without following links in there.
pub fn make_directory_in(root: &Path, relative: impl AsRef<Path>) -> Result<PathBuf, CompareError> {
    let relative = relative.as_ref();
    output::make_directory_in(root, relative).map_err(|error| cannot_write(&root.join(relative), &error))
}

/// Writes a file of a fixed name, complete or not at all. One that was there is kept under its time, and that is said.
pub fn publish(
    path: &Path,
    console: &dyn Console,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), CompareError> {
    output::publish(path, console, write).map_err(|error| cannot_write(path, &error))
}

/// Writes a file whose name carries a time, complete or not at all. While the name is taken the time goes on; the path the
/// file got is given back.
pub fn publish_stamped(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<PathBuf, CompareError> {
    output::publish_numbered(path, write).map_err(|error| cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &io::Error) -> CompareError {
    CompareError::new(Code::IllegalPath, format!("cannot write {}: {error}", path.display()))
        .with_hint("choose an output directory you can write to, with enough free space")
}
