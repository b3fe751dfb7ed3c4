//! What the targets share: what is done with tensors that were found, and bytes as a file.

use std::path::PathBuf;
use std::sync::LazyLock;

use msprobe_tensor::files::{Index, npy};

/// Tensors up to this size are read whole.
const MOST_BYTES: usize = 1 << 20;

/// Reads every usable tensor: in its own layout, as it lies in memory, and its first elements.
pub fn read_tensors(index: &Index, file: &[u8]) {
    let mut left = 16 * MOST_BYTES;
    for entry in &index.entries {
        let Ok(layout) = &entry.layout else { continue };
        let Ok(view) = layout.view(file) else { continue };
        let size_bytes = view.size_bytes();
        assert_eq!(layout.size_bytes(), Some(size_bytes));
        if size_bytes > MOST_BYTES || size_bytes > left {
            continue;
        }
        // Many entries may share one storage: bound the work of one input, not only that of one entry.
        left -= size_bytes;
        let mut written = Vec::new();
        npy::write(&mut written, &view).expect("writing to memory");
        npy::write(&mut std::io::sink(), &view.in_memory_order()).expect("writing to nowhere");
        if view.shape().len() > 64 {
            continue;
        }
        let again = npy::parse(&written).expect("what we write, we read");
        let layout = again.entries[0].layout.as_ref().expect("what we write, we read");
        assert_eq!((layout.dtype, &layout.shape[..]), (view.dtype(), view.shape()));
        assert_eq!(layout.storage_len, size_bytes);
    }
}

/// A file with these bytes, which the next call overwrites: for readers that take a path.
pub fn written(name: &str, bytes: &[u8]) -> PathBuf {
    static FOLDER: LazyLock<tempfile::TempDir> =
        LazyLock::new(|| tempfile::tempdir().expect("a folder for temporary files"));
    let path = FOLDER.path().join(name);
    std::fs::write(&path, bytes).expect("writing a temporary file");
    path
}
