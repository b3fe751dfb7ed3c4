//! One [`Table`] model, many writers. Knows what a file format is, not what its rows are about.

pub mod answer;
pub mod console;
mod csv;
pub mod error;
mod html;
mod json;
mod ordered;
pub mod output;
pub mod paths;
mod plot;
mod rows;
mod sheet;
mod sheet_csv;
mod sheet_json;
mod text;
mod tone;
mod unfinished;
mod visible;
mod words;
mod xlsx;

use std::fmt;

pub use self::csv::write_csv;
pub use self::html::{
    AnswerBlock, Block, CurveSeries, Curves, Lane, Limit, Link, Mark, Node, Page, PageTable, Span, Timeline,
    Tree, write_page,
};
pub use self::json::{json_number, rows_as_json};
pub use self::plot::{LinePlot, line_plot_png};
pub use self::rows::{VecRows, Words};
pub use self::sheet::{CellSink, Sheet, SheetRows};
pub use self::sheet_csv::{CsvOptions, push_csv_row, write_sheet_csv};
pub use self::sheet_json::write_sheet_json;
pub use self::text::{short_number, write_text};
pub use self::tone::Tone;
pub use self::visible::{Visible, write_visible_lines};
pub use self::words::{counted, some_of};
pub use self::xlsx::write_workbook;
use msprobe_tensor::digits as number;

/// Kinds of files to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Formats {
    /// A workbook.
    pub xlsx: bool,
    /// Comma-separated values.
    pub csv: bool,
    /// JSON.
    pub json: bool,
    /// A page for a browser.
    pub html: bool,
}

/// A named column. `key` is for machines (csv header, json key), `title` for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Stable identifier in snake case.
    pub key: &'static str,
    /// Heading in text output.
    pub title: &'static str,
    /// Numbers are set flush right.
    pub right: bool,
}

impl Column {
    /// A column of words.
    pub const fn text(key: &'static str, title: &'static str) -> Column {
        Column { key, title, right: false }
    }

    /// A column of numbers.
    pub const fn number(key: &'static str, title: &'static str) -> Column {
        Column { key, title, right: true }
    }
}

/// One value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Nothing to show.
    Empty,
    /// Words.
    Text(String),
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i128),
    /// Any other number; text output shortens it, csv and json keep every digit.
    Float(f64),
    /// A list of sizes, such as a shape.
    Sizes(Vec<usize>),
}

impl fmt::Display for Cell {
    /// Full precision.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Empty => Ok(()),
            Cell::Text(text) => f.write_str(text),
            Cell::Bool(value) => write!(f, "{value}"),
            Cell::Int(value) => write!(f, "{value}"),
            Cell::Float(value) => write_float(f, *value),
            Cell::Sizes(sizes) => write!(f, "{sizes:?}"),
        }
    }
}

/// The shortest form that reads back to the same number; exponents where plain digits would be long.
fn write_float(f: &mut impl fmt::Write, value: f64) -> fmt::Result {
    let magnitude = value.abs();
    if value == 0.0 || !value.is_finite() || (1e-4..1e16).contains(&magnitude) {
        write!(f, "{value}")
    } else {
        write!(f, "{value:e}")
    }
}

/// One row: its cells in column order.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// As many as there are columns.
    pub cells: Vec<Cell>,
    /// Colour of the row in text.
    pub tone: Tone,
}

/// Rows under named columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, each with a cell per column.
    pub rows: Vec<Row>,
}

impl Table {
    /// Where the column of that key stands.
    pub fn position(&self, key: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.key == key)
    }

    /// Takes a column out, with its cells.
    pub fn drop_column(&mut self, key: &str) {
        if let Some(index) = self.position(key) {
            self.columns.remove(index);
            for row in &mut self.rows {
                row.cells.remove(index);
            }
        }
    }
}
