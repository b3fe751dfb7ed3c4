//! Entries, and the thread that writes them.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use msprobe_tensor::files::npy_measured::{self, Stored};
use msprobe_tensor::{TensorView, ViewError};

use super::record::{Grouping, Record, document};
use crate::write::{
    HostTensor, LayoutError, Target, TensorPool, WriteError, check_path, create_dir, is_plain_name,
};

/// Writes the key data of one process.
#[derive(Debug)]
pub struct KeyDataWriter {
    pool: TensorPool,
    stored: Stored,
    names_dtype: bool,
}

/// A value being saved: its directory, and what became of its tensors.
#[derive(Debug)]
pub struct Entry {
    directory: PathBuf,
    saved: SystemTime,
    records: Arc<Mutex<Vec<Record>>>,
}

/// The elements of a tensor.
pub enum Elements<'a> {
    /// Somebody may change them: they are copied.
    Shared(&'a TensorView<'a>),
    /// Nobody will: they are kept until they are written.
    Own(Box<dyn HostTensor>),
}

/// Why a file of an entry cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddError {
    /// The tensor has no elements, so it has no figures either.
    #[error("the tensor has no elements")]
    Empty,
    /// The path breaks a rule.
    #[error(transparent)]
    Path(#[from] LayoutError),
    /// The name leads into a directory that does not exist.
    #[error("the directory of {} does not exist", .0.display())]
    NoDirectory(PathBuf),
    /// Shape, strides and memory do not fit together.
    #[error(transparent)]
    View(#[from] ViewError),
}

impl KeyDataWriter {
    /// A writer that keeps at most so many bytes of tensors. With `names_dtype` JSON files tell the dtype.
    pub fn new(stored: Stored, names_dtype: bool, budget_bytes: usize) -> io::Result<KeyDataWriter> {
        // One thread: files are written in the order of the calls.
        Ok(KeyDataWriter { pool: TensorPool::new(1, budget_bytes)?, stored, names_dtype })
    }

    /// Begins an entry: its directory is made. `None` when nothing is written any more. Errs if the path breaks a
    /// rule.
    pub fn begin(&self, directory: PathBuf) -> Result<Option<Entry>, LayoutError> {
        if self.pool.failure().is_some() {
            return Ok(None);
        }
        match create_dir(&directory) {
            Ok(()) => Ok(Some(Entry { directory, saved: SystemTime::now(), records: Arc::default() })),
            Err(error) if error.is_of_system() => {
                self.pool.fail(WriteError::unmade(&directory, &error));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Saves a tensor of the entry as `{name}.npy`; a mapping calls it `label`. Returns when its elements are copied,
    /// or kept.
    pub fn add(
        &self,
        entry: &Entry,
        name: &str,
        label: &str,
        elements: Elements<'_>,
    ) -> Result<(), AddError> {
        let target = entry.target(&format!("{name}.npy"))?;
        let (records, label) = (Arc::clone(&entry.records), label.to_owned());
        let (stored, names_dtype) = (self.stored, self.names_dtype);
        let fill = move |file: &mut File, view: &TensorView<'_>| {
            let figures = npy_measured::write(file, view, stored)?;
            let dtype = names_dtype.then(|| view.dtype());
            let record = Record { label, figures, shape: view.shape().to_vec(), dtype };
            records.lock().unwrap_or_else(PoisonError::into_inner).push(record);
            Ok(())
        };
        match elements {
            Elements::Shared(view) if view.numel() == 0 => Err(AddError::Empty),
            Elements::Shared(view) => {
                self.pool.save_copy(target, view, fill);
                Ok(())
            }
            Elements::Own(tensor) => {
                let size_bytes = tensor.view()?.size_bytes();
                if size_bytes == 0 {
                    return Err(AddError::Empty);
                }
                self.pool.save_held(target, tensor, size_bytes, fill);
                Ok(())
            }
        }
    }

    /// Ends an entry: its figures follow its arrays, as `{name}.json`.
    pub fn finish(&self, entry: &Entry, name: &str, grouping: Grouping) -> Result<(), AddError> {
        let target = entry.target(&format!("{name}.json"))?;
        let records = Arc::clone(&entry.records);
        let text = move || document(grouping, &records.lock().unwrap_or_else(PoisonError::into_inner));
        self.pool.save_text(target, text);
        Ok(())
    }

    /// Waits until everything saved so far is on disk.
    pub fn flush(&self) {
        self.pool.wait();
    }

    /// The first failure, once; after it nothing is written any more.
    pub fn take_failure(&self) -> Option<WriteError> {
        self.pool.take_failure()
    }
}

impl Entry {
    fn target(&self, name: &str) -> Result<Target, AddError> {
        let path = self.directory.join(name);
        if !is_plain_name(name) {
            check_path(&path)?;
            if !path.parent().is_some_and(Path::is_dir) {
                return Err(AddError::NoDirectory(path));
            }
        }
        Ok(Target { path, modified: Some(self.saved) })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use msprobe_tensor::DType;

    use super::*;

    const BUDGET_BYTES: usize = 1 << 20;

    struct Kept(Vec<u8>);

    impl HostTensor for Kept {
        fn view(&self) -> Result<TensorView<'_>, ViewError> {
            TensorView::contiguous(DType::I64, vec![self.0.len() / 8], &self.0)
        }
    }

    fn place() -> tempfile::TempDir {
        tempfile::Builder::new().prefix("keydata").tempdir().unwrap()
    }

    #[test]
    fn a_list_becomes_arrays_and_then_figures() {
        let dir = place();
        let at = dir.path().join("data/k/step0");
        let writer = KeyDataWriter::new(Stored::Float32, true, BUDGET_BYTES).unwrap();
        let before = SystemTime::now();
        let entry = writer.begin(at.clone()).unwrap().unwrap();
        let mut bytes = 5i64.to_le_bytes().to_vec();
        let kept = Kept(bytes.clone());
        let view = TensorView::contiguous(DType::I64, vec![1], &bytes).unwrap();
        writer.add(&entry, "k.0", "", Elements::Shared(&view)).unwrap();
        bytes.fill(0);
        writer.add(&entry, "k.1", "", Elements::Own(Box::new(kept))).unwrap();
        writer.finish(&entry, "k", Grouping::List).unwrap();
        writer.flush();
        assert_eq!(writer.take_failure(), None);
        let first = fs::read(at.join("k.0.npy")).unwrap();
        assert!(first.ends_with(&5f32.to_le_bytes()));
        assert_eq!(first, fs::read(at.join("k.1.npy")).unwrap());
        let text = fs::read_to_string(at.join("k.json")).unwrap();
        assert_eq!(text.matches("\"max\": 5.0").count(), 2);
        assert_eq!(text.matches("\"dtype\": \"int64\"").count(), 2);
        let meta = fs::metadata(at.join("k.json")).unwrap();
        assert_eq!(meta.permissions().mode() & 0o7777, 0o640);
        let saved = meta.modified().unwrap();
        assert!(saved + Duration::from_millis(20) >= before && saved <= SystemTime::now());
        assert_eq!(saved, fs::metadata(at.join("k.0.npy")).unwrap().modified().unwrap());
    }

    #[test]
    fn what_a_script_did_wrong_is_told_at_once() {
        let dir = place();
        let writer = KeyDataWriter::new(Stored::Float32, false, BUDGET_BYTES).unwrap();
        assert!(matches!(
            writer.begin(dir.path().join("with blank")),
            Err(LayoutError::SpecialCharacters(_))
        ));
        let entry = writer.begin(dir.path().join("k")).unwrap().unwrap();
        let view = TensorView::contiguous(DType::U8, vec![1], &[1]).unwrap();
        let empty = TensorView::contiguous(DType::U8, vec![0], &[]).unwrap();
        let add = |name: &str, view: &TensorView<'_>| writer.add(&entry, name, "", Elements::Shared(view));
        assert_eq!(add("k", &empty), Err(AddError::Empty));
        assert_eq!(
            writer.add(&entry, "k", "", Elements::Own(Box::new(Kept(Vec::new())))),
            Err(AddError::Empty)
        );
        assert_eq!(add("a/k", &view), Err(AddError::NoDirectory(dir.path().join("k/a/k.npy"))));
        assert!(matches!(add("k 1", &view), Err(AddError::Path(_))));
        assert!(matches!(add(&"k".repeat(300), &view), Err(AddError::Path(_))));
        assert!(writer.finish(&entry, "a/k", Grouping::List).is_err());
        writer.flush();
        assert_eq!(writer.take_failure(), None);
        assert_eq!(fs::read_dir(dir.path().join("k")).unwrap().count(), 0);
    }

    #[test]
    fn a_failure_is_told_once_and_ends_it() {
        let dir = place();
        let writer = KeyDataWriter::new(Stored::Float32, false, BUDGET_BYTES).unwrap();
        let view = TensorView::contiguous(DType::U8, vec![1], &[1]).unwrap();
        let entry = writer.begin(dir.path().join("k")).unwrap().unwrap();
        fs::remove_dir(dir.path().join("k")).unwrap();
        writer.add(&entry, "k", "", Elements::Shared(&view)).unwrap();
        writer.finish(&entry, "k", Grouping::Single).unwrap();
        writer.flush();
        let failure = writer.take_failure().unwrap().to_string();
        assert!(failure.contains("k/k.npy") && failure.contains("hint: "), "{failure}");
        assert_eq!(writer.take_failure(), None);
        assert!(writer.begin(dir.path().join("k")).unwrap().is_none());
        writer.add(&entry, "k", "", Elements::Shared(&view)).unwrap();
        writer.flush();
        assert!(!dir.path().join("k").exists());
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_a_failure_too() {
        let dir = place();
        fs::write(dir.path().join("data"), "").unwrap();
        let writer = KeyDataWriter::new(Stored::Float32, false, BUDGET_BYTES).unwrap();
        assert!(writer.begin(dir.path().join("data/k")).unwrap().is_none());
        let failure = writer.take_failure().unwrap().to_string();
        assert!(failure.contains("something else in its place"), "{failure}");
    }
}
