//! Dumps of a training run: what to collect ([`config`]), what records are called ([`names`]), which of them
//! are kept ([`filter`]), how they get to disk ([`write`]) and back ([`read`]). Knows nothing of Python.

pub mod config;
pub mod filter;
pub mod names;
pub mod read;
mod words;
pub mod write;
