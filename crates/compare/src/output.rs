//! Files a comparison leaves: named with the time, complete under their final name or not there, modes as promised.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::console::Console;
use crate::error::{Code, CompareError};

/// Local time as file names carry it: `20261116093007`.
pub fn timestamp() -> String {
    chrono::Local::now().format("%Y%m%d%H%M%S").to_string()
}

/// Makes a directory for results, with its parents, for the user and the group.
pub fn make_directory(path: &Path) -> Result<(), CompareError> {
    fs::DirBuilder::new().recursive(true).mode(0o750).create(path).map_err(|error| cannot_write(path, &error))
}

/// Writes a file through a hidden neighbour that takes its name when it is complete. `write` gets the path to fill.
pub fn publish(
    path: &Path,
    console: &dyn Console,
    write: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<(), CompareError> {
    let hidden = hidden_neighbour(path);
    let result = write(&hidden).and_then(|()| {
        if path.exists() {
            console.warning(&format!("{} will be deleted.", path.display()));
        }
        fs::set_permissions(&hidden, fs::Permissions::from_mode(0o640))?;
        fs::rename(&hidden, path)
    });
    result.map_err(|error| {
        // Whatever is left of it is of no use to anyone.
        let _ = fs::remove_file(&hidden);
        cannot_write(path, &error)
    })
}

fn hidden_neighbour(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}", std::process::id()))
}

fn cannot_write(path: &Path, error: &io::Error) -> CompareError {
    CompareError::new(Code::IllegalPath, format!("cannot write {}: {error}", path.display()))
        .with_hint("choose an output directory you can write to, with enough free space")
}
