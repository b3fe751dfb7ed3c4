//! The pre-check of single operators: what Python ran becomes leaves here, and outcomes become rows.

mod compare;
mod files;
mod leaves;
mod outcome;
mod plan;
mod table;

use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<plan::PrecheckPlan>()?;
    module.add_class::<plan::PrecheckCase>()?;
    module.add_class::<outcome::PrecheckOutcome>()?;
    module.add_class::<table::PrecheckTable>()?;
    module.add_function(wrap_pyfunction!(compare::precheck_compare, module)?)?;
    module.add_function(wrap_pyfunction!(compare::precheck_skip, module)?)?;
    module.add_function(wrap_pyfunction!(compare::precheck_compare_mindspore, module)?)?;
    module.add_function(wrap_pyfunction!(compare::precheck_overflows, module)?)?;
    module.add_function(wrap_pyfunction!(compare::precheck_overflow_message, module)?)?;
    module.add_function(wrap_pyfunction!(compare::precheck_overflow_failure, module)?)?;
    module.add_function(wrap_pyfunction!(compare::precheck_standard, module)?)?;
    module.add_function(wrap_pyfunction!(files::compare_prechecks, module)?)?;
    module.add_function(wrap_pyfunction!(files::generate_operator_script, module)?)?;
    Ok(())
}
