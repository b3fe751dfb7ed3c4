//! Rows that are kept as cells, for tables of moderate length.

use crate::{Cell, CellSink, SheetRows, Tone};

/// Rows in the order they are written, all as long as the header.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VecRows {
    rows: Vec<Vec<Cell>>,
    /// Those of the first rows; the others have none.
    tones: Vec<Tone>,
}

impl VecRows {
    /// Rows ready to be written.
    pub fn new(rows: Vec<Vec<Cell>>) -> VecRows {
        VecRows { rows, tones: Vec::new() }
    }

    /// Rows with their colours.
    pub fn coloured(rows: Vec<Vec<Cell>>, tones: Vec<Tone>) -> VecRows {
        VecRows { rows, tones }
    }

    /// The rows.
    pub fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }
}

impl SheetRows for VecRows {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn cells(&self, row: usize, sink: &mut dyn CellSink) {
        for cell in self.rows.get(row).into_iter().flatten() {
            put(cell, sink);
        }
    }

    fn tone(&self, row: usize) -> Tone {
        self.tones.get(row).copied().unwrap_or_default()
    }
}

/// NaN is an empty cell and infinity a word: sheets know neither as a number.
fn put(cell: &Cell, sink: &mut dyn CellSink) {
    match cell {
        Cell::Empty => sink.empty(),
        Cell::Text(text) if text.is_empty() => sink.empty(),
        Cell::Text(text) => sink.text(text),
        Cell::Bool(value) => sink.text(if *value { "True" } else { "False" }),
        Cell::Int(value) => sink.integer(*value),
        Cell::Float(value) if value.is_nan() => sink.empty(),
        Cell::Float(value) if value.is_infinite() => sink.text(if *value > 0.0 { "inf" } else { "-inf" }),
        Cell::Float(value) => sink.number(*value),
        Cell::Sizes(sizes) => sink.text(&format!("{sizes:?}")),
    }
}

/// Cells as words, to be looked at: texts in quotes, `-` for nothing.
#[derive(Debug, Default)]
pub struct Words(pub Vec<String>);

impl CellSink for Words {
    fn empty(&mut self) {
        self.0.push("-".into());
    }

    fn text(&mut self, text: &str) {
        self.0.push(format!("'{text}'"));
    }

    fn number(&mut self, value: f64) {
        self.0.push(value.to_string());
    }

    fn integer(&mut self, value: i128) {
        self.0.push(value.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_keep_their_kind() {
        let row = vec![
            Cell::Empty,
            Cell::Text(String::new()),
            Cell::Text("=1".into()),
            Cell::Bool(true),
            Cell::Int(7),
            Cell::Float(0.5),
            Cell::Float(f64::NAN),
            Cell::Float(f64::NEG_INFINITY),
            Cell::Sizes(vec![2, 3]),
        ];
        let rows = VecRows::new(vec![row]);
        let mut words = Words::default();
        rows.cells(0, &mut words);
        rows.cells(1, &mut words);
        assert_eq!(words.0, ["-", "-", "'=1'", "'True'", "7", "0.5", "-", "'-inf'", "'[2, 3]'"]);
    }
}
