//! Commands that run operators of a framework need Python: the binary starts it, the Python package is there already.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::WithHint;
use crate::missing::command;

/// The commands, with the names users know them by.
const IN_PYTHON: [&str; 5] = ["run_ut", "multi_run_ut", "run_overflow_check", "acc_check", "multi_acc_check"];
/// Which Python is started.
const PYTHON: &str = "MSPROBE_PYTHON";
/// Set for the Python that is started, so that one without the package does not start another.
const STARTED: &str = "MSPROBE_STARTED_PYTHON";

/// Becomes `python3 -m msprobe …` if the command needs it. Comes back only if that cannot be, with the reason, or if the command
/// is another.
pub(crate) fn hand_over(args: &[OsString]) -> Option<WithHint> {
    let command = command(args).filter(|command| IN_PYTHON.contains(command))?;
    let python = std::env::var_os(PYTHON).unwrap_or_else(|| OsString::from("python3"));
    if std::env::var_os(STARTED).is_some() {
        return Some(refusal(command, &python, "its package msprobe is not this one"));
    }
    let error = Command::new(&python)
        .args([OsStr::new("-m"), OsStr::new("msprobe")])
        .args(args.iter().skip(1))
        .env(STARTED, "1")
        .exec();
    Some(refusal(command, &python, &error.to_string()))
}

fn refusal(command: &str, python: &OsStr, reason: &str) -> WithHint {
    WithHint {
        message: format!(
            "{command} runs operators and needs Python: {} cannot be used, {reason}",
            python.display()
        ),
        hint: format!(
            "install the package msprobe where the framework is and run `python -m msprobe -f pytorch {command} …` \
             there, or name that Python in {PYTHON}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commands_that_run_operators_go_to_python() {
        for args in [
            &["msprobe", "compare"][..],
            &["msprobe", "-f", "pytorch", "api_precision_compare"],
            &["msprobe"],
        ] {
            let args: Vec<OsString> = args.iter().map(OsString::from).collect();
            assert!(hand_over(&args).is_none());
        }
    }

    #[test]
    fn a_refusal_says_where_to_run_it() {
        let refusal = refusal("run_ut", OsStr::new("python3"), "No such file or directory");
        assert!(
            refusal.message.starts_with("run_ut runs operators and needs Python: python3 cannot be used")
        );
        assert!(refusal.hint.contains("python -m msprobe -f pytorch run_ut"));
    }
}
