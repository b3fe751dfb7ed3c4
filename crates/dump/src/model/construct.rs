//! The modules each call was made in: `construct.json`.
//!
//! The file may be missing or may end early; what was read before the end counts.

use std::path::Path;

use crate::hash::{FastMap, FastSet};
use crate::read::{Json, Members, ReadError};

/// Shows the members of a file to `each`, in order. An error comes after what was read before it.
pub fn read_construct(path: &Path, mut each: impl FnMut(&str, &Json<'_>)) -> Result<(), ReadError> {
    let mut members = Members::open(path, "")?;
    while let Some(member) = members.next_member()? {
        each(&member.key, &member.value);
    }
    Ok(())
}

/// The parent a member names: by itself, or first in a list with the micro step.
pub fn parent_of<'v>(value: &'v Json<'_>) -> Option<&'v str> {
    let parent = match value {
        Json::List(parents) => parents.first().and_then(Json::as_str),
        value => value.as_str(),
    };
    parent.filter(|parent| !parent.is_empty())
}

/// The module call in which each record was made.
#[derive(Debug, Default)]
pub struct Construct {
    parents: FastMap<Box<str>, Box<str>>,
    has_records: bool,
    problem: Option<ReadError>,
}

impl Construct {
    /// Reads construct.json of a rank's directory: `{record: parent or null or [parent, …]}`. A file that ends early is
    /// an error only if nothing came before.
    pub fn read(dir: &Path) -> Result<Construct, ReadError> {
        Construct::read_file(&dir.join("construct.json"))
    }

    /// Reads a file of that form.
    pub fn read_file(path: &Path) -> Result<Construct, ReadError> {
        let mut construct = Construct::default();
        let read = read_construct(path, |name, value| {
            construct.has_records = true;
            match parent_of(value) {
                Some(parent) => construct.parents.insert(name.into(), parent.into()),
                // A repeated key counts as its last value.
                None => construct.parents.remove(name),
            };
        });
        match read {
            Ok(()) => Ok(construct),
            Err(error) if construct.parents.is_empty() => Err(error),
            Err(error) => {
                construct.problem = Some(error);
                Ok(construct)
            }
        }
    }

    /// Of records and the module calls they were made in.
    pub fn of<'a>(records: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> Construct {
        let mut construct = Construct::default();
        for (name, parent) in records {
            construct.has_records = true;
            if let Some(parent) = parent {
                construct.parents.insert(name.into(), parent.into());
            }
        }
        construct
    }

    /// A file that could not be read at all.
    pub fn unreadable(problem: ReadError) -> Construct {
        Construct { problem: Some(problem), ..Construct::default() }
    }

    /// What ended the reading early.
    pub fn problem(&self) -> Option<&ReadError> {
        self.problem.as_ref()
    }

    /// The module call a record was made in.
    pub fn parent(&self, name: &str) -> Option<&str> {
        self.parents.get(name).map(|parent| &**parent)
    }

    /// Whether it tells of no record, not even that one was made in no module.
    pub fn is_empty(&self) -> bool {
        !self.has_records
    }

    /// The module calls around a record, the outermost first, without the record. A circle ends where it would begin
    /// again.
    pub fn ancestors<'a>(&'a self, name: &'a str) -> Vec<&'a str> {
        let mut seen: FastSet<&str> = FastSet::default();
        seen.insert(name);
        let mut ancestors = Vec::new();
        let mut next = self.parent(name);
        while let Some(parent) = next.filter(|parent| seen.insert(parent)) {
            ancestors.push(parent);
            next = self.parent(parent);
        }
        ancestors.reverse();
        ancestors
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::read::ReadErrorKind;

    fn construct(text: &str) -> Result<Construct, ReadError> {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("construct.json"), text).unwrap();
        Construct::read(dir.path())
    }

    #[test]
    fn ancestors_are_listed_from_the_outermost() {
        let text = r#"{"a": "b", "b": ["c", null], "c": null, "d": "", "e": 1, "f": []}"#;
        let construct = construct(text).unwrap();
        assert_eq!(construct.ancestors("a"), ["c", "b"]);
        assert_eq!(construct.parent("b"), Some("c"));
        for alone in ["c", "d", "e", "f", "unknown"] {
            assert!(construct.ancestors(alone).is_empty(), "{alone}");
        }
        assert!(construct.problem().is_none());
    }

    #[test]
    fn circles_end() {
        let construct = construct(r#"{"a": "b", "b": "c", "c": "a", "d": "d", "e": "b"}"#).unwrap();
        assert_eq!(construct.ancestors("a"), ["c", "b"]);
        assert_eq!(construct.ancestors("e"), ["a", "c", "b"]);
        assert!(construct.ancestors("d").is_empty());
    }

    #[test]
    fn the_last_value_of_a_repeated_key_counts() {
        let construct = construct(r#"{"a": "b", "c": "d", "a": null, "c": "e"}"#).unwrap();
        assert_eq!((construct.parent("a"), construct.parent("c")), (None, Some("e")));
    }

    #[test]
    fn a_construct_that_ends_early_keeps_what_came_before() {
        let early = construct(r#"{"a": "b", "b": "c", "d": "#).unwrap();
        assert_eq!(early.ancestors("a"), ["c", "b"]);
        assert!(early.problem().is_some());
        assert!(construct("").is_err() && construct("[]").is_err() && construct("{\"a\"").is_err());
        let missing = Construct::read(tempfile::tempdir().unwrap().path()).unwrap_err();
        assert!(matches!(missing.kind, ReadErrorKind::Io(_)));
    }
}
