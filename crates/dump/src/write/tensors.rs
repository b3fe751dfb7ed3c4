//! Files written by a few threads from memory that is used again and again.
//!
//! Whoever saves a tensor copies its elements once, into a buffer of the pool, and goes on; a thread writes them
//! to a file under a temporary name, which becomes its real one when the file is whole. Buffers are kept: fresh
//! memory costs more than the copy. A tensor that nobody else will change is kept itself instead. Memory stays
//! within the budget, and who would exceed it waits; a tensor that alone is larger is let through when nothing else
//! is under way. A pool of one thread writes in the order of the calls. Whoever names a file elsewhere gets a
//! [`SavedFile`], which says when it is there under its name, or why not. Elements that were saved before become another
//! name of that file ([`super::same_content`]).
//!
//! In a forked child the pool does nothing: the threads stayed with the parent.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use msprobe_tensor::{DType, TensorView, memory};

use super::error::WriteError;
use super::same_content::{ContentKey, KnownFiles, Search, WrittenFile};
use super::saved_file::{FilePromise, SavedFile};
use super::tensor_jobs::{
    Content, Fill, HostTensor, Job, LEAST_BYTES, Memory, Target, Told, cost, stored_dtype, write_file,
    write_tensor,
};
use crate::hash::FastMap;
use crate::names::TensorFormat;

/// The pool. Shared between threads by reference.
#[derive(Debug)]
pub struct TensorPool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    process: u32,
}

#[derive(Debug)]
struct Shared {
    budget_bytes: usize,
    state: Mutex<State>,
    /// Threads wait here for work.
    work: Condvar,
    /// Everybody else waits here for the threads.
    done: Condvar,
    /// After a failure; a glance before anything is copied.
    failed: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Files that a thread writes now, and further names it will give them.
    writing: Vec<PathBuf>,
    /// How many times each name is still to be given, those above included.
    to_come: FastMap<PathBuf, usize>,
    /// Files by what they hold.
    known: KnownFiles,
    /// Buffers that are free, smallest first. Their lengths are what they can take.
    free: Vec<Vec<u8>>,
    free_bytes: usize,
    /// Memory of tensors being copied, waiting or being written.
    busy_bytes: usize,
    busy: usize,
    stop: bool,
    failure: Option<WriteError>,
    reported: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, error: WriteError) {
        self.lock().failure.get_or_insert(error);
        self.failed.store(true, Ordering::Release);
    }

    fn wait(&self) {
        let mut state = self.lock();
        while state.busy > 0 {
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn fits(&self, state: &State, bytes: usize) -> bool {
        state.busy == 0 || state.busy_bytes + bytes <= self.budget_bytes
    }
}

/// Ends a pool without owning it.
#[derive(Debug)]
pub(super) struct PoolEnding(Arc<Shared>);

impl PoolEnding {
    /// Files that have not begun are given up; waits for those that have.
    pub(super) fn end(&self, error: WriteError) {
        self.0.fail(error);
        self.0.wait();
    }
}

impl State {
    fn why_nothing_is_written(&self) -> String {
        let first = self.failure.as_ref();
        first.map_or_else(
            || "nothing is written in this process".to_owned(),
            |first| format!("nothing is written after an earlier failure: {}", first.reason),
        )
    }

    /// A buffer for so many bytes: a free one of about that size, or a new one in place of free ones. `None`: the
    /// system refuses the memory.
    fn take_buffer(&mut self, bytes: usize, budget_bytes: usize) -> Option<Vec<u8>> {
        let at = self.free.partition_point(|buffer| buffer.len() < bytes);
        let close = self.free.get(at).is_some_and(|buffer| buffer.len() <= 2 * cost(bytes));
        let buffer = if close {
            let buffer = self.free.remove(at);
            self.free_bytes -= buffer.len();
            buffer
        } else {
            // Steps of an eighth: tensors of about the same size then share buffers.
            let step = (bytes.next_power_of_two() / 8).max(LEAST_BYTES);
            let bytes = bytes.next_multiple_of(step);
            while self.free_bytes + self.busy_bytes + bytes > budget_bytes
                && let Some(smallest) = (!self.free.is_empty()).then(|| self.free.remove(0))
            {
                self.free_bytes -= smallest.len();
            }
            self.new_buffer(bytes)?
        };
        self.begin(cost(buffer.len()));
        Some(buffer)
    }

    fn new_buffer(&mut self, bytes: usize) -> Option<Vec<u8>> {
        memory::try_zeroed(bytes).or_else(|| {
            self.free = Vec::new();
            self.free_bytes = 0;
            memory::try_zeroed(bytes)
        })
    }

    fn push(&mut self, job: Job) {
        *self.to_come.entry(job.target.path.clone()).or_default() += 1;
        self.jobs.push_back(job);
    }

    /// A name was given, or will never be.
    fn came(&mut self, path: &Path) {
        self.writing.retain(|writing| writing != path);
        if let Some(count) = self.to_come.get_mut(path) {
            *count -= 1;
            if *count == 0 {
                self.to_come.remove(path);
            }
        }
    }

    /// The next file to write. Two of the same name are written one after the other, so that the last one stays.
    fn next_job(&mut self) -> Option<Job> {
        let is_free =
            |job: &Job| !self.writing.iter().any(|path| path.as_os_str() == job.target.path.as_os_str());
        let at = self.jobs.iter().position(is_free)?;
        let job = self.jobs.remove(at)?;
        self.writing.push(job.target.path.clone());
        Some(job)
    }

    fn begin(&mut self, cost: usize) {
        self.busy += 1;
        self.busy_bytes += cost;
    }

    fn give_back(&mut self, memory: Memory, budget_bytes: usize) {
        self.busy -= 1;
        self.busy_bytes -= memory.cost();
        let Memory::Buffer { bytes: buffer, .. } = memory else { return };
        if self.free_bytes + self.busy_bytes + buffer.len() <= budget_bytes && !buffer.is_empty() {
            let at = self.free.partition_point(|other| other.len() < buffer.len());
            self.free_bytes += buffer.len();
            self.free.insert(at, buffer);
        }
    }
}

impl TensorPool {
    /// A pool of so many threads that keeps at most so many bytes of tensors.
    pub fn new(threads: usize, budget_bytes: usize) -> io::Result<TensorPool> {
        let shared = Arc::new(Shared {
            budget_bytes,
            state: Mutex::default(),
            work: Condvar::new(),
            done: Condvar::new(),
            failed: AtomicBool::new(false),
        });
        let mut pool = TensorPool { shared, threads: Vec::new(), process: std::process::id() };
        for _ in 0..threads.max(1) {
            let shared = Arc::clone(&pool.shared);
            let thread = thread::Builder::new().name("msprobe-tensor".to_owned());
            pool.threads.push(thread.spawn(move || work(&shared))?);
        }
        Ok(pool)
    }

    /// Saves a tensor under `path`, replacing a file of that name. Returns when its elements are copied. The directory must
    /// exist.
    pub fn save(&self, path: PathBuf, view: &TensorView<'_>, format: TensorFormat) -> SavedFile {
        let (file, promise) = SavedFile::promised();
        if !self.is_open() {
            self.give_up(Some(promise));
            return file;
        }
        let key = ContentKey::of(view, format);
        let promise = match &key {
            Some(key) => match self.name_again(key, &path, promise) {
                Search::Named | Search::Later => return file,
                Search::None(promise) => promise,
            },
            None => promise,
        };
        let dtype = stored_dtype(view.dtype(), format);
        let copy = |out: &mut [u8]| {
            if dtype == view.dtype() {
                view.copy_to(out);
            } else {
                view.copy_widened(out);
            }
        };
        let target = Target { path, modified: None };
        let fill = move |file: &mut File, view: &TensorView<'_>| write_tensor(file, view, format);
        let told = Told { key, promise: Some(promise) };
        self.copy_and_push(target, dtype, view.shape(), copy, Box::new(fill), told);
        file
    }

    /// Looks for a file with the same elements. One of the same name that is still to come must stay behind this one.
    fn name_again(&self, key: &ContentKey, path: &Path, promise: FilePromise) -> Search {
        let mut state = self.shared.lock();
        if state.failure.is_some() || state.to_come.contains_key(path) {
            return Search::None(promise);
        }
        let search = state.known.name_again(key, path, promise);
        if let Search::Later = search {
            state.writing.push(path.to_owned());
            state.to_come.insert(path.to_owned(), 1);
        }
        search
    }

    /// Saves a tensor with what `fill` makes of its elements. Returns when they are copied.
    pub fn save_copy(
        &self,
        target: Target,
        view: &TensorView<'_>,
        fill: impl FnOnce(&mut File, &TensorView<'_>) -> io::Result<()> + Send + 'static,
    ) {
        self.copy_and_push(
            target,
            view.dtype(),
            view.shape(),
            |out| view.copy_to(out),
            Box::new(fill),
            Told::default(),
        );
    }

    /// Saves what `write` makes of a row-major tensor whose elements `fill` puts into memory of the pool. Memory that is
    /// used again holds what it held. Returns when `fill` has; neither is called once nothing is written any more.
    pub fn save_filled(
        &self,
        target: Target,
        dtype: DType,
        shape: &[usize],
        fill: impl FnOnce(&mut [u8]),
        write: impl FnOnce(&mut File, &TensorView<'_>) -> io::Result<()> + Send + 'static,
    ) {
        self.copy_and_push(target, dtype, shape, fill, Box::new(write), Told::default());
    }

    /// Saves a tensor of `size_bytes` that the pool may keep until it is written.
    pub fn save_held(
        &self,
        target: Target,
        tensor: Box<dyn HostTensor>,
        size_bytes: usize,
        fill: impl FnOnce(&mut File, &TensorView<'_>) -> io::Result<()> + Send + 'static,
    ) {
        let memory = Memory::Held { tensor, size_bytes };
        self.push(Job { target, memory, content: Content::Tensor(Box::new(fill)), told: Told::default() });
    }

    /// Saves a text that is asked for when it is its turn.
    pub fn save_text(&self, target: Target, text: impl FnOnce() -> String + Send + 'static) {
        let content = Content::Text(Box::new(text));
        self.push(Job { target, memory: Memory::Nothing, content, told: Told::default() });
    }

    fn copy_and_push(
        &self,
        target: Target,
        dtype: DType,
        shape: &[usize],
        copy: impl FnOnce(&mut [u8]),
        fill: Fill,
        told: Told,
    ) {
        let size_bytes = shape.iter().product::<usize>() * dtype.size_bytes();
        let Some(mut bytes) = self.wait_for_buffer(&target.path, size_bytes) else {
            self.give_up(told.promise);
            return;
        };
        copy(&mut bytes[..size_bytes]);
        let memory = Memory::Buffer { bytes, dtype, shape: shape.to_vec() };
        let mut state = self.shared.lock();
        // What was changed while it was copied is not what the key was made of; nor is that the tool's to mend.
        let key = told.key.filter(|key| state.known.begin(key));
        let told = Told { key, ..told };
        state.push(Job { target, memory, content: Content::Tensor(fill), told });
        drop(state);
        self.shared.work.notify_one();
    }

    /// Memory for a tensor. Where the system has none it may have some when other files are written; if there are no
    /// others, nothing more is written.
    fn wait_for_buffer(&self, path: &Path, size_bytes: usize) -> Option<Vec<u8>> {
        loop {
            let mut state = self.wait_for_room(path, size_bytes)?;
            if let Some(buffer) = state.take_buffer(size_bytes, self.shared.budget_bytes) {
                return Some(buffer);
            }
            if state.busy == 0 {
                state.failure.get_or_insert(WriteError::out_of_memory(path));
                self.shared.failed.store(true, Ordering::Release);
                return None;
            }
            drop(self.shared.done.wait(state).unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// There will be no such file, because nothing is written any more.
    fn give_up(&self, promise: Option<FilePromise>) {
        if let Some(promise) = promise {
            let reason = self.shared.lock().why_nothing_is_written();
            promise.settle(Some(&reason));
        }
    }

    fn push(&self, job: Job) {
        let Some(mut state) = self.wait_for_room(&job.target.path, job.memory.cost()) else { return };
        state.begin(job.memory.cost());
        state.push(job);
        drop(state);
        self.shared.work.notify_one();
    }

    /// Ends it because something belonging to these files could not be made.
    pub fn fail(&self, error: WriteError) {
        self.shared.fail(error);
    }

    /// Ends it from elsewhere, when what names the files cannot be written.
    pub(super) fn ending(&self) -> PoolEnding {
        PoolEnding(Arc::clone(&self.shared))
    }

    /// Waits until everything saved so far is on disk. The first failure is reported once. What is saved later gets files
    /// of its own.
    pub fn drain(&self) -> Result<(), WriteError> {
        if self.is_foreign() {
            return Ok(());
        }
        self.wait();
        self.shared.lock().known.forget();
        self.take_failure().map_or(Ok(()), Err)
    }

    /// Waits until nothing is under way.
    pub fn wait(&self) {
        if !self.is_foreign() {
            self.shared.wait();
        }
    }

    /// The first failure, unless it was reported before.
    pub fn take_failure(&self) -> Option<WriteError> {
        if !self.shared.failed.load(Ordering::Acquire) {
            return None;
        }
        let mut state = self.shared.lock();
        let first = !std::mem::replace(&mut state.reported, true);
        state.failure.clone().filter(|_| first)
    }

    /// The first failure; after it nothing is written any more.
    pub fn failure(&self) -> Option<String> {
        let failed = self.shared.failed.load(Ordering::Acquire);
        failed.then(|| self.shared.lock().failure.as_ref().map(ToString::to_string)).flatten()
    }

    /// Whether what is saved is written: not after a failure, and not in a forked child.
    pub fn is_open(&self) -> bool {
        !self.shared.failed.load(Ordering::Acquire) && !self.is_foreign()
    }

    fn is_foreign(&self) -> bool {
        self.process != std::process::id()
    }

    /// Waits until the budget allows so many bytes. `None` after a failure, and in a forked child.
    fn wait_for_room(&self, path: &Path, bytes: usize) -> Option<MutexGuard<'_, State>> {
        if !self.is_open() {
            return None;
        }
        if memory::is_short() {
            self.fail(WriteError::out_of_memory(path));
            return None;
        }
        let mut state = self.shared.lock();
        while state.failure.is_none() && !self.shared.fits(&state, cost(bytes)) {
            state = self.shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.failure.is_none().then_some(state)
    }
}

impl Drop for TensorPool {
    /// Writes what was saved.
    fn drop(&mut self) {
        let threads = std::mem::take(&mut self.threads);
        if self.is_foreign() {
            // There are no such threads in this process.
            threads.into_iter().for_each(std::mem::forget);
            return;
        }
        self.shared.lock().stop = true;
        self.shared.work.notify_all();
        for thread in threads {
            // A thread that panicked has nothing left to do.
            let _ = thread.join();
        }
    }
}

fn work(shared: &Shared) {
    let mut state = shared.lock();
    loop {
        let Some(Job { target, memory, content, told }) = state.next_job() else {
            if state.stop && state.jobs.is_empty() {
                return;
            }
            state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let given_up = state.failure.is_some().then(|| state.why_nothing_is_written());
        drop(state);
        let done = if given_up.is_some() {
            Ok(())
        } else {
            // Whoever waits for this file must not wait for ever.
            let write = || write_file(&target, &memory, content);
            catch_unwind(AssertUnwindSafe(write))
                .unwrap_or_else(|_| Err(io::Error::other("the writer panicked")))
        };
        let failure = done.err().map(|error| WriteError::new(&target.path, &error));
        let reason = failure.as_ref().map(|failure| failure.reason.as_str()).or(given_up.as_deref());
        // Before the pool counts as being at rest: then no record is held back because of a file.
        if let Some(promise) = told.promise {
            promise.settle(reason);
        }
        let further = told.key.and_then(|key| name_again(shared, &key, &target.path, &memory, reason));
        state = shared.lock();
        state.came(&target.path);
        if let Some(failure) = failure.or(further) {
            state.failure.get_or_insert(failure);
            shared.failed.store(true, Ordering::Release);
        }
        state.give_back(memory, shared.budget_bytes);
        if state.stop {
            // A thread may wait for a file of the same name.
            shared.work.notify_all();
        }
        shared.done.notify_all();
    }
}

/// Gives a file all further names that were asked for while it was written, or says why there is none. Returns what
/// could not be written.
fn name_again(
    shared: &Shared,
    key: &ContentKey,
    path: &Path,
    memory: &Memory,
    reason: Option<&str>,
) -> Option<WriteError> {
    let file = if reason.is_none() { WrittenFile::at(path).ok() } else { None };
    let mut failure = None;
    loop {
        let names = shared.lock().known.names_or_end(key, file.as_ref());
        if names.is_empty() {
            return failure;
        }
        for (further, promise) in names {
            let is_named = file.as_ref().is_some_and(|file| file.name_again(&further).is_ok());
            let done = match reason {
                Some(reason) => Err(reason.to_owned()),
                None if is_named => Ok(()),
                None => write_again(&further, memory, key.format()).map_err(|error| {
                    let error = WriteError::new(&further, &error);
                    failure.get_or_insert(error).reason.clone()
                }),
            };
            promise.settle(done.err().as_deref());
            shared.lock().came(&further);
        }
    }
}

/// The elements once more, in a file of their own.
fn write_again(path: &Path, memory: &Memory, format: TensorFormat) -> io::Result<()> {
    let fill = move |file: &mut File, view: &TensorView<'_>| write_tensor(file, view, format);
    let target = Target { path: path.to_owned(), modified: None };
    write_file(&target, memory, Content::Tensor(Box::new(fill)))
}

#[cfg(test)]
mod tests;
