//! The small parts of a workbook: list of sheets, styles, relations, and the frame around the rows of a sheet.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr;

use super::cells::{COLOURED, column_name, push_escaped};
use crate::sheet::{CellSink, Sheet};

/// Longest name of a sheet.
const NAME_UNITS: usize = 31;
/// Rows looked at for the widths of columns.
const SAMPLE_ROWS: usize = 40;
const NARROWEST: usize = 8;
const WIDEST: usize = 60;

const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n";
const MAIN: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
const RELATIONS: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const PACKAGE_RELATIONS: &str = "http://schemas.openxmlformats.org/package/2006/relationships";
const CONTENT_TYPE: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml";

/// A sheet of the file: a stretch of the rows of a [`Sheet`].
pub(super) struct Page {
    /// Unique, and as Excel allows it.
    pub(super) name: String,
    /// Which sheet the rows come from.
    pub(super) sheet: usize,
    /// The rows on this page.
    pub(super) rows: std::ops::Range<usize>,
    pub(super) columns: usize,
}

impl Page {
    /// The cells in use, such as `A1:C20`, or with dollar signs.
    fn area(&self, dollar: &str) -> String {
        let last = column_name(self.columns.max(1) - 1);
        let rows = self.rows.len() + 1;
        format!("{dollar}A{dollar}1:{dollar}{last}{dollar}{rows}")
    }
}

/// Cuts sheets into pages of at most `most_rows` rows, header included.
pub(super) fn pages(sheets: &[Sheet<'_>], most_rows: usize) -> Vec<Page> {
    let per_page = most_rows.saturating_sub(1).max(1);
    let mut pages: Vec<Page> = Vec::new();
    for (index, sheet) in sheets.iter().enumerate() {
        let count = sheet.rows.len();
        let mut start = 0usize;
        let mut number = 1;
        loop {
            let end = start.saturating_add(per_page).min(count);
            let suffix = if number == 1 { String::new() } else { format!("_{number}") };
            let name = free_name(&sheet.name, &suffix, &pages);
            pages.push(Page { name, sheet: index, rows: start..end, columns: sheet.headers.len() });
            if end >= count {
                break;
            }
            start = end;
            number += 1;
        }
    }
    pages
}

/// The name with its suffix, cut and cleaned to what Excel accepts, different from all others.
fn free_name(name: &str, suffix: &str, taken: &[Page]) -> String {
    let clean: String = name
        .chars()
        .map(
            |c| if c.is_control() || matches!(c, '[' | ']' | ':' | '*' | '?' | '/' | '\\') { '_' } else { c },
        )
        .collect();
    let clean = clean.trim_matches('\'');
    let clean = if clean.is_empty() { "Sheet" } else { clean };
    let mut extra = String::new();
    let mut tries = 1;
    loop {
        let tail = format!("{suffix}{extra}");
        let candidate = format!("{}{tail}", shortened(clean, NAME_UNITS.saturating_sub(tail.len())));
        let lower = candidate.to_lowercase();
        if taken.iter().all(|page| page.name.to_lowercase() != lower) {
            return candidate;
        }
        tries += 1;
        extra = format!("({tries})");
    }
}

fn shortened(text: &str, most_units: usize) -> String {
    let mut units = 0;
    text.chars()
        .take_while(|c| {
            units += c.len_utf16();
            units <= most_units
        })
        .collect()
}

/// Everything of a worksheet before its first row.
pub(super) fn sheet_head(page: &Page, first: bool, widths: &[usize]) -> String {
    let mut xml = format!("{DECLARATION}<worksheet xmlns=\"{MAIN}\"><dimension ref=\"{}\"/>", page.area(""));
    let selected = if first { " tabSelected=\"1\"" } else { "" };
    let _ = write!(
        xml,
        "<sheetViews><sheetView{selected} workbookViewId=\"0\"><pane ySplit=\"1\" topLeftCell=\"A2\" \
         activePane=\"bottomLeft\" state=\"frozen\"/><selection pane=\"bottomLeft\"/></sheetView></sheetViews>\
         <sheetFormatPr defaultRowHeight=\"15\"/>"
    );
    if !widths.is_empty() {
        xml.push_str("<cols>");
        for (index, width) in widths.iter().enumerate() {
            let number = index + 1;
            let _ =
                write!(xml, "<col min=\"{number}\" max=\"{number}\" width=\"{width}\" customWidth=\"1\"/>");
        }
        xml.push_str("</cols>");
    }
    xml.push_str("<sheetData>");
    xml
}

/// Everything after its last row.
pub(super) fn sheet_tail(page: &Page) -> String {
    let filter =
        if page.columns == 0 { String::new() } else { format!("<autoFilter ref=\"{}\"/>", page.area("")) };
    format!("</sheetData>{filter}</worksheet>")
}

/// Widths from the headers and some rows spread over the table: looking at all of them would cost as much as writing.
pub(super) fn widths(sheet: &Sheet<'_>) -> Vec<usize> {
    // Room for the arrow of the filter.
    let mut widths: Vec<usize> = sheet.headers.iter().map(|header| header.width() + 3).collect();
    let count = sheet.rows.len();
    for sample in 0..count.min(SAMPLE_ROWS) {
        let mut sink = Widest { widths: &mut widths, next: 0 };
        sheet.rows.cells(sample * count / count.min(SAMPLE_ROWS), &mut sink);
    }
    widths.iter().map(|&width| width.clamp(NARROWEST, WIDEST)).collect()
}

struct Widest<'a> {
    widths: &'a mut [usize],
    next: usize,
}

impl Widest<'_> {
    fn cell(&mut self, width: usize) {
        if let Some(widest) = self.widths.get_mut(self.next) {
            *widest = (*widest).max(width);
        }
        self.next += 1;
    }
}

impl CellSink for Widest<'_> {
    fn empty(&mut self) {
        self.next += 1;
    }

    fn text(&mut self, text: &str) {
        let start: String = text.chars().take_while(|&c| c != '\n').take(WIDEST).collect();
        self.cell(start.width() + 1);
    }

    fn number(&mut self, _: f64) {
        self.cell(12);
    }

    fn integer(&mut self, value: i128) {
        self.cell(itoa::Buffer::new().format(value).len() + 1);
    }
}

fn escaped(text: &str) -> String {
    let mut out = Vec::new();
    push_escaped(&mut out, text);
    String::from_utf8_lossy(&out).into_owned()
}

pub(super) fn workbook(pages: &[Page]) -> String {
    let mut xml = format!(
        "{DECLARATION}<workbook xmlns=\"{MAIN}\" xmlns:r=\"{RELATIONS}\"><bookViews>\
         <workbookView activeTab=\"0\"/></bookViews><sheets>"
    );
    for (index, page) in pages.iter().enumerate() {
        let number = index + 1;
        let name = escaped(&page.name);
        let _ = write!(xml, "<sheet name=\"{name}\" sheetId=\"{number}\" r:id=\"rId{number}\"/>");
    }
    xml.push_str("</sheets>");
    // The hidden name that belongs to a filter.
    if pages.iter().any(|page| page.columns > 0) {
        xml.push_str("<definedNames>");
        for (index, page) in pages.iter().enumerate().filter(|(_, page)| page.columns > 0) {
            let name = escaped(&page.name.replace('\'', "''"));
            let area = page.area("$");
            let _ = write!(
                xml,
                "<definedName name=\"_xlnm._FilterDatabase\" localSheetId=\"{index}\" hidden=\"1\">'{name}'!{area}</definedName>"
            );
        }
        xml.push_str("</definedNames>");
    }
    xml.push_str("</workbook>");
    xml
}

pub(super) fn workbook_relations(pages: usize) -> String {
    let mut xml = format!("{DECLARATION}<Relationships xmlns=\"{PACKAGE_RELATIONS}\">");
    for number in 1..=pages {
        let _ = write!(
            xml,
            "<Relationship Id=\"rId{number}\" Type=\"{RELATIONS}/worksheet\" Target=\"worksheets/sheet{number}.xml\"/>"
        );
    }
    let number = pages + 1;
    let _ = write!(
        xml,
        "<Relationship Id=\"rId{number}\" Type=\"{RELATIONS}/styles\" Target=\"styles.xml\"/></Relationships>"
    );
    xml
}

pub(super) fn root_relations() -> String {
    format!(
        "{DECLARATION}<Relationships xmlns=\"{PACKAGE_RELATIONS}\"><Relationship Id=\"rId1\" \
         Type=\"{RELATIONS}/officeDocument\" Target=\"xl/workbook.xml\"/></Relationships>"
    )
}

pub(super) fn content_types(pages: usize) -> String {
    let mut xml = format!(
        "{DECLARATION}<Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\">\
         <Default Extension=\"rels\" ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/>\
         <Default Extension=\"xml\" ContentType=\"application/xml\"/>\
         <Override PartName=\"/xl/workbook.xml\" ContentType=\"{CONTENT_TYPE}.sheet.main+xml\"/>\
         <Override PartName=\"/xl/styles.xml\" ContentType=\"{CONTENT_TYPE}.styles+xml\"/>"
    );
    for number in 1..=pages {
        let _ = write!(
            xml,
            "<Override PartName=\"/xl/worksheets/sheet{number}.xml\" ContentType=\"{CONTENT_TYPE}.worksheet+xml\"/>"
        );
    }
    xml.push_str("</Types>");
    xml
}

/// Cell formats in the order [`super::cells::style`] counts them.
pub(super) fn styles() -> String {
    let mut xml = format!(
        "{DECLARATION}<styleSheet xmlns=\"{MAIN}\"><fonts count=\"1\"><font><sz val=\"11\"/><name val=\"Calibri\"/>\
         <family val=\"2\"/></font></fonts><fills count=\"5\"><fill><patternFill patternType=\"none\"/></fill>\
         <fill><patternFill patternType=\"gray125\"/></fill>"
    );
    for color in COLOURED.iter().filter_map(|tone| tone.background()) {
        let _ = write!(
            xml,
            "<fill><patternFill patternType=\"solid\"><fgColor rgb=\"{color}\"/><bgColor indexed=\"64\"/></patternFill></fill>"
        );
    }
    xml.push_str(
        "</fills><borders count=\"1\"><border><left/><right/><top/><bottom/><diagonal/></border></borders>\
         <cellStyleXfs count=\"1\"><xf numFmtId=\"0\" fontId=\"0\" fillId=\"0\" borderId=\"0\"/></cellStyleXfs>\
         <cellXfs count=\"8\">",
    );
    for (fill, apply) in [(0, ""), (2, " applyFill=\"1\""), (3, " applyFill=\"1\""), (4, " applyFill=\"1\"")]
    {
        for quote in ["", " quotePrefix=\"1\""] {
            let _ = write!(
                xml,
                "<xf numFmtId=\"0\" fontId=\"0\" fillId=\"{fill}\" borderId=\"0\" xfId=\"0\"{quote}{apply}/>"
            );
        }
    }
    xml.push_str(
        "</cellXfs><cellStyles count=\"1\"><cellStyle name=\"Normal\" xfId=\"0\" builtinId=\"0\"/></cellStyles>\
         </styleSheet>",
    );
    xml
}
