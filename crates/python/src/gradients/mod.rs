//! The gradient probe, from Python: collecting gradients, and comparing two runs.

mod compare;
mod probe;

use pyo3::prelude::*;

/// Adds the functions and classes of this module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<probe::GradientProbe>()?;
    module.add_class::<probe::GradientStep>()?;
    module.add_function(wrap_pyfunction!(compare::compare_gradients, module)?)?;
    Ok(())
}
