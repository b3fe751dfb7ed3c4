//! The result table of the old form: its modes and headers, and cells made when they are asked for.

mod cells;
mod statistics;
mod tensors;

use msprobe_compare::Mode;
use msprobe_compare::metrics::TensorComparison;
use msprobe_compare::pairing::RowPair;
use msprobe_compare::side::{Leaf, Side, Stacks};
use msprobe_report::{CellSink, SheetRows, Tone};

use crate::highlight::Highlights;
use crate::metrics::{self, Accuracy, METRIC_HEADERS, NO_GOLDEN, in_columns};

pub(crate) use self::cells::{
    Infinities, checksum_cells, data_name_cell, python_bool, shape_cells, shape_text,
};
pub use self::statistics::{Difference, difference, needs_double_check};
pub(crate) use self::tensors::compare_tensor_files;
pub(crate) use self::tensors::warn_of_rows_not_judged;
pub use self::tensors::{CompareViews, TensorFiles};

/// The columns every table begins with.
pub const COMMON_HEADERS: [&str; 6] =
    ["NPU Name", "Bench Name", "NPU Dtype", "Bench Dtype", "NPU Tensor Shape", "Bench Tensor Shape"];

/// Statistics of both sides.
pub const STATISTICS_HEADERS: [&str; 8] =
    ["NPU max", "NPU min", "NPU mean", "NPU l2norm", "Bench max", "Bench min", "Bench mean", "Bench l2norm"];
/// Differences of statistics.
pub const DIFFERENCE_HEADERS: [&str; 8] = [
    "Max diff",
    "Min diff",
    "Mean diff",
    "L2norm diff",
    "MaxRelativeErr",
    "MinRelativeErr",
    "MeanRelativeErr",
    "NormRelativeErr",
];

const NOT_MATCHED: &str = "N/A";
const DOUBLE_CHECK: &str = "Need double check api accuracy.";
const FUZZY: &str = " Fuzzy matching data, the comparison accuracy may be affected.";

/// What came of a row by the rules of the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowResult {
    /// Real data.
    Accuracy(Accuracy),
    /// Nothing was paired with it.
    NotMatched,
    /// A statistic is far from its partner.
    DoubleCheck,
    /// Statistics are close enough.
    Unremarkable,
    /// Checksums are the same, or there are none.
    Pass,
    /// Checksums differ.
    Different,
}

impl RowResult {
    /// The word in the table.
    pub fn as_str(self) -> &'static str {
        match self {
            RowResult::Accuracy(accuracy) => accuracy.as_str(),
            RowResult::NotMatched => NOT_MATCHED,
            RowResult::DoubleCheck => "Warning",
            RowResult::Unremarkable => "",
            RowResult::Pass => "pass",
            RowResult::Different => "Different",
        }
    }

    /// Whether accuracy is not reached.
    pub fn is_failure(self) -> bool {
        matches!(
            self,
            RowResult::Accuracy(Accuracy::NotReached) | RowResult::DoubleCheck | RowResult::Different
        )
    }
}

/// The headers of a table, in order.
pub(crate) fn headers(mode: Mode, has_stacks: bool) -> Vec<&'static str> {
    let own: &[&[&str]] = match mode {
        Mode::All => &[&METRIC_HEADERS, &STATISTICS_HEADERS, &["Accuracy Reached or Not", "Err_message"]],
        Mode::Summary => &[&DIFFERENCE_HEADERS, &STATISTICS_HEADERS, &["Result", "Err_message"]],
        Mode::Md5 => &[&["NPU MD5", "BENCH MD5", "Result"]],
    };
    let mut headers = [&COMMON_HEADERS[..], &own.concat()].concat();
    headers.extend(has_stacks.then_some("NPU_Stack_Info"));
    headers.extend((mode == Mode::All).then_some("Data_name"));
    headers
}

/// Two sides, row by row.
pub struct Table<'a> {
    /// The data under test.
    pub target: &'a Side,
    /// What it is measured against.
    pub golden: &'a Side,
    /// What is compared.
    pub mode: Mode,
    /// The rows.
    pub pairs: Vec<RowPair>,
    /// Results of real data, one per row; empty in other modes.
    pub tensors: Vec<TensorComparison>,
    /// Call stacks, if the column is wanted.
    pub stacks: Option<&'a Stacks>,
    /// Colours and their reasons.
    pub highlights: Highlights,
    /// Whether rows may have been matched under different names, which real data mentions.
    pub fuzzy: bool,
}

impl Table<'_> {
    /// The headers, in order.
    pub fn headers(&self) -> Vec<String> {
        headers(self.mode, self.stacks.is_some()).into_iter().map(str::to_owned).collect()
    }

    /// The rows of a pair.
    pub fn leaves(&self, pair: &RowPair) -> (&Leaf, Option<&Leaf>) {
        (&self.target.rows[pair.target], pair.golden.ok().map(|row| &self.golden.rows[row]))
    }

    /// What the column `Result`, or `Accuracy Reached or Not`, says of a row.
    pub fn result(&self, row: usize) -> RowResult {
        let pair = &self.pairs[row];
        let (target, golden) = self.leaves(pair);
        match (self.mode, golden) {
            (Mode::All, _) => RowResult::Accuracy(Accuracy::of(&self.tensors[row].metrics)),
            // Nothing on either side reads the same.
            (Mode::Md5, None) if target.md5.is_none() => RowResult::Pass,
            (_, None) => RowResult::NotMatched,
            (Mode::Summary, Some(golden)) if needs_double_check(target, golden) => RowResult::DoubleCheck,
            (Mode::Summary, Some(_)) => RowResult::Unremarkable,
            (Mode::Md5, Some(golden)) if target.md5 == golden.md5 => RowResult::Pass,
            (Mode::Md5, Some(_)) => RowResult::Different,
        }
    }

    /// The message of a row, reasons of its colour included.
    pub fn message(&self, row: usize) -> String {
        let pair = &self.pairs[row];
        let mut message = match self.mode {
            Mode::All => metrics::message(&self.tensors[row]),
            _ if pair.golden.is_err() => NO_GOLDEN.to_owned(),
            _ if self.result(row) == RowResult::DoubleCheck => DOUBLE_CHECK.to_owned(),
            _ => String::new(),
        };
        let (target, golden) = self.leaves(pair);
        if self.fuzzy && self.mode == Mode::All && golden.is_some_and(|golden| golden.name != target.name) {
            message.push_str(FUZZY);
        }
        for reason in self.highlights.reasons(row) {
            if !message.is_empty() {
                message.push('\n');
            }
            message.push_str(reason);
        }
        message
    }

    fn common_cells(target: &Leaf, golden: Option<&Leaf>, sink: &mut dyn CellSink) {
        let other = |of: fn(&Leaf) -> &str| golden.map_or(NOT_MATCHED, of);
        sink.text(&target.name);
        sink.text(other(|leaf| &leaf.name));
        sink.text(&target.dtype);
        sink.text(other(|leaf| &leaf.dtype));
        shape_cells(target, golden, sink);
    }

    fn stack_cell(&self, pair: &RowPair, sink: &mut dyn CellSink) {
        let Some(stacks) = self.stacks else { return };
        let record = &self.target.records[self.target.rows[pair.target].record as usize];
        let stack = if record.rows.start == pair.target { stacks.of(&record.name) } else { None };
        match stack {
            Some(stack) => sink.text(&stack.cell),
            None => sink.text(NOT_MATCHED),
        }
    }
}

impl SheetRows for Table<'_> {
    fn len(&self) -> usize {
        self.pairs.len()
    }

    fn cells(&self, row: usize, sink: &mut dyn CellSink) {
        let pair = &self.pairs[row];
        let (target, golden) = self.leaves(pair);
        Self::common_cells(target, golden, sink);
        match self.mode {
            Mode::All => {
                for metric in in_columns(&self.tensors[row].metrics) {
                    Infinities::Workbook.metric(metric, sink);
                }
            }
            Mode::Summary => statistics::difference_cells(target, golden, sink),
            Mode::Md5 => checksum_cells(target, golden, sink),
        }
        if self.mode != Mode::Md5 {
            let of_golden = golden.map(|golden| &golden.statistics);
            Infinities::Workbook.statistics(&target.statistics, of_golden, sink);
        }
        text_or_empty(self.result(row).as_str(), sink);
        if self.mode != Mode::Md5 {
            text_or_empty(&self.message(row), sink);
        }
        self.stack_cell(pair, sink);
        if self.mode == Mode::All {
            data_name_cell(target, golden, sink);
        }
    }

    fn tone(&self, row: usize) -> Tone {
        self.highlights.tone(row)
    }
}

fn text_or_empty(text: &str, sink: &mut dyn CellSink) {
    if text.is_empty() { sink.empty() } else { sink.text(text) }
}
