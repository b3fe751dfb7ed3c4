//! Calls that ranks make together, and the order they impose on what happens on different ranks.

use std::collections::HashMap;

use msprobe_compare::side::{Leaf, Scalar, ValueKind};

use super::OperationAt;
use super::operations::{Operation, Rank};

/// Calls with one rank that has a part of its own, and that is the first whole number among their arguments.
const ROOTED: [&str; 6] =
    ["broadcast", "scatter", "gather", "reduce", "broadcast_object_list", "scatter_object_list"];

/// What calls of different ranks have in common if they belong together. The n-th call of a rank with a meeting goes
/// with the n-th call of every other rank that has the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Meeting<'a> {
    /// One rank sends, one receives.
    Message { family: &'a str, from: i64, to: i64 },
    /// Several ranks take part.
    Collective { api: &'a str, root: Option<i64>, group: Option<Vec<i64>> },
}

/// A communication of one rank.
struct Node {
    place: OperationAt,
    /// The calls it goes with, itself included.
    party: usize,
    /// The first difference since the communication before it: how many operations came before, and which it is.
    before: Option<(usize, OperationAt)>,
    is_same: bool,
}

/// The communications of all ranks.
pub(super) struct Graph {
    /// By rank, in order.
    nodes: Vec<Vec<Node>>,
    /// Nodes in each party.
    sizes: Vec<usize>,
}

impl Graph {
    pub(super) fn new(ranks: &[Rank<'_>]) -> Graph {
        let mut parties = Parties::default();
        let mut nodes: Vec<Vec<Node>> = Vec::with_capacity(ranks.len());
        for (index, rank) in ranks.iter().enumerate() {
            let mut of_rank: Vec<Node> = Vec::new();
            let mut seen = HashMap::new();
            let (mut before, mut passed) = (None, 0);
            for (place, operation) in rank.operations.iter().enumerate().skip(rank.first_communication()) {
                let place = OperationAt { rank: index, operation: place };
                if operation.is_communication() {
                    let party = parties.join(meetings(rank, operation), &mut seen);
                    of_rank.push(Node { place, party, before, is_same: operation.is_same });
                    (before, passed) = (None, 0);
                } else if !operation.is_ignored() {
                    before = before.or_else(|| (!operation.is_same).then_some((passed, place)));
                    passed += 1;
                }
            }
            nodes.push(of_rank);
        }
        let mut sizes = vec![0; parties.merged_into.len()];
        for node in nodes.iter_mut().flatten() {
            node.party = parties.find(node.party);
            sizes[node.party] += 1;
        }
        Graph { nodes, sizes }
    }

    /// Goes from layer to layer: a party is due when all its nodes are next on their ranks. In the first layer with
    /// differences, those that came soonest after the layer before; a communication comes after what precedes it.
    pub(super) fn first_differences(&self) -> Vec<OperationAt> {
        let mut next = vec![0; self.nodes.len()];
        let mut remaining = self.sizes.clone();
        let mut waiting = vec![0; self.sizes.len()];
        loop {
            let fronts: Vec<&Node> =
                self.nodes.iter().zip(&next).filter_map(|(nodes, &next)| nodes.get(next)).collect();
            for node in &fronts {
                waiting[node.party] += 1;
            }
            let is_due = |node: &&Node| waiting[node.party] == remaining[node.party];
            let mut due: Vec<&Node> = fronts.iter().copied().filter(is_due).collect();
            for node in &fronts {
                waiting[node.party] = 0;
            }
            if due.is_empty() {
                // Calls that do not line up wait for one another for ever: the one that is least far goes on.
                due.extend(fronts.iter().copied().min_by_key(|node| next[node.place.rank]));
            }
            let found = soonest(&due);
            if !found.is_empty() || due.is_empty() {
                return found;
            }
            for node in due {
                next[node.place.rank] += 1;
                remaining[node.party] -= 1;
            }
        }
    }
}

/// The differences of a layer that have the fewest operations before them.
fn soonest(layer: &[&Node]) -> Vec<OperationAt> {
    let of_node = |node: &&Node| match node.before {
        Some(before) => Some(before),
        None => (!node.is_same).then_some((usize::MAX, node.place)),
    };
    let found: Vec<(usize, OperationAt)> = layer.iter().filter_map(of_node).collect();
    let Some(first) = found.iter().map(|(order, _)| *order).min() else { return Vec::new() };
    found.into_iter().filter(|(order, _)| *order == first).map(|(_, place)| place).collect()
}

/// Nodes that belong together, found by what they have in common.
#[derive(Default)]
struct Parties<'a> {
    by_meeting: HashMap<(Meeting<'a>, usize), usize>,
    /// The party each became part of; itself if none.
    merged_into: Vec<usize>,
}

impl<'a> Parties<'a> {
    /// The party of a node of a rank that has had the meetings in `seen` so often.
    fn join(&mut self, meetings: Vec<Meeting<'a>>, seen: &mut HashMap<Meeting<'a>, usize>) -> usize {
        let own = self.merged_into.len();
        self.merged_into.push(own);
        for meeting in meetings {
            let count = seen.entry(meeting.clone()).or_default();
            let party = *self.by_meeting.entry((meeting, *count)).or_insert(own);
            *count += 1;
            let (party, own) = (self.find(party), self.find(own));
            // The older one stays, so that parties are numbered as they come.
            self.merged_into[party.max(own)] = party.min(own);
        }
        self.find(own)
    }

    fn find(&mut self, mut party: usize) -> usize {
        while self.merged_into[party] != party {
            self.merged_into[party] = self.merged_into[self.merged_into[party]];
            party = self.merged_into[party];
        }
        party
    }
}

/// The calls of other ranks a call goes with. A call that does not say with whom goes alone.
fn meetings<'a>(rank: &Rank<'a>, operation: &'a Operation<'a>) -> Vec<Meeting<'a>> {
    let arguments = Arguments::of(rank, operation);
    let own = i64::from(rank.number);
    let message = |family, sends: bool, peer: i64| {
        let (from, to) = if sends { (own, peer) } else { (peer, own) };
        Meeting::Message { family, from, to }
    };
    let one = |family, sends| arguments.peer().map(|peer| message(family, sends, peer)).into_iter().collect();
    let api = operation.api();
    match api {
        "send" => one("send", true),
        "recv" => one("send", false),
        "isend" => one("isend", true),
        "irecv" => one("isend", false),
        "send_object_list" => one("send_object_list", true),
        "recv_object_list" => one("send_object_list", false),
        "batch_isend_irecv" => {
            let messages = arguments.batch.iter();
            messages.map(|&(sends, peer)| message("isend", sends, peer)).collect()
        }
        _ => {
            let root = if ROOTED.contains(&api) { arguments.peer() } else { arguments.named };
            vec![Meeting::Collective { api, root, group: arguments.group }]
        }
    }
}

/// What the arguments of a call say about the ranks that take part.
#[derive(Default)]
struct Arguments {
    /// Ranks of the group.
    group: Option<Vec<i64>>,
    /// The value of `src` or `dst`.
    named: Option<i64>,
    /// The first whole number among arguments without a name.
    positional: Option<i64>,
    /// Peers of a batch, and whether they are sent to.
    batch: Vec<(bool, i64)>,
}

impl Arguments {
    fn of(rank: &Rank<'_>, operation: &Operation<'_>) -> Arguments {
        let mut arguments = Arguments::default();
        let mut in_group = None;
        for pair in rank.table.pairs.get(operation.rows.clone()).unwrap_or_default() {
            let (leaf, _) = rank.table.leaves(pair);
            let Some(path) = leaf.place.strip_prefix("input.") else { continue };
            if let Some(p2p) = &leaf.p2p {
                arguments.batch.extend(p2p.peer.map(|peer| (p2p.operation.contains("send"), peer)));
            }
            if leaf.kind == ValueKind::Group {
                arguments.group = arguments.group.or_else(|| ranks_in_text(leaf));
            }
            let Scalar::Int(value) = leaf.statistics[0] else { continue };
            if leaf.is_tensor() {
                continue;
            }
            match path {
                "src" | "dst" => arguments.named = arguments.named.or(Some(value)),
                "group_src" | "group_dst" | "src_group" | "dst_group" => in_group = Some(value),
                _ if path.bytes().all(|digit| digit.is_ascii_digit()) => {
                    arguments.positional = arguments.positional.or(Some(value));
                }
                _ => {}
            }
        }
        if let Some(place) = in_group.filter(|_| arguments.named.is_none()) {
            let place = usize::try_from(place).ok();
            let ranks = arguments.group.as_ref();
            arguments.named = place.and_then(|place| ranks.and_then(|ranks| ranks.get(place).copied()));
        }
        arguments
    }

    /// The rank with a part of its own.
    fn peer(&self) -> Option<i64> {
        self.named.or(self.positional)
    }
}

/// The ranks of a group, which are kept as the text of a list.
fn ranks_in_text(leaf: &Leaf) -> Option<Vec<i64>> {
    let Scalar::Text(text) = &leaf.statistics[0] else { return None };
    let inside = text.strip_prefix('[')?.strip_suffix(']')?;
    inside.split(',').map(|rank| rank.trim().parse().ok()).collect()
}
