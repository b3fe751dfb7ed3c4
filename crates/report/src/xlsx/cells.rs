//! Rows and cells as worksheet XML.

use crate::Tone;
use crate::number::{not_finite, push_integer};
use crate::sheet::CellSink;

/// The longest text of a cell, in UTF-16 units.
const LONGEST_TEXT: usize = 32_767;
/// What stands at the end of a text that was cut.
const CUT_MARK: &str = "… [cut]";
/// Whole numbers up to here are exact in a cell.
const EXACT_INTEGER: i128 = 1 << 53;

/// The tones whose rows have a background, in the order of their styles.
pub(super) const COLOURED: [Tone; 3] = [Tone::Bad, Tone::Warning, Tone::Unknown];

/// Style of a cell: no background and that of each tone, each without and with the mark "this is text, do not evaluate
/// it".
pub(super) fn style(tone: Tone, quoted: bool) -> u8 {
    let background = COLOURED.iter().position(|&coloured| coloured == tone).map_or(0, |at| at as u8 + 1);
    background * 2 + u8::from(quoted)
}

/// `A`, `B`, … `Z`, `AA`, …
pub(super) fn column_name(index: usize) -> String {
    let mut name = Vec::new();
    let mut rest = index + 1;
    while rest > 0 {
        rest -= 1;
        name.push(b'A' + (rest % 26) as u8);
        rest /= 26;
    }
    name.iter().rev().map(|&letter| char::from(letter)).collect()
}

/// Takes the cells of a row and appends their XML.
pub(super) struct RowXml<'a> {
    out: &'a mut Vec<u8>,
    /// Beginnings of cells: `<c r="A`, `<c r="B`, …
    starts: &'a [String],
    tone: Tone,
    next: usize,
    /// What follows the column in a cell: the number of the row and the closing quote.
    row_end: [u8; 24],
    row_end_len: usize,
}

impl<'a> RowXml<'a> {
    /// Opens the row of that number, counted from 1.
    pub(super) fn open(out: &'a mut Vec<u8>, starts: &'a [String], number: usize, tone: Tone) -> RowXml<'a> {
        let mut row_end = [0; 24];
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(number).as_bytes();
        row_end[..digits.len()].copy_from_slice(digits);
        row_end[digits.len()] = b'"';
        let row_end_len = digits.len() + 1;
        out.extend_from_slice(b"<row r=\"");
        out.extend_from_slice(&row_end[..row_end_len]);
        out.push(b'>');
        RowXml { out, starts, tone, next: 0, row_end, row_end_len }
    }

    /// Closes it; a coloured row is filled up to its end.
    pub(super) fn close(mut self) {
        while self.next < self.starts.len() {
            self.empty();
        }
        self.out.extend_from_slice(b"</row>");
    }

    /// Everything up to the type of the cell. False where there is no column for it.
    fn start(&mut self, quoted: bool) -> bool {
        let Some(start) = self.starts.get(self.next) else {
            return false;
        };
        self.next += 1;
        self.out.extend_from_slice(start.as_bytes());
        self.out.extend_from_slice(&self.row_end[..self.row_end_len]);
        let style = style(self.tone, quoted);
        if style > 0 {
            self.out.extend_from_slice(b" s=\"");
            self.out.extend_from_slice(&[b'0' + style, b'"']);
        }
        true
    }

    /// A header: text without any style.
    pub(super) fn title(&mut self, text: &str) {
        if self.start(false) {
            self.push_text(text, text.trim() != text);
        }
    }

    /// The rest of a cell of text. `padded` keeps blanks at its ends.
    fn push_text(&mut self, text: &str, padded: bool) {
        self.out.extend_from_slice(if padded {
            b" t=\"inlineStr\"><is><t xml:space=\"preserve\">"
        } else {
            b" t=\"inlineStr\"><is><t>"
        });
        let kept = cut(text);
        push_escaped(self.out, kept);
        if kept.len() < text.len() {
            self.out.extend_from_slice(CUT_MARK.as_bytes());
        }
        self.out.extend_from_slice(b"</t></is></c>");
    }
}

impl CellSink for RowXml<'_> {
    fn empty(&mut self) {
        if self.tone.background().is_none() {
            self.next += 1;
        } else if self.start(false) {
            self.out.extend_from_slice(b"/>");
        }
    }

    fn text(&mut self, text: &str) {
        let (Some(&first), Some(&last)) = (text.as_bytes().first(), text.as_bytes().last()) else {
            return self.empty();
        };
        if self.start(matches!(first, b'=' | b'+' | b'-' | b'@')) {
            self.push_text(text, is_blank(first) || is_blank(last));
        }
    }

    fn number(&mut self, value: f64) {
        if !value.is_finite() {
            return self.text(not_finite(value));
        }
        if !self.start(false) {
            return;
        }
        self.out.extend_from_slice(b"><v>");
        if value.fract() == 0.0 && value.abs() < 1e15 {
            push_integer(self.out, value as i64);
        } else {
            self.out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
        }
        self.out.extend_from_slice(b"</v></c>");
    }

    fn integer(&mut self, value: i128) {
        if !(-EXACT_INTEGER..=EXACT_INTEGER).contains(&value) {
            return self.text(itoa::Buffer::new().format(value));
        }
        if self.start(false) {
            self.out.extend_from_slice(b"><v>");
            push_integer(self.out, value as i64);
            self.out.extend_from_slice(b"</v></c>");
        }
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// As much of the text as a cell can hold together with the mark, or all of it.
fn cut(text: &str) -> &str {
    // A character has at most as many UTF-16 units as bytes.
    if text.len() <= LONGEST_TEXT || text.encode_utf16().count() <= LONGEST_TEXT {
        return text;
    }
    let room = LONGEST_TEXT - CUT_MARK.encode_utf16().count();
    let mut units = 0;
    for (at, character) in text.char_indices() {
        units += character.len_utf16();
        if units > room {
            return &text[..at];
        }
    }
    text
}

/// Bytes that may need more than copying.
const SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        special[byte] = byte != b'\t' as usize && byte != b'\n' as usize;
        byte += 1;
    }
    special[b'&' as usize] = true;
    special[b'<' as usize] = true;
    special[b'>' as usize] = true;
    special[b'"' as usize] = true;
    special[b'_' as usize] = true;
    // First byte of U+F000 to U+FFFF, among them two that XML does not have.
    special[0xEF] = true;
    special
};

/// Text for XML. What XML cannot hold becomes `_xHHHH_`, as Excel reads and writes it; text that looks like that
/// already gets its underscore written so.
pub(super) fn push_escaped(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let mut copied = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if !SPECIAL[usize::from(byte)] {
            continue;
        }
        let code;
        let (taken, replacement): (usize, &[u8]) = match byte {
            b'&' => (1, b"&amp;"),
            b'<' => (1, b"&lt;"),
            b'>' => (1, b"&gt;"),
            b'"' => (1, b"&quot;"),
            b'\r' => (1, b"&#13;"),
            b'_' if looks_escaped(&bytes[at..]) => (1, b"_x005F_"),
            0xEF if bytes[at..].starts_with("\u{fffe}".as_bytes()) => (3, b"_xFFFE_"),
            0xEF if bytes[at..].starts_with("\u{ffff}".as_bytes()) => (3, b"_xFFFF_"),
            0..0x20 => {
                code = format!("_x{byte:04X}_");
                (1, code.as_bytes())
            }
            _ => continue,
        };
        out.extend_from_slice(&bytes[copied..at]);
        out.extend_from_slice(replacement);
        copied = at + taken;
    }
    out.extend_from_slice(&bytes[copied..]);
}

fn looks_escaped(bytes: &[u8]) -> bool {
    matches!(bytes, [b'_', b'x', a, b, c, d, b'_', ..] if [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(text: &str) -> String {
        let mut out = Vec::new();
        push_escaped(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn names_of_columns() {
        let names = [(0, "A"), (25, "Z"), (26, "AA"), (51, "AZ"), (701, "ZZ"), (702, "AAA"), (16_383, "XFD")];
        for (index, name) in names {
            assert_eq!(column_name(index), name);
        }
    }

    #[test]
    fn escapes_what_xml_has_no_room_for() {
        assert_eq!(escaped("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
        assert_eq!(escaped("nan\t a\nb\r"), "nan\t a\nb&#13;");
        assert_eq!(escaped("\0\u{1b}[0m"), "_x0000__x001B_[0m");
        assert_eq!(escaped("\u{fffe}é\u{ffff}\u{fffd}"), "_xFFFE_é_xFFFF_\u{fffd}");
        assert_eq!(escaped("a_b_x0041_ _xyz_"), "a_b_x005F_x0041_ _xyz_");
    }

    #[test]
    fn cuts_by_utf16_units_between_characters() {
        assert_eq!(cut("abc"), "abc");
        let fits = "é".repeat(LONGEST_TEXT);
        assert_eq!(cut(&fits), fits);
        let long = "😀".repeat(20_000);
        let kept = cut(&long);
        assert!(kept.encode_utf16().count() + CUT_MARK.encode_utf16().count() <= LONGEST_TEXT);
        assert!(kept.chars().count() > 16_000);
    }

    #[test]
    fn a_plain_row_has_gaps_and_a_coloured_one_has_none() {
        let starts: Vec<String> = (0..4).map(|index| format!("<c r=\"{}", column_name(index))).collect();
        let mut out = Vec::new();
        let mut row = RowXml::open(&mut out, &starts, 12, Tone::Plain);
        row.empty();
        row.text("-5");
        row.number(2.0);
        row.close();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "<row r=\"12\"><c r=\"B12\" s=\"1\" t=\"inlineStr\"><is><t>-5</t></is></c><c r=\"C12\"><v>2</v></c></row>"
        );
        let mut out = Vec::new();
        let mut row = RowXml::open(&mut out, &starts, 3, Tone::Warning);
        row.number(0.5);
        row.integer((1 << 53) + 1);
        row.empty();
        row.text(" x");
        row.text("too many");
        row.close();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "<row r=\"3\"><c r=\"A3\" s=\"4\"><v>0.5</v></c>\
             <c r=\"B3\" s=\"4\" t=\"inlineStr\"><is><t>9007199254740993</t></is></c><c r=\"C3\" s=\"4\"/>\
             <c r=\"D3\" s=\"4\" t=\"inlineStr\"><is><t xml:space=\"preserve\"> x</t></is></c></row>"
        );
    }
}
