//! The result table of the newest form: rows matched by name alone, requires_grad next to each other, a verdict of
//! three grades with its reasons, and the analysis of the first difference across ranks.

mod difference;
mod first_difference;
mod judge;
mod leaf;
mod pairing;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

pub use msprobe_compare::Mode;
use msprobe_compare::metrics::{TensorComparison, compare_tensors_widened};
use msprobe_compare::pairing::RowPair;
use msprobe_compare::python_text::list_of_texts;
use msprobe_compare::side::{Leaf, Side, Stacks};
use msprobe_report::console::Console;
use msprobe_report::{CellSink, SheetRows};

pub use self::difference::{Difference, difference};
pub use self::first_difference::{RankTable, first_difference};
pub use self::judge::{Grade, JudgedIn, JudgedRow, Judging, Verdict, judge_call};
pub use self::leaf::dtype_shown;
use self::leaf::{Shown, requires_grad_text};
use crate::matching::Keys;
use crate::metrics::{METRIC_HEADERS, in_columns};
use crate::table::{
    COMMON_HEADERS, DIFFERENCE_HEADERS, Infinities, STATISTICS_HEADERS, checksum_cells, compare_tensor_files,
    data_name_cell, python_bool, shape_cells,
};

const NOT_MATCHED: &str = "N/A";
const NO_DATA: &str = "No valid data found. No compare result file generated. Please check input json.";

/// How rows are matched and real data is compared.
#[derive(Debug, Clone, Default)]
pub struct NewestOptions {
    /// Whether call numbers are left out of names.
    pub fuzzy: bool,
    /// Whether the two sides were written under different frameworks.
    pub across_frameworks: bool,
    /// Where the golden name of each row comes from.
    pub keys: Keys,
    /// Whether each row of real data is logged.
    pub log_tensors: bool,
}

/// Two sides, row by row. As [`SheetRows`] it writes what a csv shows; [`NewestTable::workbook`] has the cells of a
/// workbook.
pub struct NewestTable<'a> {
    target: &'a Side,
    golden: &'a Side,
    mode: Mode,
    stacks: Option<&'a Stacks>,
    pairs: Vec<RowPair>,
    tensors: Vec<TensorComparison>,
    failures: Vec<String>,
    verdicts: Vec<Verdict>,
}

impl<'a> NewestTable<'a> {
    /// Matches, measures and judges. If a side has no rows, that is said and the table is empty: no file is to be
    /// written then. A tensor file that cannot be read costs its row and is among [`NewestTable::failures`].
    pub fn compare(
        target: &'a Side,
        golden: &'a Side,
        mode: Mode,
        stacks: Option<&'a Stacks>,
        options: &NewestOptions,
        console: &dyn Console,
    ) -> NewestTable<'a> {
        let mut table = NewestTable {
            target,
            golden,
            mode,
            stacks,
            pairs: Vec::new(),
            tensors: Vec::new(),
            failures: Vec::new(),
            verdicts: Vec::new(),
        };
        if target.rows.is_empty() || golden.rows.is_empty() {
            console.warning(NO_DATA);
            return table;
        }
        table.pairs = pairing::pair_rows(target, golden, options, console);
        if mode == Mode::All {
            (table.tensors, table.failures) = compare_tensor_files(
                compare_tensors_widened,
                (target, golden),
                &table.pairs,
                options.log_tensors,
                console,
            );
        }
        table.verdicts = judge::judge(&table, options.across_frameworks);
        table
    }

    /// The headers, in order.
    pub fn headers(&self) -> Vec<String> {
        let mut headers: Vec<&str> = COMMON_HEADERS.to_vec();
        headers.extend(["NPU Requires_grad", "Bench Requires_grad"]);
        match self.mode {
            Mode::All => headers.extend(METRIC_HEADERS),
            Mode::Summary => headers.extend(DIFFERENCE_HEADERS),
            Mode::Md5 => headers.extend(["NPU MD5", "BENCH MD5"]),
        }
        if self.mode != Mode::Md5 {
            headers.extend(STATISTICS_HEADERS);
        }
        headers.extend(["Requires_grad Consistent", "Result", "Err_message"]);
        headers.extend(self.stacks.map(|_| "NPU_Stack_Info"));
        headers.extend((self.mode == Mode::All).then_some("Data_name"));
        headers.into_iter().map(str::to_owned).collect()
    }

    /// The rows, in the order of the target.
    pub fn pairs(&self) -> &[RowPair] {
        &self.pairs
    }

    /// What was measured of real data, one per row; empty in other modes.
    pub fn tensors(&self) -> &[TensorComparison] {
        &self.tensors
    }

    /// The same by rows of the target and of the golden side, for those who pair rows in their own way.
    pub fn tensor_pairs(&self) -> HashMap<(usize, usize), TensorComparison> {
        let measured = self.pairs.iter().zip(&self.tensors);
        measured.filter_map(|(pair, it)| Some(((pair.target, pair.golden.ok()?), it.clone()))).collect()
    }

    /// Tensor files that could not be read, and why.
    pub fn failures(&self) -> &[String] {
        &self.failures
    }

    /// The verdict of each row.
    pub fn verdicts(&self) -> &[Verdict] {
        &self.verdicts
    }

    /// The data under test.
    pub fn target(&self) -> &'a Side {
        self.target
    }

    /// What it is measured against.
    pub fn golden(&self) -> &'a Side {
        self.golden
    }

    /// What is compared.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The same rows as cells of a workbook.
    pub fn workbook(&self) -> Workbook<'_, 'a> {
        Workbook(self)
    }

    /// The two rows of a pair.
    fn leaves(&self, pair: &RowPair) -> (&'a Leaf, Option<&'a Leaf>) {
        (&self.target.rows[pair.target], pair.golden.ok().map(|row| &self.golden.rows[row]))
    }

    fn shown(&self, pair: &RowPair) -> (Shown<'a>, Option<Shown<'a>>) {
        let (target, golden) = self.leaves(pair);
        let record = |side: &'a Side, leaf: &Leaf| {
            side.records.get(leaf.record as usize).map_or("", |record| &*record.name)
        };
        let shown = |side, leaf| Shown::of(record(side, leaf), leaf);
        (shown(self.target, target), golden.map(|golden| shown(self.golden, golden)))
    }

    /// Frames of the first row of a record; nothing for other rows.
    fn frames(&self, pair: &RowPair) -> Option<&'a [Box<str>]> {
        let record = self.target.records.get(self.target.rows[pair.target].record as usize)?;
        if record.rows.start != pair.target {
            return None;
        }
        Some(&self.stacks?.of(&record.name)?.frames)
    }

    fn write_cells(&self, row: usize, infinities: Infinities, sink: &mut dyn CellSink) {
        let pair = &self.pairs[row];
        let (target, golden) = self.leaves(pair);
        let (shown_target, shown_golden) = self.shown(pair);
        let other = |of: fn(&Leaf) -> &str| golden.map_or(NOT_MATCHED, of);
        sink.text(&target.name);
        sink.text(other(|leaf| &leaf.name));
        sink.text(shown_target.dtype);
        sink.text(shown_golden.as_ref().map_or(NOT_MATCHED, |golden| golden.dtype));
        shape_cells(target, golden, sink);
        let (target_grad, golden_grad) = (requires_grad_text(target), other(requires_grad_text));
        sink.text(target_grad);
        sink.text(golden_grad);
        match self.mode {
            Mode::All => {
                for metric in in_columns(&self.tensors[row].metrics) {
                    infinities.metric(metric, sink);
                }
            }
            Mode::Summary => {
                difference::cells(&leaf::differences(&shown_target, shown_golden.as_ref()), sink);
            }
            Mode::Md5 => checksum_cells(target, golden, sink),
        }
        if self.mode != Mode::Md5 {
            let of_golden = shown_golden.as_ref().map(|golden| &*golden.statistics);
            infinities.statistics(&shown_target.statistics, of_golden, sink);
        }
        sink.text(python_bool(target_grad == golden_grad));
        let verdict = self.verdicts[row];
        sink.text(verdict.grade().as_str());
        sink.text(&verdict.json());
        if self.stacks.is_some() {
            match self.frames(pair) {
                Some(frames) => sink.text(&list_of_texts(frames)),
                None => sink.text(NOT_MATCHED),
            }
        }
        if self.mode == Mode::All {
            data_name_cell(target, golden, sink);
        }
    }
}

impl SheetRows for NewestTable<'_> {
    fn len(&self) -> usize {
        self.pairs.len()
    }

    fn cells(&self, row: usize, sink: &mut dyn CellSink) {
        self.write_cells(row, Infinities::Csv, sink);
    }
}

/// The rows of a table as cells of a workbook.
pub struct Workbook<'t, 'a>(&'t NewestTable<'a>);

impl SheetRows for Workbook<'_, '_> {
    fn len(&self) -> usize {
        self.0.pairs.len()
    }

    fn cells(&self, row: usize, sink: &mut dyn CellSink) {
        self.0.write_cells(row, Infinities::Workbook, sink);
    }
}
