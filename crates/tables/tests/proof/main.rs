//! "Identical" is a proof: whatever is changed in one place of one side, the answer is another one, both ways round.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its helpers too")]

mod checksums;
mod layout;
mod mutation;
mod real_data;
mod sides;
mod statistics;
mod words;
