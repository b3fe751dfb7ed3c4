//! Where the parts of a `.vis` file stand, found in one pass that keeps nothing else.

use std::io::Read;
use std::path::Path;

use msprobe_dump::read::Json;
use msprobe_tensor::files::{Links, open_regular};

use crate::fault::Fault;
use crate::wire::Side;

/// What is read at a time.
const CHUNK: usize = 1 << 18;
/// Members beside the nodes are short; longer ones are none of the format.
const LONGEST_MEMBER: usize = 1 << 20;

/// A `.vis` file from above.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outline {
    pub(crate) is_comparison: bool,
    /// Where the object of each side begins.
    pub(crate) sides: Vec<(Side, u64)>,
    /// The short members, as JSON.
    pub(crate) members: Vec<(String, Vec<u8>)>,
}

impl Outline {
    pub(crate) fn member(&self, key: &str) -> Option<Json<'_>> {
        let (_, text) = self.members.iter().rev().find(|(name, _)| name == key)?;
        Json::parse(text).ok()
    }
}

/// What the pass is in.
#[derive(Default)]
struct Pass {
    depth: usize,
    in_text: bool,
    is_escaped: bool,
    /// A key of the outermost object, while it is read and until its value ends.
    key: Vec<u8>,
    is_key: bool,
    /// The value of that key.
    value: Vec<u8>,
    is_long: bool,
    is_value: bool,
    value_start: Option<u64>,
}

/// Looks at a file.
pub(crate) fn outline(path: &Path) -> Result<Outline, Fault> {
    let mut file = open_regular(path, Links::Refuse)?;
    let mut found: Vec<(String, u64, Option<Vec<u8>>)> = Vec::new();
    let mut pass = Pass::default();
    let mut chunk = vec![0; CHUNK];
    let mut before = 0_u64;
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            break;
        }
        for (at, &byte) in chunk[..read].iter().enumerate() {
            if let Some(member) = pass.step(byte, before + at as u64) {
                if found.len() > 64 {
                    return Err(not_vis(path));
                }
                found.push(member);
            }
        }
        before += read as u64;
    }
    if pass.depth != 0 || pass.in_text {
        return Err(Fault::unreadable(format!("{} ends early: it is not finished", path.display())));
    }
    let place = |key: &str| found.iter().rev().find(|(name, ..)| name == key).map(|(_, at, _)| *at);
    let (is_comparison, sides) = match (place("NPU"), place("Bench"), place("node")) {
        (Some(target), Some(golden), _) => (true, vec![(Side::Target, target), (Side::Golden, golden)]),
        (None, None, Some(_)) => (false, vec![(Side::Target, 0)]),
        _ => return Err(not_vis(path)),
    };
    let members = found.into_iter().filter_map(|(key, _, value)| Some((key, value?))).collect();
    Ok(Outline { is_comparison, sides, members })
}

fn not_vis(path: &Path) -> Fault {
    Fault::unreadable(format!("{} is no graph: it has neither nodes nor two sides", path.display()))
        .with_hint("make it again with msprobe graph")
}

impl Pass {
    /// Goes on by one byte. Gives a member of the outermost object when it is over: key, where its value begins, and the value
    /// if it is short.
    fn step(&mut self, byte: u8, at: u64) -> Option<(String, u64, Option<Vec<u8>>)> {
        let is_blank = matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
        if self.in_text {
            if self.depth == 1 && self.is_key {
                if self.key.len() < 1024 {
                    self.key.push(byte);
                }
            } else {
                self.keep(byte);
            }
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_text = false,
                _ => {}
            }
            return None;
        }
        match byte {
            b'"' => {
                self.in_text = true;
                if self.depth == 1 && !self.is_value {
                    self.is_key = true;
                    self.key.clear();
                    self.key.push(byte);
                    return None;
                }
                self.begin_value(at);
                self.keep(byte);
            }
            b':' if self.depth == 1 && !self.is_value => {
                (self.is_key, self.is_value, self.is_long) = (false, true, false);
                self.value.clear();
                self.value_start = None;
            }
            b'{' | b'[' => {
                if self.depth >= 1 {
                    self.begin_value(at);
                    self.keep(byte);
                }
                self.depth += 1;
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    return self.end_member();
                }
                self.keep(byte);
            }
            b',' if self.depth == 1 => return self.end_member(),
            _ if is_blank => {}
            _ => {
                self.begin_value(at);
                self.keep(byte);
            }
        }
        None
    }

    fn begin_value(&mut self, at: u64) {
        if self.depth == 1 && self.is_value {
            self.value_start.get_or_insert(at);
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.is_value && !self.is_long {
            self.value.push(byte);
            if self.value.len() > LONGEST_MEMBER {
                self.is_long = true;
                self.value = Vec::new();
            }
        }
    }

    fn end_member(&mut self) -> Option<(String, u64, Option<Vec<u8>>)> {
        self.is_value = false;
        let start = self.value_start.take()?;
        let key = match Json::parse(&self.key) {
            Ok(Json::Text(key)) => key.into_owned(),
            _ => return None,
        };
        let value = std::mem::take(&mut self.value);
        Some((key, start, (!self.is_long).then_some(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Outline, Fault> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.vis");
        std::fs::write(&path, text).unwrap();
        outline(&path)
    }

    #[test]
    fn parts_are_found_whatever_stands_in_texts() {
        let text = r#"{ "NPU" : {"root": "}{\"", "node": {}}, "Bench": {"node": {}}, "task": "a,\"b", "Colors": {"x": [1, 2]}, "MicroSteps": 3 }"#;
        let found = of(text).unwrap();
        assert!(found.is_comparison);
        for (side, at) in &found.sides {
            assert!(text[*at as usize..].starts_with('{'), "{side:?}");
        }
        assert_eq!(found.member("task"), Some(Json::Text("a,\"b".into())));
        assert_eq!(found.member("MicroSteps"), Some(Json::Int(3)));
        assert!(matches!(found.member("Colors"), Some(Json::Map(_))));
        assert!(!of(r#"{"root": "x", "node": {}}"#).unwrap().is_comparison);
    }

    #[test]
    fn what_is_no_graph_is_refused() {
        for text in ["", "{}", "[1]", r#"{"NPU": {}}"#, r#"{"node": {"#, "\"", "{\"a\": 1}", "}}}}{{{"] {
            assert!(of(text).is_err(), "{text}");
        }
    }
}
