//! Trees of dump directories, read in the same order on every machine. Links are not followed.

use std::fs;
use std::path::{Path, PathBuf};

use msprobe_report::console::Console;

/// No dump nests its directories deeper.
const MOST_LEVELS: usize = 10;

/// One directory: its files by name, and whether there are directories in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Directory {
    /// Its path.
    pub path: PathBuf,
    /// Names of the files in it, sorted.
    pub files: Vec<String>,
    /// Whether nothing lies beneath it.
    pub lowest: bool,
}

/// A directory and everything beneath it, parents before children, names ascending. What cannot be listed is
/// reported and left out.
pub(crate) fn walk(root: &Path, console: &dyn Console) -> Vec<Directory> {
    let mut found = Vec::new();
    let mut waiting = vec![(root.to_owned(), 0)];
    while let Some((path, level)) = waiting.pop() {
        let (files, mut children) = match list(&path) {
            Ok(listing) => listing,
            Err(error) => {
                console.error(&format!("cannot list {}: {error}", path.display()));
                continue;
            }
        };
        let lowest = children.is_empty();
        if level < MOST_LEVELS {
            children.reverse();
            waiting.extend(children.into_iter().map(|name| (path.join(name), level + 1)));
        } else if !lowest {
            console.warning(&format!("directories deeper than {} are not looked at", path.display()));
        }
        found.push(Directory { path, files, lowest });
    }
    found
}

/// Names of files and of directories in a directory, each sorted.
fn list(path: &Path) -> std::io::Result<(Vec<String>, Vec<String>)> {
    let (mut files, mut children) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        // Names that are no text belong to nobody's dump.
        let Ok(name) = entry.file_name().into_string() else { continue };
        let kind = entry.file_type()?;
        if kind.is_dir() {
            children.push(name);
        } else if kind.is_file() {
            files.push(name);
        }
    }
    files.sort_unstable();
    children.sort_unstable();
    Ok((files, children))
}
