//! The seam to a framework: what it calls its things in a dump. All else that is particular to one is its adapter's.

use msprobe_dump::names::TensorFormat;

/// The words of a framework.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Framework {
    /// Its name in the head of the JSON files.
    pub name: String,
    /// The type of a tensor in records.
    pub tensor_type: String,
    /// The type of the sizes of a tensor, where it has one of its own.
    pub size_type: String,
    /// The format of tensor files.
    pub tensor_format: TensorFormat,
}
