//! What a pickle would call, read as data: containers become containers, everything else keeps its name and
//! arguments.

use super::globals::{Global, GlobalId};
use super::machine::{Machine, describe};
use super::value::{Node, NodeId};
use crate::files::{FormatError, malformed};

impl Machine<'_> {
    /// The value that `callee(*args)` stands for.
    pub(super) fn call(&mut self, callee: NodeId, args: NodeId) -> Result<NodeId, FormatError> {
        let Node::Global(global) = self.arena.node(callee) else {
            let what = describe(self.arena.node(callee));
            return Err(FormatError::Refused(format!("the pickle calls {what}; the file was not executed")));
        };
        if global.meaning() == Global::RebuildFromType {
            return self.rebuild_from_type(args);
        }
        self.call_global(global, args)
    }

    fn call_global(&mut self, global: GlobalId, args: NodeId) -> Result<NodeId, FormatError> {
        let Some(items) = self.arena.tuple(args) else {
            return Err(malformed(format!(
                "the arguments of `{}` are {}, not a tuple",
                global.get().name,
                describe(self.arena.node(args))
            )));
        };
        let wrong =
            || malformed(format!("`{}` with {} arguments of that kind", global.get().name, items.len()));
        match global.meaning() {
            Global::Dict => match *items {
                [] => self.dict(Vec::new()),
                [source] => self.dict_from(source),
                _ => Err(wrong()),
            },
            Global::DefaultDict => match *items {
                [] | [_] => self.dict(Vec::new()),
                [_, source] => self.dict_from(source),
                _ => Err(wrong()),
            },
            Global::Set => {
                let index = self.copy_sequence(args)?;
                self.add(Node::Set(index))
            }
            Global::List => {
                let index = self.copy_sequence(args)?;
                self.add(Node::List(index))
            }
            Global::Tuple | Global::Size => match *items {
                [] => Ok(args),
                [source] if self.arena.tuple(source).is_some() => Ok(source),
                [source] => {
                    let members = self.arena.sequence(source).ok_or_else(wrong)?.to_vec();
                    self.tuple(&members)
                }
                _ => Err(wrong()),
            },
            Global::Scalar => match *items {
                [value] if is_scalar(self.arena.node(value)) => Ok(value),
                _ => Err(wrong()),
            },
            Global::Bytes => match *items {
                [] => self.add(Node::Bytes { len: 0, start: 0 }),
                [value] if matches!(self.arena.node(value), Node::Bytes { .. } | Node::Latin1 { .. }) => {
                    Ok(value)
                }
                [text, encoding] => self.encode(text, encoding),
                _ => Err(wrong()),
            },
            Global::Encode => match *items {
                [text, encoding] => self.encode(text, encoding),
                _ => Err(wrong()),
            },
            Global::RebuildParameter => match *items {
                [tensor, ..] if self.arena.object(tensor).is_some() => Ok(tensor),
                _ => Err(wrong()),
            },
            Global::RebuildParameterWithState => match *items {
                [tensor, _, _, state] => self.with_state(tensor, state),
                _ => Err(wrong()),
            },
            Global::Object
            | Global::RebuildTensor
            | Global::RebuildTensorV2
            | Global::RebuildTensorV3
            | Global::RebuildDeviceTensor
            | Global::OpaqueTensor
            | Global::NumpyReconstruct
            | Global::NumpyFromBuffer
            | Global::NumpyScalar
            | Global::NumpyDType => self.add_object(global, args, None),
            // A second level would make this recursive; torch writes none.
            Global::RebuildFromType
            | Global::Class
            | Global::DType(_)
            | Global::Storage(_)
            | Global::OpaqueStorage
            | Global::Persistent => Err(malformed(format!(
                "the pickle calls `{}.{}`, which no file of torch.save does",
                global.get().module,
                global.get().name
            ))),
        }
    }

    /// `_rebuild_from_type_v2(function, class, args, state)`: a tensor subclass or a tensor with attributes.
    fn rebuild_from_type(&mut self, args: NodeId) -> Result<NodeId, FormatError> {
        let Some(&[function, _, inner, state]) = self.arena.tuple(args) else {
            return Err(malformed("`_rebuild_from_type_v2` without its four arguments"));
        };
        let Node::Global(global) = self.arena.node(function) else {
            return Err(malformed("`_rebuild_from_type_v2` without a function"));
        };
        let tensor = self.call_global(global, inner)?;
        self.with_state(tensor, state)
    }

    /// The object with other attributes; the original stays as it is, for it may be shared.
    fn with_state(&mut self, object: NodeId, state: NodeId) -> Result<NodeId, FormatError> {
        let Some(&original) = self.arena.object(object) else {
            return Err(malformed(format!("attributes of {}", describe(self.arena.node(object)))));
        };
        self.add_object(original.global, original.args, Some(state))
    }

    /// BUILD: attributes of an object, or of a dict of a subclass.
    pub(super) fn build(&mut self, target: NodeId, state: NodeId) -> Result<(), FormatError> {
        let slot = match self.arena.node(target) {
            Node::Object(index) => self.arena.objects.get_mut(index as usize).map(|object| &mut object.state),
            Node::Dict(index) => self.arena.dicts.get_mut(index as usize).map(|dict| &mut dict.state),
            other => return Err(malformed(format!("the pickle sets attributes of {}", describe(other)))),
        };
        if let Some(slot) = slot {
            *slot = Some(state);
        }
        Ok(())
    }

    /// `dict(source)`: of another dict, or of a list of pairs as Python 2 wrote ordered dicts.
    fn dict_from(&mut self, source: NodeId) -> Result<NodeId, FormatError> {
        let items = if let Some(dict) = self.arena.dict(source) {
            let size_bytes = size_of_val(dict.items.as_slice());
            self.charge(size_bytes)?;
            self.arena.dict(source).map(|dict| dict.items.clone()).unwrap_or_default()
        } else {
            let pairs = self.arena.sequence(source).unwrap_or_default();
            let size_bytes = pairs.len() * size_of::<(NodeId, NodeId)>();
            self.charge(size_bytes)?;
            let pairs = self.arena.sequence(source);
            let pairs = pairs.ok_or_else(|| malformed("a dict made of something that has no items"))?;
            pairs
                .iter()
                .map(|&pair| match self.arena.sequence(pair) {
                    Some(&[key, value]) => Ok((key, value)),
                    _ => Err(malformed("a dict made of something else than pairs")),
                })
                .collect::<Result<Vec<_>, _>>()?
        };
        self.dict(items)
    }

    /// The members of the one sequence in `args`, copied.
    fn copy_sequence(&mut self, args: NodeId) -> Result<u32, FormatError> {
        let members = match self.arena.tuple(args) {
            Some([]) => &[],
            Some(&[source]) => self
                .arena
                .sequence(source)
                .ok_or_else(|| malformed("a list or set made of something that has no members"))?,
            _ => return Err(malformed("a list or set made of several arguments")),
        };
        let members = members.to_vec();
        self.list(members)
    }

    fn encode(&mut self, text: NodeId, encoding: NodeId) -> Result<NodeId, FormatError> {
        match (self.arena.node(text), self.arena.str(self.input, encoding)) {
            (Node::Str { len, start }, Some("latin1" | "latin-1")) => self.add(Node::Latin1 { len, start }),
            _ => Err(FormatError::Unsupported("bytes pickled in another encoding than latin1".into())),
        }
    }
}

fn is_scalar(node: Node) -> bool {
    matches!(
        node,
        Node::None | Node::Bool(_) | Node::Int(_) | Node::BigInt { .. } | Node::Float(_) | Node::Str { .. }
    )
}
