//! The JSON files of one step's directory, written by a thread of their own.
//!
//! Whoever collects hands over text and goes on; it waits only when the disk is far behind. What was handed over is
//! visible in the files after [`FLUSH_INTERVAL`], or sooner when there is much of it, and the files are complete
//! documents at every instant (see [`StreamFile`]): a run that is killed loses what it did in that time, and
//! nothing else.
//!
//! Records stand in the order in which they were opened. One that has no body yet holds back those behind it for
//! [`HOLD_TIME`] or [`HOLD_BYTES`]; then it is written as `{}` with room, and completed later. A body that
//! outgrows its room is written again at the end under the same name; readers of JSON take the last value of a
//! repeated key, and those that keep the order of keys leave it where it first stood.
//!
//! A record that names tensor files is not written before it is known what became of them; those behind it wait. That
//! cannot last for ever: files are written by threads that wait for nobody. What waits for files counts in
//! [`QUEUE_BYTES`] like everything else.
//!
//! In a forked child the handle does nothing: the thread stayed with the parent, and so did the files.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use msprobe_tensor::memory;

use super::error::WriteError;
use super::files::StepFiles;
use super::queue::{Batch, Queue};
use super::records::{Change, Header};
use super::reserve::Reserve;
use super::saved_file::SavedFile;
use super::tensors::{PoolEnding, TensorPool};

/// Everything that is new is visible on disk after this time.
pub const FLUSH_INTERVAL: Duration = Duration::from_millis(500);
/// Everything that is new becomes visible when it is this much.
pub const FLUSH_BYTES: usize = 1 << 20;
/// A record without a body holds back those behind it for this time at most.
pub const HOLD_TIME: Duration = Duration::from_secs(2);
/// A record without a body holds back this much at most.
pub const HOLD_BYTES: usize = 8 << 20;
/// Whoever adds more than this waits for the disk.
pub const QUEUE_BYTES: usize = 64 << 20;

/// Which files a step has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Files {
    /// `dump.json`, `stack.json` and `construct.json`.
    Dump,
    /// `debug.json` only.
    Debug,
}

impl Files {
    /// The file with the records.
    pub(super) fn main_path(self, dir: &Path) -> PathBuf {
        dir.join(match self {
            Files::Dump => "dump.json",
            Files::Debug => "debug.json",
        })
    }
}

/// A record of the step, by the order of opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId(pub(super) u64);

/// The writer of one step. Shared between threads by reference.
#[derive(Debug)]
pub struct StepWriter {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    process: u32,
}

#[derive(Debug)]
struct Shared {
    /// The main file, for messages.
    path: PathBuf,
    state: Mutex<State>,
    /// The thread waits here for work.
    work: Condvar,
    /// Everybody else waits here for the thread.
    done: Condvar,
    /// Nothing is accepted any more; a glance before the lock is taken.
    closed: AtomicBool,
    bytes_written: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    queue: Queue,
    in_flight_bytes: usize,
    flush_wanted: u64,
    flush_done: u64,
    /// The number of the record before which everything is to be flushed.
    flush_end: u64,
    stop: bool,
    /// The thread waits.
    waits: Option<Waits>,
    /// The thread is gone.
    ended: bool,
    failure: Option<WriteError>,
}

/// What wakes the thread, besides much of anything.
#[derive(Debug, Clone, Copy)]
struct Waits {
    for_ready: bool,
    for_blocker: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A tensor file is there, or is not.
impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.lock().waits = None;
        self.work.notify_one();
    }
}

impl State {
    fn is_time_to_wake(&self) -> bool {
        let queue = &self.queue;
        self.waits.is_some_and(|waits| {
            (waits.for_ready && queue.has_ready())
                || (waits.for_blocker && queue.blocker().is_some())
                || queue.ready_bytes() >= FLUSH_BYTES
                || queue.held_bytes() >= HOLD_BYTES
        })
    }

    fn is_full(&self) -> bool {
        !self.ended && self.queue.all_bytes() + self.in_flight_bytes > QUEUE_BYTES
    }

    /// A file that has to be settled before everything asked for can be written.
    fn unsettled(&mut self) -> Option<&SavedFile> {
        let end = if self.stop { u64::MAX } else { self.flush_end };
        self.queue.unsettled(end)
    }
}

impl StepWriter {
    /// Creates the files with no content, replacing those of an earlier run, and starts the thread.
    pub fn create(dir: &Path, header: &Header, files: Files) -> Result<StepWriter, WriteError> {
        let made = StepFiles::create(dir, header, files)?;
        StepWriter::start(files.main_path(dir), move || Ok(made))
    }

    /// The same for a step with tensor files, which `pool` writes. Some room on the disk is kept for the JSON files:
    /// when it is full, no more tensor files are written, and the index of what there is gets complete.
    pub fn create_with_tensors(
        dir: &Path,
        header: &Header,
        files: Files,
        pool: &TensorPool,
    ) -> Result<StepWriter, WriteError> {
        let made = create_files(dir, header, files, Some(pool.ending()))?;
        StepWriter::start(files.main_path(dir), move || Ok(made))
    }

    /// Has the thread create the files, so that the caller need not wait for the disk; `pool` as above. An error is one
    /// of writing: [`Self::flush`] and [`Self::finish`] tell.
    pub fn create_soon(
        dir: &Path,
        header: Header,
        files: Files,
        pool: Option<&TensorPool>,
    ) -> Result<StepWriter, WriteError> {
        let (place, ending) = (dir.to_owned(), pool.map(TensorPool::ending));
        StepWriter::start(files.main_path(dir), move || create_files(&place, &header, files, ending))
    }

    fn start(
        path: PathBuf,
        create: impl FnOnce() -> Result<StepFiles, WriteError> + Send + 'static,
    ) -> Result<StepWriter, WriteError> {
        let shared = Arc::new(Shared {
            path,
            state: Mutex::default(),
            work: Condvar::new(),
            done: Condvar::new(),
            closed: AtomicBool::new(false),
            bytes_written: AtomicU64::new(0),
        });
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("msprobe-json".to_owned())
            .spawn(move || {
                let farewell = Farewell(theirs);
                match create() {
                    Ok(files) => Worker::new(&farewell.0, files).run(),
                    Err(failure) => farewell.0.lock().failure = Some(failure),
                }
            })
            .map_err(|error| WriteError::new(&shared.path, &error))?;
        Ok(StepWriter { shared, thread: Mutex::new(Some(thread)), process: std::process::id() })
    }

    /// Fixes the place of a record, which gets its body later.
    pub fn open_record(&self, name: &str) -> RecordId {
        RecordId(self.with(|queue| queue.open(name)).unwrap_or(u64::MAX))
    }

    pub(super) fn change(&self, id: RecordId, change: Change) {
        self.with(|queue| queue.change(id.0, change));
    }

    /// Gives a body, encoded for depth 2, that may change. `capacity_bytes` are reserved in the file, the body
    /// included.
    pub fn set(&self, id: RecordId, body: String, capacity_bytes: usize) {
        self.change(id, Change::Set { body: body.into(), room: capacity_bytes });
    }

    /// Gives the final body, encoded for depth 2.
    pub fn close(&self, id: RecordId, body: String) {
        self.change(id, Change::Close { body: body.into() });
    }

    /// Adds a record that is final at once.
    pub fn append(&self, name: &str, body: String) {
        self.with(|queue| {
            let id = queue.open(name);
            queue.change(id, Change::Close { body: body.into() });
        });
    }

    /// Takes back a record that was not closed.
    pub fn remove(&self, id: RecordId) {
        self.change(id, Change::Remove);
    }

    /// Gives up on a record: its last body is final, without one it vanishes.
    pub fn abandon(&self, id: RecordId) {
        self.change(id, Change::Abandon);
    }

    /// Adds a name to the group of a call stack. The first time the stack is seen, its frames are asked for, with
    /// no lock held.
    pub fn stack_name(&self, stack: usize, name: &str, frames: impl FnOnce() -> Vec<String>) {
        if self.with(|queue| queue.add_to_stack(stack, name)) == Some(None) {
            let frames = frames();
            self.with(|queue| queue.add_stack(stack, name, frames));
        }
    }

    /// Adds a name to the tree of calls. The first parent of a name counts.
    pub fn construct(&self, name: &str, parent: Option<&str>) {
        self.with(|queue| queue.add_construct(name, parent));
    }

    /// Waits until everything so far is visible on disk, open records with the body they have.
    pub fn flush(&self) -> Result<(), WriteError> {
        if self.is_foreign() {
            return Ok(());
        }
        let mut state = self.shared.lock();
        state.flush_wanted += 1;
        state.flush_end = state.queue.end();
        let ticket = state.flush_wanted;
        self.shared.work.notify_one();
        while !state.ended && state.flush_done < ticket {
            state = self.shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.failure.clone().map_or(Ok(()), Err)
    }

    /// Writes everything, abandons what is open, and ends; later calls do nothing.
    pub fn finish(&self) -> Result<(), WriteError> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(thread) = thread.take() else {
            return self.shared.lock().failure.clone().map_or(Ok(()), Err);
        };
        if self.is_foreign() {
            // There is no such thread in this process.
            std::mem::forget(thread);
            return Ok(());
        }
        self.shared.lock().stop = true;
        self.shared.closed.store(true, Ordering::Release);
        self.shared.work.notify_one();
        let panicked = thread.join().is_err();
        match self.shared.lock().failure.clone() {
            Some(failure) => Err(failure),
            None if panicked => {
                Err(WriteError::new(Path::new("."), &io::Error::other("the writer panicked")))
            }
            None => Ok(()),
        }
    }

    /// The first error of writing; after it nothing is written any more.
    pub fn failure(&self) -> Option<String> {
        let failed = self.shared.closed.load(Ordering::Acquire);
        failed.then(|| self.shared.lock().failure.as_ref().map(ToString::to_string)).flatten()
    }

    /// Bytes given to the system so far, for those who watch the cost.
    pub fn bytes_written(&self) -> u64 {
        self.shared.bytes_written.load(Ordering::Relaxed)
    }

    fn is_foreign(&self) -> bool {
        self.process != std::process::id()
    }

    /// Adds to the queue, wakes the thread if it is time, and waits if there is too much. `None`: it is over.
    fn with<R>(&self, add: impl FnOnce(&mut Queue) -> R) -> Option<R> {
        if self.shared.closed.load(Ordering::Acquire) || self.is_foreign() {
            return None;
        }
        let mut state = self.shared.lock();
        if state.ended || state.stop {
            return None;
        }
        if memory::is_short() {
            // What was accepted is written; that takes less than what is given back.
            state.failure.get_or_insert(WriteError::out_of_memory(&self.shared.path));
            self.shared.closed.store(true, Ordering::Release);
            return None;
        }
        let result = add(&mut state.queue);
        state.queue.advance();
        if state.is_time_to_wake() {
            state.waits = None;
            self.shared.work.notify_one();
        }
        while state.is_full() {
            state = self.shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Some(result)
    }
}

impl Drop for StepWriter {
    fn drop(&mut self) {
        // Who wants to know calls `finish`.
        let _ = self.finish();
    }
}

/// What the thread is to do next.
enum Task {
    Write(Batch),
    Flush(Batch, u64),
    Finish(Batch),
}

/// The thread.
struct Worker {
    shared: Arc<Shared>,
    files: StepFiles,
    /// Since when something has been ready.
    new_since: Option<Instant>,
    /// The record that holds back others, and since when.
    blocked_since: Option<(u64, Instant)>,
}

/// Nobody must wait for a thread that is gone, however it went.
struct Farewell(Arc<Shared>);

impl Drop for Farewell {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.ended = true;
        state.queue = Queue::default();
        self.0.closed.store(true, Ordering::Release);
        self.0.done.notify_all();
    }
}

fn create_files(
    dir: &Path,
    header: &Header,
    files: Files,
    ending: Option<PoolEnding>,
) -> Result<StepFiles, WriteError> {
    let mut made = StepFiles::create(dir, header, files)?;
    if let Some(ending) = ending {
        made.keep_room(Reserve::create(dir, ending)?);
    }
    Ok(made)
}

impl Worker {
    fn new(shared: &Arc<Shared>, files: StepFiles) -> Worker {
        Worker { shared: Arc::clone(shared), files, new_since: None, blocked_since: None }
    }

    fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        loop {
            let done = match self.next_task() {
                Task::Write(batch) => self.write(batch).map(|()| None),
                Task::Flush(batch, ticket) => self.write(batch).map(|()| Some(ticket)),
                Task::Finish(batch) => {
                    let done = self.files.write(batch).and_then(|()| self.files.finish());
                    shared.bytes_written.store(self.files.bytes_written(), Ordering::Relaxed);
                    if let Err(failure) = done {
                        shared.lock().failure.get_or_insert(failure);
                    }
                    return;
                }
            };
            let mut state = shared.lock();
            state.in_flight_bytes = 0;
            match done {
                Ok(ticket) => state.flush_done = ticket.unwrap_or(state.flush_done),
                Err(failure) => {
                    state.failure.get_or_insert(failure);
                    return;
                }
            }
            shared.done.notify_all();
        }
    }

    fn write(&mut self, batch: Batch) -> Result<(), WriteError> {
        let done = self.files.write(batch).and_then(|()| self.files.commit());
        self.shared.bytes_written.store(self.files.bytes_written(), Ordering::Relaxed);
        done
    }

    fn next_task(&mut self) -> Task {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        loop {
            state.queue.look();
            let now = Instant::now();
            let due = self.note_times(&state, now);
            let is_flush_wanted = state.flush_wanted > state.flush_done;
            let awaited = if is_flush_wanted || state.stop { state.unsettled().cloned() } else { None };
            let task = if state.stop && awaited.is_none() {
                Some(Task::Finish(state.queue.take_last()))
            } else if is_flush_wanted && awaited.is_none() {
                let ticket = state.flush_wanted;
                Some(Task::Flush(state.queue.take_forced(), ticket))
            } else if self.is_held_too_long(&state, now) {
                Some(Task::Write(state.queue.take_forced()))
            } else if state.queue.ready_bytes() >= FLUSH_BYTES
                || due.is_some_and(|due| due <= now)
                || (state.is_full() && state.queue.has_ready())
            {
                Some(Task::Write(state.queue.take_ready(FLUSH_BYTES)))
            } else {
                None
            };
            if let Some(task) = task {
                let (Task::Write(batch) | Task::Flush(batch, _) | Task::Finish(batch)) = &task;
                state.in_flight_bytes = batch.bytes;
                state.waits = None;
                self.new_since = None;
                return task;
            }
            if !self.wait_for_files(&mut state, awaited.as_ref()) {
                continue;
            }
            state.waits = Some(Waits {
                for_ready: self.new_since.is_none(),
                for_blocker: self.blocked_since.is_none(),
            });
            state = match due {
                None => shared.work.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(due) => {
                    let waited = shared.work.wait_timeout(state, due - now);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
            state.waits = None;
        }
    }

    /// Has the thread woken by the files whose fate it wants to know. False if one is settled meanwhile.
    fn wait_for_files(&self, state: &mut State, awaited: Option<&SavedFile>) -> bool {
        let waker = || Waker::from(Arc::clone(&self.shared));
        let is_wanted = state.is_full() || !state.queue.has_ready();
        let next = if is_wanted { state.queue.next_unsettled() } else { [None, None] };
        next.into_iter().flatten().chain(awaited).all(|file| file.wake_when_settled(waker()))
    }

    /// Notes since when things wait, and tells when the next of them is due.
    fn note_times(&mut self, state: &State, now: Instant) -> Option<Instant> {
        self.new_since = state.queue.has_ready().then(|| self.new_since.unwrap_or(now));
        self.blocked_since = state.queue.blocker().map(|id| match self.blocked_since {
            Some((known, since)) if known == id => (id, since),
            _ => (id, now),
        });
        let new_due = self.new_since.map(|since| since + FLUSH_INTERVAL);
        let held_due = self.blocked_since.map(|(_, since)| since + HOLD_TIME);
        new_due.into_iter().chain(held_due).min()
    }

    fn is_held_too_long(&self, state: &State, now: Instant) -> bool {
        state.queue.held_bytes() >= HOLD_BYTES
            || self.blocked_since.is_some_and(|(_, since)| now >= since + HOLD_TIME)
    }
}
