//! Logs and errors, on stderr.

use std::fmt;
use std::io::{self, IsTerminal, Write};

use msprobe_report::Visible;
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::time::{ChronoLocal, FormatTime};
use tracing_subscriber::fmt::{FmtContext, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// Starts logging at the level `MSPROBE_LOG_LEVEL` asks for. A second call changes nothing.
pub(crate) fn init() {
    let level = level_from(std::env::var("MSPROBE_LOG_LEVEL").ok().as_deref());
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(io::stderr)
        .event_format(LogLine)
        .finish();
    // Fails when a subscriber is in place already, as in a Python process that ran a command before.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// 0 debug, 1 info, 2 warning, 3 error, 4 silent; anything else is info.
fn level_from(setting: Option<&str>) -> LevelFilter {
    match setting {
        Some("0") => LevelFilter::DEBUG,
        Some("2") => LevelFilter::WARN,
        Some("3") => LevelFilter::ERROR,
        Some("4") => LevelFilter::OFF,
        _ => LevelFilter::INFO,
    }
}

/// `2026-11-15 21:09:36 (4711) [INFO] text`, the line users of the tool know.
struct LogLine;

impl<S, N> FormatEvent<S, N> for LogLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        ChronoLocal::new("%Y-%m-%d %H:%M:%S".to_owned()).format_time(&mut writer)?;
        let level = match *event.metadata().level() {
            Level::WARN => "WARNING",
            ref other => other.as_str(),
        };
        write!(writer, " ({}) [{level}] ", std::process::id())?;
        // One event, one line: what came from a file must not be able to fake another.
        let mut text = FormattedFields::<N>::new(String::new());
        context.format_fields(text.as_writer(), event)?;
        writeln!(writer, "{}", Visible(&text.fields))
    }
}

/// Whether errors are shown in the log.
pub(crate) fn shows_errors() -> bool {
    LevelFilter::current() >= LevelFilter::ERROR
}

/// `error: …` and `hint: …`, whatever the log level: the answer to what was asked.
pub(crate) fn print_error(message: &str, hint: Option<&str>) {
    print_labelled("error", "\x1b[1;31m", message);
    if let Some(hint) = hint {
        print_hint(hint);
    }
}

/// What to do about an error that was reported.
pub(crate) fn print_hint(hint: &str) {
    print_labelled("hint", "\x1b[1m", hint);
}

fn print_labelled(label: &str, color: &str, text: &str) {
    let mut stderr = io::stderr().lock();
    let (color, reset) = if stderr.is_terminal() && use_color() { (color, "\x1b[0m") } else { ("", "") };
    // Nobody is left to tell when stderr is closed.
    let _ = writeln!(stderr, "{color}{label}:{reset} {}", Visible(text));
}

/// Whether the user has not asked for plain output.
pub(crate) fn use_color() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_follow_the_variable() {
        assert_eq!(level_from(None), LevelFilter::INFO);
        assert_eq!(level_from(Some("0")), LevelFilter::DEBUG);
        assert_eq!(level_from(Some("3")), LevelFilter::ERROR);
        assert_eq!(level_from(Some("4")), LevelFilter::OFF);
        assert_eq!(level_from(Some("loud")), LevelFilter::INFO);
    }
}
