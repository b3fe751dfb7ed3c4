//! Dumps of a training run: what to collect ([`config`]), what records are called ([`names`]) and which of them
//! are kept ([`filter`]). Knows nothing of Python, and reads no file by itself yet.

pub mod config;
pub mod filter;
pub mod names;
mod words;
