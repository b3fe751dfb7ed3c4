//! What was found of one API. Small enough to be sent from a process to another.

use serde::{Deserialize, Serialize};

use crate::status::Status;
use crate::verdict::Decision;

/// The rows of an API, and what a summary needs besides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// `Torch.exp.0`
    pub full_name: String,
    /// Of the forward run.
    pub forward: Status,
    /// Of the backward run.
    pub backward: Status,
    /// The row of the result.
    pub result: Vec<String>,
    /// The rows of the details.
    pub details: Vec<Vec<String>>,
    /// Why a direction was not run.
    pub reason: Option<String>,
    /// It took its process along: a crash, no end, no memory.
    pub has_failed: bool,
    /// Whether inputs and outputs are to be kept.
    pub wants_data_saved: bool,
    /// The output that is worst.
    pub worst: Option<Worst>,
    /// Errors against magnitudes, of outputs that are not good.
    pub pictures: Vec<Picture>,
    /// What only the runner knows.
    pub notes: Notes,
}

/// The worst output of an API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Worst {
    /// Warning or error.
    pub status: Status,
    /// The name of its row.
    pub row: String,
    /// Which test decided; none where there was nothing to measure.
    pub decision: Option<Decision>,
    /// The sentence of the row.
    pub text: String,
}

/// How large errors are where values are how large.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    /// The name of the row.
    pub row: String,
    /// Warning or error.
    pub status: Status,
    /// Exponent of two of the values, how many there are, and the largest error of them as text (it may be NaN). Zeros have no exponent.
    pub bins: Vec<(Option<i32>, u64, String)>,
}

impl Picture {
    pub(crate) fn of(row: String, status: Status, magnitudes: &[msprobe_tensor::Magnitude]) -> Picture {
        let bins = magnitudes.iter();
        let bins = bins.map(|bin| (bin.exponent, bin.count, bin.max_error.to_string())).collect();
        Picture { row, status, bins }
    }
}

/// What the runner knows of a call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Notes {
    /// Its inputs: `float16(3, 4)`.
    pub inputs: Vec<String>,
    /// The line of the user's code that called it.
    pub place: Option<String>,
    /// How long both runs took.
    pub seconds: Option<f64>,
}

impl Outcome {
    /// As one line.
    pub fn to_json(&self) -> String {
        // Nothing here can fail to be written: keys are texts and numbers finite.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// From such a line.
    pub fn from_json(text: &str) -> Result<Outcome, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The worse of both directions; a failure is an error.
    pub fn status(&self) -> Status {
        if self.has_failed { Status::Error } else { self.forward.max(self.backward) }
    }
}
