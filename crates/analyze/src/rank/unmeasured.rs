//! Values of which nobody can say whether they are finite.

use crate::rules::{Rule, Rules};

/// So many things, and the first of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Noted {
    /// How many.
    pub count: u64,
    /// The first: `Torch.exp.0.forward: output 0: there is no file x.pt`.
    pub first: Option<String>,
}

impl Noted {
    /// Notes one more.
    pub(super) fn note(&mut self, what: impl FnOnce() -> String) {
        self.count += 1;
        self.first.get_or_insert_with(what);
    }
}

/// Values of a record of which nobody can say whether they are finite.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unmeasured {
    /// Those that were not measured, or not as it can be.
    pub values: Noted,
    /// Tensors without the name of a file, which a dump of tensors should have.
    pub without_file: Noted,
    /// Tensors whose mean or norm is infinite only because their elements are so large that a sum of them overflows.
    pub overflowed_sums: Noted,
}

impl Unmeasured {
    /// What counts under these rules in a dump that should have files, or not.
    pub(super) fn counted(&self, has_files: bool, rules: &Rules) -> impl Iterator<Item = &Noted> {
        let kinds = [
            (&self.values, true),
            (&self.without_file, has_files),
            (&self.overflowed_sums, !rules.has(Rule::NormOverflow)),
        ];
        kinds.into_iter().filter(|(_, counts)| *counts).map(|(noted, _)| noted)
    }
}
