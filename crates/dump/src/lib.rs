//! Dumps of a training run: what to collect ([`config`]) and what records are called ([`names`]).

pub mod config;
pub mod names;
mod words;
