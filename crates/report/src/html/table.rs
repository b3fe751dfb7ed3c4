//! A table of a page: rows asked for when they are written, in blocks with the distinct values of each column.

use std::collections::HashMap;
use std::io;
use std::ops::Range;

use serde_json::json;

use super::data::{DataWriter, piece};
use crate::Tone;
use crate::number::{not_finite, push_integer, push_repr};
use crate::ordered::in_order;
use crate::sheet::{CellSink, SheetRows};
use crate::sheet_json::push_string;

/// Enough that values which repeat are written seldom.
pub(super) const ROWS_PER_BLOCK: usize = 4096;
/// After so many rows it shows whether values repeat.
const ROWS_TO_JUDGE: usize = 256;
/// Whole numbers beyond this lose digits in a browser and are given as text.
const EXACT_INTEGER: i128 = 1 << 53;

/// A table of a page.
pub struct PageTable<'a> {
    /// Shown on its tab.
    pub name: String,
    /// One per column.
    pub headers: Vec<String>,
    /// The rows.
    pub rows: &'a dyn SheetRows,
    /// Columns of long text such as call stacks: not in the grid, but beside it when a row is chosen.
    pub detail_columns: Vec<usize>,
    /// Columns that are switched off at first.
    pub hidden_columns: Vec<usize>,
    /// The row that is shown and marked at first: the evidence.
    pub first_row: Option<usize>,
}

impl<'a> PageTable<'a> {
    /// A table all of whose columns are shown.
    pub fn new(name: &str, headers: Vec<String>, rows: &'a dyn SheetRows) -> PageTable<'a> {
        PageTable {
            name: name.to_owned(),
            headers,
            rows,
            detail_columns: Vec::new(),
            hidden_columns: Vec::new(),
            first_row: None,
        }
    }

    /// A description, and the rows in as many pieces as needed.
    pub(super) fn write_data(&self, out: &mut DataWriter<'_>) -> io::Result<()> {
        let described = json!({
            "name": self.name,
            "headers": self.headers,
            "count": self.rows.len(),
            "details": self.detail_columns,
            "hidden": self.hidden_columns,
            "first": self.first_row.filter(|&row| row < self.rows.len()),
        });
        out.view("table", &described)?;
        let number = out.number();
        in_order(
            0..self.rows.len(),
            ROWS_PER_BLOCK,
            |rows| piece(number, &RowBlock::of(self.rows, self.headers.len(), rows).json()),
            |piece| out.append(&piece),
        )
    }
}

/// `{"n":rows,"f":"012…","c":[column,…]}`, where a column is a list of its values, or `{"v":values,"i":indexes}`; the
/// indexes are missing where there is one value only, the tones where no row has any.
struct RowBlock {
    count: usize,
    tones: Vec<u8>,
    columns: Vec<BlockColumn>,
}

#[derive(Default)]
struct BlockColumn {
    /// Distinct values as JSON, one after the other.
    values: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<usize>,
    numbers: HashMap<Box<[u8]>, u32>,
    rows: Vec<u32>,
}

impl RowBlock {
    fn of(source: &dyn SheetRows, columns: usize, rows: Range<usize>) -> RowBlock {
        let mut block = RowBlock {
            count: rows.len(),
            tones: Vec::with_capacity(rows.len()),
            columns: (0..columns).map(|_| BlockColumn::default()).collect(),
        };
        let mut scratch = Vec::new();
        for row in rows {
            block.tones.push(match source.tone(row) {
                Tone::Plain | Tone::Good => b'0',
                Tone::Warning => b'1',
                Tone::Bad => b'2',
                Tone::Unknown => b'3',
            });
            let mut sink = RowSink { columns: &mut block.columns, next: 0, scratch: &mut scratch };
            source.cells(row, &mut sink);
            while sink.next < sink.columns.len() {
                sink.empty();
            }
        }
        block
    }

    fn json(&self) -> Vec<u8> {
        let mut json = b"{\"n\":".to_vec();
        push_integer(&mut json, self.count);
        if self.tones.iter().any(|&tone| tone != b'0') {
            json.extend_from_slice(b",\"f\":\"");
            json.extend_from_slice(&self.tones);
            json.push(b'"');
        }
        json.extend_from_slice(b",\"c\":[");
        for (index, column) in self.columns.iter().enumerate() {
            if index > 0 {
                json.push(b',');
            }
            column.push_json(&mut json);
        }
        json.extend_from_slice(b"]}");
        json
    }
}

impl BlockColumn {
    /// Whether values are worth an index. Once they are not, each counts as new, and it stays so.
    fn repeats(&self) -> bool {
        self.rows.len() < ROWS_TO_JUDGE || self.ends.len() * 2 <= self.rows.len()
    }

    fn push(&mut self, value: &[u8]) {
        let repeats = self.repeats();
        let known = if repeats { self.numbers.get(value).copied() } else { None };
        let number = known.unwrap_or_else(|| {
            let number = self.ends.len() as u32;
            self.values.extend_from_slice(value);
            self.ends.push(self.values.len());
            if repeats {
                self.numbers.insert(value.into(), number);
            }
            number
        });
        self.rows.push(number);
    }

    fn value(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let end = self.ends.get(number).copied().unwrap_or(start);
        self.values.get(start..end).unwrap_or_default()
    }

    fn push_json(&self, out: &mut Vec<u8>) {
        let distinct = self.ends.len();
        // Values that hardly repeat are cheaper without an index.
        if distinct > 1 && distinct * 2 > self.rows.len() {
            push_list(out, self.rows.iter().map(|&number| self.value(number as usize)));
            return;
        }
        out.extend_from_slice(b"{\"v\":");
        push_list(out, (0..distinct).map(|number| self.value(number)));
        if distinct > 1 {
            out.extend_from_slice(b",\"i\":[");
            for (index, &number) in self.rows.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                push_integer(out, number);
            }
            out.push(b']');
        }
        out.push(b'}');
    }
}

fn push_list<'a>(out: &mut Vec<u8>, values: impl Iterator<Item = &'a [u8]>) {
    out.push(b'[');
    for (index, value) in values.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(value);
    }
    out.push(b']');
}

struct RowSink<'a> {
    columns: &'a mut [BlockColumn],
    next: usize,
    scratch: &'a mut Vec<u8>,
}

impl RowSink<'_> {
    fn cell(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        self.scratch.clear();
        encode(self.scratch);
        if let Some(column) = self.columns.get_mut(self.next) {
            column.push(self.scratch);
        }
        self.next += 1;
    }
}

impl CellSink for RowSink<'_> {
    fn empty(&mut self) {
        self.cell(|out| out.extend_from_slice(b"null"));
    }

    fn text(&mut self, text: &str) {
        self.cell(|out| push_string(out, text));
    }

    fn number(&mut self, value: f64) {
        self.cell(|out| {
            if value.is_finite() {
                push_repr(out, value);
            } else {
                push_string(out, not_finite(value));
            }
        });
    }

    fn integer(&mut self, value: i128) {
        self.cell(|out| {
            let exact = (-EXACT_INTEGER..=EXACT_INTEGER).contains(&value);
            if exact {
                push_integer(out, value);
            } else {
                push_string(out, itoa::Buffer::new().format(value));
            }
        });
    }
}
