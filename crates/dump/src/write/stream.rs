//! A growing JSON file that is a complete document at every instant, also for who kills the process.
//!
//! There are two files: the one under the visible name, and a hidden spare beside it. A batch of edits goes to the
//! spare, which is first given the batch that the visible one got before; then the names are exchanged in one step.
//! So each byte is written twice, however large the file grows, and no name ever shows a half-written document.
//! (Whoever keeps the file open over two commits can see it change, as with any file that grows.)
//!
//! | the file system offers | the names change by |
//! |---|---|
//! | an exchange of names (ext4, xfs, btrfs, tmpfs, overlayfs) | that exchange |
//! | hard links (NFS) | a link to the old file, then a rename over it |
//! | neither | nothing: the visible file grows in place, whole unless killed in the middle of a write |
//!
//! Nothing is synced to the disk: a crash of the machine, unlike one of the process, may lose data.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use msprobe_tensor::memory::try_grow_bytes;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// The mode of every file of a dump, whatever the umask.
pub(super) const FILE_MODE: u32 = 0o640;
/// Buffers that one large batch has blown up are not kept beyond this.
const KEPT_BYTES: usize = 4 << 20;

/// Room for the text that ends a document.
const TAIL_BYTES: usize = 64;

/// How the names change at a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Swap {
    Exchange,
    Link,
    InPlace,
}

/// Edits that are made visible together.
#[derive(Debug, Default)]
struct Batch {
    /// Where the appended bytes begin.
    start: u64,
    appended: Vec<u8>,
    /// Changes of what lies before `start`, in order.
    patches: Vec<(u64, Box<[u8]>)>,
}

impl Batch {
    fn end(&self) -> u64 {
        self.start + self.appended.len() as u64
    }

    fn restart(&mut self, start: u64) {
        self.start = start;
        self.appended.clear();
        self.appended.shrink_to(KEPT_BYTES);
        self.patches.clear();
        self.patches.shrink_to(1024);
    }
}

/// A file that always holds `head + appended + tail`.
#[derive(Debug)]
pub struct StreamFile {
    path: PathBuf,
    spare_path: PathBuf,
    old_path: PathBuf,
    visible: File,
    spare: Option<File>,
    swap: Swap,
    tail: String,
    tail_changed: bool,
    pending: Batch,
    /// What the visible file has and the spare has not.
    behind: Batch,
    failed: bool,
    /// Memory for edits was refused: they are not complete.
    is_short: bool,
    bytes_written: u64,
}

impl StreamFile {
    /// Replaces whatever is under `path` by a document of `head` and `tail`. What a killed run left is removed.
    pub fn create(path: &Path, head: &str, tail: &str) -> io::Result<StreamFile> {
        StreamFile::create_by(path, head, tail, Swap::Exchange)
    }

    fn create_by(path: &Path, head: &str, tail: &str, swap: Swap) -> io::Result<StreamFile> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
        let spare_path = path.with_file_name(format!(".{name}.spare"));
        let old_path = path.with_file_name(format!(".{name}.old"));
        remove_if_there(&old_path)?;
        let text = [head, tail].concat();
        let visible = create_file(&spare_path, text.as_bytes())?;
        fs::rename(&spare_path, path)?;
        let spare = create_file(&spare_path, text.as_bytes())?;
        let start = head.len() as u64;
        let mut file = StreamFile {
            path: path.to_owned(),
            spare_path,
            old_path,
            visible,
            spare: Some(spare),
            swap,
            tail: tail.to_owned(),
            tail_changed: false,
            pending: Batch { start, ..Batch::default() },
            behind: Batch { start, ..Batch::default() },
            failed: false,
            is_short: false,
            bytes_written: 2 * text.len() as u64,
        };
        // Both files are the same now, so this is the time to learn what the file system can do.
        file.swap_names()?;
        Ok(file)
    }

    /// The file's name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds text before the tail, and tells where in the document it begins.
    pub fn append(&mut self, text: &str) -> u64 {
        let at = self.pending.end();
        if try_grow_bytes(&mut self.pending.appended, text.len() + TAIL_BYTES).is_ok() {
            self.pending.appended.extend_from_slice(text.as_bytes());
        } else {
            self.is_short = true;
        }
        at
    }

    /// Replaces bytes of the head or of what was appended. What would lie beyond is ignored.
    pub fn patch(&mut self, offset: u64, bytes: &[u8]) {
        let start = self.pending.start;
        let before = bytes.len().min(start.saturating_sub(offset) as usize);
        let (old, new) = bytes.split_at(before);
        if !old.is_empty() {
            self.pending.patches.push((offset, old.into()));
        }
        let from = offset.saturating_sub(start) as usize;
        let room = self.pending.appended.get_mut(from..).unwrap_or_default();
        room.iter_mut().zip(new).for_each(|(old, &new)| *old = new);
    }

    /// Changes the text that ends the document; it must not become shorter.
    pub fn set_tail(&mut self, tail: &str) {
        debug_assert!(tail.len() >= self.tail.len(), "a file is never cut");
        if tail != self.tail {
            tail.clone_into(&mut self.tail);
            self.tail_changed = true;
        }
    }

    /// Bytes appended or patched since the last commit.
    pub fn pending_bytes(&self) -> usize {
        self.pending.appended.len() + self.pending.patches.iter().map(|(_, bytes)| bytes.len()).sum::<usize>()
    }

    /// Reads from the document as of the last commit.
    pub fn read_committed(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.visible.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }

    /// Bytes given to the system so far, for those who watch the cost.
    pub fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    /// Makes all edits visible at once. After an error the visible file is as before, and nothing is written any
    /// more.
    pub fn commit(&mut self) -> io::Result<()> {
        let done = self.try_commit();
        if done.is_err() {
            self.give_up();
        }
        done
    }

    /// The same, but after an error it can be tried again.
    pub(super) fn try_commit(&mut self) -> io::Result<()> {
        if self.failed {
            return Err(io::Error::other("an earlier write failed"));
        }
        if self.is_short {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        if self.pending.appended.is_empty() && self.pending.patches.is_empty() && !self.tail_changed {
            return Ok(());
        }
        self.write_pending()
    }

    /// Nothing is written any more.
    pub(super) fn give_up(&mut self) {
        self.failed = true;
        self.remove_spare();
    }

    /// Makes all edits visible, and leaves only the visible file.
    pub fn finish(mut self) -> io::Result<()> {
        self.commit()
        // The spare goes with `self`.
    }

    fn write_pending(&mut self) -> io::Result<()> {
        self.check_name()?;
        let mut written = 0;
        if let Some(spare) = &self.spare {
            written += write_batch(spare, &mut self.behind, "")?;
            written += write_batch(spare, &mut self.pending, &self.tail)?;
            self.swap_names()?;
        }
        // Also right after learning that the names cannot change.
        if self.spare.is_none() {
            written += write_batch(&self.visible, &mut self.pending, &self.tail)?;
        }
        self.bytes_written += written;
        self.tail_changed = false;
        let end = self.pending.end();
        std::mem::swap(&mut self.pending, &mut self.behind);
        self.pending.restart(end);
        Ok(())
    }

    /// Another process that begins in the same place takes the name away; the later one keeps it.
    fn check_name(&self) -> io::Result<()> {
        if is_name_of(&self.path, &self.visible)? {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "another process replaced the file"))
    }

    /// Lets spare and visible file change places, if there is a way.
    fn swap_names(&mut self) -> io::Result<()> {
        if self.swap == Swap::Exchange {
            match renameat_with(CWD, &self.spare_path, CWD, &self.path, RenameFlags::EXCHANGE) {
                Ok(()) => {
                    self.swap_files();
                    return Ok(());
                }
                Err(error) if is_unsupported(error) => self.swap = Swap::Link,
                Err(error) => return Err(error.into()),
            }
        }
        if self.swap == Swap::Link {
            match fs::hard_link(&self.path, &self.old_path) {
                Ok(()) => {
                    fs::rename(&self.spare_path, &self.path)?;
                    fs::rename(&self.old_path, &self.spare_path)?;
                    self.swap_files();
                    return Ok(());
                }
                Err(error) if has_no_links(&error) => self.swap = Swap::InPlace,
                Err(error) => return Err(error),
            }
        }
        self.remove_spare();
        Ok(())
    }

    fn swap_files(&mut self) {
        if let Some(spare) = &mut self.spare {
            std::mem::swap(&mut self.visible, spare);
        }
    }

    /// Nobody is told if it stays: it is in nobody's way.
    fn remove_spare(&mut self) {
        if let Some(spare) = self.spare.take()
            && is_name_of(&self.spare_path, &spare).unwrap_or(false)
        {
            let _ = fs::remove_file(&self.spare_path);
        }
    }
}

impl Drop for StreamFile {
    fn drop(&mut self) {
        self.remove_spare();
    }
}

/// Writes what was appended and the tail behind it, then the patches; tells how many bytes that were.
fn write_batch(file: &File, batch: &mut Batch, tail: &str) -> io::Result<u64> {
    let appended = batch.appended.len();
    batch.appended.extend_from_slice(tail.as_bytes());
    let mut written = batch.appended.len() as u64;
    let done = file.write_all_at(&batch.appended, batch.start);
    batch.appended.truncate(appended);
    done?;
    for (offset, bytes) in &batch.patches {
        file.write_all_at(bytes, *offset)?;
        written += bytes.len() as u64;
    }
    Ok(written)
}

/// A new file that replaces one a killed run left, without following a link.
fn create_file(path: &Path, text: &[u8]) -> io::Result<File> {
    remove_if_there(path)?;
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(FILE_MODE).open(path)?;
    file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    file.write_all_at(text, 0)?;
    Ok(file)
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn is_name_of(path: &Path, file: &File) -> io::Result<bool> {
    let (there, mine) = (fs::symlink_metadata(path)?, file.metadata()?);
    Ok((there.dev(), there.ino()) == (mine.dev(), mine.ino()))
}

/// What file systems say that do not know the exchange of names.
fn is_unsupported(error: Errno) -> bool {
    [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP, Errno::NOTSUP].contains(&error)
}

/// What file systems say that do not know hard links, or refuse one.
fn has_no_links(error: &io::Error) -> bool {
    Errno::from_io_error(error).is_some_and(|error| {
        is_unsupported(error) || [Errno::PERM, Errno::MLINK, Errno::ACCESS].contains(&error)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WAYS: [Swap; 3] = [Swap::Exchange, Swap::Link, Swap::InPlace];

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn grows_and_changes_by_every_way() {
        for way in WAYS {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("dump.json");
            let mut file = StreamFile::create_by(&path, "[", "]", way).unwrap();
            assert_eq!(file.swap, way);
            let seen = || fs::read_to_string(&path).unwrap();
            assert_eq!(seen(), "[]");
            assert_eq!(file.append("1"), 1);
            assert_eq!(seen(), "[]");
            file.commit().unwrap();
            assert_eq!(seen(), "[1]");
            assert_eq!(file.append(",22"), 2);
            file.patch(1, b"5,3");
            assert_eq!(file.pending_bytes(), 4);
            file.set_tail(" ]\n");
            file.commit().unwrap();
            assert_eq!(seen(), "[5,32 ]\n");
            file.commit().unwrap();
            file.patch(4, b"7");
            file.commit().unwrap();
            assert_eq!(file.read_committed(1, 3).unwrap(), b"5,3");
            let spares = usize::from(way != Swap::InPlace);
            assert_eq!(names(dir.path()).len(), 1 + spares, "{way:?}");
            file.append(",8");
            file.finish().unwrap();
            assert_eq!(seen(), "[5,37,8 ]\n");
            assert_eq!(names(dir.path()), ["dump.json"]);
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, FILE_MODE);
        }
    }

    proptest! {
        #[test]
        fn every_commit_shows_what_was_edited(
            batches in prop::collection::vec(
                prop::collection::vec((any::<bool>(), 0usize..80, "[a-z]{0,12}"), 0..6), 1..12),
            way in prop::sample::select(WAYS.to_vec()),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("x");
            let mut file = StreamFile::create_by(&path, "<<", ">>", way).unwrap();
            let mut model = b"<<".to_vec();
            for batch in batches {
                for (append, at, text) in batch {
                    if append {
                        prop_assert_eq!(file.append(&text), model.len() as u64);
                        model.extend_from_slice(text.as_bytes());
                    } else if at + text.len() <= model.len() {
                        file.patch(at as u64, text.as_bytes());
                        model[at..at + text.len()].copy_from_slice(text.as_bytes());
                    }
                }
                file.commit().unwrap();
                prop_assert_eq!(fs::read(&path).unwrap(), [&model[..], b">>"].concat());
            }
        }
    }

    #[test]
    fn leftovers_of_a_killed_run_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("dump.json");
        fs::write(&path, "a longer document of an earlier run").unwrap();
        fs::write(dir.path().join(".dump.json.spare"), "half").unwrap();
        fs::write(dir.path().join(".dump.json.old"), "half").unwrap();
        let mut file = StreamFile::create(&path, "{", "}").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{}");
        assert_eq!(names(dir.path()), [".dump.json.spare", "dump.json"]);
        file.append(" ");
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "{}", "only a commit shows");
        assert_eq!(names(dir.path()), ["dump.json"]);
    }

    #[test]
    fn a_failure_is_reported_and_ends_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("dump.json");
        let mut file = StreamFile::create(&path, "[", "]").unwrap();
        file.append("1");
        file.commit().unwrap();
        file.spare = Some(OpenOptions::new().write(true).open("/dev/full").unwrap());
        file.append(",2");
        assert_eq!(file.commit().unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read_to_string(&path).unwrap(), "[1]");
        assert!(file.commit().unwrap_err().to_string().contains("earlier"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "[1]");
    }

    #[test]
    fn the_later_of_two_writers_keeps_the_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("dump.json");
        let mut first = StreamFile::create(&path, "[", "]").unwrap();
        let mut second = StreamFile::create(&path, "{", "}").unwrap();
        first.append("1");
        assert_eq!(first.commit().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        second.append("  ");
        second.commit().unwrap();
        second.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{  }");
        assert_eq!(names(dir.path()), ["dump.json"]);
    }

    #[test]
    fn cost_follows_what_is_added() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = StreamFile::create(&dir.path().join("x"), "[", "]").unwrap();
        for _ in 0..1000 {
            file.append("0123456789012345678901234567890123456789");
            file.commit().unwrap();
        }
        assert!(file.bytes_written() < 40 * 1000 * 5 / 2, "{}", file.bytes_written());
    }
}
