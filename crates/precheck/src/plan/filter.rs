//! Which calls have the same arguments, so that one of them is enough.

use std::fmt::Write;

use msprobe_dump::read::Json;

/// What two calls must have alike: arguments that are described, without their largest and smallest value, and all keyword
/// arguments. As texts that are the same if the values are.
pub(super) type Key = (Vec<String>, String);

/// What is looked at of a forward entry.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    pub(super) key: Key,
    /// Whether the output goes into an argument.
    pub(super) has_out: bool,
}

pub(super) fn read(text: &[u8]) -> Arguments {
    let Ok(entry) = Json::parse(text) else { return Arguments::default() };
    let positional = entry.get("input_args").and_then(Json::as_list).unwrap_or_default();
    let positional = positional.iter().filter_map(|value| match value {
        Json::Map(members) => {
            let mut text = String::new();
            push_map(&mut text, members, &["Max", "Min"]);
            Some(text)
        }
        _ => None,
    });
    let keywords = entry.get("input_kwargs");
    let mut text = String::new();
    if let Some(keywords) = keywords {
        push(&mut text, keywords);
    }
    let has_out = keywords.is_some_and(|keywords| keywords.get("out").is_some());
    Arguments { key: (positional.collect(), text), has_out }
}

/// A value as a text in which the order of members does not count and 1 is 1.0, as for Python's `==`.
fn push(text: &mut String, value: &Json<'_>) {
    match value {
        Json::Null => text.push_str("null"),
        Json::Bool(value) => text.push_str(if *value { "1" } else { "0" }),
        Json::Int(value) => text.push_str(&value.to_string()),
        Json::Float(value) if value.fract() == 0.0 && value.abs() < 1e15 => {
            text.push_str(&(*value as i64).to_string());
        }
        // NaN is not itself, but what was read once is the same object to Python's lists only there.
        Json::Float(value) => text.push_str(&value.to_string()),
        Json::Text(value) => {
            let _ = write!(text, "{value:?}");
        }
        Json::List(elements) => {
            text.push('[');
            for element in elements {
                push(text, element);
                text.push(',');
            }
            text.push(']');
        }
        Json::Map(members) => push_map(text, members, &[]),
    }
}

fn push_map(text: &mut String, members: &[(std::borrow::Cow<'_, str>, Json<'_>)], without: &[&str]) {
    let mut parts: Vec<(&str, String)> = Vec::with_capacity(members.len());
    for (key, value) in members {
        if without.contains(&&**key) {
            continue;
        }
        let mut part = String::new();
        push(&mut part, value);
        match parts.iter_mut().find(|(before, _)| *before == &**key) {
            Some(before) => before.1 = part,
            None => parts.push((key, part)),
        }
    }
    parts.sort_unstable();
    text.push('{');
    for (key, part) in parts {
        let _ = write!(text, "{key:?}:{part},");
    }
    text.push('}');
}
