//! What records, tensor files and directories of a dump are called.
//!
//! Every name reads back from its text. The forms of records differ in their last segment (`forward`, a number,
//! `debug`), so a name is of one kind only.

mod api;
mod functions;
mod module;
mod place;
mod record;
mod tensor_file;
#[cfg(test)]
mod tests;

pub use self::api::{ApiName, SCOPE_PREFIXES, is_api_scope_end};
pub use self::functions::{Filling, filling, returns_unwritten_memory};
pub(crate) use self::module::is_of_module;
pub use self::module::{ModuleKind, ModuleName, ModulePass, is_module_scope_end};
pub use self::place::{Rank, Step};
pub use self::record::{RecordName, SavedName};
pub use self::tensor_file::{Category, TensorFileName, TensorFormat, TensorPlace};
use crate::words::words;

words! {
    /// A pass through the graph.
    Direction {
        /// From inputs to the loss.
        Forward = "forward",
        /// From the loss to gradients.
        Backward = "backward",
    }
}

/// A text that is not the name it should be, or parts that make no name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {what}, which has the form {form}")]
pub struct NameError {
    /// The text, or the text the parts would make.
    pub text: String,
    /// What it should be.
    pub what: &'static str,
    /// How such a name looks.
    pub form: &'static str,
}

/// A call number as it is written: no sign, no leading zero.
fn parse_index(text: &str) -> Option<u64> {
    let canonical = text == "0" || (all_digits(text) && !text.starts_with('0'));
    canonical.then(|| text.parse().ok())?
}

/// Whether a text is a number in the wider sense of scope ends, leading zeros included.
fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
