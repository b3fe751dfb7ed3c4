//! Matching by name.

use msprobe_compare::pairing::{MatchMethod, RowPair, Unmatched};
use msprobe_compare::side::{Leaf, Side, ValueShape};
use msprobe_dump::hash::{FastBuildHasher, FastMap};

use super::{Keys, dtypes_agree, fold_to_family};

/// Equal key and equal shape, then dtypes that can be compared. Each target row appears once per partner; rows that
/// share a key stand together at the first of them.
pub fn match_by_key_and_shape(
    target: &Side,
    golden: &Side,
    keys: &Keys,
    across_frameworks: bool,
) -> Vec<RowPair> {
    let by_name = RowsByName::of(golden);
    let method = if matches!(keys, Keys::OwnName) { MatchMethod::Exact } else { MatchMethod::Mapped };
    let mut pairs = Vec::with_capacity(target.rows.len());
    for row in rows_in_groups(target, keys) {
        let leaf = &target.rows[row];
        let before = pairs.len();
        let mut reason = Unmatched::Missing;
        for other in key_of(keys, row, leaf).into_iter().flat_map(|key| by_name.named(key)) {
            if golden.rows[other].shape != leaf.shape {
                reason = Unmatched::Shape;
                continue;
            }
            let fits = compatible(&leaf.dtype, &golden.rows[other].dtype, across_frameworks);
            let golden = if fits { Ok(other) } else { Err(Unmatched::Dtype) };
            pairs.push(RowPair { target: row, golden, method });
        }
        if pairs.len() == before {
            pairs.push(RowPair { target: row, golden: Err(reason), method });
        }
    }
    pairs
}

/// Equal key alone, as a mapping the user wrote asks for.
pub fn match_by_key(target: &Side, golden: &Side, keys: &Keys) -> Vec<RowPair> {
    let by_name = RowsByName::of(golden);
    let mut pairs = Vec::with_capacity(target.rows.len());
    for (row, leaf) in target.rows.iter().enumerate() {
        let before = pairs.len();
        for other in key_of(keys, row, leaf).into_iter().flat_map(|key| by_name.named(key)) {
            let same = golden.rows[other].name == leaf.name;
            let method = if same { MatchMethod::Exact } else { MatchMethod::Mapped };
            pairs.push(RowPair { target: row, golden: Ok(other), method });
        }
        if pairs.len() == before {
            let golden = Err(Unmatched::Missing);
            pairs.push(RowPair { target: row, golden, method: MatchMethod::Mapped });
        }
    }
    pairs
}

/// Whether two dtypes can be compared, within one framework or across two.
pub(crate) fn compatible(target: &str, golden: &str, across_frameworks: bool) -> bool {
    if across_frameworks {
        dtypes_agree(fold_to_family(target), fold_to_family(golden))
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

/// Rows by name; several of one name are chained.
struct RowsByName<'a> {
    first: FastMap<&'a str, usize>,
    next: Vec<Option<usize>>,
}

impl<'a> RowsByName<'a> {
    fn of(side: &'a Side) -> RowsByName<'a> {
        let mut first = FastMap::with_capacity_and_hasher(side.rows.len(), FastBuildHasher);
        let mut next = vec![None; side.rows.len()];
        // From the end, so that chains ascend.
        for (row, leaf) in side.rows.iter().enumerate().rev() {
            next[row] = first.insert(&*leaf.name, row);
        }
        RowsByName { first, next }
    }

    fn named(&self, name: &str) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.first.get(name).copied(), |&row| self.next[row])
    }
}

/// Rows in order, except that rows of the same key and shape follow the first of them.
fn rows_in_groups(side: &Side, keys: &Keys) -> Vec<usize> {
    let mut seen: FastMap<(&str, &ValueShape), usize> =
        FastMap::with_capacity_and_hasher(side.rows.len(), FastBuildHasher);
    let mut followers: FastMap<usize, Vec<usize>> = FastMap::default();
    let mut order = Vec::with_capacity(side.rows.len());
    for (row, leaf) in side.rows.iter().enumerate() {
        let first = key_of(keys, row, leaf).map_or(row, |key| *seen.entry((key, &leaf.shape)).or_insert(row));
        if first == row {
            order.push(row);
        } else {
            followers.entry(first).or_default().push(row);
        }
    }
    if followers.is_empty() {
        return order;
    }
    let with_followers =
        |row: usize| std::iter::once(row).chain(followers.get(&row).into_iter().flatten().copied());
    order.into_iter().flat_map(with_followers).collect()
}
