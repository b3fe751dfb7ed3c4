//! Goes through the connected communication calls, layer by layer on all ranks at once, up to the first anomaly.

use msprobe_dump::hash::FastMap;

use super::nodes::{Direction, Graph, Node};

/// What anomalies are compared by: layer, place in the layer, component of the round, whether it is the communication
/// itself, rank, record. The reference has only the first two; the others settle what it leaves to chance.
type Order = (u32, u32, usize, bool, u32, u32);

impl Graph<'_> {
    /// The first anomaly along the communication calls: position of its rank, and its record.
    pub(super) fn first_anomaly(&self) -> Option<(u32, u32)> {
        let components = self.components();
        let mut queues: Vec<_> =
            (0..self.ranks.len()).map(|rank| self.leaders_by_layer(rank).into_iter()).collect();
        // The round in which each component was looked at, counted from one.
        let mut looked_at: FastMap<u32, u32> = FastMap::default();
        for round in 1.. {
            let mut taken: Vec<u32> = Vec::new();
            for queue in &mut queues {
                let next = queue.find(|leader| looked_at.get(leader).is_none_or(|before| *before == round));
                taken.extend(next.filter(|leader| looked_at.insert(*leader, round).is_none()));
            }
            let found = taken
                .iter()
                .enumerate()
                .filter_map(|(place, leader)| self.first_of(components.get(leader)?, place))
                .min();
            match found {
                Some((.., rank, record)) => return Some((rank, record)),
                None if taken.is_empty() => break,
                None => {}
            }
        }
        None
    }

    /// The calls that hold together, by their leader. Calls that do not matter are in none.
    fn components(&self) -> FastMap<u32, Vec<u32>> {
        let mut components: FastMap<u32, Vec<u32>> = FastMap::default();
        for index in 0..self.nodes.len() as u32 {
            if self.nodes[index as usize].matters() {
                components.entry(self.leaders[index as usize]).or_default().push(index);
            }
        }
        components
    }

    /// The leaders of a rank's calls that matter, the lowest layer first.
    fn leaders_by_layer(&self, rank: usize) -> Vec<u32> {
        let mut calls: Vec<usize> =
            self.of_rank[rank].clone().filter(|index| self.nodes[*index].matters()).collect();
        calls.sort_by_key(|index| self.nodes[*index].layer);
        calls.into_iter().map(|index| self.leaders[index]).collect()
    }

    /// The first anomaly of a component.
    fn first_of(&self, component: &[u32], place: usize) -> Option<Order> {
        component.iter().filter_map(|index| self.first_at(&self.nodes[*index as usize], place)).min()
    }

    /// The first anomaly of one call: those before it, if it passes on what is not finite; and the call itself.
    fn first_at(&self, node: &Node, place: usize) -> Option<Order> {
        let passes_on = node.has_bad_input && node.channel.1 != Direction::Destination;
        let first = self.anomalies.get(node.anomalies.start as usize);
        let before = first
            .filter(|_| passes_on && !node.anomalies.is_empty())
            .map(|anomaly| (node.layer, anomaly.sub_layer, place, false, node.rank, anomaly.record));
        let itself = (node.layer, node.sub_layer, place, true, node.rank, node.record);
        before.into_iter().chain(node.is_anomaly.then_some(itself)).min()
    }
}
