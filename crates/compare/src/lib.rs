//! Two sides next to each other: pairing, metrics, verdicts.

pub mod console;
pub mod error;
pub mod output;
pub mod tensor_pair;
