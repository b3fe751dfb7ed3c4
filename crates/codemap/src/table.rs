//! Tables of statistics, with two columns more. The other cells come out as a table library that infers the type of each
//! column would write them: that is what users of these files have always got.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use msprobe_report::output::save;
use msprobe_tensor::digits::push_repr_text;
use rustc_hash::FxHashMap;

use crate::scopes::{Scopes, Source};

const OPERATOR: &str = "Op Name";
const CODE: &str = "Code Stack";
const SCOPE: &str = "Scope Name";
/// Cells that mean there is no value.
const NOTHING: [&str; 18] = [
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A",
    "NA", "NULL", "NaN", "None", "n/a", "nan",
];

/// Writes a table again, with the columns. Gives the number of rows that have a scope.
pub(crate) fn complete(path: &Path, scopes: &Scopes) -> Result<usize, String> {
    let text = fs::read(path).map_err(|error| error.to_string())?;
    let mut table = Table::read(&text)?;
    let found = table.add_sources(scopes)?;
    let written = table.write().map_err(|error| error.to_string())?;
    let metadata = fs::metadata(path).map_err(|error| error.to_string())?;
    save(path, |file| {
        file.write_all(&written)?;
        file.set_permissions(metadata.permissions())
    })
    .map_err(|error| error.to_string())?;
    Ok(found)
}

struct Table {
    header: Vec<String>,
    columns: Vec<Vec<String>>,
}

impl Table {
    fn read(text: &[u8]) -> Result<Table, String> {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text);
        let mut rows = reader.byte_records();
        let header = match rows.next() {
            Some(header) => header.map_err(|error| error.to_string())?,
            None => return Err("it is empty".to_owned()),
        };
        let mut header: Vec<String> =
            header.iter().map(|cell| String::from_utf8_lossy(cell).into_owned()).collect();
        // Rows end with a comma, whatever the header does.
        if header.last().is_some_and(|last| !last.is_empty()) {
            header.push(String::new());
        }
        name_columns(&mut header);
        let mut columns = vec![Vec::new(); header.len()];
        for (number, row) in rows.enumerate() {
            let row = row.map_err(|error| error.to_string())?;
            if row.len() > header.len() {
                let (cells, expected) = (row.len(), header.len());
                return Err(format!("row {} has {cells} cells, the header has {expected}", number + 1));
            }
            for (index, column) in columns.iter_mut().enumerate() {
                let cell = row.get(index).unwrap_or_default();
                column.push(String::from_utf8_lossy(cell).into_owned());
            }
        }
        for column in &mut columns {
            as_inferred(column);
        }
        Ok(Table { header, columns })
    }

    fn add_sources(&mut self, scopes: &Scopes) -> Result<usize, String> {
        let Some(names) = self.header.iter().position(|name| name == OPERATOR) else {
            return Err(format!("it has no column \"{OPERATOR}\""));
        };
        let mut known: FxHashMap<&str, Source> = FxHashMap::default();
        let mut sources = Vec::new();
        for name in self.columns.get(names).into_iter().flatten() {
            sources.push(known.entry(name).or_insert_with(|| scopes.find(name)).clone());
        }
        let found = sources.iter().filter(|source| !source.scopes.is_empty()).count();
        let (code, scope) = sources.into_iter().map(|source| (source.code, source.scopes)).unzip();
        self.put(CODE, code);
        self.put(SCOPE, scope);
        Ok(found)
    }

    fn put(&mut self, name: &str, cells: Vec<String>) {
        match self.header.iter().position(|known| known == name).and_then(|at| self.columns.get_mut(at)) {
            Some(column) => *column = cells,
            None => {
                self.header.push(name.to_owned());
                self.columns.push(cells);
            }
        }
    }

    fn write(&self) -> io::Result<Vec<u8>> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&self.header)?;
        for row in 0..self.columns.first().map_or(0, Vec::len) {
            writer
                .write_record(self.columns.iter().map(|column| column.get(row).map_or("", String::as_str)))?;
        }
        writer.into_inner().map_err(|error| io::Error::other(error.to_string()))
    }
}

/// A column without a name is called by its place, a repeated name gets a number.
fn name_columns(header: &mut [String]) {
    let mut counts: FxHashMap<String, usize> = FxHashMap::default();
    for (index, name) in header.iter_mut().enumerate() {
        if name.is_empty() {
            *name = format!("Unnamed: {index}");
        }
        let count = counts.entry(name.clone()).or_default();
        if *count > 0 {
            let _ = write!(name, ".{count}");
        }
        *count += 1;
    }
}

/// The cells of a column by the narrowest type that holds all of them: whole numbers, numbers, truths, text.
fn as_inferred(column: &mut [String]) {
    let has_gaps = column.iter().any(|cell| is_nothing(cell));
    let all = |is: &dyn Fn(&str) -> bool| column.iter().all(|cell| is_nothing(cell) || is(cell));
    if !has_gaps && all(&|cell| whole(cell).is_some()) {
        each(column, |cell| whole(cell).map(|number| number.to_string()));
    } else if all(&|cell| number(cell).is_some()) {
        each(column, |cell| {
            let mut text = String::new();
            push_repr_text(&mut text, number(cell)?);
            Some(text)
        });
    } else if !has_gaps && all(&|cell| truth(cell).is_some()) {
        each(column, |cell| truth(cell).map(str::to_owned));
    } else {
        each(column, |cell| Some(cell.to_owned()));
    }
}

fn each(column: &mut [String], text: impl Fn(&str) -> Option<String>) {
    for cell in column {
        *cell = if is_nothing(cell) { String::new() } else { text(cell).unwrap_or_default() };
    }
}

fn is_nothing(cell: &str) -> bool {
    NOTHING.contains(&cell) || cell == "null"
}

fn whole(cell: &str) -> Option<i64> {
    cell.trim().parse().ok()
}

fn number(cell: &str) -> Option<f64> {
    let cell = cell.trim();
    let is_number = cell.bytes().any(|byte| byte.is_ascii_digit())
        || matches!(cell.trim_start_matches(['+', '-']).to_ascii_lowercase().as_str(), "inf" | "infinity");
    is_number.then(|| cell.parse().ok()).flatten()
}

fn truth(cell: &str) -> Option<&'static str> {
    match cell {
        "True" | "TRUE" | "true" => Some("True"),
        "False" | "FALSE" | "false" => Some("False"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn inferred(cells: &[&str]) -> Vec<String> {
        let mut column: Vec<String> = cells.iter().map(|cell| (*cell).to_owned()).collect();
        as_inferred(&mut column);
        column
    }

    #[test]
    fn a_column_has_one_type() {
        assert_eq!(inferred(&["1", "02"]), ["1", "2"]);
        assert_eq!(inferred(&["1", "nan"]), ["1.0", ""]);
        assert_eq!(inferred(&["1", "2.5", "-inf"]), ["1.0", "2.5", "-inf"]);
        assert_eq!(inferred(&["true", "False"]), ["True", "False"]);
        assert_eq!(inferred(&["true", ""]), ["true", ""]);
        assert_eq!(inferred(&["1", "x", "None"]), ["1", "x", ""]);
        assert_eq!(inferred(&["", ""]), ["", ""]);
        assert_eq!(inferred(&["123456789012345678901234567890"]), ["1.2345678901234568e+29"]);
    }

    #[test]
    fn twice_is_once_and_a_column_without_name() {
        let text = b"Op Name,A,A\nx,1,2,\n";
        let mut table = Table::read(text).unwrap();
        assert_eq!(table.add_sources(&Scopes::default()).unwrap(), 0);
        let once = table.write().unwrap();
        let shown = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        assert_eq!(shown(&once), "Op Name,A,A.1,Unnamed: 3,Code Stack,Scope Name\nx,1,2,,,\n");
        let mut again = Table::read(&once).unwrap();
        again.add_sources(&Scopes::default()).unwrap();
        let twice = again.write().unwrap();
        let header = "Op Name,A,A.1,Unnamed: 3,Code Stack,Scope Name,Unnamed: 6";
        assert_eq!(shown(&twice), format!("{header}\nx,1,2,,,,\n"));
    }

    #[test]
    fn what_is_no_table_is_refused() {
        assert_eq!(Table::read(b"").err().unwrap(), "it is empty");
        assert_eq!(Table::read(b"a\n1,2,3\n").err().unwrap(), "row 1 has 3 cells, the header has 2");
        let refused = Table::read(b"a\n1\n").unwrap().add_sources(&Scopes::default()).unwrap_err();
        assert_eq!(refused, "it has no column \"Op Name\"");
    }
}
