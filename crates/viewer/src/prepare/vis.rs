//! `.vis` files read into a store, a node at a time.
//!
//! A file is gone through twice: for who is in whom, of which numbers are kept, and then for the rows.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use msprobe_dump::read::{Json, Members, Pull, PullError};
use msprobe_graph::names::{ROOT, is_distributed};
use msprobe_graph::store::db::{INDEXES, INSERT_NODE, TABLES};
use rusqlite::{Connection, params};
use xxhash_rust::xxh3::xxh3_64;

use super::outline::{Outline, outline};
use crate::fault::Fault;
use crate::json_text::one_line;
use crate::wire::Side;

/// More nodes than a file of a rank can have.
const MOST_NODES: usize = 20_000_000;
/// What is said of nodes that nothing leads to.
const LOST: &str = "no node of the file has it among its children; shown below the root";

const NONE: u32 = u32::MAX;

/// Reads the files of all steps and ranks into one store.
pub(super) fn import(
    files: &BTreeMap<(i64, i64), PathBuf>,
    store: &Path,
    done: &AtomicU64,
) -> Result<(), Fault> {
    let mut connection = Connection::open(store)?;
    connection
        .execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -16384;")?;
    connection.execute_batch(TABLES)?;
    let (mut first, mut failed) = (None, None);
    let mut read: Vec<(i64, i64)> = Vec::new();
    let mut before = 0;
    for (&(step, rank), path) in files {
        let transaction = connection.transaction()?;
        let added = outline(path).and_then(|outline| {
            for &(side, offset) in &outline.sides {
                Part { path, step, rank, side, offset, done, before }.add(&transaction)?;
            }
            Ok(outline)
        });
        match added {
            Ok(outline) => {
                transaction.commit()?;
                first.get_or_insert(outline);
                read.push((step, rank));
            }
            // One file that cannot be read leaves the others.
            Err(fault) => {
                drop(transaction);
                failed = failed.or(Some(fault));
            }
        }
        before += path.metadata().map_or(0, |metadata| metadata.len());
        done.store(before, Ordering::Relaxed);
    }
    let Some(outline) = first else {
        return Err(failed.unwrap_or_else(|| Fault::unreadable("there is no file to read")));
    };
    add_config(&connection, &outline, &read)?;
    connection.execute_batch(INDEXES)?;
    connection.close().map_err(|(_, error)| error)?;
    Ok(())
}

fn add_config(connection: &Connection, outline: &Outline, read: &[(i64, i64)]) -> Result<(), Fault> {
    let list = |numbers: HashSet<i64>| {
        let mut numbers: Vec<i64> = numbers.into_iter().collect();
        numbers.sort_unstable();
        format!("{numbers:?}")
    };
    let text = |key: &str| outline.member(key).and_then(|value| value.as_str().map(str::to_owned));
    let colours = match outline.member("Colors") {
        Some(colours) => one_line(&colours),
        None => "null".to_owned(),
    };
    let micro_steps = match outline.member("MicroSteps") {
        Some(Json::Int(steps)) => i64::try_from(steps).unwrap_or(1),
        _ => 1,
    };
    connection.execute(
        "INSERT INTO tb_config VALUES ('1', ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            if outline.is_comparison { "compare" } else { "build" },
            text("task").unwrap_or_default(),
            text("ToolTip"),
            micro_steps,
            outline.member("OverflowCheck") == Some(Json::Bool(true)),
            colours,
            list(read.iter().map(|(_, rank)| *rank).collect()),
            list(read.iter().map(|(step, _)| *step).collect()),
        ],
    )?;
    Ok(())
}

/// Who is in whom, by hashes of names.
#[derive(Default)]
struct Tree {
    places: HashMap<u64, u32>,
    children: Vec<Vec<u64>>,
}

impl Tree {
    /// Where each node stands among all, children first, and who its parent is. What nothing leads to is put below the root.
    fn order(&self, root: u32) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
        let nodes = self.children.len();
        let (mut order, mut parent) = (vec![NONE; nodes], vec![NONE; nodes]);
        let mut seen = vec![false; nodes];
        let mut lost = Vec::new();
        let mut next_order = 0;
        let mut tops: Vec<u32> = (0..nodes as u32).filter(|&node| node != root).collect();
        // Those whom somebody names come last: what is left of them then are circles.
        let named: HashSet<u32> =
            self.children.iter().flatten().filter_map(|child| self.places.get(child).copied()).collect();
        tops.sort_by_key(|node| (named.contains(node), *node));
        // The root comes last of all; it is gone through first, to know whom it leads to.
        let walk = |top: u32, seen: &mut Vec<bool>, parent: &mut Vec<u32>, visit: &mut dyn FnMut(u32)| {
            let mut open = vec![(top, 0_usize)];
            seen[top as usize] = true;
            while let Some((node, at)) = open.last_mut() {
                let node = *node;
                match self.children[node as usize].get(*at) {
                    Some(child) => {
                        *at += 1;
                        if let Some(&child) = self.places.get(child)
                            && !seen[child as usize]
                        {
                            seen[child as usize] = true;
                            parent[child as usize] = node;
                            open.push((child, 0));
                        }
                    }
                    None => {
                        visit(node);
                        open.pop();
                    }
                }
            }
        };
        let mut in_order = Vec::with_capacity(nodes);
        walk(root, &mut seen, &mut parent, &mut |node| {
            if node != root {
                in_order.push(node);
            }
        });
        for top in tops {
            if !seen[top as usize] {
                lost.push(top);
                walk(top, &mut seen, &mut parent, &mut |node| in_order.push(node));
                parent[top as usize] = root;
            }
        }
        for node in in_order.into_iter().chain([root]) {
            order[node as usize] = next_order;
            next_order += 1;
        }
        (order, parent, lost)
    }
}

/// One side of a file.
struct Part<'p> {
    path: &'p Path,
    step: i64,
    rank: i64,
    side: Side,
    offset: u64,
    done: &'p AtomicU64,
    before: u64,
}

impl Part<'_> {
    /// Shows each node, as JSON, and members beside them.
    fn each(&self, mut each: impl FnMut(bool, &str, &Json<'_>) -> Result<(), Fault>) -> Result<(), Fault> {
        let unreadable = |error: msprobe_dump::read::ReadError| Fault::unreadable(error.to_string());
        let mut members = Members::open_at(self.path, "node", self.offset).map_err(unreadable)?;
        loop {
            let found = members
                .next_pulled(|start, pull| {
                    let text = value_text(pull)?;
                    Ok((start.inner, start.key.clone().into_owned(), text.to_vec()))
                })
                .map_err(unreadable)?;
            let Some(found) = found else { return Ok(()) };
            let damaged = |what: &str| Fault::unreadable(format!("{}: {what}", self.path.display()));
            let (inner, key, text) = found.result.map_err(|(what, _)| damaged(what))?;
            let value = Json::parse(&text).map_err(|(what, _)| damaged(what))?;
            each(inner, &key, &value)?;
            self.done.store(self.before + found.end / 2, Ordering::Relaxed);
        }
    }

    fn add(&self, connection: &Connection) -> Result<(), Fault> {
        let mut tree = Tree::default();
        let mut data_dir = None;
        // Of nodes that have something in them.
        let mut names: HashMap<u32, String> = HashMap::new();
        self.each(|inner, key, value| {
            if !inner {
                if key == "dump_data_dir" {
                    data_dir = value.as_str().map(str::to_owned);
                }
                return Ok(());
            }
            if tree.children.len() >= MOST_NODES {
                return Err(Fault::unreadable("the file has more nodes than can be shown"));
            }
            let inside = value.get("subnodes").and_then(Json::as_list).unwrap_or_default();
            let children: Vec<u64> =
                inside.iter().filter_map(Json::as_str).map(|name| xxh3_64(name.as_bytes())).collect();
            let names_nobody = children.is_empty();
            let hash = xxh3_64(key.as_bytes());
            match tree.places.get(&hash) {
                // Of a name that comes again the last one counts, in the place of the first.
                Some(&at) => tree.children[at as usize] = children,
                None => {
                    tree.places.insert(hash, tree.children.len() as u32);
                    tree.children.push(children);
                }
            }
            if !names_nobody || key == ROOT {
                names.extend(tree.places.get(&hash).map(|&at| (at, key.to_owned())));
            }
            Ok(())
        })?;
        let Some(&root) = tree.places.get(&xxh3_64(ROOT.as_bytes())) else {
            return Err(Fault::unreadable(format!("{} has no root", self.path.display())));
        };
        let (order, parent, lost) = tree.order(root);
        let lost: HashSet<u32> = lost.into_iter().collect();
        let graph_id = format!("{}_{}_{}", self.side.source(), self.step, self.rank);
        let mut stacks: HashMap<u64, usize> = HashMap::new();
        let mut insert = connection.prepare(INSERT_NODE)?;
        let mut insert_stack = connection.prepare("INSERT OR REPLACE INTO tb_stack VALUES (?1, ?2)")?;
        let mut insert_orphan = connection.prepare(
            "INSERT OR REPLACE INTO msprobe_verdicts VALUES (?1, NULL, NULL, NULL, NULL, NULL, NULL, ?2)",
        )?;
        self.each(|inner, key, node| {
            let Some(&at) = tree.places.get(&xxh3_64(key.as_bytes())).filter(|_| inner) else {
                return Ok(());
            };
            let json = |member: &str, nothing: &str| match node.get(member) {
                Some(value) => one_line(value),
                None => nothing.to_owned(),
            };
            let stack = json("stack_info", "[]");
            let next = stacks.len();
            let number = match stacks.get(&xxh3_64(stack.as_bytes())) {
                Some(&number) => number,
                None => {
                    insert_stack.execute(params![format!("{graph_id}_{next}"), stack])?;
                    stacks.insert(xxh3_64(stack.as_bytes()), next);
                    next
                }
            };
            let data = node.get("data");
            let index = match data.and_then(|data| data.get("precision_index")) {
                Some(Json::Int(number)) => Some(*number as f64),
                Some(Json::Float(number)) if !number.is_nan() => Some(*number),
                _ => None,
            };
            let whole = |member: &str| match node.get(member) {
                Some(Json::Int(number)) => i64::try_from(*number).ok(),
                _ => None,
            };
            let id = format!("{graph_id}_{key}");
            let up = parent.get(at as usize).filter(|parent| **parent != NONE);
            let up = up.and_then(|parent| names.get(parent)).map_or("", String::as_str);
            insert.execute(params![
                id,
                graph_id,
                order.get(at as usize).copied().unwrap_or(0),
                key,
                whole("node_type").unwrap_or(0).to_string(),
                up,
                match node.get("subnodes").and_then(Json::as_list) {
                    Some([]) | None => String::new(),
                    Some(_) => json("subnodes", ""),
                },
                index,
                data.and_then(|data| data.get("overflow_level")).and_then(Json::as_str),
                whole("micro_step_id").unwrap_or(0),
                json("matched_node_link", "[]"),
                format!("{graph_id}_{number}"),
                "",
                json("matched_distributed", "{}"),
                json("input_data", "{}"),
                json("output_data", "{}"),
                self.side.source(),
                data_dir,
                self.step,
                self.rank,
                is_distributed(key),
            ])?;
            let told = node.get("suggestions").and_then(|told| told.get("orphan")).and_then(Json::as_str);
            if let Some(orphan) = told.or_else(|| lost.contains(&at).then_some(LOST)) {
                insert_orphan.execute(params![id, orphan])?;
            }
            Ok(())
        })
    }
}

fn value_text<'t>(pull: &mut Pull<'t>) -> Result<&'t [u8], PullError> {
    let begin = pull.position();
    pull.skip()?;
    Ok(pull.since(begin))
}
