//! Two sides next to each other: pairing, metrics, verdicts.

pub mod console;
pub mod error;
pub mod mapping;
pub mod matching;
pub mod output;
pub mod python_text;
pub mod side;
