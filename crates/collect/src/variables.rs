//! Level `debug`: variables a user saves by name, and their gradients as they come.

use std::sync::{Arc, Mutex, PoisonError};

use msprobe_dump::names::SavedName;
use msprobe_dump::write::{RecordBody, RecordId};

use crate::collector::Collector;
use crate::encoder::{Encoded, LeafPlace, Saving};
use crate::fragment::{Fill, Fragment, Nothing};

/// Room for the figures and the name of one tensor, in bytes.
const LEAF_BYTES: usize = 640;

/// The gradients of a saved variable: its structure, in which leaves are filled when gradients arrive.
#[derive(Debug, Clone)]
pub struct Variable {
    name: String,
    /// The record, and the step it is in by number: a late gradient must not land in another.
    record: RecordId,
    generation: u64,
    content: Arc<Mutex<Content>>,
}

#[derive(Debug)]
struct Content {
    structure: Fragment,
    leaves: Vec<Option<RecordBody>>,
}

impl Fill for Content {
    fn leaf(&self, index: usize) -> Option<&RecordBody> {
        self.leaves.get(index)?.as_ref()
    }
}

impl Collector {
    /// Counts a variable of this name: `x.0.debug`, and the name of its gradients.
    pub fn variable_names(&self, name: &str) -> (String, String) {
        let mut state = self.state();
        let count = state.variables.entry(name.to_owned()).or_insert(0);
        let index = *count;
        *count += 1;
        let name = SavedName::new(name, index);
        (name.to_string(), name.gradient().to_string())
    }

    /// What becomes of the tensors of saved variables.
    pub fn variable_saving(&self) -> Saving {
        if self.config().task == msprobe_dump::config::Task::Tensor { Saving::Now } else { Saving::Never }
    }

    /// Writes a variable.
    pub fn variable(&self, name: &str, value: &Encoded) {
        if let Some(step) = &self.state().step {
            step.sink.append(name, value.fragment.render(&Nothing));
        }
    }

    /// Writes the structure of a variable's gradients; its leaves are filled later.
    pub fn variable_gradients(&self, name: &str, structure: Encoded) -> Option<Variable> {
        let state = self.state();
        let step = state.step.as_ref()?;
        let content = Content { structure: structure.fragment, leaves: vec![None; structure.leaves] };
        let record = step.sink.open_record(name);
        let room = content.leaves.len() * (LEAF_BYTES + name.len());
        step.sink.set(record, name, content.structure.render(&content), room);
        Some(Variable {
            name: name.to_owned(),
            record,
            generation: state.generation,
            content: Arc::new(Mutex::new(content)),
        })
    }

    /// A leaf's gradient, or a newer one.
    pub fn variable_gradient(&self, variable: &Variable, place: &LeafPlace, gradient: &Encoded) {
        let state = self.state();
        let Some(step) = state.step.as_ref().filter(|_| state.generation == variable.generation) else {
            return;
        };
        let mut content = variable.content.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(leaf) = content.leaves.get_mut(place.index) {
            *leaf = Some(gradient.fragment.render(&Nothing));
        }
        let room = content.leaves.len() * (LEAF_BYTES + variable.name.len());
        step.sink.set(variable.record, &variable.name, content.structure.render(&*content), room);
    }
}

impl Variable {
    /// The record's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}
