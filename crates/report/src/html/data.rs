//! The data of views as script elements, which the page's program reads.

use std::io::{self, Write};

use serde_json::Value;

/// Writes views one after the other, and the pieces of the last of them.
pub(super) struct DataWriter<'a> {
    out: &'a mut dyn Write,
    views: usize,
}

impl<'a> DataWriter<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> DataWriter<'a> {
        DataWriter { out, views: 0 }
    }

    /// Begins a view: its kind, and a description with `name` and `count` for its tab.
    pub(super) fn view(&mut self, kind: &str, described: &Value) -> io::Result<()> {
        self.views += 1;
        let open = format!("<script type=\"application/json\" class=\"view\" data-kind=\"{kind}\">");
        self.out.write_all(&element(&open, described.to_string().as_bytes()))
    }

    /// The number of the view that was begun last, for [`piece`].
    pub(super) fn number(&self) -> usize {
        self.views.saturating_sub(1)
    }

    /// Appends a piece of the last view.
    pub(super) fn append(&mut self, piece: &[u8]) -> io::Result<()> {
        self.out.write_all(piece)
    }
}

/// A piece of a view as the element it is written in.
pub(super) fn piece(view: usize, json: &[u8]) -> Vec<u8> {
    element(&format!("<script type=\"application/json\" class=\"piece\" data-view=\"{view}\">"), json)
}

fn element(open: &str, json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(open.len() + json.len() + 16);
    out.extend_from_slice(open.as_bytes());
    push_for_script(&mut out, json);
    out.extend_from_slice(b"</script>\n");
    out
}

/// Copies JSON and writes as `\uHHHH` what could be taken for markup or for the end of a line of script. Outside of
/// strings JSON has none of these.
fn push_for_script(out: &mut Vec<u8>, json: &[u8]) {
    let mut copied = 0;
    for (at, &byte) in json.iter().enumerate() {
        let (taken, replacement): (usize, &[u8]) = match byte {
            b'<' => (1, b"\\u003c"),
            b'>' => (1, b"\\u003e"),
            b'&' => (1, b"\\u0026"),
            0xE2 if json[at..].starts_with("\u{2028}".as_bytes()) => (3, b"\\u2028"),
            0xE2 if json[at..].starts_with("\u{2029}".as_bytes()) => (3, b"\\u2029"),
            _ => continue,
        };
        out.extend_from_slice(&json[copied..at]);
        out.extend_from_slice(replacement);
        copied = at + taken;
    }
    out.extend_from_slice(&json[copied..]);
}
