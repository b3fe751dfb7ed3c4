//! JSON values as Python sees and prints them, because messages quote them in that form.

use serde_json::Value;

use crate::python_text::{list_of_texts, python_repr, python_str};
use crate::read::Json;
use crate::words::Word;

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
    python_str(&json(value))
}

/// What `repr(value)` says.
pub(super) fn repr(value: &Value) -> String {
    python_repr(&json(value))
}

/// What `repr` says of the list of words an enum has.
pub(super) fn repr_all<T: Word>() -> String {
    list_of_texts(T::VALUES.iter().map(|value| value.word()))
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
fn json(value: &Value) -> Json<'_> {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Number(number) => match (number.is_f64(), number.as_i128()) {
            (false, Some(value)) => Json::Int(value),
            _ => Json::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Json::Text(text.into()),
        Value::Array(items) => Json::List(items.iter().map(json).collect()),
        Value::Object(members) => {
            Json::Map(members.iter().map(|(key, item)| (key.into(), json(item))).collect())
        }
    }
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
        assert_eq!(list_of_texts([""; 0]), "[]");
        assert_eq!(list_of_texts(["a", "b"]), "['a', 'b']");
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
