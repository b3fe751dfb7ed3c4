//! Names of records, whatever they are of.

use std::fmt;
use std::str::FromStr;

use super::{ApiName, ModuleName, NameError, parse_index};

/// The last segment of a saved variable's name.
pub(super) const DEBUG: &str = "debug";

/// A variable a script saved: `x.0.debug`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SavedName {
    name: String,
    index: u64,
}

impl SavedName {
    /// The variable a script called `name`, when it saved it for the `index`th time in a step.
    pub fn new(name: impl Into<String>, index: u64) -> SavedName {
        SavedName { name: name.into(), index }
    }

    /// The record of its gradient: `x_grad.0.debug`. That of a variable called `x_grad` has the same name.
    #[must_use]
    pub fn gradient(&self) -> SavedName {
        SavedName { name: format!("{}_grad", self.name), index: self.index }
    }

    /// What the script called it, with `_grad` for gradients.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How often it was saved before in the step.
    pub fn index(&self) -> u64 {
        self.index
    }
}

impl fmt::Display for SavedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{DEBUG}", self.name, self.index)
    }
}

impl FromStr for SavedName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<SavedName, NameError> {
        let parts = || {
            let (rest, last) = text.rsplit_once('.')?;
            let (name, index) = rest.rsplit_once('.')?;
            parse_index(index).filter(|_| last == DEBUG).map(|index| SavedName::new(name, index))
        };
        parts().ok_or_else(|| NameError {
            text: text.to_owned(),
            what: "the name of a saved variable",
            form: "name.0.debug",
        })
    }
}

/// The name of any record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RecordName {
    /// Of an API call.
    Api(ApiName),
    /// Of a module.
    Module(ModuleName),
    /// Of a saved variable.
    Saved(SavedName),
}

impl fmt::Display for RecordName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordName::Api(name) => name.fmt(f),
            RecordName::Module(name) => name.fmt(f),
            RecordName::Saved(name) => name.fmt(f),
        }
    }
}

impl FromStr for RecordName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<RecordName, NameError> {
        // No text is of two kinds: they end differently.
        let api = || text.parse().map(RecordName::Api);
        let module = || text.parse().map(RecordName::Module);
        let saved = || text.parse().map(RecordName::Saved);
        api().or_else(|_| module()).or_else(|_| saved()).map_err(|_: NameError| NameError {
            text: text.to_owned(),
            what: "the name of a record",
            form: "Prefix.api.0.forward, Module.name.Class.forward.0 or name.0.debug",
        })
    }
}

impl From<ApiName> for RecordName {
    fn from(name: ApiName) -> RecordName {
        RecordName::Api(name)
    }
}

impl From<ModuleName> for RecordName {
    fn from(name: ModuleName) -> RecordName {
        RecordName::Module(name)
    }
}

impl From<SavedName> for RecordName {
    fn from(name: SavedName) -> RecordName {
        RecordName::Saved(name)
    }
}
