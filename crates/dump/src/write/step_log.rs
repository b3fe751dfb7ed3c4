//! A step that is held in memory: what a [`StepWriter`] would have been told, to be told later or never.
//!
//! The oldest records can be dropped one by one. Lines of `stack.json` and `construct.json` go with them, except those
//! that stand above a record that stays: a dump that begins in the middle of a step still has a whole tree.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;

use super::layout::{LayoutError, StepDir};
use super::queue::{Entry, State};
use super::records::{Change, Header};
use super::writer::{Files, RecordId, StepWriter};
use super::{Earlier, WriteError};
use crate::names::{Rank, Step};

/// What a line costs beyond its text.
const LINE_BYTES: usize = 64;
/// From this many lines above the records on, those that nothing refers to are looked for.
const MANY_ANCESTORS: usize = 16 << 10;

/// Where a step belongs on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldPlace {
    /// The directory of the whole dump.
    pub dump_path: PathBuf,
    /// The step.
    pub step: Step,
    /// The rank of this process.
    pub rank: Rank,
}

/// Why a held step could not be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeldError {
    /// Its directory cannot be.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Its files cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// A held step that is on disk now.
#[derive(Debug)]
pub struct WrittenStep {
    /// Takes what the step still has to say.
    pub writer: StepWriter,
    /// Records that were dropped before: so much lower is the number of a record in its file.
    pub skipped: u64,
    /// What an earlier run had left there.
    pub earlier: Option<Earlier>,
    /// The directory.
    pub dir: PathBuf,
}

/// A name of the tree of calls.
#[derive(Debug)]
struct Line {
    /// How many records had been opened before.
    after: u64,
    name: Box<str>,
    parent: Option<Box<str>>,
}

/// A name of a call stack.
#[derive(Debug)]
struct StackName {
    after: u64,
    stack: usize,
    name: Box<str>,
}

/// A step in memory.
#[derive(Debug)]
pub struct StepLog {
    place: HeldPlace,
    records: VecDeque<Entry>,
    /// The number of the record in front.
    first: u64,
    /// Records whose body an accelerator still owes: none of them is dropped.
    waiting: HashSet<u64>,
    stacks: VecDeque<StackName>,
    construct: VecDeque<Line>,
    /// Lines that were dropped but may stand above others, with their parents.
    ancestors: HashMap<Box<str>, Option<Box<str>>>,
    many_ancestors: usize,
    bytes: usize,
}

impl StepLog {
    pub(super) fn new(place: HeldPlace) -> StepLog {
        StepLog {
            place,
            records: VecDeque::new(),
            first: 0,
            waiting: HashSet::new(),
            stacks: VecDeque::new(),
            construct: VecDeque::new(),
            ancestors: HashMap::new(),
            many_ancestors: MANY_ANCESTORS,
            bytes: 0,
        }
    }

    /// Where it belongs.
    pub fn place(&self) -> &HeldPlace {
        &self.place
    }

    /// Records that are held.
    pub fn records(&self) -> usize {
        self.records.len()
    }

    /// Memory that is held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn next(&self) -> u64 {
        self.first + self.records.len() as u64
    }

    pub(super) fn open(&mut self, name: &str) -> u64 {
        let id = self.next();
        let entry = Entry { name: name.to_owned(), body: None, room: 0, state: State::Open };
        self.bytes += entry.bytes();
        self.records.push_back(entry);
        id
    }

    /// How many records were opened after this one.
    pub(super) fn newer_than(&self, id: u64) -> usize {
        usize::try_from(self.next().saturating_sub(id.saturating_add(1))).unwrap_or(usize::MAX)
    }

    /// Whether a record is still here.
    pub(super) fn holds(&self, id: u64) -> bool {
        id >= self.first
    }

    pub(super) fn change(&mut self, id: u64, change: Change) {
        self.waiting.remove(&id);
        let index = id.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
        let Some(entry) = index.and_then(|index| self.records.get_mut(index)) else { return };
        let before = entry.bytes();
        entry.apply(change);
        self.bytes = self.bytes + entry.bytes() - before;
    }

    pub(super) fn wait_for(&mut self, id: u64) {
        self.waiting.insert(id);
    }

    pub(super) fn stack_name(&mut self, stack: usize, name: &str) {
        self.bytes += LINE_BYTES + name.len();
        self.stacks.push_back(StackName { after: self.next(), stack, name: name.into() });
    }

    pub(super) fn construct(&mut self, name: &str, parent: Option<&str>) {
        let line = Line { after: self.next(), name: name.into(), parent: parent.map(Into::into) };
        self.bytes += line_bytes(&line.name, line.parent.as_deref());
        self.construct.push_back(line);
    }

    /// Drops the oldest record. False if there is none, or it waits for its body and `even_waiting` is not set.
    pub(super) fn drop_oldest(&mut self, even_waiting: bool) -> bool {
        let id = self.first;
        if !even_waiting && self.waiting.contains(&id) {
            return false;
        }
        let Some(entry) = self.records.pop_front() else { return false };
        self.waiting.remove(&id);
        self.bytes -= entry.bytes();
        self.first += 1;
        // What belongs to a call is said just before its record is opened, or just after.
        while self.stacks.front().is_some_and(|stack| stack.after <= id) {
            self.drop_stack(0);
        }
        let own = self.stacks.iter().take_while(|stack| stack.after == id + 1);
        if let Some(at) = own.into_iter().position(|stack| *stack.name == *entry.name) {
            self.drop_stack(at);
        }
        while self.construct.front().is_some_and(|line| line.after <= id) {
            self.drop_line(0);
        }
        let own = self.construct.iter().take_while(|line| line.after == id + 1);
        if let Some(at) = own.into_iter().position(|line| *line.name == *entry.name) {
            self.drop_line(at);
        }
        true
    }

    /// Drops everything that is not a record.
    pub(super) fn drop_lines(&mut self) {
        self.stacks.clear();
        self.construct.clear();
        self.ancestors.clear();
        self.bytes = self.records.iter().map(Entry::bytes).sum();
    }

    fn drop_stack(&mut self, at: usize) {
        if let Some(stack) = self.stacks.remove(at) {
            self.bytes -= LINE_BYTES + stack.name.len();
        }
    }

    fn drop_line(&mut self, at: usize) {
        let Some(line) = self.construct.remove(at) else { return };
        let bytes = line_bytes(&line.name, line.parent.as_deref());
        self.bytes -= bytes;
        // Functions stand above nothing.
        let may_be_parent = line.name.starts_with("Module.") || !line.name.contains('.');
        if may_be_parent && !self.ancestors.contains_key(&line.name) {
            self.bytes += bytes;
            self.ancestors.insert(line.name, line.parent);
            if self.ancestors.len() >= self.many_ancestors {
                self.prune();
            }
        }
    }

    /// Forgets the ancestors of nothing.
    fn prune(&mut self) {
        let mut kept: HashSet<Box<str>> = HashSet::new();
        let starts = self.construct.iter().filter_map(|line| line.parent.as_deref());
        for start in starts.chain(self.records.iter().map(|entry| entry.name.as_str())) {
            let mut at = Some(start);
            while let Some(name) = at
                && let Some(parent) = self.ancestors.get(name)
                && kept.insert(name.into())
            {
                at = parent.as_deref();
            }
        }
        let bytes = &mut self.bytes;
        self.ancestors.retain(|name, parent| {
            let stays = kept.contains(name);
            if !stays {
                *bytes -= line_bytes(name, parent.as_deref());
            }
            stays
        });
        self.many_ancestors = MANY_ANCESTORS.max(2 * self.ancestors.len());
    }

    /// Creates the directory and files of the step, and tells them everything. `frames` are those of a stack.
    pub fn write(
        self,
        header: &Header,
        frames: impl Fn(usize) -> Vec<String>,
    ) -> Result<WrittenStep, HeldError> {
        let dir = StepDir::create(&self.place.dump_path, self.place.step, self.place.rank)?;
        let writer = StepWriter::create(dir.path(), header, Files::Dump)?;
        let skipped = self.first;
        self.replay(&writer, frames);
        Ok(WrittenStep { writer, skipped, earlier: dir.earlier, dir: dir.path().to_owned() })
    }

    fn replay(self, writer: &StepWriter, frames: impl Fn(usize) -> Vec<String>) {
        for stack in &self.stacks {
            writer.stack_name(stack.stack, &stack.name, || frames(stack.stack));
        }
        self.replay_construct(writer);
        for entry in self.records {
            let id = writer.open_record(&entry.name);
            match (entry.state, entry.body) {
                (State::Gone, _) => writer.remove(id),
                (State::Closed, body) => writer.change(id, Change::Close { body: body.unwrap_or_default() }),
                (State::Open, Some(body)) => writer.change(id, Change::Set { body, room: entry.room }),
                (State::Open, None) => {}
            }
        }
    }

    fn replay_construct(&self, writer: &StepWriter) {
        if self.ancestors.is_empty() {
            for line in &self.construct {
                writer.construct(&line.name, line.parent.as_deref());
            }
            return;
        }
        let mut told: HashSet<&str> = self.construct.iter().map(|line| &*line.name).collect();
        for line in &self.construct {
            self.replay_above(line.parent.as_deref(), &mut told, writer);
            writer.construct(&line.name, line.parent.as_deref());
        }
        // A module is in the tree since it began, its record comes when it ends.
        for entry in &self.records {
            self.replay_above(Some(&entry.name), &mut told, writer);
        }
    }

    /// Tells a dropped line that is needed after all, those above it first.
    fn replay_above<'a>(&'a self, name: Option<&'a str>, told: &mut HashSet<&'a str>, writer: &StepWriter) {
        let mut chain = Vec::new();
        let mut at = name;
        while let Some(name) = at
            && let Some((name, parent)) = self.ancestors.get_key_value(name)
            && told.insert(name)
        {
            chain.push((name, parent));
            at = parent.as_deref();
        }
        for (name, parent) in chain.into_iter().rev() {
            writer.construct(name, parent.as_deref());
        }
    }
}

impl WrittenStep {
    /// The number a record has in the files, from the one it got while the step was held. `None`: it was dropped.
    pub(super) fn number(skipped: u64, id: RecordId) -> Option<RecordId> {
        id.0.checked_sub(skipped).map(RecordId)
    }
}

fn line_bytes(name: &str, parent: Option<&str>) -> usize {
    LINE_BYTES + name.len() + parent.map_or(0, str::len)
}
