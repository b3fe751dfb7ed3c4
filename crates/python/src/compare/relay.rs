//! A comparison at work while Python waits: what it says goes to Python's log, and Ctrl-C ends it.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use msprobe_report::console::{Console, Level};
use msprobe_report::error::CompareError;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// How often signals are looked for while nothing is said.
const PULSE: Duration = Duration::from_millis(100);
/// How often long work says how far it is.
const PROGRESS_PULSE: Duration = Duration::from_secs(10);
/// Messages that may wait for Python. Who says more waits.
const WAITING_MESSAGES: usize = 1024;
/// Messages that are logged before signals are looked for again.
const MESSAGES_AT_ONCE: usize = 128;

type Message = (Level, String);

/// Runs `work` on threads of its own with the GIL released and logs with `log(level, text)` from the calling thread:
/// signals, and output that a notebook captures, belong to that one.
///
/// The threads are made for this call, because those of the global pool do not survive a fork.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    log: &Bound<'_, PyAny>,
    work: impl FnOnce(&dyn Console) -> Result<T, CompareError> + Send,
) -> PyResult<T> {
    run_on(py, 0, log, work)
}

/// The same on so many threads; 0 is one per core.
pub(crate) fn run_on<T: Send>(
    py: Python<'_>,
    threads: usize,
    log: &Bound<'_, PyAny>,
    work: impl FnOnce(&dyn Console) -> Result<T, CompareError> + Send,
) -> PyResult<T> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| PyRuntimeError::new_err(format!("cannot start threads: {error}")))?;
    let log = log.clone().unbind();
    let stop = AtomicBool::new(false);
    let (sender, receiver) = sync_channel(WAITING_MESSAGES);
    let mut result = None;
    let watched = py.detach(|| {
        pool.in_place_scope(|scope| {
            let (result, stop) = (&mut result, &stop);
            scope.spawn(move |_| {
                // Its end closes the channel, and so ends the watch.
                let relay = Relay { sender, stop, progress: Mutex::new(None) };
                *result = Some(catch_unwind(AssertUnwindSafe(|| {
                    work(&relay).inspect_err(|error| error.announce(&relay))
                })));
            });
            let watched = watch(receiver, &log);
            if watched.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            watched
        })
    });
    watched?;
    match result {
        Some(Ok(result)) => result.map_err(|error| super::exception(py, &error)),
        Some(Err(panic)) => resume_unwind(panic),
        None => Err(PyRuntimeError::new_err("the comparison did not start")),
    }
}

/// Logs until the work is over. The error is that of a signal's handler, or of the log.
fn watch(receiver: Receiver<Message>, log: &Py<PyAny>) -> PyResult<()> {
    loop {
        let first = match receiver.recv_timeout(PULSE) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        Python::attach(|py| {
            for (level, text) in first.into_iter().chain(receiver.try_iter()).take(MESSAGES_AT_ONCE) {
                log.call1(py, (word(level), text))?;
            }
            py.check_signals()
        })?;
    }
}

/// The method of a Python logger.
fn word(level: Level) -> &'static str {
    match level {
        Level::Debug => "debug",
        Level::Info => "info",
        Level::Warning => "warning",
        Level::Error => "error",
    }
}

/// Unwinds the work: nobody waits for its result any more.
struct Stopped;

struct Relay<'a> {
    sender: SyncSender<Message>,
    stop: &'a AtomicBool,
    progress: Mutex<Option<Progress>>,
}

struct Progress {
    what: &'static str,
    total: u64,
    done: u64,
    said: Instant,
}

/// A console has no way to refuse, and an unfinished comparison leaves nothing under a final name, so unwinding is the
/// way out. It is not a panic: no hook hears of it.
fn stop_if(asked: bool) {
    // A message may come from a destructor while the work unwinds already.
    if asked && !std::thread::panicking() {
        resume_unwind(Box::new(Stopped));
    }
}

impl Relay<'_> {
    fn with_progress(&self, action: impl FnOnce(&mut Option<Progress>) -> Option<String>) {
        let line = self.progress.lock().ok().and_then(|mut progress| action(&mut progress));
        match line {
            Some(line) => self.log(Level::Info, &line),
            None => stop_if(self.stop.load(Ordering::Relaxed)),
        }
    }
}

impl Console for Relay<'_> {
    fn log(&self, level: Level, text: &str) {
        let unheard = self.sender.send((level, text.to_owned())).is_err();
        stop_if(unheard);
    }

    fn begin(&self, what: &'static str, total: u64) {
        self.with_progress(|progress| {
            *progress = Some(Progress { what, total, done: 0, said: Instant::now() });
            None
        });
    }

    fn advance(&self, units: u64) {
        self.with_progress(|progress| progress.as_mut()?.advance(units));
    }

    fn end(&self) {
        self.with_progress(|progress| {
            *progress = None;
            None
        });
    }
}

impl Progress {
    /// A line, if it is time for one.
    fn advance(&mut self, units: u64) -> Option<String> {
        self.done = self.done.saturating_add(units);
        if self.said.elapsed() < PROGRESS_PULSE {
            return None;
        }
        self.said = Instant::now();
        let percent = 100.0 * self.done as f64 / self.total.max(1) as f64;
        let mega = |bytes: u64| bytes / 1_000_000;
        Some(format!("{}: {} of {} MB, {percent:.0} %", self.what, mega(self.done), mega(self.total)))
    }
}
