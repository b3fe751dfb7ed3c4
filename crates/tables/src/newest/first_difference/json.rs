//! JSON as Python's `json.dump` lays it out with an indentation: ASCII only, and numbers that JSON does not know.

use std::io::{self, Write};

use msprobe_compare::python_text::float_repr;
use msprobe_compare::side::Scalar;

/// A value without members.
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(&'a str),
    Texts(&'a [Box<str>]),
}

impl<'a> From<&'a Scalar> for Value<'a> {
    fn from(scalar: &'a Scalar) -> Value<'a> {
        match scalar {
            Scalar::Null => Value::Null,
            Scalar::Bool(value) => Value::Bool(*value),
            Scalar::Int(value) => Value::Int(*value),
            Scalar::Large(value) => Value::Float(**value as f64),
            Scalar::Float(value) => Value::Float(*value),
            Scalar::Text(text) => Value::Text(text),
        }
    }
}

/// Writes maps and lists as they come, whatever their size.
pub(super) struct JsonWriter<'w> {
    out: &'w mut dyn Write,
    indent: usize,
    /// What is open, outermost first: how it closes, and whether it has members already.
    open: Vec<(&'static str, bool)>,
    /// A key was written, so that its value belongs behind it.
    after_key: bool,
}

impl<'w> JsonWriter<'w> {
    pub(super) fn new(out: &'w mut dyn Write, indent: usize) -> JsonWriter<'w> {
        JsonWriter { out, indent, open: Vec::new(), after_key: false }
    }

    pub(super) fn begin_map(&mut self) -> io::Result<()> {
        self.begin("{", "}")
    }

    pub(super) fn begin_list(&mut self) -> io::Result<()> {
        self.begin("[", "]")
    }

    /// Closes the innermost map or list.
    pub(super) fn end(&mut self) -> io::Result<()> {
        let Some((close, has_members)) = self.open.pop() else { return Ok(()) };
        if has_members {
            self.new_line()?;
        }
        self.out.write_all(close.as_bytes())
    }

    pub(super) fn key(&mut self, key: &str) -> io::Result<()> {
        self.place()?;
        self.text(key)?;
        self.out.write_all(b": ")?;
        self.after_key = true;
        Ok(())
    }

    pub(super) fn member(&mut self, key: &str, value: &Value<'_>) -> io::Result<()> {
        self.key(key)?;
        self.value(value)
    }

    fn value(&mut self, value: &Value<'_>) -> io::Result<()> {
        if let Value::Texts(texts) = value {
            self.begin_list()?;
            for text in *texts {
                self.value(&Value::Text(text))?;
            }
            return self.end();
        }
        self.place()?;
        match value {
            Value::Bool(value) => write!(self.out, "{value}"),
            Value::Int(value) => write!(self.out, "{value}"),
            Value::Float(value) if value.is_nan() => self.out.write_all(b"NaN"),
            Value::Float(value) if value.is_infinite() => {
                self.out.write_all(if *value > 0.0 { b"Infinity" } else { b"-Infinity" })
            }
            Value::Float(value) => self.out.write_all(float_repr(*value).as_bytes()),
            Value::Text(text) => self.text(text),
            Value::Null | Value::Texts(_) => self.out.write_all(b"null"),
        }
    }

    fn begin(&mut self, open: &str, close: &'static str) -> io::Result<()> {
        self.place()?;
        self.out.write_all(open.as_bytes())?;
        self.open.push((close, false));
        Ok(())
    }

    /// Goes to where the next key or value belongs.
    fn place(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.after_key) {
            return Ok(());
        }
        let Some((_, has_members)) = self.open.last_mut() else { return Ok(()) };
        if std::mem::replace(has_members, true) {
            self.out.write_all(b",")?;
        }
        self.new_line()
    }

    fn new_line(&mut self) -> io::Result<()> {
        write!(self.out, "\n{:width$}", "", width = self.open.len() * self.indent)
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(b"\"")?;
        for character in text.chars() {
            match character {
                '"' => self.out.write_all(b"\\\"")?,
                '\\' => self.out.write_all(b"\\\\")?,
                '\n' => self.out.write_all(b"\\n")?,
                '\r' => self.out.write_all(b"\\r")?,
                '\t' => self.out.write_all(b"\\t")?,
                '\u{8}' => self.out.write_all(b"\\b")?,
                '\u{c}' => self.out.write_all(b"\\f")?,
                ' '..='~' => self.out.write_all(&[character as u8])?,
                other => {
                    for unit in other.encode_utf16(&mut [0; 2]) {
                        write!(self.out, "\\u{unit:04x}")?;
                    }
                }
            }
        }
        self.out.write_all(b"\"")
    }
}
