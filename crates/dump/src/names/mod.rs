//! What records and directories of a dump are called.
//!
//! Names are made and taken apart here and nowhere else. They borrow their text, so taking one apart costs no memory. Every
//! name reads back from its text: the forms of records differ in their last segment (`forward`, a number, `debug`), so a name
//! is of one kind only; a text of no known form stays what it is.

mod api;
mod functions;
mod module;
mod place;
mod record;
#[cfg(test)]
mod tests;

pub use self::api::{ApiName, is_api_scope_end, is_of_communication};
pub use self::functions::{Filling, filling, returns_unwritten_memory};
pub use self::module::{
    ModuleKind, ModuleName, ModulePass, enclosing_paths, is_module_scope_end, is_of_module,
};
pub use self::place::{NoNumber, Rank, Step, is_process_dir, key_data_dir, numbered_dir};
pub use self::record::{RecordName, SavedName};
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

words! {
    /// The part of a record a value belongs to, as tensor files call it.
    Category {
        /// Positional inputs; `input_args` in records.
        Input = "input",
        /// Keyword inputs; `input_kwargs` in records.
        Kwargs = "kwargs",
        /// Outputs.
        Output = "output",
        /// Parameters of a module.
        Parameters = "parameters",
    }
}

words! {
    /// The format of tensor files, by their extension.
    TensorFormat {
        /// A zip archive with a pickle.
        Pt = "pt",
        /// An array of numpy.
        Npy = "npy",
    }
}

/// The segments of any name, whatever they mean. Whoever needs one by its number follows a rule of the reference; what a
/// segment is of a record, [`RecordName`] says.
pub fn segments(name: &str) -> std::str::Split<'_, char> {
    name.split('.')
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
