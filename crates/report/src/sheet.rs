//! Tables too long to be kept as cells: a row is asked for when it is written.

use crate::Tone;

/// Takes the cells of one row, left to right. Each call is one cell.
pub trait CellSink {
    /// Nothing.
    fn empty(&mut self);
    /// Words, whatever they look like: never taken for a number or a formula.
    fn text(&mut self, text: &str);
    /// A finite number. What is not finite has to be given as text.
    fn number(&mut self, value: f64);
    /// A whole number, in digits of any length.
    fn integer(&mut self, value: i128);
}

/// Rows that can be asked for in any order, from several threads.
pub trait SheetRows: Sync {
    /// Their number.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Hands over as many cells as there are headers.
    fn cells(&self, row: usize, sink: &mut dyn CellSink);

    /// Colour of a row.
    fn tone(&self, _row: usize) -> Tone {
        Tone::Plain
    }
}

/// Rows under headers, with a name.
pub struct Sheet<'a> {
    /// Shown on the tab of a workbook.
    pub name: String,
    /// One per column.
    pub headers: Vec<String>,
    /// The rows.
    pub rows: &'a dyn SheetRows,
}
