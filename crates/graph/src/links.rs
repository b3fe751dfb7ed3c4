//! Communication calls of different ranks that belong together: the k-th send to a rank with its k-th receive, the k-th
//! collective of a group on each of its ranks.

use std::sync::Arc;

use msprobe_compare::side::{Leaf, ValueShape};
use msprobe_dump::hash::FastMap;
use msprobe_dump::read::Json;
use msprobe_dump::write::JsonText;

use crate::graph::{Graph, NodeReader};
use crate::hierarchy::NodeIndex;
use crate::names::{Generation, is_distributed};
use crate::values::{BATCH_P2P, NodeValue};

/// What a call does to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// It gives.
    Send,
    /// It gets.
    Receive,
    /// Both.
    Both,
}

impl Flow {
    fn as_str(self) -> &'static str {
        match self {
            Flow::Send => "send",
            Flow::Receive => "receive",
            Flow::Both => "send_receive",
        }
    }

    fn reversed(self) -> Flow {
        match self {
            Flow::Send => Flow::Receive,
            Flow::Receive => Flow::Send,
            Flow::Both => Flow::Both,
        }
    }
}

/// Calls between two ranks: the call at the other end, the argument that names it, and what is done.
const POINT_TO_POINT: [(&str, &str, &str, Flow); 4] = [
    ("send", "recv", "dst", Flow::Send),
    ("isend", "irecv", "dst", Flow::Send),
    ("recv", "send", "src", Flow::Receive),
    ("irecv", "isend", "src", Flow::Receive),
];
/// Collectives in which one rank gives or gets all: where it is named.
const ROOTED: [(&str, &str, Flow); 4] = [
    ("broadcast", "1", Flow::Send),
    ("scatter", "src", Flow::Send),
    ("gather", "dst", Flow::Receive),
    ("reduce", "1", Flow::Receive),
];

/// What one call, or one of a batch, can be found by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    /// The n-th call of this name with this rank.
    Pair(Box<str>, i64, u32),
    /// The n-th of this name with this rank in this group, in batches.
    Batched(Box<str>, i64, Box<str>, u32),
    /// The n-th collective of this name in this group.
    Group(Box<str>, Box<str>, u32),
}

/// How a call is linked.
#[derive(Debug, Clone, PartialEq)]
enum Call {
    Pair { partner: &'static str, flow: Flow },
    Batch,
    Rooted { root: i64, flow: Flow, ranks: Vec<i64> },
    All { ranks: Vec<i64> },
}

/// A communication call of a rank.
#[derive(Debug, Clone)]
pub struct Communication {
    /// Its node.
    pub node: NodeIndex,
    /// Its name.
    pub name: Arc<str>,
    /// What peers are told about it: its index, or how alarming it is.
    pub shown: Box<str>,
    call: Call,
    keys: Vec<Key>,
    /// Its first result, in the generation that compares it.
    result: Option<FirstResult>,
}

#[derive(Debug, Clone, PartialEq)]
struct FirstResult {
    dtype: Arc<str>,
    shape: ValueShape,
    statistics: [Option<u64>; 4],
}

impl FirstResult {
    fn of(leaf: &Leaf) -> FirstResult {
        let bits = |at: usize| leaf.statistics[at].number().map(f64::to_bits);
        FirstResult {
            dtype: leaf.dtype.clone(),
            shape: leaf.shape.clone(),
            statistics: std::array::from_fn(bits),
        }
    }
}

/// The communication of one rank, in the order of its nodes. `shown` says what peers are told about a node.
pub fn communication(
    graph: &Graph,
    generation: Generation,
    mut shown: impl FnMut(NodeIndex) -> String,
) -> Vec<Communication> {
    let mut reader = NodeReader::default();
    let mut found = Vec::new();
    let mut counts: FastMap<Key, u32> = FastMap::default();
    for index in 0..graph.hierarchy.nodes.len() as NodeIndex {
        let name = &graph.hierarchy.node(index).name;
        let Some(function) = name.split('.').nth(1).filter(|_| is_distributed(name)) else { continue };
        let parts = if function == BATCH_P2P {
            graph.text(index, &mut reader).and_then(batch_keys).map(|keys| (Call::Batch, keys, None))
        } else {
            let values = graph.values(index, &mut reader);
            single_call(function, &values, generation)
        };
        let Some((call, mut keys, result)) = parts else { continue };
        for key in &mut keys {
            let count = counts.entry(key.clone()).or_default();
            *count += 1;
            match key {
                Key::Pair(_, _, number) | Key::Batched(_, _, _, number) | Key::Group(_, _, number) => {
                    *number = *count;
                }
            }
        }
        let shown = shown(index).into();
        found.push(Communication { node: index, name: name.clone(), shown, call, keys, result });
    }
    found
}

type Parts = (Call, Vec<Key>, Option<FirstResult>);

fn single_call(function: &str, values: &[NodeValue], generation: Generation) -> Option<Parts> {
    let argument = |name: &str| {
        let place = |value: &&NodeValue| value.leaf.place.strip_prefix("input.") == Some(name);
        values.iter().find(place)
    };
    let rank =
        |name: &str| argument(name)?.leaf.statistics[0].whole().and_then(|rank| i64::try_from(rank).ok());
    if let Some((_, partner, peer, flow)) = POINT_TO_POINT.iter().find(|(name, ..)| *name == function) {
        let result =
            values.iter().find(|value| &*value.leaf.place == "output.0").map(|it| FirstResult::of(&it.leaf));
        let key = Key::Pair(function.into(), rank(peer)?, 0);
        let result = result.filter(|_| generation == Generation::First);
        return Some((Call::Pair { partner, flow: *flow }, vec![key], result));
    }
    let group = Json::parse(&argument("group")?.written).ok()?;
    let ranks: Vec<i64> = group
        .get("group_ranks")?
        .as_list()?
        .iter()
        .filter_map(|rank| match rank {
            Json::Int(rank) => i64::try_from(*rank).ok(),
            _ => None,
        })
        .collect();
    let id = group.get("group_id").and_then(Json::as_str).filter(|id| !id.is_empty() && !ranks.is_empty())?;
    let key = Key::Group(id.into(), function.into(), 0);
    let call = match ROOTED.iter().find(|(name, ..)| *name == function) {
        Some((_, at, flow)) => match rank(at) {
            Some(root) => Call::Rooted { root, flow: *flow, ranks },
            // It counts, and is linked from nowhere.
            None => Call::Rooted { root: -1, flow: *flow, ranks: Vec::new() },
        },
        None => Call::All { ranks },
    };
    Some((call, vec![key], None))
}

fn batch_keys(text: &[u8]) -> Option<Vec<Key>> {
    let record = Json::parse(text).ok()?;
    let items = record.get("output")?.as_list()?.first()?.as_list()?;
    let key = |item: &Json<'_>| {
        let peer = match item.get("peer")? {
            Json::Int(peer) => i64::try_from(*peer).ok()?,
            _ => return None,
        };
        let group = item.get("group_id").and_then(Json::as_str).unwrap_or_default();
        Some(Key::Batched(item.get("op")?.as_str()?.into(), peer, group.into(), 0))
    };
    Some(items.iter().filter_map(key).collect())
}

/// The communication of some ranks.
pub type Ranks = Vec<(i64, Vec<Communication>)>;

/// One line of what a node is linked with: what is done, and the ranks at the other end with what they show and their names.
type Link<'r> = (Flow, Vec<(i64, &'r Communication)>);

/// Links the calls of ranks. Gives for each rank, node by node, the JSON of its links; nodes without one are left out.
pub fn link(ranks: &Ranks) -> Vec<(i64, Vec<(NodeIndex, String)>)> {
    let mut finder: FastMap<(i64, &Key), usize> = FastMap::default();
    for (rank, calls) in ranks {
        for (at, call) in calls.iter().enumerate() {
            for key in &call.keys {
                finder.insert((*rank, key), at);
            }
        }
    }
    let by_rank: FastMap<i64, &Vec<Communication>> =
        ranks.iter().map(|(rank, calls)| (*rank, calls)).collect();
    let find = |rank: i64, key: &Key| {
        let at = *finder.get(&(rank, key))?;
        Some((at, by_rank.get(&rank)?.get(at)?))
    };
    let mut links: FastMap<(i64, usize), (bool, Vec<Link<'_>>)> = FastMap::default();
    for (rank, calls) in ranks {
        for (at, call) in calls.iter().enumerate() {
            if links.contains_key(&(*rank, at)) {
                continue;
            }
            let Some(key) = call.keys.first() else { continue };
            match &call.call {
                Call::Pair { partner, flow } => {
                    let Key::Pair(_, peer, number) = key else { continue };
                    let Some((there, other)) = find(*peer, &Key::Pair((*partner).into(), *rank, *number))
                    else {
                        continue;
                    };
                    let differ =
                        matches!((&call.result, &other.result), (Some(own), Some(other)) if own != other);
                    if !differ {
                        links.insert((*rank, at), (false, vec![(*flow, vec![(*peer, other)])]));
                        links.insert((*peer, there), (false, vec![(flow.reversed(), vec![(*rank, call)])]));
                    }
                }
                Call::Batch => {
                    let found: Vec<Link<'_>> =
                        call.keys.iter().filter_map(|key| batched(key, *rank, &find)).collect();
                    if !found.is_empty() {
                        links.insert((*rank, at), (call.keys.len() > 1, found));
                    }
                }
                Call::Rooted { root, flow, ranks: group } => {
                    if root != rank {
                        continue;
                    }
                    let others: Vec<_> = peers(group, *rank, key, &find);
                    for (peer, there, _) in &others {
                        links.insert((*peer, *there), (false, vec![(flow.reversed(), vec![(*rank, call)])]));
                    }
                    if !others.is_empty() {
                        let others = others.into_iter().map(|(peer, _, other)| (peer, other)).collect();
                        links.insert((*rank, at), (false, vec![(*flow, others)]));
                    }
                }
                Call::All { ranks: group } => {
                    let others: Vec<_> = peers(group, *rank, key, &find);
                    if !others.is_empty() {
                        let others = others.into_iter().map(|(peer, _, other)| (peer, other)).collect();
                        links.insert((*rank, at), (false, vec![(Flow::Both, others)]));
                    }
                }
            }
        }
    }
    let of_rank = |(rank, calls): &(i64, Vec<Communication>)| {
        let linked = calls.iter().enumerate().filter_map(|(at, call)| {
            let (is_list, found) = links.get(&(*rank, at))?;
            Some((call.node, json_of(*is_list, found)))
        });
        (*rank, linked.collect())
    };
    ranks.iter().map(of_rank).collect()
}

fn batched<'r>(
    key: &Key,
    rank: i64,
    find: &impl Fn(i64, &Key) -> Option<(usize, &'r Communication)>,
) -> Option<Link<'r>> {
    let Key::Batched(operation, peer, group, number) = key else { return None };
    let (_, partner, _, flow) = POINT_TO_POINT.iter().find(|(name, ..)| **name == **operation)?;
    let (_, other) = find(*peer, &Key::Batched((*partner).into(), rank, group.clone(), *number))?;
    Some((*flow, vec![(*peer, other)]))
}

/// The same collective on the other ranks of its group.
fn peers<'r>(
    group: &[i64],
    rank: i64,
    key: &Key,
    find: &impl Fn(i64, &Key) -> Option<(usize, &'r Communication)>,
) -> Vec<(i64, usize, &'r Communication)> {
    let others = group.iter().filter(|&&peer| peer != rank);
    others.filter_map(|&peer| find(peer, key).map(|(at, other)| (peer, at, other))).collect()
}

fn json_of(is_list: bool, links: &[Link<'_>]) -> String {
    let mut json = JsonText::on_one_line();
    if is_list {
        json.begin_array();
    }
    // One object holds one link: the last of them.
    let shown = if is_list { links } else { &links[links.len() - 1..] };
    for (flow, others) in shown {
        json.begin_object();
        json.key("communications_type");
        json.string(flow.as_str());
        json.key("nodes_info");
        json.begin_object();
        for (rank, other) in others {
            json.key(&rank.to_string());
            json.begin_array();
            json.string(&other.shown);
            json.string(&other.name);
            json.end_array();
        }
        json.end_object();
        json.end_object();
    }
    if is_list {
        json.end_array();
    }
    json.finish()
}
