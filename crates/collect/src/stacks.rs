//! Call stacks, interned. A stack is met thousands of times and described once.
//!
//! The caller knows a frame by where it is in the program (`FrameKey`: any pair of numbers that is the same
//! whenever the same place calls); its text is needed when the stack is first seen. Two stacks whose texts are equal
//! are one, even if their keys differ (several calls on one line).

use std::collections::HashMap;

/// Where a frame is: its code and the position in it.
pub type FrameKey = (usize, usize);

/// A distinct stack of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StackId(pub(crate) usize);

/// A stack, and whether it belongs to a recomputed forward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackRef {
    /// Which stack.
    pub id: StackId,
    /// Whether activation recomputation is going on in it.
    pub is_recompute: bool,
}

/// What is written if a stack cannot be told.
const UNAVAILABLE: &str = "The call stack retrieval failed.";

/// All stacks seen.
#[derive(Debug, Default)]
pub struct Stacks {
    by_keys: HashMap<Vec<FrameKey>, StackRef>,
    by_frames: HashMap<Vec<String>, StackId>,
    frames: Vec<Vec<String>>,
}

impl Stacks {
    /// The stack met before with the same keys, innermost first.
    pub fn find(&self, keys: &[FrameKey]) -> Option<StackRef> {
        self.by_keys.get(keys).copied()
    }

    /// Adds a stack: its frames as they are written, innermost first, without those that are not shown.
    pub fn insert(&mut self, keys: Vec<FrameKey>, frames: Vec<String>, is_recompute: bool) -> StackRef {
        let id = match self.by_frames.get(&frames) {
            Some(&id) => id,
            None => {
                let id = StackId(self.frames.len());
                self.frames.push(frames.clone());
                self.by_frames.insert(frames, id);
                id
            }
        };
        let stack = StackRef { id, is_recompute };
        self.by_keys.insert(keys, stack);
        stack
    }

    /// The frames of a stack, innermost first.
    pub fn frames(&self, id: StackId) -> Vec<String> {
        match self.frames.get(id.0) {
            Some(frames) if !frames.is_empty() => frames.clone(),
            _ => vec![UNAVAILABLE.to_owned()],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one_stack() {
        let mut stacks = Stacks::default();
        let frames = || vec!["File a.py, line 1".to_owned()];
        assert_eq!(stacks.find(&[(1, 10)]), None);
        let first = stacks.insert(vec![(1, 10)], frames(), false);
        let second = stacks.insert(vec![(2, 0), (1, 12)], frames(), true);
        assert_eq!(first.id, second.id);
        assert!(second.is_recompute);
        assert_eq!(stacks.find(&[(1, 10)]), Some(first));
        assert_eq!(stacks.frames(first.id), ["File a.py, line 1"]);
    }

    #[test]
    fn a_stack_without_frames_says_so() {
        let mut stacks = Stacks::default();
        let stack = stacks.insert(Vec::new(), Vec::new(), false);
        assert_eq!(stacks.frames(stack.id), [UNAVAILABLE]);
    }
}
