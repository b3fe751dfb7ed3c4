//! What a step has to say and the disk does not know yet.
//!
//! Records wait in the order in which they were opened. One without a body holds back those behind it, so there is
//! a part in front that is ready, and a part that is held.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use super::groups::GroupNews;
use super::json::push_string;
use super::records::Change;

/// What a record costs beyond its text.
const ENTRY_BYTES: usize = 96;

/// A record that waits.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) body: Option<String>,
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
        ENTRY_BYTES + self.name.len() + self.body.as_ref().map_or(0, String::len)
    }

    fn is_ready(&self) -> bool {
        self.body.is_some() || self.state == State::Gone
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
        if self.held_bodies > 0 { self.held_bytes } else { 0 }
    }

    /// Whether something could be written now.
    pub(super) fn has_ready(&self) -> bool {
        self.ready > 0 || self.loose_bytes > 0
    }

    /// The record that holds back others, if there is one.
    pub(super) fn blocker(&self) -> Option<u64> {
        (self.held_bodies > 0).then(|| self.first + self.ready as u64)
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

    /// Takes everything up to the last record that has a body, with those before it that have none.
    pub(super) fn take_forced(&mut self) -> Batch {
        let last = self.records.iter().rposition(|entry| entry.body.is_some());
        self.take(last.map_or(0, |last| last + 1).max(self.ready))
    }

    /// Takes everything for good: each record keeps the body it has.
    pub(super) fn take_last(&mut self) -> Batch {
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
    fn advance(&mut self) {
        while let Some(entry) = self.records.get(self.ready)
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(body: &str) -> Change {
        Change::Set { body: body.into(), room: 0 }
    }

    fn bytes(queue: &Queue) -> usize {
        queue.ready_bytes + queue.held_bytes + queue.loose_bytes
    }

    fn names(batch: &Batch) -> Vec<&str> {
        batch.records.iter().map(|entry| entry.name.as_str()).collect()
    }

    #[test]
    fn one_without_a_body_holds_back_the_others() {
        let mut queue = Queue::default();
        let (a, b, c) = (queue.open("a"), queue.open("b"), queue.open("c"));
        queue.change(b, set("1"));
        assert_eq!((queue.has_ready(), queue.blocker()), (false, Some(a)));
        assert!(queue.take_ready(usize::MAX).records.is_empty());
        queue.change(a, Change::Abandon);
        assert_eq!((queue.has_ready(), queue.blocker(), queue.held_bytes()), (true, None, 0));
        assert_eq!(names(&queue.take_ready(usize::MAX)), ["a", "b"]);
        assert_eq!(queue.open("d"), 3);
        queue.change(3, Change::Close { body: "2".into() });
        assert_eq!(queue.blocker(), Some(c));
        assert_eq!(names(&queue.take_forced()), ["c", "d"]);
        queue.open("e");
        assert!(queue.take_forced().records.is_empty());
        assert_eq!(queue.take_last().records[0].state, State::Gone);
        assert_eq!(bytes(&queue), 0);
    }

    #[test]
    fn changes_of_written_records_are_joined() {
        let mut queue = Queue::default();
        for id in 0..3 {
            queue.open("x");
            queue.change(id, set("1"));
        }
        queue.take_ready(usize::MAX);
        queue.change(0, set("2"));
        queue.change(0, Change::Abandon);
        queue.change(0, set("3"));
        queue.change(1, set("long"));
        queue.change(1, Change::Remove);
        queue.change(2, set("2"));
        queue.change(2, set("3"));
        let batch = queue.take_ready(usize::MAX);
        assert!(matches!(&batch.changes[&0], Change::Close { body } if body == "2"));
        assert!(matches!(&batch.changes[&1], Change::Remove));
        assert!(matches!(&batch.changes[&2], Change::Set { body, .. } if body == "3"));
        assert_eq!((bytes(&queue), queue.has_ready()), (0, false));
    }

    proptest! {
        /// Records come out once and in order, and the sums agree with what is there.
        #[test]
        fn nothing_is_lost_or_counted_wrong(
            steps in prop::collection::vec((0u8..9, any::<prop::sample::Index>(), 0usize..50), 1..80),
        ) {
            let mut queue = Queue::default();
            let (mut opened, mut taken, mut out) = (0u64, 0u64, 0);
            for (what, pick, size) in steps {
                let id = if opened > 0 { pick.index(opened as usize) as u64 } else { 0 };
                let body = "x".repeat(size);
                let batch = match what {
                    0..=2 => {
                        prop_assert_eq!(queue.open("name"), opened);
                        opened += 1;
                        continue;
                    }
                    3 => { queue.change(id, Change::Set { body, room: 9 }); continue }
                    4 => { queue.change(id, Change::Close { body }); continue }
                    5 => { queue.change(id, Change::Remove); continue }
                    6 => { queue.change(id, Change::Abandon); continue }
                    7 => queue.take_ready(size * 20),
                    _ => queue.take_forced(),
                };
                prop_assert_eq!(batch.first, taken);
                taken += batch.records.len() as u64;
                out += batch.bytes;
                queue.records.make_contiguous();
                let (ready, held) = queue.records.as_slices().0.split_at(queue.ready);
                prop_assert_eq!(queue.ready_bytes, ready.iter().map(Entry::bytes).sum::<usize>());
                prop_assert_eq!(queue.held_bytes, held.iter().map(Entry::bytes).sum::<usize>());
                prop_assert_eq!(queue.held_bodies, held.iter().filter(|entry| entry.body.is_some()).count());
                prop_assert!(ready.iter().all(Entry::is_ready));
                prop_assert!(held.first().is_none_or(|entry| !entry.is_ready()));
                prop_assert_eq!(queue.loose_bytes, 0);
            }
            out += queue.take_last().bytes;
            prop_assert_eq!(bytes(&queue), 0);
            prop_assert!(out as u64 >= opened * ENTRY_BYTES as u64);
        }
    }
}
