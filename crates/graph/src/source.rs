//! The files of one rank: which records there are and where they stand, who was called in whom, and from which lines.
//!
//! Only the places of records are kept. Their text is read again when they are shown, so that memory follows the number of
//! records, not what was recorded of them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use msprobe_compare::side::RecordPlaces;
use msprobe_dump::hash::{FastMap, FastSet};
use msprobe_dump::model::{Damage, DumpFile, Header, parent_of, read_construct, read_stacks};
use msprobe_dump::python_text::python_str;
use msprobe_dump::read::{Json, ReadError, ReadErrorKind};

/// The member of `construct.json` that tells the last micro step.
const MICRO_STEPS: &str = "megatron_micro_step_number";

/// Why the files of a rank cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// One of the three files is missing or cannot be opened.
    #[error("{}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// One of the three files is not what it should be, from its first byte on.
    #[error(transparent)]
    Read(ReadError),
    /// A record stands no longer where it stood.
    #[error("{}: it was changed while it was read: {source}", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A call and the call it was made in.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The call.
    pub name: Arc<str>,
    /// The module call around it.
    pub parent: Option<Arc<str>>,
    /// The micro step, where that was recorded.
    pub micro_step: Option<u32>,
}

/// Where a record stands in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    offset: u64,
    length: u32,
}

/// The frames of a call, innermost first.
pub type Frames = Arc<[Box<str>]>;

/// The files of one rank, read.
#[derive(Debug)]
pub struct RankFiles {
    /// The directory.
    pub dir: PathBuf,
    /// What `dump.json` says of all records.
    pub header: Header,
    /// Calls, in the order of `construct.json`.
    pub entries: Vec<Entry>,
    /// The number of micro steps, where that was recorded.
    pub micro_steps: Option<u32>,
    /// Names of the records, in the order of `dump.json`.
    pub names: Vec<Arc<str>>,
    /// What is wrong with the files; what came before it is used.
    pub damage: Vec<String>,
    spans: FastMap<Arc<str>, Span>,
    stacks: FastMap<Box<str>, Frames>,
    dump: File,
}

impl RankFiles {
    /// Reads the files in a rank's directory; `dump.json` only if the places of its records are not known yet.
    pub fn read(dir: &Path, known: Option<RecordPlaces>) -> Result<RankFiles, SourceError> {
        let [construct, stack, dump_path] =
            ["construct.json", "stack.json", "dump.json"].map(|name| dir.join(name));
        let mut damage = Vec::new();
        let (entries, micro_steps) = read_entries(&construct, &mut damage)?;
        let stacks = read_frames(&stack, &mut damage)?;
        let places = match known {
            Some(places) => places,
            None => places_in(&dump_path, &mut damage)?,
        };
        let mut spans: FastMap<Arc<str>, Span> = FastMap::default();
        let mut names = Vec::new();
        for (name, offset, length) in places.records {
            let Ok(length) = u32::try_from(length) else {
                damage.push(format!("{}: the record {name} is too long", dump_path.display()));
                continue;
            };
            if spans.insert(name.clone(), Span { offset, length }).is_none() {
                names.push(name);
            }
        }
        let dump = File::open(&dump_path).map_err(|source| SourceError::Open { path: dump_path, source })?;
        Ok(RankFiles {
            dir: dir.to_owned(),
            header: places.header,
            entries,
            micro_steps,
            names,
            damage,
            spans,
            stacks,
            dump,
        })
    }

    /// Where a record stands.
    pub fn span(&self, name: &str) -> Option<Span> {
        self.spans.get(name).copied()
    }

    /// Reads the text of a record into `text`.
    pub fn read_text(&self, span: Span, text: &mut Vec<u8>) -> Result<(), SourceError> {
        text.clear();
        text.resize(span.length as usize, 0);
        self.dump
            .read_exact_at(text, span.offset)
            .map_err(|source| SourceError::Changed { path: self.dir.join("dump.json"), source })
    }

    /// The frames of a call.
    pub fn frames(&self, name: &str) -> Option<&Frames> {
        self.stacks.get(name)
    }

    /// `dump.json`.
    pub fn dump_path(&self) -> PathBuf {
        self.dir.join("dump.json")
    }
}

impl SourceError {
    fn of(error: ReadError) -> SourceError {
        match error.kind {
            ReadErrorKind::Io(source) => SourceError::Open { path: error.path, source },
            ReadErrorKind::Syntax { .. } => SourceError::Read(error),
        }
    }
}

fn read_entries(path: &Path, damage: &mut Vec<String>) -> Result<(Vec<Entry>, Option<u32>), SourceError> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut places: FastMap<Arc<str>, usize> = FastMap::default();
    let mut parents: FastSet<Arc<str>> = FastSet::default();
    let mut micro_steps = None;
    let read = read_construct(path, |name, value| {
        if let (MICRO_STEPS, Json::Int(last)) = (name, value) {
            micro_steps = u32::try_from(*last).ok().and_then(|last| last.checked_add(1));
            return;
        }
        let parent = parent_of(value).map(|parent| match parents.get(parent) {
            Some(known) => known.clone(),
            None => {
                let parent: Arc<str> = parent.into();
                parents.insert(parent.clone());
                parent
            }
        });
        let micro_step = match value {
            Json::List(list) => match list.get(1) {
                Some(Json::Int(step)) => u32::try_from(*step).ok(),
                _ => None,
            },
            _ => None,
        };
        let entry = Entry { name: name.into(), parent, micro_step };
        // A repeated key counts as its last value, at its first place.
        match places.get(name) {
            Some(&place) => entries[place] = entry,
            None => {
                places.insert(entry.name.clone(), entries.len());
                entries.push(entry);
            }
        }
    });
    match read {
        Ok(()) => {}
        Err(error) if entries.is_empty() => return Err(SourceError::of(error)),
        Err(error) => damage.push(error.to_string()),
    }
    Ok((entries, micro_steps))
}

fn read_frames(path: &Path, damage: &mut Vec<String>) -> Result<FastMap<Box<str>, Frames>, SourceError> {
    let mut stacks: FastMap<Box<str>, Frames> = FastMap::default();
    let mut is_grouped = None;
    let read = read_stacks(path, |entry| {
        let is_grouped = *is_grouped.get_or_insert(entry.key == "0");
        if let Some(frames) = entry.frames.filter(|_| !is_grouped || entry.records.is_some()) {
            let frames: Frames = frames.iter().map(|frame| python_str(frame).into()).collect();
            for record in entry.records() {
                stacks.insert(record.into(), frames.clone());
            }
        }
        std::ops::ControlFlow::Continue(())
    });
    match read {
        Ok(()) => {}
        Err(error) if stacks.is_empty() => return Err(SourceError::of(error)),
        Err(error) => damage.push(error.to_string()),
    }
    Ok(stacks)
}

fn places_in(path: &Path, damage: &mut Vec<String>) -> Result<RecordPlaces, SourceError> {
    let mut file = DumpFile::open(path).map_err(SourceError::of)?;
    let mut records = Vec::new();
    loop {
        let record =
            file.next_record(|text| Ok((Arc::<str>::from(text.name), text.offset, text.skip()?.len())));
        match record.map_err(SourceError::of)? {
            Some(record) => records.push(record),
            None => break,
        }
    }
    damage.extend(file.damage().iter().filter_map(|damage| damage_text(path, damage)));
    Ok(RecordPlaces { header: file.header().clone(), records })
}

fn damage_text(path: &Path, damage: &Damage) -> Option<String> {
    let path = path.display();
    Some(match damage {
        Damage::Ends { what, offset } => format!("{path}: {what} at byte {offset}; what came before is used"),
        Damage::Record { name, what, at, .. } => {
            format!("{path}: the record {name} cannot be read: {what} at byte {at}")
        }
        Damage::NoRecords => format!("{path}: \"data\" is no list of records by name"),
        Damage::NoData => format!("{path}: there is no \"data\""),
        Damage::Tasks(..) => return None,
    })
}
