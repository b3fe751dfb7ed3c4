//! The details of a run on one device, as the final compare reads them.

use std::collections::HashMap;
use std::path::Path;

use msprobe_report::error::{Code, CompareError};

use crate::csv_file::Table;

/// A column that the final compare needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    Name,
    DeviceDtype,
    SmallValues,
    Rmse,
    MaxRelative,
    MeanRelative,
    Balance,
    ErrorRate,
    NonFinite,
    Relative,
    Absolute,
    MeanUlp,
    UlpProportion,
    Thousandth,
}

/// The headers of them, in the order of the enum.
const NEEDED: [&str; 14] = [
    "API Name",
    "DEVICE Dtype",
    "小值域错误占比",
    "均方根误差",
    "相对误差最大值",
    "相对误差平均值",
    "误差均衡性",
    "二进制一致错误率",
    "inf/nan错误率",
    "相对误差错误率",
    "绝对误差错误率",
    "ULP误差平均值",
    "ULP误差大于阈值占比",
    "双千指标",
];

impl Column {
    /// Its header.
    pub(super) fn header(self) -> &'static str {
        NEEDED[self as usize]
    }
}

/// What tables take for nothing at all when they are read, as the reference's reader does.
const NO_VALUE: [&str; 19] = [
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A",
    "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
];

/// The details of one device.
pub(super) struct Side {
    table: Table,
    columns: [usize; NEEDED.len()],
    shape: Option<usize>,
    status: Option<usize>,
    message: Option<usize>,
    /// The first row of a name, and how many there are.
    names: HashMap<String, (usize, usize)>,
}

impl Side {
    /// Reads the file; `word` is what the reference calls it where a column is missing.
    pub(super) fn read(path: &Path, word: &str) -> Result<Side, CompareError> {
        let table = Table::read(path).map_err(|error| {
            CompareError::new(Code::InvalidFile, format!("{}: {error}", path.display()))
                .with_hint("give the accuracy_checking_details_*.csv that run_ut wrote")
        })?;
        let missing: Vec<&str> =
            NEEDED.iter().copied().filter(|header| table.column(header).is_none()).collect();
        if !missing.is_empty() {
            let message = format!("The following columns {} are missing in{word}_csv", missing.join(","));
            return Err(CompareError::new(Code::InvalidFile, message)
                .with_hint("give the accuracy_checking_details_*.csv that run_ut wrote, not the result"));
        }
        let columns = NEEDED.map(|header| table.column(header).unwrap_or_default());
        let mut names: HashMap<String, (usize, usize)> = HashMap::with_capacity(table.len());
        for row in 0..table.len() {
            let name = table.cell(row, columns[Column::Name as usize]).into_owned();
            names.entry(name).or_insert((row, 0)).1 += 1;
        }
        let [shape, status, message] = ["Shape", "Status", "Message"].map(|header| table.column(header));
        Ok(Side { table, columns, shape, status, message, names })
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// The first row of a name, and how many rows have it.
    pub(super) fn find(&self, name: &str) -> Option<(usize, usize)> {
        self.names.get(name).copied()
    }

    pub(super) fn text(&self, row: usize, column: Column) -> String {
        self.table.cell(row, self.columns[column as usize]).into_owned()
    }

    pub(super) fn shape(&self, row: usize) -> String {
        self.shape.map(|column| self.table.cell(row, column).into_owned()).unwrap_or_default()
    }

    pub(super) fn status(&self, row: usize) -> String {
        self.status.map(|column| self.table.cell(row, column).into_owned()).unwrap_or_default()
    }

    /// The message; `nan` where there is none.
    pub(super) fn message(&self, row: usize) -> String {
        let text = self.message.map(|column| self.table.cell(row, column).into_owned()).unwrap_or_default();
        if NO_VALUE.contains(&text.as_str()) { "nan".to_owned() } else { text }
    }

    /// A metric.
    pub(super) fn number(&self, row: usize, column: Column) -> Result<f64, BadMetric> {
        let text = self.text(row, column);
        let text = text.trim();
        if text.is_empty() {
            return Err(BadMetric::Blank);
        }
        text.parse().map_err(|_| BadMetric::NoNumber)
    }
}

/// Why a metric cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadMetric {
    /// It is not there.
    #[error("ERROR: Input data is an empty string")]
    Blank,
    /// It is no number.
    #[error("ERROR: Input data cannot be converted to float")]
    NoNumber,
}
