//! Names that stand more than once in a dump: the last body counts, and nobody else looks at those before it.
//!
//! Our own writer repeats a name when a body outgrows its room: what stands before is an earlier version, with nothing in
//! it that the last one does not have. Anything else is a record that is not compared, and a comparison has to know of it.

use std::path::Path;

use msprobe_dump::hash::{FastMap, FastSet};
use msprobe_dump::model::{DumpFile, RecordText};
use msprobe_dump::read::{Pull, PullError, ReadError, Shape};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::digest::digest_of_whole;

/// What stands under the name of a record before its last body, apart from earlier versions of that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Earlier {
    /// Digest of the bodies in their order; 0 if there are none.
    digest: u64,
    /// Whether they name tensor files that the last body does not.
    names_files: bool,
}

impl Earlier {
    /// Whether it is known to be the same on another side.
    pub(crate) fn is_same(self, other: Earlier) -> bool {
        self == other && !self.names_files
    }
}

/// Reads the file again for the bodies of some names. `is_filled_in` tells of a name that its values are written as `null`
/// until they are known.
pub(super) fn read_earlier(
    path: &Path,
    names: &FastSet<Box<str>>,
    is_filled_in: &dyn Fn(&str) -> bool,
) -> Result<FastMap<Box<str>, Earlier>, ReadError> {
    let mut bodies: FastMap<Box<str>, Vec<Body>> = FastMap::default();
    let mut file = DumpFile::open(path)?;
    let read = |text: &mut RecordText<'_, '_>| {
        let body = text.skip()?;
        let is_wanted = names.contains(text.name);
        is_wanted.then(|| Ok((Box::from(text.name), Body::of(body)?))).transpose()
    };
    while let Some(read) = file.next_record(read)? {
        if let Some((name, body)) = read {
            bodies.entry(name).or_default().push(body);
        }
    }
    let earlier = |(name, bodies): (Box<str>, Vec<Body>)| {
        let earlier = earlier_of(&bodies, is_filled_in(&name));
        (name, earlier)
    };
    Ok(bodies.into_iter().map(earlier).collect())
}

fn earlier_of(bodies: &[Body], is_filled_in: bool) -> Earlier {
    let Some((last, before)) = bodies.split_last() else { return Earlier::default() };
    let mut earlier = Earlier::default();
    for body in before.iter().filter(|body| !body.is_earlier_version_of(last, is_filled_in)) {
        // Never the 0 that stands for none.
        earlier.digest = xxh3_64_with_seed(&body.digest.to_le_bytes(), earlier.digest).max(1);
        earlier.names_files |= !body.files.is_subset(&last.files);
    }
    earlier
}

/// A body, taken apart: what stands at each place of it.
#[derive(Default)]
struct Body {
    digest: u64,
    places: FastMap<u64, Node>,
    files: FastSet<Box<str>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Node {
    Null,
    Scalar(u64),
    List,
    Map,
}

impl Body {
    fn of(text: &[u8]) -> Result<Body, PullError> {
        let mut body = Body { digest: digest_of_whole(text)?, ..Body::default() };
        body.add(&mut Pull::new(text), 0)?;
        Ok(body)
    }

    /// As deep as the reader lets values be.
    fn add(&mut self, pull: &mut Pull<'_>, place: u64) -> Result<(), PullError> {
        let shape = pull.shape()?;
        let start = pull.position();
        let node = match shape {
            Shape::List => {
                pull.enter()?;
                let mut index = 0_usize;
                while pull.element()? {
                    self.add(pull, xxh3_64_with_seed(&index.to_le_bytes(), place))?;
                    index += 1;
                }
                Node::List
            }
            Shape::Object => {
                pull.enter()?;
                while let Some(key) = pull.key()? {
                    if key == "data_name" && pull.shape()? == Shape::Text {
                        self.files.insert((*pull.clone().text()?).into());
                    }
                    // A key is no index.
                    self.add(pull, xxh3_64_with_seed(key.as_bytes(), !place))?;
                }
                Node::Map
            }
            Shape::Text | Shape::Number | Shape::Word => {
                pull.skip()?;
                match pull.since(start) {
                    b"null" => Node::Null,
                    scalar => Node::Scalar(digest_of_whole(scalar)?),
                }
            }
        };
        self.places.insert(place, node);
        Ok(())
    }

    /// Whether all of it stands in a later body, which has more: the same body again is no version of itself.
    fn is_earlier_version_of(&self, last: &Body, is_filled_in: bool) -> bool {
        self.digest != last.digest
            && self.places.iter().all(|(place, node)| match last.places.get(place) {
                Some(later) => node == later || is_filled_in && *node == Node::Null,
                None => false,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn earlier(bodies: &[&str], is_filled_in: bool) -> Earlier {
        let bodies: Vec<Body> = bodies.iter().map(|text| Body::of(text.as_bytes()).unwrap()).collect();
        earlier_of(&bodies, is_filled_in)
    }

    const WHOLE: &str =
        r#"{"input_args": [{"type": "int", "value": 1}], "output": [{"type": "int", "value": 2}]}"#;

    #[test]
    fn earlier_versions_hold_nothing_of_their_own() {
        for before in ["{}", r#"{"input_args": [{"type": "int", "value": 1}]}"#, r#"{"output": []}"#] {
            assert_eq!(earlier(&[before, WHOLE], false), Earlier::default(), "{before}");
        }
        let filled = r#"{"weight": [{"type": "t"}], "bias": [null]}"#;
        assert_eq!(earlier(&[r#"{"weight": [null], "bias": [null]}"#, filled], true), Earlier::default());
        assert_eq!(earlier(&[WHOLE], false), Earlier::default());
    }

    #[test]
    fn other_bodies_count_in_their_order() {
        let others = ["null", "[]", "7", r#"{"output": [null]}"#, r#"{"other": 1}"#, WHOLE];
        for before in others {
            assert!(!earlier(&[before, WHOLE], false).is_same(Earlier::default()), "{before}");
            assert!(earlier(&[before, WHOLE], false).is_same(earlier(&[before, WHOLE], false)));
        }
        let (one, other) = (["7", "[]", WHOLE], ["[]", "7", WHOLE]);
        assert!(!earlier(&one, false).is_same(earlier(&other, false)));
    }

    #[test]
    fn files_that_only_an_earlier_body_names_are_not_compared() {
        let named = |file: &str| format!(r#"{{"output": [{{"type": "t", "data_name": "{file}"}}]}}"#);
        let (a, b) = (named("a.pt"), named("b.pt"));
        let hidden = earlier(&[&b, &a], false);
        assert!(!hidden.is_same(hidden));
        let again = earlier(&[&a, &a], false);
        assert!(again.is_same(again));
    }
}
