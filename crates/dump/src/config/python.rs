//! JSON values as Python sees and prints them, because messages quote them in that form.

use std::fmt::Write as _;

use serde_json::{Number, Value};

use crate::words::Word;
use crate::write::push_float;

/// What `bool(value)` says.
pub(super) fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

/// What `type(value).__name__` says.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "NoneType",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "int",
        Value::String(_) => "str",
        Value::Array(_) => "list",
        Value::Object(_) => "dict",
    }
}

/// What `str(value)` says.
pub(super) fn str(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        _ => repr(value),
    }
}

/// What `repr(value)` says.
pub(super) fn repr(value: &Value) -> String {
    let mut out = String::new();
    write_repr(&mut out, value);
    out
}

/// What `repr` says of the list of words an enum has.
pub(super) fn repr_all<T: Word>() -> String {
    repr_words(T::VALUES.iter().map(|value| value.word()))
}

/// What `repr` says of a list of these strings.
pub(super) fn repr_words<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let mut out = String::from("[");
    for (position, word) in words.into_iter().enumerate() {
        out.push_str(if position > 0 { ", " } else { "" });
        write_text(&mut out, word);
    }
    out.push(']');
    out
}

/// What `int(text)` says of text without a minus sign; numbers too large for `u64` are given as its maximum.
pub(super) fn int(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.strip_prefix('+').unwrap_or(text);
    let mut number: u64 = 0;
    // Underscores may stand between digits, one at a time.
    for group in digits.split('_') {
        if group.is_empty() {
            return None;
        }
        for byte in group.bytes() {
            let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
            number = number.saturating_mul(10).saturating_add(digit);
        }
    }
    Some(number)
}

/// Recurses as deep as the value is nested; the JSON parser allows 128 levels.
fn write_repr(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_text(out, text),
        Value::Array(items) => {
            out.push('[');
            for (position, item) in items.iter().enumerate() {
                out.push_str(if position > 0 { ", " } else { "" });
                write_repr(out, item);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (position, (key, item)) in members.iter().enumerate() {
                out.push_str(if position > 0 { ", " } else { "" });
                write_text(out, key);
                out.push_str(": ");
                write_repr(out, item);
            }
            out.push('}');
        }
    }
}

fn write_number(out: &mut String, number: &Number) {
    match number.as_f64() {
        Some(value) if number.is_f64() => push_float(out, value),
        _ => out.push_str(&number.to_string()),
    }
}

fn write_text(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for char in text.chars() {
        match char {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if char == quote => out.extend(['\\', char]),
            // All control characters are below U+0100. Writing to a string does not fail.
            _ if char.is_control() => {
                let _ = write!(out, "\\x{:02x}", u32::from(char));
            }
            _ => out.push(char),
        }
    }
    out.push(quote);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_print_as_in_python() {
        let cases = [
            (json!(null), "None"),
            (json!(true), "True"),
            (json!(false), "False"),
            (json!(-7), "-7"),
            (json!(u64::MAX), "18446744073709551615"),
            (json!(1.5), "1.5"),
            (json!(2.0), "2.0"),
            (json!(-0.0), "-0.0"),
            (json!(1e15), "1000000000000000.0"),
            (json!(1e16), "1e+16"),
            (json!(1.25e300), "1.25e+300"),
            (json!(0.0001), "0.0001"),
            (json!(0.00001), "1e-05"),
            (json!("a"), "'a'"),
            (json!("it's"), "\"it's\""),
            (json!("'\""), "'\\'\"'"),
            (json!("\\\n\t\r\u{7f}\u{0}语"), "'\\\\\\n\\t\\r\\x7f\\x00语'"),
            (json!([]), "[]"),
            (json!([1, "a", [null]]), "[1, 'a', [None]]"),
            (json!({}), "{}"),
            (json!({"b": 1, "a": {"c": []}}), "{'b': 1, 'a': {'c': []}}"),
        ];
        for (value, expected) in cases {
            assert_eq!(repr(&value), expected);
        }
        assert_eq!(str(&json!("it's")), "it's");
        assert_eq!(str(&json!(["a"])), "['a']");
        assert_eq!(repr_words([]), "[]");
        assert_eq!(repr_words(["a", "b"]), "['a', 'b']");
    }

    #[test]
    fn empty_things_are_false() {
        for value in [json!(null), json!(false), json!(0), json!(0.0), json!(""), json!([]), json!({})] {
            assert!(!truthy(&value), "{value}");
        }
        for value in [json!(true), json!(-1), json!(0.1), json!("0"), json!([0]), json!({"a": 0})] {
            assert!(truthy(&value), "{value}");
        }
    }

    #[test]
    fn types_have_their_python_names() {
        let names = [json!(null), json!(true), json!(1), json!(1.0), json!(""), json!([]), json!({})];
        let names = names.map(|value| type_name(&value));
        assert_eq!(names, ["NoneType", "bool", "int", "float", "str", "list", "dict"]);
    }

    #[test]
    fn int_reads_what_python_reads() {
        for (text, expected) in [
            ("0", Some(0)),
            ("007", Some(7)),
            (" 3 ", Some(3)),
            ("+3", Some(3)),
            ("1_000", Some(1000)),
            ("99999999999999999999999", Some(u64::MAX)),
            ("", None),
            (" ", None),
            ("+", None),
            ("_1", None),
            ("1_", None),
            ("1__0", None),
            ("1.0", None),
            ("0x1", None),
            ("1 0", None),
            ("a", None),
        ] {
            assert_eq!(int(text), expected, "{text:?}");
        }
    }
}
