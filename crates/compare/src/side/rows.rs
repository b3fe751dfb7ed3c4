//! The rows of one record, made while it is read.

use std::fmt::Write;
use std::sync::Arc;

use msprobe_dump::model::{Place, Section, Segment, Value, Visitor, Written};
use msprobe_dump::names::RecordName;
use msprobe_dump::read::{PullError, Shape};

use super::described::{Described, json};
use super::digest::digest_of_value;
use super::texts::Texts;
use super::{FileKind, Leaf, P2pOperation, Role, Scalar, ValueKind, ValueShape};
use crate::error::{Code, CompareError};
use crate::python_text::python_str;

/// Deeper values are refused.
const MAX_DEPTH: usize = 10;
/// Checksum of an empty text.
const NO_CHECKSUM: &str = "00000000";

/// What the values of a record are, by its name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ValuesOf {
    /// A variable that was saved: all of it.
    Saved,
    /// Gradients of parameters: all of it.
    Gradients,
    /// A call: some members.
    Call,
}

/// Sections of a call that hold values, in the order of rows, and what they are.
const CALL_FIELDS: [(Section<'static>, Role); 5] = [
    (Section::Args, Role::Input),
    (Section::Kwargs, Role::Input),
    (Section::Input, Role::Input),
    (Section::Output, Role::Output),
    (Section::Parameters, Role::Parameters),
];

/// The keys of these sections.
const CALL_KEYS: [&str; 5] = ["input_args", "input_kwargs", "input", "output", "parameters"];

impl ValuesOf {
    /// Layers may be called like these words, so only the end of a name counts.
    pub(super) fn of(name: &str, kind: FileKind) -> ValuesOf {
        match RecordName::parse(name) {
            _ if kind == FileKind::Debug => ValuesOf::Saved,
            RecordName::Saved(_) => ValuesOf::Saved,
            name if name.is_parameter_gradient() => ValuesOf::Gradients,
            _ => ValuesOf::Call,
        }
    }

    /// The members that hold values, if it is not all of them.
    pub(super) fn fields(self) -> Option<&'static [&'static str]> {
        (self == ValuesOf::Call).then_some(&CALL_KEYS)
    }
}

/// A row that was found.
pub(super) struct Found {
    /// The number of its section in [`CALL_FIELDS`].
    pub(super) section: usize,
    pub(super) leaf: Leaf,
    /// What was written of it, if that is wanted.
    pub(super) written: Box<[u8]>,
}

/// The rows of one record, made while it is read.
pub(super) struct Rows<'a> {
    name: &'a str,
    kind: FileKind,
    values_of: ValuesOf,
    texts: &'a mut Texts,
    found: Vec<Found>,
    /// Whether what was written is kept, and not its digest.
    keeps_written: bool,
    /// How many rows there were when each object that has not ended began.
    marks: Vec<usize>,
    /// The section that is read; none if it holds no rows.
    section: Option<usize>,
    pub(super) has_md5: bool,
    pub(super) has_repeated: bool,
    pub(super) fault: Option<CompareError>,
    pub(super) broken: Option<PullError>,
}

impl<'a> Rows<'a> {
    pub(super) fn new(name: &'a str, kind: FileKind, values_of: ValuesOf, texts: &'a mut Texts) -> Rows<'a> {
        Rows {
            name,
            kind,
            values_of,
            texts,
            found: Vec::new(),
            keeps_written: false,
            marks: Vec::new(),
            section: (values_of != ValuesOf::Call).then_some(0),
            has_md5: false,
            has_repeated: false,
            fault: None,
            broken: None,
        }
    }

    /// The same, which keeps what was written of each row.
    pub(super) fn keeping_written(self) -> Rows<'a> {
        Rows { keeps_written: true, ..self }
    }

    /// Arguments, parameters, results, gradients of parameters, each in order.
    pub(super) fn in_order(mut self) -> Vec<Leaf> {
        self.found.sort_by_key(|found| (found.leaf.role, found.section));
        self.found.into_iter().map(|found| found.leaf).collect()
    }

    /// All that was found, section by section.
    pub(super) fn by_section(mut self) -> Vec<Found> {
        self.found.sort_by_key(|found| found.section);
        self.found
    }

    /// Tables put rows in order by the direction of the call.
    pub(super) fn fault_of_name(&self) -> Option<CompareError> {
        let is_call = self.values_of == ValuesOf::Call && self.kind == FileKind::Dump;
        if !is_call || RecordName::parse(self.name).direction().is_some() {
            return None;
        }
        let first = self.found.iter().min_by_key(|found| found.section)?;
        let message = format!(
            "Invalid name string: {}, can not be split by forward/backward, please check.",
            first.leaf.name
        );
        Some(CompareError::new(Code::InvalidApiName, message))
    }

    fn role(&self, section: usize) -> Role {
        match self.values_of {
            ValuesOf::Saved => Role::Input,
            ValuesOf::Gradients => Role::ParametersGrad,
            ValuesOf::Call => CALL_FIELDS.get(section).map_or(Role::Input, |(_, role)| *role),
        }
    }

    /// The name of a row; lists of gradients are not numbered.
    fn name_of(&self, at: &Place<'_>) -> String {
        let mut name = String::with_capacity(self.name.len() + 24);
        name.push_str(self.name);
        if self.values_of == ValuesOf::Gradients {
            at.push_keys(&mut name);
        } else {
            name.push_str(if self.values_of == ValuesOf::Call { "." } else { "" });
            let _ = write!(name, "{at}");
        }
        name
    }

    /// Whether what is written wrongly here is a fault: collections write nothing else.
    fn is_checked(&self, at: &Place<'_>) -> bool {
        self.kind == FileKind::Dump
            && (at.section.role() == msprobe_dump::model::Role::Input || at.section == Section::Output)
    }

    fn check_depth(&mut self, at: &Place<'_>) {
        if at.depth() <= MAX_DEPTH || self.section.is_none() || self.fault.is_some() {
            return;
        }
        let message = if self.is_checked(at) {
            format!("the values of {} are nested more than {MAX_DEPTH} levels deep", self.name)
        } else if at.is_inside_value {
            return;
        } else {
            format!("{} is nested more than {MAX_DEPTH} levels deep", self.name_of(at))
        };
        self.fault = Some(CompareError::new(Code::RecursionLimit, message));
    }

    fn check_types(&mut self, at: &Place<'_>, value: &Value<'_>) {
        if !self.is_checked(at) || self.fault.is_some() {
            return;
        }
        let is_list = |shape: Written<'_>| shape.shape() == Some(Shape::List);
        let what = if value.shape.is_some_and(|shape| !is_list(shape)) {
            "shape of input or output of {} is not list or tuple, please check!"
        } else if value.requires_grad.is_some_and(|flag| flag.flag().is_none()) {
            "requires_grad of input or output of {} is not bool, please check!"
        } else {
            return;
        };
        self.fault = Some(CompareError::new(Code::InvalidObjectType, what.replace("{}", self.name)));
    }

    /// Checksums where the reference looks for them: in a dump not in keyword arguments, not in nested lists.
    fn note_checksum(&mut self, at: &Place<'_>, value: &Value<'_>) {
        let depth = if self.values_of == ValuesOf::Call { at.depth() } else { at.depth().saturating_sub(1) };
        let is_shallow = depth == 0 || depth == 1 && matches!(at.segment(), Some(Segment::Index(_)));
        if self.kind == FileKind::Debug || is_shallow {
            self.has_md5 |= value.checksum.is_some_and(|md5| md5.text().is_some());
        }
    }

    /// Nothing, at a place of a value.
    fn plain(&mut self, at: &Place<'_>, written: Written<'_>) {
        self.check_depth(at);
        let Some(section) = self.section else { return };
        if at.is_inside_value || written.bytes() != b"null" {
            return;
        }
        let none = self.texts.get("None");
        let name = self.name_of(at);
        let leaf = Leaf {
            place: self.place(&name),
            name: name.into(),
            record: 0,
            role: self.role(section),
            kind: ValueKind::None,
            type_name: None,
            dtype: none,
            element: None,
            stored_dtype: None,
            shape: ValueShape::Unknown,
            statistics: [const { Scalar::Null }; 4],
            md5: None,
            sketch: None,
            data_name: None,
            requires_grad: None,
            p2p: None,
            digest: self.digest(written.bytes()),
            has_checksum: false,
            unmeasured: None,
            is_meta: false,
            is_array: false,
        };
        self.keep(section, leaf, written.bytes());
    }

    fn keep(&mut self, section: usize, leaf: Leaf, written: &[u8]) {
        let written = if self.keeps_written { written.into() } else { Box::default() };
        self.found.push(Found { section, leaf, written });
    }

    fn digest(&mut self, text: &[u8]) -> u64 {
        if self.keeps_written {
            return 0;
        }
        digest_of_value(text).unwrap_or_else(|error| {
            self.broken.get_or_insert(error);
            0
        })
    }

    /// The part of a name behind that of its record.
    fn place(&mut self, name: &str) -> Arc<str> {
        let place = name.get(self.name.len()..).unwrap_or_default().trim_start_matches('.');
        self.texts.get(place)
    }

    fn leaf(&mut self, at: &Place<'_>, value: &Value<'_>, section: usize) -> Leaf {
        let texts = &mut *self.texts;
        let described = Described::of(value, texts);
        let mut text =
            |written: Option<Written<'_>>| written.and_then(Written::text).map(|text| texts.get(&text));
        let (stored_dtype, recorded_md5) = (text(value.stored_dtype), text(value.checksum));
        let type_name = text(value.type_name);
        let unmeasured = text(value.unmeasured.or(value.unwritten));
        let has_checksum = recorded_md5.as_ref().is_some_and(|md5| !md5.is_empty());
        let md5 = match (value.dtype, value.value) {
            (Some(_), _) => recorded_md5,
            (None, Some(content)) => {
                let checksum = format!("{:08x}", crc32fast::hash(python_str(&json(content)).as_bytes()));
                Some(texts.get(&checksum))
            }
            (None, None) => None,
        };
        let md5 = Some(md5.unwrap_or_else(|| texts.get(NO_CHECKSUM)));
        let sketch = value.sketch.and_then(Written::text).and_then(|text| text.parse().ok()).map(Box::new);
        let data_name = value.file.and_then(Written::text).filter(|name| !name.is_empty());
        let name = self.name_of(at);
        Leaf {
            place: self.place(&name),
            // Tables call a value after its file.
            name: match data_name.as_deref() {
                Some(file) => file.rsplit_once('.').map_or(file, |(stem, _)| stem).into(),
                None => name.into(),
            },
            record: 0,
            role: self.role(section),
            kind: described.kind,
            is_array: type_name.as_deref() == Some("numpy.ndarray"),
            type_name,
            dtype: described.dtype,
            element: described.element,
            stored_dtype,
            shape: described.shape,
            statistics: described.statistics,
            md5,
            sketch,
            data_name: data_name.map(Into::into),
            requires_grad: value.requires_grad.and_then(Written::flag),
            p2p: p2p_operation(value),
            digest: self.digest(value.written),
            has_checksum,
            unmeasured,
            is_meta: value.layout.and_then(Written::text).as_deref() == Some("meta"),
        }
    }
}

impl Visitor for Rows<'_> {
    fn section(&mut self, section: Section<'_>, _: Shape) {
        self.section = CALL_FIELDS.iter().position(|(known, _)| *known == section);
        // The last one of a name counts.
        self.found.retain(|found| Some(found.section) != self.section);
    }

    fn begin(&mut self, at: &Place<'_>, shape: Shape) {
        self.check_depth(at);
        if shape == Shape::Object {
            self.marks.push(self.found.len());
        }
    }

    fn value(&mut self, at: &Place<'_>, value: &Value<'_>) {
        let first = self.marks.pop().unwrap_or(self.found.len());
        self.has_repeated |= value.repeated.is_some();
        self.note_checksum(at, value);
        let is_value = value.type_name.is_some_and(|name| name.bytes().first() == Some(&b'"'));
        if is_value {
            self.check_types(at, value);
        }
        let Some(section) = self.section.filter(|_| !at.is_inside_value && self.fault.is_none()) else {
            return;
        };
        if is_value {
            self.found.truncate(first);
            let leaf = self.leaf(at, value, section);
            self.keep(section, leaf, value.written);
        } else if let Some(p2p) = p2p_operation(value) {
            // The tensor is a member of its own there.
            for found in self.found.iter_mut().skip(first).filter(|found| found.leaf.is_tensor()) {
                found.leaf.p2p = Some(p2p.clone());
            }
        }
    }

    fn stray(&mut self, at: &Place<'_>, written: Written<'_>) {
        self.plain(at, written);
    }

    fn member(&mut self, at: &Place<'_>, written: Written<'_>) {
        self.plain(at, written);
    }
}

/// What a batch of sends and receives does with one of its tensors.
fn p2p_operation(value: &Value<'_>) -> Option<Box<P2pOperation>> {
    let p2p = value.p2p()?;
    Some(Box::new(P2pOperation { operation: p2p.operation?.into(), peer: p2p.peer }))
}
