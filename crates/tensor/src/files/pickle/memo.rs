//! The memo of a pickle program: values put aside under a number.

use std::collections::HashMap;

use super::value::NodeId;

/// What the program has put aside. Dense numbers live in a vector, far-off ones in a map, so that no number
/// costs more than its entry.
#[derive(Default)]
pub(super) struct Memo {
    dense: Vec<NodeId>,
    sparse: HashMap<u64, NodeId>,
    /// Numbers in use; also the next one that MEMOIZE takes.
    pub(super) count: u64,
}

/// No node has this number.
pub(super) const NO_NODE: NodeId = NodeId::MAX;
const DENSE_GAP: usize = 16;

impl Memo {
    /// What one entry may cost.
    pub(super) const ENTRY_BYTES: usize = 32;

    pub(super) fn put(&mut self, key: u64, node: NodeId) {
        if key < (self.dense.len() + DENSE_GAP) as u64 {
            let index = key as usize;
            if index >= self.dense.len() {
                self.dense.resize(index + 1, NO_NODE);
            }
            if let Some(slot) = self.dense.get_mut(index) {
                self.count += u64::from(*slot == NO_NODE && !self.sparse.contains_key(&key));
                *slot = node;
            }
        } else if self.sparse.insert(key, node).is_none() {
            self.count += 1;
        }
    }

    pub(super) fn get(&self, key: u64) -> Option<NodeId> {
        let dense = usize::try_from(key).ok().and_then(|index| self.dense.get(index)).copied();
        dense.filter(|&node| node != NO_NODE).or_else(|| self.sparse.get(&key).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_numbers_cost_one_entry() {
        let mut memo = Memo::default();
        for (key, node) in [(0, 1), (u64::from(u32::MAX), 2), (1, 3), (u64::MAX, 4), (20, 5)] {
            memo.put(key, node);
            assert_eq!(memo.get(key), Some(node));
        }
        assert!(memo.dense.len() <= 2 + DENSE_GAP);
        assert_eq!((memo.count, memo.get(2), memo.get(19)), (5, None, None));
    }

    #[test]
    fn a_number_that_was_far_and_came_near_counts_once() {
        let mut memo = Memo::default();
        memo.put(30, 1);
        (0..30).for_each(|key| memo.put(key, 0));
        assert_eq!(memo.get(30), Some(1));
        memo.put(30, 2);
        assert_eq!((memo.get(30), memo.count), (Some(2), 31));
    }
}
