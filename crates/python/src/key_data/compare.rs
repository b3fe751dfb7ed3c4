//! Arrays of two runs: found, measured, and one key written as a table.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use msprobe_keydata::{
    ArrayPlace, Arrays, Incomparable, compare_arrays, compare_found, find_arrays, tree, write_key_workbook,
};
use msprobe_report::console::Silent;
use msprobe_report::paths::publish;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::compare::{exception, relay};
use crate::tensor::Described;

/// step, rank, micro_step, id, path
type Found = (i64, i64, i64, i64, OsString);

/// Numbers and paths of one level beneath `path`: `step`, `rank`, `micro_step` or `array`.
#[pyfunction]
pub(crate) fn key_data_level(py: Python<'_>, kind: &str, path: PathBuf) -> PyResult<Vec<(i64, OsString)>> {
    let found = match kind {
        "step" => tree::steps(&path, &Silent),
        "rank" => tree::ranks(&path, &Silent),
        "micro_step" => tree::micro_steps(&path, &Silent),
        "array" => tree::arrays(&path),
        other => return Err(PyValueError::new_err(format!("there is no level {other:?}"))),
    };
    let found = found.map_err(|error| exception(py, &error))?;
    Ok(found.into_iter().map(|(number, path)| (number, path.into_os_string())).collect())
}

/// The arrays beneath a `data` directory, by key.
#[pyfunction]
pub(crate) fn find_key_data(
    py: Python<'_>,
    dir: PathBuf,
    log: &Bound<'_, PyAny>,
) -> PyResult<BTreeMap<String, Vec<Found>>> {
    let found = relay::run(py, log, |console| find_arrays(&dir, console))?;
    let flat = |(place, path): (ArrayPlace, PathBuf)| {
        (place.step, place.rank, place.micro_step, place.id, path.into_os_string())
    };
    Ok(found.into_iter().map(|(key, arrays)| (key, arrays.into_iter().map(flat).collect())).collect())
}

/// The six metrics of `CompareResult`, in its order.
#[pyfunction]
pub(crate) fn compare_key_arrays(
    py: Python<'_>,
    first: Described,
    second: Described,
) -> PyResult<(f64, f64, f64, Option<u64>, f64, f64)> {
    let (first, second) = (first.view()?, second.view()?);
    let measured = py.detach(|| compare_arrays(&first, &second)).map_err(|reason| match reason {
        Incomparable::Bools => PyTypeError::new_err(reason.to_string()),
        Incomparable::Empty | Incomparable::Layout(_) => PyValueError::new_err(reason.to_string()),
    })?;
    let metrics = measured.metrics;
    Ok((
        metrics.max_abs_error,
        metrics.max_relative_error,
        metrics.same_percentage,
        metrics.first_mismatch_index,
        metrics.percentage_within_thousandth,
        metrics.percentage_within_hundredth,
    ))
}

/// Compares the arrays of one key and writes its table. Of several arrays at a place the last one counts.
#[pyfunction]
pub(crate) fn compare_key(
    py: Python<'_>,
    key: String,
    first: Vec<Found>,
    second: Vec<Found>,
    table: PathBuf,
    log: &Bound<'_, PyAny>,
) -> PyResult<()> {
    relay::run(py, log, |console| {
        let runs = [first, second].map(|found| -> Arrays {
            let placed: BTreeMap<ArrayPlace, PathBuf> = found
                .into_iter()
                .map(|(step, rank, micro_step, id, path)| {
                    (ArrayPlace { step, rank, micro_step, id }, path.into())
                })
                .collect();
            BTreeMap::from([(key.clone(), placed.into_iter().collect())])
        });
        for compared in compare_found(runs, console).keys {
            let written = publish(&table, console, |file| write_key_workbook(file, &compared.rows));
            if let Err(error) = written {
                console.error(&format!("Error processing tag {key}: {error}"));
            }
        }
        Ok(())
    })
}
