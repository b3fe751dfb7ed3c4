//! Writing results to stdout.

use std::io::{self, IsTerminal, StdoutLock, Write};

use msprobe_report::answer::{Answer, Section};
use msprobe_report::{Cell, Table, Visible, rows_as_json, write_csv, write_text, write_visible_lines};
use msprobe_tensor::{Number, TensorView};
use serde_json::Value;

use crate::args::OutputFormat;
use crate::logging::use_color;

/// The answer of a command, in colour where a person reads it.
pub(crate) fn print_answer(answer: &Answer, sections: &[Section]) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let color = out.get_ref().is_terminal() && use_color();
    answer.write(sections, color, &mut out)?;
    out.flush()
}

/// What a command has to say in the end.
pub(crate) struct Results {
    /// Facts about the whole, for json; `rows_key` is added to them.
    pub(crate) facts: Vec<(&'static str, Value)>,
    /// Key of the rows in json.
    pub(crate) rows_key: &'static str,
    /// Lines above the table in text.
    pub(crate) heading: Vec<String>,
    pub(crate) table: Table,
    /// The straight answer, below the table in text.
    pub(crate) verdict: String,
}

impl Results {
    pub(crate) fn print(self, format: OutputFormat) -> io::Result<()> {
        let mut out = io::BufWriter::new(io::stdout().lock());
        match format {
            OutputFormat::Text => self.print_text(&mut out)?,
            OutputFormat::Csv => write_csv(&self.table, &mut out)?,
            OutputFormat::Json => {
                let mut object: serde_json::Map<String, Value> =
                    self.facts.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
                object.insert(self.rows_key.to_owned(), Value::Array(rows_as_json(&self.table)));
                serde_json::to_writer_pretty(&mut out, &Value::Object(object))?;
                writeln!(out)?;
            }
        }
        out.flush()
    }

    fn print_text(&self, out: &mut io::BufWriter<StdoutLock<'_>>) -> io::Result<()> {
        let color = out.get_ref().is_terminal() && use_color();
        write_visible_lines(self.heading.iter().map(String::as_str), out)?;
        if !self.table.rows.is_empty() {
            writeln!(out)?;
            write_text(&self.table, color, out)?;
        }
        writeln!(out)?;
        writeln!(out, "{}", Visible(&self.verdict))
    }
}

/// A statistic, or nothing.
pub(crate) fn number_cell(number: Option<Number>) -> Cell {
    match number {
        None => Cell::Empty,
        Some(Number::Bool(value)) => Cell::Bool(value),
        Some(Number::Int(value)) => Cell::Int(value),
        Some(Number::Float(value)) => Cell::Float(value),
    }
}

/// A count of elements.
pub(crate) fn count_cell(count: u64) -> Cell {
    Cell::Int(count.into())
}

/// Row-major index of an element as one index per dimension.
pub(crate) fn unravel(flat: u64, view: &TensorView<'_>) -> Vec<usize> {
    let mut rest = flat as usize;
    let mut index: Vec<usize> = view
        .shape()
        .iter()
        .rev()
        .map(|&size| {
            let position = rest % size.max(1);
            rest /= size.max(1);
            position
        })
        .collect();
    index.reverse();
    index
}

/// `1.2 MiB`.
pub(crate) fn human_size(bytes: u64) -> String {
    indicatif::HumanBytes(bytes).to_string()
}

/// `1 tensor`, `2 tensors`.
pub(crate) fn tensors(count: usize) -> String {
    if count == 1 { "1 tensor".to_owned() } else { format!("{count} tensors") }
}

/// What to call a tensor in text: a bare one has no name.
pub(crate) fn display_name(name: &str) -> &str {
    if name.is_empty() { "(tensor)" } else { name }
}

/// Gives bare tensors, whose name is empty, something to read in the first column.
pub(crate) fn name_bare_tensors(table: &mut Table) {
    for row in &mut table.rows {
        if let Some(Cell::Text(name)) = row.cells.first_mut() {
            *name = display_name(name).to_owned();
        }
    }
}
