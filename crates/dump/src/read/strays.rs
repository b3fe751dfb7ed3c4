//! Dumps in directories that nobody reads: their names say neither step nor rank, or they stand in the wrong place.

use std::fs;
use std::path::Path;

use crate::model::is_directory;

/// The files of a step and rank that hold records.
pub const DUMP_FILES: [&str; 2] = ["dump.json", "debug.json"];

/// A whole dump may lie there: itself, a step, a rank.
const DEPTH: usize = 3;

/// Whether a dump lies in a directory or a little below it.
pub fn holds_dump(dir: &Path) -> bool {
    holds_dump_within(dir, DEPTH)
}

fn holds_dump_within(dir: &Path, depth: usize) -> bool {
    // Tensor files are many, and no dumps.
    if depth == 0 || dir.file_name().is_some_and(|name| name == "dump_tensor_data") {
        return false;
    }
    if DUMP_FILES.iter().any(|file| dir.join(file).symlink_metadata().is_ok()) {
        return true;
    }
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter(is_directory).any(|entry| holds_dump_within(&entry.path(), depth - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dumps_are_found_where_a_run_may_lie() {
        let root = tempfile::tempdir().unwrap();
        for (place, is_found) in [
            ("a/dump.json", true),
            ("b/rank0/debug.json", true),
            ("c/step0/rank0/dump.json", true),
            ("d/x/step0/rank0/dump.json", false),
            ("e/dump_tensor_data/dump.json", false),
            ("f/other.json", false),
        ] {
            let file = root.path().join(place);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "{}").unwrap();
            let top = root.path().join(&place[..1]);
            assert_eq!(holds_dump(&top), is_found, "{place}");
        }
        std::os::unix::fs::symlink(root.path().join("c"), root.path().join("link")).unwrap();
        assert!(holds_dump(&root.path().join("link")));
        assert!(!holds_dump(&root.path().join("nowhere")));
    }
}
