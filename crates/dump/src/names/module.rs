//! Names of module calls.

use std::fmt;
use std::str::FromStr;

use super::{Direction, NameError, all_digits, parse_index};
use crate::words::words;

words! {
    /// What the framework calls a module.
    ModuleKind {
        /// PyTorch.
        Module = "Module",
        /// MindSpore.
        Cell = "Cell",
    }
}

/// The word for gradients of parameters in names.
pub(super) const PARAMETERS_GRAD: &str = "parameters_grad";

/// Whether a name starts like one of a module.
pub(crate) fn is_of_module(name: &str) -> bool {
    let kind = name.split_once('.').map_or(name, |(kind, _)| kind);
    ModuleKind::from_word(kind).is_some()
}

/// Whether a scope can start or end with a module of this name: `^(Cell|Module)\..*\.(forward|backward)\.\d+$`.
/// Wider than [`ModuleName`], which holds only names that calls have.
pub fn is_module_scope_end(name: &str) -> bool {
    let parts = || {
        let (_, rest) = name.split_once('.')?;
        let (rest, index) = rest.rsplit_once('.')?;
        let (_, direction) = rest.rsplit_once('.')?;
        Some((direction, index))
    };
    is_of_module(name)
        && !name.contains('\n')
        && parts()
            .is_some_and(|(direction, index)| Direction::from_word(direction).is_some() && all_digits(index))
}

/// Which record of a module it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ModulePass {
    /// A forward call, by its number from 0.
    Forward(u64),
    /// The backward pass of the forward call of that number.
    Backward(u64),
    /// Gradients of its parameters. The reference numbers them since 26.
    ParametersGrad(Option<u64>),
}

impl ModulePass {
    /// A numbered pass.
    pub fn of(direction: Direction, index: u64) -> ModulePass {
        match direction {
            Direction::Forward => ModulePass::Forward(index),
            Direction::Backward => ModulePass::Backward(index),
        }
    }
}

impl fmt::Display for ModulePass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModulePass::Forward(index) => write!(f, "{}.{index}", Direction::Forward),
            ModulePass::Backward(index) => write!(f, "{}.{index}", Direction::Backward),
            ModulePass::ParametersGrad(None) => f.write_str(PARAMETERS_GRAD),
            ModulePass::ParametersGrad(Some(index)) => write!(f, "{PARAMETERS_GRAD}.{index}"),
        }
    }
}

/// One record of a module: `Module.layers.0.fc1.Linear.forward.0`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ModuleName {
    kind: ModuleKind,
    qualified: String,
    class: String,
    pass: ModulePass,
}

impl ModuleName {
    /// A name from its parts. The qualified name is the path below the model, preceded by the model's number where
    /// there is a list of models; a class's name has no dots.
    pub fn new(
        kind: ModuleKind,
        qualified: impl Into<String>,
        class: impl Into<String>,
        pass: ModulePass,
    ) -> Result<ModuleName, NameError> {
        let name = ModuleName { kind, qualified: qualified.into(), class: class.into(), pass };
        if name.qualified.is_empty() || name.class.is_empty() || name.class.contains('.') {
            return Err(not_a_module(name.to_string()));
        }
        Ok(name)
    }

    /// What the framework calls it.
    pub fn kind(&self) -> ModuleKind {
        self.kind
    }

    /// The path below the model.
    pub fn qualified(&self) -> &str {
        &self.qualified
    }

    /// The class.
    pub fn class(&self) -> &str {
        &self.class
    }

    /// Which record of the module it is.
    pub fn pass(&self) -> ModulePass {
        self.pass
    }

    /// Another record of the same module.
    #[must_use]
    pub fn with_pass(mut self, pass: ModulePass) -> ModuleName {
        self.pass = pass;
        self
    }
}

fn not_a_module(text: String) -> NameError {
    NameError {
        text,
        what: "the name of a module's record",
        form: "Module.name.Class.forward.0 or Module.name.Class.parameters_grad",
    }
}

impl fmt::Display for ModuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}.{}", self.kind, self.qualified, self.class, self.pass)
    }
}

impl FromStr for ModuleName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<ModuleName, NameError> {
        let parts = || {
            let (kind, rest) = text.split_once('.')?;
            let kind = ModuleKind::from_word(kind)?;
            let (rest, pass) = split_pass(rest)?;
            let (qualified, class) = rest.rsplit_once('.')?;
            Some((kind, qualified, class, pass))
        };
        let (kind, qualified, class, pass) = parts().ok_or_else(|| not_a_module(text.to_owned()))?;
        ModuleName::new(kind, qualified, class, pass)
    }
}

fn split_pass(text: &str) -> Option<(&str, ModulePass)> {
    let (rest, last) = text.rsplit_once('.')?;
    if last == PARAMETERS_GRAD {
        return Some((rest, ModulePass::ParametersGrad(None)));
    }
    let index = parse_index(last)?;
    let (rest, word) = rest.rsplit_once('.')?;
    if word == PARAMETERS_GRAD {
        return Some((rest, ModulePass::ParametersGrad(Some(index))));
    }
    Direction::from_word(word).map(|direction| (rest, ModulePass::of(direction, index)))
}
