//! From dump.json or debug.json to a side.

use std::path::Path;
use std::sync::Arc;

use msprobe_dump::hash::{FastMap, FastSet};
use msprobe_dump::model::{Damage, DumpFile, RecordText};
use msprobe_dump::read::{PullError, ReadError, ReadErrorKind};

use super::checks::{holds_formula, looks_like_a_formula};
use super::digest::{digest_of_rest, digest_of_whole};
use super::repeats::{Earlier, read_earlier};
use super::rows::{Rows, ValuesOf};
use super::texts::Texts;
use super::{Framework, Leaf, Record, Side, Which};
use crate::console::Console;
use crate::error::{Code, CompareError};

/// Progress is shown each time so many bytes were read.
const PROGRESS: u64 = 1 << 20;

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
        let word = which.as_str();
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
