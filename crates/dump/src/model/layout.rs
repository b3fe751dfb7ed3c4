//! Which directories of a run there are: `step0/rank0`, `rank0`, or a dump by itself.
//!
//! A step is `step` and a number, a rank is `rank` and a number or `rank` alone, both without leading zeros; `proc` and a number is
//! a process without a rank. Anything else is none of the run, and if a dump lies in it, it is told.

use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use crate::names::{Rank, Step, is_process_dir};

/// What a directory is, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DirKind {
    /// Of a step.
    Step(Step),
    /// Of a rank.
    Rank(Rank),
    /// Of a process without a rank.
    Process,
}

/// What a directory of this name is.
pub fn dir_kind(name: &str) -> Option<DirKind> {
    let step = Step::of_dir(name).map(DirKind::Step);
    let rank = || Rank::of_dir(name).map(DirKind::Rank);
    step.or_else(rank).or_else(|| is_process_dir(name).then_some(DirKind::Process))
}

/// A directory, and the step or rank it is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dir<T> {
    /// The step or rank.
    pub of: T,
    /// Its path.
    pub path: PathBuf,
}

/// The directories in one directory of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunDir {
    /// Those of steps, ascending.
    pub steps: Vec<Dir<Step>>,
    /// Those of ranks, ascending. A lone process is rank 0 if there are no ranks.
    pub ranks: Vec<Dir<Rank>>,
    /// All others, in the order of names, but for those of tensor files: other processes, and whatever else lies there.
    pub others: Vec<PathBuf>,
}

impl RunDir {
    /// Looks into a directory.
    pub fn read(directory: &Path) -> io::Result<RunDir> {
        let mut found = RunDir::default();
        let mut processes = Vec::new();
        for path in directories_in(directory)? {
            match path.file_name().and_then(|name| name.to_str()).and_then(dir_kind) {
                Some(DirKind::Step(step)) => found.steps.push(Dir { of: step, path }),
                Some(DirKind::Rank(rank)) => found.ranks.push(Dir { of: rank, path }),
                Some(DirKind::Process) => processes.push(path),
                None => found.others.push(path),
            }
        }
        if found.ranks.is_empty() && processes.len() == 1 {
            found.ranks.extend(processes.pop().map(|path| Dir { of: Rank(None), path }));
        }
        found.others.append(&mut processes);
        found.steps.sort();
        found.ranks.sort();
        found.others.sort();
        // `rank` beside `rank0`: both are rank 0, and the first of them counts.
        let (mut ranks, mut known) = (Vec::with_capacity(found.ranks.len()), None);
        for dir in found.ranks {
            if known.replace(dir.of.number()) == Some(dir.of.number()) {
                found.others.push(dir.path);
            } else {
                ranks.push(dir);
            }
        }
        found.ranks = ranks;
        Ok(found)
    }
}

/// The directories in a directory, but for those of tensor files, which can be long.
pub fn directories_in(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name() != "dump_tensor_data" && is_directory(&entry) {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// What an entry is, the directory knows; links are looked at.
pub(crate) fn is_directory(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_symlink() && entry.path().is_dir())
}
