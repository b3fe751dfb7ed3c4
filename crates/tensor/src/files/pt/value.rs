//! Reading the decoded value of a file: a cursor over the arena, cheap to copy.

use std::borrow::Cow;
use std::fmt;

use super::PtDocument;
use super::flatten::{Expansion, Key, attribute, child};
use crate::DType;
use crate::files::pickle::{Global, Node, NodeId};
use crate::files::{FormatError, TensorLayout};
use crate::view::Endian;

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PtValueKind {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool,
    /// An integer, also of numpy.
    Int,
    /// A float, also of numpy.
    Float,
    /// Text.
    Str,
    /// Bytes.
    Bytes,
    /// A list.
    List,
    /// A tuple, also `torch.Size`.
    Tuple,
    /// A set or frozen set.
    Set,
    /// A dict, also an `OrderedDict`, `defaultdict` or `Counter`.
    Dict,
    /// A tensor or numpy array.
    Tensor,
    /// An instance of a class, with attributes: `argparse.Namespace`, `torch.device`, …
    Object,
    /// A class, function or dtype that is named, not instantiated.
    Class,
}

/// One value of a [`PtDocument`].
#[derive(Clone, Copy)]
pub struct ValueRef<'d> {
    doc: &'d PtDocument<'d>,
    id: NodeId,
}

impl fmt::Debug for ValueRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.node())
    }
}

impl<'d> ValueRef<'d> {
    pub(super) fn new(doc: &'d PtDocument<'d>, id: NodeId) -> Self {
        ValueRef { doc, id }
    }

    fn node(self) -> Node {
        self.doc.arena.node(self.id)
    }

    fn at(self, id: NodeId) -> Self {
        ValueRef { id, ..self }
    }

    /// What the value is.
    pub fn kind(self) -> PtValueKind {
        match self.node() {
            Node::None => PtValueKind::None,
            Node::Bool(_) => PtValueKind::Bool,
            Node::Int(_) | Node::BigInt { .. } => PtValueKind::Int,
            Node::Float(_) => PtValueKind::Float,
            Node::Str { .. } => PtValueKind::Str,
            Node::Bytes { .. } | Node::Latin1 { .. } => PtValueKind::Bytes,
            Node::Tuple { .. } => PtValueKind::Tuple,
            Node::List(_) => PtValueKind::List,
            Node::Set(_) => PtValueKind::Set,
            Node::Dict(_) => PtValueKind::Dict,
            Node::Global(_) => PtValueKind::Class,
            Node::Object(_) => match self.doc.arena.meaning(self.id) {
                Some(Global::NumpyScalar) => match self.numpy_scalar() {
                    Some(Scalar::Bool(_)) => PtValueKind::Bool,
                    Some(Scalar::Int(_)) => PtValueKind::Int,
                    Some(Scalar::Float(_)) => PtValueKind::Float,
                    None => PtValueKind::Object,
                },
                Some(
                    Global::RebuildTensor
                    | Global::RebuildTensorV2
                    | Global::RebuildTensorV3
                    | Global::RebuildDeviceTensor
                    | Global::OpaqueTensor
                    | Global::NumpyReconstruct
                    | Global::NumpyFromBuffer,
                ) => PtValueKind::Tensor,
                _ => PtValueKind::Object,
            },
        }
    }

    /// A number that is the same for the same object: shared values have one identity.
    pub fn identity(self) -> u32 {
        self.id
    }

    /// A bool, also of numpy.
    pub fn as_bool(self) -> Option<bool> {
        match self.node() {
            Node::Bool(value) => Some(value),
            _ => match self.numpy_scalar()? {
                Scalar::Bool(value) => Some(value),
                _ => None,
            },
        }
    }

    /// An integer of up to 64 bits, also of numpy; not a bool.
    pub fn as_int(self) -> Option<i64> {
        match self.node() {
            Node::Int(value) => Some(value),
            Node::BigInt { .. } => {
                // Python writes one more byte than needed when the top bit is set.
                let (low, high) = self.doc.arena.raw(self.doc.file, self.id)?.split_first_chunk::<8>()?;
                let value = i64::from_le_bytes(*low);
                let extension = if value < 0 { 0xff } else { 0 };
                high.iter().all(|&byte| byte == extension).then_some(value)
            }
            _ => match self.numpy_scalar()? {
                Scalar::Int(value) => Some(value),
                _ => None,
            },
        }
    }

    /// A float, also of numpy.
    pub fn as_float(self) -> Option<f64> {
        match self.node() {
            Node::Float(value) => Some(value),
            _ => match self.numpy_scalar()? {
                Scalar::Float(value) => Some(value),
                _ => None,
            },
        }
    }

    /// A text.
    pub fn as_str(self) -> Option<&'d str> {
        self.doc.arena.str(self.doc.file, self.id)
    }

    /// Bytes; copied only if the file writes them as text (protocol 2).
    pub fn as_bytes(self) -> Option<Cow<'d, [u8]>> {
        match self.node() {
            Node::Bytes { .. } | Node::Latin1 { .. } => self.doc.arena.bytes(self.doc.file, self.id),
            _ => None,
        }
    }

    /// Number of members of a list, tuple or set, or of items of a dict.
    pub fn len(self) -> usize {
        let arena = &self.doc.arena;
        let items = arena.dict(self.id).map(|dict| dict.items.len());
        items.or_else(|| arena.sequence(self.id).map(<[NodeId]>::len)).unwrap_or(0)
    }

    /// Whether there are no members or items.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Members of a list, tuple or set; nothing for other values.
    pub fn members(self) -> impl ExactSizeIterator<Item = ValueRef<'d>> {
        self.doc.arena.sequence(self.id).unwrap_or_default().iter().map(move |&id| self.at(id))
    }

    /// Keys and values of a dict, in order; nothing for other values.
    pub fn items(self) -> impl ExactSizeIterator<Item = (ValueRef<'d>, ValueRef<'d>)> {
        let items = self.doc.arena.dict(self.id).map(|dict| dict.items.as_slice()).unwrap_or_default();
        items.iter().map(move |&(key, value)| (self.at(key), self.at(value)))
    }

    /// Attributes of an object (also of a tensor or dict that carries some), by name.
    pub fn attributes(self) -> impl Iterator<Item = (ValueRef<'d>, ValueRef<'d>)> {
        let arena = &self.doc.arena;
        let state = match (arena.dict(self.id), arena.object(self.id)) {
            (Some(dict), _) => dict.state,
            (_, Some(object)) => object.state,
            _ => None,
        };
        let pairs = (0..).map_while(move |index| attribute(arena, state?, index));
        pairs.filter_map(move |(key, value)| match key {
            Key::Node(key) => Some((self.at(key), self.at(value))),
            Key::Index(_) => None,
        })
    }

    /// The value of a dict under a text key, else the attribute of that name. The last one counts, as in Python.
    pub fn get(self, name: &str) -> Option<ValueRef<'d>> {
        let named = |(key, _): &(ValueRef<'d>, ValueRef<'d>)| key.as_str() == Some(name);
        let item = self.items().filter(named).last().or_else(|| self.attributes().filter(named).last());
        item.map(|(_, value)| value)
    }

    /// The member at a position of a list, tuple or set, or the value at a position of a dict.
    pub fn nth(self, index: usize) -> Option<ValueRef<'d>> {
        if index >= self.len() {
            return None;
        }
        child(&self.doc.arena, self.id, index).map(|(_, id)| self.at(id))
    }

    /// `module.name` of a class, or of the class of an object: `argparse.Namespace`, `torch.float32`.
    pub fn class_name(self) -> Option<String> {
        let arena = &self.doc.arena;
        let global = arena.global(self.id).or_else(|| arena.object(self.id).map(|object| object.global))?;
        // Protocol 2 spells the module as Python 2 did.
        let module = global.get().module.replace("__builtin__", "builtins");
        Some(format!("{module}.{}", global.get().name))
    }

    /// The dtype this value names, if it is a `torch.dtype`.
    pub fn as_dtype(self) -> Option<DType> {
        match self.doc.arena.global(self.id)?.meaning() {
            Global::DType(dtype) => dtype,
            _ => None,
        }
    }

    /// Arguments an object was made with: the parts of a path, the name of a device.
    pub fn arguments(self) -> impl Iterator<Item = ValueRef<'d>> {
        let arena = &self.doc.arena;
        let args = arena.object(self.id).and_then(|object| arena.tuple(object.args)).unwrap_or_default();
        args.iter().map(move |&id| self.at(id))
    }

    /// Where a tensor or numpy array lies in the file, or why it cannot be used; `None` for other values.
    pub fn tensor(self) -> Option<Result<TensorLayout, FormatError>> {
        let layout = self.doc.layout(self.id)?;
        Some(layout.and_then(|layout| Expansion::new(self.doc.file.len()).add(layout)))
    }

    fn numpy_scalar(self) -> Option<Scalar> {
        let arena = &self.doc.arena;
        let object = arena.object(self.id).filter(|object| object.global.meaning() == Global::NumpyScalar)?;
        let &[dtype, data] = arena.tuple(object.args)? else {
            return None;
        };
        let (dtype, endian) = self.doc.numpy_dtype(dtype).ok()?;
        // No numpy number is longer; a longer text need not be decoded to know that it is wrong.
        arena.raw(self.doc.file, data).filter(|raw| raw.len() <= 64)?;
        scalar(dtype, endian, &arena.bytes(self.doc.file, data)?)
    }
}

enum Scalar {
    Bool(bool),
    Int(i64),
    Float(f64),
}

fn scalar(dtype: DType, endian: Endian, bytes: &[u8]) -> Option<Scalar> {
    let mut little = [0u8; 8];
    let size = dtype.size_bytes();
    if bytes.len() != size {
        return None;
    }
    little.get_mut(..size)?.copy_from_slice(bytes);
    if endian == Endian::Big {
        little.get_mut(..size)?.reverse();
    }
    let bits = u64::from_le_bytes(little);
    Some(match dtype {
        DType::Bool => Scalar::Bool(bits != 0),
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => Scalar::Int(i64::try_from(bits).ok()?),
        DType::I8 => Scalar::Int((bits as i8).into()),
        DType::I16 => Scalar::Int((bits as i16).into()),
        DType::I32 => Scalar::Int((bits as i32).into()),
        DType::I64 => Scalar::Int(bits as i64),
        DType::F16 => Scalar::Float(half::f16::from_bits(bits as u16).into()),
        DType::BF16 => Scalar::Float(half::bf16::from_bits(bits as u16).into()),
        DType::F32 => Scalar::Float(f32::from_bits(bits as u32).into()),
        DType::F64 => Scalar::Float(f64::from_bits(bits)),
        _ => return None,
    })
}
