//! Two sides next to each other: pairing, metrics, verdicts.

pub mod advisor;
pub mod console;
pub mod error;
pub mod highlight;
pub mod matching;
pub mod newest;
pub mod output;
pub mod python_text;
pub mod side;
pub mod table;
pub mod tensor_pair;
