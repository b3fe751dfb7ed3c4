//! How a command ended: one list of statuses, with the exit code and the colour of each.

use std::fmt;
use std::process::ExitCode;

use crate::Tone;

/// How it ended, from best to worst. Of two runs that are compared, or of one that is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Two runs: everything of both was compared and is the same.
    Identical,
    /// One run: everything was read and measured, and nothing is wrong.
    Clean,
    /// Two runs: nothing is further apart than tolerated.
    WithinTolerance,
    /// One run: nothing is wrong, but something is close to it.
    Warning,
    /// What could be looked at agrees or is fine; something could not be.
    Incomplete,
    /// Two runs: something made a difference.
    Diverged,
    /// Two runs: what went in was different already.
    DiffersAtInput,
    /// One run: something is wrong.
    Anomaly,
    /// There is nothing to speak of: nothing could be read, or nothing has a partner.
    Failed,
}

/// What follows from a status.
struct Meaning {
    status: Status,
    identifier: &'static str,
    words: &'static str,
    exit: Exit,
    tone: Tone,
}

const fn means(
    status: Status,
    identifier: &'static str,
    words: &'static str,
    exit: Exit,
    tone: Tone,
) -> Meaning {
    Meaning { status, identifier, words, exit, tone }
}

/// The one table, in the order of [`Status`]. `docs/answers.md` shows it to users.
const MEANINGS: [Meaning; 9] = [
    means(Status::Identical, "identical", "Identical", Exit::Ok, Tone::Good),
    means(Status::Clean, "clean", "Clean", Exit::Ok, Tone::Good),
    means(Status::WithinTolerance, "within_tolerance", "Within tolerance", Exit::Ok, Tone::Good),
    means(Status::Warning, "warning", "Warning", Exit::Ok, Tone::Warning),
    means(Status::Incomplete, "incomplete", "Incomplete", Exit::Differs, Tone::Unknown),
    means(Status::Diverged, "diverged", "Diverged", Exit::Differs, Tone::Bad),
    means(
        Status::DiffersAtInput,
        "differs_at_input",
        "Already different at the input",
        Exit::Differs,
        Tone::Bad,
    ),
    means(Status::Anomaly, "anomaly", "Anomaly", Exit::Differs, Tone::Bad),
    means(Status::Failed, "failed", "Nothing could be compared", Exit::Failed, Tone::Bad),
];

impl Status {
    /// All of them, from best to worst.
    pub fn all() -> impl Iterator<Item = Status> {
        MEANINGS.iter().map(|meaning| meaning.status)
    }

    fn meaning(self) -> &'static Meaning {
        &MEANINGS[self as usize]
    }

    /// Its name in reports for scripts.
    pub fn as_str(self) -> &'static str {
        self.meaning().identifier
    }

    /// How a command ends with it.
    pub fn exit(self) -> Exit {
        self.meaning().exit
    }

    /// How a command ends with it whose scripts know other numbers. `is_all_read`: nothing is missing or unreadable.
    pub fn exit_by_habit(self, habit: Habit, is_all_read: bool) -> Exit {
        if is_all_read && habit.excuses(self) { Exit::Ok } else { self.exit() }
    }

    /// How it looks.
    pub fn tone(self) -> Tone {
        self.meaning().tone
    }

    /// Whether nothing was found, and nothing was left out that counts.
    pub fn agrees(self) -> bool {
        self < Status::Incomplete
    }

    /// Whether two runs differ, in an operation or in what went in.
    pub fn is_difference(self) -> bool {
        matches!(self, Status::Diverged | Status::DiffersAtInput)
    }

    /// The first line of an answer: `Diverged in step 0, rank 1: …`. The place may be empty.
    pub fn headline(self, place: &str, sentence: &str) -> String {
        let in_place = if place.is_empty() { String::new() } else { format!(" in {place}") };
        format!("{self}{in_place}: {sentence}")
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.meaning().words)
    }
}

/// How a command ends; the number is the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done; nothing differs, nothing is wrong.
    Ok = 0,
    /// Done; something was found, or not everything could be looked at.
    Differs = 1,
    /// Wrong usage, or nothing could be looked at.
    Failed = 2,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// Commands of the reference whose scripts take any number but 0 for a crash. They are all exceptions there are from the
/// exit code of a status, and end where something could not be read: that is a crash to them as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Habit {
    /// `compare -i compare.json` without `--fail-on-difference`: whatever the answer.
    OlderCompare,
    /// `graph -i compare.json` without `--fail-on-difference`: what was found is no failure, what was not looked at is.
    OlderGraph,
    /// `nan_analyze` without `--fail-on-anomaly`: what was found is no failure, what was not looked at is.
    NanAnalyze,
    /// `run_ut`, `multi_run_ut` and `api_precision_compare` without `--fail-on-error`: whatever the answer.
    Precheck,
}

impl Habit {
    fn excuses(self, status: Status) -> bool {
        match self {
            Habit::OlderCompare | Habit::OlderGraph | Habit::Precheck => true,
            Habit::NanAnalyze => status == Status::Anomaly,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_order_of_the_statuses() {
        for (index, meaning) in MEANINGS.iter().enumerate() {
            assert_eq!(meaning.status as usize, index, "{}", meaning.identifier);
        }
        assert!(Status::Incomplete > Status::WithinTolerance && Status::Incomplete < Status::Diverged);
    }

    #[test]
    fn what_agrees_exits_with_0_and_nothing_else_does() {
        for status in Status::all() {
            assert_eq!(status.agrees(), status.exit() == Exit::Ok, "{status}");
            assert_eq!(status.agrees(), status < Status::Incomplete, "{status}");
            assert!(!status.is_difference() || status.exit() == Exit::Differs, "{status}");
        }
    }

    #[test]
    fn habits_end_where_something_could_not_be_read() {
        assert_eq!(Status::Failed.exit_by_habit(Habit::OlderCompare, true), Exit::Ok);
        assert_eq!(Status::Failed.exit_by_habit(Habit::OlderCompare, false), Exit::Failed);
        assert_eq!(Status::Diverged.exit_by_habit(Habit::Precheck, true), Exit::Ok);
        assert_eq!(Status::Anomaly.exit_by_habit(Habit::Precheck, false), Exit::Differs);
        assert_eq!(Status::Anomaly.exit_by_habit(Habit::NanAnalyze, true), Exit::Ok);
        assert_eq!(Status::Anomaly.exit_by_habit(Habit::NanAnalyze, false), Exit::Differs);
        assert_eq!(Status::Incomplete.exit_by_habit(Habit::NanAnalyze, true), Exit::Differs);
    }

    #[test]
    fn headlines_begin_with_the_status() {
        assert_eq!(Status::Diverged.headline("step 0", "x differs"), "Diverged in step 0: x differs");
        assert_eq!(Status::Clean.headline("", "no NaN"), "Clean: no NaN");
    }
}
