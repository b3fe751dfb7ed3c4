//! Comma-separated values of a long table (RFC 4180), made in pieces on all cores.

use std::io::{self, Write};

use crate::number::{push_integer, push_repr};
use crate::ordered::{in_order, rows_per_piece};
use crate::sheet::{CellSink, Sheet};

/// How csv is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CsvOptions {
    /// Lines end with CR LF, as the standard has it, and not with LF.
    pub crlf: bool,
    /// Begin with a byte order mark, by which Excel recognises UTF-8.
    pub bom: bool,
    /// Put `'` before text that a spreadsheet would take for a formula.
    pub escape_formulas: bool,
}

/// Writes a line of headers and one per row. Numbers look like Python's `repr`, empty cells are empty.
pub fn write_sheet_csv(sheet: &Sheet<'_>, options: CsvOptions, mut out: impl Write) -> io::Result<()> {
    let columns = sheet.headers.len();
    let mut head = Vec::new();
    if options.bom {
        head.extend_from_slice("\u{feff}".as_bytes());
    }
    let mut line = Line { out: &mut head, options, written: 0, columns };
    for header in &sheet.headers {
        line.text(header);
    }
    line.close();
    out.write_all(&head)?;
    in_order(
        0..sheet.rows.len(),
        rows_per_piece(columns),
        |rows| {
            let mut piece = Vec::with_capacity(rows.len() * columns * 10);
            for row in rows {
                let mut line = Line { out: &mut piece, options, written: 0, columns };
                sheet.rows.cells(row, &mut line);
                line.close();
            }
            piece
        },
        |piece| out.write_all(&piece),
    )?;
    out.flush()
}

/// Appends one row of texts, as long as it is, to what will be written behind a header. No byte order mark.
pub fn push_csv_row<S: AsRef<str>>(cells: &[S], options: CsvOptions, out: &mut Vec<u8>) {
    let mut line = Line { out, options, written: 0, columns: cells.len() };
    for cell in cells {
        line.text(cell.as_ref());
    }
    line.close();
}

struct Line<'a> {
    out: &'a mut Vec<u8>,
    options: CsvOptions,
    written: usize,
    columns: usize,
}

impl Line<'_> {
    /// The comma before a cell. False where there is no column for it.
    fn start(&mut self) -> bool {
        if self.written == self.columns {
            return false;
        }
        if self.written > 0 {
            self.out.push(b',');
        }
        self.written += 1;
        true
    }

    fn close(mut self) {
        while self.written < self.columns {
            self.empty();
        }
        self.out.extend_from_slice(if self.options.crlf { b"\r\n" } else { b"\n" });
    }
}

impl CellSink for Line<'_> {
    fn empty(&mut self) {
        // A line of one empty cell would be a blank line, which readers leave out.
        if self.start() && self.columns == 1 {
            self.out.extend_from_slice(b"\"\"");
        }
    }

    fn text(&mut self, text: &str) {
        if text.is_empty() {
            return self.empty();
        }
        if !self.start() {
            return;
        }
        let escape = self.options.escape_formulas && is_formula(text);
        let bytes = text.as_bytes();
        if !bytes.iter().any(|&byte| SPECIAL[usize::from(byte)]) {
            if escape {
                self.out.push(b'\'');
            }
            self.out.extend_from_slice(bytes);
            return;
        }
        self.out.push(b'"');
        if escape {
            self.out.push(b'\'');
        }
        for (index, part) in bytes.split(|&byte| byte == b'"').enumerate() {
            if index > 0 {
                self.out.extend_from_slice(b"\"\"");
            }
            self.out.extend_from_slice(part);
        }
        self.out.push(b'"');
    }

    fn number(&mut self, value: f64) {
        if self.start() {
            push_repr(self.out, value);
        }
    }

    fn integer(&mut self, value: i128) {
        if self.start() {
            push_integer(self.out, value);
        }
    }
}

/// Bytes for which a cell has to stand in quotes.
const SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    special[b'"' as usize] = true;
    special[b',' as usize] = true;
    special[b'\n' as usize] = true;
    special[b'\r' as usize] = true;
    special
};

/// Whether a spreadsheet may evaluate it: a sign at the start of what is no number, or after a semicolon, which
/// separates cells in some countries.
fn is_formula(text: &str) -> bool {
    // All that is looked for begins with one of these bytes; most cells have none of them.
    let suspicious = |byte: &u8| matches!(byte, b'=' | b'+' | b'-' | b'@' | b';' | b'\t' | b'\r' | 0xEF);
    if !text.bytes().next().is_some_and(|first| suspicious(&first)) && !text.as_bytes().contains(&b';') {
        return false;
    }
    let at_start = |part: &str| part.trim_start_matches(['\t', '\r']).starts_with(is_sign);
    (at_start(text) && text.trim().parse::<f64>().is_err()) || text.split(';').skip(1).any(at_start)
}

fn is_sign(character: char) -> bool {
    matches!(character, '=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tone;
    use crate::sheet::SheetRows;

    struct Texts<'a>(&'a [&'a [&'a str]]);

    impl SheetRows for Texts<'_> {
        fn len(&self) -> usize {
            self.0.len()
        }

        fn cells(&self, row: usize, sink: &mut dyn CellSink) {
            for text in self.0[row] {
                sink.text(text);
            }
        }
    }

    struct Numbers;

    impl SheetRows for Numbers {
        fn len(&self) -> usize {
            20_000
        }

        fn cells(&self, row: usize, sink: &mut dyn CellSink) {
            sink.number(row as f64);
            sink.integer(i128::MAX);
            sink.number(1e-5);
            sink.empty();
            sink.text("more than there are headers");
        }

        fn tone(&self, _: usize) -> Tone {
            Tone::Bad
        }
    }

    fn csv(headers: &[&str], rows: &dyn SheetRows, options: CsvOptions) -> String {
        let headers = headers.iter().map(|&header| header.into()).collect();
        let mut out = Vec::new();
        write_sheet_csv(&Sheet { name: "s".into(), headers, rows }, options, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn quotes_where_it_must() {
        let rows = Texts(&[&["plain text", "a,b", "say \"x\""], &["a\nb", "nan\t", ""], &["short"]]);
        let text = csv(&["a", "b,c", "d"], &rows, CsvOptions::default());
        assert_eq!(text, "a,\"b,c\",d\nplain text,\"a,b\",\"say \"\"x\"\"\"\n\"a\nb\",nan\t,\nshort,,\n");
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
        let back: Vec<Vec<String>> =
            reader.records().map(|record| record.unwrap().iter().map(str::to_owned).collect()).collect();
        assert_eq!(back[1], ["plain text", "a,b", "say \"x\""]);
        assert_eq!(back[2], ["a\nb", "nan\t", ""]);
    }

    #[test]
    fn line_ends_mark_and_blank_lines() {
        let rows = Texts(&[&["x"], &[""]]);
        let options = CsvOptions { crlf: true, bom: true, escape_formulas: false };
        assert_eq!(csv(&["a"], &rows, options), "\u{feff}a\r\nx\r\n\"\"\r\n");
    }

    #[test]
    fn a_row_of_texts_is_as_long_as_it_is() {
        let mut out = Vec::new();
        let options = CsvOptions { crlf: true, bom: true, escape_formulas: true };
        push_csv_row(&["a", "=b", "c,\"d\""], options, &mut out);
        push_csv_row(&["", ""], options, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "a,'=b,\"c,\"\"d\"\"\"\r\n,\r\n");
    }

    #[test]
    fn numbers_stand_in_order_and_in_pythons_form() {
        let text = csv(&["a", "b", "c", "d"], &Numbers, CsvOptions::default());
        assert_eq!(text.lines().count(), 20_001);
        for (row, line) in text.lines().skip(1).enumerate() {
            assert_eq!(line, format!("{row}.0,170141183460469231731687303715884105727,1e-05,"));
        }
    }

    #[test]
    fn formulas_are_made_text() {
        for text in ["=1+1", "+x", "-a", "@SUM(A1)", "＝1", "－x", "a;=b", "-5;-x", "\t=1", "--1", "-"] {
            assert!(is_formula(text), "{text}");
        }
        for text in ["-5", "+1e-3", "-inf", "-inf\t", "a=b", "x;y", "", "ｘ", "权重", "a-b", "N/A"] {
            assert!(!is_formula(text), "{text}");
        }
        let rows = Texts(&[&["=\"a\",1", "=1"]]);
        let options = CsvOptions { escape_formulas: true, ..CsvOptions::default() };
        assert_eq!(csv(&["=h", "b"], &rows, options), "'=h,b\n\"'=\"\"a\"\",1\",'=1\n");
        assert_eq!(csv(&["=h", "b"], &rows, CsvOptions::default()), "=h,b\n\"=\"\"a\"\",1\",=1\n");
    }

    #[test]
    fn an_error_of_the_output_is_handed_on() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::Error::other("full"))
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let sheet = Sheet { name: "s".into(), headers: vec!["a".into()], rows: &Numbers };
        assert!(write_sheet_csv(&sheet, CsvOptions::default(), Full).is_err());
    }
}
