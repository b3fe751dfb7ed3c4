//! Why something of a dump could not be written, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use super::layout::LayoutError;

/// A file or directory that could not be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot write {}: {reason}{}", path.display(), hint_of(*kind))]
pub struct WriteError {
    /// What could not be written.
    pub path: PathBuf,
    /// What kind of error the system reported.
    pub kind: io::ErrorKind,
    /// What the system said.
    pub reason: String,
}

impl WriteError {
    /// An error of the system, about this path.
    pub fn new(path: &Path, error: &io::Error) -> WriteError {
        WriteError { path: path.to_owned(), kind: error.kind(), reason: error.to_string() }
    }

    /// Memory was refused that writing this path needs.
    pub fn out_of_memory(path: &Path) -> WriteError {
        WriteError::new(path, &io::ErrorKind::OutOfMemory.into())
    }

    /// Whether there is no room left where it was to be written.
    pub(super) fn is_full(&self) -> bool {
        is_full(self.kind)
    }

    /// A directory that could not be made.
    pub fn unmade(directory: &Path, error: &LayoutError) -> WriteError {
        let (kind, reason) = match error {
            LayoutError::Permission(_) => (io::ErrorKind::PermissionDenied, "permission denied".to_owned()),
            LayoutError::Create { kind, reason, .. } => (*kind, reason.clone()),
            LayoutError::NotADirectory(_) => {
                (io::ErrorKind::NotADirectory, "there is something else in its place".to_owned())
            }
            rule => (io::ErrorKind::InvalidInput, rule.to_string()),
        };
        WriteError { path: directory.to_owned(), kind, reason }
    }
}

/// What systems say when there is no room left on a disk.
pub(super) fn is_full(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn hint_of(kind: io::ErrorKind) -> &'static str {
    use io::ErrorKind as Kind;
    match kind {
        Kind::StorageFull | Kind::QuotaExceeded => {
            "; hint: free some space, or choose a dump_path on another disk"
        }
        Kind::FileTooLarge => {
            "; hint: raise the limit on file sizes (ulimit -f), or dump fewer steps at a time"
        }
        Kind::PermissionDenied | Kind::ReadOnlyFilesystem => {
            "; hint: choose a dump_path that this user may write to"
        }
        Kind::NotFound => {
            "; hint: the directory was removed during the run; leave it in place until the run ends"
        }
        Kind::OutOfMemory => {
            "; hint: leave the process more memory, or dump less at a time (`list`, `scope`, task statistics)"
        }
        Kind::AlreadyExists => "; hint: let each process write to a dump_path or rank of its own",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_path_and_a_way_out() {
        let error = WriteError::new(Path::new("/d/dump.json"), &io::Error::from_raw_os_error(28));
        let text = error.to_string();
        assert!(text.starts_with("cannot write /d/dump.json: No space left on device"), "{text}");
        assert!(text.ends_with("hint: free some space, or choose a dump_path on another disk"), "{text}");
        let error = WriteError::new(Path::new("x"), &io::Error::other("odd"));
        assert_eq!(error.to_string(), "cannot write x: odd");
    }
}
