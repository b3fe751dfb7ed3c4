//! Key data of reinforcement learning, from Python: saving it, and comparing two runs.

mod compare;
mod run;
mod writer;

use pyo3::prelude::*;

/// Adds the functions and classes of this module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<writer::KeyDataWriter>()?;
    module.add_class::<writer::KeyDataEntry>()?;
    module.add_function(wrap_pyfunction!(writer::make_directory, module)?)?;
    module.add_function(wrap_pyfunction!(compare::key_data_level, module)?)?;
    module.add_function(wrap_pyfunction!(compare::find_key_data, module)?)?;
    module.add_function(wrap_pyfunction!(compare::compare_key_arrays, module)?)?;
    module.add_function(wrap_pyfunction!(compare::compare_key, module)?)?;
    module.add_function(wrap_pyfunction!(run::compare_key_data, module)?)?;
    module.add("KEY_DATA_HEADERS", msprobe_keydata::HEADERS)?;
    Ok(())
}
