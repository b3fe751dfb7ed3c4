//! The third generation: one `.vis.db` for all ranks of all steps.

use std::io;

use msprobe_report::console::Console;
use msprobe_report::error::{Code, CompareError};
use msprobe_report::output::publish_numbered_by_path;
use msprobe_report::paths::timestamp;

use super::layout::{DirPair, StepPairs};
use super::outcome::rank_place;
use super::pair::{Pair, read_pair};
use super::{GraphOutcome, Options, Progress, percent, ranks_in};
use crate::compare::Task;
use crate::links::{Communication, Ranks, communication, link};
use crate::names::Generation;
use crate::store::db::{Config, Place, Source, Store, Stored};
use crate::verdict::RankAnswer;
use crate::walk::Shown;

/// Why a file could not be written.
#[derive(Debug)]
pub(crate) enum DbError {
    Io(io::Error),
    Sqlite(rusqlite::Error),
    Refused(CompareError),
}

impl From<io::Error> for DbError {
    fn from(error: io::Error) -> DbError {
        DbError::Io(error)
    }
}

impl From<rusqlite::Error> for DbError {
    fn from(error: rusqlite::Error) -> DbError {
        DbError::Sqlite(error)
    }
}

impl From<CompareError> for DbError {
    fn from(error: CompareError) -> DbError {
        DbError::Refused(error)
    }
}

impl DbError {
    pub(crate) fn into_error(self, path: &std::path::Path) -> CompareError {
        let reason = match self {
            DbError::Refused(error) => return error,
            DbError::Io(error) => error.to_string(),
            DbError::Sqlite(error) => error.to_string(),
        };
        CompareError::new(Code::IllegalPath, format!("cannot write {}: {reason}", path.display()))
            .with_hint("choose an output directory you can write to, with enough free space")
    }
}

pub(super) fn write(
    steps: &[StepPairs],
    options: &Options,
    outcome: &mut GraphOutcome,
    console: &dyn Console,
    progress: &Progress<'_>,
) -> Result<(), CompareError> {
    let kind = if options.golden.is_some() { "compare" } else { "build" };
    let path = options.output.join(format!("{kind}_{}.vis.db", timestamp()));
    let written = publish_numbered_by_path(&path, |temporary| -> Result<(), DbError> {
        let mut filling = Filling::begin(temporary, options)?;
        let (all, mut done) = (ranks_in(steps), 0);
        for step in steps {
            for dirs in &step.ranks {
                console.info(&format!("building {}", dirs.0.path.display()));
                match read_rank(dirs, options, console) {
                    Ok(mut pair) => {
                        let rank = dirs.0.name.as_ref().map(|_| dirs.0.rank);
                        let answer = outcome.add_pair(&mut pair, step.step, rank);
                        filling.add(
                            &pair,
                            step.step.unwrap_or(0),
                            dirs.0.rank,
                            answer.as_ref(),
                            |shown| {
                                let place = rank_place(step.step, dirs.0.rank, dirs.0.name.is_some());
                                outcome.add_node(&pair, &place, shown);
                            },
                        )?;
                    }
                    Err(error) => {
                        console.error(&format!("{}: {}", dirs.0.path.display(), error.message));
                        outcome.fail(&rank_place(step.step, dirs.0.rank, dirs.0.name.is_some()), error);
                    }
                }
                done += 1;
                progress(percent(done, all).min(95));
            }
            filling.end_step(step.step.unwrap_or(0))?;
        }
        filling.finish()
    });
    match written {
        Ok(path) => {
            outcome.files.push(path);
            progress(100);
            Ok(())
        }
        // Every rank told why.
        Err(DbError::Refused(_)) => Ok(()),
        Err(error) => Err(error.into_error(&path)),
    }
}

fn read_rank(
    (target, golden): &DirPair,
    options: &Options,
    console: &dyn Console,
) -> Result<Pair, CompareError> {
    let golden = golden.as_ref().map(|golden| golden.path.as_path());
    read_pair(&target.path, golden, options, true, console)
}

/// A file that is filled rank by rank.
pub(crate) struct Filling<'o> {
    store: Store,
    options: &'o Options,
    config: Option<Config>,
    communication: [Ranks; 2],
    /// Whether calls of different ranks are linked.
    pub(crate) links_ranks: bool,
}

impl<'o> Filling<'o> {
    pub(crate) fn begin(path: &std::path::Path, options: &'o Options) -> Result<Filling<'o>, DbError> {
        let store = Store::begin(path)?;
        Ok(Filling {
            store,
            options,
            config: None,
            communication: [Vec::new(), Vec::new()],
            links_ranks: true,
        })
    }

    pub(crate) fn add(
        &mut self,
        pair: &Pair,
        step: u32,
        rank: u32,
        answer: Option<&RankAnswer>,
        mut note: impl FnMut(&Shown),
    ) -> Result<(), DbError> {
        let checksums = pair.golden.as_ref().is_some_and(|golden| golden.task.has_checksums());
        let place = Place { source: Source::Target, step, rank };
        let mut shown_to_peers: Vec<(u32, String)> = Vec::new();
        let target = Stored {
            walk: pair.walk(self.options.overflow_check),
            place,
            other: pair
                .golden
                .as_ref()
                .map(|golden| (&golden.graph.hierarchy, golden.links.to_golden.as_slice())),
            checksums,
            verdicts: pair.verdict.as_ref().map(|(_, nodes)| nodes),
        };
        let is_overflow = self.options.overflow_check;
        self.store.add(&target, |shown| {
            let name = &pair.target.hierarchy.node(shown.index).name;
            if crate::names::is_distributed(name) {
                let text = if is_overflow {
                    shown.overflow.map(|level| level.as_str().to_owned())
                } else {
                    shown.result.index.map(|index| index.to_string())
                };
                shown_to_peers.push((shown.index, text.unwrap_or_else(|| "Nan".to_owned())));
            }
            note(shown);
        })?;
        let told: msprobe_dump::hash::FastMap<u32, String> = shown_to_peers.into_iter().collect();
        self.keep_communication(0, rank, &pair.target, &told);
        if let Some(golden) = &pair.golden {
            let place = Place { source: Source::Golden, ..place };
            let stored = Stored {
                walk: crate::walk::Walk { graph: &golden.graph, against: None, overflow_check: is_overflow },
                place,
                other: Some((&pair.target.hierarchy, golden.links.to_target.as_slice())),
                checksums,
                verdicts: None,
            };
            let mut levels: msprobe_dump::hash::FastMap<u32, String> = msprobe_dump::hash::FastMap::default();
            self.store.add(&stored, |shown| {
                if let Some(level) = shown.overflow {
                    levels.insert(shown.index, level.as_str().to_owned());
                }
            })?;
            self.keep_communication(1, rank, &golden.graph, &levels);
        }
        if let Some(answer) = answer {
            self.store.add_answer(place, answer)?;
        }
        let task: Option<Task> = pair.golden.as_ref().map(|golden| golden.task);
        let config = self.config.get_or_insert_with(|| Config {
            task,
            micro_steps: pair.target.hierarchy.micro_steps,
            overflow_check: self.options.overflow_check,
            ranks: Vec::new(),
            steps: Vec::new(),
        });
        for (list, number) in [(&mut config.ranks, rank), (&mut config.steps, step)] {
            if !list.contains(&number) {
                list.push(number);
                list.sort_unstable();
            }
        }
        Ok(())
    }

    fn keep_communication(
        &mut self,
        side: usize,
        rank: u32,
        graph: &crate::graph::Graph,
        told: &msprobe_dump::hash::FastMap<u32, String>,
    ) {
        if self.links_ranks {
            let calls: Vec<Communication> = communication(graph, Generation::Third, |node| {
                told.get(&node).cloned().unwrap_or_else(|| "Nan".to_owned())
            });
            self.communication[side].push((rank.into(), calls));
        }
    }

    /// Links the ranks of a step.
    pub(crate) fn end_step(&mut self, step: u32) -> Result<(), DbError> {
        for (side, source) in [(0, Source::Target), (1, Source::Golden)] {
            let ranks = std::mem::take(&mut self.communication[side]);
            if ranks.len() < 2 {
                continue;
            }
            let mut named = Vec::new();
            for ((rank, links), (_, calls)) in link(&ranks).into_iter().zip(&ranks) {
                let names: msprobe_dump::hash::FastMap<u32, &str> =
                    calls.iter().map(|call| (call.node, &*call.name)).collect();
                let links = links
                    .into_iter()
                    .filter_map(|(node, json)| Some(((*names.get(&node)?).to_owned(), json)));
                named.push((rank, links.collect()));
            }
            self.store.add_links(source, step, &named)?;
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<(), DbError> {
        let Some(config) = self.config else {
            return Err(DbError::Refused(CompareError::new(Code::InvalidPath, "no rank could be read")));
        };
        self.store.finish(&config)?;
        Ok(())
    }
}
