//! Messages, progress and refusals of a comparison, on stderr.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::ProgressBar;
use msprobe_report::console::{Console, Level};
use msprobe_report::error::{Code, CompareError};

use crate::progress::bytes_bar;
use crate::{Exit, logging};

/// The log of the command, and a progress bar while there is something to wait for.
#[derive(Default)]
pub(crate) struct Terminal {
    bar: Mutex<Option<ProgressBar>>,
    errors: AtomicUsize,
}

impl Terminal {
    /// How many errors were reported.
    pub(crate) fn errors(&self) -> usize {
        self.errors.load(Ordering::Relaxed)
    }

    fn with_bar(&self, action: impl FnOnce(&mut Option<ProgressBar>)) {
        if let Ok(mut bar) = self.bar.lock() {
            action(&mut bar);
        }
    }
}

impl Console for Terminal {
    fn log(&self, level: Level, text: &str) {
        if level == Level::Error {
            self.errors.fetch_add(1, Ordering::Relaxed);
        }
        let write = || match level {
            Level::Debug => tracing::debug!("{text}"),
            Level::Info => tracing::info!("{text}"),
            Level::Warning => tracing::warn!("{text}"),
            Level::Error => tracing::error!("{text}"),
        };
        self.with_bar(|bar| match bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        });
    }

    fn begin(&self, what: &'static str, total: u64) {
        self.with_bar(|bar| *bar = Some(bytes_bar(total, what)));
    }

    fn advance(&self, units: u64) {
        self.with_bar(|bar| {
            if let Some(bar) = bar {
                bar.inc(units);
            }
        });
    }

    fn end(&self) {
        self.with_bar(|bar| {
            if let Some(bar) = bar.take() {
                bar.finish_and_clear();
            }
        });
    }
}

/// Says why nothing was compared: in the log, where users of the tool look for it, and what to do about it.
pub(crate) fn refuse(error: &CompareError, console: &Terminal) -> Exit {
    error.announce(console);
    if !logging::shows_errors() || error.code == Code::BrokenJson {
        logging::print_error(&error.message, None);
    }
    if let Some(hint) = &error.hint {
        logging::print_hint(hint);
    }
    Exit::Failed
}
