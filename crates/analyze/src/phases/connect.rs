//! Finds the partners of each communication call on the other ranks.
//!
//! A call is paired, on each later rank that it names, with the first call there that fits, names this rank, and was not
//! paired with this rank before. Calls that fit are kept in one queue per rank, function and direction. Which calls of a
//! queue name the rank does not change while that rank is done, so a place in the queue is enough, and each queue is
//! gone through once per rank.

use msprobe_dump::hash::FastMap;

use super::nodes::{Channel, Graph};

/// Calls of one rank, function and direction, in order.
#[derive(Default)]
struct Queue {
    nodes: Vec<u32>,
    /// The first that was not yet offered to `rank`.
    next: usize,
    /// The rank that is done now.
    rank: u32,
}

type Queues = FastMap<Channel, Queue>;

impl Graph<'_> {
    /// Connects all calls. A partner takes over the layer; only calls that matter hold together later.
    pub(super) fn connect(&mut self) {
        self.leaders = (0..self.nodes.len() as u32).collect();
        let mut queues: Vec<Queues> = self.of_rank.iter().map(|_| Queues::default()).collect();
        for (index, node) in self.nodes.iter().enumerate() {
            queues[node.rank as usize].entry(node.channel).or_default().nodes.push(index as u32);
        }
        let all: Vec<u32> = (0..self.ranks.len() as u32).collect();
        for index in 0..self.nodes.len() {
            let (rank, set) = (self.nodes[index].rank, self.nodes[index].peers);
            let peers = self.peers.positions(set).unwrap_or(&all);
            let later = peers.partition_point(|peer| *peer <= rank);
            for at in later..peers.len() {
                let peers = self.peers.positions(set).unwrap_or(&all);
                let found = self.next_partner(index, &mut queues[peers[at] as usize]);
                if let Some(partner) = found {
                    self.pair(index, partner);
                }
            }
        }
    }

    /// The next call of a rank that fits this one.
    fn next_partner(&self, index: usize, queues: &mut Queues) -> Option<usize> {
        let node = &self.nodes[index];
        let queue = queues.get_mut(&node.partner)?;
        if queue.rank != node.rank {
            (queue.rank, queue.next) = (node.rank, 0);
        }
        while let Some(&candidate) = queue.nodes.get(queue.next) {
            queue.next += 1;
            let other = &self.nodes[candidate as usize];
            // Collective calls without a group are of all ranks.
            let of_all = self.peers.is_empty(other.peers) && !other.has_root;
            if of_all || self.peers.contains(other.peers, node.rank) {
                return Some(candidate as usize);
            }
        }
        None
    }

    fn pair(&mut self, index: usize, partner: usize) {
        self.nodes[partner].layer = self.nodes[index].layer;
        self.nodes[index].is_linked = true;
        self.nodes[partner].is_linked = true;
        if self.nodes[index].matters() && self.nodes[partner].matters() {
            let (left, right) = (self.leader(index as u32), self.leader(partner as u32));
            self.leaders[left.max(right) as usize] = left.min(right);
        }
    }

    /// One call for all that are connected with this one.
    pub(super) fn leader(&mut self, mut node: u32) -> u32 {
        while self.leaders[node as usize] != node {
            let above = self.leaders[self.leaders[node as usize] as usize];
            self.leaders[node as usize] = above;
            node = above;
        }
        node
    }
}
