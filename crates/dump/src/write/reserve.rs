//! Room on the disk for the JSON files of a step that has tensor files: those can fill any disk, and without an index
//! nothing of them is worth anything.
//!
//! It is a file without a name, which is gone with the process however that ends. When there is no room for the JSON
//! files, the writers of tensor files are stopped first, because they would take whatever is freed.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use super::error::{WriteError, is_full};
use super::partial::PartialFile;
use super::tensors::PoolEnding;

/// Enough for the records of many seconds, each of which is written twice.
const RESERVE_BYTES: u64 = 16 << 20;
/// Where room has to be written to be kept: that takes its time, most of all over a network.
const FILLED_BYTES: u64 = 1 << 20;
/// Less than this is no use.
const LEAST_RESERVE_BYTES: u64 = 256 << 10;

/// Room that is kept, and who has to stop before it is used.
#[derive(Debug)]
pub(super) struct Reserve {
    room: Option<File>,
    pool: PoolEnding,
    is_pool_ended: bool,
}

impl Reserve {
    /// Keeps room on the disk of this directory: less where there is little. An error where there is none.
    pub(super) fn create(dir: &Path, pool: PoolEnding) -> Result<Reserve, WriteError> {
        let room = keep(dir).map_err(|error| WriteError::new(dir, &error))?;
        Ok(Reserve { room: Some(room), pool, is_pool_ended: false })
    }

    /// Makes room after this error. False if it is not of that kind, or there is nothing left to give.
    pub(super) fn make_room(&mut self, error: &WriteError) -> bool {
        if !error.is_full() {
            return false;
        }
        if !self.is_pool_ended {
            // Files that do not get complete are removed, which is often enough.
            self.pool.end(error.clone());
            self.is_pool_ended = true;
            return true;
        }
        self.room.take().is_some()
    }
}

fn keep(dir: &Path) -> io::Result<File> {
    let file = PartialFile::create(dir)?.unlink()?;
    // Beyond the limit on the size of files the system would not only refuse, but send a signal.
    let limit = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
    let mut bytes = RESERVE_BYTES.min(limit);
    loop {
        match allocate(&file, bytes) {
            Err(error) if is_full(error.kind()) && bytes > LEAST_RESERVE_BYTES => bytes /= 2,
            done => return done.map(|()| file),
        }
    }
}

fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::KEEP_SIZE, 0, bytes) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => fill(file, bytes.min(FILLED_BYTES)),
        done => done.map_err(io::Error::from),
    }
}

/// For file systems that cannot set room aside.
fn fill(file: &File, bytes: u64) -> io::Result<()> {
    let zeros = vec![0; 1 << 16];
    let mut at = 0;
    while at < bytes {
        let count = zeros.len().min(usize::try_from(bytes - at).unwrap_or(zeros.len()));
        if let Err(error) = file.write_all_at(&zeros[..count], at) {
            file.set_len(0)?;
            return Err(error);
        }
        at += count as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use super::super::tensors::TensorPool;
    use super::*;

    #[test]
    fn room_is_kept_without_a_name_and_given_back_last() {
        let dir = tempfile::tempdir().unwrap();
        let pool = TensorPool::new(1, 1 << 20).unwrap();
        let mut reserve = Reserve::create(dir.path(), pool.ending()).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        let kept_bytes = 512 * reserve.room.as_ref().unwrap().metadata().unwrap().blocks();
        assert!(kept_bytes >= RESERVE_BYTES, "{kept_bytes}");
        let error = |kind: io::ErrorKind| WriteError::new(dir.path(), &kind.into());
        assert!(!reserve.make_room(&error(io::ErrorKind::PermissionDenied)));
        assert!(pool.is_open() && reserve.room.is_some());
        assert!(reserve.make_room(&error(io::ErrorKind::StorageFull)));
        assert!(!pool.is_open() && reserve.room.is_some());
        assert!(reserve.make_room(&error(io::ErrorKind::StorageFull)));
        assert!(reserve.room.is_none());
        assert!(!reserve.make_room(&error(io::ErrorKind::StorageFull)));
    }

    #[test]
    fn file_systems_that_cannot_set_room_aside_are_written_to() {
        let file = tempfile::tempfile().unwrap();
        fill(&file, 100_001).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 100_001);
    }
}
