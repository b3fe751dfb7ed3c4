//! What a step has to say and the disk does not know yet.
//!
//! Records wait in the order in which they were opened. One without a body holds back those behind it, and so does one
//! that names a tensor file that is still being written: there is a part in front that is ready, and a part that is
//! held. A new body for a record that has one waits for its files aside, and holds nobody back.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use super::body::RecordBody;
use super::groups::GroupNews;
use super::json::push_string;
use super::records::Change;
use super::saved_file::SavedFile;

/// What a record costs beyond its text.
const ENTRY_BYTES: usize = 96;

/// A record that waits.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) body: Option<RecordBody>,
    pub(super) room: usize,
    pub(super) state: State,
}

/// How far a waiting record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Open,
    Closed,
    /// Never to be written.
    Gone,
}

impl Entry {
    pub(super) fn bytes(&self) -> usize {
        ENTRY_BYTES + self.name.len() + self.body.as_ref().map_or(0, RecordBody::bytes)
    }

    fn is_ready(&mut self) -> bool {
        self.state == State::Gone || self.body.as_mut().is_some_and(|body| body.unsettled().is_none())
    }

    /// The first file in its body whose fate is not known.
    fn unsettled(&mut self) -> Option<&SavedFile> {
        self.body.as_mut()?.unsettled()
    }

    pub(super) fn apply(&mut self, change: Change) {
        if self.state != State::Open {
            return;
        }
        match change {
            Change::Set { body, room } => (self.body, self.room) = (Some(body), room),
            Change::Close { body } => (self.body, self.state) = (Some(body), State::Closed),
            Change::Abandon if self.body.is_some() => self.state = State::Closed,
            Change::Remove | Change::Abandon => (self.body, self.state) = (None, State::Gone),
        }
    }
}

/// What is written together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// The number of the first record.
    pub(super) first: u64,
    pub(super) records: Vec<Entry>,
    /// Of records written before.
    pub(super) changes: BTreeMap<u64, Change>,
    pub(super) groups: GroupNews,
    pub(super) construct: String,
    /// Memory all this holds.
    pub(super) bytes: usize,
}

/// What waits.
#[derive(Debug, Default)]
pub(super) struct Queue {
    records: VecDeque<Entry>,
    /// The number of the record in front.
    first: u64,
    /// Records in front that can be written.
    ready: usize,
    ready_bytes: usize,
    held_bytes: usize,
    /// Records with a body that are held.
    held_bodies: usize,
    changes: BTreeMap<u64, Change>,
    /// New bodies of records that have one, which name files that are still being written.
    waiting: BTreeMap<u64, Change>,
    waiting_bytes: usize,
    /// Stacks by the number their finder gave them, with the number of their group.
    stacks: HashMap<usize, usize>,
    groups: GroupNews,
    constructed: HashSet<Box<str>>,
    construct: String,
    /// Memory of everything that is not a waiting record.
    loose_bytes: usize,
}

impl Queue {
    /// Bytes that could be written now.
    pub(super) fn ready_bytes(&self) -> usize {
        self.ready_bytes + self.loose_bytes
    }

    /// Bytes that a record without a body holds back.
    pub(super) fn held_bytes(&self) -> usize {
        if self.blocker().is_some() { self.held_bytes } else { 0 }
    }

    /// All bytes but those of records that wait for a body with nothing behind: the thread can do nothing about them.
    pub(super) fn all_bytes(&self) -> usize {
        let held_bytes = if self.held_bodies > 0 { self.held_bytes } else { 0 };
        self.ready_bytes() + self.waiting_bytes + held_bytes
    }

    /// Whether something could be written now.
    pub(super) fn has_ready(&self) -> bool {
        self.ready > 0 || self.loose_bytes > 0
    }

    /// The record without a body that holds back others, if there is one.
    pub(super) fn blocker(&self) -> Option<u64> {
        let front = self.records.get(self.ready).filter(|_| self.held_bodies > 0)?;
        front.body.is_none().then(|| self.first + self.ready as u64)
    }

    /// The number of the next record.
    pub(super) fn end(&self) -> u64 {
        self.first + self.records.len() as u64
    }

    /// Looks which files are there by now, and what is ready because of that.
    pub(super) fn look(&mut self) {
        let mut settled = Vec::new();
        for (&id, change) in &mut self.waiting {
            if change.unsettled().is_none() {
                settled.push(id);
            }
        }
        for id in settled {
            if let Some(change) = self.take_waiting(id) {
                self.apply(id, change);
            }
        }
        self.advance();
    }

    /// A file that something waits for: a new body, or one of the records before `end`.
    pub(super) fn unsettled(&mut self, end: u64) -> Option<&SavedFile> {
        let count = usize::try_from(end.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let mut held = self.records.iter_mut().take(count).skip(self.ready);
        held.find_map(Entry::unsettled).or_else(|| self.waiting.values_mut().find_map(Change::unsettled))
    }

    /// A file that the first record that is held names, and one that a new body waits for.
    pub(super) fn next_unsettled(&mut self) -> [Option<&SavedFile>; 2] {
        let front = self.records.get_mut(self.ready).and_then(Entry::unsettled);
        [front, self.waiting.values_mut().find_map(Change::unsettled)]
    }

    /// Fixes the place of a record.
    pub(super) fn open(&mut self, name: &str) -> u64 {
        let entry = Entry { name: name.to_owned(), body: None, room: 0, state: State::Open };
        self.held_bytes += entry.bytes();
        self.records.push_back(entry);
        self.first + self.records.len() as u64 - 1
    }

    /// Changes a record, whether it waits or was written.
    pub(super) fn change(&mut self, id: u64, change: Change) {
        let waiting = self.take_waiting(id);
        let change = match (waiting, change) {
            (Some(closed @ Change::Close { .. }), _) => closed,
            (Some(Change::Set { body, .. }), Change::Abandon) => Change::Close { body },
            (Some(mut earlier @ Change::Set { .. }), change) => {
                if earlier.unsettled().is_none() {
                    self.apply(id, earlier);
                }
                change
            }
            (_, change) => change,
        };
        self.apply_or_wait(id, change);
    }

    fn apply_or_wait(&mut self, id: u64, mut change: Change) {
        // A record that has nothing to show holds its place and waits there.
        if self.has_shown(id) && change.unsettled().is_some() {
            self.waiting_bytes += change.bytes() + ENTRY_BYTES;
            self.waiting.insert(id, change);
        } else {
            self.apply(id, change);
        }
    }

    fn take_waiting(&mut self, id: u64) -> Option<Change> {
        let change = self.waiting.remove(&id)?;
        self.waiting_bytes -= change.bytes() + ENTRY_BYTES;
        Some(change)
    }

    /// Whether a record was written, or could be.
    fn has_shown(&mut self, id: u64) -> bool {
        let Some(index) = id.checked_sub(self.first) else { return true };
        usize::try_from(index)
            .ok()
            .and_then(|index| self.records.get_mut(index))
            .is_some_and(|entry| entry.body.is_some() && entry.is_ready())
    }

    fn apply(&mut self, id: u64, change: Change) {
        let Some(index) = id.checked_sub(self.first) else {
            self.change_written(id, change);
            return;
        };
        let index = index as usize;
        let Some(entry) = self.records.get_mut(index) else { return };
        let (bytes, body) = (entry.bytes(), entry.body.is_some());
        entry.apply(change);
        if index < self.ready {
            self.ready_bytes = self.ready_bytes + entry.bytes() - bytes;
        } else {
            self.held_bytes = self.held_bytes + entry.bytes() - bytes;
            self.held_bodies = self.held_bodies + usize::from(entry.body.is_some()) - usize::from(body);
        }
        if index == self.ready {
            self.advance();
        }
    }

    /// Adds a name to the group of a stack that is known. `None`: it is not.
    pub(super) fn add_to_stack(&mut self, stack: usize, name: &str) -> Option<()> {
        let group = *self.stacks.get(&stack)?;
        self.loose_bytes += self.groups.add(group, name, None);
        Some(())
    }

    /// Adds a stack with its first name; if it is known by now, the name only.
    pub(super) fn add_stack(&mut self, stack: usize, name: &str, frames: Vec<String>) {
        if self.add_to_stack(stack, name).is_none() {
            let group = self.stacks.len();
            self.stacks.insert(stack, group);
            self.loose_bytes += self.groups.add(group, name, Some(frames));
        }
    }

    /// Adds a line to the tree of calls, unless the name has one.
    pub(super) fn add_construct(&mut self, name: &str, parent: Option<&str>) {
        if self.constructed.contains(name) {
            return;
        }
        let before = self.construct.len();
        self.construct.push_str(if self.constructed.is_empty() { "\n " } else { ",\n " });
        push_string(&mut self.construct, name);
        self.construct.push_str(": ");
        match parent {
            Some(parent) => push_string(&mut self.construct, parent),
            None => self.construct.push_str("null"),
        }
        self.constructed.insert(name.into());
        self.loose_bytes += self.construct.len() - before;
    }

    /// Takes what is ready, records up to about `limit` bytes.
    pub(super) fn take_ready(&mut self, limit: usize) -> Batch {
        let mut bytes = 0;
        let fits = |entry: &&Entry| {
            let fits = bytes < limit;
            bytes += entry.bytes();
            fits
        };
        let count = self.records.iter().take(self.ready).take_while(fits).count();
        self.take(count)
    }

    /// Takes everything up to the last record that has a body, with those before it that have none, but nothing from
    /// the first record on whose files are still being written.
    pub(super) fn take_forced(&mut self) -> Batch {
        let last = self.records.iter().rposition(|entry| entry.body.is_some());
        let end = last.map_or(0, |last| last + 1).max(self.ready);
        let mut held = self.records.iter_mut().enumerate().take(end).skip(self.ready);
        let unsettled = held.find_map(|(at, entry)| entry.unsettled().map(|_| at));
        self.take(unsettled.unwrap_or(end))
    }

    /// Takes everything for good: each record keeps the body it has. All files must be settled.
    pub(super) fn take_last(&mut self) -> Batch {
        self.look();
        let mut batch = self.take(self.records.len());
        for entry in &mut batch.records {
            entry.apply(Change::Abandon);
        }
        batch
    }

    fn take(&mut self, count: usize) -> Batch {
        let mut batch = Batch {
            first: self.first,
            records: self.records.drain(..count).collect(),
            changes: std::mem::take(&mut self.changes),
            groups: std::mem::take(&mut self.groups),
            construct: std::mem::take(&mut self.construct),
            bytes: std::mem::take(&mut self.loose_bytes),
        };
        self.first += count as u64;
        for (index, entry) in batch.records.iter().enumerate() {
            let bytes = entry.bytes();
            batch.bytes += bytes;
            if index < self.ready {
                self.ready_bytes -= bytes;
            } else {
                self.held_bytes -= bytes;
                self.held_bodies -= usize::from(entry.body.is_some());
            }
        }
        self.ready = self.ready.saturating_sub(count);
        self.advance();
        self.records.shrink_to(4096);
        batch
    }

    /// Moves the border between ready and held as far as it goes.
    pub(super) fn advance(&mut self) {
        while let Some(entry) = self.records.get_mut(self.ready)
            && entry.is_ready()
        {
            self.held_bytes -= entry.bytes();
            self.ready_bytes += entry.bytes();
            self.held_bodies -= usize::from(entry.body.is_some());
            self.ready += 1;
        }
    }

    /// Only the last change of a record counts, and none after the one that closed it.
    fn change_written(&mut self, id: u64, change: Change) {
        let earlier = self.changes.remove(&id);
        if let Some(earlier) = &earlier {
            self.loose_bytes -= earlier.bytes() + ENTRY_BYTES;
        }
        let change = match (earlier, change) {
            (Some(closed @ (Change::Close { .. } | Change::Remove | Change::Abandon)), _) => closed,
            (Some(Change::Set { body, .. }), Change::Abandon) => Change::Close { body },
            (_, change) => change,
        };
        self.loose_bytes += change.bytes() + ENTRY_BYTES;
        self.changes.insert(id, change);
    }
}

#[cfg(test)]
mod tests;
