//! The rows of one result workbook that are wanted, read without keeping the others.

use std::fs::File;
use std::io::{BufReader, Seek};
use std::path::Path;

use calamine::{DataRef, Reader, Xlsx};
use msprobe_compare::Mode;
use msprobe_compare::python_text::float_repr;
use msprobe_report::Cell;
use msprobe_report::console::Console;
use msprobe_tensor::files::{Links, open_regular};

use super::bounds::{self, Bounds};
use super::config::Config;
use crate::metrics::METRIC_HEADERS;
use crate::table::{self, DIFFERENCE_HEADERS};

/// No table is wider; what stands further right belongs to nobody.
const MOST_COLUMNS: usize = 64;

/// The mode of a table, told by its header, which has to be one of those written by comparisons: with or without stacks,
/// and of real data with or without the names of files.
fn mode_of(headers: &[String]) -> Option<Mode> {
    [Mode::All, Mode::Summary, Mode::Md5].into_iter().find(|mode| {
        [false, true].iter().any(|has_stacks| {
            let known = table::headers(*mode, *has_stacks);
            *headers == *known || *mode == Mode::All && *headers == known[..known.len() - 1]
        })
    })
}

/// The columns that can be merged.
fn indexes(mode: Mode) -> &'static [&'static str] {
    match mode {
        Mode::All => &METRIC_HEADERS,
        Mode::Summary => &DIFFERENCE_HEADERS,
        Mode::Md5 => &[],
    }
}

/// What is wanted of one rank.
#[derive(Debug, PartialEq)]
pub(super) struct RankTable {
    /// The rank.
    pub rank: u64,
    /// The figures wanted, in the order wanted.
    pub indexes: Vec<String>,
    /// Name and figures of every row wanted, API by API.
    pub rows: Vec<(String, Vec<Cell>)>,
}

impl RankTable {
    /// Reads a table. `None`, and a message why, if it cannot be merged.
    pub(super) fn read(path: &Path, rank: u64, config: &Config, console: &dyn Console) -> Option<RankTable> {
        let refuse = |reason: String| {
            console.warning(&format!("{} is not merged: {reason}", path.display()));
        };
        let mut workbook = open(path).map_err(refuse).ok()?;
        let sheets = table_sheets(&workbook.sheet_names());
        let mut selection: Option<Selection<'_>> = None;
        for sheet in &sheets {
            let read = read_rows(&mut workbook, sheet, |row, cells| {
                if row > 0 {
                    if let Some(selection) = &mut selection {
                        selection.add(cells);
                    }
                } else if selection.is_none() {
                    selection = Some(Selection::new(cells, config)?);
                }
                Ok(())
            });
            read.map_err(refuse).ok()?;
        }
        let Some(selection) = selection else {
            refuse("it is empty".to_owned());
            return None;
        };
        for api in selection.apis_without_rows() {
            console.warning(&format!("{api} not found in rank{rank} compare result."));
        }
        Some(RankTable { rank, indexes: selection.indexes.clone(), rows: selection.finish() })
    }
}

/// Opens a workbook that holds no more than a table of results can.
fn open(path: &Path) -> Result<Xlsx<BufReader<File>>, String> {
    let mut file = open_regular(path, Links::Refuse).map_err(|error| error.to_string())?;
    bounds::check(BufReader::new(&mut file), Bounds::WORKBOOK)
        .map_err(|reason| format!("{reason} (hint: write the table again with msprobe compare)"))?;
    file.rewind().map_err(|error| error.to_string())?;
    Xlsx::new(BufReader::new(file)).map_err(|error| error.to_string())
}

/// The sheets of the main table: `Sheet`, or else the first, and those that continue it.
fn table_sheets(names: &[String]) -> Vec<String> {
    let Some(first) = names.iter().find(|name| *name == "Sheet").or(names.first()) else { return Vec::new() };
    let continues = |name: &&String| {
        let number = name.strip_prefix(first.as_str()).and_then(|rest| rest.strip_prefix('_'));
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    std::iter::once(first).chain(names.iter().filter(continues)).cloned().collect()
}

/// Hands over the rows of a sheet one by one, with their number. Cells that are not there are empty.
fn read_rows(
    workbook: &mut Xlsx<BufReader<File>>,
    sheet: &str,
    mut take: impl FnMut(u32, &[Cell]) -> Result<(), String>,
) -> Result<(), String> {
    let mut reader = workbook.worksheet_cells_reader(sheet).map_err(|error| error.to_string())?;
    let mut current: Option<u32> = None;
    let mut cells = Vec::new();
    while let Some(cell) = reader.next_cell().map_err(|error| error.to_string())? {
        let (row, column) = cell.get_position();
        if let Some(finished) = current
            && finished != row
        {
            take(finished, &cells)?;
            cells.clear();
        }
        current = Some(row);
        let column = column as usize;
        if column < MOST_COLUMNS {
            if cells.len() <= column {
                cells.resize(column + 1, Cell::Empty);
            }
            cells[column] = value(cell.get_value());
        }
    }
    current.map_or(Ok(()), |last| take(last, &cells))
}

fn value(data: &DataRef<'_>) -> Cell {
    match data {
        DataRef::Int(number) => Cell::Int((*number).into()),
        DataRef::Float(number) => Cell::Float(*number),
        DataRef::String(text) => Cell::Text(text.clone()),
        DataRef::SharedString(text) => Cell::Text((*text).to_owned()),
        DataRef::Bool(value) => Cell::Bool(*value),
        DataRef::Empty => Cell::Empty,
        other => Cell::Text(format!("{other:?}")),
    }
}

/// A number as Python would read it from a sheet: whole ones are integers.
fn text(cell: &Cell) -> String {
    match cell {
        Cell::Float(number) if number.fract() == 0.0 && number.abs() < 1e15 => format!("{number:.0}"),
        Cell::Float(number) => float_repr(*number),
        Cell::Bool(value) => if *value { "True" } else { "False" }.to_owned(),
        other => other.to_string(),
    }
}

/// Picks rows by API and cells by index.
struct Selection<'a> {
    apis: &'a [String],
    /// `{api}.`, as names contain it.
    needles: Vec<String>,
    /// How many rows each API has.
    counts: Vec<usize>,
    indexes: Vec<String>,
    /// Columns of the figures.
    columns: Vec<usize>,
    target_max: usize,
    golden_max: usize,
    /// Place of the API, name, figures.
    rows: Vec<(usize, String, Vec<Cell>)>,
}

impl<'a> Selection<'a> {
    fn new(headers: &[Cell], config: &'a Config) -> Result<Selection<'a>, String> {
        let headers: Vec<String> = headers.iter().map(text).collect();
        let mode = mode_of(&headers).ok_or("its header is not that of a compare result")?;
        if mode == Mode::Md5 {
            return Err("results of md5 mode cannot be merged".to_owned());
        }
        let known = indexes(mode);
        let indexes: Vec<String> = match &config.indexes {
            Some(indexes) => indexes.clone(),
            None => known.iter().map(|index| (*index).to_owned()).collect(),
        };
        if let Some(index) = indexes.iter().find(|index| !known.contains(&index.as_str())) {
            return Err(format!("it has no compare_index {index:?}, only {known:?}"));
        }
        let position = |name: &str| headers.iter().position(|header| header == name);
        Ok(Selection {
            apis: &config.apis,
            needles: config.apis.iter().map(|api| format!("{api}.")).collect(),
            counts: vec![0; config.apis.len()],
            columns: indexes.iter().filter_map(|index| position(index)).collect(),
            indexes,
            target_max: position("NPU max").unwrap_or(usize::MAX),
            golden_max: position("Bench max").unwrap_or(usize::MAX),
            rows: Vec::new(),
        })
    }

    fn add(&mut self, cells: &[Cell]) {
        let Some(Cell::Text(name)) = cells.first() else { return };
        let mut place = None;
        for (number, needle) in self.needles.iter().enumerate() {
            if name.contains(needle.as_str()) {
                self.counts[number] += 1;
                place = place.or(Some(number));
            }
        }
        let Some(place) = place else { return };
        let cell = |column: usize| cells.get(column).unwrap_or(&Cell::Empty);
        let figure = |column: &usize| match cell(*column) {
            Cell::Text(word) if matches!(word.as_str(), "N/A" | "unsupported" | "Nan") => {
                let (target, golden) = (text(cell(self.target_max)), text(cell(self.golden_max)));
                Cell::Text(format!("NPU:{target}  Bench:{golden}"))
            }
            other => other.clone(),
        };
        self.rows.push((place, name.clone(), self.columns.iter().map(figure).collect()));
    }

    fn apis_without_rows(&self) -> impl Iterator<Item = &String> {
        self.apis.iter().zip(&self.counts).filter(|(_, count)| **count == 0).map(|(api, _)| api)
    }

    /// The rows, API by API.
    fn finish(mut self) -> Vec<(String, Vec<Cell>)> {
        self.rows.sort_by_key(|(place, ..)| *place);
        self.rows.into_iter().map(|(_, name, figures)| (name, figures)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{COMMON_HEADERS, STATISTICS_HEADERS};

    fn mode(parts: &[&[&str]]) -> Option<Mode> {
        mode_of(&parts.concat().iter().map(|part| (*part).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn modes_are_told_by_headers() {
        let summary =
            [&COMMON_HEADERS[..], &DIFFERENCE_HEADERS, &STATISTICS_HEADERS, &["Result", "Err_message"]];
        let all = [
            &COMMON_HEADERS[..],
            &METRIC_HEADERS,
            &STATISTICS_HEADERS,
            &["Accuracy Reached or Not", "Err_message"],
        ];
        assert_eq!(mode(&summary), Some(Mode::Summary));
        assert_eq!(mode(&[&summary.concat(), &["NPU_Stack_Info"]]), Some(Mode::Summary));
        assert_eq!(mode(&[&all.concat(), &["NPU_Stack_Info", "Data_name"]]), Some(Mode::All));
        assert_eq!(mode(&[&all.concat(), &["Data_name"]]), Some(Mode::All));
        assert_eq!(mode(&[&summary.concat(), &["Data_name"]]), None);
        assert_eq!(mode(&[&COMMON_HEADERS, &["NPU MD5", "BENCH MD5", "Result"]]), Some(Mode::Md5));
        assert_eq!(mode(&[&COMMON_HEADERS, &["NPU Requires_grad"]]), None);
    }

    #[test]
    fn continuation_sheets_belong_to_the_table() {
        let names = ["Sheet", "Sheet_2", "Verdict", "Sheet_3", "Sheet_x"].map(str::to_owned);
        assert_eq!(table_sheets(&names), ["Sheet", "Sheet_2", "Sheet_3"]);
        assert!(table_sheets(&[]).is_empty());
    }

    #[test]
    fn numbers_as_words() {
        assert_eq!(text(&Cell::Float(3.0)), "3");
        assert_eq!(text(&Cell::Float(0.1)), "0.1");
        assert_eq!(text(&Cell::Bool(true)), "True");
        assert_eq!(text(&Cell::Empty), "");
    }
}
