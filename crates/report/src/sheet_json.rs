//! A long table as a JSON array with one object per line, made in pieces on all cores.

use std::io::{self, Write};

use crate::json::not_finite;
use crate::number::{push_integer, push_repr};
use crate::ordered::{in_order, rows_per_piece};
use crate::sheet::{CellSink, Sheet};

/// Writes `[`, one object of header and value per line, `]`. Empty cells are `null`; headers that occur twice get a
/// number, so that no value is lost.
pub fn write_sheet_json(sheet: &Sheet<'_>, mut out: impl Write) -> io::Result<()> {
    let keys = keys(&sheet.headers);
    out.write_all(b"[")?;
    in_order(
        0..sheet.rows.len(),
        rows_per_piece(keys.len()),
        |rows| {
            let mut piece = Vec::with_capacity(rows.len() * keys.len() * 24);
            for row in rows {
                piece.extend_from_slice(if row == 0 { b"\n" } else { b",\n" });
                let mut object = Object { out: &mut piece, keys: &keys, next: 0 };
                sheet.rows.cells(row, &mut object);
                object.close();
            }
            piece
        },
        |piece| out.write_all(&piece),
    )?;
    out.write_all(b"\n]\n")?;
    out.flush()
}

/// `{"first":`, `,"second":`, …
fn keys(headers: &[String]) -> Vec<Vec<u8>> {
    let mut seen: Vec<String> = Vec::with_capacity(headers.len());
    for header in headers {
        let mut key = header.clone();
        let mut number = 2;
        while seen.contains(&key) {
            key = format!("{header}_{number}");
            number += 1;
        }
        seen.push(key);
    }
    let separators = std::iter::once(b'{').chain(std::iter::repeat(b','));
    seen.iter()
        .zip(separators)
        .map(|(key, separator)| {
            let mut out = vec![separator];
            push_string(&mut out, key);
            out.push(b':');
            out
        })
        .collect()
}

struct Object<'a> {
    out: &'a mut Vec<u8>,
    keys: &'a [Vec<u8>],
    next: usize,
}

impl Object<'_> {
    /// The key of a cell. False where there is no column for it.
    fn start(&mut self) -> bool {
        let Some(key) = self.keys.get(self.next) else {
            return false;
        };
        self.next += 1;
        self.out.extend_from_slice(key);
        true
    }

    fn close(mut self) {
        if self.keys.is_empty() {
            self.out.push(b'{');
        }
        while self.next < self.keys.len() {
            self.empty();
        }
        self.out.push(b'}');
    }
}

impl CellSink for Object<'_> {
    fn empty(&mut self) {
        if self.start() {
            self.out.extend_from_slice(b"null");
        }
    }

    fn text(&mut self, text: &str) {
        if self.start() {
            push_string(self.out, text);
        }
    }

    fn number(&mut self, value: f64) {
        if !self.start() {
            return;
        }
        if value.is_finite() {
            push_repr(self.out, value);
        } else {
            push_string(self.out, not_finite(value));
        }
    }

    fn integer(&mut self, value: i128) {
        if self.start() {
            push_integer(self.out, value);
        }
    }
}

/// A string in quotes, with what JSON wants escaped.
pub(crate) fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut copied = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[copied..at]);
        copied = at + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\r' => out.extend_from_slice(b"\\r"),
            _ => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
        }
    }
    out.extend_from_slice(&bytes[copied..]);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::sheet::SheetRows;

    struct Rows(usize);

    impl SheetRows for Rows {
        fn len(&self) -> usize {
            self.0
        }

        fn cells(&self, row: usize, sink: &mut dyn CellSink) {
            sink.text("a\"\\\n\t\r\u{1}\u{7f}权");
            sink.number(row as f64 / 4.0);
            sink.number(f64::INFINITY);
            sink.integer(-3);
        }
    }

    fn written(headers: &[&str], rows: usize) -> String {
        let headers = headers.iter().map(|&header| header.into()).collect();
        let mut out = Vec::new();
        write_sheet_json(&Sheet { name: "s".into(), headers, rows: &Rows(rows) }, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn is_json_with_one_object_per_line() {
        let text = written(&["te\"xt", "value", "value", "n", "none"], 10_000);
        let back: Vec<Value> = serde_json::from_str(&text).unwrap();
        assert_eq!(back.len(), 10_000);
        for (row, value) in back.iter().enumerate() {
            let expected = json!({"te\"xt": "a\"\\\n\t\r\u{1}\u{7f}权", "value": row as f64 / 4.0, "value_2": "Infinity", "n": -3, "none": null});
            assert_eq!(*value, expected);
        }
        assert_eq!(text.lines().count(), 10_002);
    }

    #[test]
    fn no_rows_and_no_columns_are_json_too() {
        assert_eq!(serde_json::from_str::<Value>(&written(&["a"], 0)).unwrap(), json!([]));
        assert_eq!(serde_json::from_str::<Value>(&written(&[], 2)).unwrap(), json!([{}, {}]));
    }
}
