//! Why a comparison cannot be made. Each kind has the number scripts know it by.

use crate::console::Console;

/// The numbers users test for, as exceptions of the Python functions carry them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Code {
    /// JSON, or names of key data, that cannot be read; scripts get a `RuntimeError`.
    BrokenJson = 0,
    /// A path that is missing or of the wrong kind.
    InvalidPath = 1,
    /// A path that does not exist or may not be used.
    IllegalPath = 3,
    /// A file that cannot be understood.
    InvalidFile = 6,
    /// Dump data of the wrong structure.
    InvalidData = 10,
    /// An argument of the wrong type or value.
    InvalidParam = 11,
    /// A dump file that is empty.
    InvalidDumpFile = 13,
    /// Two inputs that cannot be compared with one another.
    InvalidCompareMode = 17,
    /// A task that is missing, unknown, or different on both sides.
    InvalidTask = 20,
    /// A value of the wrong type.
    InvalidObjectType = 22,
    /// Values nested too deeply.
    RecursionLimit = 24,
    /// Tables that cannot be merged.
    MergeCompareResult = 33,
    /// A record name without a direction.
    InvalidApiName = 36,
}

/// A comparison that could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CompareError {
    /// Its number.
    pub code: Code,
    /// What is wrong, in the words users know.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Whether it was found before anything was compared.
    pub in_setup: bool,
}

impl CompareError {
    /// An error without a hint.
    pub fn new(code: Code, message: impl Into<String>) -> CompareError {
        CompareError { code, message: message.into(), hint: None, in_setup: false }
    }

    /// The same error, found before anything was compared.
    #[must_use]
    pub fn in_setup(mut self) -> CompareError {
        self.in_setup = true;
        self
    }

    /// Says what is wrong, as users of the tool know it.
    pub fn announce(&self, console: &dyn Console) {
        // For what cannot be read its own line was written already.
        if self.code != Code::BrokenJson {
            console.error(&self.message);
        }
        if self.in_setup {
            console.error("Compare failed. Please check the arguments and do it again!");
        }
    }

    /// The same error with something to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> CompareError {
        self.hint = Some(hint.into());
        self
    }
}
