//! Where two sequences of tokens part.

use msprobe_tensor::files::TensorFile;
use msprobe_tensor::{Number, TensorView, statistics};

use super::{ArrayPlace, Row};

/// The first token of a sample in which two runs differ.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Parting {
    /// Where the pair was saved.
    pub(super) place: ArrayPlace,
    /// Which sample: the element of a list, or the row of a batch.
    pub(super) sample: i64,
    /// Position of the token within the sample.
    pub(super) token: usize,
    /// The tokens there; a sequence that has ended has none.
    pub(super) tokens: [Option<Number>; 2],
    /// Lengths of both sequences.
    pub(super) lengths: [usize; 2],
}

impl Parting {
    /// `sample 3 parts at token 17: 1042 against 88`
    pub(super) fn text(&self) -> String {
        let [first, second] = self.tokens;
        let (sample, token) = (self.sample, self.token);
        let ended = |run: usize| {
            format!("sample {sample} ends at token {token} in the {} run", ["first", "second"][run])
        };
        match (first, second) {
            (Some(first), Some(second)) => {
                format!("sample {sample} parts at token {token}: {} against {}", word(first), word(second))
            }
            (None, Some(second)) => format!("{} and goes on with {} in the second", ended(0), word(second)),
            (Some(first), None) => format!("{} and goes on with {} in the first", ended(1), word(first)),
            (None, None) => format!("sample {sample} has another shape"),
        }
    }
}

/// A token is a whole number, also where it was stored as a float.
pub(super) fn word(token: Number) -> String {
    match token {
        Number::Bool(value) => u8::from(value).to_string(),
        Number::Int(value) => value.to_string(),
        Number::Float(value) => value.to_string(),
    }
}

/// Where the sequences of a pair part. `None` if they do not, or if their shapes do not allow to say.
pub(super) fn parting(row: &Row) -> Option<Parting> {
    let [first, second] = &row.shapes;
    if first.len() != second.len() || first.is_empty() {
        return None;
    }
    let at = match row.first_difference {
        Some(index) => unravel(usize::try_from(index).ok()?, &row.compared)?,
        None => beyond(first, second)?,
    };
    let (&token, leading) = at.split_last()?;
    let rows = &row.compared[..leading.len()];
    let sample = if leading.is_empty() { row.place.id } else { i64::try_from(ravel(leading, rows)?).ok()? };
    let length = |shape: &[usize]| shape.last().copied().unwrap_or(0);
    Some(Parting {
        place: row.place,
        sample,
        token,
        tokens: [element(row, 0, &at), element(row, 1, &at)],
        lengths: [length(first), length(second)],
    })
}

/// The first element that only one of two shapes has.
fn beyond(first: &[usize], second: &[usize]) -> Option<Vec<usize>> {
    let differs = first.iter().zip(second).rposition(|(a, b)| a != b)?;
    let mut at = vec![0; first.len()];
    at[differs] = first[differs].min(second[differs]);
    Some(at)
}

fn element(row: &Row, run: usize, at: &[usize]) -> Option<Number> {
    let file = TensorFile::open_found(&row.files[run]).ok()?;
    let view: TensorView<'_> = file.view(0).ok()?;
    statistics(&view.element(at)?).max
}

/// Indices of the element at a row-major position.
fn unravel(position: usize, shape: &[usize]) -> Option<Vec<usize>> {
    let mut rest = position;
    let mut at = vec![0; shape.len()];
    for (index, &size) in at.iter_mut().zip(shape).rev() {
        *index = rest.checked_rem(size)?;
        rest /= size;
    }
    (rest == 0).then_some(at)
}

fn ravel(at: &[usize], shape: &[usize]) -> Option<usize> {
    at.iter().zip(shape).try_fold(0usize, |flat, (&index, &size)| flat.checked_mul(size)?.checked_add(index))
}
