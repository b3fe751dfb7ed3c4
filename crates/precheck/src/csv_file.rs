//! Tables of the pre-check read back: by header, with the text of every cell as it was written.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;

use csv::{ByteRecord, ReaderBuilder};
use msprobe_report::CsvOptions;

/// How all tables of the pre-check are written.
pub(crate) const CSV: CsvOptions = CsvOptions { crlf: true, bom: true, escape_formulas: true };

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A table in memory.
#[derive(Debug, Default)]
pub(crate) struct Table {
    headers: HashMap<String, usize>,
    rows: Vec<ByteRecord>,
}

impl Table {
    /// Reads a file; rows may be shorter than the header.
    pub(crate) fn read(path: &Path) -> io::Result<Table> {
        let mut reader =
            ReaderBuilder::new().has_headers(false).flexible(true).from_reader(File::open(path)?);
        let mut table = Table::default();
        let mut record = ByteRecord::new();
        let mut is_first = true;
        while reader.read_byte_record(&mut record).map_err(io::Error::other)? {
            if is_first {
                for (index, header) in record.iter().enumerate() {
                    let header = if index == 0 {
                        header.strip_prefix(BYTE_ORDER_MARK).unwrap_or(header)
                    } else {
                        header
                    };
                    // Quotes are not seen behind a mark.
                    let header = String::from_utf8_lossy(header);
                    table.headers.entry(header.trim_matches('"').to_owned()).or_insert(index);
                }
                is_first = false;
            } else {
                table.rows.push(record.clone());
            }
        }
        Ok(table)
    }

    /// Where a column is.
    pub(crate) fn column(&self, header: &str) -> Option<usize> {
        self.headers.get(header).copied()
    }

    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// A cell; empty where the row is shorter.
    pub(crate) fn cell(&self, row: usize, column: usize) -> std::borrow::Cow<'_, str> {
        let cell = self.rows.get(row).and_then(|record| record.get(column)).unwrap_or_default();
        String::from_utf8_lossy(cell)
    }
}
