//! Going through directories, within limits.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use super::Finding;

/// Directories in directories that are looked into.
const DEEPEST: usize = 8;
/// Entries that are looked at, of all roots together.
const MOST_ENTRIES: usize = 200_000;
/// Items that are shown.
const MOST_ITEMS: usize = 5000;

/// The entries of a directory that are files or directories, sorted.
#[derive(Debug, Default)]
pub(super) struct Entries {
    pub(super) files: Vec<PathBuf>,
    pub(super) directories: Vec<PathBuf>,
    pub(super) links: Vec<PathBuf>,
}

impl Entries {
    pub(super) fn read(directory: &Path, left: &mut usize) -> std::io::Result<Entries> {
        let mut entries = Entries::default();
        for entry in fs::read_dir(directory)? {
            if *left == 0 {
                break;
            }
            *left -= 1;
            let entry = entry?;
            let (kind, path) = (entry.file_type()?, entry.path());
            if kind.is_symlink() {
                entries.links.push(path);
            } else if kind.is_dir() {
                entries.directories.push(path);
            } else if kind.is_file() {
                entries.files.push(path);
            }
        }
        entries.files.sort();
        entries.directories.sort();
        entries.links.sort();
        Ok(entries)
    }
}

/// The name of a path, as text.
pub(super) fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Whether a name ends so, as the commands that made it spell it.
pub(super) fn has_ending(name: &str, ending: &str) -> bool {
    name.ends_with(ending)
}

/// Looks at everything below a root.
pub(super) fn scan(finding: &mut Finding<'_>) {
    let top = finding.root.path.clone();
    if top.is_file() {
        let entries = Entries { files: vec![top.clone()], ..Entries::default() };
        return finding.add_files(&entries);
    }
    let mut left = MOST_ENTRIES;
    let mut open = VecDeque::from([(top, 0)]);
    while let Some((directory, depth)) = open.pop_front() {
        if finding.found.catalogue.items.len() >= MOST_ITEMS {
            finding.note(
                &directory,
                format!("more than {MOST_ITEMS} things were found: the rest was not looked at"),
            );
            return;
        }
        let entries = match Entries::read(&directory, &mut left) {
            Ok(entries) => entries,
            Err(error) => {
                finding.note(&directory, format!("it cannot be read: {error}"));
                continue;
            }
        };
        if left == 0 {
            finding.note(
                &directory,
                format!("more than {MOST_ENTRIES} files were found: the rest was not looked at"),
            );
            return;
        }
        for link in &entries.links {
            finding.note(link, "it is a link, which is not followed");
        }
        finding.add_files(&entries);
        // What belongs to a run is no place to look for others.
        let inside = finding.add_dump(&directory, &entries, &mut left);
        let others = entries.directories.into_iter().filter(|path| {
            !inside.contains(path) && !matches!(name_of(path), "dump_tensor_data" | "node_modules" | ".git")
        });
        if depth < DEEPEST {
            open.extend(others.map(|path| (path, depth + 1)));
        } else if others.count() > 0 {
            finding.note(&directory, format!("directories deeper than {DEEPEST} were not looked at"));
        }
    }
}
