//! A value as tables of the newest form show it.

use std::borrow::Cow;

use msprobe_compare::python_text::float_repr;
use msprobe_compare::side::{Leaf, Scalar, Side};

use super::difference::{Difference, difference};
use crate::table::python_bool;

/// Arguments of communication that name a rank.
const RANK_ARGUMENTS: [&str; 4] = ["src", "dst", "group_src", "group_dst"];

/// The cells of a value that are not always what was recorded.
pub(super) struct Shown<'a> {
    /// Text of the dtype cell.
    pub(super) dtype: &'a str,
    /// Largest, smallest, mean, L2 norm.
    pub(super) statistics: Cow<'a, [Scalar; 4]>,
}

impl<'a> Shown<'a> {
    /// Ranks in arguments of communication are names, not numbers: they are shown as text under a plain type.
    pub(super) fn of(side: &Side, leaf: &'a Leaf) -> Shown<'a> {
        let class =
            leaf.dtype.strip_prefix("<class '").and_then(|class| class.strip_suffix("'>")).filter(|_| {
                let argument = leaf.name.rsplit('.').next().unwrap_or_default();
                RANK_ARGUMENTS.contains(&argument)
                    && side.records.get(leaf.record as usize).is_some_and(|it| is_distributed(&it.name))
            });
        match class {
            Some(class) => Shown {
                dtype: class,
                statistics: Cow::Owned(
                    leaf.statistics.clone().map(|value| Scalar::Text(text_of(&value).into())),
                ),
            },
            None => Shown { dtype: &leaf.dtype, statistics: Cow::Borrowed(&leaf.statistics) },
        }
    }
}

/// How far the four statistics are from their partners.
pub(super) fn differences(target: &Shown<'_>, golden: Option<&Shown<'_>>) -> [Difference; 4] {
    std::array::from_fn(|index| match golden {
        Some(golden) => difference(&target.statistics[index], &golden.statistics[index]),
        None => Difference::Missing,
    })
}

/// Whether a record is of a call that ranks make together.
pub(super) fn is_distributed(record: &str) -> bool {
    record.starts_with("Distributed.") || record.starts_with("MintDistributed.")
}

/// Whether autograd follows a value, as cells say it.
pub(super) fn requires_grad_text(leaf: &Leaf) -> &'static str {
    match leaf.requires_grad {
        Some(true) => "True",
        Some(false) => "False",
        None => "N/A",
    }
}

fn text_of(value: &Scalar) -> String {
    match value {
        Scalar::Null => "None".to_owned(),
        Scalar::Bool(value) => python_bool(*value).to_owned(),
        Scalar::Int(value) => value.to_string(),
        Scalar::Large(value) => value.to_string(),
        Scalar::Float(value) => float_repr(*value),
        Scalar::Text(text) => text.to_string(),
    }
}
