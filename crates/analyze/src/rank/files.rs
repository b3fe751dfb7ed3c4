//! The files of a dump of tensors: whether each tensor that names one has it. Their headers are read, not their elements.

use std::fs;
use std::path::Path;

use msprobe_dump::hash::FastSet;
use msprobe_tensor::files::{FileError, FormatError, TensorFile};
use rayon::prelude::*;

use super::gather::NamedFile;
use super::{Noted, RankDump};

impl RankDump {
    /// Looks for the file of every tensor that names one.
    pub fn check_files(&mut self) {
        let named: Vec<(u32, &NamedFile)> = self
            .files
            .iter()
            .flat_map(|(record, files)| files.iter().map(move |file| (*record, file)))
            .collect();
        if named.is_empty() {
            return;
        }
        let dir = self.dir.path.join("dump_tensor_data");
        let there = regular_files(&dir);
        let wrong: Vec<Option<String>> =
            named.par_iter().map(|(_, file)| problem_of(&dir, &there, &file.data_name)).collect();
        let mut lost = Noted::default();
        for ((record, file), problem) in named.iter().zip(wrong) {
            let Some(problem) = problem else { continue };
            lost.note(|| {
                let name = self.records.get(*record as usize).map_or("", |record| &*record.name);
                format!("{name}: {} {}: {problem}", file.role.as_str(), file.index)
            });
        }
        self.lost_files = lost;
    }
}

/// The names of the files in a directory that are nothing but files; none if it cannot be read.
fn regular_files(dir: &Path) -> FastSet<String> {
    let is_file = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file());
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().filter(is_file);
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn problem_of(dir: &Path, there: &FastSet<String>, data_name: &str) -> Option<String> {
    if data_name.is_empty() {
        return Some("the name of its file is empty".to_owned());
    }
    if !there.contains(data_name) {
        return Some(format!("there is no file {data_name} in dump_tensor_data"));
    }
    let read = TensorFile::open_inside(dir, data_name).and_then(|file| {
        for entry in 0..file.entries().len() {
            file.view(entry)?;
        }
        Ok(file.entries().len())
    });
    match read {
        Ok(0) => Some(format!("there is no tensor in {data_name}")),
        Ok(_) => None,
        // A dtype or layout this reader does not know is no damage.
        Err(
            FileError::Format { source: FormatError::Unsupported(_), .. }
            | FileError::Tensor { source: FormatError::Unsupported(_), .. },
        ) => None,
        Err(FileError::Open { source, .. }) => Some(format!("{data_name} cannot be opened: {source}")),
        Err(FileError::Format { source, .. } | FileError::Tensor { source, .. }) => {
            Some(format!("{data_name} cannot be read: {source}"))
        }
    }
}
