//! Files a comparison leaves: named with the time; what cannot be written is an error of the comparison.

use std::io;
use std::path::Path;

use msprobe_report::output;

use crate::console::Console;
use crate::error::{Code, CompareError};

/// Local time as file names carry it: `20261116093007`.
pub fn timestamp() -> String {
    chrono::Local::now().format("%Y%m%d%H%M%S").to_string()
}

/// Makes a directory for results, with its parents, for the user and the group.
pub fn make_directory(path: &Path) -> Result<(), CompareError> {
    output::make_directory(path).map_err(|error| cannot_write(path, &error))
}

/// Writes a file that is complete under its name or not there. `write` gets the path to fill.
pub fn publish(
    path: &Path,
    console: &dyn Console,
    write: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<(), CompareError> {
    output::publish(path, console, write).map_err(|error| cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &io::Error) -> CompareError {
    CompareError::new(Code::IllegalPath, format!("cannot write {}: {error}", path.display()))
        .with_hint("choose an output directory you can write to, with enough free space")
}
