//! Ctrl-C and other polite requests to end: files that are not finished are removed, then the process ends as it would have.

use std::fs;
use std::os::raw::c_int;
use std::sync::{Mutex, PoisonError};
use std::thread;

use msprobe_report::output::abandon;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// What is done about the next signal in place of ending at once.
type Ending = Box<dyn FnOnce() + Send>;
static INSTEAD: Mutex<Option<Ending>> = Mutex::new(None);

/// The next signal is answered by this, and the one after it as ever: for commands that run until they are told to end.
pub(crate) fn end_by(end: impl FnOnce() + Send + 'static) {
    *INSTEAD.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(end));
}

/// From now on signals are answered by a thread. For processes that are the command and nothing else.
pub(crate) fn end_tidily() {
    let ignored = ignored_signals();
    let heard: Vec<c_int> =
        [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0).collect();
    // Without the thread a signal ends the process as ever, and leaves hidden files behind: no reason to refuse work.
    let Ok(mut signals) = Signals::new(heard) else { return };
    let answer = move || {
        for signal in signals.forever() {
            let instead = INSTEAD.lock().unwrap_or_else(PoisonError::into_inner).take();
            let _ = abandon(|| match instead {
                Some(end) => {
                    end();
                    Ok(())
                }
                None => emulate_default_handler(signal),
            });
        }
    };
    let _ = thread::Builder::new().name("signals".to_owned()).spawn(answer);
}

/// The signals this process was started to ignore, as bits: by `nohup`, or as a job of a script in the background. They stay
/// ignored.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
