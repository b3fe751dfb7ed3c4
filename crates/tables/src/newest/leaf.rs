//! A value as tables of the newest form show it.

use std::borrow::Cow;

use msprobe_compare::python_text::float_repr;
use msprobe_compare::side::{Leaf, Scalar, ValueKind};

use super::difference::{Difference, difference};
use crate::names::{argument_of, is_distributed};
use crate::table::python_bool;

/// Arguments of communication that name a rank.
const RANK_ARGUMENTS: [&str; 4] = ["src", "dst", "group_src", "group_dst"];

/// The cells of a value that are not always what was recorded.
pub(super) struct Shown<'a> {
    /// Text of the dtype cell.
    pub(super) dtype: &'a str,
    /// Whether it is an argument under its class.
    pub(super) is_plain: bool,
    /// Largest, smallest, mean, L2 norm.
    pub(super) statistics: Cow<'a, [Scalar; 4]>,
}

impl<'a> Shown<'a> {
    /// Ranks in arguments of communication are names, not numbers: they are shown as text under a plain type.
    pub(super) fn of(record: &str, leaf: &'a Leaf) -> Shown<'a> {
        let is_plain = leaf.kind == ValueKind::Plain;
        let is_rank =
            is_plain && RANK_ARGUMENTS.contains(&argument_of(&leaf.place)) && is_distributed(record);
        if !is_rank {
            return Shown { dtype: &leaf.dtype, is_plain, statistics: Cow::Borrowed(&leaf.statistics) };
        }
        Shown {
            dtype: leaf.dtype.trim_start_matches("<class '").trim_end_matches("'>"),
            is_plain: false,
            statistics: Cow::Owned(leaf.statistics.clone().map(|value| Scalar::Text(text_of(&value).into()))),
        }
    }
}

/// The type of a value whose name begins with that of its record.
pub fn dtype_shown(leaf: &Leaf) -> &str {
    Shown::of(&leaf.name, leaf).dtype
}

/// How far the four statistics are from their partners.
pub(super) fn differences(target: &Shown<'_>, golden: Option<&Shown<'_>>) -> [Difference; 4] {
    std::array::from_fn(|index| match golden {
        Some(golden) => difference(&target.statistics[index], &golden.statistics[index]),
        None => Difference::Missing,
    })
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
