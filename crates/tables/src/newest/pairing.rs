//! Matching in the newest form: by name alone, with backward calls numbered in the order in which they were made.

use std::borrow::Cow;
use std::collections::HashMap;

use msprobe_compare::pairing::{MatchMethod, RowPair, Unmatched};
use msprobe_compare::side::{Leaf, Side};
use msprobe_report::console::Console;

use super::NewestOptions;
use crate::matching::{Keys, compatible, match_by_key, match_fuzzily};
use crate::names::backward_call;

pub(super) fn pair_rows(
    target: &Side,
    golden: &Side,
    options: &NewestOptions,
    console: &dyn Console,
) -> Vec<RowPair> {
    match &options.keys {
        Keys::Mapping(_) => match_by_key(target, golden, &options.keys),
        Keys::OwnName if options.fuzzy => match_fuzzily(target, golden, options.across_frameworks, console),
        keys => match_by_name(target, golden, keys, options.across_frameworks),
    }
}

/// Equal key, then dtypes that can be compared. Each target row appears once per partner, in the target's order.
fn match_by_name(target: &Side, golden: &Side, keys: &Keys, across_frameworks: bool) -> Vec<RowPair> {
    let mut by_name: HashMap<Cow<'_, str>, Vec<usize>> = HashMap::with_capacity(golden.rows.len());
    let mut order = BackwardOrder::default();
    for (row, leaf) in golden.rows.iter().enumerate() {
        by_name.entry(order.renumbered(&leaf.name)).or_default().push(row);
    }
    let mut order = BackwardOrder::default();
    let mut pairs = Vec::with_capacity(target.rows.len());
    for (row, leaf) in target.rows.iter().enumerate() {
        let key = match keys {
            Keys::PerRow(names) => names.get(row).and_then(Option::as_deref),
            _ => Some(&*leaf.name),
        };
        let method = |other: Option<&Leaf>| match keys {
            Keys::PerRow(_) => MatchMethod::Mapped,
            _ if other.is_some_and(|other| other.name != leaf.name) => MatchMethod::Aligned,
            _ => MatchMethod::Exact,
        };
        let namesakes = key.and_then(|key| by_name.get(&order.renumbered(key)));
        let Some(namesakes) = namesakes else {
            pairs.push(RowPair { target: row, golden: Err(Unmatched::Missing), method: method(None) });
            continue;
        };
        pairs.extend(namesakes.iter().map(|&place| {
            let other = &golden.rows[place];
            let agree = compatible(&leaf.dtype, &other.dtype, across_frameworks);
            let partner = if agree { Ok(place) } else { Err(Unmatched::Dtype) };
            RowPair { target: row, golden: partner, method: method(Some(other)) }
        }));
    }
    pairs
}

/// Counts backward calls of each API as they come: a call that had no backward on one side must not shift the
/// numbers of those after it.
#[derive(Default)]
struct BackwardOrder<'a> {
    /// The order of each recorded number, by API.
    calls: HashMap<&'a str, HashMap<&'a str, usize>>,
}

impl<'a> BackwardOrder<'a> {
    /// The name with the number its call has in order.
    fn renumbered(&mut self, name: &'a str) -> Cow<'a, str> {
        let Some((api, number, rest)) = backward_call(name) else { return Cow::Borrowed(name) };
        let calls = self.calls.entry(api).or_default();
        let next = calls.len();
        let place = *calls.entry(number).or_insert(next);
        // The usual case needs no new text.
        if number.parse() == Ok(place) {
            return Cow::Borrowed(name);
        }
        Cow::Owned(format!("{api}.{place}.backward.{rest}"))
    }
}
