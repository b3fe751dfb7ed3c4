//! From dump.json or debug.json to rows.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use msprobe_dump::model::{Damage, DumpFile, Place, RecordText, Section, Segment, Value, Visitor, Written};
use msprobe_dump::names::RecordName;
use msprobe_dump::read::{Json, PullError, ReadError, ReadErrorKind, Shape};

use super::checks::{holds_formula, looks_like_a_formula};
use super::digest::{digest_of_rest, digest_of_value, digest_of_whole};
use super::repeats::{Earlier, read_earlier};
use super::texts::Texts;
use super::{Framework, Leaf, P2pOperation, Record, Role, Scalar, Side, ValueKind, Which};
use crate::console::Console;
use crate::error::{Code, CompareError};
use crate::python_text::{python_class, python_str};
use msprobe_dump::hash::{FastMap, FastSet};
use msprobe_tensor::DType;

/// Deeper values are refused.
const MAX_DEPTH: usize = 10;
/// Progress is shown each time so many bytes were read.
const PROGRESS: u64 = 1 << 20;
/// Checksum of an empty text.
const NO_CHECKSUM: &str = "00000000";

/// The two kinds of file that can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// `dump.json`: API and module calls.
    Dump,
    /// `debug.json`: variables that were saved.
    Debug,
}

impl FileKind {
    /// The kind a path has by its name.
    pub fn of(path: &Path) -> Option<FileKind> {
        match path.file_name()?.to_str()? {
            "dump.json" => Some(FileKind::Dump),
            "debug.json" => Some(FileKind::Debug),
            _ => None,
        }
    }
}

/// Reads one side. What is odd but usable goes to the console.
pub fn read_side(path: &Path, which: Which, console: &dyn Console) -> Result<Side, CompareError> {
    let kind = FileKind::of(path).ok_or_else(|| {
        CompareError::new(
            Code::InvalidPath,
            "get_file_type failed, file_path is neither dump.json nor debug.json.",
        )
    })?;
    let broken = |reason: &dyn std::fmt::Display| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        console.error(&format!("load json file \"{name}\" failed."));
        CompareError::new(Code::BrokenJson, format!("Load json file {} failed.", path.display()))
            .with_hint(reason.to_string())
    };
    let mut file = DumpFile::open(path).map_err(|error| broken(&error))?;
    let mut parser = Parser::new(path, kind);
    let mut shown = 0;
    loop {
        let read = file.next_record(|text| parser.read(text)).map_err(|error| broken(&error))?;
        // Half of a dump is not compared.
        if let Some(error) = file.damage().iter().find_map(|damage| unreadable(path, damage)) {
            return Err(broken(&error));
        }
        let Some(read) = read else { break };
        parser.keep(read);
        let offset = file.offset();
        if offset - shown > PROGRESS {
            console.advance(offset - shown);
            shown = offset;
        }
    }
    let header = file.header();
    parser.side.task = header.task.clone().unwrap_or_default();
    parser.side.level.clone_from(&header.level);
    parser.side.framework = match header.framework.as_deref() {
        Some("pytorch") => Some(Framework::PyTorch),
        Some("mindspore") => Some(Framework::MindSpore),
        _ => None,
    };
    if !parser.repeated.is_empty() {
        let is_filled_in = |name: &str| ValuesOf::of(name, kind) != ValuesOf::Call;
        parser.earlier =
            read_earlier(path, &parser.repeated, &is_filled_in).map_err(|error| broken(&error))?;
    }
    parser.finish(which, &file)
}

/// What makes a file no JSON.
fn unreadable(path: &Path, damage: &Damage) -> Option<ReadError> {
    let (what, offset) = match damage {
        Damage::Ends { what, offset } => (*what, *offset),
        Damage::Record { what, at, .. } => (*what, *at),
        Damage::NoRecords | Damage::NoData | Damage::Tasks(..) => return None,
    };
    Some(ReadError { path: path.to_owned(), kind: ReadErrorKind::Syntax { what, offset } })
}

struct Parser {
    side: Side,
    texts: Texts,
    /// Rows of each record until all are known: a record can be repeated, and its last value counts.
    pending: Vec<(Arc<str>, Vec<Leaf>, u64)>,
    positions: FastMap<Arc<str>, usize>,
    /// Names that stand more than once, and what is under them besides the last value.
    repeated: FastSet<Box<str>>,
    earlier: FastMap<Box<str>, Earlier>,
}

/// A record that was read.
struct ReadRecord {
    name: Arc<str>,
    rows: Vec<Leaf>,
    rest: u64,
    has_md5: bool,
    has_formula: bool,
    fault: Option<CompareError>,
}

impl Parser {
    fn new(path: &Path, kind: FileKind) -> Parser {
        Parser {
            side: Side {
                path: path.to_owned(),
                kind,
                task: String::new(),
                level: None,
                framework: None,
                has_md5: false,
                records: Vec::new(),
                rows: Vec::new(),
                notices: Vec::new(),
                fault: None,
            },
            texts: Texts::default(),
            pending: Vec::new(),
            positions: FastMap::default(),
            repeated: FastSet::default(),
            earlier: FastMap::default(),
        }
    }

    /// Reads a record. It may be asked to again, so that nothing is kept yet.
    fn read(&mut self, text: &mut RecordText<'_, '_>) -> Result<ReadRecord, PullError> {
        let values_of = ValuesOf::of(text.name, self.side.kind);
        let mut rows = Rows::new(text.name, self.side.kind, values_of, &mut self.texts);
        let is_wanted = self.side.fault.is_none();
        let mut read = ReadRecord {
            name: text.name.into(),
            rows: Vec::new(),
            rest: 0,
            has_md5: false,
            has_formula: false,
            fault: None,
        };
        let written = match values_of {
            _ if !is_wanted => {
                text.skip()?;
                return Ok(read);
            }
            ValuesOf::Call => text.walk(&mut rows)?,
            ValuesOf::Saved | ValuesOf::Gradients => text.walk_value(&mut rows)?,
        };
        (read.has_md5, read.fault) = (rows.has_md5, rows.fault.take());
        if let Some(error) = rows.broken {
            return Err(error);
        }
        // What is written twice in a value has no row: then all of the record counts.
        read.rest = if rows.has_repeated {
            digest_of_whole(written)?
        } else {
            digest_of_rest(written, values_of.fields())?
        };
        read.has_formula = self.side.kind == FileKind::Dump && holds_formula(written);
        read.fault = read.fault.or_else(|| rows.fault_of_name());
        read.rows = rows.in_order();
        Ok(read)
    }

    fn keep(&mut self, read: ReadRecord) {
        if self.side.fault.is_some() {
            return;
        }
        let ReadRecord { name, rows, rest, has_md5, has_formula, fault } = read;
        if self.side.kind == FileKind::Dump && looks_like_a_formula(&name) {
            self.side.notices.push("api name contains special characters, please check!".to_owned());
        }
        if has_formula {
            self.side.notices.push(format!("data info of {name} contains special characters, please check!"));
        }
        self.side.has_md5 |= has_md5;
        if fault.is_some() {
            self.side.fault = fault;
            return;
        }
        match self.positions.get(&name) {
            Some(&position) => {
                self.repeated.insert((*name).into());
                self.pending[position] = (name, rows, rest);
            }
            None => {
                self.positions.insert(name.clone(), self.pending.len());
                self.pending.push((name, rows, rest));
            }
        }
    }

    fn finish(mut self, which: Which, file: &DumpFile) -> Result<Side, CompareError> {
        let word = which.word();
        let name = match self.side.kind {
            FileKind::Dump => "dump.json",
            FileKind::Debug => "debug.json",
        };
        if self.side.task.is_empty() {
            let message = format!("Task for {word} is empty, please check.");
            return Err(CompareError::new(Code::InvalidTask, message));
        }
        if !file.has_records() {
            let message = if file.damage().contains(&Damage::NoRecords) {
                format!("Invalid type for 'data': expected a dict. Please check {name} of {word}.")
            } else {
                format!("Missing 'data' in {name}, please check {name} of {word}.")
            };
            return Err(CompareError::new(Code::InvalidData, message));
        }
        self.side.records.reserve_exact(self.pending.len());
        self.side.rows.reserve_exact(self.pending.iter().map(|(_, rows, _)| rows.len()).sum());
        for (index, (name, rows, rest)) in self.pending.into_iter().enumerate() {
            let start = self.side.rows.len();
            self.side.rows.extend(rows.into_iter().map(|row| Leaf { record: index as u32, ..row }));
            let earlier = self.earlier.get(&*name).copied().unwrap_or_default();
            self.side.records.push(Record { name, rows: start..self.side.rows.len(), rest, earlier });
        }
        Ok(self.side)
    }
}

/// The rows of one record, made while it is read.
struct Rows<'a> {
    name: &'a str,
    kind: FileKind,
    values_of: ValuesOf,
    texts: &'a mut Texts,
    /// Each with the number of its section in [`CALL_FIELDS`].
    found: Vec<(usize, Leaf)>,
    /// How many rows there were when each object that has not ended began.
    marks: Vec<usize>,
    /// The section that is read; none if it holds no rows.
    section: Option<usize>,
    has_md5: bool,
    has_repeated: bool,
    fault: Option<CompareError>,
    broken: Option<PullError>,
}

impl<'a> Rows<'a> {
    fn new(name: &'a str, kind: FileKind, values_of: ValuesOf, texts: &'a mut Texts) -> Rows<'a> {
        Rows {
            name,
            kind,
            values_of,
            texts,
            found: Vec::new(),
            marks: Vec::new(),
            section: (values_of != ValuesOf::Call).then_some(0),
            has_md5: false,
            has_repeated: false,
            fault: None,
            broken: None,
        }
    }

    /// Arguments, parameters, results, gradients of parameters, each in order.
    fn in_order(mut self) -> Vec<Leaf> {
        self.found.sort_by_key(|(section, row)| (row.role, *section));
        self.found.into_iter().map(|(_, row)| row).collect()
    }

    /// Tables put rows in order by the direction of the call.
    fn fault_of_name(&self) -> Option<CompareError> {
        let is_call = self.values_of == ValuesOf::Call && self.kind == FileKind::Dump;
        if !is_call || RecordName::parse(self.name).direction().is_some() {
            return None;
        }
        let (_, row) = self.found.iter().min_by_key(|(section, _)| *section)?;
        let message =
            format!("Invalid name string: {}, can not be split by forward/backward, please check.", row.name);
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
        let mut name = self.name.to_owned();
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
            dtype: none.clone(),
            element: None,
            stored_dtype: None,
            shape: none,
            elements: None,
            statistics: [const { Scalar::Null }; 4],
            md5: None,
            data_name: None,
            requires_grad: None,
            p2p: None,
            digest: self.digest(written.bytes()),
            has_checksum: false,
            unmeasured: None,
            is_meta: false,
            is_array: false,
        };
        self.found.push((section, leaf));
    }

    fn digest(&mut self, text: &[u8]) -> u64 {
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
            dtype: described.dtype,
            element: described.element,
            stored_dtype,
            shape: described.shape,
            elements: value.elements().filter(|_| value.dtype.is_some()),
            statistics: described.statistics,
            md5,
            data_name: data_name.map(Into::into),
            requires_grad: value.requires_grad.and_then(Written::flag),
            p2p: p2p_operation(value),
            digest: self.digest(value.written),
            has_checksum,
            unmeasured,
            is_meta: value.layout.and_then(Written::text).as_deref() == Some("meta"),
            is_array: value.type_name.and_then(Written::text).as_deref() == Some("numpy.ndarray"),
        }
    }
}

impl Visitor for Rows<'_> {
    fn section(&mut self, section: Section<'_>, _: Shape) {
        self.section = CALL_FIELDS.iter().position(|(known, _)| *known == section);
        // The last one of a name counts.
        self.found.retain(|(known, _)| Some(*known) != self.section);
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
            self.found.push((section, leaf));
        } else if let Some(p2p) = p2p_operation(value) {
            // The tensor is a member of its own there.
            for (_, row) in self.found.iter_mut().skip(first).filter(|(_, row)| row.is_tensor()) {
                row.p2p = Some(p2p.clone());
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

/// A value that cannot be parsed is told by its digest.
fn json(written: Written<'_>) -> Json<'_> {
    written.json().unwrap_or(Json::Null)
}

/// Type, shape and statistics of a value as tables show them.
struct Described {
    kind: ValueKind,
    dtype: Arc<str>,
    element: Option<DType>,
    shape: Arc<str>,
    statistics: [Scalar; 4],
}

impl Described {
    fn of(value: &Value<'_>, texts: &mut Texts) -> Described {
        let nothing = [const { Scalar::Null }; 4];
        let four = |scalar: Scalar| [scalar.clone(), scalar.clone(), scalar.clone(), scalar];
        let content = value.value;
        let type_name = value.type_name.and_then(Written::text).unwrap_or_default();
        if let Some(dtype) = value.dtype {
            let shape = match (value.sizes, value.shape) {
                (Some(sizes), _) => texts.shape(sizes),
                (None, Some(shape)) => texts.shown(shape),
                (None, None) => texts.get("None"),
            };
            let element = value.known_dtype();
            let statistics =
                value.statistics.map(|written| written.map_or(Scalar::Null, |it| texts.scalar(it)));
            let kind = if dtype.bytes() == b"null" { ValueKind::None } else { ValueKind::Tensor };
            return Described { kind, dtype: texts.shown(dtype), element, shape, statistics };
        }
        let of = |kind, dtype: &str, shape: &str, statistics, texts: &mut Texts| Described {
            kind,
            dtype: texts.get(dtype),
            element: None,
            shape: texts.get(shape),
            statistics,
        };
        match &*type_name {
            "torch.Size" => {
                let shape = content.map_or_else(|| "None".to_owned(), |content| python_str(&json(content)));
                of(ValueKind::Size, &type_name, &shape, nothing, texts)
            }
            "slice" => {
                let shape = content.map_or_else(|| "()".to_owned(), |content| tuple_shape(&json(content)));
                of(ValueKind::Slice, &type_name, &shape, nothing, texts)
            }
            "ellipsis" => {
                let scalar = content.map_or(Scalar::Null, |content| texts.scalar(content));
                of(ValueKind::Ellipsis, &type_name, "[]", four(scalar), texts)
            }
            "torch.ProcessGroup" => {
                let ranks = value.group_ranks.map_or_else(|| "None".to_owned(), |it| python_str(&json(it)));
                let scalar = Scalar::Text(texts.get(&ranks));
                of(ValueKind::Group, &type_name, "[]", four(scalar), texts)
            }
            _ => {
                let class = content.map_or(python_class(&Json::Null), |content| python_class(&json(content)));
                let scalar = content.map_or(Scalar::Null, |content| texts.scalar(content));
                of(ValueKind::Plain, class, "[]", four(scalar), texts)
            }
        }
    }
}

/// What the values of a record are, by its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValuesOf {
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
    fn of(name: &str, kind: FileKind) -> ValuesOf {
        match RecordName::parse(name) {
            _ if kind == FileKind::Debug => ValuesOf::Saved,
            RecordName::Saved(_) => ValuesOf::Saved,
            name if name.is_parameter_gradient() => ValuesOf::Gradients,
            _ => ValuesOf::Call,
        }
    }

    /// The members that hold values, if it is not all of them.
    fn fields(self) -> Option<&'static [&'static str]> {
        (self == ValuesOf::Call).then_some(&CALL_KEYS)
    }
}

/// The shape numpy would give a list, as a tuple: `(3,)`.
fn tuple_shape(value: &Json<'_>) -> String {
    let mut sizes = Vec::new();
    let mut value = value;
    while let Json::List(elements) = value {
        sizes.push(elements.len().to_string());
        match elements.first() {
            Some(first) if elements.iter().all(|element| matches!(element, Json::List(_))) => value = first,
            _ => break,
        }
    }
    if let [only] = sizes.as_slice() { format!("({only},)") } else { format!("({})", sizes.join(", ")) }
}
