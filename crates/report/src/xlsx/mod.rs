//! Excel workbooks, written as a stream: rows are asked for, set in XML and compressed in pieces on all cores.
//!
//! Text is kept in the cells and not in a common table: that table would have to hold every text of the workbook.

mod cells;
mod parts;
mod zip;

use std::io::{self, BufWriter, Seek, Write};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use self::cells::{RowXml, column_name};
use self::parts::Page;
use self::zip::{Deflater, Piece, Zip};
use crate::Tone;
use crate::ordered::{in_order, rows_per_piece};
use crate::sheet::Sheet;

/// Rows of a sheet, as Excel has them, header included.
const MOST_ROWS: usize = 1_048_576;
/// Columns of a sheet.
const MOST_COLUMNS: usize = 16_384;

/// Writes a workbook. Rows that do not fit on a sheet are continued on `{name}_2`, `{name}_3`, … under the same header.
pub fn write_workbook(out: impl Write + Seek, sheets: &[Sheet<'_>]) -> io::Result<()> {
    write_pages(BufWriter::new(out), sheets, MOST_ROWS)
}

/// The same with another limit of rows per sheet, into anything.
fn write_pages(out: impl Write + Seek, sheets: &[Sheet<'_>], most_rows: usize) -> io::Result<()> {
    if sheets.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a workbook needs at least one sheet"));
    }
    if let Some(sheet) = sheets.iter().find(|sheet| sheet.headers.len() > MOST_COLUMNS) {
        let message = format!("sheet {:?} has more than {MOST_COLUMNS} columns", sheet.name);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let pages = parts::pages(sheets, most_rows);
    let mut zip = Zip::new(out);
    zip.file("[Content_Types].xml", parts::content_types(pages.len()).as_bytes())?;
    zip.file("_rels/.rels", parts::root_relations().as_bytes())?;
    zip.file("xl/workbook.xml", parts::workbook(&pages).as_bytes())?;
    zip.file("xl/_rels/workbook.xml.rels", parts::workbook_relations(pages.len()).as_bytes())?;
    zip.file("xl/styles.xml", parts::styles().as_bytes())?;
    for (index, page) in pages.iter().enumerate() {
        let Some(sheet) = sheets.get(page.sheet) else { continue };
        zip.start(&format!("xl/worksheets/sheet{}.xml", index + 1))?;
        write_page(&mut zip, page, sheet, index == 0)?;
        zip.end()?;
    }
    zip.finish()
}

fn write_page<W: Write + Seek>(
    zip: &mut Zip<W>,
    page: &Page,
    sheet: &Sheet<'_>,
    first: bool,
) -> io::Result<()> {
    let starts: Vec<String> =
        (0..sheet.headers.len()).map(|index| format!("<c r=\"{}", column_name(index))).collect();
    let mut head = parts::sheet_head(page, first, &parts::widths(sheet)).into_bytes();
    let mut header = RowXml::open(&mut head, &starts, 1, Tone::Plain);
    for title in &sheet.headers {
        header.title(title);
    }
    header.close();
    zip.append(&Deflater::new().piece(&head)?)?;

    let scratch = ScratchPool::default();
    in_order(
        page.rows.clone(),
        rows_per_piece(starts.len()),
        |rows| scratch.with(|scratch| scratch.piece(sheet, &starts, rows, page.rows.start)),
        |piece| zip.append(&piece?),
    )?;
    zip.append(&Deflater::new().piece(parts::sheet_tail(page).as_bytes())?)
}

/// What a thread needs to make a piece, kept from one piece to the next.
struct Scratch {
    xml: Vec<u8>,
    deflater: Deflater,
}

impl Scratch {
    fn piece(
        &mut self,
        sheet: &Sheet<'_>,
        starts: &[String],
        rows: Range<usize>,
        first: usize,
    ) -> io::Result<Piece> {
        self.xml.clear();
        for row in rows {
            // Counted from 1, after the header.
            let number = row - first + 2;
            let mut sink = RowXml::open(&mut self.xml, starts, number, sheet.rows.tone(row));
            sheet.rows.cells(row, &mut sink);
            sink.close();
        }
        self.deflater.piece(&self.xml)
    }
}

#[derive(Default)]
struct ScratchPool(Mutex<Vec<Scratch>>);

impl ScratchPool {
    fn with<T>(&self, work: impl FnOnce(&mut Scratch) -> T) -> T {
        let idle = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut scratch = idle.unwrap_or_else(|| Scratch { xml: Vec::new(), deflater: Deflater::new() });
        let result = work(&mut scratch);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
        result
    }
}

#[cfg(test)]
mod tests;
