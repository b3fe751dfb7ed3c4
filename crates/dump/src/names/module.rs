//! Names of module calls.

use std::fmt;

use super::{Direction, all_digits, parse_index};
use crate::words::words;

words! {
    /// What the framework calls a module.
    ModuleKind {
        /// A module.
        Module = "Module",
        /// A cell.
        Cell = "Cell",
    }
}

/// The word for gradients of parameters in names.
pub(super) const PARAMETERS_GRAD: &str = "parameters_grad";

/// The paths around a path of a module, innermost first: `Module.a` and `Module` around `Module.a.b`.
pub fn enclosing_paths(path: &str) -> impl Iterator<Item = &str> {
    path.rmatch_indices('.').map(|(end, _)| &path[..end])
}

/// Whether a name starts like one of a module.
pub fn is_of_module(name: &str) -> bool {
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

    /// Forward or backward; gradients of parameters are of the backward pass.
    pub fn direction(self) -> Direction {
        match self {
            ModulePass::Forward(_) => Direction::Forward,
            ModulePass::Backward(_) | ModulePass::ParametersGrad(_) => Direction::Backward,
        }
    }

    /// The number of the call, if it has one.
    pub fn index(self) -> Option<u64> {
        match self {
            ModulePass::Forward(index) | ModulePass::Backward(index) => Some(index),
            ModulePass::ParametersGrad(index) => index,
        }
    }
}

impl fmt::Display for ModulePass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModulePass::Forward(index) => write!(f, "{}.{index}", Direction::Forward.as_str()),
            ModulePass::Backward(index) => write!(f, "{}.{index}", Direction::Backward.as_str()),
            ModulePass::ParametersGrad(None) => f.write_str(PARAMETERS_GRAD),
            ModulePass::ParametersGrad(Some(index)) => write!(f, "{PARAMETERS_GRAD}.{index}"),
        }
    }
}

/// One record of a module: `Module.layers.0.fc1.Linear.forward.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ModuleName<'a> {
    stem: &'a str,
    pass: ModulePass,
}

impl<'a> ModuleName<'a> {
    /// The name of a record of the module `stem`: `Module.layers.0.fc1.Linear`.
    pub fn new(stem: &'a str, pass: ModulePass) -> ModuleName<'a> {
        ModuleName { stem, pass }
    }

    /// A name as it is written; nothing if it is none of a module's record.
    pub fn parse(text: &'a str) -> Option<ModuleName<'a>> {
        let (kind, _) = text.split_once('.')?;
        ModuleKind::from_word(kind)?;
        let (stem, pass) = split_pass(text)?;
        let name = ModuleName { stem, pass };
        (!name.qualified().is_empty() && !name.class().is_empty()).then_some(name)
    }

    /// The module without the pass: `Module.layers.0.fc1.Linear`.
    pub fn stem(&self) -> &'a str {
        self.stem
    }

    /// What the framework calls it.
    pub fn kind(&self) -> ModuleKind {
        let kind = self.stem.split_once('.').and_then(|(kind, _)| ModuleKind::from_word(kind));
        kind.unwrap_or(ModuleKind::Module)
    }

    /// The module without its class: `Module.layers.0.fc1`. Modules inside of it begin with it, and a dot.
    pub fn path(&self) -> &'a str {
        self.stem.rsplit_once('.').map_or(self.stem, |(path, _)| path)
    }

    /// The path below the model, preceded by the model's number where there is a list of models.
    pub fn qualified(&self) -> &'a str {
        self.path_and_class().0
    }

    /// The class; its name has no dots.
    pub fn class(&self) -> &'a str {
        self.path_and_class().1
    }

    fn path_and_class(&self) -> (&'a str, &'a str) {
        let below = self.stem.split_once('.').map_or("", |(_, below)| below);
        below.rsplit_once('.').unwrap_or(("", below))
    }

    /// Which record of the module it is.
    pub fn pass(&self) -> ModulePass {
        self.pass
    }

    /// Another record of the same module.
    #[must_use]
    pub fn with_pass(self, pass: ModulePass) -> ModuleName<'a> {
        ModuleName { pass, ..self }
    }
}

impl fmt::Display for ModuleName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.stem, self.pass)
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
