//! Calls of several ranks that are one communication: the k-th call of a function in a group is one on all its ranks,
//! and the k-th message from one rank to another is received by its k-th receive.
//!
//! Nothing is assumed to be complete: ranks without a dump and calls that never came are told, not waited for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use msprobe_dump::hash::{FastMap, FastSet};

use crate::flow::Flow;
use crate::rank::RankDump;

/// A record of one of the ranks, both as indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct At {
    /// Which rank, by its place in the list.
    pub rank: u32,
    /// Which record.
    pub record: u32,
}

/// One communication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// The calls, in order of ranks; for a message, that of the sender and that of the receiver.
    pub members: Vec<At>,
    /// Ranks of the job that should have been there and are not in the dump.
    pub missing: Vec<i64>,
    /// For a message: the element of a batch on either side.
    items: Option<[Option<u16>; 2]>,
}

impl Exchange {
    /// For a message: the element of a batch it is on this side of it.
    pub fn item_of(&self, at: At) -> Option<u16> {
        let [from, to] = self.items?;
        if self.members.first() == Some(&at) && self.members.len() > 1 { from } else { to }
    }
}

/// All communication of a step.
#[derive(Debug, Default)]
pub struct Links {
    exchanges: Vec<Exchange>,
    /// Exchanges of a record; several for a batch.
    of_record: FastMap<(u32, u32), Vec<u32>>,
    /// Per rank: its calls and how many exchanges came before each at least.
    layers: Vec<Vec<(u32, u32)>>,
    /// Calls that found no partner.
    unpaired: Vec<At>,
    /// Ranks of the job without a dump.
    missing_ranks: Vec<i64>,
}

/// From which rank to which, and with which tag.
type Ends = (i64, i64, i64);

/// Messages from one rank to another: sends and receives, each with the element of its batch.
#[derive(Default)]
struct Channel {
    sends: Vec<(At, Option<u16>)>,
    receives: Vec<(At, Option<u16>)>,
}

impl Links {
    /// Finds which calls belong together.
    pub fn find(ranks: &[RankDump]) -> Links {
        let mut links = Links::default();
        let world = world(ranks);
        let mut calls: FastMap<(Vec<i64>, &str), Vec<Vec<At>>> = FastMap::default();
        let mut channels: FastMap<Ends, Channel> = FastMap::default();
        let mut from_anyone: Vec<(i64, At)> = Vec::new();
        let numbered = numbered_functions(ranks);
        for (index, dump) in ranks.iter().enumerate() {
            let own = i64::from(dump.dir.rank);
            let mut counts: FastMap<(Vec<i64>, &str), usize> = FastMap::default();
            for (record_index, record) in dump.records.iter().enumerate() {
                let Some(call) = record.communication.as_deref() else { continue };
                let at = At { rank: index as u32, record: record_index as u32 };
                let tag = call.tag.known().or(call.ints.get(1).copied()).unwrap_or(0);
                match Flow::of(record.function(), call) {
                    Flow::Send(Some(peer)) => {
                        channels.entry((own, peer, tag)).or_default().sends.push((at, None));
                    }
                    Flow::Receive(Some(peer)) => {
                        channels.entry((peer, own, tag)).or_default().receives.push((at, None));
                    }
                    Flow::Receive(None) => from_anyone.push((own, at)),
                    Flow::Send(None) => links.unpaired.push(at),
                    Flow::Batch => {
                        for (item, number) in call.batch.iter().zip(0_u16..) {
                            let Some(peer) = item.peer else { continue };
                            if item.is_send {
                                channels
                                    .entry((own, peer, item.tag))
                                    .or_default()
                                    .sends
                                    .push((at, Some(number)));
                            } else {
                                channels
                                    .entry((peer, own, item.tag))
                                    .or_default()
                                    .receives
                                    .push((at, Some(number)));
                            }
                        }
                    }
                    Flow::All | Flow::FromRoot(_) | Flow::ToRoot(_) => {
                        let mut members = call.group().map_or_else(Vec::new, |group| group.ranks.clone());
                        if members.is_empty() {
                            members.clone_from(&world);
                        }
                        members.sort_unstable();
                        members.dedup();
                        let key = (members, record.function());
                        let count = counts.entry(key.clone()).or_insert(0);
                        let own_number = numbered.get(record.function()).and_then(|first| {
                            usize::try_from(record.parts().index()?.checked_sub(*first)?).ok()
                        });
                        let number =
                            own_number.filter(|number| *number < dump.records.len() * 2).unwrap_or(*count);
                        *count += 1;
                        let calls = calls.entry(key).or_default();
                        if calls.len() <= number {
                            calls.resize(number + 1, Vec::new());
                        }
                        calls[number].push(at);
                    }
                }
            }
        }
        let known: FastSet<i64> = ranks.iter().map(|dump| i64::from(dump.dir.rank)).collect();
        links.missing_ranks = world.iter().filter(|rank| !known.contains(rank)).copied().collect();
        links.add_collectives(calls, &known, ranks);
        links.add_messages(channels, from_anyone);
        links.unpaired.sort_unstable();
        links.find_layers(ranks);
        links
    }

    fn add_collectives(
        &mut self,
        calls: FastMap<(Vec<i64>, &str), Vec<Vec<At>>>,
        known: &FastSet<i64>,
        ranks: &[RankDump],
    ) {
        let mut calls: Vec<_> = calls.into_iter().collect();
        calls.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        for ((group, _), rounds) in calls {
            let missing: Vec<i64> = group.iter().filter(|rank| !known.contains(rank)).copied().collect();
            for members in rounds {
                let mut missing = missing.clone();
                if members.len() + missing.len() < group.len() {
                    // Ranks whose dump is there but which did not make the call, or whose dump ends before it.
                    let called: FastSet<i64> =
                        members.iter().map(|at| i64::from(ranks[at.rank as usize].dir.rank)).collect();
                    missing = group.iter().filter(|rank| !called.contains(rank)).copied().collect();
                }
                if members.len() == 1 && group.len() > 1 {
                    self.unpaired.extend(&members);
                }
                self.add(Exchange { members, missing, items: None });
            }
        }
    }

    fn add_messages(&mut self, channels: FastMap<Ends, Channel>, from_anyone: Vec<(i64, At)>) {
        let mut channels: Vec<_> = channels.into_iter().collect();
        channels.sort_unstable_by_key(|(ends, _)| *ends);
        // Messages nobody named as expected, by who gets them.
        let mut open: FastMap<i64, Vec<(At, Option<u16>)>> = FastMap::default();
        for ((from, to, _), channel) in channels {
            let pairs = channel.sends.len().min(channel.receives.len());
            for (send, receive) in channel.sends.iter().zip(&channel.receives) {
                let items = Some([send.1, receive.1]);
                self.add(Exchange { members: vec![send.0, receive.0], missing: Vec::new(), items });
            }
            open.entry(to).or_default().extend(&channel.sends[pairs..]);
            for (at, item) in &channel.receives[pairs..] {
                let items = Some([None, *item]);
                self.unpaired.push(*at);
                self.add(Exchange { members: vec![*at], missing: vec![from], items });
            }
        }
        for (own, receive) in from_anyone {
            match open.get_mut(&own).filter(|sends| !sends.is_empty()) {
                Some(sends) => {
                    let (send, item) = sends.remove(0);
                    let items = Some([item, None]);
                    self.add(Exchange { members: vec![send, receive], missing: Vec::new(), items });
                }
                None => self.unpaired.push(receive),
            }
        }
        self.unpaired.extend(open.into_values().flatten().map(|(at, _)| at));
    }

    fn add(&mut self, exchange: Exchange) {
        let id = self.exchanges.len() as u32;
        for at in &exchange.members {
            self.of_record.entry((at.rank, at.record)).or_default().push(id);
        }
        self.exchanges.push(exchange);
    }

    /// The exchanges a record takes part in.
    pub fn of(&self, at: At) -> impl Iterator<Item = &Exchange> {
        let ids = self.of_record.get(&(at.rank, at.record)).map_or(&[][..], Vec::as_slice);
        ids.iter().filter_map(|id| self.exchanges.get(*id as usize))
    }

    /// Calls that found no partner, in order.
    pub fn unpaired(&self) -> &[At] {
        &self.unpaired
    }

    /// Ranks of the job of which there is no dump, as far as numbers and calls tell.
    pub fn missing_ranks(&self) -> &[i64] {
        &self.missing_ranks
    }

    /// How many exchanges were found.
    pub fn len(&self) -> usize {
        self.exchanges.len()
    }

    /// Whether there was no communication.
    pub fn is_empty(&self) -> bool {
        self.exchanges.is_empty()
    }

    /// When a record was made, in terms all ranks share: communication that came before it, and records since.
    pub fn time(&self, at: At) -> (u32, u32) {
        let layers = self.layers.get(at.rank as usize).map_or(&[][..], Vec::as_slice);
        let next = layers.partition_point(|(record, _)| *record <= at.record);
        match next.checked_sub(1).and_then(|last| layers.get(last)) {
            Some((record, layer)) => (*layer, at.record - record),
            None => (0, at.record),
        }
    }

    /// Counts exchanges from the beginning along every path: a call comes after the one before it on its rank, and a
    /// receive after its send. Calls that wait for each other in a circle, which posted ones can, are let go in
    /// order of ranks.
    fn find_layers(&mut self, ranks: &[RankDump]) {
        // A node is a collective, or one side of a message.
        let mut node_of: FastMap<(u32, u32), u32> = FastMap::default();
        let mut nodes = 0_u32;
        for exchange in &self.exchanges {
            let is_message = exchange.items.is_some();
            for at in &exchange.members {
                node_of.entry((at.rank, at.record)).or_insert(nodes);
                nodes += u32::from(is_message);
            }
            nodes += u32::from(!is_message);
        }
        let sequences: Vec<Vec<(u32, u32)>> = ranks
            .iter()
            .enumerate()
            .map(|(rank, dump)| {
                let calls =
                    dump.records.iter().enumerate().filter(|(_, record)| record.communication.is_some());
                calls
                    .filter_map(|(record, _)| {
                        node_of.get(&(rank as u32, record as u32)).map(|node| (record as u32, *node))
                    })
                    .collect()
            })
            .collect();
        let mut after: Vec<Vec<u32>> = vec![Vec::new(); nodes as usize];
        let mut waits = vec![0_u32; nodes as usize];
        let mut follow = |first: u32, second: u32| {
            if first != second {
                after[first as usize].push(second);
                waits[second as usize] += 1;
            }
        };
        for sequence in &sequences {
            for pair in sequence.windows(2) {
                follow(pair[0].1, pair[1].1);
            }
        }
        for exchange in &self.exchanges {
            if let (Some(_), [send, receive]) = (exchange.items, &exchange.members[..]) {
                follow(node_of[&(send.rank, send.record)], node_of[&(receive.rank, receive.record)]);
            }
        }
        let layers = longest_paths(&after, &mut waits, &sequences);
        self.layers = sequences
            .into_iter()
            .map(|sequence| {
                sequence.into_iter().map(|(record, node)| (record, layers[node as usize])).collect()
            })
            .collect();
    }
}

/// Functions whose first calls are not in the dump of some rank, as those of a flight recorder, and that know only one
/// group: their calls are known by their own numbers, from the lowest one on.
fn numbered_functions(ranks: &[RankDump]) -> FastMap<&str, u64> {
    let mut known: FastMap<&str, (Vec<&[i64]>, u64, bool)> = FastMap::default();
    for dump in ranks {
        let mut seen: FastSet<&str> = FastSet::default();
        for record in &dump.records {
            let (Some(call), Some(number)) = (record.communication.as_deref(), record.parts().index()) else {
                continue;
            };
            let group = call.group().map_or(&[][..], |group| &group.ranks);
            let entry = known.entry(record.function()).or_insert((Vec::new(), number, false));
            if entry.0.len() < 2 && !entry.0.contains(&group) {
                entry.0.push(group);
            }
            entry.1 = entry.1.min(number);
            entry.2 |= seen.insert(record.function()) && number > 0;
        }
    }
    let is_numbered = |(groups, _, is_cut): &(Vec<&[i64]>, u64, bool)| *is_cut && groups.len() == 1;
    known
        .into_iter()
        .filter(|(_, entry)| is_numbered(entry))
        .map(|(function, entry)| (function, entry.1))
        .collect()
}

/// Ranks of the job, as far as anything tells of them: those with a dump and all below, and those that are named.
fn world(ranks: &[RankDump]) -> Vec<i64> {
    let last = ranks.iter().map(|dump| i64::from(dump.dir.rank)).max().unwrap_or(0).min(MOST_RANKS);
    let mut world: FastSet<i64> =
        (0..=last).chain(ranks.iter().map(|dump| i64::from(dump.dir.rank))).collect();
    for record in ranks.iter().flat_map(|dump| &dump.records) {
        let Some(call) = record.communication.as_deref() else { continue };
        match Flow::of(record.function(), call) {
            Flow::FromRoot(peer)
            | Flow::ToRoot(peer)
            | Flow::Send(Some(peer))
            | Flow::Receive(Some(peer)) => {
                world.insert(peer);
            }
            Flow::Batch => world.extend(call.batch.iter().filter_map(|item| item.peer)),
            _ => {}
        }
        if let Some(group) = call.group() {
            world.extend(&group.ranks);
        }
    }
    let mut world: Vec<i64> = world.into_iter().collect();
    world.sort_unstable();
    world
}

/// A job is not larger than that, whatever number a directory has.
const MOST_RANKS: i64 = 1 << 20;

fn longest_paths(after: &[Vec<u32>], waits: &mut [u32], sequences: &[Vec<(u32, u32)>]) -> Vec<u32> {
    let mut layers = vec![1_u32; after.len()];
    let mut done = vec![false; after.len()];
    let mut ready: BinaryHeap<Reverse<u32>> =
        (0..after.len() as u32).filter(|node| waits[*node as usize] == 0).map(Reverse).collect();
    let mut cursors = vec![0_usize; sequences.len()];
    loop {
        while let Some(Reverse(node)) = ready.pop() {
            if std::mem::replace(&mut done[node as usize], true) {
                continue;
            }
            let next_layer = layers[node as usize] + 1;
            for &next in &after[node as usize] {
                // Let go before its turn: it stays where it is.
                if done[next as usize] {
                    continue;
                }
                layers[next as usize] = layers[next as usize].max(next_layer);
                waits[next as usize] -= 1;
                if waits[next as usize] == 0 {
                    ready.push(Reverse(next));
                }
            }
        }
        let stuck = cursors.iter_mut().zip(sequences).find_map(|(cursor, sequence)| {
            while sequence.get(*cursor).is_some_and(|(_, node)| done[*node as usize]) {
                *cursor += 1;
            }
            sequence.get(*cursor).map(|(_, node)| *node)
        });
        match stuck {
            Some(node) => ready.push(Reverse(node)),
            None => return layers,
        }
    }
}
