//! Reading dumps in bounded memory: one member of a file at a time.
//!
//! Accepted is what Python's `json` writes, `NaN` and `Infinity` included. A key that is repeated counts as it does
//! there: its last value, at the place of the first. That is left to those who keep what they read.

mod json;
mod members;
mod pull;
mod strays;
#[cfg(test)]
mod tests;
mod text;

use std::io;
use std::path::PathBuf;

pub use self::json::Json;
pub use self::members::{Member, MemberStart, Members, Pulled};
pub use self::pull::{Pull, PullError, Shape};
pub use self::strays::{DUMP_FILES, holds_dump};

/// What some editors put before the text of a file.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Why a JSON file could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {kind}", path.display())]
pub struct ReadError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub kind: ReadErrorKind,
}

/// What is wrong with a JSON file.
#[derive(Debug, thiserror::Error)]
pub enum ReadErrorKind {
    /// The disk, or the file system.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Not JSON.
    #[error("{what} at byte {offset}")]
    Syntax {
        /// What stands there, or should.
        what: &'static str,
        /// Where.
        offset: u64,
    },
}
