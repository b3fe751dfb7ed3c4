//! The JSON files of a step, side by side.

use std::io;
use std::path::Path;

use super::body::RecordBody;
use super::error::WriteError;
use super::groups::GroupFile;
use super::queue::{Batch, Entry, State};
use super::records::{Header, RecordFile};
use super::reserve::Reserve;
use super::stream::StreamFile;
use super::writer::Files;

/// The files.
#[derive(Debug)]
pub(super) struct StepFiles {
    records: RecordFile,
    /// Not in a step that has `debug.json` only.
    calls: Option<CallFiles>,
    /// Room for these files, where others may fill the disk.
    reserve: Option<Reserve>,
}

/// Who called what from where.
#[derive(Debug)]
struct CallFiles {
    stacks: GroupFile,
    construct: StreamFile,
}

impl StepFiles {
    pub(super) fn create(dir: &Path, header: &Header, files: Files) -> Result<StepFiles, WriteError> {
        fn at<T>(path: &Path, create: impl FnOnce(&Path) -> io::Result<T>) -> Result<T, WriteError> {
            create(path).map_err(|error| WriteError::new(path, &error))
        }
        let records = at(&files.main_path(dir), |path| RecordFile::create(path, header))?;
        let calls = if files == Files::Dump {
            let stacks = at(&dir.join("stack.json"), GroupFile::create)?;
            let construct = at(&dir.join("construct.json"), |path| StreamFile::create(path, "{", "}"))?;
            Some(CallFiles { stacks, construct })
        } else {
            None
        };
        Ok(StepFiles { records, calls, reserve: None })
    }

    /// Uses this room when the disk is full.
    pub(super) fn keep_room(&mut self, reserve: Reserve) {
        self.reserve = Some(reserve);
    }

    /// Puts a batch into the files, to be committed.
    pub(super) fn write(&mut self, batch: Batch) -> Result<(), WriteError> {
        for (id, change) in batch.changes {
            self.records.change(id, change);
        }
        for (id, entry) in (batch.first..).zip(batch.records) {
            self.write_record(id, entry);
        }
        let Some(CallFiles { stacks, construct }) = &mut self.calls else { return Ok(()) };
        if !batch.construct.is_empty() {
            construct.set_tail("\n}");
            construct.append(&batch.construct);
        }
        let done = stacks.write(batch.groups);
        done.map_err(|error| WriteError::new(stacks.file().path(), &error))
    }

    fn write_record(&mut self, id: u64, entry: Entry) {
        match (entry.state, entry.body) {
            (State::Gone, _) => {}
            (State::Closed, body) => {
                let text = body.map(RecordBody::into_text);
                self.records.write_closed(&entry.name, text.as_deref().unwrap_or("{}"));
            }
            (State::Open, body) => {
                let text = body.map(RecordBody::into_text);
                let body = text.as_deref().map(|text| (text, entry.room));
                self.records.write_open(id, entry.name, body);
            }
        }
    }

    /// Shows what was written. What a record refers to is there before it.
    pub(super) fn commit(&mut self) -> Result<(), WriteError> {
        let mut reserve = self.reserve.take();
        let mut done = Ok(());
        for file in self.all() {
            done = done.and_then(|()| commit(file, reserve.as_mut()));
        }
        self.reserve = reserve;
        done
    }

    /// Settles what is open, and shows it.
    pub(super) fn finish(&mut self) -> Result<(), WriteError> {
        self.records.abandon_all();
        self.commit()
        // The spares go with the files.
    }

    pub(super) fn bytes_written(&mut self) -> u64 {
        self.all().map(|file| file.bytes_written()).sum()
    }

    fn all(&mut self) -> impl Iterator<Item = &mut StreamFile> {
        let calls = self.calls.iter_mut().flat_map(|calls| [&mut calls.construct, calls.stacks.file()]);
        calls.chain([self.records.file()])
    }
}

/// Shows what was written to a file, if need be in room that was kept for it.
fn commit(file: &mut StreamFile, mut reserve: Option<&mut Reserve>) -> Result<(), WriteError> {
    loop {
        let Err(error) = file.try_commit() else { return Ok(()) };
        let error = WriteError::new(file.path(), &error);
        if !reserve.as_mut().is_some_and(|reserve| reserve.make_room(&error)) {
            file.give_up();
            return Err(error);
        }
    }
}
