//! Tensors with the same elements are one file with several names.
//!
//! The result of one call is the argument of the next, and weights come back in every call: about half of what a step
//! saves is there already, and a second name costs a fraction of a second file. What is the same is known by the
//! elements, not by where they come from. A file that somebody else has changed meanwhile gets no more names, and where
//! the file system knows no such names the elements are written again.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use msprobe_tensor::{DType, TensorView, hash128};

use super::saved_file::FilePromise;
use crate::hash::FastMap;
use crate::names::TensorFormat;

/// More files than this are not remembered.
const MOST_FILES: usize = 1 << 16;

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ContentKey {
    hash: u128,
    dtype: DType,
    shape: Box<[usize]>,
    format: TensorFormat,
}

impl ContentKey {
    /// Of elements that lie in one piece; reading others twice costs more than it saves.
    pub(super) fn of(view: &TensorView<'_>, format: TensorFormat) -> Option<ContentKey> {
        view.as_bytes()?;
        Some(ContentKey { hash: hash128(view), dtype: view.dtype(), shape: view.shape().into(), format })
    }

    pub(super) fn format(&self) -> TensorFormat {
        self.format
    }
}

/// A further name for a file, and the promise to say what became of it.
pub(super) type FurtherName = (PathBuf, FilePromise);

/// Files by what they hold.
#[derive(Debug, Default)]
pub(super) struct KnownFiles(FastMap<ContentKey, Known>);

#[derive(Debug)]
enum Known {
    /// Somebody writes it and will give it these names as well.
    UnderWay(Vec<FurtherName>),
    Written(WrittenFile),
}

/// A file as it was left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WrittenFile {
    path: PathBuf,
    inode: (u64, u64),
    size_bytes: u64,
    modified: (i64, i64),
}

impl WrittenFile {
    pub(super) fn at(path: &Path) -> io::Result<WrittenFile> {
        let meta = fs::symlink_metadata(path)?;
        Ok(WrittenFile {
            path: path.to_owned(),
            inode: (meta.dev(), meta.ino()),
            size_bytes: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
        })
    }

    /// Gives it another name, which nothing may have yet.
    pub(super) fn name_again(&self, path: &Path) -> io::Result<()> {
        if WrittenFile::at(&self.path)? != *self {
            return Err(io::Error::other("the file was changed"));
        }
        fs::hard_link(&self.path, path)
    }
}

/// What came of looking for a file with the same elements.
#[derive(Debug)]
pub(super) enum Search {
    /// It has the name.
    Named,
    /// It will get the name from who writes it.
    Later,
    /// There is none; the promise comes back.
    None(FilePromise),
}

impl KnownFiles {
    /// Gives a file with these elements a further name, if there is one.
    pub(super) fn name_again(&mut self, key: &ContentKey, path: &Path, promise: FilePromise) -> Search {
        match self.0.get_mut(key) {
            None => Search::None(promise),
            Some(Known::UnderWay(names)) => {
                names.push((path.to_owned(), promise));
                Search::Later
            }
            Some(Known::Written(file)) => match file.name_again(path) {
                Ok(()) => {
                    promise.settle(None);
                    Search::Named
                }
                Err(_) => {
                    self.0.remove(key);
                    Search::None(promise)
                }
            },
        }
    }

    /// A file with these elements is under way. False if there is another one: then that one gets the names.
    pub(super) fn begin(&mut self, key: &ContentKey) -> bool {
        if self.0.len() >= MOST_FILES {
            self.forget();
        }
        let is_first = !self.0.contains_key(key);
        if is_first {
            self.0.insert(key.clone(), Known::UnderWay(Vec::new()));
        }
        is_first
    }

    /// The names that were asked for since; none any more once the file is known as written, or as lost.
    pub(super) fn names_or_end(&mut self, key: &ContentKey, file: Option<&WrittenFile>) -> Vec<FurtherName> {
        let Some(Known::UnderWay(names)) = self.0.get_mut(key) else { return Vec::new() };
        let names = std::mem::take(names);
        if names.is_empty() {
            match file {
                Some(file) => self.0.insert(key.clone(), Known::Written(file.clone())),
                None => self.0.remove(key),
            };
        }
        names
    }

    /// Forgets all that are not under way: who knows what becomes of them later.
    pub(super) fn forget(&mut self) {
        self.0.retain(|_, known| matches!(known, Known::UnderWay(_)));
    }
}
