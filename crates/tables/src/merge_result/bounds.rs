//! How much a workbook may hold. Its parts are compressed, so a small file can stand for any amount of text, and whoever
//! reads a workbook keeps some of it: everything is counted once before anything is kept.

use std::io::{Read, Seek};

use zip::ZipArchive;

/// What is refused beyond; far more than a table of results needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Files in the archive.
    pub parts: usize,
    /// Bytes of one part, and of all, when they are unpacked.
    pub part_bytes: u64,
    pub all_bytes: u64,
    /// Bytes of the parts that are kept while the workbook is open: shared texts, styles, names of sheets.
    pub kept_bytes: u64,
    /// Texts that are shared by cells.
    pub shared_texts: u64,
    /// Rows of a sheet, and cells of the workbook.
    pub rows: u64,
    pub cells: u64,
    /// Elements of a sheet that are neither rows nor cells nor what is in cells.
    pub other_elements: u64,
    /// Bytes of one cell, one shared text, one tag, one piece of text.
    pub element_bytes: u64,
}

impl Bounds {
    /// Two full sheets of a comparison with its further sheets.
    pub(super) const WORKBOOK: Bounds = Bounds {
        parts: 1024,
        part_bytes: 4 << 30,
        all_bytes: 8 << 30,
        kept_bytes: 256 << 20,
        shared_texts: 8 << 20,
        rows: 1 << 20,
        cells: 128 << 20,
        other_elements: 1 << 20,
        element_bytes: 1 << 20,
    };
}

/// Counts what is in a workbook. The error says what there is too much of.
pub(super) fn check(workbook: impl Read + Seek, bounds: Bounds) -> Result<(), String> {
    let mut archive = ZipArchive::new(workbook).map_err(|error| error.to_string())?;
    if archive.len() > bounds.parts {
        return Err(format!("it has {} parts, more than {} are not read", archive.len(), bounds.parts));
    }
    let (mut all_bytes, mut kept_bytes, mut cells) = (0, 0, 0);
    let mut buffer = vec![0; 64 << 10];
    for index in 0..archive.len() {
        let mut part = archive.by_index(index).map_err(|error| error.to_string())?;
        let name = part.name().map_err(|error| error.to_string())?.into_owned();
        let within = |counts: &[(u64, &str, u64)]| match counts.iter().find(|(count, _, limit)| count > limit)
        {
            Some((_, what, limit)) => Err(format!(
                "{name:?} of it has more than {limit} {what} when it is unpacked, that is not read"
            )),
            None => Ok(()),
        };
        let is_sheet = name.to_ascii_lowercase().contains("worksheets/");
        let mut scan = Scan::default();
        let mut part_bytes = 0;
        loop {
            let read = part.read(&mut buffer).map_err(|error| format!("{name:?} of it: {error}"))?;
            if read == 0 {
                break;
            }
            part_bytes += read as u64;
            all_bytes += read as u64;
            if !is_sheet {
                kept_bytes += read as u64;
            }
            scan.go_on(&buffer[..read]);
            within(&[(part_bytes, "bytes", bounds.part_bytes), (kept_bytes, "bytes", bounds.kept_bytes)])?;
            if all_bytes > bounds.all_bytes {
                return Err(format!("it has more than {} bytes when it is unpacked", bounds.all_bytes));
            }
            within(&[
                (scan.rows, "rows", bounds.rows),
                (cells + scan.cells, "cells", bounds.cells),
                (scan.shared_texts.max(scan.promised_texts), "texts", bounds.shared_texts),
                (if is_sheet { scan.others } else { 0 }, "elements besides its cells", bounds.other_elements),
                (scan.longest, "bytes in one cell or tag", bounds.element_bytes),
            ])?;
            if scan.is_odd {
                return Err(format!(
                    "{name:?} of it has comments, raw sections or odd tags, which no writer of results makes"
                ));
            }
        }
        cells += scan.cells;
    }
    Ok(())
}

/// Counts elements of XML without understanding it. What could hide an element from it — comments, raw sections, quotes in
/// odd places — is noted, to be refused.
#[derive(Debug, Default)]
struct Scan {
    rows: u64,
    cells: u64,
    shared_texts: u64,
    /// How many shared texts the part says it has: readers make room for them.
    promised_texts: u64,
    /// Bytes of the longest cell, shared text, tag or piece of text.
    longest: u64,
    others: u64,
    is_odd: bool,
    /// Bytes since the last `<`, and since the cell or shared text began that has not ended.
    since_tag: u64,
    since_element: Option<u64>,
    /// The beginning of the tag at hand, enough for what is looked for.
    tag: Option<Vec<u8>>,
    /// The quote that has to come before the tag can end.
    quote: Option<u8>,
}

/// As long as a tag may be that says how many shared texts there are.
const TAG_KEPT: usize = 4096;

impl Scan {
    fn go_on(&mut self, text: &[u8]) {
        for &byte in text {
            self.since_tag += 1;
            self.longest = self.longest.max(self.since_tag);
            if let Some(bytes) = &mut self.since_element {
                *bytes += 1;
                self.longest = self.longest.max(*bytes);
            }
            match (byte, self.quote, &mut self.tag) {
                (b'<', None, None) => {
                    self.since_tag = 0;
                    self.tag = Some(Vec::new());
                }
                // Nobody writes these; readers differ in what they make of them.
                (b'<', _, Some(_)) => self.is_odd = true,
                (b'>', None, Some(tag)) => {
                    let tag = std::mem::take(tag);
                    self.tag = None;
                    self.since_tag = 0;
                    self.end_tag(&tag);
                }
                (_, _, Some(tag)) => {
                    match (byte, self.quote) {
                        (b'"' | b'\'', None) if matches!(tag.first(), Some(b'/' | b'!')) => {
                            self.is_odd = true;
                        }
                        (b'"' | b'\'', None) if tag.first() != Some(&b'?') => self.quote = Some(byte),
                        (_, Some(quote)) if quote == byte => self.quote = None,
                        _ => {}
                    }
                    if tag.len() < TAG_KEPT {
                        tag.push(byte);
                    }
                }
                (_, _, None) => {}
            }
        }
    }

    fn end_tag(&mut self, tag: &[u8]) {
        let (closes, tag) = match tag {
            [b'!', ..] => {
                self.is_odd = true;
                return;
            }
            [b'?', ..] => return,
            [b'/', rest @ ..] => (true, rest),
            whole => (false, whole),
        };
        let end = tag.iter().position(|byte| byte.is_ascii_whitespace() || *byte == b'/');
        let name = &tag[..end.unwrap_or(tag.len())];
        // `x:row` is a row too.
        let name = name.rsplit(|byte| *byte == b':').next().unwrap_or(name);
        match name {
            b"row" if !closes => self.rows += 1,
            b"c" if !closes => self.cells += 1,
            b"si" if !closes => self.shared_texts += 1,
            b"sst" if !closes => {
                self.promised_texts = promised(tag);
                self.is_odd |= tag.len() >= TAG_KEPT;
            }
            b"v" | b"t" | b"is" | b"f" => {}
            _ if !closes => self.others += 1,
            _ => {}
        }
        if matches!(name, b"c" | b"si") {
            self.since_element = (!closes).then_some(0);
        }
    }
}

/// The largest number in a tag: what it promises, whatever the attribute is called exactly.
fn promised(tag: &[u8]) -> u64 {
    let numbers = tag.split(|byte| !byte.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let value = |digits: &[u8]| {
        digits
            .iter()
            .fold(0_u64, |value, digit| value.saturating_mul(10).saturating_add((digit - b'0').into()))
    };
    // Years in the names of schemas are numbers as well, but small ones.
    numbers.map(value).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use proptest::prelude::*;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn archive(parts: &[(&str, &[u8])]) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Deflated)
            .large_file(true);
        for (name, text) in parts {
            zip.start_file(*name, options).unwrap();
            zip.write_all(text).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    const SMALL: Bounds = Bounds {
        parts: 3,
        part_bytes: 10_000,
        all_bytes: 12_000,
        kept_bytes: 5_000,
        shared_texts: 10,
        rows: 10,
        cells: 20,
        other_elements: 2_800,
        element_bytes: 200,
    };
    const SHEET: &str = "xl/worksheets/sheet1.xml";
    const TEXTS: &str = "xl/sharedStrings.xml";

    fn refusal(parts: &[(&str, &[u8])]) -> String {
        check(Cursor::new(archive(parts)), SMALL).unwrap_err()
    }

    #[test]
    fn each_limit_is_told() {
        let rows = |count: usize| "<x:row r='1'><c/></x:row>".repeat(count);
        check(Cursor::new(archive(&[(SHEET, rows(10).as_bytes())])), SMALL).unwrap();
        assert!(refusal(&[(SHEET, rows(11).as_bytes())]).contains("more than 10 rows"));
        assert!(refusal(&[(SHEET, "<c r='A1'/>".repeat(21).as_bytes())]).contains("more than 20 cells"));
        let half = "<c>1</c>".repeat(11);
        let two = [(SHEET, half.as_bytes()), ("xl/worksheets/sheet2.xml", half.as_bytes())];
        assert!(refusal(&two).contains("more than 20 cells"));
        assert!(
            refusal(&[(TEXTS, "<si><t>a</t></si>".repeat(11).as_bytes())]).contains("more than 10 texts")
        );
        assert!(refusal(&[(TEXTS, b"<sst uniqueCount=\"99999999999999999999999\">")]).contains("10 texts"));
        let long = format!("<si>{}</si>", "<r><t>aaaa</t></r>".repeat(20));
        assert!(refusal(&[(TEXTS, long.as_bytes())]).contains("in one cell"));
        assert!(refusal(&[(SHEET, "x".repeat(201).as_bytes())]).contains("in one cell"));
        assert!(refusal(&[(SHEET, b"<c><is><t><!-- </c> --></t></is></c>")]).contains("comments"));
        assert!(refusal(&[(SHEET, b"<c><![CDATA[</c>]]></c>")]).contains("comments"));
        let blank = format!("<t{}/>", " ".repeat(100)).repeat(120);
        assert!(refusal(&[(SHEET, blank.as_bytes())]).contains("more than 10000 bytes"));
        let most = "<t/>".repeat(2_000);
        assert!(refusal(&[(TEXTS, most.as_bytes())]).contains("more than 5000 bytes"));
        assert!(refusal(&[(SHEET, most.as_bytes()), ("xl/worksheets/b", most.as_bytes())]).contains("12000"));
        assert!(refusal(&[("a", b""), ("b", b""), ("c", b""), ("d", b"")]).contains("4 parts"));
        assert!(refusal(&[(SHEET, "<b>".repeat(2_801).as_bytes())]).contains("besides its cells"));
        assert!(refusal(&[(TEXTS, b"<sst a='>' uniqueCount=\"99999999999\">")]).contains("10 texts"));
        for odd in ["<sst a='<si/>'>", "</c '>", "<a <b>"] {
            assert!(refusal(&[(TEXTS, odd.as_bytes())]).contains("odd tags"), "{odd}");
        }
        check(Cursor::new(archive(&[(SHEET, b"<?xml version='1.0'?><worksheet a=\"it's\"/>")])), SMALL)
            .unwrap();
        assert!(check(Cursor::new(b"no archive".to_vec()), SMALL).is_err());
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(text in "(<|/|>|c|si|row| |x:|!|[0-9]|a){0,60}", cuts in prop::collection::vec(0..60_usize, 0..5)) {
            let mut whole = Scan::default();
            whole.go_on(text.as_bytes());
            let mut pieces = Scan::default();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.sort_unstable();
            let mut last = 0;
            for cut in cuts.into_iter().chain([text.len()]) {
                pieces.go_on(&text.as_bytes()[last..cut]);
                last = cut;
            }
            prop_assert_eq!(format!("{whole:?}"), format!("{pieces:?}"));
        }
    }
}
