//! Dumps of a training run: what to collect ([`config`]), what records are called ([`names`]), which of them
//! are kept ([`filter`]), and how they get to disk ([`write`]). Knows nothing of Python, and reads no file by itself
//! yet.

pub mod config;
pub mod filter;
pub mod names;
mod words;
pub mod write;
