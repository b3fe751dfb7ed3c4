//! What came of all graphs of a call, and its answer.

use std::path::PathBuf;

use msprobe_compare::verdict::Verdict;
use msprobe_report::answer::{Answer, Culprit, NotCompared, Section, Status};
use msprobe_report::error::CompareError;
use msprobe_tables::run::{Outcome, Part};

use super::{Options, Pair, Tally, count, place_of};
use crate::names::Generation;
use crate::verdict::{RankAnswer, scope};
use crate::walk::Shown;

/// What came of a call.
#[derive(Debug)]
pub struct GraphOutcome {
    /// Files that were written.
    pub files: Vec<PathBuf>,
    /// What was counted.
    pub tally: Tally,
    /// What could not be read or has no counterpart, and why.
    pub left_out: Vec<(String, String)>,
    /// Ranks of which the engine gave a verdict.
    engine: Outcome,
    first_error: Option<CompareError>,
    /// What is to be known of how merged ranks were judged.
    notes: Vec<String>,
    /// The first node of the target with the worst verdict, in execution order, where the engine was not asked.
    first_bad: Option<(String, String)>,
    options: Options,
}

impl GraphOutcome {
    pub(super) fn new(options: &Options) -> GraphOutcome {
        GraphOutcome {
            files: Vec::new(),
            tally: Tally::default(),
            left_out: Vec::new(),
            engine: Outcome::default(),
            first_error: None,
            notes: Vec::new(),
            first_bad: None,
            options: options.clone(),
        }
    }

    /// Something that has no counterpart.
    pub(crate) fn leave_out(&mut self, what: String) {
        self.left_out.push((what, "nothing to compare it with".to_owned()));
    }

    /// Something to be known of how merged ranks were judged. It is told once, whatever the number of replicas.
    pub(crate) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// A rank that costs itself, not the run.
    pub(crate) fn fail(&mut self, place: &str, error: CompareError) {
        let place = if place.is_empty() { "the dump" } else { place };
        self.left_out.push((place.to_owned(), error.message.clone()));
        self.first_error.get_or_insert(error);
    }

    /// Counts a pair, and keeps its verdict.
    pub(crate) fn add_pair(
        &mut self,
        pair: &mut Pair,
        step: Option<u32>,
        rank: Option<u32>,
    ) -> Option<RankAnswer> {
        self.tally.add_pair(pair);
        let (verdict, _) = pair.verdict.as_ref()?;
        Some(self.add_verdict(verdict.clone(), step, rank))
    }

    /// Keeps a verdict.
    pub(crate) fn add_verdict(
        &mut self,
        verdict: Verdict,
        step: Option<u32>,
        rank: Option<u32>,
    ) -> RankAnswer {
        let scope = scope(step, rank);
        let answer = Answer { command: "graph", ..verdict.answer(scope, &scope.to_string()) };
        self.engine.parts.push(Part { scope, verdict, files: Vec::new() });
        RankAnswer::of(&answer)
    }

    /// Counts a node of the target.
    pub(crate) fn add_node(&mut self, pair: &Pair, place: &str, shown: &Shown) {
        self.tally.add_node(pair, place, shown);
        let node = pair.target.hierarchy.node(shown.index);
        let is_bad =
            shown.result.index.is_some_and(|index| index.number() >= 0.6) && !node.kind.is_collection();
        if is_bad && self.options.generation == Generation::Third && self.first_bad.is_none() {
            self.first_bad = Some((place.to_owned(), node.name.to_string()));
        }
        for failure in &shown.result.failures {
            if self.left_out.len() < 1000 {
                self.left_out.push((node.name.to_string(), failure.clone()));
            }
        }
    }

    /// Where nothing was written, why.
    pub(super) fn finish(self) -> Result<GraphOutcome, CompareError> {
        match self.first_error {
            Some(error) if self.files.is_empty() => Err(error),
            first_error => Ok(GraphOutcome { first_error, ..self }),
        }
    }

    /// How the call ended.
    pub fn status(&self) -> Status {
        let status = if self.options.golden.is_none() {
            Status::Clean
        } else if self.engine.parts.is_empty() {
            let is_same_structure = self.tally.target_matched == self.tally.target_nodes
                && self.tally.golden_matched == self.tally.golden_nodes;
            match self.tally.grades {
                [_, _, error] if error > 0 => Status::Diverged,
                [_, warning, _] if warning > 0 => Status::WithinTolerance,
                _ if is_same_structure => Status::WithinTolerance,
                _ => Status::Incomplete,
            }
        } else {
            self.engine.status()
        };
        if status.agrees() && !self.left_out.is_empty() { Status::Incomplete } else { status }
    }

    /// Whether everything could be read and has a counterpart.
    pub fn is_all_read(&self) -> bool {
        self.left_out.is_empty()
    }

    /// The answer.
    pub fn answer(&self) -> Answer {
        let status = self.status();
        let mut answer = if self.engine.parts.is_empty() {
            self.own_answer(status)
        } else {
            let mut answer = Answer { command: "graph", status, ..self.engine.to_answer() };
            if self.engine.status() != status {
                answer.headline =
                    status.headline("", &format!("{} left out", count(self.left_out.len(), "thing")));
            }
            answer
        };
        let text = format!("{} left out", count(self.left_out.len(), "thing"));
        let left_out = NotCompared::of("graphs", self.left_out.len(), text, self.left_out.iter().cloned());
        answer.not_compared.extend(left_out);
        answer.output = Some(self.options.output.clone());
        answer.files.clone_from(&self.files);
        answer
    }

    /// Without the engine: graphs that were only built, structures.
    fn own_answer(&self, status: Status) -> Answer {
        let Tally { target_nodes, target_matched, golden_nodes, golden_matched, graphs, .. } = self.tally;
        let [_, warning, error] = self.tally.grades;
        let sentence = if self.options.golden.is_none() {
            format!("{} built with {}", count(graphs, "graph"), count(target_nodes, "node"))
        } else if error > 0 {
            format!("{} with the verdict error, {warning} with a warning", count(error, "node"))
        } else if target_matched == target_nodes && golden_matched == golden_nodes {
            format!("all {} have a partner, {warning} with a warning", count(target_nodes, "node"))
        } else {
            let alone = (target_nodes - target_matched) + (golden_nodes - golden_matched);
            format!("{} without a partner", count(alone, "node"))
        };
        let culprit =
            self.first_bad.as_ref().filter(|_| status.is_difference()).map(|(place, name)| Culprit {
                name: name.clone(),
                kind: "first_error_in_graph",
                direction: None,
                facts: if place.is_empty() { Vec::new() } else { vec![("where", place.clone())] },
            });
        Answer { culprit, ..Answer::new("graph", status, status.headline("", &sentence), scope(None, None)) }
    }

    /// What people are shown besides.
    pub fn sections(&self, width: usize) -> Vec<Section> {
        let lines = self.tally.lines(self.options.golden.is_some(), self.options.overflow_check);
        let mut sections = vec![
            Section::lines("Graphs", lines),
            Section::lines("Worst nodes (0 good, 1 bad)", self.tally.worst_lines()),
            Section::lines("Merged ranks", self.notes.clone()),
        ];
        sections.extend(self.engine.sections(width));
        sections
    }
}

/// `step 0, rank 1` of a rank.
pub(crate) fn rank_place(step: Option<u32>, rank: u32, is_named: bool) -> String {
    place_of(step, is_named.then_some(rank))
}
