//! Comma-separated values: keys as header, full precision.

use std::io::{self, Write};

use crate::Table;

/// Writes a header row of column keys and one record per row.
pub fn write_csv(table: &Table, out: &mut impl Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(table.columns.iter().map(|column| column.key)).map_err(as_io)?;
    for row in &table.rows {
        writer.write_record(row.cells.iter().map(ToString::to_string)).map_err(as_io)?;
    }
    writer.flush()
}

fn as_io(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
