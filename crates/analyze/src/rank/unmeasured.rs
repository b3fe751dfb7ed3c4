//! Values of which nobody can say whether they are finite.

use crate::rules::{Rule, Rules};

/// Values of a record of which nobody can say whether they are finite.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unmeasured {
    /// How many.
    pub count: u64,
    /// The first: `Torch.exp.0.forward output 0: it has no Max and Min`.
    pub first: Option<String>,
    /// Tensors without the name of a file, which a dump of tensors should have.
    pub without_file: u64,
    /// The first of them.
    pub first_without_file: Option<String>,
    /// Tensors whose mean or norm is infinite only because their elements are so large that a sum of them overflows.
    pub overflowed_sums: u64,
    /// The first of them.
    pub first_overflowed_sum: Option<String>,
}

impl Unmeasured {
    /// Notes one value.
    pub(super) fn note(&mut self, what: impl FnOnce() -> String) {
        self.count += 1;
        self.first.get_or_insert_with(what);
    }

    /// Notes a tensor without a file.
    pub(super) fn note_without_file(&mut self, what: impl FnOnce() -> String) {
        self.without_file += 1;
        self.first_without_file.get_or_insert_with(what);
    }

    /// Notes a tensor whose sums overflowed.
    pub(super) fn note_overflowed_sum(&mut self, what: impl FnOnce() -> String) {
        self.overflowed_sums += 1;
        self.first_overflowed_sum.get_or_insert_with(what);
    }

    /// How many count under these rules in a dump that should have files, or not; and the first of them.
    pub(super) fn counted(&self, has_files: bool, rules: &Rules) -> (u64, Option<&str>) {
        let mut count = self.count;
        let mut first = self.first.as_deref();
        if has_files {
            count += self.without_file;
            first = first.or(self.first_without_file.as_deref());
        }
        if !rules.has(Rule::NormOverflow) {
            count += self.overflowed_sums;
            first = first.or(self.first_overflowed_sum.as_deref());
        }
        (count, first)
    }
}
