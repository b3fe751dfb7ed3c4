//! Questions about a graph that need more than its store: what it is as a whole, and everything that changes it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use msprobe_analyze::run::{Options as AnalysisOptions, analyze};
use msprobe_dump::model::{DirKind, dir_kind};
use msprobe_report::console::Silent;

use crate::edits::{Edit, Matcher, config_path, save_store, save_vis, write_config};
use crate::fault::Fault;
use crate::prepare::{OpenGraph, Origin};
use crate::store::{Asking, BUDGET, Patience, Scope};
use crate::wire::{Changed, Found, GraphInfo, Jump, Side};

impl OpenGraph {
    /// What is true of all of it.
    pub(crate) fn info(&self, id: &str, title: String) -> GraphInfo {
        let facts = self.store.facts.clone();
        GraphInfo {
            id: id.to_owned(),
            title,
            kind: if facts.is_comparison { "compare" } else { "build" },
            task: facts.task,
            tool_tips: facts.tool_tips,
            colours: facts.colours,
            micro_steps: facts.micro_steps,
            overflow_check: facts.overflow_check,
            has_verdicts: facts.has_verdicts,
            writable: facts.is_comparison && self.is_writable(),
            steps: facts.steps,
            ranks: facts.ranks,
            answers: facts.answers,
            nodes: facts.nodes,
        }
    }

    fn files(&self) -> Vec<&Path> {
        match &self.origin {
            Origin::Store(path) => vec![path],
            Origin::Vis(files) => files.values().map(PathBuf::as_path).collect(),
            Origin::Dump(_) => Vec::new(),
        }
    }

    fn is_writable(&self) -> bool {
        let files = self.files();
        let is_free = |path: &&Path| path.metadata().is_ok_and(|metadata| !metadata.permissions().readonly());
        !files.is_empty() && files.iter().all(is_free)
    }

    /// Gets ready to be searched, while the first picture is drawn.
    pub(crate) fn read_names_behind(self: &Arc<OpenGraph>) {
        if self.are_names_asked.swap(true, Ordering::Relaxed) {
            return;
        }
        let graph = self.clone();
        let work = move || {
            let scopes: Vec<Scope> = graph.store.scopes().collect();
            for scope in scopes {
                // A search tells what is wrong, when there is one.
                let _ = graph
                    .ask(&Patience::new(BUDGET), |asking| asking.store.names.get(asking, scope).map(|_| ()));
            }
        };
        let _ = std::thread::Builder::new().name("names".to_owned()).spawn(work);
    }

    /// Asks something, with what was changed and not saved.
    pub(crate) fn ask<T>(
        &self,
        patience: &Patience,
        question: impl FnOnce(&Asking<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let overlay = self.journal().overlay();
        self.store.ask(&overlay, patience, question)
    }

    /// Where the first NaN was made. Of a dump the analysis of overflow says it, which sees more than a graph holds.
    pub(crate) fn first_nan(
        &self,
        step: Option<i64>,
        rank: Option<i64>,
        patience: &Patience,
    ) -> Result<Jump, Fault> {
        if let (Origin::Dump(path), None) = (&self.origin, rank)
            && let Ok(outcome) = analyze(path, &AnalysisOptions::default(), &Silent)
            && let Some(culprit) = outcome.culprit()
        {
            let of_step = outcome.step.file_name().and_then(|name| name.to_str()).and_then(dir_kind);
            let at = match of_step {
                Some(DirKind::Step(step)) => i64::try_from(step.0).unwrap_or(0),
                _ => 0,
            };
            let found = Found {
                step: at,
                rank: culprit.rank.into(),
                side: Side::Target,
                node: culprit.operation.clone(),
            };
            let scope = Scope { step: at, rank: found.rank, side: found.side };
            let is_there = self.ask(patience, |asking| Ok(asking.named(scope, &found.node).is_ok()))?;
            if is_there && step.is_none_or(|step| step == at) {
                return Ok(Jump { found: Some(found), why: culprit.reason.clone() });
            }
        }
        self.ask(patience, |asking| asking.first_nan(step, rank))
    }

    /// Changes pairs: one at a time, so that nobody decides on what another one changes.
    pub(crate) fn edit(
        &self,
        (step, rank): (i64, i64),
        roots: &[PathBuf],
        patience: &Patience,
        act: impl FnOnce(Matcher<'_>) -> Result<Edit, Fault>,
    ) -> Result<Changed, Fault> {
        let mut journal = self.journal();
        let overlay = journal.overlay();
        let edit =
            self.store.ask(&overlay, patience, |asking| act(Matcher::new(asking, step, rank, roots)?))?;
        Ok(journal.apply(step, rank, edit))
    }

    /// Writes what was changed to the file.
    pub(crate) fn save(&self) -> Result<Changed, Fault> {
        let mut journal = self.journal();
        let written = match &self.origin {
            Origin::Store(path) => {
                self.store.rest();
                save_store(path, &journal)?
            }
            Origin::Vis(files) => {
                let mut written = 0;
                for ((step, rank), path) in files {
                    written += save_vis(path, *step, *rank, &journal)?;
                }
                written
            }
            Origin::Dump(_) => {
                return Err(Fault::conflict("a dump has no pairs to be saved")
                    .with_hint("compare it with another one first: msprobe graph_visualize -tp … -gp …"));
            }
        };
        journal.saved();
        self.stamp_again();
        let text = if written == 1 {
            "1 node was written".to_owned()
        } else {
            format!("{written} nodes were written")
        };
        Ok(journal.changed(0, 0, 0, 0, text))
    }

    /// Writes the pairs of a rank to a file of pairs beside the graph.
    pub(crate) fn save_config(&self, step: i64, rank: i64, patience: &Patience) -> Result<PathBuf, Fault> {
        let path = match &self.origin {
            Origin::Store(path) => config_path(path, Some((step, rank))),
            Origin::Vis(files) => {
                let file = files.get(&(step, rank));
                let file =
                    file.ok_or_else(|| Fault::missing(format!("there is no step {step}, rank {rank}")))?;
                config_path(file, None)
            }
            Origin::Dump(_) => return Err(Fault::conflict("a dump has no pairs")),
        };
        self.ask(patience, |asking| write_config(asking, step, rank, &path))?;
        Ok(path)
    }
}
