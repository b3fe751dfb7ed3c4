//! Outcomes as Python objects.

use msprobe_precheck::{Notes, Outcome};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

#[pyclass(module = "msprobe._native", frozen)]
pub(crate) struct PrecheckOutcome {
    pub(super) outcome: Outcome,
}

#[pymethods]
impl PrecheckOutcome {
    #[getter]
    fn full_name(&self) -> &str {
        &self.outcome.full_name
    }

    #[getter]
    fn forward(&self) -> &str {
        self.outcome.result.get(1).map_or("", String::as_str)
    }

    #[getter]
    fn backward(&self) -> &str {
        self.outcome.result.get(2).map_or("", String::as_str)
    }

    #[getter]
    fn wants_data_saved(&self) -> bool {
        self.outcome.wants_data_saved
    }

    fn rows(&self) -> (Vec<String>, Vec<Vec<String>>) {
        (self.outcome.result.clone(), self.outcome.details.clone())
    }

    fn to_json(&self) -> String {
        self.outcome.to_json()
    }

    #[staticmethod]
    fn from_json(text: &str) -> PyResult<PrecheckOutcome> {
        let outcome = Outcome::from_json(text).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(PrecheckOutcome { outcome })
    }
}

/// What the runner knows of a call; whatever else the mapping has is left alone.
pub(super) fn notes(given: Option<&Bound<'_, PyAny>>) -> PyResult<Notes> {
    let Some(given) = given else { return Ok(Notes::default()) };
    let dict = PyDict::new(given.py());
    dict.update(given.cast()?)?;
    let inputs = dict.get_item("inputs")?.map(|value| value.extract()).transpose()?;
    let place: Option<Option<String>> = dict.get_item("place")?.map(|value| value.extract()).transpose()?;
    let seconds: Option<Option<f64>> = dict.get_item("seconds")?.map(|value| value.extract()).transpose()?;
    Ok(Notes {
        inputs: inputs.unwrap_or_default(),
        place: place.flatten(),
        seconds: seconds.flatten().filter(|seconds| seconds.is_finite()),
    })
}
