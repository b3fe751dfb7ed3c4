//! Dumps of a training run: what records are called ([`names`]).

pub mod names;
mod words;
