//! Texts that a table program would take for a formula.

use msprobe_dump::read::Json;

/// Members of a record whose texts are looked at.
const LOOKED_AT: [&str; 3] = ["input_args", "input_kwargs", "output"];

/// Whether a text among the arguments and results of a record looks like a formula.
pub(super) fn holds_formula(record: &[u8]) -> bool {
    // A tree is made for the few that may.
    if !may_hold_formula(record) {
        return false;
    }
    let Ok(record) = Json::parse(record) else { return false };
    let [args, others @ ..] = LOOKED_AT;
    let args = record.get(args).or_else(|| record.get("input"));
    args.into_iter().chain(others.iter().filter_map(|key| record.get(key))).any(has_formula)
}

/// A formula begins where a text begins or after a semicolon; an escape may stand for anything.
fn may_hold_formula(text: &[u8]) -> bool {
    let begins = |byte: u8| matches!(byte, b'+' | b'-' | b'=' | b'%' | b'@' | 0xef);
    text.windows(2).any(|two| two[0] == b'\\' || matches!(two[0], b'"' | b';') && begins(two[1]))
}

fn has_formula(value: &Json<'_>) -> bool {
    match value {
        Json::List(elements) => elements.iter().any(has_formula),
        Json::Map(members) => members.iter().any(|(_, member)| has_formula(member)),
        Json::Text(text) => looks_like_a_formula(text),
        _ => false,
    }
}

/// `^[＋－＝％＠+\-=%@]|;[＋－＝％＠+\-=%@]`.
pub(crate) fn looks_like_a_formula(text: &str) -> bool {
    let leads = |text: &str| text.starts_with(['＋', '－', '＝', '％', '＠', '+', '-', '=', '%', '@']);
    // Nearly every text begins with a letter and has no semicolon.
    if text.as_bytes().first().is_none_or(u8::is_ascii_alphanumeric) && !text.as_bytes().contains(&b';') {
        return false;
    }
    leads(text) || text.split(';').skip(1).any(leads)
}
