//! A row of the details: the cells by name, not by place.

use serde::{Deserialize, Serialize};

use crate::cells::{BLANK, Number};
use crate::status::Status;

/// Headers of the details, in order.
pub const DETAILS: [&str; 23] = [
    "API Name",
    "Bench Dtype",
    "DEVICE Dtype",
    "Shape",
    "余弦相似度",
    "最大绝对误差",
    "双百指标",
    "双千指标",
    "双万指标",
    "二进制一致错误率",
    "误差均衡性",
    "均方根误差",
    "小值域错误占比",
    "相对误差最大值",
    "相对误差平均值",
    "inf/nan错误率",
    "相对误差错误率",
    "绝对误差错误率",
    "ULP误差最大值",
    "ULP误差平均值",
    "ULP误差大于阈值占比",
    "Status",
    "Message",
];

/// Headers of the result.
pub const RESULT: [&str; 4] = ["API name", "Forward Test Success", "Backward Test Success", "Message"];

/// A metric of a row, in the order of the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Metric {
    Cosine,
    MaxAbs,
    Hundredth,
    Thousandth,
    TenThousandth,
    ErrorRate,
    Balance,
    Rmse,
    SmallValues,
    MaxRelative,
    MeanRelative,
    NonFinite,
    Relative,
    Absolute,
    MaxUlp,
    MeanUlp,
    UlpProportion,
}

const METRICS: usize = Metric::UlpProportion as usize + 1;

/// Which test decided, and by how much.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Identifier of what was measured.
    pub measure: String,
    /// What was found; none of what is no number.
    pub value: Option<f64>,
    /// The limit.
    pub limit: f64,
}

/// What was found of one output.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Judged {
    pub(crate) status: Status,
    pub(crate) message: String,
    pub(crate) bench_dtype: Option<String>,
    pub(crate) device_dtype: Option<String>,
    pub(crate) shape: Option<String>,
    pub(crate) metrics: [Option<Number>; METRICS],
    pub(crate) decision: Option<Decision>,
    pub(crate) magnitudes: Vec<msprobe_tensor::Magnitude>,
}

impl Judged {
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Judged {
        Judged {
            status,
            message: message.into(),
            bench_dtype: None,
            device_dtype: None,
            shape: None,
            metrics: [None; METRICS],
            decision: None,
            magnitudes: Vec::new(),
        }
    }

    pub(crate) fn set(&mut self, metric: Metric, number: Number) {
        self.metrics[metric as usize] = Some(number);
    }

    /// The cells under [`DETAILS`].
    pub(crate) fn row(&self, name: String, precision: usize) -> Vec<String> {
        let or_blank = |text: Option<&String>| text.map_or(BLANK.to_owned(), Clone::clone);
        let mut row = vec![
            name,
            or_blank(self.bench_dtype.as_ref()),
            or_blank(self.device_dtype.as_ref()),
            or_blank(self.shape.as_ref()),
        ];
        let metrics = self.metrics.iter();
        row.extend(metrics.map(|number| number.map_or(BLANK.to_owned(), |number| number.text(precision))));
        row.push(self.status.as_str().to_owned());
        row.push(self.message.clone());
        row
    }
}

/// A shape as a Python tuple: `(3, 4)`, `(4,)`, `()`.
pub(crate) fn shape_text(shape: &[usize]) -> String {
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    match sizes.as_slice() {
        [one] => format!("({one},)"),
        sizes => format!("({})", sizes.join(", ")),
    }
}
