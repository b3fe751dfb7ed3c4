//! Pairs that were made or taken apart by hand: a journal of what was done, to undo and redo, and how nodes stand now. Nothing
//! reaches a file before it is saved.

mod config;
mod matching;
mod metrics;
mod save;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

pub(crate) use self::config::{config_path, write_config};
pub(crate) use self::matching::Matcher;
pub(crate) use self::save::{save_store, save_vis};
use crate::store::Scope;
use crate::wire::Changed;

/// Steps back that are kept for each rank.
const MOST_UNDONE: usize = 200;

/// How a node stands.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct NodeState {
    /// Names from the root of the other side to the partner; empty for none.
    pub(crate) link: Vec<String>,
    pub(crate) index: Option<f64>,
    /// In the first generation, whether checksums agree.
    pub(crate) checksums_agree: Option<bool>,
    /// What is shown of its values.
    pub(crate) inputs: String,
    pub(crate) outputs: String,
    /// Whether that was decided by hand.
    pub(crate) modified: bool,
}

impl NodeState {
    /// The link as stores have it.
    pub(crate) fn link_json(&self) -> String {
        let mut json = msprobe_dump::write::JsonText::on_one_line();
        json.begin_array();
        self.link.iter().for_each(|name| json.string(name));
        json.end_array();
        json.finish()
    }
}

/// How nodes stand that somebody touched, in place of what is stored.
#[derive(Debug, Clone, Default)]
pub(crate) struct Overlay {
    edition: u64,
    nodes: Arc<BTreeMap<Scope, HashMap<String, NodeState>>>,
}

impl Overlay {
    pub(crate) fn get(&self, scope: Scope, name: &str) -> Option<&NodeState> {
        self.nodes.get(&scope)?.get(name)
    }

    /// All of one hierarchy.
    pub(crate) fn of(&self, scope: Scope) -> impl Iterator<Item = (&str, &NodeState)> {
        self.nodes.get(&scope).into_iter().flatten().map(|(name, state)| (name.as_str(), state))
    }

    /// Grows with each change.
    pub(crate) fn edition(&self) -> u64 {
        self.edition
    }
}

/// A node before and after something was done.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) scope: Scope,
    pub(crate) name: String,
    pub(crate) before: NodeState,
    pub(crate) after: NodeState,
}

/// One thing somebody did.
#[derive(Debug, Clone, Default)]
pub(crate) struct Edit {
    pub(crate) changes: Vec<Change>,
    pub(crate) pairs: u64,
    pub(crate) failed: u64,
    pub(crate) text: String,
}

#[derive(Debug, Default)]
struct Steps {
    done: Vec<Edit>,
    undone: Vec<Edit>,
}

/// All that was done to one graph.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    steps: HashMap<(i64, i64), Steps>,
    overlay: Overlay,
    /// How touched nodes stand in the file.
    stored: BTreeMap<Scope, HashMap<String, NodeState>>,
}

impl Journal {
    /// How nodes stand.
    pub(crate) fn overlay(&self) -> Overlay {
        self.overlay.clone()
    }

    /// Does something.
    pub(crate) fn apply(&mut self, step: i64, rank: i64, edit: Edit) -> Changed {
        self.set(&edit.changes, |change| &change.after);
        let changed = self.changed(step, rank, edit.pairs, edit.failed, edit.text.clone());
        if edit.changes.is_empty() {
            return changed;
        }
        let steps = self.steps.entry((step, rank)).or_default();
        steps.undone.clear();
        steps.done.push(edit);
        if steps.done.len() > MOST_UNDONE {
            steps.done.remove(0);
        }
        Changed { can_undo: true, can_redo: false, ..changed }
    }

    /// Takes the last thing back, or does it again.
    pub(crate) fn step_back(&mut self, step: i64, rank: i64, is_undo: bool) -> Changed {
        let steps = self.steps.entry((step, rank)).or_default();
        let edit = if is_undo { steps.done.pop() } else { steps.undone.pop() };
        let Some(edit) = edit else {
            let word = if is_undo { "undo" } else { "redo" };
            return self.changed(step, rank, 0, 0, format!("there is nothing to {word}"));
        };
        if is_undo {
            steps.undone.push(edit.clone());
        } else {
            steps.done.push(edit.clone());
        }
        self.set(&edit.changes, |change| if is_undo { &change.before } else { &change.after });
        let word = if is_undo { "undone" } else { "done again" };
        self.changed(step, rank, edit.pairs, edit.failed, format!("{word}: {}", edit.text))
    }

    fn set(&mut self, changes: &[Change], pick: impl Fn(&Change) -> &NodeState) {
        if changes.is_empty() {
            return;
        }
        let nodes = Arc::make_mut(&mut self.overlay.nodes);
        for change in changes {
            let stored = self.stored.entry(change.scope).or_default();
            stored.entry(change.name.clone()).or_insert_with(|| change.before.clone());
            nodes.entry(change.scope).or_default().insert(change.name.clone(), pick(change).clone());
        }
        self.overlay.edition += 1;
    }

    /// How things are, with nothing done.
    pub(crate) fn changed(&self, step: i64, rank: i64, pairs: u64, failed: u64, text: String) -> Changed {
        let steps = self.steps.get(&(step, rank));
        Changed {
            edition: self.overlay.edition,
            pairs,
            failed,
            is_unsaved: self.unsaved().next().is_some(),
            can_undo: steps.is_some_and(|steps| !steps.done.is_empty()),
            can_redo: steps.is_some_and(|steps| !steps.undone.is_empty()),
            text,
        }
    }

    /// Nodes that stand in another way than in the file.
    pub(crate) fn unsaved(&self) -> impl Iterator<Item = (Scope, &str, &NodeState)> {
        self.overlay.nodes.iter().flat_map(move |(scope, nodes)| {
            let stored = self.stored.get(scope);
            nodes.iter().filter_map(move |(name, state)| {
                let is_stored =
                    stored.and_then(|stored| stored.get(name)).is_some_and(|known| known == state);
                (!is_stored).then_some((*scope, name.as_str(), state))
            })
        })
    }

    /// The file holds it all now.
    pub(crate) fn saved(&mut self) {
        for (scope, nodes) in self.overlay.nodes.iter() {
            self.stored.entry(*scope).or_default().extend(nodes.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Side;

    fn edit(index: f64) -> Edit {
        let scope = Scope { step: 0, rank: 0, side: Side::Target };
        let state =
            |index: Option<f64>| NodeState { index, modified: index.is_some(), ..NodeState::default() };
        let change = Change { scope, name: "a".to_owned(), before: state(None), after: state(Some(index)) };
        Edit { changes: vec![change], pairs: 1, failed: 0, text: "matched".to_owned() }
    }

    #[test]
    fn what_was_done_is_undone_and_done_again() {
        let mut journal = Journal::default();
        let scope = Scope { step: 0, rank: 0, side: Side::Target };
        let index = |journal: &Journal| journal.overlay().get(scope, "a").and_then(|state| state.index);
        let changed = journal.apply(0, 0, edit(0.5));
        assert!(changed.is_unsaved && changed.can_undo && !changed.can_redo);
        assert_eq!(index(&journal), Some(0.5));
        let changed = journal.step_back(0, 0, true);
        assert!(!changed.is_unsaved && !changed.can_undo && changed.can_redo);
        assert_eq!(index(&journal), None);
        assert_eq!(journal.step_back(0, 1, false).pairs, 0, "another rank has a journal of its own");
        assert_eq!(journal.step_back(0, 0, false).edition, 3);
        journal.saved();
        assert!(!journal.changed(0, 0, 0, 0, String::new()).is_unsaved);
        assert!(journal.step_back(0, 0, true).is_unsaved, "the file has it still");
    }
}
