//! The standards held against a reference device.

use msprobe_tensor::DType;

use super::input::{BadMetric, Column, Side};
use super::row::{Cell, Row};
use crate::standards::{Standard, power};
use crate::status::Status;

/// Ratios above these are errors.
const RATIO_LIMIT: f64 = 2.0;
const MAX_RATIO_LIMIT: f64 = 10.0;
const THOUSANDTH: f64 = 0.999;

/// The dtypes that standards are made for; everything else is the same or not.
pub(super) fn float_dtype(text: &str) -> Option<DType> {
    let dtype = DType::from_torch_name(text.trim())?;
    let is_known =
        matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64 | DType::C64 | DType::C128);
    is_known.then_some(dtype)
}

/// How the standard is called in tables.
fn algorithm(standard: Standard) -> &'static str {
    match standard {
        Standard::BinaryConsistency => "二进制一致法",
        Standard::AbsoluteThreshold => "绝对阈值法",
        Standard::ThousandthThreshold => "双千指标法",
        Standard::UlpCompare => "ULP误差比对法",
        Standard::Benchmark => "标杆比对法",
        Standard::AccumulativeErrorCompare => "累积误差比对法",
    }
}

/// The smallest divisor of a ratio.
fn floor(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => power(-11),
        DType::BF16 => power(-8),
        _ => power(-14),
    }
}

/// How many times larger the target's metric is than the reference's.
pub(super) fn ratio(target: f64, reference: f64, dtype: DType) -> f64 {
    target.abs() / reference.abs().max(floor(dtype))
}

/// Two metrics of which at least one is not finite: whether they agree.
fn agreement(target: f64, reference: f64) -> Option<bool> {
    if target.is_finite() && reference.is_finite() {
        return None;
    }
    Some(target == reference || target.is_nan() && reference.is_nan())
}

/// What is said of metrics that are not finite.
fn note(column: Column, agrees: bool) -> String {
    let what = if agrees { "同为同号inf或nan" } else { "inf或nan不一致" };
    format!("{}{what}\n", column.header())
}

/// A row of the tested side, and that of the reference.
pub(super) struct Sides<'s> {
    pub(super) target: &'s Side,
    pub(super) target_row: usize,
    pub(super) reference: &'s Side,
    pub(super) reference_row: usize,
}

impl Sides<'_> {
    fn target(&self, column: Column) -> Result<f64, BadMetric> {
        self.target.number(self.target_row, column)
    }

    fn reference(&self, column: Column) -> Result<f64, BadMetric> {
        self.reference.number(self.reference_row, column)
    }
}

/// Judges a row by the standard of its API.
pub(super) fn judge(
    row_name: &str,
    api: &str,
    dtype: Option<DType>,
    sides: &Sides<'_>,
    is_strict: bool,
) -> Result<Row, BadMetric> {
    let standard = if dtype.is_some() { Standard::of(api) } else { Standard::BinaryConsistency };
    let dtype = dtype.unwrap_or(DType::F32);
    let mut row = Row::new(row_name, algorithm(standard));
    match standard {
        Standard::BinaryConsistency => {
            let rate = sides.target(Column::ErrorRate)?;
            one(&mut row, Cell::ErrorRate, rate, rate == 0.0, "ERROR: 二进制一致错误率超过阈值\n");
        }
        Standard::ThousandthThreshold => {
            let share = sides.target(Column::Thousandth)?;
            one(&mut row, Cell::Thousandth, share, share >= THOUSANDTH, "ERROR: 双千指标不达标\n");
        }
        Standard::AbsoluteThreshold => {
            let texts = absolute(&mut row, sides)?;
            row.message = texts.concat();
        }
        Standard::AccumulativeErrorCompare => accumulative(&mut row, dtype, sides)?,
        Standard::UlpCompare => ulp(&mut row, dtype, sides)?,
        Standard::Benchmark => benchmark(&mut row, dtype, sides, is_strict)?,
    }
    Ok(row)
}

fn one(row: &mut Row, cell: Cell, value: f64, is_good: bool, message: &str) {
    row.number(cell, value);
    row.judge(cell, is_good);
    if !is_good {
        row.status = Status::Error;
        message.clone_into(&mut row.message);
    }
}

/// Fills the three ratios; the answer is what failed.
fn absolute(row: &mut Row, sides: &Sides<'_>) -> Result<Vec<&'static str>, BadMetric> {
    let mut texts = Vec::new();
    for (cell, column, text) in [
        (Cell::NonFinite, Column::NonFinite, "ERROR: inf/nan错误率超过阈值"),
        (Cell::Relative, Column::Relative, "ERROR: 相对误差错误率超过阈值"),
        (Cell::Absolute, Column::Absolute, "ERROR: 绝对误差错误率超过阈值"),
    ] {
        let rate = sides.target(column)?;
        row.number(cell, rate);
        row.judge(cell, rate == 0.0);
        if rate != 0.0 {
            row.status = Status::Error;
            texts.push(text);
        }
    }
    Ok(texts)
}

fn accumulative(row: &mut Row, dtype: DType, sides: &Sides<'_>) -> Result<(), BadMetric> {
    let mut texts: Vec<String> = absolute(row, sides)?.into_iter().map(|text| format!("{text}\n")).collect();
    let limit = match dtype {
        DType::F16 => power(-20),
        DType::BF16 => power(-7),
        _ => power(-14),
    };
    let balance = sides.target(Column::Balance)?;
    row.number(Cell::Balance, balance);
    row.judge(Cell::Balance, balance <= limit);
    if balance > limit || balance.is_nan() {
        row.status = Status::Error;
        texts.push("ERROR: 误差均衡性超过阈值\n".to_owned());
    }
    row.message = texts.join("\n");
    Ok(())
}

fn ulp(row: &mut Row, dtype: DType, sides: &Sides<'_>) -> Result<(), BadMetric> {
    let mut metrics = [0.0; 2];
    let mut share = f64::NAN;
    let mut is_consistent = true;
    for (index, column) in [Column::MeanUlp, Column::UlpProportion].into_iter().enumerate() {
        let (target, reference) = (sides.target(column)?, sides.reference(column)?);
        metrics[index] = target;
        match agreement(target, reference) {
            None => share = ratio(target, reference, dtype),
            Some(agrees) => {
                row.message.push_str(&note(column, agrees));
                is_consistent &= agrees;
                share = f64::NAN;
            }
        }
    }
    let [mean, proportion] = metrics;
    row.number(Cell::MeanUlp, mean);
    row.number(Cell::UlpProportion, proportion);
    row.number(Cell::UlpRatio, share);
    let is_good = match dtype {
        DType::F16 | DType::BF16 => proportion < 0.001 || share < 1.0,
        _ => mean < 64.0 || proportion < 0.05 || share < 1.0,
    };
    if is_consistent {
        // The status of this metric stands one cell behind its ratio.
        row.judge(Cell::UlpRatio, is_good);
    }
    if !(is_good && is_consistent) {
        row.status = Status::Error;
        row.message.push_str("ERROR: ULP误差不满足标准\n");
    }
    Ok(())
}

fn benchmark(row: &mut Row, dtype: DType, sides: &Sides<'_>, is_strict: bool) -> Result<(), BadMetric> {
    let (mut notes, mut texts) = (String::new(), String::new());
    for (cell, column, limit, text) in [
        (Cell::SmallValues, Column::SmallValues, RATIO_LIMIT, "ERROR: 小值域错误比值超过阈值\n"),
        (Cell::Rmse, Column::Rmse, RATIO_LIMIT, "ERROR: 均方根误差比值超过阈值\n"),
        (Cell::MaxRelative, Column::MaxRelative, MAX_RATIO_LIMIT, "ERROR: 相对误差最大值比值超过阈值\n"),
        (Cell::MeanRelative, Column::MeanRelative, RATIO_LIMIT, "ERROR: 相对误差平均值比值超过阈值\n"),
        (Cell::Balance, Column::Balance, RATIO_LIMIT, "ERROR: 误差均衡性比值超过阈值\n"),
    ] {
        let (target, reference) = (sides.target(column)?, sides.reference(column)?);
        let (share, is_good) = match agreement(target, reference) {
            Some(agrees) => {
                notes.push_str(&note(column, agrees));
                (f64::NAN, agrees)
            }
            None => {
                let share = ratio(target, reference, dtype);
                (share, share <= limit)
            }
        };
        row.number(cell, share);
        row.judge(cell, is_good);
        // The reference shows the balance of errors and does not judge by it.
        if !is_good && (is_strict || cell != Cell::Balance) {
            row.status = Status::Error;
            texts.push_str(text);
        }
    }
    row.message = notes + &texts;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_have_a_floor() {
        let found = [
            (0.5, 0.25, DType::F32),
            (0.0, 0.0, DType::F32),
            (0.001, 0.0, DType::F32),
            (0.001, 0.0, DType::F16),
            (0.001, 0.0, DType::BF16),
            (-0.5, 0.25, DType::F16),
            (1.0, 1e-9, DType::F64),
            (3.0, -1.5, DType::BF16),
        ]
        .map(|(target, reference, dtype)| ratio(target, reference, dtype));
        assert_eq!(found, [2.0, 0.0, 16.384, 2.048, 0.256, 2.0, 16384.0, 2.0]);
    }

    #[test]
    fn whole_numbers_have_no_standard_of_floats() {
        assert_eq!(float_dtype("torch.bfloat16"), Some(DType::BF16));
        assert_eq!(float_dtype("torch.int64"), None);
        assert_eq!(float_dtype("<class 'int'>"), None);
        assert_eq!(float_dtype("torch.float8_e5m2"), None);
    }
}
