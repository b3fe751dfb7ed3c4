//! Directories with a dump that is not read: their names say neither step nor rank, or they stand in the wrong place.

use std::path::{Path, PathBuf};

use msprobe_dump::model::directories_in;
use msprobe_dump::read::holds_dump;

use crate::rank::RankDir;

/// Directories in a step's directory, or in those of its ranks, that look like those of ranks or processes or hold a dump, and
/// are none of those that are read.
pub(crate) fn beside_ranks(step: &Path, ranks: &[RankDir]) -> Vec<String> {
    let mut found = Vec::new();
    let is_itself = ranks.iter().all(|dir| dir.path == step);
    if !is_itself {
        let others = directories_in(step).into_iter().flatten();
        let others = others.filter(|path| ranks.iter().all(|dir| dir.path != *path));
        found.extend(others.filter(|path| is_named_like_rank(path) || holds_dump(path)));
    }
    for dir in ranks {
        found.extend(directories_in(&dir.path).into_iter().flatten().filter(|path| holds_dump(path)));
    }
    named(&found)
}

/// Those of some directories that hold a dump.
pub(crate) fn with_dump(others: &[PathBuf]) -> Vec<String> {
    let found: Vec<PathBuf> = others.iter().filter(|path| holds_dump(path)).cloned().collect();
    named(&found)
}

fn named(paths: &[PathBuf]) -> Vec<String> {
    let mut names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    names.sort();
    names
}

fn is_named_like_rank(path: &Path) -> bool {
    let name = path.file_name().map_or_else(Default::default, |name| name.to_string_lossy());
    let rest = name.strip_prefix("rank").or_else(|| name.strip_prefix("proc"));
    rest.is_some_and(|rest| rest.is_empty() || rest.contains(|c: char| c.is_ascii_digit()))
}
