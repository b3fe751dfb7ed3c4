//! Values as Python's `str` and `repr` write them: old tables are full of them, and messages quote settings in that form.

use std::fmt::Write;

use msprobe_tensor::digits;

use crate::read::Json;

/// `repr` of a float: the shortest digits that read back, an exponent below 1e-4 and from 1e16 on.
pub fn float_repr(value: f64) -> String {
    let mut text = String::new();
    push_float(&mut text, value);
    text
}

/// Appends `repr` of a float.
pub fn push_float(text: &mut String, value: f64) {
    digits::push_repr_text(text, value);
}

/// `str` of a JSON value as Python's parser would give it.
pub fn python_str(value: &Json<'_>) -> String {
    match value {
        Json::Text(text) => text.clone().into_owned(),
        other => python_repr(other),
    }
}

/// `repr` of a JSON value as Python's parser would give it.
pub fn python_repr(value: &Json<'_>) -> String {
    let mut text = String::new();
    push_repr(&mut text, value);
    text
}

/// Appends `repr` of a JSON value.
pub fn push_repr(text: &mut String, value: &Json<'_>) {
    match value {
        Json::Null => text.push_str("None"),
        Json::Bool(true) => text.push_str("True"),
        Json::Bool(false) => text.push_str("False"),
        Json::Int(number) => {
            let _ = write!(text, "{number}");
        }
        Json::Float(number) => push_float(text, *number),
        Json::Text(string) => push_quoted(text, string),
        Json::List(elements) => {
            text.push('[');
            for (index, element) in elements.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                push_repr(text, element);
            }
            text.push(']');
        }
        Json::Map(members) => {
            text.push('{');
            for (index, (key, member)) in members.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                push_quoted(text, key);
                text.push_str(": ");
                push_repr(text, member);
            }
            text.push('}');
        }
    }
}

/// `repr` of a list of strings.
pub fn list_of_texts<S: AsRef<str>>(texts: impl IntoIterator<Item = S>) -> String {
    let mut text = String::from("[");
    for (index, element) in texts.into_iter().enumerate() {
        text.push_str(if index > 0 { ", " } else { "" });
        push_quoted(&mut text, element.as_ref());
    }
    text.push(']');
    text
}

/// `repr` of a string: single quotes unless only they occur in it.
fn push_quoted(text: &mut String, string: &str) {
    let quote = if string.contains('\'') && !string.contains('"') { '"' } else { '\'' };
    text.push(quote);
    for character in string.chars() {
        let _ = match character {
            '\\' => text.write_str("\\\\"),
            '\n' => text.write_str("\\n"),
            '\r' => text.write_str("\\r"),
            '\t' => text.write_str("\\t"),
            _ if character == quote => write!(text, "\\{quote}"),
            _ if (character as u32) < 0x20 || (0x7f..0xa0).contains(&(character as u32)) => {
                write!(text, "\\x{:02x}", character as u32)
            }
            _ => text.write_char(character),
        };
    }
    text.push(quote);
}

/// The class Python's parser gives a value.
pub fn python_class(value: &Json<'_>) -> &'static str {
    match value {
        Json::Null => "<class 'NoneType'>",
        Json::Bool(_) => "<class 'bool'>",
        Json::Int(_) => "<class 'int'>",
        Json::Float(_) => "<class 'float'>",
        Json::Text(_) => "<class 'str'>",
        Json::List(_) => "<class 'list'>",
        Json::Map(_) => "<class 'dict'>",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_python_does() {
        let cases = [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (1e-5, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (1e16, "1e+16"),
            (123_456_789.125, "123456789.125"),
            (0.0001, "0.0001"),
            (5e-324, "5e-324"),
            (33.333_333_333_333_33, "33.33333333333333"),
            (f64::INFINITY, "inf"),
        ];
        for (value, text) in cases {
            assert_eq!(float_repr(value), text);
        }
    }

    #[test]
    fn lists_are_written_as_python_does() {
        assert_eq!(list_of_texts(["a.pt", "it's"]), "['a.pt', \"it's\"]");
        assert_eq!(list_of_texts(["l1 \n x"]), "['l1 \\n x']");
        let value = Json::parse(b"[1, 2.0, null, true, {\"a\": \"b\"}]").unwrap();
        assert_eq!(python_str(&value), "[1, 2.0, None, True, {'a': 'b'}]");
    }
}
