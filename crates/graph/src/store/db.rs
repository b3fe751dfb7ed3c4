//! `.vis.db`: one SQLite file for all steps and ranks.
//!
//! The tables of the reference are filled as it fills them. What it does not know stands in tables of our own, which its
//! plugin never asks for: [`ANSWERS`] for a rank, [`VERDICTS`] for a node, [`SHAPES`] for what merging made whole.

use std::path::Path;

use msprobe_dump::hash::FastMap;
use msprobe_dump::read::Json;
use msprobe_dump::write::JsonText;
use rusqlite::{Connection, params};

use super::legend::{tool_tip, write_colours};
use super::{write_link, write_names};
use crate::compare::{Index, Task};
use crate::graph::Graph;
use crate::hierarchy::{Hierarchy, NodeIndex, Orphan};
use crate::names::{Generation, is_distributed};
use crate::overflow::OverflowLevel;
use crate::stacks::NodeStack;
use crate::values::{BATCH_P2P, Showing};
use crate::verdict::{NodeVerdicts, RankAnswer};
use crate::walk::{Shown, Walk};

/// Our table of answers, one for each rank.
pub const ANSWERS: &str = "msprobe_answers";
/// Our table of verdicts of nodes.
pub const VERDICTS: &str = "msprobe_verdicts";

/// Our table of the shapes merged tensors have as a whole.
pub const SHAPES: &str = "msprobe_merged_shapes";

/// The tables, as a file has them from its beginning.
pub const TABLES: &str = "
CREATE TABLE tb_nodes (
    id TEXT PRIMARY KEY, graph_id TEXT NOT NULL, node_order INTEGER NOT NULL, node_name TEXT NOT NULL,
    node_type TEXT NOT NULL, up_node TEXT, sub_nodes TEXT, precision_index INTEGER, overflow_level TEXT,
    micro_step_id INTEGER NOT NULL, matched_node_link TEXT, stack_id TEXT, parallel_merge_info TEXT,
    matched_distributed TEXT, modified INTEGER NOT NULL, input_data TEXT, output_data TEXT, data_source TEXT,
    dump_data_dir TEXT, step INTEGER NOT NULL, rank INTEGER NOT NULL, is_distributed INTEGER
);
CREATE TABLE tb_stack (id TEXT PRIMARY KEY, stack_info TEXT);
CREATE TABLE tb_config (
    id TEXT PRIMARY KEY, graph_type TEXT NOT NULL, task TEXT, tool_tip TEXT, micro_steps INTEGER,
    overflow_check INTEGER, node_colors TEXT NOT NULL, rank_list TEXT NOT NULL, step_list TEXT NOT NULL
);
CREATE TABLE msprobe_answers (
    step INTEGER NOT NULL, rank INTEGER NOT NULL, status TEXT NOT NULL, headline TEXT NOT NULL, culprit TEXT,
    culprit_node TEXT, answer TEXT NOT NULL, PRIMARY KEY (step, rank)
);
CREATE TABLE msprobe_verdicts (
    id TEXT PRIMARY KEY, verdict TEXT, error_in REAL, error_out REAL, tolerated REAL, worst_below TEXT,
    worst_index REAL, orphan TEXT
) WITHOUT ROWID;
CREATE TABLE msprobe_merged_shapes (
    id TEXT NOT NULL, value TEXT NOT NULL, shape TEXT NOT NULL, note TEXT, PRIMARY KEY (id, value)
) WITHOUT ROWID;
";

/// The indexes, which are made when all nodes are there.
pub const INDEXES: &str = "
CREATE INDEX index1 ON tb_nodes (step, rank, data_source, up_node, node_order);
CREATE INDEX index2 ON tb_nodes (step, rank, data_source, node_name);
CREATE INDEX index3 ON tb_nodes (step, rank, data_source, node_order);
CREATE INDEX index4 ON tb_nodes (step, rank, node_order);
CREATE INDEX index5 ON tb_nodes (step, rank, micro_step_id, node_order);
CREATE INDEX index6 ON tb_nodes (step, rank, modified, matched_node_link);
CREATE INDEX index7 ON tb_nodes (is_distributed);
";

/// Fills one row of nodes: all columns but `modified`, which is 0.
pub const INSERT_NODE: &str = "INSERT OR REPLACE INTO tb_nodes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, \
    ?13, ?14, 0, ?15, ?16, ?17, ?18, ?19, ?20, ?21)";

/// Which side a graph is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The target, or the only graph.
    Target,
    /// The golden side.
    Golden,
}

impl Source {
    /// The word in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Source::Target => "NPU",
            Source::Golden => "Bench",
        }
    }
}

/// Where a graph belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Which side it is of.
    pub source: Source,
    /// The step, or 0.
    pub step: u32,
    /// The rank, or 0.
    pub rank: u32,
}

impl Place {
    /// What ids of this graph begin with.
    pub fn graph_id(self) -> String {
        format!("{}_{}_{}", self.source.as_str(), self.step, self.rank)
    }

    /// The id of a node.
    pub fn node_id(self, name: &str) -> String {
        format!("{}_{}_{}_{name}", self.source.as_str(), self.step, self.rank)
    }
}

/// What is true of all graphs of a file.
#[derive(Debug, Clone)]
pub struct Config {
    /// What is compared; nothing where graphs are only shown.
    pub task: Option<Task>,
    /// How many micro steps the first rank has.
    pub micro_steps: u32,
    /// Whether NaN, infinities and jumps were looked for.
    pub overflow_check: bool,
    /// Ranks, ascending.
    pub ranks: Vec<u32>,
    /// Steps, ascending.
    pub steps: Vec<u32>,
}

/// A file that is being filled.
pub struct Store {
    connection: Connection,
}

/// A graph to be stored.
pub struct Stored<'g> {
    /// It, and what it is compared with.
    pub walk: Walk<'g>,
    /// Where it belongs.
    pub place: Place,
    /// Partners on the other side.
    pub other: Option<(&'g Hierarchy, &'g [Option<NodeIndex>])>,
    /// Whether checksums are shown.
    pub checksums: bool,
    /// What the answer says of its nodes.
    pub verdicts: Option<&'g NodeVerdicts>,
}

impl Store {
    /// Begins a file at a path where there is an empty one.
    pub fn begin(path: &Path) -> rusqlite::Result<Store> {
        let connection = Connection::open(path)?;
        // The file has its name only when it is complete: nothing has to survive a crash before that.
        connection.execute_batch(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; \
             PRAGMA temp_store = FILE; PRAGMA cache_size = -32768;",
        )?;
        connection.execute_batch(TABLES)?;
        Ok(Store { connection })
    }

    /// Stores a graph, in one transaction. `note` hears of each node.
    pub fn add(&mut self, graph: &Stored<'_>, mut note: impl FnMut(&Shown)) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        {
            let mut insert = transaction.prepare(INSERT_NODE)?;
            let mut insert_stack = transaction.prepare("INSERT OR REPLACE INTO tb_stack VALUES (?1, ?2)")?;
            let mut insert_verdict = transaction
                .prepare("INSERT OR REPLACE INTO msprobe_verdicts VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?;
            let mut insert_shape = transaction
                .prepare("INSERT OR REPLACE INTO msprobe_merged_shapes VALUES (?1, ?2, ?3, ?4)")?;
            let hierarchy = &graph.walk.graph.hierarchy;
            let graph_id = graph.place.graph_id();
            let tensor_dir = tensor_dir(graph.walk.graph);
            let mut stacks = StackIds::default();
            let mut order = 0_i64;
            let mut worst = WorstBelow::new(hierarchy.nodes.len());
            graph.walk.each(
                &hierarchy.post_order(),
                |shown| graph.texts(shown),
                |shown, texts| -> rusqlite::Result<()> {
                    note(&shown);
                    let node = hierarchy.node(shown.index);
                    let stack = stacks.number(&node.stack, |number, text| {
                        insert_stack.execute(params![format!("{graph_id}_{number}"), text]).map(|_| ())
                    })?;
                    let index = shown.result.index.map(Index::number);
                    let id = graph.place.node_id(&node.name);
                    insert.execute(params![
                        id,
                        graph_id,
                        order,
                        &*node.name,
                        node.kind.number().to_string(),
                        node.parent.map_or("", |parent| &*hierarchy.node(parent).name),
                        texts.children,
                        index,
                        shown.overflow.map(OverflowLevel::as_str),
                        node.micro_step.unwrap_or(0),
                        texts.link,
                        format!("{graph_id}_{stack}"),
                        texts.merge_info,
                        "{}",
                        texts.inputs,
                        texts.outputs,
                        graph.place.source.as_str(),
                        tensor_dir,
                        graph.place.step,
                        graph.place.rank,
                        is_distributed(&node.name),
                    ])?;
                    for value in shown.values.iter() {
                        if let Some(merged) = &value.merged
                            && let Some(shape) = &merged.whole_shape
                        {
                            let (shape, note) = (format!("{shape:?}"), merged.note.as_deref());
                            insert_shape.execute(params![id, &*value.leaf.name, shape, note])?;
                        }
                    }
                    order += 1;
                    worst.add(hierarchy, shown.index, index);
                    if graph.place.source == Source::Target && graph.verdicts.is_some()
                        || node.orphan.is_some()
                    {
                        let verdict = graph.verdicts.and_then(|verdicts| verdicts.get(&node.name));
                        let below = worst.below(shown.index);
                        insert_verdict.execute(params![
                            id,
                            verdict.map(|it| it.origin.as_str()),
                            verdict.map(|it| it.error_in),
                            verdict.map(|it| it.error_out),
                            verdict.and_then(|it| it.tolerated),
                            below.map(|(below, _)| &*hierarchy.node(below).name),
                            below.map(|(_, index)| index),
                            node.orphan.map(Orphan::as_str),
                        ])?;
                    }
                    Ok(())
                },
            )?;
        }
        transaction.commit()
    }

    /// Stores what ranks of a step are linked with.
    pub fn add_links(
        &mut self,
        source: Source,
        step: u32,
        links: &[(i64, Vec<(String, String)>)],
    ) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        {
            let mut update =
                transaction.prepare("UPDATE tb_nodes SET matched_distributed = ?2 WHERE id = ?1")?;
            for (rank, nodes) in links {
                let Ok(rank) = u32::try_from(*rank) else { continue };
                let place = Place { source, step, rank };
                for (name, json) in nodes {
                    update.execute(params![place.node_id(name), json])?;
                }
            }
        }
        transaction.commit()
    }

    /// Stores the answer of a rank.
    pub fn add_answer(&mut self, place: Place, answer: &RankAnswer) -> rusqlite::Result<()> {
        let culprit_node = answer.culprit.as_ref().map(|name| place.node_id(name));
        self.connection
            .execute(
                "INSERT OR REPLACE INTO msprobe_answers VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![
                    place.step,
                    place.rank,
                    answer.status,
                    answer.headline,
                    answer.culprit,
                    culprit_node,
                    answer.json
                ],
            )
            .map(|_| ())
    }

    /// Stores what is true of all, makes the indexes, and ends the file.
    pub fn finish(self, config: &Config) -> rusqlite::Result<()> {
        let list = |numbers: &[u32]| {
            let texts: Vec<String> = numbers.iter().map(u32::to_string).collect();
            format!("[{}]", texts.join(", "))
        };
        let colours = match config.task {
            None => "null".to_owned(),
            Some(task) => {
                let mut json = JsonText::on_one_line();
                write_colours(&mut json, task, Generation::Third);
                json.finish()
            }
        };
        self.connection.execute(
            "INSERT OR IGNORE INTO tb_config VALUES ('1', ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![
                if config.task.is_some() { "compare" } else { "build" },
                config.task.map_or("", Task::as_str),
                config.task.map(tool_tip),
                config.micro_steps,
                config.overflow_check,
                colours,
                list(&config.ranks),
                list(&config.steps),
            ],
        )?;
        self.connection.execute_batch(INDEXES)?;
        self.connection.close().map_err(|(_, error)| error)
    }
}

/// The texts of a row.
struct Texts {
    children: String,
    link: String,
    merge_info: String,
    inputs: String,
    outputs: String,
}

impl Stored<'_> {
    fn texts(&self, shown: &Shown) -> Texts {
        let graph = self.walk.graph;
        let node = graph.hierarchy.node(shown.index);
        let showing = Showing {
            generation: Generation::Third,
            checksums: self.checksums,
            is_batch_p2p: node.name.contains(BATCH_P2P),
        };
        let written = |write: &dyn Fn(&mut JsonText)| {
            let mut json = JsonText::on_one_line();
            write(&mut json);
            json.finish()
        };
        let (values, extras) = (&shown.values, &shown.result.extras);
        Texts {
            children: if node.children.is_empty() {
                String::new()
            } else {
                written(&|json| write_names(json, &graph.hierarchy, &node.children))
            },
            link: written(&|json| {
                write_link(json, self.other.map(|(other, links)| (other, links[shown.index as usize])));
            }),
            merge_info: graph.merge_info.get(&shown.index).map_or_else(String::new, |sentences| {
                written(&|json| {
                    json.begin_array();
                    for sentence in sentences {
                        json.string(sentence);
                    }
                    json.end_array();
                })
            }),
            inputs: written(&|json| showing.write(json, values, extras, false)),
            outputs: written(&|json| showing.write(json, values, extras, true)),
        }
    }
}

/// Stacks of a graph, each stored once, numbered as they come.
#[derive(Default)]
struct StackIds {
    /// By where their frames lie: most nodes share them.
    by_place: FastMap<(usize, u32), u64>,
    by_text: FastMap<String, u64>,
}

impl StackIds {
    fn number<E>(
        &mut self,
        stack: &NodeStack,
        insert: impl FnOnce(u64, &str) -> Result<(), E>,
    ) -> Result<u64, E> {
        let place = match stack {
            NodeStack::Empty => (0, 0),
            NodeStack::NoForward => (1, 0),
            NodeStack::All(frames) => (frames.as_ptr() as usize, u32::MAX),
            NodeStack::One(frames, at) => (frames.as_ptr() as usize, *at),
        };
        if let Some(&known) = self.by_place.get(&place) {
            return Ok(known);
        }
        let mut json = JsonText::on_one_line();
        json.begin_array();
        stack.lines().for_each(|line| json.string(line));
        json.end_array();
        let text = json.finish();
        let next = self.by_text.len() as u64;
        let number = match self.by_text.get(&text) {
            Some(&known) => known,
            None => {
                insert(next, &text)?;
                self.by_text.insert(text, next);
                next
            }
        };
        self.by_place.insert(place, number);
        Ok(number)
    }
}

/// The worst node below each node, for those who show it closed.
struct WorstBelow(Vec<Option<(NodeIndex, f64)>>);

impl WorstBelow {
    fn new(nodes: usize) -> WorstBelow {
        WorstBelow(vec![None; nodes])
    }

    fn below(&self, node: NodeIndex) -> Option<(NodeIndex, f64)> {
        self.0[node as usize]
    }

    /// A node that comes after all below it.
    fn add(&mut self, hierarchy: &Hierarchy, node: NodeIndex, index: Option<f64>) {
        let Some(parent) = hierarchy.node(node).parent else { return };
        let own = index.filter(|_| !hierarchy.node(node).kind.is_collection()).map(|index| (node, index));
        for worst in [self.0[node as usize], own].into_iter().flatten() {
            let slot = &mut self.0[parent as usize];
            // Of two that are equally bad, the first counts.
            if slot.is_none_or(|(_, known)| worst.1 > known) {
                *slot = Some(worst);
            }
        }
    }
}

/// Where the tensor files of a graph are: beside its dump, if it has any.
fn tensor_dir(graph: &Graph) -> Option<String> {
    let recorded = graph.files.header.dump_data_dir.as_ref()?;
    let Ok(Json::Text(recorded)) = Json::parse(recorded.as_bytes()) else { return None };
    if recorded.is_empty() {
        return Some(String::new());
    }
    let beside = graph.tensor_dir();
    Some(beside.to_string_lossy().into_owned())
}
