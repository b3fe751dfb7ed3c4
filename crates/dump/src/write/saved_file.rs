//! What becomes of a tensor file: the record that names it is shown only when that is known.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Waker;

/// A file that is being written, or was, or could not be. The same file however often it is cloned.
#[derive(Debug, Clone)]
pub struct SavedFile(Arc<Fate>);

/// Settles what became of a file. Whoever waits for it does not wait for ever: a promise that is dropped is settled.
#[derive(Debug)]
pub(super) struct FilePromise(Arc<Fate>);

#[derive(Debug, Default)]
struct Fate {
    /// Why there is no file; nothing if there is one.
    outcome: OnceLock<Option<Box<str>>>,
    waker: Mutex<Option<Waker>>,
}

impl PartialEq for SavedFile {
    fn eq(&self, other: &SavedFile) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl SavedFile {
    /// A file that is to be written, and the promise to say what became of it.
    pub(super) fn promised() -> (SavedFile, FilePromise) {
        let fate = Arc::new(Fate::default());
        (SavedFile(Arc::clone(&fate)), FilePromise(fate))
    }

    /// A file that there will not be, and why.
    pub fn unwritten(reason: &str) -> SavedFile {
        let (file, promise) = SavedFile::promised();
        promise.settle(Some(reason));
        file
    }

    /// Whether it is known what became of it.
    pub fn is_settled(&self) -> bool {
        self.0.outcome.get().is_some()
    }

    /// Whether it is there under its name.
    pub fn is_written(&self) -> bool {
        matches!(self.0.outcome.get(), Some(None))
    }

    /// Why there is no such file. Nothing if there is one, or if that is not known yet.
    pub fn reason(&self) -> Option<&str> {
        self.0.outcome.get()?.as_deref()
    }

    /// Has somebody woken when it is known what became of the file. False if it is known: then nobody is woken.
    pub(super) fn wake_when_settled(&self, waker: Waker) -> bool {
        *self.0.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker);
        // Whoever settles it between these two lines finds the waker.
        !self.is_settled()
    }
}

impl FilePromise {
    /// The file is there, or there is a reason why not.
    pub(super) fn settle(self, reason: Option<&str>) {
        self.0.settle(reason);
    }
}

impl Drop for FilePromise {
    fn drop(&mut self) {
        self.0.settle(Some("it was given up"));
    }
}

impl Fate {
    /// The first time counts.
    fn settle(&self, reason: Option<&str>) {
        if self.outcome.set(reason.map(Into::into)).is_err() {
            return;
        }
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn whoever_waits_is_told_once() {
        let count = Arc::new(Count::default());
        let waker = || Waker::from(Arc::clone(&count));
        let (file, promise) = SavedFile::promised();
        assert!(!file.is_settled() && !file.is_written() && file.reason().is_none());
        assert!(file.wake_when_settled(waker()));
        assert!(file.clone().wake_when_settled(waker()));
        promise.settle(None);
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert!(file.is_written() && file.reason().is_none());
        assert!(!file.wake_when_settled(waker()));
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_promise_that_is_dropped_is_settled() {
        let (file, promise) = SavedFile::promised();
        drop(promise);
        assert!(file.is_settled() && !file.is_written() && file.reason().is_some());
        assert_eq!(SavedFile::unwritten("no room").reason(), Some("no room"));
    }
}
