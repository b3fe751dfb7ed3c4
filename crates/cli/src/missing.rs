//! Commands that users of the tool know and this version does not have: said so, with what there is instead, before
//! the parser takes them for misspelt ones.

use std::ffi::OsString;

use crate::WithHint;

/// What there is instead, one line per group of commands.
const KNOWN: [(&[&str], &str); 4] = [
    (
        &["config_check"],
        "`msprobe diff A B` compares two checkpoint files tensor by tensor (.pt, .safetensors); settings of two \
         machines are not compared",
    ),
    (
        &["parse"],
        "`msprobe inspect FILE` shows a .npy, .pt or .safetensors file, `msprobe diff A B` compares two",
    ),
    (
        &["data2db"],
        "`msprobe grad compare DIR1 DIR2 -o OUT` draws the directions of gradients over all steps (task grad_probe)",
    ),
    (
        &["monitor", "trend"],
        "the task grad_probe records gradients step by step, and `msprobe overflow_check -i DUMP` warns of values close \
         to the end of their range",
    ),
];

/// The answer to a command line whose command is known and not here.
pub(crate) fn answer(args: &[OsString]) -> Option<WithHint> {
    let command = command(args)?;
    let (_, instead) = KNOWN.iter().find(|(names, _)| names.contains(&command))?;
    Some(WithHint { message: format!("{command} is not in this version"), hint: (*instead).to_owned() })
}

/// The command's word: the first one, or the one behind the framework.
pub(crate) fn command(args: &[OsString]) -> Option<&str> {
    let mut words = args.iter().skip(1).map(|word| word.to_str());
    let first = words.next()??;
    match first {
        "-f" | "--framework" => words.nth(1)?,
        _ if first.starts_with("--framework=") || first.starts_with("-f") => words.next()?,
        _ => Some(first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(args: &[&str]) -> Option<String> {
        let args: Vec<OsString> = ["msprobe"].iter().chain(args).map(OsString::from).collect();
        answer(&args).map(|answer| answer.message)
    }

    #[test]
    fn the_command_is_found_behind_the_framework() {
        let text = Some("config_check is not in this version".to_owned());
        assert_eq!(answered(&["-f", "pytorch", "config_check", "-d", "./dump.json"]), text);
        assert_eq!(answered(&["--framework", "mindspore", "config_check"]), text);
        assert_eq!(answered(&["--framework=pytorch", "config_check"]), text);
        assert_eq!(answered(&["-fpytorch", "config_check"]), text);
        assert_eq!(answered(&["config_check"]), text);
    }

    #[test]
    fn what_is_here_or_nowhere_is_left_to_the_parser() {
        for args in [&["compare"][..], &["inspct"], &[], &["-f"], &["-f", "pytorch"], &["inspect", "run_ut"]]
        {
            assert_eq!(answered(args), None, "{args:?}");
        }
    }
}
