//! Sets of ranks and steps, kept as ranges: `"0-1000000"` is one of them, not a million numbers.

use serde_json::Value;

use super::error::Refusal;
use super::python;

/// The largest rank or step a list may name, and the most elements it may have.
const MAXIMUM: u32 = 1_000_000;

/// A set of numbers as sorted ranges that neither overlap nor touch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RangeSet {
    ranges: Vec<(u32, u32)>,
}

impl RangeSet {
    /// The union of ranges that include both of their ends; those that end before they start are empty.
    pub fn from_ranges(ranges: impl IntoIterator<Item = (u32, u32)>) -> RangeSet {
        let mut sorted: Vec<_> = ranges.into_iter().filter(|(first, last)| first <= last).collect();
        sorted.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::new();
        for (first, last) in sorted {
            match merged.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => merged.push((first, last)),
            }
        }
        RangeSet { ranges: merged }
    }

    /// Whether no number is in the set. As a filter, such a set means all.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether a number is in the set.
    pub fn contains(&self, number: u64) -> bool {
        let Ok(number) = u32::try_from(number) else {
            return false;
        };
        let after = self.ranges.partition_point(|&(first, _)| first <= number);
        after.checked_sub(1).and_then(|at| self.ranges.get(at)).is_some_and(|&(_, last)| number <= last)
    }

    /// The largest number.
    pub fn max(&self) -> Option<u32> {
        self.ranges.last().map(|&(_, last)| last)
    }

    /// The ranges, sorted, with both ends included.
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    /// The numbers, sorted.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranges.iter().flat_map(|&(first, last)| first..=last)
    }
}

/// Reads a list of ranks or steps; `key` is `rank` or `step`.
pub(super) fn parse(value: &Value, key: &str) -> Result<RangeSet, Refusal> {
    let items = match value {
        Value::Null => return Ok(RangeSet::default()),
        Value::Array(items) => items,
        _ => return Err(Refusal::invalid(format!("{key} is invalid, it should be a list"))),
    };
    if items.len() > MAXIMUM as usize {
        return Err(Refusal::invalid(format!("{key} is invalid, its length cannot exceed {MAXIMUM}")));
    }
    let ranges = items.iter().map(|item| parse_item(item, key)).collect::<Result<Vec<_>, _>>()?;
    Ok(RangeSet::from_ranges(ranges))
}

fn parse_item(item: &Value, key: &str) -> Result<(u32, u32), Refusal> {
    match item {
        Value::Number(number) if !number.is_f64() => {
            let Some(number) = number.as_u64().and_then(in_bounds) else {
                return Err(Refusal::invalid(format!(
                    "Each element of {key} must be between 0 and {MAXIMUM}, currently it is {number}."
                )));
            };
            Ok((number, number))
        }
        Value::String(text) => parse_range(text, key),
        _ => Err(Refusal::invalid(format!(
            "{key} element {} must be an integer or string.",
            python::repr(item)
        ))),
    }
}

fn parse_range(text: &str, key: &str) -> Result<(u32, u32), Refusal> {
    let (first, last) = match text.split_once('-') {
        Some((first, last)) if !last.contains('-') => (first, last),
        _ => {
            return Err(Refusal::invalid(format!(
                "The string parameter for {key} only supports formats like \"3-5\". \
                 Now string parameter for {key} is \"{text}\"."
            )));
        }
    };
    let (Some(first), Some(last)) = (python::int(first), python::int(last)) else {
        return Err(Refusal::invalid("The hyphen(-) must start and end with decimal numbers."));
    };
    let (Some(first), Some(last)) = (in_bounds(first), in_bounds(last)) else {
        return Err(Refusal::invalid(format!(
            "The boundaries must fall within the range of [0, {MAXIMUM}]."
        )));
    };
    if first > last {
        return Err(Refusal::invalid(format!(
            "For the hyphen(-) in {key}, the left boundary ({first}) cannot be greater than \
             the right boundary ({last})."
        )));
    }
    Ok((first, last))
}

fn in_bounds(number: u64) -> Option<u32> {
    u32::try_from(number).ok().filter(|number| *number <= MAXIMUM)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn numbers(value: &Value) -> Vec<u32> {
        parse(value, "step").unwrap().iter().collect()
    }

    fn refusal(value: &Value, key: &str) -> String {
        parse(value, key).unwrap_err().after(Vec::new()).message
    }

    #[test]
    fn numbers_and_ranges_are_sorted_without_doubles() {
        assert!(numbers(&json!(null)).is_empty());
        assert!(numbers(&json!([])).is_empty());
        assert_eq!(numbers(&json!([7, 3, 3, "4-5", "5-6"])), [3, 4, 5, 6, 7]);
        assert_eq!(numbers(&json!([5, "7-8"])), [5, 7, 8]);
        assert_eq!(numbers(&json!([0, "1000000-1000000"])), [0, 1_000_000]);
        assert_eq!(numbers(&json!([" 3 - 0_5"])), [3, 4, 5]);
        assert_eq!(parse(&json!(["1-3", 4, "6-7"]), "rank").unwrap().ranges(), [(1, 4), (6, 7)]);
    }

    #[test]
    fn a_million_steps_are_one_range() {
        let items: Vec<_> = (0..1000).map(|_| json!("0-1000000")).collect();
        let set = parse(&Value::Array(items), "step").unwrap();
        assert_eq!(set.ranges(), [(0, 1_000_000)]);
        assert!(set.contains(0) && set.contains(1_000_000) && !set.contains(1_000_001));
        assert_eq!(set.max(), Some(1_000_000));
    }

    #[test]
    fn wrong_lists_say_what_is_wrong() {
        for (value, expected) in [
            (json!("1-3"), "rank is invalid, it should be a list"),
            (json!(false), "rank is invalid, it should be a list"),
            (json!([true]), "rank element True must be an integer or string."),
            (json!([3.0]), "rank element 3.0 must be an integer or string."),
            (json!([null]), "rank element None must be an integer or string."),
            (json!([["a", {}]]), "rank element ['a', {}] must be an integer or string."),
            (json!([-1]), "Each element of rank must be between 0 and 1000000, currently it is -1."),
            (
                json!([u64::MAX]),
                "Each element of rank must be between 0 and 1000000, currently it is 18446744073709551615.",
            ),
            (
                json!(["1-2-3"]),
                "The string parameter for rank only supports formats like \"3-5\". \
                 Now string parameter for rank is \"1-2-3\".",
            ),
            (json!(["-3"]), "The hyphen(-) must start and end with decimal numbers."),
            (json!(["3-"]), "The hyphen(-) must start and end with decimal numbers."),
            (json!(["1.0-2"]), "The hyphen(-) must start and end with decimal numbers."),
            (
                json!(["0-99999999999999999999999"]),
                "The boundaries must fall within the range of [0, 1000000].",
            ),
            (
                json!(["5-3"]),
                "For the hyphen(-) in rank, the left boundary (5) cannot be greater than the right boundary (3).",
            ),
        ] {
            assert_eq!(refusal(&value, "rank"), expected);
        }
    }

    #[test]
    fn lists_may_have_a_million_elements_and_no_more() {
        let list = |len: usize| Value::Array(vec![json!(1); len]);
        assert_eq!(numbers(&list(1_000_000)), [1]);
        assert_eq!(refusal(&list(1_000_001), "step"), "step is invalid, its length cannot exceed 1000000");
    }

    #[test]
    fn the_first_wrong_element_is_reported() {
        assert_eq!(
            refusal(&json!([1, "x", true]), "step"),
            "The string parameter for step only supports formats like \"3-5\". \
             Now string parameter for step is \"x\"."
        );
    }

    #[test]
    fn ranges_at_the_edge_of_the_type_merge() {
        let set = RangeSet::from_ranges([(u32::MAX, u32::MAX), (u32::MAX - 1, u32::MAX), (3, 2)]);
        assert_eq!(set.ranges(), [(u32::MAX - 1, u32::MAX)]);
        assert!(!set.contains(u64::from(u32::MAX) + 1));
        assert!(RangeSet::default().is_empty() && RangeSet::default().max().is_none());
    }

    proptest! {
        #[test]
        fn a_range_set_is_the_set_of_its_numbers(ranges in prop::collection::vec((0u32..60, 0u32..60), 0..12)) {
            let set = RangeSet::from_ranges(ranges.iter().copied());
            let naive: BTreeSet<u32> = ranges.iter().flat_map(|&(first, last)| first..=last).collect();
            prop_assert!(set.iter().eq(naive.iter().copied()));
            prop_assert_eq!(set.max(), naive.last().copied());
            prop_assert_eq!(set.is_empty(), naive.is_empty());
            for number in 0..70 {
                prop_assert_eq!(set.contains(number), naive.contains(&(number as u32)));
            }
            for pair in set.ranges().windows(2) {
                prop_assert!(pair[0].1 + 1 < pair[1].0);
            }
        }
    }
}
