//! Files that are being written: hidden, under names nobody can guess, and gone unless they are completed.
//!
//! They are created exclusively, so a link that waits in the directory is never followed. Whoever gives up — by an error,
//! by unwinding, by a signal that [`abandon`] answers — takes them along.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use tempfile::TempPath;

/// What users were promised: for them and their group.
const FILE_MODE: u32 = 0o640;

/// Paths of all files of this process that have no final name yet. Who holds the lock may give names, or take files away.
static PATHS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn paths() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    PATHS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all unfinished files of this process and calls `end`, which should end it: until it returns, no file gets a
/// final name and none is begun.
pub fn abandon<T>(end: impl FnOnce() -> T) -> T {
    let mut paths = paths();
    for path in std::mem::take(&mut *paths) {
        // What is gone needs no removal, and nobody is left to hear of the rest.
        let _ = fs::remove_file(path);
    }
    end()
}

/// A file without a final name. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct Unfinished {
    path: TempPath,
    file: File,
}

/// What became of a file that was given a name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// The name was free.
    New,
    /// The file that had the name is now called so.
    Kept(PathBuf),
    /// The file system could not keep the file that had the name.
    Replaced,
}

/// What the system said, without the temporary name that was put around it: nobody knows that name. Its number is lost
/// there, but for what users meet.
fn system_error(error: &io::Error) -> Option<io::Error> {
    let number = match error.kind() {
        io::ErrorKind::NotFound => 2,
        io::ErrorKind::PermissionDenied => 13,
        io::ErrorKind::NotADirectory => 20,
        io::ErrorKind::StorageFull => 28,
        io::ErrorKind::ReadOnlyFilesystem => 30,
        _ => return None,
    };
    Some(io::Error::from_raw_os_error(number))
}

impl Unfinished {
    /// Begins a file that is to be called `path` one day: in the same directory, with its final mode.
    pub(crate) fn begin(path: &Path) -> io::Result<Unfinished> {
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let mut paths = paths();
        let (file, temporary) = tempfile::Builder::new()
            .prefix(".msprobe-")
            .suffix(".part")
            .rand_bytes(16)
            .permissions(Permissions::from_mode(FILE_MODE))
            .tempfile_in(directory)
            .map_err(|error| system_error(&error).unwrap_or(error))?
            .into_parts();
        paths.insert(temporary.to_path_buf());
        drop(paths);
        let unfinished = Unfinished { path: temporary, file };
        // The mode above is what the umask left of it.
        unfinished.file.set_permissions(Permissions::from_mode(FILE_MODE))?;
        Ok(unfinished)
    }

    /// Where to write.
    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Where it is until then.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file the first of the names that is free, whoever else gives names at the same time.
    pub(crate) fn place_first_free(&self, names: impl IntoIterator<Item = PathBuf>) -> io::Result<PathBuf> {
        let _no_signal_ends_this = paths();
        first_free(&self.path, names)
    }

    /// Gives the file that name. A file that has it already gets the first free one of `names_for`, which is given the path
    /// under which that file can be looked at.
    pub(crate) fn place<N: IntoIterator<Item = PathBuf>>(
        &self,
        name: &Path,
        names_for: impl Fn(&Path) -> N,
    ) -> io::Result<Placed> {
        let _no_signal_ends_this = paths();
        // Others may take a file away between two looks at it, but not for ever.
        for _ in 0..64 {
            match rename_to_free(&self.path, name) {
                Ok(()) => return Ok(Placed::New),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            if fs::symlink_metadata(name).is_ok_and(|metadata| metadata.is_dir()) {
                return Err(io::Error::new(ErrorKind::IsADirectory, "a directory has that name"));
            }
            match self.exchange_with(name) {
                Ok(()) => {
                    return first_free(&self.path, names_for(&self.path)).map(Placed::Kept).inspect_err(
                        |_| {
                            // Otherwise the older file would go with the hidden name.
                            let _ = self.exchange_with(name);
                        },
                    );
                }
                Err(Errno::NOENT) => {}
                Err(_) => return self.replace_by_link(name, names_for(name)),
            }
        }
        Err(io::Error::new(ErrorKind::ResourceBusy, "others keep changing the file of that name"))
    }

    /// Gives the file that name; one that has it gives way.
    pub(crate) fn replace(&self, name: &Path) -> io::Result<()> {
        let _no_signal_ends_this = paths();
        fs::rename(&self.path, name)
    }

    /// Both files have a name at every instant, and of several processes each gets another older file.
    fn exchange_with(&self, name: &Path) -> Result<(), Errno> {
        renameat_with(CWD, &*self.path, CWD, name, RenameFlags::EXCHANGE)
    }

    /// For file systems that cannot exchange names.
    fn replace_by_link(&self, name: &Path, names: impl IntoIterator<Item = PathBuf>) -> io::Result<Placed> {
        let mut placed = Placed::Replaced;
        for older in names {
            match fs::hard_link(name, &older) {
                Ok(()) => {
                    placed = Placed::Kept(older);
                    break;
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(_) => break,
            }
        }
        fs::rename(&self.path, name)?;
        Ok(placed)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // The file itself goes with its path, unless it has another name by now.
        paths().remove(&*self.path);
    }
}

fn first_free(file: &Path, names: impl IntoIterator<Item = PathBuf>) -> io::Result<PathBuf> {
    for name in names {
        match rename_to_free(file, &name) {
            Ok(()) => return Ok(name),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(ErrorKind::AlreadyExists, "all names it could have are taken"))
}

/// Renames a file unless there is one of that name, in one step.
fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        result => return Ok(result?),
    }
    // Network file systems often know links, but not such renames.
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
        Err(_) => {
            // Some know neither. An empty file keeps the name for the moment until it is replaced.
            OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(to)?;
            fs::rename(from, to)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn files(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_not_finished_goes_away() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = Unfinished::begin(&dir.path().join("a")).unwrap();
        file.file().write_all(b"half").unwrap();
        assert_eq!(file.file().metadata().unwrap().permissions().mode() & 0o777, FILE_MODE);
        let names = files(dir.path());
        assert!(names.len() == 1 && names[0].starts_with(".msprobe-"), "{names:?}");
        drop(file);
        assert!(files(dir.path()).is_empty());
    }

    #[test]
    fn an_older_file_keeps_its_content_under_another_name() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let outside = tempfile::tempdir().unwrap();
        let target = outside.path().join("precious");
        fs::write(&target, "precious").unwrap();
        std::os::unix::fs::symlink(&target, at("a")).unwrap();
        for (text, kept) in [("one", "a1"), ("two", "a2"), ("three", "a3")] {
            let mut file = Unfinished::begin(&at("a")).unwrap();
            file.file().write_all(text.as_bytes()).unwrap();
            let placed = file.place(&at("a"), |_| (1..).map(|n| at(&format!("a{n}")))).unwrap();
            assert_eq!(placed, Placed::Kept(at(kept)));
        }
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
        assert_eq!(fs::read_link(at("a1")).unwrap(), target);
        let read = |name: &str| fs::read_to_string(at(name)).unwrap();
        assert_eq!(["a2", "a3", "a"].map(read), ["one", "two", "three"]);
        assert_eq!(files(dir.path()), ["a", "a1", "a2", "a3"]);
    }

    #[test]
    fn a_directory_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::create_dir(&path).unwrap();
        let file = Unfinished::begin(&path).unwrap();
        let error = file.place(&path, |_| [dir.path().join("b")]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IsADirectory);
        drop(file);
        assert_eq!(files(dir.path()), ["a"]);
    }

    #[test]
    fn without_exchange_the_older_file_is_linked() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("a"), "old").unwrap();
        let mut file = Unfinished::begin(&at("a")).unwrap();
        file.file().write_all(b"new").unwrap();
        assert_eq!(file.replace_by_link(&at("a"), [at("a"), at("b")]).unwrap(), Placed::Kept(at("b")));
        drop(file);
        assert_eq!([at("a"), at("b")].map(|path| fs::read_to_string(path).unwrap()), ["new", "old"]);
    }
}
