//! Matching by name.

use std::collections::HashMap;

use super::{Keys, MatchMethod, RowPair, Unmatched, dtypes_agree, fold_to_family};
use crate::side::{Leaf, Side};

/// Equal key and equal shape, then dtypes that can be compared. Each target row appears once per partner; rows that
/// share a key stand together at the first of them.
pub fn match_by_key_and_shape(
    target: &Side,
    golden: &Side,
    keys: &Keys,
    across_frameworks: bool,
) -> Vec<RowPair> {
    let by_name = rows_by_name(golden);
    let method = if matches!(keys, Keys::OwnName) { MatchMethod::Exact } else { MatchMethod::Mapped };
    let mut pairs = Vec::with_capacity(target.rows.len());
    for group in rows_in_groups(target, keys) {
        for row in group {
            let leaf = &target.rows[row];
            let unmatched = |reason| RowPair { target: row, golden: Err(reason), method };
            let namesakes = key_of(keys, row, leaf).and_then(|key| by_name.get(key));
            let Some(namesakes) = namesakes else {
                pairs.push(unmatched(Unmatched::Missing));
                continue;
            };
            let mut of_shape =
                namesakes.iter().filter(|&&other| golden.rows[other].shape == leaf.shape).peekable();
            if of_shape.peek().is_none() {
                pairs.push(unmatched(Unmatched::Shape));
                continue;
            }
            pairs.extend(of_shape.map(|&other| {
                if compatible(&leaf.dtype, &golden.rows[other].dtype, across_frameworks) {
                    RowPair { target: row, golden: Ok(other), method }
                } else {
                    unmatched(Unmatched::Dtype)
                }
            }));
        }
    }
    pairs
}

/// Equal key alone, as a mapping the user wrote asks for.
pub fn match_by_key(target: &Side, golden: &Side, keys: &Keys) -> Vec<RowPair> {
    let by_name = rows_by_name(golden);
    let mut pairs = Vec::with_capacity(target.rows.len());
    for (row, leaf) in target.rows.iter().enumerate() {
        match key_of(keys, row, leaf).and_then(|key| by_name.get(key)) {
            Some(namesakes) => pairs.extend(namesakes.iter().map(|&other| RowPair {
                target: row,
                golden: Ok(other),
                method: if golden.rows[other].name == leaf.name {
                    MatchMethod::Exact
                } else {
                    MatchMethod::Mapped
                },
            })),
            None => pairs.push(RowPair {
                target: row,
                golden: Err(Unmatched::Missing),
                method: MatchMethod::Mapped,
            }),
        }
    }
    pairs
}

/// Whether two dtypes can be compared, within one framework or across two.
pub(super) fn compatible(target: &str, golden: &str, across_frameworks: bool) -> bool {
    if across_frameworks {
        dtypes_agree(&fold_to_family(target), &fold_to_family(golden))
    } else {
        dtypes_agree(target, golden)
    }
}

fn key_of<'a>(keys: &'a Keys, row: usize, leaf: &'a Leaf) -> Option<&'a str> {
    match keys {
        Keys::OwnName => Some(&leaf.name),
        Keys::PerRow(names) => names.get(row).and_then(Option::as_deref),
        Keys::Mapping(names) => Some(names.get(&*leaf.name).map_or(&*leaf.name, String::as_str)),
    }
}

fn rows_by_name(side: &Side) -> HashMap<&str, Vec<usize>> {
    let mut by_name: HashMap<&str, Vec<usize>> = HashMap::with_capacity(side.rows.len());
    for (row, leaf) in side.rows.iter().enumerate() {
        by_name.entry(&leaf.name).or_default().push(row);
    }
    by_name
}

/// Rows of the same key and shape, in the order in which their first one stands.
fn rows_in_groups<'a>(side: &'a Side, keys: &'a Keys) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::with_capacity(side.rows.len());
    let mut places: HashMap<(&str, &str), usize> = HashMap::with_capacity(side.rows.len());
    for (row, leaf) in side.rows.iter().enumerate() {
        let Some(key) = key_of(keys, row, leaf) else {
            groups.push(vec![row]);
            continue;
        };
        match places.get(&(key, &*leaf.shape)) {
            Some(&place) => groups[place].push(row),
            None => {
                places.insert((key, &*leaf.shape), groups.len());
                groups.push(vec![row]);
            }
        }
    }
    groups
}
