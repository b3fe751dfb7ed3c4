//! A file of records, read front to back.

use std::path::Path;

use super::record::{walk_record, walk_value};
use super::{Visitor, Written};
use crate::read::{Members, Pull, PullError, Pulled, ReadError, ReadErrorKind, Shape};

/// What a file says of all its records.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Header {
    /// `statistics`, `tensor`, …
    pub task: Option<String>,
    /// `L0`, `L1`, `mix`.
    pub level: Option<String>,
    /// The framework it was written under; none in old dumps.
    pub framework: Option<String>,
    /// Whether it says that it has tensor files. They are beside it: a dump may have been moved, and must not name files elsewhere.
    pub has_tensor_dir: bool,
    /// What it says of the directory of its tensor files, as JSON; none if it says nothing. It is shown, never followed.
    pub dump_data_dir: Option<String>,
}

/// What is wrong with a file; the rest of it is usable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Damage {
    /// It ends early, or is no JSON from here on.
    Ends {
        /// What stands there, or should.
        what: &'static str,
        /// At which byte.
        offset: u64,
    },
    /// A record that cannot be read.
    Record {
        /// Its name; empty if that cannot be read.
        name: String,
        /// What is wrong.
        what: &'static str,
        /// At which byte.
        at: u64,
        /// Where it ends.
        end: u64,
    },
    /// `data` is no list of records by name.
    NoRecords,
    /// There is no `data`.
    NoData,
    /// The task is told twice, and not the same.
    Tasks(String, String),
}

/// A record in its file.
pub struct RecordText<'r, 'a> {
    /// Its name.
    pub name: &'r str,
    /// Where in the file its text begins.
    pub offset: u64,
    pull: &'r mut Pull<'a>,
}

impl<'a> RecordText<'_, 'a> {
    /// Shows it to a visitor, section by section, and gives its text.
    pub fn walk(&mut self, visitor: &mut impl Visitor) -> Result<&'a [u8], PullError> {
        walk_record(self.pull, visitor)?;
        Ok(self.pull.since(0))
    }

    /// Shows it to a visitor as one value, what a script saved or the gradients of parameters, and gives its text.
    pub fn walk_value(&mut self, visitor: &mut impl Visitor) -> Result<&'a [u8], PullError> {
        walk_value(self.pull, visitor)?;
        Ok(self.pull.since(0))
    }

    /// Its text, shown to nobody.
    pub fn skip(&mut self) -> Result<&'a [u8], PullError> {
        self.pull.skip()?;
        Ok(self.pull.since(0))
    }
}

/// Shows a visitor the text of one record, read again.
pub fn walk_text(text: &[u8], visitor: &mut impl Visitor) -> Result<(), PullError> {
    walk_record(&mut Pull::new(text), visitor)
}

/// The same for a record that is one value, as [`RecordText::walk_value`] shows it.
pub fn walk_text_as_value(text: &[u8], visitor: &mut impl Visitor) -> Result<(), PullError> {
    walk_value(&mut Pull::new(text), visitor)
}

/// A `dump.json` or `debug.json` that is being read.
pub struct DumpFile {
    members: Members,
    header: Header,
    damage: Vec<Damage>,
    is_over: bool,
}

impl DumpFile {
    /// Opens a file; links are not followed.
    pub fn open(path: &Path) -> Result<DumpFile, ReadError> {
        let members = Members::open(path, "data")?;
        Ok(DumpFile { members, header: Header::default(), damage: Vec::new(), is_over: false })
    }

    /// What `read` made of the next record, or nothing after the last one. `read` may be called again for the same record, with more
    /// of its text. An error is one of the disk.
    pub fn next_record<T>(
        &mut self,
        mut read: impl FnMut(&mut RecordText<'_, '_>) -> Result<T, PullError>,
    ) -> Result<Option<T>, ReadError> {
        while !self.is_over {
            let (mut name, mut offset) = (String::new(), 0);
            let (header, damage) = (&mut self.header, &mut self.damage);
            let next = self.members.next_pulled(|start, pull| {
                if !start.inner {
                    return read_header(header, damage, &start.key, pull).map(|()| None);
                }
                let mut record = RecordText { name: &start.key, offset: start.offset, pull };
                let result = read(&mut record);
                if result.is_err() {
                    (name, offset) = (start.key.clone().into_owned(), start.offset);
                }
                result.map(Some)
            });
            match next {
                Ok(Some(Pulled { result: Ok(Some(made)), .. })) => return Ok(Some(made)),
                Ok(Some(Pulled { result: Ok(None), .. })) => {}
                Ok(Some(Pulled { result: Err((what, at)), end })) => {
                    self.damage.push(Damage::Record { name, what, at: offset + at as u64, end });
                }
                Ok(None) => self.is_over = true,
                Err(ReadError { kind: ReadErrorKind::Syntax { what, offset }, .. }) => {
                    self.is_over = true;
                    self.damage.push(Damage::Ends { what, offset });
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
            if self.is_over && !self.members.has_entered() && self.damage.is_empty() {
                self.damage.push(Damage::NoData);
            }
        }
        Ok(None)
    }

    /// What was read of the header so far: it may stand behind the records.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Whether `data` was met and is an object, be it empty.
    pub fn has_records(&self) -> bool {
        self.members.has_entered()
    }

    /// What is wrong with the part that was read.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Bytes that were gone through.
    pub fn offset(&self) -> u64 {
        self.members.offset()
    }
}

fn read_header(
    header: &mut Header,
    damage: &mut Vec<Damage>,
    key: &str,
    pull: &mut Pull<'_>,
) -> Result<(), PullError> {
    if key == "data" && damage.last() != Some(&Damage::NoRecords) {
        damage.push(Damage::NoRecords);
    }
    let shape = pull.shape()?;
    let written = Written::next(pull)?;
    if key == "dump_data_dir" {
        header.dump_data_dir = Some(String::from_utf8_lossy(written.bytes()).into_owned());
    }
    if shape != Shape::Text {
        return Ok(());
    }
    let Some(text) = written.text().map(std::borrow::Cow::into_owned) else { return Ok(()) };
    match key {
        "task" => {
            let twice =
                header.task.take().filter(|task| *task != text).map(|task| Damage::Tasks(task, text.clone()));
            damage.extend(twice);
            header.task = Some(text);
        }
        "level" => header.level = Some(text),
        "framework" => header.framework = Some(text),
        "dump_data_dir" => header.has_tensor_dir = true,
        _ => {}
    }
    Ok(())
}
