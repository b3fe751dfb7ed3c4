//! A row of the final details, cell by cell.

use crate::cells::{BLANK, Number};
use crate::status::Status;

/// Headers of the final details.
pub const FINAL_DETAILS: [&str; 28] = [
    "API Name",
    "小值域错误比值",
    "小值域判定结果",
    "均方根误差比值",
    "均方根误差判定结果",
    "相对误差最大值比值",
    "相对误差最大值判定结果",
    "相对误差平均值比值",
    "相对误差平均值判定结果",
    "误差均衡性比值",
    "误差均衡性判定结果",
    "inf/nan错误率",
    "inf/nan判定结果",
    "相对误差错误率",
    "相对误差判定结果",
    "绝对误差错误率",
    "绝对误差判定结果",
    "二进制一致错误率",
    "二进制一致错误率判定结果",
    "ULP误差平均值",
    "ULP误差大于阈值占比",
    "ULP误差大于阈值占比比值",
    "ULP误差判定结果",
    "双千指标",
    "双千指标判定结果",
    "比对结果",
    "比对算法",
    "Message",
];

/// Headers of the final result.
pub const FINAL_RESULT: [&str; 4] = ["API Name", "Forward Test Success", "Backward Test Success", "Message"];

/// Decimals of every number.
const PRECISION: usize = 14;

/// A cell, by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cell {
    SmallValues = 1,
    Rmse = 3,
    MaxRelative = 5,
    MeanRelative = 7,
    Balance = 9,
    NonFinite = 11,
    Relative = 13,
    Absolute = 15,
    ErrorRate = 17,
    MeanUlp = 19,
    UlpProportion = 20,
    UlpRatio = 21,
    Thousandth = 23,
}

const STATUS: usize = 25;

/// What was found of one output.
#[derive(Debug, Clone)]
pub(super) struct Row {
    cells: Vec<String>,
    /// Whether it is good.
    pub(super) status: Status,
    /// What is to be said of it.
    pub(super) message: String,
}

impl Row {
    pub(super) fn new(name: &str, algorithm: &str) -> Row {
        let mut cells = vec![BLANK.to_owned(); FINAL_DETAILS.len()];
        name.clone_into(&mut cells[0]);
        algorithm.clone_into(&mut cells[STATUS + 1]);
        Row { cells, status: Status::Pass, message: String::new() }
    }

    pub(super) fn skipped(name: &str, message: String) -> Row {
        Row { status: Status::Skip, message, ..Row::new(name, BLANK) }
    }

    pub(super) fn number(&mut self, cell: Cell, value: f64) {
        self.cells[cell as usize] = Number::Wide(value).text(PRECISION);
    }

    /// The status behind a number.
    pub(super) fn judge(&mut self, cell: Cell, is_good: bool) {
        let status = if is_good { Status::Pass } else { Status::Error };
        status.as_str().clone_into(&mut self.cells[cell as usize + 1]);
    }

    /// All cells, under [`FINAL_DETAILS`].
    pub(super) fn cells(mut self) -> Vec<String> {
        self.status.as_str().clone_into(&mut self.cells[STATUS]);
        self.cells[STATUS + 2] = self.message;
        self.cells
    }
}
