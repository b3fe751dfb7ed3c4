//! What stands beside a dump: the modules each call was made in, and the lines of code that made it.
//!
//! Both files may be missing or may end early; what was read before the end counts.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::path::Path;

use msprobe_dump::hash::{FastMap, FastSet};
use msprobe_dump::read::{Json, Members, ReadError};

/// The module call in which each record was made.
#[derive(Debug, Default)]
pub struct Construct {
    parents: FastMap<Box<str>, Box<str>>,
    problem: Option<ReadError>,
}

impl Construct {
    /// Reads construct.json of a rank's directory: `{record: parent or null or [parent, …]}`. A file that ends early is
    /// an error only if nothing came before.
    pub fn read(dir: &Path) -> Result<Construct, ReadError> {
        let mut members = Members::open(&dir.join("construct.json"), "")?;
        let mut construct = Construct::default();
        loop {
            match members.next_member() {
                Ok(None) => return Ok(construct),
                Ok(Some(member)) => {
                    let parent = match &member.value {
                        Json::List(parents) => parents.first().and_then(Json::as_str),
                        value => value.as_str(),
                    };
                    match parent.filter(|parent| !parent.is_empty()) {
                        Some(parent) => construct.parents.insert(member.key.into(), parent.into()),
                        // A repeated key counts as its last value.
                        None => construct.parents.remove(&*member.key),
                    };
                }
                Err(error) if construct.parents.is_empty() => return Err(error),
                Err(error) => {
                    construct.problem = Some(error);
                    return Ok(construct);
                }
            }
        }
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

/// The call stacks of some records, from stack.json of a rank's directory in its new form, `{"0": [[record, …],
/// [frame, …]]}`, or the old one, `{record: [frame, …]}`. Reading ends when all are found; a file that ends before that
/// is an error only if none was found.
pub fn find_stacks<S: BuildHasher>(
    dir: &Path,
    names: &HashSet<&str, S>,
) -> Result<HashMap<String, Vec<String>>, ReadError> {
    let mut members = Members::open(&dir.join("stack.json"), "")?;
    let mut stacks: HashMap<String, Vec<String>> = HashMap::new();
    while stacks.len() < names.len() {
        let member = match members.next_member() {
            Ok(Some(member)) => member,
            Ok(None) => break,
            Err(error) if stacks.is_empty() => return Err(error),
            Err(_) => break,
        };
        let Json::List(list) = &member.value else { continue };
        if let [Json::List(records), Json::List(frames), ..] = list.as_slice() {
            for record in records.iter().filter_map(Json::as_str).filter(|record| names.contains(record)) {
                stacks.entry(record.to_owned()).or_insert_with(|| texts(frames));
            }
        } else if names.contains(&*member.key) {
            stacks.insert(member.key.into_owned(), texts(list));
        }
    }
    Ok(stacks)
}

fn texts(list: &[Json<'_>]) -> Vec<String> {
    list.iter().filter_map(Json::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use msprobe_dump::read::ReadErrorKind;
    use tempfile::TempDir;

    use super::*;

    fn dir_with(file: &str, text: &str) -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(file), text).unwrap();
        dir
    }

    fn construct(text: &str) -> Result<Construct, ReadError> {
        Construct::read(dir_with("construct.json", text).path())
    }

    fn stacks(text: &str, names: &[&str]) -> Result<HashMap<String, Vec<String>>, ReadError> {
        find_stacks(dir_with("stack.json", text).path(), &names.iter().copied().collect::<HashSet<_>>())
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

    #[test]
    fn stacks_are_found_in_both_forms() {
        let new =
            stacks(r#"{"0": [["x", "a"], ["f", "g"]], "1": [["a", "b"], ["h"]]}"#, &["a", "b", "z"]).unwrap();
        assert_eq!(new.len(), 2);
        assert_eq!(
            (&new["a"][..], &new["b"][..]),
            (&["f".to_owned(), "g".to_owned()][..], &["h".to_owned()][..])
        );
        let old = stacks(r#"{"a": ["f", "g"], "ab": ["h"]}"#, &["a"]).unwrap();
        assert_eq!(old["a"], ["f", "g"]);
        assert_eq!(old.len(), 1);
    }

    #[test]
    fn odd_stacks_are_passed_over() {
        let odd =
            stacks(r#"{"0": 1, "1": [["a"]], "2": ["a", "b"], "3": [], "4": [["a"], ["f", 1]]}"#, &["a"]);
        assert_eq!(odd.unwrap()["a"], ["f"]);
    }

    #[test]
    fn a_stack_file_that_ends_early_gives_what_came_before() {
        let text = r#"{"0": [["a"], ["f"]], "1": [["b"], "#;
        assert_eq!(stacks(text, &["a"]).unwrap().len(), 1);
        assert_eq!(stacks(text, &["a", "b"]).unwrap().len(), 1);
        assert!(stacks(text, &["b"]).is_err());
        assert!(find_stacks(tempfile::tempdir().unwrap().path(), &HashSet::from(["a"])).is_err());
    }
}
