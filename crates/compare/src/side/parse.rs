//! From dump.json or debug.json to a side.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use msprobe_dump::hash::{FastMap, FastSet};
use msprobe_dump::model::{Damage, DumpFile, Header, RecordText};
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

/// Where the records of a file stand, for those who read some of them again.
#[derive(Debug, Default)]
pub struct RecordPlaces {
    /// What the file says of all records.
    pub header: Header,
    /// Name, first byte and length of each record, one that is repeated as often.
    pub records: Vec<(Arc<str>, u64, usize)>,
}

/// Reads one side. What is odd but usable goes to the console.
pub fn read_side(path: &Path, which: Which, console: &dyn Console) -> Result<Side, CompareError> {
    read_noting(path, which, console, &mut |_| {}).map(|(side, _)| side)
}

/// The same, with the places of all records.
pub fn read_side_and_places(
    path: &Path,
    which: Which,
    console: &dyn Console,
) -> Result<(Side, RecordPlaces), CompareError> {
    let mut records = Vec::new();
    let mut note = |read: &ReadRecord| records.push((read.name.clone(), read.offset, read.length));
    let (side, header) = read_noting(path, which, console, &mut note)?;
    Ok((side, RecordPlaces { header, records }))
}

fn read_noting(
    path: &Path,
    which: Which,
    console: &dyn Console,
    note: &mut dyn FnMut(&ReadRecord),
) -> Result<(Side, Header), CompareError> {
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
        note(&read);
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
    let header = header.clone();
    Ok((parser.finish(which, &file)?, header))
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
    /// Records as they were met. A record can be repeated: then its last rows count, and the earlier ones are left behind.
    pending: Vec<Pending>,
    positions: FastMap<Arc<str>, usize>,
    /// Names that stand more than once, and what is under them besides the last value.
    repeated: FastSet<Box<str>>,
    earlier: FastMap<Box<str>, Earlier>,
}

/// A record that was kept.
struct Pending {
    name: Arc<str>,
    /// Where its rows stand among those of the side.
    rows: Range<usize>,
    rest: u64,
}

/// A record that was read.
struct ReadRecord {
    name: Arc<str>,
    /// Where it stands in the file.
    offset: u64,
    length: usize,
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
            offset: text.offset,
            length: 0,
            rows: Vec::new(),
            rest: 0,
            has_md5: false,
            has_formula: false,
            fault: None,
        };
        let written = match values_of {
            _ if !is_wanted => {
                read.length = text.skip()?.len();
                return Ok(read);
            }
            ValuesOf::Call => text.walk(&mut rows)?,
            ValuesOf::Saved | ValuesOf::Gradients => text.walk_value(&mut rows)?,
        };
        read.length = written.len();
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
        let ReadRecord { name, rows, rest, has_md5, has_formula, fault, .. } = read;
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
        let known = self.positions.get(&name).copied();
        let record = known.unwrap_or(self.pending.len()) as u32;
        let start = self.side.rows.len();
        self.side.rows.extend(rows.into_iter().map(|row| Leaf { record, ..row }));
        let kept = Pending { name, rows: start..self.side.rows.len(), rest };
        match known {
            Some(position) => {
                self.repeated.insert((*kept.name).into());
                self.pending[position] = kept;
            }
            None => {
                self.positions.insert(kept.name.clone(), self.pending.len());
                self.pending.push(kept);
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
        if !self.repeated.is_empty() {
            self.put_rows_in_order();
        }
        let earlier = |name: &str| self.earlier.get(name).copied().unwrap_or_default();
        let record = |Pending { name, rows, rest }| Record { earlier: earlier(&name), name, rows, rest };
        self.side.records = self.pending.into_iter().map(record).collect();
        Ok(self.side)
    }

    /// Leaves out rows of what was repeated, and puts those that count where their record stands.
    fn put_rows_in_order(&mut self) {
        let mut rows: Vec<Option<Leaf>> = std::mem::take(&mut self.side.rows).into_iter().map(Some).collect();
        for record in &mut self.pending {
            let start = self.side.rows.len();
            let own = rows.get_mut(record.rows.clone()).unwrap_or_default();
            self.side.rows.extend(own.iter_mut().filter_map(Option::take));
            record.rows = start..self.side.rows.len();
        }
    }
}
