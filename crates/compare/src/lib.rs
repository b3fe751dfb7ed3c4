//! Two dumps next to each other: pairs, metrics, and the verdict about them.

pub mod metrics;
pub mod pairing;
pub mod side;
pub mod verdict;

pub use msprobe_dump::python_text;
use msprobe_report::{console, error};

/// What the two dumps have to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Real data: tensor files.
    All,
    /// Statistics.
    Summary,
    /// Checksums.
    Md5,
}
