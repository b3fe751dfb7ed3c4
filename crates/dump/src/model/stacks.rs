//! The lines of code that made each call: `stack.json`, in its new form, `{"0": [[record, …], [frame, …]]}`, or the old one,
//! `{record: [frame, …]}`.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::ops::ControlFlow;
use std::path::Path;

use crate::read::{Json, Members, ReadError};

/// One member of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct StackEntry<'m> {
    /// Its key: a record in the old form, a number in the new one.
    pub key: &'m str,
    /// The records that share the stack; none in the old form.
    pub records: Option<&'m [Json<'m>]>,
    /// The lines, innermost first; none if it is no list.
    pub frames: Option<&'m [Json<'m>]>,
}

impl<'m> StackEntry<'m> {
    /// The records the stack is of.
    pub fn records(&self) -> impl Iterator<Item = &'m str> {
        let own = self.records.is_none().then_some(self.key);
        self.records.unwrap_or_default().iter().filter_map(Json::as_str).chain(own)
    }
}

/// Shows the members of a file to `each` until it has enough.
pub fn read_stacks(
    path: &Path,
    mut each: impl FnMut(&StackEntry<'_>) -> ControlFlow<()>,
) -> Result<(), ReadError> {
    let mut members = Members::open(path, "")?;
    while let Some(member) = members.next_member()? {
        let (records, frames) = match &member.value {
            Json::List(list) => match list.as_slice() {
                [Json::List(records), Json::List(frames), ..] => (Some(&**records), Some(&**frames)),
                frames => (None, Some(frames)),
            },
            _ => (None, None),
        };
        if each(&StackEntry { key: &member.key, records, frames }).is_break() {
            break;
        }
    }
    Ok(())
}

/// The call stacks of some records, from stack.json of a rank's directory. Reading ends when all are found; a file that ends
/// before that is an error only if none was found.
pub fn find_stacks<S: BuildHasher>(
    dir: &Path,
    names: &HashSet<&str, S>,
) -> Result<HashMap<String, Vec<String>>, ReadError> {
    let mut stacks: HashMap<String, Vec<String>> = HashMap::new();
    let read = read_stacks(&dir.join("stack.json"), |entry| {
        if let Some(frames) = entry.frames {
            for record in entry.records().filter(|record| names.contains(record)) {
                if entry.records.is_none() {
                    stacks.insert(record.to_owned(), texts(frames));
                } else {
                    stacks.entry(record.to_owned()).or_insert_with(|| texts(frames));
                }
            }
        }
        if stacks.len() < names.len() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    match read {
        Err(error) if stacks.is_empty() => Err(error),
        _ => Ok(stacks),
    }
}

fn texts(list: &[Json<'_>]) -> Vec<String> {
    list.iter().filter_map(Json::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn stacks(text: &str, names: &[&str]) -> Result<HashMap<String, Vec<String>>, ReadError> {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("stack.json"), text).unwrap();
        find_stacks(dir.path(), &names.iter().copied().collect::<HashSet<_>>())
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
