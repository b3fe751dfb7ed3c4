//! Digests of JSON: two values with the same digest are the same, whatever a comparison knows to make of them.
//!
//! A comparison measures what it understands. That nothing else differs either is shown by these: a verdict says
//! `identical` only of records whose digests agree.

use msprobe_dump::read::{Pull, PullError, Shape};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The member of a value that may differ between equal runs: where its data lies. The data is compared by itself.
const NOT_PART_OF_A_VALUE: &str = "data_name";

/// Digest of one value of a record: all its members in any order.
pub(super) fn digest_of_value(text: &[u8]) -> Result<u64, PullError> {
    digest(&mut Pull::new(text), With { values: true, file: false })
}

/// Digest of everything in a value.
pub(super) fn digest_of_whole(text: &[u8]) -> Result<u64, PullError> {
    digest(&mut Pull::new(text), WHOLE)
}

/// Digest of what a record is apart from its values: how they are nested, and whatever else is in it. Values are looked
/// for in the members named, or everywhere. If one of these is there twice, all of it counts.
pub(super) fn digest_of_rest(text: &[u8], with_values: Option<&[&str]>) -> Result<u64, PullError> {
    let pull = &mut Pull::new(text);
    let Some(names) = with_values.filter(|_| pull.shape() == Ok(Shape::Object)) else {
        return digest(pull, REST);
    };
    let mut seen = 0_u32;
    let mut sum = 0_u64;
    pull.enter()?;
    while let Some(key) = pull.key()? {
        let seed = match names.iter().position(|name| *name == key) {
            Some(name) if seen & (1 << name) != 0 => return digest_of_whole(text),
            Some(name) => {
                seen |= 1 << name;
                digest(pull, REST)?
            }
            None => digest(pull, WHOLE)?,
        };
        sum = sum.wrapping_add(xxh3_64_with_seed(key.as_bytes(), seed));
    }
    Ok(sum)
}

/// What counts.
#[derive(Clone, Copy)]
struct With {
    /// Objects that say their type, and nothings.
    values: bool,
    /// The name of the file of the value itself.
    file: bool,
}

const WHOLE: With = With { values: true, file: true };
const REST: With = With { values: false, file: true };

/// Of the value that comes next. Kinds of values are told apart by the seed.
fn digest(pull: &mut Pull<'_>, with: With) -> Result<u64, PullError> {
    let of = |kind: u8, bytes: &[u8]| xxh3_64_with_seed(bytes, u64::from(kind));
    let value = || of(b'v', b"");
    // What is inside counts wholly, unless values are looked for.
    let inside = With { file: true, ..with };
    Ok(match pull.shape()? {
        Shape::Word => match pull.word()? {
            None if !with.values => value(),
            None => of(b'0', b""),
            Some(flag) => of(b'b', &[u8::from(flag)]),
        },
        Shape::Number => {
            let start = pull.position();
            let number = pull.number()?;
            let text = pull.since(start);
            let whole = || std::str::from_utf8(text).ok()?.parse::<i128>().ok();
            match whole() {
                Some(whole) => of(b'i', &whole.to_le_bytes()),
                // There are many NaNs, and all are written as one.
                None if number.is_nan() => of(b'f', b"NaN"),
                None => of(b'f', &number.to_le_bytes()),
            }
        }
        Shape::Text => of(b't', pull.text()?.as_bytes()),
        Shape::List => {
            pull.enter()?;
            let (mut all, mut count) = (0_u64, 0_u64);
            while pull.element()? {
                all = xxh3_64_with_seed(&digest(pull, inside)?.to_le_bytes(), all);
                count += 1;
            }
            of(b'l', &[all.to_le_bytes(), count.to_le_bytes()].concat())
        }
        Shape::Object if !with.values && skip_value(pull)? => value(),
        Shape::Object => {
            pull.enter()?;
            let mut sum = 0_u64;
            while let Some(key) = pull.key()? {
                if !with.file && key == NOT_PART_OF_A_VALUE {
                    pull.skip()?;
                    continue;
                }
                sum = sum.wrapping_add(xxh3_64_with_seed(key.as_bytes(), digest(pull, inside)?));
            }
            of(b'm', &sum.to_le_bytes())
        }
    })
}

/// Goes behind the object that comes next if it is one value of a record: if it says of what type it is.
fn skip_value(pull: &mut Pull<'_>) -> Result<bool, PullError> {
    let mut ahead = pull.clone();
    let mut is_value = false;
    ahead.enter()?;
    while let Some(key) = ahead.key()? {
        if key == "type" {
            is_value = ahead.shape()? == Shape::Text;
        }
        ahead.skip()?;
    }
    if is_value {
        *pull = ahead;
    }
    Ok(is_value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> u64 {
        digest_of_value(text.as_bytes()).unwrap()
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
