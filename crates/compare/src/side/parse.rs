//! From dump.json or debug.json to rows.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use msprobe_dump::read::{Json, Member, Members};

use super::checks::{check_field, has_md5, has_shallow_md5, looks_like_a_formula};
use super::digest::{digest_of_rest, digest_of_value};
use super::repeats::{Earlier, read_earlier};
use super::{Framework, Leaf, P2pOperation, Record, Role, Scalar, Side, Which};
use crate::console::Console;
use crate::error::{Code, CompareError};
use crate::python_text::{python_class, python_str};
use msprobe_dump::hash::{FastMap, FastSet};

/// Deeper values are refused.
pub(super) const MAX_DEPTH: usize = 10;
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
    let mut reader = Members::open(path, "data").map_err(|error| broken(&error))?;
    let mut parser = Parser::new(path, kind);
    let mut shown = 0;
    while let Some(member) = reader.next_member().map_err(|error| broken(&error))? {
        parser.member(&member);
        let offset = reader.offset();
        if offset - shown > PROGRESS {
            console.advance(offset - shown);
            shown = offset;
        }
    }
    if reader.has_entered() {
        parser.data = Data::Object;
    }
    if !parser.repeated.is_empty() {
        let is_filled_in = |name: &str| ValuesOf::of(name, kind) != ValuesOf::Call;
        parser.earlier =
            read_earlier(path, &parser.repeated, &is_filled_in).map_err(|error| broken(&error))?;
    }
    parser.finish(which)
}

/// What `data` turned out to be.
#[derive(PartialEq)]
enum Data {
    Missing,
    NotAnObject,
    Object,
}

struct Parser {
    side: Side,
    data: Data,
    texts: FastSet<Arc<str>>,
    /// Rows of each record until all are known: a record can be repeated, and its last value counts.
    pending: Vec<(Arc<str>, Vec<Leaf>, u64)>,
    /// Length of the name of the record that is read.
    record_length: usize,
    positions: FastMap<Arc<str>, usize>,
    /// Names that stand more than once, and what is under them besides the last value.
    repeated: FastSet<Box<str>>,
    earlier: FastMap<Box<str>, Earlier>,
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
            data: Data::Missing,
            texts: FastSet::default(),
            pending: Vec::new(),
            record_length: 0,
            positions: FastMap::default(),
            repeated: FastSet::default(),
            earlier: FastMap::default(),
        }
    }

    fn member(&mut self, member: &Member<'_>) {
        if member.inner {
            if self.side.fault.is_none() {
                self.side.fault = self.record(&member.key, &member.value).err();
            }
            return;
        }
        match (&*member.key, &member.value) {
            ("data", _) => self.data = Data::NotAnObject,
            ("task", Json::Text(task)) => self.side.task = task.clone().into_owned(),
            ("level", Json::Text(level)) => self.side.level = Some(level.clone().into_owned()),
            ("framework", Json::Text(framework)) => {
                self.side.framework = match &**framework {
                    "pytorch" => Some(Framework::PyTorch),
                    "mindspore" => Some(Framework::MindSpore),
                    _ => None,
                };
            }
            _ => {}
        }
    }

    fn finish(mut self, which: Which) -> Result<Side, CompareError> {
        let word = which.word();
        let file = match self.side.kind {
            FileKind::Dump => "dump.json",
            FileKind::Debug => "debug.json",
        };
        if self.side.task.is_empty() {
            let message = format!("Task for {word} is empty, please check.");
            return Err(CompareError::new(Code::InvalidTask, message));
        }
        match self.data {
            Data::Object => {}
            Data::Missing => {
                let message = format!("Missing 'data' in {file}, please check {file} of {word}.");
                return Err(CompareError::new(Code::InvalidData, message));
            }
            Data::NotAnObject => {
                let message =
                    format!("Invalid type for 'data': expected a dict. Please check {file} of {word}.");
                return Err(CompareError::new(Code::InvalidData, message));
            }
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

    fn record(&mut self, name: &str, value: &Json<'_>) -> Result<(), CompareError> {
        if self.side.kind == FileKind::Dump {
            self.check(name, value)?;
            self.side.has_md5 |= has_shallow_md5(value);
        } else {
            self.side.has_md5 |= has_md5(value);
        }
        let rows = self.rows(name, value)?;
        let fields = ValuesOf::of(name, self.side.kind).fields();
        let rest = digest_of_rest(value, fields, &|value| is_leaf(value) || *value == Json::Null);
        let name: Arc<str> = name.into();
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
        Ok(())
    }

    /// Refuses what no collection writes; formula-like text is only reported, because writers of tables escape it.
    fn check(&mut self, name: &str, value: &Json<'_>) -> Result<(), CompareError> {
        if looks_like_a_formula(name) {
            self.side.notices.push("api name contains special characters, please check!".to_owned());
        }
        let input = if value.get("input_args").is_some() { "input_args" } else { "input" };
        let mut special = false;
        for field in [input, "input_kwargs", "output"] {
            if let Some(field) = value.get(field) {
                check_field(name, field, 0, &mut special)?;
            }
        }
        if special {
            self.side.notices.push(format!("data info of {name} contains special characters, please check!"));
        }
        Ok(())
    }

    fn rows(&mut self, name: &str, value: &Json<'_>) -> Result<Vec<Leaf>, CompareError> {
        let mut rows = Vec::new();
        self.record_length = name.len();
        match ValuesOf::of(name, self.side.kind) {
            ValuesOf::Saved => self.walk(&mut rows, name.to_owned(), value, Role::Input, true, 0)?,
            ValuesOf::Gradients => {
                self.walk(&mut rows, name.to_owned(), value, Role::ParametersGrad, false, 0)?;
            }
            ValuesOf::Call => {
                for ((stem, role), field) in CALL_ROLES.into_iter().zip(CALL_FIELDS) {
                    if let Some(value) = value.get(field) {
                        self.walk(&mut rows, format!("{name}.{stem}"), value, role, true, 0)?;
                    }
                }
                if let Some(row) = rows.first()
                    && self.side.kind == FileKind::Dump
                    && !has_direction(name)
                {
                    let message = format!(
                        "Invalid name string: {}, can not be split by forward/backward, please check.",
                        row.name
                    );
                    return Err(CompareError::new(Code::InvalidApiName, message));
                }
            }
        }
        // Stable: arguments, parameters, results, gradients of parameters, each in order.
        rows.sort_by_key(|row| row.role);
        Ok(rows)
    }

    fn walk(
        &mut self,
        rows: &mut Vec<Leaf>,
        name: String,
        value: &Json<'_>,
        role: Role,
        number_lists: bool,
        depth: usize,
    ) -> Result<(), CompareError> {
        if depth > MAX_DEPTH {
            let message = format!("{name} is nested more than {MAX_DEPTH} levels deep");
            return Err(CompareError::new(Code::RecursionLimit, message));
        }
        match value {
            Json::List(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    let name = if number_lists { format!("{name}.{index}") } else { name.clone() };
                    self.walk(rows, name, element, role, number_lists, depth + 1)?;
                }
            }
            Json::Map(members) if is_leaf(value) => {
                let mut leaf = self.leaf(&name, members, role);
                leaf.p2p = p2p_operation(value);
                leaf.digest = digest_of_value(value);
                leaf.place = self.place(&name);
                rows.push(leaf);
            }
            Json::Map(members) => {
                let first = rows.len();
                for (key, member) in members {
                    self.walk(rows, format!("{name}.{key}"), member, role, number_lists, depth + 1)?;
                }
                if let Some(p2p) = p2p_operation(value) {
                    // The tensor is a member of its own there.
                    for row in rows.iter_mut().skip(first).filter(|row| row.is_tensor()) {
                        row.p2p = Some(p2p.clone());
                    }
                }
            }
            Json::Null => {
                let none = self.text("None");
                let place = self.place(&name);
                rows.push(Leaf {
                    name: name.into(),
                    record: 0,
                    role,
                    dtype: none.clone(),
                    stored_dtype: None,
                    shape: none,
                    statistics: [const { Scalar::Null }; 4],
                    md5: None,
                    data_name: None,
                    requires_grad: None,
                    p2p: None,
                    place,
                    digest: digest_of_value(value),
                    has_checksum: false,
                    unmeasured: None,
                    is_meta: false,
                    is_array: false,
                });
            }
            _ => {}
        }
        Ok(())
    }

    fn leaf(&mut self, name: &str, members: &[(Cow<'_, str>, Json<'_>)], role: Role) -> Leaf {
        let fields = Fields::of(members);
        let (dtype, shape, statistics) = self.described(&fields);
        let stored_dtype = fields.stored_dtype.and_then(Json::as_str).map(|dtype| self.text(dtype));
        let has_checksum = fields.md5.and_then(Json::as_str).is_some_and(|md5| !md5.is_empty());
        let unmeasured = fields.unmeasured.and_then(Json::as_str).map(|reason| self.text(reason));
        let md5 = match (fields.dtype, fields.value) {
            (Some(_), _) => fields.md5.and_then(Json::as_str).map(|md5| self.text(md5)),
            (None, Some(value)) => {
                let checksum = format!("{:08x}", crc32fast::hash(python_str(value).as_bytes()));
                Some(self.text(&checksum))
            }
            (None, None) => None,
        };
        let data_name = fields.data_name.and_then(Json::as_str).filter(|name| !name.is_empty());
        let name = match data_name {
            Some(file) => file.rsplit_once('.').map_or(file, |(stem, _)| stem),
            None => name,
        };
        Leaf {
            name: name.into(),
            record: 0,
            role,
            dtype,
            stored_dtype,
            shape,
            statistics,
            md5: Some(md5.unwrap_or_else(|| self.text(NO_CHECKSUM))),
            data_name: data_name.map(Into::into),
            requires_grad: match fields.requires_grad {
                Some(Json::Bool(requires_grad)) => Some(*requires_grad),
                _ => None,
            },
            p2p: None,
            place: self.text(""),
            digest: 0,
            has_checksum,
            unmeasured,
            is_meta: fields.layout.and_then(Json::as_str) == Some("meta"),
            is_array: fields.kind.and_then(Json::as_str) == Some("numpy.ndarray"),
        }
    }

    /// The part of a name behind that of its record.
    fn place(&mut self, name: &str) -> Arc<str> {
        let place = name.get(self.record_length..).unwrap_or_default().trim_start_matches('.');
        self.text(place)
    }

    /// Dtype, shape and statistics as tables show them.
    fn described(&mut self, fields: &Fields<'_, '_>) -> (Arc<str>, Arc<str>, [Scalar; 4]) {
        let kind = fields.kind.and_then(Json::as_str).unwrap_or_default();
        let nothing = [const { Scalar::Null }; 4];
        let four = |scalar: Scalar| [scalar.clone(), scalar.clone(), scalar.clone(), scalar];
        let content = fields.value;
        match (fields.dtype, kind) {
            (Some(dtype), _) => {
                let statistics = fields
                    .statistics
                    .map(|statistic| statistic.map_or(Scalar::Null, |value| self.scalar(value)));
                let shape = match fields.shape {
                    Some(shape) => self.shown(shape),
                    None => self.text("None"),
                };
                (self.shown(dtype), shape, statistics)
            }
            (None, "torch.Size") => {
                let shape = content.map_or_else(|| "None".to_owned(), python_str);
                (self.text(kind), self.text(&shape), nothing)
            }
            (None, "slice") => {
                let shape = content.map_or_else(|| "()".to_owned(), tuple_shape);
                (self.text(kind), self.text(&shape), nothing)
            }
            (None, "ellipsis") => {
                let scalar = content.map_or(Scalar::Null, |content| self.scalar(content));
                (self.text(kind), self.text("[]"), four(scalar))
            }
            (None, "torch.ProcessGroup") => {
                let ranks = fields.group_ranks.map_or_else(|| "None".to_owned(), python_str);
                let scalar = Scalar::Text(self.text(&ranks));
                (self.text(kind), self.text("[]"), four(scalar))
            }
            (None, _) => {
                let content = content.unwrap_or(&Json::Null);
                let scalar = self.scalar(content);
                (self.text(python_class(content)), self.text("[]"), four(scalar))
            }
        }
    }

    /// `str` of a value, kept once.
    fn shown(&mut self, value: &Json<'_>) -> Arc<str> {
        match value {
            Json::Text(text) => self.text(text),
            other => self.text(&python_str(other)),
        }
    }

    fn scalar(&mut self, value: &Json<'_>) -> Scalar {
        match value {
            Json::Null => Scalar::Null,
            Json::Bool(value) => Scalar::Bool(*value),
            Json::Int(value) => {
                i64::try_from(*value).map_or_else(|_| Scalar::Large(Box::new(*value)), Scalar::Int)
            }
            Json::Float(value) => Scalar::Float(*value),
            other => {
                let text = python_str(other);
                Scalar::Text(self.text(&text))
            }
        }
    }

    /// A text kept once.
    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        let text: Arc<str> = text.into();
        // Arguments of training differ from call to call only rarely; what does is not worth keeping.
        if self.texts.len() < 1 << 16 {
            self.texts.insert(text.clone());
        }
        text
    }
}

/// What a batch of sends and receives does with one of its tensors.
fn p2p_operation(value: &Json<'_>) -> Option<Box<P2pOperation>> {
    let class = value.get("class_type").and_then(Json::as_str)?;
    let operation = value.get("op").and_then(Json::as_str).filter(|_| class.ends_with("P2POp"))?;
    let peer = match value.get("peer") {
        Some(Json::Int(peer)) => i64::try_from(*peer).ok(),
        _ => None,
    };
    Some(Box::new(P2pOperation { operation: operation.into(), peer }))
}

/// What a leaf can have, found in one pass. Of a key that is repeated the last one counts.
#[derive(Default)]
struct Fields<'v, 'j> {
    kind: Option<&'v Json<'j>>,
    dtype: Option<&'v Json<'j>>,
    stored_dtype: Option<&'v Json<'j>>,
    shape: Option<&'v Json<'j>>,
    value: Option<&'v Json<'j>>,
    group_ranks: Option<&'v Json<'j>>,
    statistics: [Option<&'v Json<'j>>; 4],
    md5: Option<&'v Json<'j>>,
    data_name: Option<&'v Json<'j>>,
    requires_grad: Option<&'v Json<'j>>,
    unmeasured: Option<&'v Json<'j>>,
    layout: Option<&'v Json<'j>>,
}

impl<'v, 'j> Fields<'v, 'j> {
    fn of(members: &'v [(Cow<'_, str>, Json<'j>)]) -> Fields<'v, 'j> {
        let mut fields = Fields::default();
        for (key, value) in members {
            let field = match &**key {
                "type" => &mut fields.kind,
                "dtype" => &mut fields.dtype,
                "stored_dtype" => &mut fields.stored_dtype,
                "shape" => &mut fields.shape,
                "value" => &mut fields.value,
                "group_ranks" => &mut fields.group_ranks,
                "Max" => &mut fields.statistics[0],
                "Min" => &mut fields.statistics[1],
                "Mean" => &mut fields.statistics[2],
                "Norm" => &mut fields.statistics[3],
                "md5" => &mut fields.md5,
                "data_name" => &mut fields.data_name,
                "requires_grad" => &mut fields.requires_grad,
                "unmeasured" | "unwritten" => &mut fields.unmeasured,
                "layout" => &mut fields.layout,
                _ => continue,
            };
            *field = Some(value);
        }
        fields
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

/// Members of a call that hold values, with the word for them in the names of rows and what they are.
const CALL_FIELDS: [&str; 5] = ["input_args", "input_kwargs", "input", "output", "parameters"];
const CALL_ROLES: [(&str, Role); 5] = [
    ("input", Role::Input),
    ("input", Role::Input),
    ("input", Role::Input),
    ("output", Role::Output),
    ("parameters", Role::Parameters),
];

impl ValuesOf {
    /// Layers may be called like these words, so only the end of a name counts.
    fn of(name: &str, kind: FileKind) -> ValuesOf {
        if kind == FileKind::Debug || name.rsplit('.').next() == Some("debug") {
            ValuesOf::Saved
        } else if name.rsplit('.').take(2).any(|part| part == "parameters_grad") {
            ValuesOf::Gradients
        } else {
            ValuesOf::Call
        }
    }

    /// The members that hold values, if it is not all of them.
    fn fields(self) -> Option<&'static [&'static str]> {
        (self == ValuesOf::Call).then_some(&CALL_FIELDS)
    }
}

/// Whether a value is one leaf of a record: an object that says of what type it is.
fn is_leaf(value: &Json<'_>) -> bool {
    value.get("type").is_some_and(|kind| kind.as_str().is_some())
}

/// Whether a record is of a forward or backward call.
pub(crate) fn has_direction(name: &str) -> bool {
    name.split('.').any(|part| part == "forward" || part == "backward")
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
