//! Runs that were dumped: all steps and ranks of one are one item.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use msprobe_dump::model::{DirKind, dir_kind};

use super::scan::{Entries, name_of};
use super::{Finding, Source, time_text};
use crate::prepare::Origin;
use crate::wire::ItemKind;

/// Ranks that are looked into for their size.
const MOST_RANKS: usize = 20_000;

/// What was found of a run.
#[derive(Default)]
struct Run {
    steps: BTreeSet<i64>,
    ranks: BTreeSet<i64>,
    bytes: u64,
    modified: Option<std::time::SystemTime>,
    count: usize,
    has_links: bool,
}

impl Run {
    /// A directory that may be that of a rank.
    fn add_rank(&mut self, directory: &Path, step: Option<i64>, rank: i64) -> bool {
        let dump = directory.join("dump.json");
        let Ok(metadata) = std::fs::symlink_metadata(&dump) else { return false };
        if metadata.is_symlink() {
            self.has_links = true;
        }
        if !metadata.is_file() || self.count >= MOST_RANKS {
            return false;
        }
        for file in ["construct.json", "stack.json"] {
            self.has_links |= std::fs::symlink_metadata(directory.join(file)).is_ok_and(|it| it.is_symlink());
        }
        self.count += 1;
        self.bytes += metadata.len();
        self.modified = self.modified.max(metadata.modified().ok());
        self.steps.insert(step.unwrap_or(0));
        self.ranks.insert(rank);
        true
    }

    /// The ranks in a directory.
    fn add_ranks(&mut self, entries: &Entries, step: Option<i64>) -> bool {
        let mut found = false;
        for directory in &entries.directories {
            let rank = match dir_kind(name_of(directory)) {
                Some(DirKind::Rank(rank)) => rank.number().into(),
                Some(DirKind::Process) => 0,
                _ => continue,
            };
            found |= self.add_rank(directory, step, rank);
        }
        let is_rank =
            |path: &PathBuf| matches!(dir_kind(name_of(path)), Some(DirKind::Rank(_) | DirKind::Process));
        self.has_links |= entries.links.iter().any(is_rank);
        found
    }
}

impl Finding<'_> {
    /// Adds the run a directory is of. Gives the directories that belong to it.
    pub(super) fn add_dump(&mut self, directory: &Path, entries: &Entries, left: &mut usize) -> Vec<PathBuf> {
        let mut run = Run::default();
        let mut inside = Vec::new();
        if run.add_rank(directory, None, 0) {
            // A single rank by itself.
        } else if run.add_ranks(entries, None) {
            let is_rank = |path: &&PathBuf| matches!(dir_kind(name_of(path)), Some(DirKind::Rank(_)));
            inside.extend(entries.directories.iter().filter(is_rank).cloned());
        } else {
            for step_dir in &entries.directories {
                let Some(DirKind::Step(step)) = dir_kind(name_of(step_dir)) else { continue };
                let Ok(ranks) = Entries::read(step_dir, left) else { continue };
                if run.add_ranks(&ranks, i64::try_from(step.0).ok()) {
                    inside.push(step_dir.clone());
                }
            }
            let is_step = |path: &PathBuf| matches!(dir_kind(name_of(path)), Some(DirKind::Step(_)));
            run.has_links |= run.count > 0 && entries.links.iter().any(is_step);
        }
        if run.count == 0 {
            return Vec::new();
        }
        if run.has_links {
            self.note(directory, "a part of this dump is a link: no graph is made of it");
        }
        let mut item = self.item(ItemKind::Dump, directory);
        item.steps = run.steps.into_iter().collect();
        item.ranks = run.ranks.into_iter().collect();
        (item.bytes, item.modified) = (run.bytes, time_text(run.modified));
        item.error = run.has_links.then(|| "a part of it is a link, which is not followed".to_owned());
        self.add(directory, Source::Graph(Origin::Dump(directory.to_owned())), item);
        inside
    }
}
