//! Two ranks, read, matched and judged.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use msprobe_compare::Mode;
use msprobe_compare::side::{RecordPlaces, Side, Which, read_side_and_places};
use msprobe_compare::verdict::Verdict;
use msprobe_dump::model::Header;
use msprobe_report::console::{Console, Silent};
use msprobe_report::error::{Code, CompareError};
use msprobe_tables::mapping::{LayerPartner, MappingSource, layer_partners};

use super::Options;
use crate::compare::{Comparer, KnownValues, Task};
use crate::graph::Graph;
use crate::hierarchy::{Form, follow};
use crate::matching::{Links, Matching, match_nodes};
use crate::names::Generation;
use crate::verdict::{Judged, NodeVerdicts, asked_records, judge};
use crate::walk::{Against, Walk};

/// How nodes of two sides are put together by a mapping of layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayerMapping {
    /// By their names alone.
    Names,
    /// By the rules of a file.
    File(PathBuf),
}

/// The golden side of a rank.
pub struct Golden {
    /// Its graph.
    pub graph: Graph,
    /// What is compared.
    pub task: Task,
    /// Partners.
    pub links: Links,
    /// How nodes are compared.
    pub comparer: Comparer,
    /// What the engine has read of it already.
    pub known: Option<KnownValues>,
}

/// A rank, and what it is compared with.
pub struct Pair {
    /// The graph of the target, or the only one.
    pub target: Graph,
    /// The golden side.
    pub golden: Option<Golden>,
    /// What the engine says, where it was asked and could.
    pub verdict: Option<(Verdict, NodeVerdicts)>,
}

impl Pair {
    /// All nodes of the target.
    pub fn walk(&self, overflow_check: bool) -> Walk<'_> {
        let against = self.golden.as_ref().map(|golden| Against {
            golden: &golden.graph,
            links: &golden.links,
            comparer: &golden.comparer,
            known: golden.known.as_ref(),
        });
        Walk { graph: &self.target, against, overflow_check }
    }

    /// All nodes of the golden side.
    pub fn golden_walk(&self, overflow_check: bool) -> Option<Walk<'_>> {
        self.golden.as_ref().map(|golden| Walk { graph: &golden.graph, against: None, overflow_check })
    }
}

/// Reads one graph.
pub fn read_graph(dir: &Path, options: &Options, console: &dyn Console) -> Result<Graph, CompareError> {
    graph_of(dir, None, options, console)
}

/// The same, where the engine has gone through `dump.json` already.
fn graph_of(
    dir: &Path,
    known: Option<RecordPlaces>,
    options: &Options,
    console: &dyn Console,
) -> Result<Graph, CompareError> {
    let form = Form {
        generation: options.generation,
        complete_stacks: options.complete_stacks || options.generation == Generation::Third,
    };
    let graph = Graph::read(dir, known, form).map_err(|error| {
        CompareError::new(Code::InvalidPath, error.to_string())
            .with_hint("a rank needs dump.json, construct.json and stack.json of one collection")
    })?;
    for damage in &graph.files.damage {
        console.warning(damage);
    }
    if graph.files.entries.is_empty() {
        let level = graph.files.header.level.as_deref().unwrap_or("unknown");
        return Err(CompareError::new(
            Code::InvalidData,
            format!(
                "{}: there is nothing to build a hierarchy of (level {level})",
                dir.join("construct.json").display()
            ),
        )
        .with_hint("collect with \"level\": \"mix\" or \"L0\": level L1 records no modules"));
    }
    Ok(graph)
}

/// Reads a rank and what it is compared with. The engine is asked if `with_verdict`.
pub(super) fn read_pair(
    target: &Path,
    golden: Option<&Path>,
    options: &Options,
    with_verdict: bool,
    console: &dyn Console,
) -> Result<Pair, CompareError> {
    let Some(golden) = golden else {
        return Ok(Pair { target: read_graph(target, options, console)?, golden: None, verdict: None });
    };
    let needs_sides = with_verdict || options.layer_mapping.is_some();
    let read = |dir, which| read_rank(dir, which, needs_sides, options, console);
    let (target, golden) = rayon::join(|| read(target, Which::Target), || read(golden, Which::Golden));
    let ((target, own), (golden, other)) = (target?, golden?);
    check_frameworks(&target.files.header, &golden.files.header, options)?;
    let sides = match (own, other) {
        (Some(Ok(own)), Some(Ok(other))) => Some((own, other)),
        (Some(Err(error)), _) | (_, Some(Err(error))) => {
            console.warning(&format!("there is a graph, but no verdict: {}", error.message));
            None
        }
        (None, _) | (_, None) => None,
    };
    let read = sides.as_ref().map(|(own, other)| (&own.side, &other.side));
    let task = task_of(&target, &golden, read)?;
    let matching = matching(&target, &golden, read, options, console)?;
    let judged = match (&sides, task) {
        (Some((own, other)), Task::Values(mode)) if with_verdict => Some((own, other, mode)),
        _ => None,
    };
    // Where the engine finds pairs by itself, it does so while nodes are matched.
    let at_once = judged.filter(|_| matches!(matching, Matching::Exact));
    let (mut pair, verdict) = rayon::join(
        || put_together(target, golden, task, &matching, read, options),
        || at_once.map(|(own, other, mode)| judge(own, other, mode, None)),
    );
    pair.verdict = match (verdict, judged, &pair.golden) {
        (None, Some((own, other, mode)), Some(golden)) => {
            let hierarchies = (&pair.target.hierarchy, &golden.graph.hierarchy);
            let (own_side, other_side) = ((&own.side, hierarchies.0), (&other.side, hierarchies.1));
            let asked = asked_records(own_side, other_side, &golden.links, &matching);
            Some(judge(own, other, mode, asked.as_ref()))
        }
        (verdict, ..) => verdict,
    };
    if let (Some(_), Some(golden), Some((_, other))) = (&pair.verdict, &mut pair.golden, sides) {
        golden.known = Some(KnownValues::new(other.side));
    }
    Ok(pair)
}

/// Matches two graphs, of dumps that the comparison engine may have read.
pub fn put_together(
    target: Graph,
    mut golden: Graph,
    task: Task,
    matching: &Matching,
    sides: Option<(&Side, &Side)>,
    options: &Options,
) -> Pair {
    let generation = options.generation;
    let links = match_nodes(&target, &golden, matching, generation, sides);
    follow(&mut golden.hierarchy, &target.hierarchy, |node| links.to_golden[node as usize]);
    if generation == Generation::Third {
        crate::hierarchy::hand_down(&mut golden.hierarchy);
    }
    let comparer = Comparer::new(&target, &golden, task, generation);
    Pair { target, golden: Some(Golden { graph: golden, task, links, comparer, known: None }), verdict: None }
}

fn check_frameworks(target: &Header, golden: &Header, options: &Options) -> Result<(), CompareError> {
    if target.framework == golden.framework || options.layer_mapping.is_some() {
        return Ok(());
    }
    let name =
        |header: &Header| header.framework.clone().unwrap_or_else(|| "an unknown framework".to_owned());
    let message = format!(
        "the two sides are of different frameworks: {} and {}; their names need a mapping (cross_frame)",
        name(target),
        name(golden)
    );
    Err(CompareError::new(Code::InvalidCompareMode, message)
        .with_hint("give -lm FILE with the names of layers that differ, or -lm alone"))
}

/// A graph and, if asked for, its dump as the comparison engine sees it, or why it cannot.
type Rank = (Graph, Option<Result<Judged, CompareError>>);

/// Reads a rank. The engine goes first: what it has gone through need not be gone through again for the graph.
fn read_rank(
    dir: &Path,
    which: Which,
    needs_side: bool,
    options: &Options,
    console: &dyn Console,
) -> Result<Rank, CompareError> {
    if !needs_side {
        return Ok((read_graph(dir, options, console)?, None));
    }
    let (side, places) = match read_side_and_places(&dir.join("dump.json"), which, &Silent) {
        Ok((mut side, places)) => (side.fault.take().map_or(Ok(side), Err), Some(places)),
        Err(error) => (Err(error), None),
    };
    Ok((graph_of(dir, places, options, console)?, Some(side.map(Judged::from_files))))
}

fn task_of(target: &Graph, golden: &Graph, sides: Option<(&Side, &Side)>) -> Result<Task, CompareError> {
    let task = |graph: &Graph| graph.files.header.task.clone().unwrap_or_default();
    let refused = |message: String| {
        Err(CompareError::new(Code::InvalidTask, message)
            .with_hint("collect both sides with the same task and summary_mode"))
    };
    let (own, other) = (task(target), task(golden));
    if own != other {
        return refused(format!("the two sides are of different tasks: {own} and {other}"));
    }
    match own.as_str() {
        "tensor" => Ok(Task::Values(Mode::All)),
        "structure" => Ok(Task::Structure),
        "statistics" => {
            let checksums = match sides {
                Some((target, golden)) => (target.has_md5, golden.has_md5),
                None => rayon::join(|| target.has_checksums(), || golden.has_checksums()),
            };
            match checksums {
                (true, true) => Ok(Task::Values(Mode::Md5)),
                (false, false) => Ok(Task::Values(Mode::Summary)),
                _ => refused("one side has checksums, the other has none".to_owned()),
            }
        }
        other => refused(format!("dumps of the task {other} cannot be compared as graphs")),
    }
}

fn matching(
    target: &Graph,
    golden: &Graph,
    sides: Option<(&Side, &Side)>,
    options: &Options,
    console: &dyn Console,
) -> Result<Matching, CompareError> {
    if options.fuzzy {
        return Ok(Matching::Fuzzy);
    }
    let Some(mapping) = &options.layer_mapping else { return Ok(Matching::Exact) };
    let source = match mapping {
        LayerMapping::File(file) => MappingSource::File(file),
        // The newer form follows the places of modules, whatever their classes are called.
        LayerMapping::Names if options.generation == Generation::Third => MappingSource::BuiltIn,
        LayerMapping::Names => return Ok(Matching::Mapped(HashMap::new())),
    };
    let by_name = |why: &str| {
        console.warning(&format!("nodes are matched by their names alone: {why}"));
        Ok(Matching::Mapped(HashMap::new()))
    };
    let Some((own, other)) = sides else {
        if *mapping == LayerMapping::Names {
            return by_name("a dump.json cannot be compared");
        }
        let message = format!("the layers of {} cannot be mapped", target.files.dir.display());
        return Err(CompareError::new(Code::InvalidData, message)
            .with_hint(format!("dump.json of it or of {} cannot be compared", golden.files.dir.display())));
    };
    let partners = match layer_partners(own, other, source, console) {
        Err(error) if *mapping == LayerMapping::Names => return by_name(&error.message),
        partners => partners?,
    };
    let mut names = HashMap::new();
    for (record, partner) in own.records.iter().zip(partners) {
        let partner = match partner {
            LayerPartner::Unknown => continue,
            LayerPartner::Nothing => None,
            LayerPartner::Record(record) => other.records.get(record).map(|record| record.name.to_string()),
        };
        names.insert(record.name.to_string(), partner);
    }
    Ok(Matching::Mapped(names))
}
