//! Variables that users save by name.

use std::sync::Arc;

use msprobe_collect::{Encoder, LeafPlace, Saving, Variable};
use pyo3::prelude::*;

use super::Collector;
use super::session::Session;

const PHASE: &str = "debug_data_collect";

#[pymethods]
impl Collector {
    /// Saves a variable and, if wanted, its gradients when they come.
    fn save_variable(&self, variable: &Bound<'_, PyAny>, name: &str, save_backward: bool) {
        if let Err(error) = self.save_watched(variable, name, save_backward) {
            self.session().adapter.failed(variable.py(), PHASE, name, &error);
        }
    }
}

impl Collector {
    fn save_watched(&self, variable: &Bound<'_, PyAny>, name: &str, save_backward: bool) -> PyResult<()> {
        let session = self.session();
        let py = variable.py();
        let collector = &session.collector;
        let (record, gradients) = collector.variable_names(name);
        let saving = collector.variable_saving();
        let encoder = Encoder::for_variable(&record, saving);
        let Some(encoded) = session.encode(py, PHASE, &record, encoder, |walk| walk.single(variable)) else {
            return Ok(());
        };
        collector.variable(&record, &encoded);
        if !save_backward {
            return Ok(());
        }
        let _unseen = session.adapter.unseen(py);
        let walk = super::walk::Walk::new(session, Encoder::for_variable(&gradients, Saving::Never));
        let (structure, leaves) = walk.structure(variable)?;
        let Some(watched) = collector.variable_gradients(&gradients, structure) else { return Ok(()) };
        for (place, tensor) in leaves {
            let hook = LeafHook { session: session.clone(), variable: watched.clone(), place, saving };
            session.adapter.register_hook(&tensor, Bound::new(py, hook)?.into_any())?;
        }
        Ok(())
    }
}

/// Called by autograd with the gradient of a tensor in a saved variable.
#[pyclass(frozen, module = "msprobe._native")]
pub(crate) struct LeafHook {
    session: Arc<Session>,
    variable: Variable,
    place: LeafPlace,
    saving: Saving,
}

#[pymethods]
impl LeafHook {
    fn __call__(&self, grad: &Bound<'_, PyAny>) {
        let name = self.variable.name();
        let encoder = Encoder::at_leaf(name, &self.place, self.saving);
        let encoded = self.session.encode(grad.py(), PHASE, name, encoder, |walk| walk.single(grad));
        if let Some(encoded) = encoded {
            self.session.collector.variable_gradient(&self.variable, &self.place, &encoded);
        }
    }
}
