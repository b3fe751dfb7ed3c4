//! Graph files: one `.vis.db`, or `.vis` files of one call that differ in step and rank only.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use msprobe_graph::names::Generation;

use super::scan::name_of;
use super::{Finding, Source, tone_of};
use crate::prepare::Origin;
use crate::store::{BUDGET, GraphStore, Patience};
use crate::trend::{Extent, Trend};
use crate::wire::{Cell, ItemKind};

/// Stores that are opened to see what is in them, of one directory.
const MOST_OPENED: usize = 300;
/// Steps and ranks of a trend in the list.
const MOST_LISTED: usize = 100_000;

/// Kind, step, rank and time of `compare_step0_rank1_20261118.vis`.
pub(super) fn parts_of(name: &str) -> Option<(String, i64, i64)> {
    let stem = name.strip_suffix(".vis")?;
    let (mut step, mut rank) = (0, 0);
    let mut rest = Vec::new();
    for part in stem.split('_') {
        let number = |word: &str| part.strip_prefix(word).and_then(|digits| digits.parse::<i64>().ok());
        if let Some(number) = number("step") {
            step = number;
        } else if let Some(number) = number("rank") {
            rank = number;
        } else if part != "rank" {
            rest.push(part);
        }
    }
    Some((rest.join("_"), step, rank))
}

impl Finding<'_> {
    /// Adds a store.
    pub(super) fn add_store(&mut self, path: &Path, opened: &mut usize) {
        let mut item = self.item(ItemKind::Graph, path);
        if *opened < MOST_OPENED {
            *opened += 1;
            match GraphStore::open(path, Generation::Third) {
                Ok(store) => {
                    let facts = &store.facts;
                    (item.steps, item.ranks) = (facts.steps.clone(), facts.ranks.clone());
                    item.tone = tone_of(facts.worst_answer.as_ref());
                    item.answer.clone_from(&facts.worst_answer);
                    item.cells = facts
                        .answers
                        .iter()
                        .map(|answer| Cell {
                            step: answer.step,
                            rank: answer.rank,
                            status: answer.status.clone(),
                            tone: answer.tone,
                            culprit: answer.culprit.clone(),
                        })
                        .collect();
                }
                Err(fault) => item.error = Some(fault.message),
            }
        }
        self.add(path, Source::Graph(Origin::Store(path.to_owned())), item);
    }

    /// Adds a database of trends.
    pub(super) fn add_trend(&mut self, path: &Path, opened: &mut usize) {
        let mut item = self.item(ItemKind::Trend, path);
        if *opened < MOST_OPENED {
            *opened += 1;
            match Trend::open(path, &Patience::new(BUDGET)).and_then(|trend| trend.extent()) {
                Ok(Extent { steps: (first, last), last_rank }) => {
                    item.steps = (first..=last).take(MOST_LISTED).collect();
                    item.ranks = (0..=last_rank).take(MOST_LISTED).collect();
                }
                Err(fault) => item.error = Some(fault.message),
            }
        }
        self.add(path, Source::Trend(path.to_owned()), item);
    }

    /// Adds `.vis` files, those of one call together.
    pub(super) fn add_vis(&mut self, files: &[PathBuf]) {
        let mut groups: BTreeMap<String, BTreeMap<(i64, i64), PathBuf>> = BTreeMap::new();
        for path in files {
            if let Some((call, step, rank)) = parts_of(name_of(path)) {
                groups.entry(call).or_default().entry((step, rank)).or_insert_with(|| path.clone());
            }
        }
        for (call, files) in groups {
            let Some(first) = files.values().next() else { continue };
            let mut item = self.item(ItemKind::Graph, first);
            if files.len() > 1 {
                let named = first.with_file_name(format!("{call}.vis"));
                item.title = self.item(ItemKind::Graph, &named).title;
                item.bytes = files.values().filter_map(|path| Some(path.metadata().ok()?.len())).sum();
            }
            item.steps = files.keys().map(|(step, _)| *step).collect();
            item.ranks = files.keys().map(|(_, rank)| *rank).collect();
            for list in [&mut item.steps, &mut item.ranks] {
                list.sort_unstable();
                list.dedup();
            }
            let path = first.clone();
            self.add(&path, Source::Graph(Origin::Vis(files)), item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_tell_step_and_rank() {
        let parts = |name| parts_of(name).unwrap();
        assert_eq!(
            parts("compare_step2_rank31_20261118093007.vis"),
            ("compare_20261118093007".to_owned(), 2, 31)
        );
        assert_eq!(parts("build_rank_20261118093007.vis"), ("build_20261118093007".to_owned(), 0, 0));
        assert_eq!(parts("mine.vis"), ("mine".to_owned(), 0, 0));
        assert_eq!(parts_of("mine.vis.db"), None);
    }
}
