//! Finds the partners of each communication call on the other ranks.
//!
//! A call is paired, on each later rank that it names, with the first call there that fits, names this rank, and was not
//! paired with this rank before. Calls that fit are kept in one queue per rank, function and direction. Which calls of a
//! queue name the rank does not change while that rank is done, so a place in the queue is enough, and each queue is
//! gone through once per rank.
//!
//! Collective calls of many ranks are paired each with each. So what is touched per pair is kept apart and small.

use msprobe_dump::hash::FastMap;

use super::nodes::{Channel, Graph};
use super::peers::Peers;

/// Calls of one rank, function and direction, in order.
#[derive(Default)]
struct Queue {
    calls: Vec<Call>,
    /// The first that was not yet offered to `rank`.
    next: usize,
    /// The rank that is done now.
    rank: u32,
}

struct Call {
    node: u32,
    peers: u32,
    /// A collective call that names no ranks is of all ranks.
    of_all: bool,
}

impl Queue {
    /// The next call that names a rank.
    fn next_for(&mut self, rank: u32, peers: &Peers) -> Option<usize> {
        if self.rank != rank {
            (self.rank, self.next) = (rank, 0);
        }
        let rest = self.calls.get(self.next..)?;
        let found = rest.iter().position(|call| call.of_all || peers.contains(call.peers, rank));
        self.next += found.map_or(rest.len(), |at| at + 1);
        found.map(|at| rest[at].node as usize)
    }
}

/// The queues of all ranks for one function and direction.
#[derive(Default)]
struct Lane {
    /// Position of the first rank that has a queue.
    first: usize,
    /// From that rank on: which queue, if any.
    queues: Vec<Option<u32>>,
}

/// All queues.
struct Queues {
    lanes: FastMap<Channel, Lane>,
    queues: Vec<Queue>,
}

impl Queues {
    fn of(graph: &Graph<'_>) -> Queues {
        let mut all = Queues { lanes: FastMap::default(), queues: Vec::new() };
        for (index, node) in graph.nodes.iter().enumerate() {
            let rank = node.rank as usize;
            // Nodes come in the order of ranks, so a lane only grows at its end.
            let lane =
                all.lanes.entry(node.channel).or_insert_with(|| Lane { first: rank, queues: Vec::new() });
            let place = rank - lane.first;
            if place >= lane.queues.len() {
                lane.queues.resize(place + 1, None);
            }
            let queue = *lane.queues[place].get_or_insert_with(|| {
                all.queues.push(Queue::default());
                all.queues.len() as u32 - 1
            });
            let of_all = !node.has_root && graph.peers.is_empty(node.peers);
            all.queues[queue as usize].calls.push(Call { node: index as u32, peers: node.peers, of_all });
        }
        all
    }
}

impl Graph<'_> {
    /// Connects all calls. A partner takes over the layer; only calls that matter hold together later.
    pub(super) fn connect(&mut self) {
        let mut queues = Queues::of(self);
        let all: Vec<u32> = (0..self.ranks.len() as u32).collect();
        let mut layers: Vec<u32> = self.nodes.iter().map(|node| node.layer).collect();
        let matters: Vec<bool> = self.nodes.iter().map(super::nodes::Node::matters).collect();
        let mut is_linked = vec![false; self.nodes.len()];
        let mut leaders: Vec<u32> = (0..self.nodes.len() as u32).collect();
        for (index, node) in self.nodes.iter().enumerate() {
            let Some(lane) = queues.lanes.get(&node.partner) else { continue };
            let peers = self.peers.positions(node.peers).unwrap_or(&all);
            let later = peers.partition_point(|peer| *peer <= node.rank);
            let (layer, mut leader) = (layers[index], find_leader(&mut leaders, index as u32));
            for &peer in &peers[later..] {
                let place = (peer as usize).checked_sub(lane.first);
                let queue = place.and_then(|place| *lane.queues.get(place)?);
                let partner =
                    queue.and_then(|queue| queues.queues[queue as usize].next_for(node.rank, &self.peers));
                let Some(partner) = partner else { continue };
                layers[partner] = layer;
                is_linked[partner] = true;
                is_linked[index] = true;
                if matters[partner] && matters[index] {
                    leader = unite(&mut leaders, leader, partner as u32);
                }
            }
        }
        for (index, node) in self.nodes.iter_mut().enumerate() {
            (node.layer, node.is_linked) = (layers[index], is_linked[index]);
        }
        self.leaders = (0..leaders.len() as u32).map(|node| find_leader(&mut leaders, node)).collect();
    }
}

/// Makes those who follow `leader` and those who hold together with `node` one; returns who leads them.
fn unite(leaders: &mut [u32], leader: u32, node: u32) -> u32 {
    let other = find_leader(leaders, node);
    let first = leader.min(other);
    leaders[leader.max(other) as usize] = first;
    first
}

/// One call for all that hold together with this one; the way to it becomes shorter.
fn find_leader(leaders: &mut [u32], mut node: u32) -> u32 {
    loop {
        let above = leaders[node as usize];
        let next = leaders[above as usize];
        if above == next {
            return above;
        }
        leaders[node as usize] = next;
        node = next;
    }
}
