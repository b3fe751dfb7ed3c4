//! Names of records, whatever they are of.

use std::fmt;

use super::{ApiName, Direction, ModuleName, ModulePass, parse_index};

/// The last segment of a saved variable's name.
const DEBUG: &str = "debug";

/// A variable a script saved: `x.0.debug`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SavedName<'a> {
    name: &'a str,
    is_gradient: bool,
    index: u64,
}

impl<'a> SavedName<'a> {
    /// The variable a script called `name`, when it saved it for the `index`th time in a step.
    pub fn new(name: &'a str, index: u64) -> SavedName<'a> {
        SavedName { name, is_gradient: false, index }
    }

    /// A name as it is written; nothing if it is none of a saved variable. That of a gradient reads as one of a variable
    /// called `x_grad`: nobody can tell them apart.
    pub fn parse(text: &'a str) -> Option<SavedName<'a>> {
        let (rest, last) = text.rsplit_once('.')?;
        let (name, index) = rest.rsplit_once('.').filter(|_| last == DEBUG)?;
        Some(SavedName::new(name, parse_index(index)?))
    }

    /// The record of its gradient: `x_grad.0.debug`.
    #[must_use]
    pub fn gradient(self) -> SavedName<'a> {
        SavedName { is_gradient: true, ..self }
    }

    /// What the script called it, with `_grad` for gradients that were read.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// How often it was saved before in the step.
    pub fn index(&self) -> u64 {
        self.index
    }
}

impl fmt::Display for SavedName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gradient = if self.is_gradient { "_grad" } else { "" };
        write!(f, "{}{gradient}.{}.{DEBUG}", self.name, self.index)
    }
}

/// The name of any record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordName<'a> {
    /// Of an API call.
    Api(ApiName<'a>),
    /// Of a module.
    Module(ModuleName<'a>),
    /// Of a saved variable.
    Saved(SavedName<'a>),
    /// Of none of these forms: its text.
    Other(&'a str),
}

impl<'a> RecordName<'a> {
    /// A name as it is written. No text is of two forms: they end differently.
    pub fn parse(text: &'a str) -> RecordName<'a> {
        let api = || ApiName::parse(text).map(RecordName::Api);
        let module = || ModuleName::parse(text).map(RecordName::Module);
        let saved = || SavedName::parse(text).map(RecordName::Saved);
        api().or_else(module).or_else(saved).unwrap_or(RecordName::Other(text))
    }

    /// Forward or backward, where it says so. Of another form, the last segment that is one of these words.
    pub fn direction(&self) -> Option<Direction> {
        match self {
            RecordName::Api(api) => Some(api.direction()),
            RecordName::Module(module) => Some(module.pass().direction()),
            RecordName::Saved(_) => None,
            RecordName::Other(text) => text.rsplit('.').find_map(Direction::from_word),
        }
    }

    /// What is called or saved, without number and direction: `Torch.exp`, `Module.fc.Linear`, `x`. Of another form, its
    /// first two segments.
    pub fn stem(&self) -> &'a str {
        match self {
            RecordName::Api(api) => api.stem(),
            RecordName::Module(module) => module.stem(),
            RecordName::Saved(saved) => saved.name(),
            RecordName::Other(text) => {
                text.match_indices('.').nth(1).map_or(*text, |(second, _)| &text[..second])
            }
        }
    }

    /// The function of an API call: `exp` of `Torch.exp.0.forward`. Of another form, its second segment; nothing of modules and
    /// variables.
    pub fn function(&self) -> &'a str {
        match self {
            RecordName::Api(api) => api.api(),
            RecordName::Module(_) | RecordName::Saved(_) => "",
            RecordName::Other(text) => text.split('.').nth(1).unwrap_or_default(),
        }
    }

    /// What is called: the function of an API, the class of a module. Of another form, the last segment; nothing of variables.
    pub fn operation(&self) -> &'a str {
        match self {
            RecordName::Api(api) => api.api(),
            RecordName::Module(module) => module.class(),
            RecordName::Saved(_) => "",
            RecordName::Other(text) => text.rsplit('.').next().unwrap_or_default(),
        }
    }

    /// The number of the call, if it has one.
    pub fn index(&self) -> Option<u64> {
        match self {
            RecordName::Api(api) => Some(api.index()),
            RecordName::Module(module) => module.pass().index(),
            RecordName::Saved(saved) => Some(saved.index()),
            RecordName::Other(_) => None,
        }
    }

    /// The module whose record it is.
    pub fn module(&self) -> Option<ModuleName<'a>> {
        match self {
            RecordName::Module(module) => Some(*module),
            _ => None,
        }
    }

    /// Whether it holds the gradients of a module's parameters.
    pub fn is_parameter_gradient(&self) -> bool {
        matches!(self, RecordName::Module(module) if matches!(module.pass(), ModulePass::ParametersGrad(_)))
    }

    /// The same call in the forward pass, if this is a backward call.
    pub fn forward(&self) -> Option<RecordName<'a>> {
        match self {
            RecordName::Api(api) if api.direction() == Direction::Backward => {
                Some(RecordName::Api(api.with_direction(Direction::Forward)))
            }
            RecordName::Module(module) => match module.pass() {
                ModulePass::Backward(index) => {
                    Some(RecordName::Module(module.with_pass(ModulePass::Forward(index))))
                }
                _ => None,
            },
            _ => None,
        }
    }
}

impl fmt::Display for RecordName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordName::Api(name) => name.fmt(f),
            RecordName::Module(name) => name.fmt(f),
            RecordName::Saved(name) => name.fmt(f),
            RecordName::Other(text) => f.write_str(text),
        }
    }
}
