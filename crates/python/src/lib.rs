//! `msprobe._native`: objects become values here, errors become exceptions, and the GIL is released while
//! Rust works. Nothing is computed in this crate.

#![allow(clippy::needless_pass_by_value, reason = "pyo3 extracts owned values")]

mod collect;
mod compare;
mod config;
mod exceptions;
mod files;
mod framework;
mod gradients;
mod intercept;
mod key_data;
mod metrics;
mod precheck;
mod tensor;

use std::ffi::OsString;

use msprobe_tensor::memory::Fund;
use pyo3::prelude::*;

/// A lack of memory ends collection, not training.
#[global_allocator]
static MEMORY: Fund = Fund;

/// Runs the msprobe command in a process that is nothing else; `argv[0]` is the program's name. Returns the exit code.
#[pyfunction]
fn run_cli(py: Python<'_>, argv: Vec<OsString>) -> u8 {
    py.detach(|| msprobe_cli::run_process(argv) as u8)
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(run_cli, module)?)?;
    module.add_class::<config::PyConfig>()?;
    module.add_function(wrap_pyfunction!(config::resolve_config, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::statistics, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::crc32, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::sketch, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::sketch_tables, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::sketch_cuts, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::md5, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::hash128, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::compare_pair, module)?)?;
    module.add_function(wrap_pyfunction!(files::write_npy, module)?)?;
    module.add_function(wrap_pyfunction!(files::write_pt, module)?)?;
    module.add_function(wrap_pyfunction!(files::write_pt_dict, module)?)?;
    module.add_function(wrap_pyfunction!(files::tensor_names, module)?)?;
    module.add_function(wrap_pyfunction!(files::read_tensor, module)?)?;
    module.add_function(wrap_pyfunction!(compare::compare_files, module)?)?;
    module.add_function(wrap_pyfunction!(compare::find_dump, module)?)?;
    module.add_function(wrap_pyfunction!(compare::compare_dumps, module)?)?;
    module.add_function(wrap_pyfunction!(compare::compare_ranks, module)?)?;
    module.add_function(wrap_pyfunction!(compare::compare_graphs, module)?)?;
    module.add_function(wrap_pyfunction!(compare::compare_common_dirs, module)?)?;
    module.add_function(wrap_pyfunction!(compare::merge_tables, module)?)?;
    gradients::register(module)?;
    key_data::register(module)?;
    precheck::register(module)?;
    module.add_class::<collect::Kind>()?;
    module.add_class::<collect::Collector>()?;
    module.add_class::<collect::ApiCall>()?;
    module.add_class::<collect::ApiBackward>()?;
    module.add_class::<collect::Boundary>()?;
    module.add_class::<collect::GradientWatch>()?;
    module.add_class::<collect::WatchEntry>()?;
    module.add_class::<collect::WatchedCall>()?;
    module.add_class::<collect::ModuleCall>()?;
    module.add_class::<collect::Modules>()?;
    module.add_class::<collect::ParameterHook>()?;
    module.add_class::<collect::LeafHook>()?;
    module.add_class::<intercept::Intercepted>()?;
    module.add_function(wrap_pyfunction!(intercept::set_intercepted, module)?)?;
    Ok(())
}
