//! The stack machine that a pickle is a program for.
//!
//! Every instruction consumes at least one byte of input and does a bounded amount of work, or work that is
//! charged to the memory budget, so a hostile program ends soon whatever it says.

use std::ops::Range;

use super::globals::GlobalId;
use super::memo::{Memo, NO_NODE};
use super::opcodes::Op;
use super::text::{unescape_literal, unescape_unicode};
use super::value::{Arena, DictNode, Node, NodeId, ObjectNode};
use crate::files::{FormatError, malformed};

/// One pickle, decoded.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) arena: Arena,
    pub(crate) root: NodeId,
    /// The byte after the STOP instruction.
    pub(crate) end: usize,
}

/// Decodes the pickle that begins at `range.start` of `input`; it may end before `range.end`. Ranges of text and
/// bytes in the result count from the start of `input`.
pub(crate) fn decode(input: &[u8], range: Range<usize>, budget_bytes: usize) -> Result<Decoded, FormatError> {
    let mut machine = Machine {
        input,
        at: range.start,
        end: range.end.min(input.len()),
        arena: Arena::default(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: Memo::default(),
        spent_bytes: 0,
        budget_bytes,
        high_water: 0,
    };
    let root = machine.run()?;
    Ok(Decoded { arena: machine.arena, root, end: machine.at })
}

pub(super) struct Machine<'a> {
    pub(super) input: &'a [u8],
    pub(super) at: usize,
    pub(super) end: usize,
    pub(super) arena: Arena,
    stack: Vec<NodeId>,
    /// Heights of the stack at each open mark.
    marks: Vec<usize>,
    memo: Memo,
    spent_bytes: usize,
    budget_bytes: usize,
    /// The most entries the stack and the marks have had; only beyond it do they cost.
    high_water: usize,
}

impl Machine<'_> {
    fn run(&mut self) -> Result<NodeId, FormatError> {
        loop {
            let [byte] = self.array("pickle instruction")?;
            let op = Op::from_byte(byte).ok_or_else(|| {
                malformed(format!("no pickle instruction {byte:#04x} at byte {}", self.at - 1))
            })?;
            if op == Op::Stop {
                return self.pop();
            }
            self.step(op)?;
        }
    }

    fn step(&mut self, op: Op) -> Result<(), FormatError> {
        match op {
            Op::Stop => Ok(()),
            Op::Proto => {
                let [version] = self.array("pickle protocol")?;
                if version > 5 {
                    return Err(FormatError::Unsupported(format!(
                        "pickle protocol {version}; known are 0 to 5"
                    )));
                }
                Ok(())
            }
            Op::Frame => {
                let len = u64::from_le_bytes(self.array("pickle frame length")?);
                self.check_remaining("pickle frame", len).map(|_| ())
            }
            Op::Mark => {
                self.marks.push(self.stack.len());
                self.charge_stack()
            }
            Op::Pop => {
                // POP also closes a mark that nothing was pushed on.
                if self.marks.last() == Some(&self.stack.len()) {
                    self.marks.pop();
                    return Ok(());
                }
                self.pop().map(|_| ())
            }
            Op::PopMark => self.pop_mark().map(|_| ()),
            Op::Dup => {
                let top = self.pop()?;
                self.push(top)?;
                self.push(top)
            }
            Op::Put | Op::BinPut | Op::LongBinPut | Op::Memoize | Op::Get | Op::BinGet | Op::LongBinGet => {
                self.memo_op(op)
            }
            Op::None => self.push_node(Node::None),
            Op::NewTrue => self.push_node(Node::Bool(true)),
            Op::NewFalse => self.push_node(Node::Bool(false)),
            Op::Int | Op::Long | Op::Float | Op::BinInt | Op::BinInt1 | Op::BinInt2 => self.number_op(op),
            Op::BinFloat => {
                let value = f64::from_be_bytes(self.array("pickled float")?);
                self.push_node(Node::Float(value))
            }
            Op::Long1 | Op::Long4 => self.long_op(op),
            Op::String | Op::Unicode => self.escaped_text_op(op),
            Op::BinString | Op::ShortBinString => {
                let len = self.length(op)?;
                let (start, len) = self.span("pickled string", len)?;
                // Python 2: text and bytes are one type. Text if it can be.
                let is_text = std::str::from_utf8(self.bytes_at(start, len)).is_ok();
                self.push_node(if is_text { Node::Str { len, start } } else { Node::Bytes { len, start } })
            }
            Op::BinUnicode | Op::ShortBinUnicode | Op::BinUnicode8 => {
                let len = self.length(op)?;
                let (start, len) = self.span("pickled text", len)?;
                if std::str::from_utf8(self.bytes_at(start, len)).is_err() {
                    return Err(malformed(format!("pickled text at byte {start} is not UTF-8")));
                }
                self.push_node(Node::Str { len, start })
            }
            Op::BinBytes | Op::ShortBinBytes | Op::BinBytes8 | Op::ByteArray8 => {
                let len = self.length(op)?;
                let (start, len) = self.span("pickled bytes", len)?;
                self.push_node(Node::Bytes { len, start })
            }
            Op::EmptyTuple => self.push_tuple(&[]),
            Op::Tuple1 => self.push_tuple_of(1),
            Op::Tuple2 => self.push_tuple_of(2),
            Op::Tuple3 => self.push_tuple_of(3),
            Op::Tuple => {
                let items = self.pop_mark()?;
                self.push_tuple(&items)
            }
            Op::EmptyList => self.push_list(Vec::new()),
            Op::List => {
                let items = self.pop_mark()?;
                self.push_list(items)
            }
            Op::EmptySet => self.push_set(Vec::new()),
            Op::FrozenSet => {
                let items = self.pop_mark()?;
                self.push_set(items)
            }
            Op::EmptyDict => self.push_dict(Vec::new()),
            Op::Dict => {
                let items = pairs(&self.pop_mark()?)?;
                self.push_dict(items)
            }
            Op::Append => {
                let item = self.pop()?;
                self.extend_list(&[item])
            }
            Op::Appends => {
                let items = self.pop_mark()?;
                self.extend_list(&items)
            }
            Op::AddItems => {
                let items = self.pop_mark()?;
                self.extend_set(&items)
            }
            Op::SetItem => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.extend_dict(&[(key, value)])
            }
            Op::SetItems => {
                let items = pairs(&self.pop_mark()?)?;
                self.extend_dict(&items)
            }
            Op::Global | Op::StackGlobal => self.global_op(op),
            Op::Reduce | Op::NewObj => {
                let (args, callee) = (self.pop()?, self.pop()?);
                let result = self.call(callee, args)?;
                self.push(result)
            }
            Op::NewObjEx => {
                let (keywords, args, callee) = (self.pop()?, self.pop()?, self.pop()?);
                if self.arena.dict(keywords).is_none_or(|dict| !dict.items.is_empty()) {
                    return Err(FormatError::Unsupported("an object pickled with keyword arguments".into()));
                }
                let result = self.call(callee, args)?;
                self.push(result)
            }
            Op::Obj => {
                let mut items = self.pop_mark()?;
                if items.is_empty() {
                    return Err(malformed("a pickled object without a class"));
                }
                let callee = items.remove(0);
                let args = self.tuple(&items)?;
                let result = self.call(callee, args)?;
                self.push(result)
            }
            Op::Inst => {
                let id = self.named_global()?;
                let callee = self.add(Node::Global(id))?;
                let items = self.pop_mark()?;
                let args = self.tuple(&items)?;
                let result = self.call(callee, args)?;
                self.push(result)
            }
            Op::Build => {
                let state = self.pop()?;
                let target = self.pop()?;
                self.build(target, state)?;
                self.push(target)
            }
            Op::BinPersId => {
                let args = self.pop()?;
                let object = self.add_object(GlobalId::PERSISTENT, args, None)?;
                self.push(object)
            }
            Op::PersId => Err(FormatError::Unsupported("a persistent id written as text".into())),
            Op::Ext1 | Op::Ext2 | Op::Ext4 => {
                Err(FormatError::Refused("the pickle uses the extension registry of its own process".into()))
            }
            Op::NextBuffer | Op::ReadonlyBuffer => {
                Err(FormatError::Unsupported("a pickle with out-of-band buffers".into()))
            }
        }
    }

    // Memory.

    pub(super) fn charge(&mut self, bytes: usize) -> Result<(), FormatError> {
        self.spent_bytes = self.spent_bytes.saturating_add(bytes);
        if self.spent_bytes > self.budget_bytes {
            return Err(FormatError::Refused(format!(
                "decoding the pickle takes more than {} bytes of memory, out of proportion to the file",
                self.budget_bytes
            )));
        }
        Ok(())
    }

    fn charge_stack(&mut self) -> Result<(), FormatError> {
        let height = self.stack.len() + 2 * self.marks.len();
        if height > self.high_water {
            self.charge((height - self.high_water) * size_of::<NodeId>())?;
            self.high_water = height;
        }
        Ok(())
    }

    /// A new node.
    pub(super) fn add(&mut self, node: Node) -> Result<NodeId, FormatError> {
        self.charge(size_of::<Node>())?;
        let id = NodeId::try_from(self.arena.nodes.len()).ok().filter(|&id| id != NO_NODE);
        let id = id.ok_or_else(|| FormatError::Refused("more than four billion pickled values".into()))?;
        self.arena.nodes.push(node);
        Ok(id)
    }

    pub(super) fn add_object(
        &mut self,
        global: GlobalId,
        args: NodeId,
        state: Option<NodeId>,
    ) -> Result<NodeId, FormatError> {
        self.charge(size_of::<ObjectNode>())?;
        let index = self.arena.objects.len() as u32;
        self.arena.objects.push(ObjectNode { global, args, state });
        self.add(Node::Object(index))
    }

    pub(super) fn tuple(&mut self, items: &[NodeId]) -> Result<NodeId, FormatError> {
        self.charge(size_of_val(items))?;
        let start = u32::try_from(self.arena.links.len())
            .map_err(|_| FormatError::Refused("more than four billion pickled links".into()))?;
        self.arena.links.extend_from_slice(items);
        self.add(Node::Tuple { start, len: items.len() as u32 })
    }

    pub(super) fn list(&mut self, items: Vec<NodeId>) -> Result<u32, FormatError> {
        self.charge(size_of::<Vec<NodeId>>() + size_of_val(items.as_slice()))?;
        self.arena.lists.push(items);
        Ok((self.arena.lists.len() - 1) as u32)
    }

    pub(super) fn dict(&mut self, items: Vec<(NodeId, NodeId)>) -> Result<NodeId, FormatError> {
        self.charge(size_of::<DictNode>() + size_of_val(items.as_slice()))?;
        self.arena.dicts.push(DictNode { items, state: None });
        self.add(Node::Dict((self.arena.dicts.len() - 1) as u32))
    }

    // Stack.

    fn push(&mut self, id: NodeId) -> Result<(), FormatError> {
        self.stack.push(id);
        self.charge_stack()
    }

    fn push_node(&mut self, node: Node) -> Result<(), FormatError> {
        let id = self.add(node)?;
        self.push(id)
    }

    fn pop(&mut self) -> Result<NodeId, FormatError> {
        let floor = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() <= floor {
            return Err(malformed(format!("the pickle takes from an empty stack before byte {}", self.at)));
        }
        self.stack.pop().ok_or_else(|| malformed("empty stack"))
    }

    fn peek(&self) -> Result<NodeId, FormatError> {
        let floor = self.marks.last().copied().unwrap_or(0);
        let above = self.stack.get(floor..).unwrap_or_default();
        above.last().copied().ok_or_else(|| malformed("the pickle looks at an empty stack"))
    }

    /// Everything above the last mark, and the mark itself.
    fn pop_mark(&mut self) -> Result<Vec<NodeId>, FormatError> {
        let height = self
            .marks
            .pop()
            .ok_or_else(|| malformed(format!("the pickle closes no open mark before byte {}", self.at)))?;
        Ok(self.stack.split_off(height.min(self.stack.len())))
    }

    fn push_tuple(&mut self, items: &[NodeId]) -> Result<(), FormatError> {
        let id = self.tuple(items)?;
        self.push(id)
    }

    fn push_tuple_of(&mut self, len: usize) -> Result<(), FormatError> {
        let mut items = [0; 3];
        for slot in items.iter_mut().take(len).rev() {
            *slot = self.pop()?;
        }
        self.push_tuple(items.get(..len).unwrap_or_default())
    }

    fn push_list(&mut self, items: Vec<NodeId>) -> Result<(), FormatError> {
        let index = self.list(items)?;
        self.push_node(Node::List(index))
    }

    fn push_set(&mut self, items: Vec<NodeId>) -> Result<(), FormatError> {
        let index = self.list(items)?;
        self.push_node(Node::Set(index))
    }

    fn push_dict(&mut self, items: Vec<(NodeId, NodeId)>) -> Result<(), FormatError> {
        let id = self.dict(items)?;
        self.push(id)
    }

    fn extend_list(&mut self, items: &[NodeId]) -> Result<(), FormatError> {
        match self.arena.node(self.peek()?) {
            Node::List(index) => self.extend(index, items),
            other => Err(malformed(format!("the pickle appends to {}", describe(other)))),
        }
    }

    fn extend_set(&mut self, items: &[NodeId]) -> Result<(), FormatError> {
        match self.arena.node(self.peek()?) {
            Node::Set(index) => self.extend(index, items),
            other => Err(malformed(format!("the pickle adds set items to {}", describe(other)))),
        }
    }

    fn extend(&mut self, index: u32, items: &[NodeId]) -> Result<(), FormatError> {
        self.charge(size_of_val(items))?;
        if let Some(list) = self.arena.lists.get_mut(index as usize) {
            list.extend_from_slice(items);
        }
        Ok(())
    }

    fn extend_dict(&mut self, items: &[(NodeId, NodeId)]) -> Result<(), FormatError> {
        match self.arena.node(self.peek()?) {
            Node::Dict(index) => {
                self.charge(size_of_val(items))?;
                if let Some(dict) = self.arena.dicts.get_mut(index as usize) {
                    dict.items.extend_from_slice(items);
                }
                Ok(())
            }
            other => Err(malformed(format!("the pickle sets keys of {}", describe(other)))),
        }
    }

    // Instructions with operands.

    fn memo_op(&mut self, op: Op) -> Result<(), FormatError> {
        let key = match op {
            Op::Put | Op::Get => {
                let text = self.text_line()?;
                text.parse().map_err(|_| malformed(format!("{:?} is no memo number", clip(text))))?
            }
            Op::BinPut | Op::BinGet => u8::from_le_bytes(self.array("memo number")?).into(),
            Op::LongBinPut | Op::LongBinGet => u32::from_le_bytes(self.array("memo number")?).into(),
            _ => self.memo.count,
        };
        if matches!(op, Op::Get | Op::BinGet | Op::LongBinGet) {
            let id = self.memo.get(key).ok_or_else(|| malformed(format!("memo {key} was never stored")))?;
            return self.push(id);
        }
        let top = self.peek()?;
        self.charge(Memo::ENTRY_BYTES)?;
        self.memo.put(key, top);
        Ok(())
    }

    fn number_op(&mut self, op: Op) -> Result<(), FormatError> {
        let node = match op {
            Op::BinInt => Node::Int(i32::from_le_bytes(self.array("pickled int")?).into()),
            Op::BinInt1 => Node::Int(u8::from_le_bytes(self.array("pickled int")?).into()),
            Op::BinInt2 => Node::Int(u16::from_le_bytes(self.array("pickled int")?).into()),
            _ => {
                let text = self.text_line()?;
                let parsed = match (op, text) {
                    (Op::Int, "01") => Some(Node::Bool(true)),
                    (Op::Int, "00") => Some(Node::Bool(false)),
                    (Op::Float, _) => text.trim().parse().ok().map(Node::Float),
                    _ => text.trim().trim_end_matches('L').parse().ok().map(Node::Int),
                };
                parsed.ok_or_else(|| malformed(format!("{:?} is no number of 64 bits", clip(text))))?
            }
        };
        self.push_node(node)
    }

    fn long_op(&mut self, op: Op) -> Result<(), FormatError> {
        let len = self.length(op)?;
        let (start, len) = self.span("pickled long integer", len)?;
        let bytes = self.bytes_at(start, len);
        self.push_node(if bytes.len() > 8 {
            Node::BigInt { len, start }
        } else {
            Node::Int(small_long(bytes))
        })
    }

    /// Protocol 0 text: a Python literal, or text with `\u1234` escapes. Copied, for it may need unescaping.
    fn escaped_text_op(&mut self, op: Op) -> Result<(), FormatError> {
        let line = self.line()?;
        self.charge(line.len().saturating_mul(2))?;
        let copies = &mut self.arena.copies;
        let from = copies.len();
        let ok =
            if op == Op::Unicode { unescape_unicode(line, copies) } else { unescape_literal(line, copies) };
        ok.ok_or_else(|| malformed("a pickled string has a broken escape"))?;
        let copied = copies.get(from..).unwrap_or_default();
        let is_text = std::str::from_utf8(copied).is_ok();
        let start = (self.input.len() + from) as u64;
        let len = u32::try_from(copied.len()).map_err(|_| malformed("a pickled line of 4 GiB"))?;
        self.push_node(if is_text { Node::Str { len, start } } else { Node::Bytes { len, start } })
    }

    fn named_global(&mut self) -> Result<GlobalId, FormatError> {
        let (module, name) = (self.text_line()?, self.text_line()?);
        GlobalId::find(module, name).ok_or_else(|| refuse_global(module, name))
    }

    fn global_op(&mut self, op: Op) -> Result<(), FormatError> {
        let id = if op == Op::Global {
            self.named_global()?
        } else {
            let (name, module) = (self.pop()?, self.pop()?);
            let text = |id| self.arena.str(self.input, id);
            let (Some(module), Some(name)) = (text(module), text(name)) else {
                return Err(malformed("a pickled global whose name is not text"));
            };
            GlobalId::find(module, name).ok_or_else(|| refuse_global(module, name))?
        };
        self.push_node(Node::Global(id))
    }
}

fn refuse_global(module: &str, name: &str) -> FormatError {
    FormatError::Refused(format!(
        "the pickle refers to `{}.{}`, which is not on the list of types this reader decodes; \
         the file was not executed",
        clip(module).escape_debug(),
        clip(name).escape_debug()
    ))
}

/// The beginning of a text that came from outside, for a message.
fn clip(text: &str) -> &str {
    text.char_indices().nth(100).map_or(text, |(at, _)| text.get(..at).unwrap_or(text))
}

fn pairs(items: &[NodeId]) -> Result<Vec<(NodeId, NodeId)>, FormatError> {
    let (pairs, rest) = items.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(malformed("a pickled dict with a key that has no value"));
    }
    Ok(pairs.iter().map(|&[key, value]| (key, value)).collect())
}

/// At most eight bytes of little-endian two's complement.
fn small_long(bytes: &[u8]) -> i64 {
    let negative = bytes.last().is_some_and(|&top| top >= 0x80);
    let mut wide = [if negative { 0xff } else { 0 }; 8];
    for (slot, &byte) in wide.iter_mut().zip(bytes) {
        *slot = byte;
    }
    i64::from_le_bytes(wide)
}

/// What a node is, for a message.
pub(super) fn describe(node: Node) -> &'static str {
    match node {
        Node::None => "None",
        Node::Bool(_) => "a bool",
        Node::Int(_) | Node::BigInt { .. } => "an int",
        Node::Float(_) => "a float",
        Node::Str { .. } => "a str",
        Node::Bytes { .. } | Node::Latin1 { .. } => "bytes",
        Node::Tuple { .. } => "a tuple",
        Node::List(_) => "a list",
        Node::Set(_) => "a set",
        Node::Dict(_) => "a dict",
        Node::Object(_) => "an object",
        Node::Global(_) => "a class",
    }
}
