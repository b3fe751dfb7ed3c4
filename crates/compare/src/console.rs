//! Where a comparison says what it notices while it works: a log and a progress bar, whoever shows them.

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
    /// Whether messages of a level are shown at all.
    fn shows(&self, level: Level) -> bool {
        level > Level::Debug
    }

    /// One message.
    fn log(&self, level: Level, text: &str);

    /// Work of `total` units (bytes) begins. Ended by the next `begin` or by `end`.
    fn begin(&self, what: &'static str, total: u64);

    /// So many units more are done. Called from any thread.
    fn advance(&self, units: u64);

    /// The work is over.
    fn end(&self);

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

impl dyn Console + '_ {
    /// A message at [`Level::Debug`], made only if somebody wants to read it.
    pub fn debug(&self, text: impl FnOnce() -> String) {
        if self.shows(Level::Debug) {
            self.log(Level::Debug, &text());
        }
    }
}

/// Says nothing; for tests and for callers who only want results.
pub struct Silent;

impl Console for Silent {
    fn log(&self, _: Level, _: &str) {}
    fn begin(&self, _: &'static str, _: u64) {}
    fn advance(&self, _: u64) {}
    fn end(&self) {}
}
