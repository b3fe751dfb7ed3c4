//! Which ranks belong together: as their communication says, or else as they are numbered.

use msprobe_dump::hash::{FastMap, FastSet};
use msprobe_dump::read::Json;

use super::members::Member;
use super::strategy::{Dimension, Strategy};
use crate::graph::NodeReader;
use crate::names::is_distributed;
use crate::values::BATCH_P2P;

/// Groups of ranks along a dimension, of those that are still there.
pub(super) fn groups(members: &[Member], strategy: &Strategy, dimension: Dimension) -> Vec<Vec<u32>> {
    if dimension == Dimension::Tensor
        && let Some(found) = tensor_groups(members, strategy.tp)
    {
        return found;
    }
    strategy.groups(dimension)
}

/// Ranks whose stages follow each other.
pub(super) fn pipeline(members: &[Member], strategy: &Strategy) -> Vec<Vec<u32>> {
    // Ranks that share sequences send around, too: what they send first says nothing of stages.
    let sent = if strategy.cp == 1 { first_receivers(members) } else { FastMap::default() };
    chains(members.iter().map(|member| member.rank), &sent, strategy.pp)
        .unwrap_or_else(|| strategy.groups(Dimension::Pipeline))
}

/// Where each rank sends what it sends first: the stage behind its own, or of the last stage, the one before.
fn first_receivers(members: &[Member]) -> FastMap<u32, u32> {
    let mut reader = NodeReader::default();
    members.iter().filter_map(|member| Some((member.rank, first_receiver(member, &mut reader)?))).collect()
}

fn first_receiver(member: &Member, reader: &mut NodeReader) -> Option<u32> {
    let hierarchy = &member.graph.hierarchy;
    (0..hierarchy.nodes.len() as u32).find_map(|index| {
        let name = &hierarchy.node(index).name;
        match name.split('.').nth(1).filter(|_| is_distributed(name))? {
            "send" | "isend" => {
                let values = member.values(index, reader);
                let named = |place| values.iter().find(|value| &*value.leaf.place == place);
                let receiver = named("input.dst").or_else(|| named("input.1"))?;
                u32::try_from(receiver.leaf.statistics[0].whole()?).ok()
            }
            BATCH_P2P => {
                let record = Json::parse(member.graph.text(index, reader)?).ok()?;
                let items = record.get("output")?.as_list()?.first()?.as_list()?;
                let is_sent = |item: &&Json<'_>| item.get("op").and_then(Json::as_str) == Some("isend");
                match items.iter().find(is_sent)?.get("peer")? {
                    Json::Int(peer) => u32::try_from(*peer).ok(),
                    _ => None,
                }
            }
            _ => None,
        }
    })
}

/// Ranks one behind the other as they send, if that makes chains of the length that is wanted of all of them.
fn chains(ranks: impl Iterator<Item = u32>, sent: &FastMap<u32, u32>, length: u32) -> Option<Vec<Vec<u32>>> {
    let mut ranks: Vec<u32> = ranks.collect();
    ranks.sort_unstable();
    let receivers: FastSet<u32> = sent.values().copied().collect();
    let mut is_taken: FastSet<u32> = FastSet::default();
    let mut found = Vec::new();
    // A chain begins where nobody sends to; where the last stage sends to the first, with the lowest rank.
    let (sent_to, first): (Vec<u32>, Vec<u32>) =
        ranks.iter().copied().partition(|rank| receivers.contains(rank));
    for start in first.into_iter().chain(sent_to) {
        let mut chain = Vec::new();
        let mut next = Some(start);
        while let Some(rank) = next.filter(|rank| ranks.binary_search(rank).is_ok() && is_taken.insert(*rank))
        {
            chain.push(rank);
            next = sent.get(&rank).copied();
        }
        if !chain.is_empty() {
            if chain.len() != length as usize {
                return None;
            }
            found.push(chain);
        }
    }
    Some(found)
}

/// The groups of the first reduction of each rank, if they are of the size that is wanted and fit together.
fn tensor_groups(members: &[Member], size: u32) -> Option<Vec<Vec<u32>>> {
    let mut reader = NodeReader::default();
    let mut groups: Vec<Vec<u32>> = Vec::new();
    for member in members {
        let group = first_group(member, &mut reader)?;
        if group.len() != size as usize || !group.contains(&member.rank) {
            return None;
        }
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    let mut all: Vec<u32> = groups.iter().flatten().copied().collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    (all.len() == count && count == members.len()).then_some(groups)
}

fn first_group(member: &Member, reader: &mut NodeReader) -> Option<Vec<u32>> {
    let hierarchy = &member.graph.hierarchy;
    (0..hierarchy.nodes.len() as u32).find_map(|index| {
        let name = &hierarchy.node(index).name;
        let function = name.split('.').nth(1).filter(|_| is_distributed(name))?;
        if !function.contains("reduce_scatter") && function != "all_reduce" {
            return None;
        }
        let values = member.values(index, reader);
        let group = values.iter().find(|value| &*value.leaf.place == "input.group")?;
        let group = Json::parse(&group.written).ok()?;
        let rank = |rank: &Json<'_>| match rank {
            Json::Int(rank) => u32::try_from(*rank).ok(),
            _ => None,
        };
        group.get("group_ranks")?.as_list()?.iter().map(rank).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chains_of(ranks: u32, sent: &[(u32, u32)], length: u32) -> Option<Vec<Vec<u32>>> {
        chains(0..ranks, &sent.iter().copied().collect(), length)
    }

    #[test]
    fn stages_follow_each_other_as_they_send() {
        // The last stage sends gradients back.
        assert_eq!(chains_of(4, &[(0, 1), (1, 2), (2, 3), (3, 2)], 4), Some(vec![vec![0, 1, 2, 3]]));
        // With chunks, the last stage sends on to the first.
        assert_eq!(chains_of(4, &[(0, 1), (1, 2), (2, 3), (3, 0)], 4), Some(vec![vec![0, 1, 2, 3]]));
        assert_eq!(chains_of(4, &[(0, 2), (2, 0), (1, 3), (3, 1)], 2), Some(vec![vec![0, 2], vec![1, 3]]));
        // Stages that are numbered the other way round.
        assert_eq!(chains_of(3, &[(2, 1), (1, 0), (0, 1)], 3), Some(vec![vec![2, 1, 0]]));
    }

    #[test]
    fn what_does_not_fit_is_no_chain() {
        assert_eq!(chains_of(4, &[], 4), None);
        assert_eq!(chains_of(4, &[(0, 1), (1, 0)], 2), None, "two ranks send nothing");
        assert_eq!(chains_of(4, &[(0, 1), (1, 2), (2, 3), (3, 2)], 2), None);
        assert_eq!(chains_of(2, &[(0, 7), (1, 0)], 2), Some(vec![vec![1, 0]]), "nobody is rank 7");
    }
}
