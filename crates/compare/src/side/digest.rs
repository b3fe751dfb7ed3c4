//! Digests of JSON: two values with the same digest are the same, whatever a comparison knows to make of them.
//!
//! A comparison measures what it understands. That nothing else differs either is shown by these: a verdict says
//! `identical` only of records whose digests agree.

use msprobe_dump::read::Json;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Members of a value that may differ between equal runs: where its data lies. The data is compared by itself.
const NOT_PART_OF_A_VALUE: [&str; 1] = ["data_name"];

/// Digest of one value of a record: all its members in any order.
pub(super) fn digest_of_value(value: &Json<'_>) -> u64 {
    digest(value, &|_| false, &NOT_PART_OF_A_VALUE)
}

/// Digest of everything in a value.
pub(super) fn digest_of_whole(value: &Json<'_>) -> u64 {
    digest(value, &|_| false, &[])
}

/// Digest of what a record is apart from its values: how they are nested, and whatever else is in it. Values are looked
/// for in the members named, or everywhere; of members with one name only the last one has values.
pub(super) fn digest_of_rest(
    record: &Json<'_>,
    with_values: Option<&[&str]>,
    is_value: &dyn Fn(&Json<'_>) -> bool,
) -> u64 {
    match (record, with_values) {
        (Json::Map(members), Some(names)) => {
            let last = |name: &&str| members.iter().rposition(|(key, _)| key == name);
            let with_values: Vec<usize> = names.iter().filter_map(last).collect();
            members.iter().enumerate().fold(0_u64, |sum, (index, (key, member))| {
                let seed = if with_values.contains(&index) {
                    digest(member, is_value, &[])
                } else {
                    digest_of_whole(member)
                };
                sum.wrapping_add(xxh3_64_with_seed(key.as_bytes(), seed))
            })
        }
        _ => digest(record, is_value, &[]),
    }
}

fn digest(value: &Json<'_>, is_left_out: &dyn Fn(&Json<'_>) -> bool, without: &[&str]) -> u64 {
    // Kinds of values are told apart by the seed.
    let of = |kind: u8, bytes: &[u8]| xxh3_64_with_seed(bytes, u64::from(kind));
    if is_left_out(value) {
        return of(b'v', b"");
    }
    match value {
        Json::Null => of(b'0', b""),
        Json::Bool(value) => of(b'b', &[u8::from(*value)]),
        Json::Int(value) => of(b'i', &value.to_le_bytes()),
        // There are many NaNs, and all are written as one.
        Json::Float(value) if value.is_nan() => of(b'f', b"NaN"),
        Json::Float(value) => of(b'f', &value.to_le_bytes()),
        Json::Text(text) => of(b't', text.as_bytes()),
        Json::List(elements) => {
            let digests: Vec<u8> =
                elements.iter().flat_map(|element| digest(element, is_left_out, &[]).to_le_bytes()).collect();
            of(b'l', &digests)
        }
        Json::Map(members) => {
            let members = members.iter().filter(|(key, _)| !without.contains(&&**key));
            let sum = members.fold(0_u64, |sum, (key, member)| {
                let seed = digest(member, is_left_out, &[]);
                sum.wrapping_add(xxh3_64_with_seed(key.as_bytes(), seed))
            });
            of(b'm', &sum.to_le_bytes())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> u64 {
        digest_of_value(&Json::parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn every_change_changes_the_digest_and_order_does_not() {
        let whole = of(r#"{"type": "torch.Tensor", "shape": [2, 3], "Max": 1.0, "requires_grad": false}"#);
        assert_eq!(
            whole,
            of(r#"{"Max": 1.0, "type": "torch.Tensor", "requires_grad": false, "shape": [2, 3]}"#)
        );
        for changed in [
            r#"{"type": "torch.Tensor", "shape": [3, 2], "Max": 1.0, "requires_grad": false}"#,
            r#"{"type": "torch.Tensor", "shape": [2, 3], "Max": 1, "requires_grad": false}"#,
            r#"{"type": "torch.Tensor", "shape": [2, 3], "Max": "1.0", "requires_grad": false}"#,
            r#"{"type": "torch.Tensor", "shape": [2, 3], "Max": null, "requires_grad": false}"#,
            r#"{"type": "torch.Tensor", "shape": [2, 3], "requires_grad": false}"#,
            r#"{"type": "torch.Tensor", "shape": [2, 3], "Max": 1.0, "requires_grad": true}"#,
            r#"{"type": "torch.Tensor", "shape": [[2, 3]], "Max": 1.0, "requires_grad": false}"#,
            r#"{"type": "torch.Tensor", "shape": [2, 3], "Max": 1.0, "requires_grad": false, "more": null}"#,
        ] {
            assert_ne!(whole, of(changed), "{changed}");
        }
    }

    #[test]
    fn where_data_lies_is_not_part_of_a_value() {
        assert_eq!(of(r#"{"type": "t", "data_name": "a.pt"}"#), of(r#"{"type": "t", "data_name": "b.pt"}"#));
        assert_eq!(of(r#"{"type": "t"}"#), of(r#"{"type": "t", "data_name": "b.pt"}"#));
    }

    #[test]
    fn integers_beyond_the_reach_of_floats_differ() {
        assert_ne!(of("9007199254740992"), of("9007199254740993"));
        assert_eq!(of("NaN"), of("NaN"));
    }
}
