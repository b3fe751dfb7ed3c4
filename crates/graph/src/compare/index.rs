//! How bad a node is, as one number.

use msprobe_compare::Mode;
use msprobe_compare::metrics::TensorComparison;
use msprobe_compare::side::{Leaf, Role, Scalar};
use msprobe_tables::newest::Grade;
use msprobe_tables::table::Difference;

use super::{Task, ValuePair};
use crate::names::Generation;

/// Functions whose results are not defined.
const NOT_JUDGED: [&str; 6] =
    ["empty", "empty_like", "empty_with_format", "new_empty_strided", "new_empty", "empty_strided"];

/// A number from 0 to 1. The reference tells whole numbers from others, and its files show that.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Index {
    /// 0 or 1.
    Whole(u8),
    /// A share.
    Share(f64),
}

impl Index {
    /// The number.
    pub fn number(self) -> f64 {
        match self {
            Index::Whole(number) => number.into(),
            Index::Share(number) => number,
        }
    }

    /// The index of a grade.
    pub fn of_grade(grade: Grade) -> Index {
        match grade {
            Grade::Pass => Index::Whole(0),
            Grade::Warning => Index::Share(0.5),
            Grade::Error => Index::Whole(1),
        }
    }

    /// The larger one; the first of two that are equal.
    fn or_larger(self, other: Index) -> Index {
        if other.number() > self.number() { other } else { self }
    }

    /// The smaller one; the first of two that are equal.
    fn or_smaller(self, other: Index) -> Index {
        if other.number() < self.number() { other } else { self }
    }
}

/// As Python writes it.
impl std::fmt::Display for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Index::Whole(number) => number.fmt(f),
            Index::Share(number) => f.write_str(&msprobe_dump::python_text::float_repr(*number)),
        }
    }
}

/// The best index there is: of what is not judged.
pub(super) fn best(mode: Mode, generation: Generation) -> Index {
    Index::Whole(u8::from(mode == Mode::Md5 && generation == Generation::First))
}

/// Whether nothing is to be said about a function.
pub(super) fn is_not_judged(name: &str) -> bool {
    name.split('.').nth(1).is_some_and(|function| NOT_JUDGED.contains(&function))
}

/// That of functions put together: the worst of them. One that has none counts as good.
pub fn worst_of_collection(
    task: Task,
    generation: Generation,
    indexes: impl Iterator<Item = Index>,
) -> Index {
    if task.has_checksums() && generation == Generation::First {
        return indexes.fold(Index::Whole(1), Index::or_smaller);
    }
    indexes.fold(Index::Whole(0), Index::or_larger)
}

/// Whether the largest or smallest value is NaN or an infinity.
fn is_not_finite(leaf: &Leaf) -> bool {
    leaf.statistics.iter().take(2).any(|it| matches!(it, Scalar::Float(value) if !value.is_finite()))
}

/// The first generation, by statistics: the largest relative error of a result.
pub(super) fn by_statistics(pairs: &[ValuePair<'_>], differences: &[Option<[Difference; 4]>]) -> Index {
    let mut index = Index::Whole(0);
    for (pair, differences) in pairs.iter().zip(differences) {
        if pair.target.leaf.role != Role::Output || pair.target.leaf.statistics[0] == Scalar::Null {
            continue;
        }
        for difference in differences.iter().flatten() {
            if let Difference::Number(_, Some(percent)) = difference {
                index = index.or_larger(Index::Share(percent / 100.0));
            }
        }
        if is_not_finite(&pair.target.leaf) {
            index = Index::Whole(1);
        }
    }
    if index.number() > 1.0 { Index::Whole(1) } else { index }
}

/// How much of a call's elements are close, at worst.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Close {
    Unknown,
    NotFinite,
    Share(f64),
}

/// The first generation, by real data: how many elements fewer are close behind the call than before it.
pub(super) fn by_tensors(pairs: &[ValuePair<'_>], tensors: &[Option<TensorComparison>]) -> Index {
    let worst = |outputs: bool| {
        let mut worst = Close::Unknown;
        for (pair, tensor) in pairs.iter().zip(tensors) {
            let leaf = &pair.target.leaf;
            let is_scalar_tensor = leaf.is_tensor() && leaf.shape.is_scalar();
            if (leaf.role == Role::Output) != outputs
                || leaf.statistics[0] == Scalar::Null
                || is_scalar_tensor
            {
                continue;
            }
            if is_not_finite(leaf) {
                return Close::NotFinite;
            }
            if let Some(share) = tensor.as_ref().and_then(|it| it.metrics.within_thousandth.number()) {
                worst = match worst {
                    Close::Share(known) => Close::Share(known.min(share)),
                    _ => Close::Share(share.min(1.0)),
                };
            }
        }
        worst
    };
    match (worst(false), worst(true)) {
        (_, Close::NotFinite) => Index::Whole(1),
        (Close::Share(before), Close::Share(behind)) => match before - behind {
            less if less < 0.0 => Index::Whole(0),
            more if more > 1.0 => Index::Whole(1),
            change => Index::Share(change),
        },
        _ => Index::Whole(0),
    }
}
