//! JSON text exactly as Python's `json.dumps` writes it, with `indent=1` unless told otherwise.
//!
//! The text of one value is built in one string, front to back, without a tree in between: it runs once per tensor
//! of a training step. The caller keeps the grammar (a key before each member, an end for each beginning).

use std::fmt::Write as _;
use std::io;

use crate::python_text;

const BLANKS: &str = "                                                                ";

/// The text of one JSON value, nested `depth` levels deep in its document: its first line is not indented, the
/// lines after it are indented as they are at that depth.
#[derive(Debug, Clone, Default)]
pub struct JsonText {
    text: String,
    /// Containers that are open, those of the document included.
    depth: usize,
    /// Containers that are open in this text.
    level: usize,
    /// Blanks per level, beyond the first.
    more_indent: usize,
    /// All on one line, with a blank behind each comma.
    one_line: bool,
    /// The innermost container has no element yet.
    fresh: bool,
    /// A key waits for its value.
    keyed: bool,
}

impl JsonText {
    /// An empty text for a value that lies `depth` containers deep.
    pub fn new(depth: usize) -> JsonText {
        JsonText { depth, ..JsonText::default() }
    }

    /// An empty text with memory for `bytes`.
    pub fn with_capacity(depth: usize, bytes: usize) -> JsonText {
        JsonText { text: String::with_capacity(bytes), depth, ..JsonText::default() }
    }

    /// An empty text of a document of its own, with this `indent` (at least one).
    pub fn indented(indent: usize) -> JsonText {
        JsonText { more_indent: indent.saturating_sub(1), ..JsonText::default() }
    }

    /// An empty text without lines, as `json.dumps` writes it by itself.
    pub fn on_one_line() -> JsonText {
        JsonText { one_line: true, ..JsonText::default() }
    }

    /// `{`
    pub fn begin_object(&mut self) {
        self.begin('{');
    }

    /// The key of a member, whose value is to follow.
    pub fn key(&mut self, key: &str) {
        self.next_line();
        push_string(&mut self.text, key);
        self.text.push_str(": ");
        self.keyed = true;
    }

    /// `}`
    pub fn end_object(&mut self) {
        self.end('}');
    }

    /// `[`
    pub fn begin_array(&mut self) {
        self.begin('[');
    }

    /// `]`
    pub fn end_array(&mut self) {
        self.end(']');
    }

    /// `null`
    pub fn null(&mut self) {
        self.raw("null");
    }

    /// `true` or `false`
    pub fn bool(&mut self, value: bool) {
        self.raw(if value { "true" } else { "false" });
    }

    /// An integer.
    pub fn int(&mut self, value: i128) {
        self.place_value();
        // Writing to a string does not fail, here and below.
        let _ = write!(self.text, "{value}");
    }

    /// A float, with the tokens `NaN`, `Infinity` and `-Infinity` that Python writes and reads.
    pub fn float(&mut self, value: f64) {
        self.place_value();
        push_float(&mut self.text, value);
    }

    /// A string.
    pub fn string(&mut self, value: &str) {
        self.place_value();
        push_string(&mut self.text, value);
    }

    /// A value that is text already, encoded for the depth it stands at.
    pub fn raw(&mut self, value: &str) {
        self.place_value();
        self.text.push_str(value);
    }

    /// A text for members of the object that is open here, to be written elsewhere and put in by
    /// [`JsonText::add_members`]. No comma stands before the first members of an object. The memory of `room` is used,
    /// whatever stands in it.
    #[must_use]
    pub fn for_members(&self, are_first: bool, mut room: String) -> JsonText {
        room.clear();
        JsonText {
            text: room,
            depth: self.depth + self.level,
            level: 0,
            fresh: are_first,
            keyed: false,
            ..*self
        }
    }

    /// Puts in members that were written elsewhere, in a text of [`JsonText::for_members`].
    pub fn add_members(&mut self, members: &str) {
        self.text.push_str(members);
        self.fresh &= members.is_empty();
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether nothing was added yet.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Gives away what was written so far, so that a long text is never in memory as a whole.
    pub fn flush_to(&mut self, out: &mut dyn io::Write) -> io::Result<()> {
        out.write_all(self.text.as_bytes())?;
        self.text.clear();
        Ok(())
    }

    /// The text.
    pub fn finish(self) -> String {
        self.text
    }

    fn begin(&mut self, bracket: char) {
        self.place_value();
        self.text.push(bracket);
        self.level += 1;
        self.fresh = true;
    }

    fn end(&mut self, bracket: char) {
        self.level = self.level.saturating_sub(1);
        if !self.fresh && !self.one_line {
            self.break_line();
        }
        self.text.push(bracket);
        self.fresh = false;
    }

    /// Goes to where the next value belongs: behind its key, on a line of its own, or right here at the top.
    fn place_value(&mut self) {
        if self.keyed {
            self.keyed = false;
        } else if self.level > 0 {
            self.next_line();
        }
    }

    fn next_line(&mut self) {
        let is_first = std::mem::take(&mut self.fresh);
        if !is_first {
            self.text.push(',');
        }
        match (self.one_line, is_first) {
            (false, _) => self.break_line(),
            (true, false) => self.text.push(' '),
            (true, true) => {}
        }
    }

    fn break_line(&mut self) {
        self.text.push('\n');
        push_blanks(&mut self.text, (self.depth + self.level) * (1 + self.more_indent));
    }
}

/// Adds this many blanks.
pub(super) fn push_blanks(out: &mut String, mut count: usize) {
    while count > 0 {
        let run = count.min(BLANKS.len());
        out.push_str(&BLANKS[..run]);
        count -= run;
    }
}

/// Adds a float as Python prints it: of the shortest digits those next to the value, and of two that are as near the
/// even one; exponents from 1e16 and below 1e-4, with two digits at least.
fn push_float(out: &mut String, value: f64) {
    if value.is_nan() {
        out.push_str("NaN");
    } else if value.is_infinite() {
        out.push_str(if value > 0.0 { "Infinity" } else { "-Infinity" });
    } else {
        python_text::push_float(out, value);
    }
}

/// Adds a string in quotes, everything outside printable ASCII escaped.
pub(super) fn push_string(out: &mut String, value: &str) {
    out.push('"');
    // Nearly every string is plain, and looking at all of its bytes at once is quicker than stopping early.
    if value.bytes().fold(true, |plain, byte| plain & is_plain(byte)) {
        out.push_str(value);
        out.push('"');
        return;
    }
    let mut rest = value;
    while let Some(at) = rest.bytes().position(|byte| !is_plain(byte)) {
        out.push_str(&rest[..at]);
        let mut chars = rest[at..].chars();
        if let Some(char) = chars.next() {
            push_escaped(out, char);
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    out.push('"');
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

fn push_escaped(out: &mut String, char: char) {
    match char {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        _ => {
            for unit in char.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn put(text: &mut JsonText, value: &Value) {
        match value {
            Value::Null => text.null(),
            Value::Bool(value) => text.bool(*value),
            Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(int), _) => text.int(int.into()),
                (_, Some(int)) => text.int(int.into()),
                _ => text.float(number.as_f64().unwrap()),
            },
            Value::String(value) => text.string(value),
            Value::Array(items) => {
                text.begin_array();
                for item in items {
                    put(text, item);
                }
                text.end_array();
            }
            Value::Object(members) => {
                text.begin_object();
                for (key, item) in members {
                    text.key(key);
                    put(text, item);
                }
                text.end_object();
            }
        }
    }

    fn encoded(value: &Value, depth: usize) -> String {
        let mut text = JsonText::new(depth);
        put(&mut text, value);
        assert_eq!(text.len(), text.clone().finish().len());
        text.finish()
    }

    /// What is meant, with an allocation for every thought.
    fn naive(value: &Value, depth: usize) -> String {
        let line = |text: String| format!("\n{}{text}", " ".repeat(depth + 1));
        let last = format!("\n{}", " ".repeat(depth));
        let string = |text: &str| {
            let units = text.chars().map(|char| match char {
                '"' | '\\' => format!("\\{char}"),
                ' '..='~' => char.to_string(),
                '\u{8}' => "\\b".into(),
                '\u{c}' => "\\f".into(),
                '\n' | '\r' | '\t' => char.escape_default().to_string(),
                _ => char.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
            });
            format!("\"{}\"", units.collect::<String>())
        };
        match value {
            Value::Number(number) if number.is_f64() => naive_float(number.as_f64().unwrap()),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
            Value::String(text) => string(text),
            Value::Array(items) if items.is_empty() => "[]".into(),
            Value::Array(items) => {
                let lines: Vec<String> = items.iter().map(|item| line(naive(item, depth + 1))).collect();
                format!("[{}{last}]", lines.join(","))
            }
            Value::Object(members) if members.is_empty() => "{}".into(),
            Value::Object(members) => {
                let lines = members
                    .iter()
                    .map(|(key, item)| line(format!("{}: {}", string(key), naive(item, depth + 1))));
                format!("{{{}{last}}}", lines.collect::<Vec<_>>().join(","))
            }
        }
    }

    #[test]
    fn members_may_be_written_elsewhere() {
        for empty in [JsonText::indented(4), JsonText::on_one_line(), JsonText::new(2)] {
            let (mut whole, mut pieces) = (empty.clone(), empty);
            for text in [&mut whole, &mut pieces] {
                text.begin_object();
                text.key("outer");
                text.begin_object();
            }
            for (at, name) in ["a", "b", "c"].into_iter().enumerate() {
                let write = |text: &mut JsonText| {
                    text.key(name);
                    text.begin_array();
                    text.int(at as i128);
                    text.end_array();
                };
                write(&mut whole);
                let mut members = pieces.for_members(at == 0, "an old text".to_owned());
                write(&mut members);
                pieces.add_members(&members.finish());
            }
            for text in [&mut whole, &mut pieces] {
                text.end_object();
                text.end_object();
            }
            assert_eq!(pieces.finish(), whole.finish());
        }
    }

    /// Python's `repr`: as few digits as tell the number, those nearest to it, the even one of two as near.
    fn naive_float(value: f64) -> String {
        let fewest = format!("{value:e}");
        let count = fewest.split('e').next().unwrap().trim_start_matches('-').replace('.', "").len();
        let nearest = format!("{value:.*e}", count - 1);
        let written = if nearest.parse() == Ok(value) { nearest } else { fewest };
        let (mantissa, exponent) = written.split_once('e').unwrap();
        let exponent: i32 = exponent.parse().unwrap();
        if exponent >= 16 || (exponent < -4 && value != 0.0) {
            let sign = if exponent < 0 { '-' } else { '+' };
            return format!("{mantissa}e{sign}{:02}", exponent.abs());
        }
        let sign = if value.is_sign_negative() { "-" } else { "" };
        let mut digits = mantissa.trim_start_matches('-').replace('.', "");
        let point = if exponent < 0 {
            digits.insert_str(0, &"0".repeat(exponent.unsigned_abs() as usize));
            1
        } else {
            exponent as usize + 1
        };
        while digits.len() <= point {
            digits.push('0');
        }
        format!("{sign}{}.{}", &digits[..point], &digits[point..])
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<f32>().prop_map(|value| Value::from(f64::from(value))),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 60, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn text_is_what_was_meant(value in any_json(), depth in 0usize..100) {
            let text = encoded(&value, depth);
            prop_assert_eq!(&text, &naive(&value, depth));
            prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap().to_string(), value.to_string());
        }
    }

    /// Values as strict JSON and as Python wrote them; made by `tests/fixtures/make_json_text.py`.
    #[test]
    fn text_is_what_python_writes() {
        let cases: Vec<(Value, String)> =
            serde_json::from_str(include_str!("../../tests/fixtures/json_text.json")).unwrap();
        assert!(cases.len() > 20);
        for (value, expected) in &cases {
            assert_eq!(&encoded(value, 0), expected);
        }
    }

    #[test]
    fn floats_are_what_python_writes() {
        let cases: Vec<(String, String)> =
            serde_json::from_str(include_str!("../../tests/fixtures/json_floats.json")).unwrap();
        assert!(cases.len() > 200);
        for (bits, expected) in &cases {
            let mut text = JsonText::new(0);
            text.float(f64::from_bits(u64::from_str_radix(bits, 16).unwrap()));
            assert_eq!(&text.finish(), expected, "{bits}");
        }
        // Exactly between two numbers of 17 digits, as widened float32 often are.
        let mut text = JsonText::new(0);
        text.float(f64::from(1.614_814_8_f32));
        assert_eq!(text.finish(), "1.6148147583007812");
    }

    #[test]
    fn documents_may_be_indented_further_and_given_away_in_pieces() {
        let mut out = Vec::new();
        let mut json = JsonText::indented(2);
        json.begin_object();
        json.key("é\"\u{1f600}\u{1}");
        json.float(f64::NAN);
        json.key("inf");
        json.float(f64::NEG_INFINITY);
        json.flush_to(&mut out).unwrap();
        json.key("tiny");
        json.float(1e-7);
        json.key("none");
        json.null();
        json.key("no frames");
        json.begin_array();
        json.end_array();
        json.key("frames");
        json.begin_array();
        json.string("a\n");
        json.flush_to(&mut out).unwrap();
        json.string("b");
        json.end_array();
        json.key("empty");
        json.begin_object();
        json.end_object();
        json.end_object();
        json.flush_to(&mut out).unwrap();
        let expected = r#"{
  "\u00e9\"\ud83d\ude00\u0001": NaN,
  "inf": -Infinity,
  "tiny": 1e-07,
  "none": null,
  "no frames": [],
  "frames": [
    "a\n",
    "b"
  ],
  "empty": {}
}"#;
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn raw_values_take_the_place_of_built_ones() {
        let mut inner = JsonText::new(1);
        inner.begin_array();
        inner.int(i128::from(u64::MAX) + 1);
        inner.end_array();
        let mut text = JsonText::with_capacity(0, 64);
        assert!(text.is_empty());
        text.begin_object();
        text.key("a");
        text.raw(&inner.finish());
        text.key("b");
        text.begin_array();
        text.raw("1");
        text.raw("2");
        text.end_array();
        text.end_object();
        let expected = "{\n \"a\": [\n  18446744073709551616\n ],\n \"b\": [\n  1,\n  2\n ]\n}";
        assert_eq!(text.finish(), expected);
    }
}
