//! Which ranks belong together: as their communication says, or else as they are numbered.

use msprobe_dump::read::Json;

use super::members::Member;
use super::strategy::{Dimension, Strategy};
use crate::graph::NodeReader;
use crate::names::is_distributed;

/// Groups of ranks along a dimension, of those that are still there.
pub(super) fn groups(members: &[Member], strategy: &Strategy, dimension: Dimension) -> Vec<Vec<u32>> {
    if dimension == Dimension::Tensor
        && let Some(found) = tensor_groups(members, strategy.tp)
    {
        return found;
    }
    strategy.groups(dimension)
}

/// Stages, as ranks are numbered.
pub(super) fn pipeline(strategy: &Strategy) -> Vec<Vec<u32>> {
    strategy.groups(Dimension::Pipeline)
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
