//! What a dump of a static graph has: files of tensors, tables of statistics, and other names of files whose own were too
//! long.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use msprobe_report::console::Console;
use rustc_hash::FxHashMap;

/// Directories below directories that are looked at.
const MOST_LEVELS: usize = 64;
/// The names of files whose own were too long.
const MAPPING: &str = "mapping.csv";

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Files of tensors, in the order of their paths.
    pub(crate) arrays: Vec<PathBuf>,
    /// Tables of statistics.
    pub(crate) tables: Vec<PathBuf>,
}

/// The files below a path, or that one file. Links are not followed; a directory that cannot be read is reported.
pub(crate) fn find(path: &Path, console: &dyn Console) -> Found {
    let mut found = Found::default();
    if path.is_dir() {
        let mut waiting = vec![(path.to_owned(), 0)];
        while let Some((directory, level)) = waiting.pop() {
            match list(&directory) {
                Ok((files, mut children)) => {
                    for file in files {
                        found.note(file);
                    }
                    if level < MOST_LEVELS {
                        children.reverse();
                        waiting.extend(children.into_iter().map(|child| (child, level + 1)));
                    } else if !children.is_empty() {
                        let shown = directory.display();
                        console.warning(&format!("directories deeper than {shown} are not looked at"));
                    }
                }
                Err(error) => console.error(&format!("{} cannot be read: {error}", directory.display())),
            }
        }
    } else {
        found.note(path.to_owned());
    }
    found
}

impl Found {
    fn note(&mut self, file: PathBuf) {
        if file.extension().is_some_and(|extension| extension == "npy") {
            self.arrays.push(file);
        } else if file.file_name().is_some_and(|name| name == "statistic.csv") {
            self.tables.push(file);
        }
    }
}

fn list(directory: &Path) -> io::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut files, mut children) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            children.push(entry.path());
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    files.sort_unstable();
    children.sort_unstable();
    Ok((files, children))
}

/// Names of files as they were before they were shortened, directory by directory.
#[derive(Debug, Default)]
pub(crate) struct LongNames {
    directories: FxHashMap<PathBuf, FxHashMap<String, String>>,
}

impl LongNames {
    /// The name of the operator a file belongs to: the second of the parts of its own name, which may stand in
    /// `mapping.csv`.
    pub(crate) fn operator(&mut self, file: &Path) -> Result<String, String> {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let stem = name.strip_suffix(".npy").unwrap_or(&name);
        let is_short = !stem.is_empty() && stem.bytes().all(|byte| byte.is_ascii_digit());
        let own = if is_short {
            let directory = file.parent().unwrap_or(Path::new(""));
            let names = self.directories.entry(directory.to_owned()).or_insert_with(|| read(directory));
            let found = names.get(&name).or_else(|| names.get(stem));
            found.ok_or_else(|| format!("{} is not in {MAPPING} beside it", file.display()))?.clone()
        } else {
            name
        };
        let mut parts = own.split('.');
        let operator = parts.nth(1).filter(|_| parts.next().is_some());
        operator.map(str::to_owned).ok_or_else(|| {
            format!("{} has no name of an operator: OPERATOR_TYPE.NAME.… is expected", file.display())
        })
    }
}

fn read(directory: &Path) -> FxHashMap<String, String> {
    let reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_path(directory.join(MAPPING));
    let Ok(mut reader) = reader else { return FxHashMap::default() };
    let rows = reader.records().map_while(Result::ok);
    rows.filter_map(|row| Some((row.get(0)?.trim().to_owned(), row.get(1)?.trim().to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn names_of_operators() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(MAPPING), "123.npy,Add.Default_Add-op0.0.0.1.npy\n9,broken\n").unwrap();
        let mut names = LongNames::default();
        let mut operator = |name: &str| names.operator(&dir.path().join(name));
        assert_eq!(operator("Mul.Default_Mul-op0.0.0.1.input.0.npy").unwrap(), "Default_Mul-op0");
        assert_eq!(operator("123.npy").unwrap(), "Default_Add-op0");
        assert!(operator("124.npy").unwrap_err().ends_with("is not in mapping.csv beside it"));
        assert!(operator("9.npy").unwrap_err().contains("no name of an operator"));
        assert!(operator("array.npy").unwrap_err().contains("no name of an operator"));
    }
}
