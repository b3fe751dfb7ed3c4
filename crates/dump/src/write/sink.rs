//! Where the records of a step go: into its files, or into memory, from where they may get into files later.

use std::sync::Arc;

use super::body::RecordBody;
use super::error::WriteError;
use super::flight_log::FlightLog;
use super::records::Change;
use super::step_log::WrittenStep;
use super::writer::{RecordId, StepWriter};

/// Takes what a step has to say.
#[derive(Debug)]
pub enum StepSink {
    /// The files of the step.
    Files {
        /// Writes them.
        writer: StepWriter,
        /// Records that were dropped while the step was in memory.
        skipped: u64,
    },
    /// Memory.
    Memory(Arc<FlightLog>),
}

impl From<StepWriter> for StepSink {
    fn from(writer: StepWriter) -> StepSink {
        StepSink::Files { writer, skipped: 0 }
    }
}

impl StepSink {
    /// Whether nothing of the step is on disk.
    pub fn is_memory(&self) -> bool {
        matches!(self, StepSink::Memory(_))
    }

    /// Fixes the place of a record, which gets its body later.
    pub fn open_record(&self, name: &str) -> RecordId {
        match self {
            StepSink::Files { writer, skipped } => {
                RecordId(writer.open_record(name).0.saturating_add(*skipped))
            }
            StepSink::Memory(log) => log.open_record(name),
        }
    }

    /// Gives a body, encoded for depth 2, that may change. `capacity_bytes` are reserved in the file, the body
    /// included. A record that was dropped in the meantime begins anew: hence its name, and the number it has now.
    pub fn set(&self, id: RecordId, name: &str, body: RecordBody, capacity_bytes: usize) -> RecordId {
        let id = self.kept_or_new(id, name);
        self.change(id, Change::Set { body, room: capacity_bytes });
        id
    }

    /// Gives the final body, encoded for depth 2. A record that was dropped in the meantime begins anew.
    pub fn close(&self, id: RecordId, name: &str, body: RecordBody) {
        let id = self.kept_or_new(id, name);
        self.change(id, Change::Close { body });
    }

    /// Adds a record that is final at once.
    pub fn append(&self, name: &str, body: RecordBody) {
        let id = self.open_record(name);
        self.change(id, Change::Close { body });
    }

    /// Takes back a record that was not closed.
    pub fn remove(&self, id: RecordId) {
        self.change(id, Change::Remove);
    }

    /// Gives up on a record: its last body is final, without one it vanishes.
    pub fn abandon(&self, id: RecordId) {
        self.change(id, Change::Abandon);
    }

    /// The body of a record comes from an accelerator when the step is flushed; it is not dropped before that.
    pub fn wait_for(&self, id: RecordId) {
        if let StepSink::Memory(log) = self {
            log.wait_for(id);
        }
    }

    /// Adds a name to the group of a call stack; see [`StepWriter::stack_name`].
    pub fn stack_name(&self, stack: usize, name: &str, frames: impl FnOnce() -> Vec<String>) {
        match self {
            StepSink::Files { writer, .. } => writer.stack_name(stack, name, frames),
            StepSink::Memory(log) => log.stack_name(stack, name),
        }
    }

    /// Adds a name to the tree of calls. The first parent of a name counts.
    pub fn construct(&self, name: &str, parent: Option<&str>) {
        match self {
            StepSink::Files { writer, .. } => writer.construct(name, parent),
            StepSink::Memory(log) => log.construct(name, parent),
        }
    }

    /// Waits until everything so far is visible on disk, if it belongs there.
    pub fn flush(&self) -> Result<(), WriteError> {
        match self {
            StepSink::Files { writer, .. } => writer.flush(),
            StepSink::Memory(_) => Ok(()),
        }
    }

    /// The first error of writing; after it nothing is written any more.
    pub fn failure(&self) -> Option<String> {
        match self {
            StepSink::Files { writer, .. } => writer.failure(),
            StepSink::Memory(_) => None,
        }
    }

    /// Whether a record was not dropped.
    pub fn holds(&self, id: RecordId) -> bool {
        match self {
            StepSink::Files { skipped, .. } => id.0 >= *skipped,
            StepSink::Memory(log) => log.holds(id),
        }
    }

    fn kept_or_new(&self, id: RecordId, name: &str) -> RecordId {
        if self.holds(id) { id } else { self.open_record(name) }
    }

    fn change(&self, id: RecordId, change: Change) {
        match self {
            StepSink::Files { writer, skipped } => {
                if let Some(id) = WrittenStep::number(*skipped, id) {
                    writer.change(id, change);
                }
            }
            StepSink::Memory(log) => {
                log.change(id, change);
            }
        }
    }
}
