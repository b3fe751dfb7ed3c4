//! The tensors of a decoded value, by dotted path, without recursion and within limits: values may be shared, so
//! a small file can spell out an enormous tree.

use std::fmt::Write;

use crate::files::pickle::{Arena, Node, NodeId};
use crate::files::{FormatError, Index, PlainValue, TensorEntry, TensorLayout};

use super::PtDocument;

const MAX_DEPTH: usize = 256;
const MAX_NAME_BYTES: usize = 64 << 10;
const BASE_VISITS: usize = 1_000_000;
/// Names and entries of an index may take this much, plus four times the file.
const BASE_INDEX_BYTES: usize = 64 << 20;
const ENTRY_BYTES: usize = 128;
/// Elements that strides repeat may add up to this much, plus [`EXPANSION_FACTOR`] times the file.
const BASE_EXPANSION_BYTES: u64 = 1 << 30;
const EXPANSION_FACTOR: u64 = 256;

/// Lists the tensors of `doc`.
pub(super) fn index(doc: &PtDocument<'_>) -> Result<Index, FormatError> {
    let mut walk = Walk::new(doc, None);
    walk.run()?;
    Ok(walk.index)
}

/// Everything of `doc` that is no tensor, by dotted path: numbers, texts, and objects by their class.
pub(super) fn plain_values(doc: &PtDocument<'_>) -> Result<Vec<PlainValue>, FormatError> {
    let mut walk = Walk::new(doc, Some(Vec::new()));
    walk.run()?;
    Ok(walk.plain.unwrap_or_default())
}

/// What all tensors of a file come to when spelled out.
pub(super) struct Expansion {
    total_bytes: u64,
    limit_bytes: u64,
}

impl Expansion {
    pub(super) fn new(file_len: usize) -> Self {
        let limit_bytes =
            (file_len as u64).saturating_mul(EXPANSION_FACTOR).saturating_add(BASE_EXPANSION_BYTES);
        Expansion { total_bytes: 0, limit_bytes }
    }

    /// Counts one more tensor; refuses it if that is too much.
    pub(super) fn add(&mut self, layout: TensorLayout) -> Result<TensorLayout, FormatError> {
        let size_bytes = layout.size_bytes().map_or(u64::MAX, |size| size as u64);
        let total_bytes = self.total_bytes.saturating_add(size_bytes);
        if total_bytes > self.limit_bytes {
            return Err(FormatError::Refused(format!(
                "the tensor expands {} bytes of storage to {size_bytes} bytes",
                layout.storage_len
            )));
        }
        self.total_bytes = total_bytes;
        Ok(layout)
    }
}

struct Frame {
    id: NodeId,
    next_child: usize,
    path_len: usize,
}

struct Walk<'d> {
    doc: &'d PtDocument<'d>,
    path: String,
    frames: Vec<Frame>,
    /// By node: whether it is one of `frames`.
    on_path: Vec<bool>,
    visits_left: usize,
    index_bytes_left: usize,
    expansion: Expansion,
    index: Index,
    /// Where what is no tensor goes, if that is asked for.
    plain: Option<Vec<PlainValue>>,
}

impl<'d> Walk<'d> {
    fn new(doc: &'d PtDocument<'d>, plain: Option<Vec<PlainValue>>) -> Walk<'d> {
        let file_len = doc.file.len();
        Walk {
            doc,
            path: String::new(),
            frames: Vec::new(),
            on_path: vec![false; doc.arena.len()],
            visits_left: BASE_VISITS.saturating_add(file_len),
            index_bytes_left: BASE_INDEX_BYTES.saturating_add(file_len.saturating_mul(4)),
            expansion: Expansion::new(file_len),
            index: Index::default(),
            plain,
        }
    }

    fn run(&mut self) -> Result<(), FormatError> {
        self.visit(self.doc.root)?;
        while let Some(frame) = self.frames.last_mut() {
            self.path.truncate(frame.path_len);
            let (id, index) = (frame.id, frame.next_child);
            frame.next_child += 1;
            if let Some((key, node)) = child(&self.doc.arena, id, index) {
                // Numbers and texts have no tensors in them: no need to spell out their names.
                if self.plain.is_some() || is_branch(self.doc.arena.node(node)) {
                    self.enter(key)?;
                }
                self.visit(node)?;
            } else {
                self.frames.pop();
                if let Some(flag) = self.on_path.get_mut(id as usize) {
                    *flag = false;
                }
            }
        }
        Ok(())
    }

    fn visit(&mut self, id: NodeId) -> Result<(), FormatError> {
        self.visits_left = self.visits_left.checked_sub(1).ok_or_else(|| {
            FormatError::Refused("shared values spell out a tree far larger than the file".into())
        })?;
        if !is_branch(self.doc.arena.node(id)) {
            return self.add_plain(id);
        }
        match self.doc.layout(id) {
            Some(_) if self.plain.is_some() => {}
            Some(layout) => self.add_entry(layout)?,
            None => self.add_plain(id)?,
        }
        if self.frames.len() >= MAX_DEPTH {
            return Err(FormatError::Refused(format!("values nested deeper than {MAX_DEPTH} levels")));
        }
        match self.on_path.get_mut(id as usize) {
            Some(flag) if !*flag => *flag = true,
            _ => return Err(FormatError::Refused(format!("the value at `{}` contains itself", self.path))),
        }
        self.frames.push(Frame { id, next_child: 0, path_len: self.path.len() });
        Ok(())
    }

    fn add_entry(&mut self, layout: Result<TensorLayout, FormatError>) -> Result<(), FormatError> {
        let decoded = layout.as_ref().ok().and_then(|layout| layout.decoded.as_ref());
        let cost = self.path.len() + ENTRY_BYTES + decoded.map_or(0, |bytes| bytes.len());
        self.index_bytes_left = self.index_bytes_left.checked_sub(cost).ok_or_else(|| {
            FormatError::Refused("shared values spell out an index far larger than the file".into())
        })?;
        let layout = layout.and_then(|layout| self.expansion.add(layout));
        self.index.entries.push(TensorEntry { name: self.path.clone(), layout });
        Ok(())
    }

    /// A number or text, what an object is made of, or what a container is.
    fn add_plain(&mut self, id: NodeId) -> Result<(), FormatError> {
        let Some(plain) = &mut self.plain else { return Ok(()) };
        let (doc, arena) = (self.doc, &self.doc.arena);
        let escaped = || arena.raw(doc.file, id).unwrap_or_default().escape_ascii().to_string();
        let text = match arena.node(id) {
            Node::None => "None".to_owned(),
            Node::Bool(value) => format!("bool {value}"),
            Node::Int(value) => format!("int {value}"),
            Node::Float(value) => format!("float {value:?}"),
            Node::BigInt { .. } => format!("int {}", escaped()),
            Node::Str { .. } => format!("str '{}'", escaped()),
            Node::Bytes { .. } | Node::Latin1 { .. } => format!("bytes '{}'", escaped()),
            Node::Global(global) => global.get().name.to_owned(),
            // Their members speak for themselves.
            Node::Tuple { .. } => "tuple".to_owned(),
            Node::List(_) => "list".to_owned(),
            Node::Set(_) => "set".to_owned(),
            Node::Dict(_) => "dict".to_owned(),
            Node::Object(_) => {
                let Some(object) = arena.object(id) else { return Ok(()) };
                let mut text = object.global.get().name.to_owned();
                push_key(doc, object.args, &mut text);
                text
            }
        };
        let cost = self.path.len() + text.len() + ENTRY_BYTES;
        self.index_bytes_left = self.index_bytes_left.checked_sub(cost).ok_or_else(|| {
            FormatError::Refused("shared values spell out an index far larger than the file".into())
        })?;
        plain.push(PlainValue { name: self.path.clone(), text });
        Ok(())
    }

    /// Adds one part to the path.
    fn enter(&mut self, key: Key) -> Result<(), FormatError> {
        if self.frames.len() > 1 {
            self.path.push('.');
        }
        match key {
            Key::Index(index) => drop(write!(self.path, "{index}")),
            Key::Node(id) => push_key(self.doc, id, &mut self.path),
        }
        if self.path.len() > MAX_NAME_BYTES {
            return Err(FormatError::Refused(format!("a tensor name longer than {MAX_NAME_BYTES} bytes")));
        }
        Ok(())
    }
}

/// What a value is called inside its container.
#[derive(Debug, Clone, Copy)]
pub(super) enum Key {
    /// Position in a sequence.
    Index(usize),
    /// Key of a dict, or name of an attribute.
    Node(NodeId),
}

fn is_branch(node: Node) -> bool {
    matches!(node, Node::Tuple { .. } | Node::List(_) | Node::Set(_) | Node::Dict(_) | Node::Object(_))
}

/// The `index`-th value inside a value: members, items, then attributes.
pub(super) fn child(arena: &Arena, id: NodeId, index: usize) -> Option<(Key, NodeId)> {
    if let Some(members) = arena.sequence(id) {
        return members.get(index).map(|&member| (Key::Index(index), member));
    }
    let (items, state) = match (arena.dict(id), arena.object(id)) {
        (Some(dict), _) => (dict.items.as_slice(), dict.state),
        (_, Some(object)) => (&[][..], object.state),
        _ => return None,
    };
    if let Some(&(key, value)) = items.get(index) {
        return Some((Key::Node(key), value));
    }
    attribute(arena, state?, index - items.len())
}

/// The `index`-th attribute of a state: a dict, or a pair of them (`__dict__` and slots).
pub(super) fn attribute(arena: &Arena, state: NodeId, index: usize) -> Option<(Key, NodeId)> {
    let pair = [state];
    let dicts: &[NodeId] = match arena.tuple(state) {
        // The state of a numpy array is a longer tuple, and no attributes.
        Some(pair) if pair.len() == 2 => pair,
        Some(_) => return None,
        None => &pair,
    };
    let mut left = index;
    for &dict in dicts {
        let items = arena.dict(dict).map(|dict| dict.items.as_slice()).unwrap_or_default();
        match items.get(left) {
            Some(&(key, value)) => return Some((Key::Node(key), value)),
            None => left -= items.len(),
        }
    }
    None
}

/// Appends a dict key as Python would print it, at most a little beyond the name limit.
pub(super) fn push_key(doc: &PtDocument<'_>, id: NodeId, out: &mut String) {
    if let Some(members) = doc.arena.tuple(id) {
        out.push('(');
        for (index, &member) in members.iter().enumerate() {
            if out.len() > MAX_NAME_BYTES {
                return;
            }
            if index > 0 {
                out.push_str(", ");
            }
            let quote = if matches!(doc.arena.node(member), Node::Str { .. }) { "'" } else { "" };
            out.push_str(quote);
            push_scalar(doc, member, out);
            out.push_str(quote);
        }
        out.push(')');
    } else {
        push_scalar(doc, id, out);
    }
}

fn push_scalar(doc: &PtDocument<'_>, id: NodeId, out: &mut String) {
    match doc.arena.node(id) {
        Node::None => out.push_str("None"),
        Node::Bool(value) => out.push_str(if value { "True" } else { "False" }),
        Node::Int(value) => drop(write!(out, "{value}")),
        Node::Float(value) => drop(write!(out, "{value:?}")),
        Node::Global(global) => out.push_str(global.get().name),
        Node::Str { .. } | Node::Bytes { .. } | Node::Latin1 { .. } | Node::BigInt { .. } => {
            let raw = doc.arena.raw(doc.file, id).unwrap_or_default();
            let raw = raw.get(..=MAX_NAME_BYTES).unwrap_or(raw);
            out.push_str(&String::from_utf8_lossy(raw));
        }
        Node::Tuple { .. } | Node::List(_) | Node::Set(_) | Node::Dict(_) | Node::Object(_) => out.push('?'),
    }
}
