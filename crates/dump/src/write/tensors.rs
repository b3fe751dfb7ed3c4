//! Files written by a few threads from memory that is used again and again.
//!
//! Whoever saves a tensor copies its elements once, into a buffer of the pool, and goes on; a thread writes them
//! to a file under a temporary name, which becomes its real one when the file is whole. Buffers are kept: fresh
//! memory costs more than the copy. A tensor that nobody else will change is kept itself instead. Memory stays
//! within the budget, and who would exceed it waits; a tensor that alone is larger is let through when nothing else
//! is under way. A pool of one thread writes in the order of the calls.
//!
//! In a forked child the pool does nothing: the threads stayed with the parent.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use msprobe_tensor::files::pt_write::write_tensor;
use msprobe_tensor::{DType, TensorView};

use super::error::WriteError;
use super::tensor_jobs::{Content, Fill, HostTensor, Job, LEAST_BYTES, Memory, Target, cost, write_file};

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
    files: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<Job>,
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

    fn fits(&self, state: &State, bytes: usize) -> bool {
        state.busy == 0 || state.busy_bytes + bytes <= self.budget_bytes
    }
}

impl State {
    /// A buffer for so many bytes: a free one of about that size, or a new one in place of free ones.
    fn take_buffer(&mut self, bytes: usize, budget_bytes: usize) -> Vec<u8> {
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
            vec![0; bytes]
        };
        self.begin(cost(buffer.len()));
        buffer
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
            files: AtomicU64::new(0),
        });
        let mut pool = TensorPool { shared, threads: Vec::new(), process: std::process::id() };
        for _ in 0..threads.max(1) {
            let shared = Arc::clone(&pool.shared);
            let thread = thread::Builder::new().name("msprobe-tensor".to_owned());
            pool.threads.push(thread.spawn(move || work(&shared))?);
        }
        Ok(pool)
    }

    /// Saves a tensor as a `.pt` file under `path`, replacing one of that name; 8-bit floats are saved as float32.
    /// Returns when its elements are copied. The directory must exist.
    pub fn save(&self, path: PathBuf, view: &TensorView<'_>) {
        let dtype = if view.dtype().is_float8() { DType::F32 } else { view.dtype() };
        let copy = |out: &mut [u8]| {
            if dtype == view.dtype() {
                view.copy_to(out);
            } else {
                view.copy_float8_to_f32(out);
            }
        };
        let target = Target { path, modified: None };
        let fill = |file: &mut File, view: &TensorView<'_>| write_tensor(file, view);
        self.copy_and_push(target, dtype, view.shape(), copy, Box::new(fill));
    }

    /// Saves a tensor with what `fill` makes of its elements. Returns when they are copied.
    pub fn save_copy(
        &self,
        target: Target,
        view: &TensorView<'_>,
        fill: impl FnOnce(&mut File, &TensorView<'_>) -> io::Result<()> + Send + 'static,
    ) {
        self.copy_and_push(target, view.dtype(), view.shape(), |out| view.copy_to(out), Box::new(fill));
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
        self.copy_and_push(target, dtype, shape, fill, Box::new(write));
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
        self.push(Job { target, memory, content: Content::Tensor(Box::new(fill)) });
    }

    /// Saves a text that is asked for when it is its turn.
    pub fn save_text(&self, target: Target, text: impl FnOnce() -> String + Send + 'static) {
        self.push(Job { target, memory: Memory::Nothing, content: Content::Text(Box::new(text)) });
    }

    fn copy_and_push(
        &self,
        target: Target,
        dtype: DType,
        shape: &[usize],
        copy: impl FnOnce(&mut [u8]),
        fill: Fill,
    ) {
        let size_bytes = shape.iter().product::<usize>() * dtype.size_bytes();
        let Some(mut state) = self.wait_for_room(size_bytes) else { return };
        let mut bytes = state.take_buffer(size_bytes, self.shared.budget_bytes);
        drop(state);
        copy(&mut bytes[..size_bytes]);
        let memory = Memory::Buffer { bytes, dtype, shape: shape.to_vec() };
        self.shared.lock().jobs.push_back(Job { target, memory, content: Content::Tensor(fill) });
        self.shared.work.notify_one();
    }

    fn push(&self, job: Job) {
        let Some(mut state) = self.wait_for_room(job.memory.cost()) else { return };
        state.begin(job.memory.cost());
        state.jobs.push_back(job);
        drop(state);
        self.shared.work.notify_one();
    }

    /// Ends it because something belonging to these files could not be made.
    pub fn fail(&self, error: WriteError) {
        self.shared.lock().failure.get_or_insert(error);
        self.shared.failed.store(true, Ordering::Release);
    }

    /// Waits until everything saved so far is on disk. The first failure is reported once.
    pub fn drain(&self) -> Result<(), WriteError> {
        if self.is_foreign() {
            return Ok(());
        }
        self.wait();
        self.take_failure().map_or(Ok(()), Err)
    }

    /// Waits until nothing is under way.
    pub fn wait(&self) {
        if self.is_foreign() {
            return;
        }
        let mut state = self.shared.lock();
        while state.busy > 0 {
            state = self.shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
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
    fn wait_for_room(&self, bytes: usize) -> Option<MutexGuard<'_, State>> {
        if !self.is_open() {
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
        let Some(Job { target, memory, content }) = state.jobs.pop_front() else {
            if state.stop {
                return;
            }
            state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        drop(state);
        let number = shared.files.fetch_add(1, Ordering::Relaxed);
        let skip = shared.failed.load(Ordering::Acquire);
        // Whoever waits for this file must not wait for ever.
        let write = || write_file(&target, &memory, content, number);
        let done = if skip { Ok(Ok(())) } else { catch_unwind(AssertUnwindSafe(write)) };
        let done = done.unwrap_or_else(|_| Err(io::Error::other("the writer panicked")));
        state = shared.lock();
        if let Err(error) = done {
            state.failure.get_or_insert(WriteError::new(&target.path, &error));
            shared.failed.store(true, Ordering::Release);
        }
        state.give_back(memory, shared.budget_bytes);
        shared.done.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;
    use std::time::SystemTime;

    use msprobe_tensor::files::TensorFile;
    use msprobe_tensor::{Endian, ViewError};

    use super::*;

    /// What a file holds: dtype, shape and elements.
    fn load(path: &Path) -> (DType, Vec<usize>, Vec<u8>) {
        let file = TensorFile::open(path).unwrap();
        let view = file.view(0).unwrap();
        let mut bytes = vec![0; view.size_bytes()];
        view.copy_to(&mut bytes);
        (view.dtype(), view.shape().to_vec(), bytes)
    }

    fn names(dir: &Path) -> usize {
        fs::read_dir(dir).unwrap().count()
    }

    #[test]
    fn tensors_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let pool = TensorPool::new(2, 1 << 20).unwrap();
        let data: Vec<u8> = (0..24).collect();
        let transposed =
            TensorView::new(DType::I16, vec![3, 4], vec![1, 3], &data, 0, Endian::Little).unwrap();
        pool.save(at("transposed.pt"), &transposed);
        pool.save(at("empty.pt"), &TensorView::contiguous(DType::F64, vec![0, 2], &[]).unwrap());
        pool.save(at("scalar.pt"), &TensorView::contiguous(DType::BF16, vec![], &data).unwrap());
        let codes = [0x38, 0xb8, 0x40];
        pool.save(at("float8.pt"), &TensorView::contiguous(DType::F8E4M3FN, vec![3], &codes).unwrap());
        pool.drain().unwrap();
        assert_eq!(names(dir.path()), 4, "no partial file is left");
        assert_eq!(fs::metadata(at("empty.pt")).unwrap().mode() & 0o7777, 0o640);
        let (dtype, shape, bytes) = load(&at("transposed.pt"));
        assert_eq!((dtype, shape), (DType::I16, vec![3, 4]));
        assert_eq!(bytes[..4], [0, 1, 6, 7]);
        assert_eq!(load(&at("empty.pt")), (DType::F64, vec![0, 2], vec![]));
        assert_eq!(load(&at("scalar.pt")), (DType::BF16, vec![], vec![0, 1]));
        let floats: Vec<u8> = [1.0f32, -1.0, 2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(load(&at("float8.pt")), (DType::F32, vec![3], floats));
    }

    #[test]
    fn memory_stays_within_the_budget() {
        let dir = tempfile::tempdir().unwrap();
        let budget_bytes = 256 << 10;
        let pool = TensorPool::new(2, budget_bytes).unwrap();
        let data = vec![7u8; 1 << 20];
        let used = || {
            let state = pool.shared.lock();
            assert_eq!(state.free_bytes, state.free.iter().map(Vec::len).sum::<usize>());
            state.free_bytes + state.busy_bytes
        };
        for index in 0..400usize {
            let bytes = (index * 7919) % 100_000;
            let view = TensorView::contiguous(DType::U8, vec![bytes], &data).unwrap();
            pool.save(dir.path().join(format!("{index}.pt")), &view);
            // A buffer may be larger than what it holds by an eighth and a page.
            assert!(used() <= budget_bytes + budget_bytes / 8 + 4096, "{}", used());
        }
        let large = TensorView::contiguous(DType::U8, vec![1 << 20], &data).unwrap();
        pool.save(dir.path().join("large.pt"), &large);
        pool.drain().unwrap();
        assert!(used() <= budget_bytes, "what was too large is not kept");
        assert_eq!(load(&dir.path().join("large.pt")).2, data);
        assert_eq!(load(&dir.path().join("399.pt")).2.len(), (399 * 7919) % 100_000);
        assert_eq!(names(dir.path()), 401);
        // What is dropped is written.
        pool.save(dir.path().join("last.pt"), &large);
        drop(pool);
        assert_eq!(load(&dir.path().join("last.pt")).2, data);
    }

    #[test]
    fn the_first_failure_is_told_once_and_ends_it() {
        let dir = tempfile::tempdir().unwrap();
        let pool = TensorPool::new(2, 1 << 20).unwrap();
        let view = TensorView::contiguous(DType::U8, vec![3], &[1, 2, 3]).unwrap();
        pool.drain().unwrap();
        assert_eq!(pool.failure(), None);
        pool.save(dir.path().join("missing/x.pt"), &view);
        let error = pool.drain().unwrap_err();
        assert_eq!((error.path, error.kind), (dir.path().join("missing/x.pt"), io::ErrorKind::NotFound));
        pool.save(dir.path().join("y.pt"), &view);
        pool.drain().unwrap();
        assert!(pool.failure().unwrap().contains("missing/x.pt"));
        assert_eq!(names(dir.path()), 0);
    }
    struct Kept(Vec<u8>);

    impl HostTensor for Kept {
        fn view(&self) -> Result<TensorView<'_>, ViewError> {
            TensorView::contiguous(DType::U8, vec![self.0.len()], &self.0)
        }
    }

    #[test]
    fn one_thread_writes_in_order_and_files_bear_their_time() {
        let dir = tempfile::tempdir().unwrap();
        let pool = TensorPool::new(1, 16 << 10).unwrap();
        let long_ago = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        let seen = Arc::new(Mutex::new(Vec::new()));
        for index in 0..50usize {
            let at = |name: &str| Target {
                path: dir.path().join(format!("{index}.{name}")),
                modified: Some(long_ago),
            };
            let note = |seen: &Arc<Mutex<Vec<usize>>>, what| {
                let seen = Arc::clone(seen);
                move || seen.lock().unwrap().push(what)
            };
            let fill = |note: Box<dyn FnOnce() + Send>| {
                move |file: &mut File, view: &TensorView<'_>| {
                    note();
                    file.write_all(view.as_bytes().unwrap())
                }
            };
            let bytes = vec![7u8; index * 500];
            let view = TensorView::contiguous(DType::U8, vec![bytes.len()], &bytes).unwrap();
            pool.save_copy(at("copy"), &view, fill(Box::new(note(&seen, 3 * index))));
            let kept = Box::new(Kept(bytes.clone()));
            pool.save_held(at("held"), kept, bytes.len(), fill(Box::new(note(&seen, 3 * index + 1))));
            let last = note(&seen, 3 * index + 2);
            pool.save_text(at("text"), move || {
                last();
                "text".to_owned()
            });
        }
        pool.drain().unwrap();
        assert_eq!(*seen.lock().unwrap(), (0..150).collect::<Vec<_>>());
        assert_eq!(names(dir.path()), 150);
        for name in ["20.copy", "20.held"] {
            assert_eq!(fs::read(dir.path().join(name)).unwrap(), vec![7; 10_000]);
        }
        let meta = fs::metadata(dir.path().join("49.text")).unwrap();
        assert_eq!((meta.modified().unwrap(), meta.mode() & 0o7777), (long_ago, 0o640));
    }
}
