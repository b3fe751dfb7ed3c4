//! Where long work says what it notices while it goes on: a log and a progress bar, whoever shows them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// How urgent a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For those who look for a fault in the tool.
    Debug,
    /// What was done.
    Info,
    /// Something is odd; the result stands.
    Warning,
    /// Something was left out or refused.
    Error,
}

/// Shows messages and progress to the user.
pub trait Console: Sync {
    /// One message.
    fn log(&self, level: Level, text: &str);

    /// Work of `total` units (bytes) begins. Ended by the next `begin` or by `end`. Progress need not be shown.
    fn begin(&self, _what: &'static str, _total: u64) {}

    /// So many units more are done; none before a piece of work begins. Called from any thread. It may unwind: that
    /// ends the work.
    fn advance(&self, _units: u64) {}

    /// The work is over.
    fn end(&self) {}

    /// A message at [`Level::Info`].
    fn info(&self, text: &str) {
        self.log(Level::Info, text);
    }

    /// A message at [`Level::Warning`].
    fn warning(&self, text: &str) {
        self.log(Level::Warning, text);
    }

    /// A message at [`Level::Error`].
    fn error(&self, text: &str) {
        self.log(Level::Error, text);
    }
}

/// Warnings of one kind: the first ones in full, then only how many more there were.
pub struct LimitedWarnings<'a> {
    console: &'a dyn Console,
    what: &'static str,
    count: AtomicUsize,
}

impl<'a> LimitedWarnings<'a> {
    const SHOWN: usize = 100;

    /// Nothing to warn of so far; `what` is the plural for the rest.
    pub fn new(console: &'a dyn Console, what: &'static str) -> LimitedWarnings<'a> {
        LimitedWarnings { console, what, count: AtomicUsize::new(0) }
    }

    /// One more.
    pub fn warning(&self, text: impl FnOnce() -> String) {
        if self.count.fetch_add(1, Ordering::Relaxed) < Self::SHOWN {
            self.console.warning(&text());
        }
    }
}

impl Drop for LimitedWarnings<'_> {
    fn drop(&mut self) {
        let count = self.count.load(Ordering::Relaxed);
        if count > Self::SHOWN {
            self.console.warning(&format!("{} more {} are not shown", count - Self::SHOWN, self.what));
        }
    }
}

/// Says nothing; for tests and for callers who only want results.
pub struct Silent;

impl Console for Silent {
    fn log(&self, _: Level, _: &str) {}
}

/// Remembers what was said, for tests.
#[derive(Debug, Default)]
pub struct Remembered(Mutex<Vec<(Level, String)>>);

impl Remembered {
    /// What was said so far at the levels wanted.
    pub fn said(&self, is_wanted: impl Fn(Level) -> bool) -> Vec<String> {
        let said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        said.iter().filter(|(level, _)| is_wanted(*level)).map(|(_, text)| text.clone()).collect()
    }
}

impl Console for Remembered {
    fn log(&self, level: Level, text: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((level, text.to_owned()));
    }
}
