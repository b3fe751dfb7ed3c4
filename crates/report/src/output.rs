//! Files that are complete under their final name or not there, with the modes users were promised.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::console::Console;

/// Makes a directory for results, with its parents, for the user and the group.
pub fn make_directory(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o750).create(path)
}

/// Writes a file through a hidden neighbour that takes its name when it is complete. `write` gets the path to fill.
pub fn publish(
    path: &Path,
    console: &dyn Console,
    write: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let hidden = hidden_neighbour(path);
    let result = write(&hidden).and_then(|()| {
        if path.exists() {
            console.warning(&format!("{} will be deleted.", path.display()));
        }
        fs::set_permissions(&hidden, fs::Permissions::from_mode(0o640))?;
        fs::rename(&hidden, path)
    });
    if result.is_err() {
        // Whatever is left of it is of no use to anyone.
        let _ = fs::remove_file(&hidden);
    }
    result
}

fn hidden_neighbour(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}", std::process::id()))
}
