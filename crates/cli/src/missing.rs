//! Commands that users of the tool know and this version does not have: said so, with what there is instead, before
//! the parser takes them for misspelt ones.

use std::ffi::OsString;

use crate::WithHint;

/// What there is instead, one line per group of commands.
const KNOWN: [(&[&str], &str); 7] = [
    (
        &["run_ut", "multi_run_ut", "api_precision_compare", "acc_check", "multi_acc_check"],
        "collect with the task tensor on both devices, then `msprobe compare -tp TARGET -gp GOLDEN` names the first \
         operation that adds an error of its own",
    ),
    (
        &["run_overflow_check"],
        "`msprobe overflow_check -i STEP_DIR` names the operation that made the first NaN or Inf, and leaves out what \
         means no harm",
    ),
    (
        &["op_generate"],
        "a dump of the task tensor has the inputs of every operation in dump_tensor_data (`msprobe inspect FILE`), and \
         stack.json has the line of code that called it",
    ),
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
        let text = Some("run_overflow_check is not in this version".to_owned());
        assert_eq!(answered(&["-f", "pytorch", "run_overflow_check", "-api_info", "./dump.json"]), text);
        assert_eq!(answered(&["--framework", "mindspore", "run_overflow_check"]), text);
        assert_eq!(answered(&["--framework=pytorch", "run_overflow_check"]), text);
        assert_eq!(answered(&["-fpytorch", "run_overflow_check"]), text);
        assert_eq!(answered(&["run_overflow_check"]), text);
    }

    #[test]
    fn what_is_here_or_nowhere_is_left_to_the_parser() {
        for args in [&["compare"][..], &["inspct"], &[], &["-f"], &["-f", "pytorch"], &["inspect", "run_ut"]]
        {
            assert_eq!(answered(args), None, "{args:?}");
        }
    }
}
