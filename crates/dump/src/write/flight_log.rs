//! The last steps or records of a run, in memory: what the flight recorder holds.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use msprobe_tensor::memory;

use super::records::Change;
use super::step_log::{HeldPlace, StepLog};
use super::writer::RecordId;

/// How much is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldLimits {
    /// Steps, the one that runs included. Where there are several ranks one more is held, because another rank's
    /// trouble may be noticed a step late.
    pub steps: usize,
    /// Records over all steps.
    pub records: usize,
    /// Bytes of text.
    pub bytes: usize,
}

/// What is held now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holding {
    /// Steps, the one that runs included.
    pub steps: usize,
    /// Records over all steps.
    pub records: usize,
    /// Bytes of text, about.
    pub bytes: usize,
}

/// Steps in memory, the newest last. Shared between threads by reference.
#[derive(Debug)]
pub struct FlightLog(Mutex<Ring>);

#[derive(Debug)]
struct Ring {
    limits: HeldLimits,
    steps: VecDeque<StepLog>,
    /// Whether the last of them is still running.
    is_open: bool,
    /// Records in the steps that ended, and their bytes.
    ended_records: usize,
    ended_bytes: usize,
    /// Records had to go because of their size; whoever asks is told once.
    is_too_much: bool,
}

impl FlightLog {
    /// Holds nothing yet.
    pub fn new(limits: HeldLimits) -> FlightLog {
        FlightLog(Mutex::new(Ring {
            limits,
            steps: VecDeque::new(),
            is_open: false,
            ended_records: 0,
            ended_bytes: 0,
            is_too_much: false,
        }))
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A step begins, the oldest one goes. A step that began before in the same place counts no more.
    pub fn begin_step(&self, place: HeldPlace) {
        let mut ring = self.ring();
        ring.end_step();
        let limits = ring.limits;
        let steps = limits.steps.max(1).saturating_add(usize::from(place.rank.0.is_some()));
        ring.keep(|step| *step.place() != place);
        if limits.records < usize::MAX {
            // They would never be counted out.
            ring.keep(|step| step.records() > 0);
        }
        while ring.steps.len() >= steps {
            ring.drop_step();
        }
        ring.steps.push_back(StepLog::new(place));
        ring.is_open = true;
    }

    /// The step is over.
    pub fn end_step(&self) {
        self.ring().end_step();
    }

    /// What is held.
    pub fn holding(&self) -> Holding {
        let ring = self.ring();
        Holding { steps: ring.steps.len(), records: ring.records(), bytes: ring.bytes() }
    }

    /// Whether records had to go because of their size, which is told once.
    pub fn take_too_much(&self) -> bool {
        std::mem::take(&mut self.ring().is_too_much)
    }

    /// Takes steps out, oldest first: those that `wanted` says yes to, by their place and how many are newer. The
    /// flag says whether the last of them is the one that runs; it runs on elsewhere.
    pub fn take(&self, wanted: impl Fn(&HeldPlace, usize) -> bool) -> (Vec<StepLog>, bool) {
        let mut ring = self.ring();
        let was_open = ring.is_open;
        ring.end_step();
        let count = ring.steps.len();
        let (mut taken, mut left) = (Vec::new(), VecDeque::new());
        let mut has_last = false;
        for (index, step) in std::mem::take(&mut ring.steps).into_iter().enumerate() {
            let newer = count - 1 - index;
            if wanted(step.place(), newer) {
                has_last |= newer == 0;
                taken.push(step);
            } else {
                left.push_back(step);
            }
        }
        ring.steps = left;
        if was_open && !has_last {
            ring.is_open = true;
        }
        ring.count_again();
        (taken, was_open && has_last)
    }

    /// Forgets everything; the step that runs goes on being held.
    pub fn clear(&self) {
        let _ = self.take(|_, newer| newer > 0);
    }

    /// Drops records as if this were the newest one, so that those right before it stay.
    pub fn make_newest(&self, id: RecordId) {
        let mut ring = self.ring();
        let newer = ring.steps.back().map_or(0, |step| step.newer_than(id.0));
        let limit = ring.limits.records.saturating_add(newer);
        ring.drop_records(limit, true);
    }

    pub(super) fn open_record(&self, name: &str) -> RecordId {
        let mut ring = self.ring();
        if memory::is_short() {
            ring.forget();
        }
        let Some(step) = ring.running() else { return RecordId(u64::MAX) };
        let id = step.open(name);
        ring.bound();
        RecordId(id)
    }

    /// Changes a record of the step that runs. False if it was dropped.
    pub(super) fn change(&self, id: RecordId, change: Change) -> bool {
        let mut ring = self.ring();
        let Some(step) = ring.running() else { return true };
        if !step.holds(id.0) {
            return false;
        }
        step.change(id.0, change);
        ring.bound();
        true
    }

    pub(super) fn holds(&self, id: RecordId) -> bool {
        self.ring().running().is_none_or(|step| step.holds(id.0))
    }

    pub(super) fn wait_for(&self, id: RecordId) {
        if let Some(step) = self.ring().running() {
            step.wait_for(id.0);
        }
    }

    pub(super) fn stack_name(&self, stack: usize, name: &str) {
        if let Some(step) = self.ring().running() {
            step.stack_name(stack, name);
        }
    }

    pub(super) fn construct(&self, name: &str, parent: Option<&str>) {
        if let Some(step) = self.ring().running() {
            step.construct(name, parent);
        }
    }
}

impl Ring {
    /// Nothing is held any more: the memory is needed elsewhere.
    fn forget(&mut self) {
        (self.steps, self.is_open) = (VecDeque::new(), false);
        self.count_again();
    }

    fn running(&mut self) -> Option<&mut StepLog> {
        if self.is_open { self.steps.back_mut() } else { None }
    }

    fn end_step(&mut self) {
        if std::mem::take(&mut self.is_open)
            && let Some(step) = self.steps.back()
        {
            self.ended_records += step.records();
            self.ended_bytes += step.bytes();
        }
    }

    fn records(&self) -> usize {
        let running = if self.is_open { self.steps.back() } else { None };
        self.ended_records + running.map_or(0, StepLog::records)
    }

    fn bytes(&self) -> usize {
        let running = if self.is_open { self.steps.back() } else { None };
        self.ended_bytes + running.map_or(0, StepLog::bytes)
    }

    fn keep(&mut self, stays: impl Fn(&StepLog) -> bool) {
        self.steps.retain(stays);
        self.count_again();
    }

    fn count_again(&mut self) {
        let ended = self.steps.len() - usize::from(self.is_open && !self.steps.is_empty());
        self.ended_records = self.steps.iter().take(ended).map(StepLog::records).sum();
        self.ended_bytes = self.steps.iter().take(ended).map(StepLog::bytes).sum();
    }

    fn drop_step(&mut self) {
        self.steps.pop_front();
        self.count_again();
    }

    /// Drops what is too much.
    fn bound(&mut self) {
        if self.records() > self.limits.records {
            self.drop_records(self.limits.records, false);
        }
        if self.bytes() <= self.limits.bytes {
            return;
        }
        self.is_too_much = true;
        while self.bytes() > self.limits.bytes {
            if !self.drop_record(true) {
                break;
            }
        }
        if self.bytes() > self.limits.bytes
            && let Some(step) = self.running()
        {
            step.drop_lines();
        }
    }

    fn drop_records(&mut self, limit: usize, even_waiting: bool) {
        while self.records() > limit && self.drop_record(even_waiting) {}
    }

    /// Drops the oldest record, and its step if it was the last one of a step that ended.
    fn drop_record(&mut self, even_waiting: bool) -> bool {
        loop {
            let is_running = self.is_open && self.steps.len() == 1;
            let Some(step) = self.steps.front_mut() else { return false };
            let bytes = step.bytes();
            // Nobody gives a body to the record of a step that ended.
            let dropped = step.drop_oldest(even_waiting || !is_running);
            if is_running {
                return dropped;
            }
            if dropped {
                self.ended_records -= 1;
                self.ended_bytes = self.ended_bytes + step.bytes() - bytes;
            }
            if step.records() == 0 {
                self.drop_step();
            }
            if dropped {
                return true;
            }
            if self.steps.is_empty() {
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests;
