//! The communication calls of all ranks, each with the anomalies that came since the one before.

use std::ops::Range;

use msprobe_dump::hash::FastMap;
use msprobe_dump::names::segments;

use super::peers::Peers;
use super::{is_anomaly, is_ignored};
use crate::communication::{Communication, RankArgument};
use crate::rank::RankDump;
use crate::record::Record;

/// Where a rank stands in a communication call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Direction {
    /// It gives.
    Source,
    /// It takes.
    Destination,
    /// All ranks do the same.
    Link,
}

impl Direction {
    fn opposite(self) -> Direction {
        match self {
            Direction::Source => Direction::Destination,
            Direction::Destination => Direction::Source,
            Direction::Link => Direction::Link,
        }
    }
}

/// A function and a direction: calls that may be partners of the same calls.
pub(super) type Channel = (u32, Direction);

/// A communication call.
#[derive(Debug)]
pub(super) struct Node {
    /// Position of its rank.
    pub rank: u32,
    /// Index of its record.
    pub record: u32,
    /// What it is.
    pub channel: Channel,
    /// What its partners are.
    pub partner: Channel,
    /// Whether its function has a root or a peer.
    pub has_root: bool,
    /// Set of the ranks it names.
    pub peers: u32,
    /// Its place in the order of calls, that of its partner once there is one.
    pub layer: u32,
    /// Records since the call before.
    pub sub_layer: u32,
    /// Anomalies since the call before, in [`Graph::anomalies`].
    pub anomalies: Range<u32>,
    /// A tensor among its arguments or results is not finite.
    pub is_bad: bool,
    /// A tensor among its arguments is not finite.
    pub has_bad_input: bool,
    /// It is an anomaly itself.
    pub is_anomaly: bool,
    /// It has a partner.
    pub is_linked: bool,
    /// Its name has fewer than four parts.
    pub has_short_name: bool,
    /// It has a root, to be found by position, and a list among its arguments.
    pub has_list: bool,
}

impl Node {
    /// Whether it has anything to do with what is not finite.
    pub(super) fn matters(&self) -> bool {
        self.is_bad || !self.anomalies.is_empty()
    }
}

/// An anomaly between two communication calls.
#[derive(Debug, Clone, Copy)]
pub(super) struct Between {
    /// Index of its record.
    pub record: u32,
    /// Records since the call before.
    pub sub_layer: u32,
}

/// The communication calls of all ranks.
pub(super) struct Graph<'a> {
    /// All ranks, ascending.
    pub ranks: Vec<&'a RankDump>,
    /// All calls, those of one rank after those of the one before.
    pub nodes: Vec<Node>,
    /// Where the calls of each rank are.
    pub of_rank: Vec<Range<usize>>,
    /// Anomalies between calls.
    pub anomalies: Vec<Between>,
    /// The first anomaly after the last call of each rank: its position and record.
    pub after: Vec<(u32, u32)>,
    /// Ranks that calls name.
    pub peers: Peers,
    /// For each call the first of those that hold together with it, found by [`Graph::connect`].
    pub leaders: Vec<u32>,
}

impl<'a> Graph<'a> {
    /// The calls of these ranks, not yet connected. `order` are the ranks, ascending.
    pub(super) fn new(ranks: &'a [RankDump], order: &[usize]) -> Graph<'a> {
        let ranks: Vec<&RankDump> = order.iter().map(|&index| &ranks[index]).collect();
        let mut graph = Graph {
            peers: Peers::new(ranks.iter().map(|rank| rank.dir.rank)),
            nodes: Vec::new(),
            of_rank: Vec::with_capacity(ranks.len()),
            anomalies: Vec::new(),
            after: Vec::new(),
            leaders: Vec::new(),
            ranks,
        };
        let mut functions = Functions::default();
        for position in 0..graph.ranks.len() {
            let start = graph.nodes.len();
            graph.add_rank(position, &mut functions);
            graph.of_rank.push(start..graph.nodes.len());
        }
        graph
    }

    /// The record of a call.
    pub(super) fn record_of(&self, node: usize) -> &'a Record {
        let node = &self.nodes[node];
        &self.ranks[node.rank as usize].records[node.record as usize]
    }

    /// The rank of a call.
    pub(super) fn rank_of(&self, node: usize) -> u32 {
        self.ranks[self.nodes[node].rank as usize].dir.rank
    }

    fn add_rank(&mut self, position: usize, functions: &mut Functions<'a>) {
        let dump = self.ranks[position];
        let first = dump.records.iter().position(|record| record.communication.is_some());
        let (mut layer, mut sub_layer) = (0, 0);
        let mut since = self.anomalies.len();
        for (index, record) in dump.records.iter().enumerate().skip(first.unwrap_or(dump.records.len())) {
            if let Some(call) = record.communication.as_deref() {
                let anomalies = since as u32..self.anomalies.len() as u32;
                let place = CallPlace { rank: position as u32, record: index as u32, layer, sub_layer };
                let node = self.node(record, call, place, anomalies, functions);
                self.nodes.push(node);
                since = self.anomalies.len();
                (layer, sub_layer) = (layer + 1, 0);
            } else if !is_ignored(&record.name) {
                if is_anomaly(record) {
                    self.anomalies.push(Between { record: index as u32, sub_layer });
                }
                sub_layer += 1;
            }
        }
        self.after.extend(self.anomalies.get(since).map(|between| (position as u32, between.record)));
    }

    fn node(
        &mut self,
        record: &'a Record,
        call: &Communication,
        place: CallPlace,
        anomalies: Range<u32>,
        functions: &mut Functions<'a>,
    ) -> Node {
        let function = function_of(&record.name);
        let direction = direction(function, call, i64::from(self.ranks[place.rank as usize].dir.rank));
        let plain = record.plain;
        let has_bad_input = plain.input_args || plain.input_kwargs;
        Node {
            rank: place.rank,
            record: place.record,
            channel: (functions.number(function), direction.0),
            partner: (functions.number(partner(function)), direction.0.opposite()),
            has_root: root(function).is_some(),
            peers: self.peers.of(call),
            layer: place.layer,
            sub_layer: place.sub_layer,
            anomalies,
            is_bad: has_bad_input || plain.output,
            has_bad_input,
            is_anomaly: is_anomaly(record),
            is_linked: false,
            has_short_name: is_short(&record.name),
            has_list: call.has_list_argument && direction.1 && root(function).is_some(),
        }
    }
}

/// The function of a call, where the reference looks for it: in the second segment.
fn function_of(record: &str) -> &str {
    segments(record).nth(1).unwrap_or_default()
}

/// Whether a name has fewer segments than those of calls, which the reference stumbles over.
fn is_short(record: &str) -> bool {
    segments(record).count() < 4
}

/// Where a call stands.
#[derive(Clone, Copy)]
struct CallPlace {
    rank: u32,
    record: u32,
    layer: u32,
    sub_layer: u32,
}

/// Numbers of function names.
#[derive(Default)]
struct Functions<'a>(FastMap<&'a str, u32>);

impl<'a> Functions<'a> {
    fn number(&mut self, name: &'a str) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(name).or_insert(next)
    }
}

/// What the other side calls.
fn partner(function: &str) -> &str {
    match function {
        "send" => "recv",
        "recv" => "send",
        "isend" => "irecv",
        "irecv" => "isend",
        "send_object_list" => "recv_object_list",
        "recv_object_list" => "send_object_list",
        _ => function,
    }
}

/// Where the rank stands that such a call names.
fn root(function: &str) -> Option<Direction> {
    match function {
        "send" | "isend" | "gather" | "send_object_list" => Some(Direction::Destination),
        "recv" | "irecv" | "broadcast" | "scatter" | "recv_object_list" => Some(Direction::Source),
        _ => None,
    }
}

/// Where a rank stands in a call, and whether the arguments by position were asked.
pub(super) fn direction(function: &str, call: &Communication, rank: i64) -> (Direction, bool) {
    let facing = |named: Direction, value: i64| if value == rank { named } else { named.opposite() };
    let sources = [call.src, call.src_group].map(|argument| (Direction::Source, argument));
    let destinations = [call.dst, call.dst_group].map(|argument| (Direction::Destination, argument));
    for (named, argument) in sources.into_iter().chain(destinations) {
        if let RankArgument::Known(value) = argument {
            return (facing(named, value), false);
        }
    }
    match (root(function), call.ints.first()) {
        (Some(named), Some(&value)) => (facing(named, value), true),
        _ => (Direction::Link, true),
    }
}
