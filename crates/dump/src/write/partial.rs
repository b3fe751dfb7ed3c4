//! Files that do not have their final name yet: hidden, created exclusively with their final mode, under a name nobody
//! can guess. A link that waits in the directory is never followed. The name tells which process writes the file, so
//! that what a killed one left can be swept.

use std::fs::{self, File, OpenOptions, Permissions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::stream::FILE_MODE;

const PREFIX: &str = ".part-";
/// More clashes of random names than this are no accident.
const MOST_TRIES: usize = 16;

/// Such a file. Dropping it removes it.
#[derive(Debug)]
pub(super) struct PartialFile {
    file: File,
    /// Empty once it has another name, or none.
    path: PathBuf,
}

impl PartialFile {
    /// Creates one in a directory.
    pub(super) fn create(dir: &Path) -> io::Result<PartialFile> {
        Self::create_as(dir, random_name)
    }

    fn create_as(dir: &Path, mut name: impl FnMut() -> String) -> io::Result<PartialFile> {
        let mut tries = 0;
        loop {
            let path = dir.join(name());
            tries += 1;
            match OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < MOST_TRIES => {}
                opened => {
                    let partial = PartialFile { file: opened?, path };
                    // The mode above is what the umask left of it.
                    partial.file.set_permissions(Permissions::from_mode(FILE_MODE))?;
                    return Ok(partial);
                }
            }
        }
    }

    pub(super) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Gives it its final name. A file of that name is replaced.
    pub(super) fn rename(mut self, path: &Path) -> io::Result<()> {
        fs::rename(&self.path, path)?;
        self.path = PathBuf::new();
        Ok(())
    }

    /// Takes its name away. The file is gone when it is closed, however the process ends.
    pub(super) fn unlink(mut self) -> io::Result<File> {
        fs::remove_file(std::mem::take(&mut self.path))?;
        self.file.try_clone()
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            // Whoever could not complete it has the error to report.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn random_name() -> String {
    let random = RandomState::new().build_hasher().finish();
    format!("{PREFIX}{}-{random:016x}", std::process::id())
}

/// The process that writes a file of this name.
pub(super) fn owner_of_partial(name: &str) -> Option<u32> {
    let (pid, _) = name.strip_prefix(PREFIX)?.split_once('-')?;
    pid.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    fn count(dir: &Path) -> usize {
        fs::read_dir(dir).unwrap().count()
    }

    #[test]
    fn it_is_hidden_until_it_has_its_name_and_gone_if_it_gets_none() {
        let dir = tempfile::tempdir().unwrap();
        let mut partial = PartialFile::create(dir.path()).unwrap();
        let name = partial.path.file_name().unwrap().to_str().unwrap();
        assert_eq!(owner_of_partial(name), Some(std::process::id()));
        partial.file().write_all(b"whole").unwrap();
        let path = dir.path().join("a.pt");
        partial.rename(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, FILE_MODE);
        drop(PartialFile::create(dir.path()).unwrap());
        let nameless = PartialFile::create(dir.path()).unwrap().unlink().unwrap();
        assert_eq!((count(dir.path()), nameless.metadata().unwrap().nlink()), (1, 0));
        let lost = PartialFile::create(dir.path()).unwrap();
        assert!(lost.rename(&dir.path().join("missing/a.pt")).is_err());
        assert_eq!(count(dir.path()), 1);
    }

    #[test]
    fn names_differ_and_links_are_not_followed() {
        let names: std::collections::BTreeSet<String> = (0..100).map(|_| random_name()).collect();
        assert_eq!(names.len(), 100);
        let dir = tempfile::tempdir().unwrap();
        let precious = dir.path().join("precious");
        fs::write(&precious, "precious").unwrap();
        symlink(&precious, dir.path().join(".part-1-guessed")).unwrap();
        let mut guessed = [".part-1-guessed", ".part-1-other"].into_iter().map(String::from);
        let mut partial = PartialFile::create_as(dir.path(), || guessed.next().unwrap()).unwrap();
        assert!(partial.path.ends_with(".part-1-other"));
        partial.file().write_all(b"data").unwrap();
        drop(partial);
        assert_eq!(fs::read(&precious).unwrap(), b"precious");
        let always = || ".part-1-guessed".to_owned();
        let error = PartialFile::create_as(dir.path(), always).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    }
}
