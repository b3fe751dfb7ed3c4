//! What differs without being an error: two runs that agree in all numbers and not in these are not identical.

use crate::side::Leaf;

/// What is different about two values whose numbers agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsideKind {
    /// An argument that is no tensor.
    Arguments,
    /// The dtype, of the same kind of numbers.
    Dtype,
    /// Whether autograd follows it.
    RequiresGrad,
    /// Anything else that was recorded.
    Fields,
    /// The elements of a result that nobody computed, or that tells of the machine.
    NotJudged,
    /// The backward of a function that each side computes in a way of its own; gradients after it were compared.
    OtherBackward,
}

impl AsideKind {
    /// All of them, in the order of reports.
    pub const ALL: [AsideKind; 6] = [
        AsideKind::Arguments,
        AsideKind::Dtype,
        AsideKind::RequiresGrad,
        AsideKind::Fields,
        AsideKind::NotJudged,
        AsideKind::OtherBackward,
    ];

    pub(super) fn of(target: &Leaf, golden: &Leaf) -> AsideKind {
        if !target.is_tensor() {
            AsideKind::Arguments
        } else if target.dtype != golden.dtype {
            // One type has other names under other frameworks, which is a difference of what was recorded, too.
            AsideKind::Dtype
        } else if target.requires_grad != golden.requires_grad {
            AsideKind::RequiresGrad
        } else {
            AsideKind::Fields
        }
    }

    /// The name in verdict.json.
    pub fn as_str(self) -> &'static str {
        match self {
            AsideKind::Arguments => "arguments",
            AsideKind::Dtype => "dtype",
            AsideKind::RequiresGrad => "requires_grad",
            AsideKind::Fields => "fields",
            AsideKind::NotJudged => "not_judged",
            AsideKind::OtherBackward => "other_backward",
        }
    }

    /// What so many of them are, for people.
    pub fn describe(self, count: usize) -> String {
        let (one, many) = match self {
            AsideKind::Arguments => ("argument differs", "arguments differ"),
            AsideKind::Dtype => ("value has another dtype", "values have another dtype"),
            AsideKind::RequiresGrad => ("value differs in requires_grad", "values differ in requires_grad"),
            AsideKind::Fields => {
                ("value or record differs in other fields", "values or records differ in other fields")
            }
            AsideKind::NotJudged => ("value that is not judged differs", "values that are not judged differ"),
            AsideKind::OtherBackward => (
                "function's backward has other values on each side and was judged by the gradients after it",
                "functions' backward have other values on each side and were judged by the gradients after them",
            ),
        };
        format!("{count} {}", if count == 1 { one } else { many })
    }
}

/// How often values differ in something that is no number, and where first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asides([(usize, String); AsideKind::ALL.len()]);

impl Asides {
    pub(super) fn add(&mut self, kind: AsideKind, name: impl FnOnce() -> String) {
        let (count, first) = &mut self.0[kind as usize];
        if *count == 0 {
            *first = name();
        }
        *count += 1;
    }

    /// Takes in what was found elsewhere.
    pub fn extend(&mut self, other: &Asides) {
        for ((count, first), (more, other_first)) in self.0.iter_mut().zip(&other.0) {
            if *count == 0 {
                first.clone_from(other_first);
            }
            *count += more;
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.found().next().is_none()
    }

    /// How many there are of a kind.
    pub fn count(&self, kind: AsideKind) -> usize {
        self.0[kind as usize].0
    }

    /// Kinds there are some of, with their number and the first name.
    pub fn found(&self) -> impl Iterator<Item = (AsideKind, usize, &str)> {
        AsideKind::ALL
            .into_iter()
            .map(|kind| (kind, self.0[kind as usize].0, &*self.0[kind as usize].1))
            .filter(|(_, count, _)| *count > 0)
    }
}
