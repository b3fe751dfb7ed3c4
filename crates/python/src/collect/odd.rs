//! Measurements of tensors that are sparse, nested, quantised or wrapped: measured by what the adapter says they stand for.

use msprobe_collect::{ElementFigures, Encoder, Measured};
use pyo3::prelude::*;

use super::adapter::{Form, KnownDType};
use super::session::Session;
use super::tensors::Reading;

/// What was measured, or will be.
pub(crate) enum OddFigures {
    Known(Box<Measured>),
    Deferred(usize),
}

impl OddFigures {
    pub(crate) fn as_figures(&self) -> ElementFigures<'_> {
        match self {
            OddFigures::Known(measured) => ElementFigures::Known(measured),
            OddFigures::Deferred(ticket) => ElementFigures::Deferred(*ticket),
        }
    }
}

/// Such a tensor, and what is asked for besides statistics.
pub(crate) struct OddTensor<'a, 'py> {
    pub(crate) form: &'a Form<'py>,
    /// A file.
    pub(crate) saves: bool,
    /// A checksum.
    pub(crate) checks: bool,
}

impl OddTensor<'_, '_> {
    /// Measures it and writes its file. The figures, and the dtype they are of; `None` if that cannot be.
    pub(crate) fn measure(
        &self,
        session: &Session,
        encoder: &mut Encoder,
        py: Python<'_>,
    ) -> PyResult<Option<(OddFigures, KnownDType)>> {
        let Some(plain) = &self.form.plain else { return Ok(None) };
        let tensor = match session.read(plain, self.saves)? {
            Reading::Host(tensor) => tensor,
            // Zeros that are not stored come on the host only, so nothing is missing later.
            Reading::Deferred { tensor, ticket } => {
                return Ok(Some((OddFigures::Deferred(ticket), tensor.dtype)));
            }
            Reading::Odd => return Ok(None),
        };
        let mut measured = session.measure(plain, &tensor)?;
        if let Some(dtype) = tensor.dtype.dtype {
            measured = measured.with_zeros(self.form.zeros, dtype);
        }
        if self.form.too_large.is_some() {
            measured.crc32 = None;
        } else {
            let whole = match &self.form.whole {
                Some(whole) => session.read(whole, true)?,
                None => Reading::Odd,
            };
            let whole = if let Reading::Host(whole) = &whole { whole } else { &tensor };
            if self.checks && self.form.whole.is_some() {
                measured.crc32 = Some(whole.checksum(py)?);
            }
            if self.saves {
                let file = session.save(py, &encoder.tensor_file(), whole)?;
                encoder.note_file(file);
            }
        }
        Ok(Some((OddFigures::Known(Box::new(measured)), tensor.dtype)))
    }
}
