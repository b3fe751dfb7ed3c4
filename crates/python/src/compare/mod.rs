//! Comparisons from Python. Arguments were checked by `msprobe.core.compare`; errors are raised as scripts know them.

pub(crate) mod relay;

use std::collections::HashMap;
use std::path::PathBuf;

use msprobe_compare::verdict::{Allowed, Tolerances};
use msprobe_report::Formats;
use msprobe_report::console::Console;
use msprobe_report::error::{Code, CompareError};
use msprobe_tables::common_dir;
use msprobe_tables::merge_result;
use msprobe_tables::run::{self, DataMapping, Form, MappingChoice, Mappings, Outcome, StackSource};
use msprobe_tables::static_graph;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// The answer, line by line, and the files that were written.
type Answer = (String, Vec<PathBuf>);

/// Columns of the answer: scripts rarely print to a terminal.
const WIDTH: usize = 100;

/// The dict that `msprobe.core.compare.options` describes.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct PyOptions {
    form: String,
    output: PathBuf,
    formats: Vec<String>,
    stack: Choice,
    advisor: bool,
    fuzzy: bool,
    api_mapping: Option<Choice>,
    cell_mapping: Option<Choice>,
    layer_mapping: Option<Choice>,
    data_mapping: Option<Names>,
    log_rows: bool,
    first_difference: bool,
    tolerance: String,
    noise: Vec<PathBuf>,
    allow_incomplete: String,
}

/// What can be switched on, or be a file.
#[derive(FromPyObject)]
enum Choice {
    Switch(bool),
    File(PathBuf),
}

#[derive(FromPyObject)]
enum Names {
    Given(HashMap<String, String>),
    File(PathBuf),
}

impl Choice {
    fn mapping(self) -> Option<MappingChoice> {
        match self {
            Choice::Switch(false) => None,
            Choice::Switch(true) => Some(MappingChoice::BuiltIn),
            Choice::File(path) => Some(MappingChoice::File(path)),
        }
    }
}

impl PyOptions {
    fn resolve(self) -> PyResult<run::Options> {
        let form = match self.form.as_str() {
            "old" => Form::Old,
            "newest" => Form::Newest,
            other => return Err(PyValueError::new_err(format!("there is no form {other:?}"))),
        };
        let asked = |name: &str| self.formats.iter().any(|format| format == name);
        Ok(run::Options {
            form,
            formats: Formats {
                xlsx: asked("xlsx"),
                csv: asked("csv"),
                json: asked("json"),
                html: asked("html"),
            },
            output: self.output,
            stack: match self.stack {
                Choice::Switch(true) => StackSource::Detect,
                Choice::Switch(false) => StackSource::Off,
                Choice::File(path) => StackSource::File(path),
            },
            advisor: self.advisor,
            fuzzy: self.fuzzy,
            mappings: Mappings {
                api: self.api_mapping.and_then(Choice::mapping),
                cell: self.cell_mapping.and_then(Choice::mapping),
                layer: self.layer_mapping.and_then(Choice::mapping),
                data: self.data_mapping.map(|names| match names {
                    Names::Given(names) => DataMapping::Names(names),
                    Names::File(path) => DataMapping::File(path),
                }),
            },
            log_rows: self.log_rows,
            first_difference: self.first_difference,
            // Filled in where a wrong one can be logged.
            tolerances: Tolerances::default(),
            noise: self.noise,
            allowed: Allowed::default(),
        })
    }
}

fn compare(
    py: Python<'_>,
    options: PyOptions,
    log: &Bound<'_, PyAny>,
    work: impl FnOnce(&run::Options, &dyn Console) -> Result<Outcome, CompareError> + Send,
) -> PyResult<Answer> {
    let (tolerance, allowed) = (options.tolerance.clone(), options.allow_incomplete.clone());
    let mut options = options.resolve()?;
    relay::run(py, log, |console| {
        options.tolerances = Tolerances::default().with(&tolerance).map_err(CompareError::in_setup)?;
        options.allowed = Allowed::parse(&allowed).map_err(CompareError::in_setup)?;
        let outcome = work(&options, console)?;
        let verdict = outcome.write_verdict(&options.output, &options.tolerances, console)?;
        let answer = outcome.answer(&options.output).text(&outcome.sections(WIDTH));
        let files = outcome.parts.into_iter().flat_map(|part| part.files);
        Ok((answer, files.chain([verdict]).collect()))
    })
}

/// A path as it is, or the only dump below the directory it names. A path that leads nowhere is left to those who use it.
#[pyfunction]
pub(crate) fn find_dump(py: Python<'_>, path: PathBuf, log: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    if path.exists() {
        return Ok(path);
    }
    relay::run(py, log, |console| match run::find_dump(&path, console) {
        Err(error) if error.code == Code::IllegalPath => Ok(path),
        found => found,
    })
}

/// Compares two dump files.
#[pyfunction]
pub(crate) fn compare_files(
    py: Python<'_>,
    target: PathBuf,
    golden: PathBuf,
    suffix: &str,
    options: PyOptions,
    log: &Bound<'_, PyAny>,
) -> PyResult<Answer> {
    compare(py, options, log, |options, console| {
        let (part, failures) = run::compare_files(&target, &golden, suffix, options, console)?;
        Ok(Outcome { parts: vec![part], failures, ..Outcome::default() })
    })
}

/// Compares everything two directories have in common.
#[pyfunction]
pub(crate) fn compare_dumps(
    py: Python<'_>,
    target: PathBuf,
    golden: PathBuf,
    options: PyOptions,
    log: &Bound<'_, PyAny>,
) -> PyResult<Answer> {
    compare(py, options, log, |options, console| run::compare_dumps(&target, &golden, options, console))
}

/// Compares the ranks of two step directories.
#[pyfunction]
pub(crate) fn compare_ranks(
    py: Python<'_>,
    target: PathBuf,
    golden: PathBuf,
    options: PyOptions,
    log: &Bound<'_, PyAny>,
) -> PyResult<Answer> {
    compare(py, options, log, |options, console| run::compare_ranks(&target, &golden, options, console))
}

/// Compares the kernels of two static graphs.
#[pyfunction]
pub(crate) fn compare_graphs(
    py: Python<'_>,
    target: PathBuf,
    golden: PathBuf,
    ranks: Vec<i64>,
    steps: Vec<i64>,
    output: PathBuf,
    log: &Bound<'_, PyAny>,
) -> PyResult<Vec<PathBuf>> {
    relay::run(py, log, |console| {
        static_graph::compare_graphs(&target, &golden, &ranks, &steps, &output, console)
    })
}

/// Compares two trees of single arrays.
#[pyfunction]
pub(crate) fn compare_common_dirs(
    py: Python<'_>,
    target: PathBuf,
    golden: PathBuf,
    names: Vec<(String, String)>,
    output: PathBuf,
    log: &Bound<'_, PyAny>,
) -> PyResult<Vec<PathBuf>> {
    relay::run(py, log, |console| common_dir::compare_common_dirs(&target, &golden, &names, &output, console))
}

/// Puts figures of the tables of several ranks next to each other.
#[pyfunction]
pub(crate) fn merge_tables(
    py: Python<'_>,
    input_dir: PathBuf,
    output_dir: PathBuf,
    config: PathBuf,
    log: &Bound<'_, PyAny>,
) -> PyResult<PathBuf> {
    relay::run(py, log, |console| merge_result::merge_result(&input_dir, &output_dir, &config, console))
        .map(|merged| merged.path)
}

/// `msprobe.core.common.exceptions.CompareException` with the number scripts test for.
pub(crate) fn exception(py: Python<'_>, error: &CompareError) -> PyErr {
    if error.code == Code::BrokenJson {
        return PyRuntimeError::new_err(error.message.clone());
    }
    let raised = py
        .import("msprobe.core.common.exceptions")
        .and_then(|module| module.getattr("CompareException"))
        .and_then(|class| class.call1((error.code as u16, &error.message, error.hint.as_deref())));
    match raised {
        Ok(instance) => PyErr::from_value(instance),
        Err(error) => error,
    }
}
