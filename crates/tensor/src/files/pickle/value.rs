//! What a pickle decodes to: nodes in one flat arena that refer to each other by number, so that shared
//! references, cycles and any depth of nesting cost nothing to build or drop.

use std::borrow::Cow;

use super::globals::{Global, GlobalId};

/// A node of an [`Arena`].
pub(crate) type NodeId = u32;

/// A decoded value. Text and bytes are ranges of the input (or, past its end, of the arena's own copies).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Node {
    None,
    Bool(bool),
    Int(i64),
    /// An integer of more than 64 bits: two's complement, little-endian, as in the file.
    BigInt {
        len: u32,
        start: u64,
    },
    Float(f64),
    /// Valid UTF-8.
    Str {
        len: u32,
        start: u64,
    },
    Bytes {
        len: u32,
        start: u64,
    },
    /// Bytes written as UTF-8 text of the characters 0 to 255, as protocol 2 does.
    Latin1 {
        len: u32,
        start: u64,
    },
    /// `len` links from `start`.
    Tuple {
        start: u32,
        len: u32,
    },
    List(u32),
    Set(u32),
    Dict(u32),
    Object(u32),
    Global(GlobalId),
}

/// A dict, with the attributes a subclass may carry.
#[derive(Debug, Default)]
pub(crate) struct DictNode {
    pub(crate) items: Vec<(NodeId, NodeId)>,
    pub(crate) state: Option<NodeId>,
}

/// An allow-listed class or function with its arguments, neither made nor called.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ObjectNode {
    pub(crate) global: GlobalId,
    /// The arguments: a tuple (or the persistent id, which torch makes a tuple too).
    pub(crate) args: NodeId,
    /// Attributes set after the fact.
    pub(crate) state: Option<NodeId>,
}

/// Everything one pickle decoded to.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    pub(super) nodes: Vec<Node>,
    /// Members of tuples.
    pub(super) links: Vec<NodeId>,
    /// Members of lists and sets.
    pub(super) lists: Vec<Vec<NodeId>>,
    pub(super) dicts: Vec<DictNode>,
    pub(super) objects: Vec<ObjectNode>,
    /// Texts that had to be unescaped, addressed from the end of the input on.
    pub(super) copies: Vec<u8>,
}

impl Arena {
    /// The node; `Node::None` for a number that is none.
    pub(crate) fn node(&self, id: NodeId) -> Node {
        self.nodes.get(id as usize).copied().unwrap_or(Node::None)
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Members of a tuple, list or set, in order.
    pub(crate) fn sequence(&self, id: NodeId) -> Option<&[NodeId]> {
        match self.node(id) {
            Node::Tuple { start, len } => {
                self.links.get(start as usize..).and_then(|links| links.get(..len as usize))
            }
            Node::List(index) | Node::Set(index) => self.lists.get(index as usize).map(Vec::as_slice),
            _ => None,
        }
    }

    pub(crate) fn tuple(&self, id: NodeId) -> Option<&[NodeId]> {
        matches!(self.node(id), Node::Tuple { .. }).then(|| self.sequence(id)).flatten()
    }

    pub(crate) fn dict(&self, id: NodeId) -> Option<&DictNode> {
        match self.node(id) {
            Node::Dict(index) => self.dicts.get(index as usize),
            _ => None,
        }
    }

    pub(crate) fn object(&self, id: NodeId) -> Option<&ObjectNode> {
        match self.node(id) {
            Node::Object(index) => self.objects.get(index as usize),
            _ => None,
        }
    }

    /// All objects in the order they were made.
    pub(crate) fn objects(&self) -> &[ObjectNode] {
        &self.objects
    }

    pub(crate) fn global(&self, id: NodeId) -> Option<GlobalId> {
        match self.node(id) {
            Node::Global(global) => Some(global),
            _ => None,
        }
    }

    /// What the object's class or function means.
    pub(crate) fn meaning(&self, id: NodeId) -> Option<Global> {
        self.object(id).map(|object| object.global.meaning())
    }

    /// The bytes of a text or bytes node as they lie in the file.
    pub(crate) fn raw<'a>(&'a self, input: &'a [u8], id: NodeId) -> Option<&'a [u8]> {
        match self.node(id) {
            Node::Str { len, start }
            | Node::Bytes { len, start }
            | Node::Latin1 { len, start }
            | Node::BigInt { len, start } => self.span(input, start, len),
            _ => None,
        }
    }

    fn span<'a>(&'a self, input: &'a [u8], start: u64, len: u32) -> Option<&'a [u8]> {
        let start = usize::try_from(start).ok()?;
        match start.checked_sub(input.len()) {
            None => input.get(start..)?.get(..len as usize),
            Some(inside) => self.copies.get(inside..)?.get(..len as usize),
        }
    }

    pub(crate) fn str<'a>(&'a self, input: &'a [u8], id: NodeId) -> Option<&'a str> {
        match self.node(id) {
            Node::Str { len, start } => std::str::from_utf8(self.span(input, start, len)?).ok(),
            _ => None,
        }
    }

    pub(crate) fn int(&self, id: NodeId) -> Option<i64> {
        match self.node(id) {
            Node::Int(value) => Some(value),
            Node::Bool(value) => Some(value.into()),
            _ => None,
        }
    }

    /// The value of a bytes node. Text counts as bytes where Python 2 made no difference.
    pub(crate) fn bytes<'a>(&'a self, input: &'a [u8], id: NodeId) -> Option<Cow<'a, [u8]>> {
        let raw = self.raw(input, id)?;
        match self.node(id) {
            Node::Bytes { .. } | Node::Str { .. } => Some(Cow::Borrowed(raw)),
            Node::Latin1 { .. } if raw.is_ascii() => Some(Cow::Borrowed(raw)),
            Node::Latin1 { .. } => {
                let text = std::str::from_utf8(raw).ok()?;
                text.chars().map(|c| u8::try_from(c).ok()).collect::<Option<Vec<u8>>>().map(Cow::Owned)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_small() {
        assert_eq!(size_of::<Node>(), 16);
    }
}
