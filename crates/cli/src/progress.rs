//! A progress bar on stderr, shown only to people and only when work takes a while.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar that counts bytes. Invisible unless stderr is a terminal; redrawn a few times a second.
pub(crate) fn bytes_bar(total_bytes: u64, what: &'static str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total_bytes), ProgressDrawTarget::stderr_with_hz(5));
    let template = "{msg} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} ETA {eta}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_message(what);
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}
