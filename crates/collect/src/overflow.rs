//! Task `overflow_check`: records that wait until their tensors are saved, how many were kept, and when that is enough.

use msprobe_dump::config::OverflowNums;
use msprobe_dump::write::RecordId;

use crate::collector::{Finished, State};
use crate::fragment::{Body, Nothing, Saved};
use crate::modules::ModuleId;
use crate::notices::{GivenHealth, Notice};

/// A record that overflowed, while its tensors are being saved. It has its place in the file.
#[derive(Debug)]
pub(crate) enum Overflowing {
    /// Of a call.
    Call(RecordId, Body),
    /// Of the gradients of a module's parameters.
    Gradients(ModuleId),
}

impl State {
    /// A call overflowed: its tensors are to be saved.
    pub(crate) fn begin_overflow(&mut self, name: &str, body: Body, given: GivenHealth) -> Finished {
        let Some(step) = &self.step else { return Finished::Done };
        let id = step.sink.open_record(name);
        self.begin_overflowing(name, Overflowing::Call(id, body), given)
    }

    /// A call overflowed whose tensors nobody can save any more: its record has no files.
    pub(crate) fn tell_overflow(&mut self, name: &str, body: &Body, given: GivenHealth) -> Finished {
        let Some(step) = &self.step else { return Finished::Done };
        let id = step.sink.open_record(name);
        step.sink.close(id, name, body.render(&Nothing));
        self.overflows.add(name, given, &mut self.notices);
        Finished::Tell
    }

    pub(crate) fn begin_overflowing(
        &mut self,
        name: &str,
        record: Overflowing,
        given: GivenHealth,
    ) -> Finished {
        self.finish_overflow(name);
        self.overflowing.insert(name.to_owned(), record);
        self.overflows.add(name, given, &mut self.notices);
        Finished::SaveTensors
    }

    /// Writes an overflowing record with the names of the files that were saved.
    pub(crate) fn finish_overflow(&mut self, name: &str) {
        let Some(record) = self.overflowing.remove(name) else { return };
        let saved = Saved(&self.overflow_files);
        if let Some(step) = &self.step {
            match record {
                Overflowing::Call(id, body) => step.sink.close(id, name, body.render(&saved)),
                Overflowing::Gradients(module) => {
                    if let Some(record) = self.gradients.get_mut(&module)
                        && let (Some(id), room) = record.place()
                    {
                        step.sink.set(id, name, record.saved(&saved), room);
                    }
                }
            }
        }
        if self.overflowing.is_empty() {
            self.overflow_files.clear();
        }
    }

    /// Writes those whose tensors nobody saved.
    pub(crate) fn finish_overflows(&mut self) {
        let names: Vec<String> = self.overflowing.keys().cloned().collect();
        for name in names {
            self.finish_overflow(&name);
        }
    }
}

/// Counts overflowing records over the whole run.
#[derive(Debug)]
pub(crate) struct Overflows {
    limit: OverflowNums,
    count: u64,
}

impl Overflows {
    pub(crate) fn new(limit: OverflowNums) -> Overflows {
        Overflows { limit, count: 0 }
    }

    /// Another record overflowed.
    pub(crate) fn add(&mut self, name: &str, given: GivenHealth, notices: &mut Vec<Notice>) {
        self.count += 1;
        if self.is_enough() {
            notices.push(Notice::OverflowsReached { count: self.count });
        }
        notices.push(Notice::Overflow { name: name.to_owned(), given });
    }

    /// Whether collection is over.
    pub(crate) fn is_enough(&self) -> bool {
        match self.limit {
            OverflowNums::Unlimited => false,
            OverflowNums::Times(limit) => self.count >= limit.get(),
        }
    }
}
