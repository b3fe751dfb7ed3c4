//! The ranks a communication call names, kept once for all calls that name the same.

use msprobe_dump::hash::FastMap;

use crate::communication::{Communication, RankArgument};

/// Sets of ranks, by number.
pub(super) struct Peers {
    /// Positions of ranks, ascending by rank: whose dump is there.
    positions: FastMap<i64, u32>,
    by_ranks: FastMap<Vec<i64>, u32>,
    sets: Vec<Set>,
    /// Words of bits, one bit per rank with a dump, so many words per set.
    bits: Vec<u64>,
    words: usize,
    /// Memory for the ranks of one call.
    scratch: Vec<i64>,
}

struct Set {
    /// Positions of its ranks, ascending.
    positions: Vec<u32>,
    /// Ranks without a dump.
    missing: Vec<i64>,
}

impl Set {
    fn is_empty(&self) -> bool {
        self.positions.is_empty() && self.missing.is_empty()
    }
}

impl Peers {
    /// Of the ranks that have a dump, in their order.
    pub(super) fn new(ranks: impl Iterator<Item = u32>) -> Peers {
        let mut positions = FastMap::default();
        let mut count = 0;
        for rank in ranks {
            positions.entry(i64::from(rank)).or_insert(count);
            count += 1;
        }
        let words = (count as usize).div_ceil(64);
        Peers {
            positions,
            by_ranks: FastMap::default(),
            sets: Vec::new(),
            bits: Vec::new(),
            words,
            scratch: Vec::new(),
        }
    }

    /// The set of what a call names: the ranks given by keyword, or else all whole numbers given by place; and the
    /// ranks of its group, if that was given by keyword.
    pub(super) fn of(&mut self, call: &Communication) -> u32 {
        let mut ranks = std::mem::take(&mut self.scratch);
        ranks.clear();
        let keywords = [[call.dst, call.dst_group], [call.src, call.src_group]];
        ranks.extend(keywords.into_iter().filter_map(first_given));
        if ranks.is_empty() {
            ranks.extend(&call.ints);
        }
        ranks.extend(call.group.iter().flat_map(|group| &group.ranks));
        ranks.sort_unstable();
        ranks.dedup();
        if let Some(&id) = self.by_ranks.get(&ranks) {
            self.scratch = ranks;
            return id;
        }
        let mut set = Set { positions: Vec::new(), missing: Vec::new() };
        let start = self.bits.len();
        self.bits.resize(start + self.words, 0);
        for rank in &ranks {
            let Some(&position) = self.positions.get(rank) else {
                set.missing.push(*rank);
                continue;
            };
            self.bits[start + position as usize / 64] |= 1 << (position % 64);
            set.positions.push(position);
        }
        let id = self.sets.len() as u32;
        self.sets.push(set);
        self.by_ranks.insert(ranks, id);
        id
    }

    /// Positions of a set's ranks, ascending; nothing if it names none, which means all ranks.
    pub(super) fn positions(&self, id: u32) -> Option<&[u32]> {
        let set = &self.sets[id as usize];
        (!set.is_empty()).then_some(&set.positions)
    }

    /// Whether a set names no rank at all.
    pub(super) fn is_empty(&self, id: u32) -> bool {
        self.sets[id as usize].is_empty()
    }

    /// Whether a rank is in a set, by its position.
    pub(super) fn contains(&self, id: u32, position: u32) -> bool {
        let word = self.bits[id as usize * self.words + position as usize / 64];
        word >> (position % 64) & 1 == 1
    }

    /// Whether a set names ranks other than this one; naming none means all.
    pub(super) fn names_others(&self, id: u32, position: u32) -> bool {
        let set = &self.sets[id as usize];
        set.is_empty() || !set.missing.is_empty() || set.positions.iter().any(|other| *other != position)
    }

    /// All ranks that are named and have no dump; some may come more than once.
    pub(super) fn missing(&self) -> impl Iterator<Item = i64> {
        self.sets.iter().flat_map(|set| &set.missing).copied()
    }
}

/// The first of two arguments that was given at all decides, be it given as nothing.
fn first_given(arguments: [RankArgument; 2]) -> Option<i64> {
    arguments.into_iter().find(|argument| *argument != RankArgument::Absent)?.known()
}
