//! YAML read into a small tree, however the file is made.
//!
//! Built from events instead of with a loader, because a loader recurses as deep as the file is nested and copies what
//! an alias names: both would let a small file end the process.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::rc::Rc;

use saphyr_parser::{Event, Parser, ScalarStyle};

use msprobe_report::error::{Code, CompareError};

/// Deeper files are refused. No mapping needs more than four levels.
const MAX_DEPTH: usize = 32;
/// Values an alias stands for count each time it is used; more than this many are refused.
const MAX_ALIASED: usize = 1_000_000;
/// Files with more values are refused, written out or not.
const MAX_VALUES: usize = 4 << 20;
/// Larger files are refused.
const MAX_SIZE_BYTES: u64 = 1 << 30;

/// A value. What a scalar means is up to those who read it: it is kept as it is written.
#[derive(Debug, PartialEq, Eq)]
pub enum Node {
    /// Nothing, `~` or `null`.
    Null,
    /// Any other scalar.
    Text(String),
    /// A sequence.
    List(Vec<Rc<Node>>),
    /// A mapping, in the order of the file. A key that is repeated counts as its last value, at the place of the first.
    Map(Vec<(Rc<Node>, Rc<Node>)>),
}

impl Node {
    /// Its text, if it is a scalar.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Node::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The member of a mapping with this key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        let Node::Map(members) = self else { return None };
        members.iter().find(|(name, _)| name.as_text() == Some(key)).map(|(_, value)| &**value)
    }

    /// What kind of value it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Node::Null => "nothing",
            Node::Text(_) => "a single value",
            Node::List(_) => "a list",
            Node::Map(_) => "a mapping",
        }
    }
}

/// Reads a mapping file. An empty one is [`Node::Null`].
pub fn read(path: &Path) -> Result<Rc<Node>, CompareError> {
    let shown = path.display();
    let metadata = std::fs::metadata(path).map_err(|error| {
        CompareError::new(Code::IllegalPath, format!("The file path {shown} does not exist."))
            .with_hint(format!("check the path of the mapping file ({error})"))
    })?;
    if !metadata.is_file() {
        return Err(CompareError::new(Code::InvalidFile, format!("The {shown} should be a file!"))
            .with_hint("give the mapping file itself"));
    }
    if path.extension().is_none_or(|extension| extension != "yaml") {
        let message = format!("The {shown} should be a .yaml file!");
        return Err(CompareError::new(Code::InvalidFile, message)
            .with_hint("mapping files are YAML, and their names must end with .yaml"));
    }
    if metadata.len() > MAX_SIZE_BYTES {
        let message = format!("The mapping file {shown} is larger than 1 GB");
        return Err(CompareError::new(Code::InvalidFile, message));
    }
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(MAX_SIZE_BYTES).read_to_string(&mut text))
        .map_err(|error| broken(path, &error))?;
    parse(&text).map_err(|problem| match problem {
        Problem::Syntax(reason) => broken(path, &reason),
        Problem::TooDeep => {
            let message = format!("The mapping file {shown} is nested more than {MAX_DEPTH} levels deep");
            CompareError::new(Code::RecursionLimit, message)
        }
        Problem::TooMany => {
            let message = format!("The mapping file {shown} has more than {MAX_VALUES} values");
            CompareError::new(Code::InvalidFile, message).with_hint("give a mapping of fewer names")
        }
        Problem::Aliases => {
            let message = format!("The aliases of the mapping file {shown} stand for too many values");
            CompareError::new(Code::InvalidFile, message).with_hint("write the values out")
        }
    })
}

fn broken(path: &Path, reason: &dyn std::fmt::Display) -> CompareError {
    CompareError::new(Code::BrokenJson, format!("Load yaml file {} failed.", path.display()))
        .with_hint(reason.to_string())
}

/// Why a text is not read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("{0}")]
    /// It is no YAML.
    Syntax(String),
    #[error("it is nested more than {MAX_DEPTH} levels deep")]
    /// It is nested too deeply.
    TooDeep,
    #[error("its aliases stand for too many values")]
    /// Aliases make it longer than it may be.
    Aliases,
    #[error("it has more than {MAX_VALUES} values")]
    /// It has too many values.
    TooMany,
}

/// A finished value with what is needed to bound what is made of it.
#[derive(Clone)]
struct Built {
    node: Rc<Node>,
    /// Values in it, itself included.
    size: usize,
    /// Levels in it: 0 for a scalar.
    depth: usize,
}

impl Built {
    fn scalar(node: Node) -> Built {
        Built { node: Rc::new(node), size: 1, depth: 0 }
    }
}

/// A sequence or mapping whose end has not come yet.
struct Open {
    /// Number by which an alias can name it; 0 for none.
    anchor: usize,
    is_map: bool,
    children: Vec<Built>,
}

impl Open {
    fn close(self) -> Built {
        let size = self.children.iter().fold(1usize, |sum, child| sum.saturating_add(child.size));
        let depth = 1 + self.children.iter().map(|child| child.depth).max().unwrap_or(0);
        let nodes = self.children.into_iter().map(|child| child.node);
        let node = if self.is_map { close_map(nodes) } else { Node::List(nodes.collect()) };
        Built { node: Rc::new(node), size, depth }
    }
}

fn close_map(mut nodes: impl Iterator<Item = Rc<Node>>) -> Node {
    let mut members: Vec<(Rc<Node>, Rc<Node>)> = Vec::new();
    let mut places: HashMap<Rc<Node>, usize> = HashMap::new();
    while let (Some(key), Some(value)) = (nodes.next(), nodes.next()) {
        // Only texts can be asked for; a key of another kind cannot stand in the way of one.
        let place = key.as_text().and_then(|_| places.get(&key).copied());
        if let Some(member) = place.and_then(|place| members.get_mut(place)) {
            member.1 = value;
        } else {
            if key.as_text().is_some() {
                places.insert(Rc::clone(&key), members.len());
            }
            members.push((key, value));
        }
    }
    Node::Map(members)
}

impl std::hash::Hash for Node {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        // Only texts are put into tables.
        self.as_text().hash(state);
    }
}

/// Parses the only document of a text.
pub fn parse(text: &str) -> Result<Rc<Node>, Problem> {
    let mut parser = Parser::new_from_str(text.trim_start_matches('\u{feff}'));
    let mut open: Vec<Open> = Vec::new();
    let mut anchored: HashMap<usize, Built> = HashMap::new();
    let mut aliased = 0usize;
    let mut root: Option<Built> = None;
    let mut values = 0usize;
    while let Some(event) = parser.next_event() {
        let (event, _) = event.map_err(|error| Problem::Syntax(error.to_string()))?;
        // A value takes fifty times the room of the two bytes it can be written with.
        values += 1;
        if values > MAX_VALUES {
            return Err(Problem::TooMany);
        }
        let (built, anchor) = match event {
            Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _) => {
                if open.len() >= MAX_DEPTH {
                    return Err(Problem::TooDeep);
                }
                let is_map = matches!(event, Event::MappingStart(..));
                open.push(Open { anchor, is_map, children: Vec::new() });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(ended) => {
                    let anchor = ended.anchor;
                    (ended.close(), anchor)
                }
                None => return Err(Problem::Syntax("an end without a beginning".to_owned())),
            },
            Event::Scalar(text, style, anchor, _) => {
                let is_null =
                    style == ScalarStyle::Plain && matches!(&*text, "" | "~" | "null" | "Null" | "NULL");
                (Built::scalar(if is_null { Node::Null } else { Node::Text(text.into_owned()) }), anchor)
            }
            Event::Alias(anchor) => {
                let named = anchored.get(&anchor).cloned();
                let named = named.ok_or_else(|| Problem::Syntax("a value contains itself".to_owned()))?;
                aliased = aliased.saturating_add(named.size);
                if aliased > MAX_ALIASED {
                    return Err(Problem::Aliases);
                }
                (named, 0)
            }
            _ => continue,
        };
        // Aliases can make a value deeper than the file is nested.
        if open.len() + built.depth > MAX_DEPTH {
            return Err(Problem::TooDeep);
        }
        if anchor > 0 {
            anchored.insert(anchor, built.clone());
        }
        match open.last_mut() {
            Some(parent) => parent.children.push(built),
            None if root.is_none() => root = Some(built),
            None => return Err(Problem::Syntax("more than one document".to_owned())),
        }
    }
    Ok(root.map_or_else(|| Rc::new(Node::Null), |root| root.node))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    fn texts(node: &Node) -> Vec<&str> {
        let Node::List(elements) = node else { panic!("{node:?}") };
        elements.iter().map(|element| element.as_text().unwrap()).collect()
    }

    #[test]
    fn scalars_keep_their_text() {
        let node = parse("a: [1, 0x1, yes, 'null', -x.y]\nb: ~\n? c\n: d\n2: 3\na.b: N/A").unwrap();
        assert_eq!(texts(node.get("a").unwrap()), ["1", "0x1", "yes", "null", "-x.y"]);
        assert_eq!(node.get("b"), Some(&Node::Null));
        assert_eq!(node.get("c").unwrap().as_text(), Some("d"));
        assert_eq!(node.get("2").unwrap().as_text(), Some("3"));
        assert_eq!(node.get("a.b").unwrap().as_text(), Some("N/A"));
        assert_eq!(*parse("").unwrap(), Node::Null);
        assert_eq!(*parse("# only a remark\n").unwrap(), Node::Null);
    }

    #[test]
    fn the_last_of_repeated_keys_counts() {
        let node = parse("a: 1\nb: 2\na: 3\n? [x]\n: 4\n? [x]\n: 5").unwrap();
        assert_eq!(node.get("a").unwrap().as_text(), Some("3"));
        let Node::Map(members) = &*node else { panic!() };
        assert_eq!(members.len(), 4);
        assert_eq!(members[0].0.as_text(), Some("a"));
    }

    #[test]
    fn aliases_share_what_they_name() {
        let node = parse("a: &x {k: v}\nb: *x").unwrap();
        assert_eq!(node.get("b").unwrap().get("k").unwrap().as_text(), Some("v"));
    }

    #[test]
    fn hostile_files_are_refused_in_time() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..30 {
            let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
            writeln!(bomb, "a{level}: &a{level} [{aliases}]").unwrap();
        }
        assert_eq!(parse(&bomb), Err(Problem::Aliases));

        let mut chain = "- &a0 [x]\n".to_owned();
        for level in 1..20_000 {
            writeln!(chain, "- &a{level} [*a{}]", level - 1).unwrap();
        }
        assert_eq!(parse(&chain), Err(Problem::TooDeep));

        assert_eq!(parse(&format!("[{}]", "a,".repeat(MAX_VALUES))), Err(Problem::TooMany));

        for nested in ["[", "{a: ", "- ", "? ", "- ? "] {
            assert!(parse(&nested.repeat(100_000)).is_err(), "{nested}");
        }
        let steps: String = (0..2000).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
        assert_eq!(parse(&steps), Err(Problem::TooDeep));
        for text in
            ["&a [*a]", "*nowhere", "a: b: c", "[", "a\n---\nb", "\t- x", "%YAML 9.9.9", "!<", "? - : ?"]
        {
            // Some are valid in one way or another; none may bring the process down.
            let _ = parse(text);
        }
        assert!(matches!(parse("&a [*a]"), Err(Problem::Syntax(_))));
        assert!(matches!(parse("a\n---\nb"), Err(Problem::Syntax(_))));
    }

    #[test]
    fn files_are_checked_before_they_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let code = |path: &Path| read(path).unwrap_err().code;
        assert_eq!(code(&dir.path().join("none.yaml")), Code::IllegalPath);
        assert_eq!(code(dir.path()), Code::InvalidFile);
        let other = dir.path().join("mapping.yml");
        std::fs::write(&other, "a: b").unwrap();
        assert_eq!(code(&other), Code::InvalidFile);
        let bytes = dir.path().join("bytes.yaml");
        std::fs::write(&bytes, b"a: \xff\xfe").unwrap();
        assert_eq!(code(&bytes), Code::BrokenJson);
        std::fs::write(&bytes, "a: [").unwrap();
        assert_eq!(code(&bytes), Code::BrokenJson);
    }
}
