//! Flags of several letters behind one dash, as users of the tool write them: `-tp`, `-dm`, `-config`.

use std::ffi::OsString;

const SPELLINGS: [(&str, &str); 11] = [
    ("-tp", "--target_path"),
    ("-gp", "--golden_path"),
    ("-fm", "--fuzzy_match"),
    ("-da", "--diff_analyze"),
    ("-dm", "--data_mapping"),
    ("-am", "--api_mapping"),
    ("-cm", "--cell_mapping"),
    ("-lm", "--layer_mapping"),
    ("-config", "--config-path"),
    ("-tensor_log", "--is_print_compare_log"),
    ("--config_path", "--config-path"),
];

/// Writes such flags of the comparison commands out; everything else stays.
pub(crate) fn spell_out(args: Vec<OsString>) -> Vec<OsString> {
    spell_flags(args, &["compare", "merge_result", "merge-result"], &SPELLINGS)
}

/// Writes the flags of some commands out.
pub(crate) fn spell_flags(
    args: Vec<OsString>,
    commands: &[&str],
    spellings: &[(&str, &str)],
) -> Vec<OsString> {
    let is_ours = |arg: &OsString| commands.iter().any(|command| arg == command);
    let Some(command) = args.iter().take(4).position(is_ours) else { return args };
    let spell = |arg: OsString| {
        let Some(text) = arg.to_str() else { return arg };
        let (flag, value) = text.split_once('=').map_or((text, None), |(flag, value)| (flag, Some(value)));
        match spellings.iter().find(|(short, _)| *short == flag) {
            Some((_, long)) => value.map_or((*long).into(), |value| format!("{long}={value}").into()),
            None => arg,
        }
    };
    args.into_iter().enumerate().map(|(index, arg)| if index > command { spell(arg) } else { arg }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_flags_of_comparison_are_spelled_out() {
        let spell = |args: &[&str]| -> Vec<String> {
            let args = args.iter().map(OsString::from).collect();
            spell_out(args).into_iter().map(|arg| arg.into_string().unwrap()).collect()
        };
        assert_eq!(
            spell(&["msprobe", "compare", "-tp", "a", "-gp=b", "-o", "c"]),
            ["msprobe", "compare", "--target_path", "a", "--golden_path=b", "-o", "c"]
        );
        assert_eq!(
            spell(&["msprobe", "-f", "pytorch", "merge_result", "-config", "x"])[4..],
            ["--config-path", "x"]
        );
        assert_eq!(spell(&["msprobe", "diff", "-da", "b"])[2], "-da");
    }
}
