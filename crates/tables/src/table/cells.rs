//! Values as cells.

use std::borrow::Cow;

use msprobe_compare::metrics::Metric;
use msprobe_compare::side::{Leaf, Scalar, ValueShape};
use msprobe_report::CellSink;

use super::NOT_MATCHED;

/// The text of a shape.
pub(crate) fn shape_text(shape: &ValueShape) -> Cow<'_, str> {
    match shape {
        ValueShape::Other(text) => Cow::Borrowed(text),
        scalar if scalar.is_scalar() => Cow::Borrowed("[]"),
        shape => Cow::Owned(shape.to_string()),
    }
}

/// The cells of the shapes of a row. Most are the same on both sides.
pub(crate) fn shape_cells(target: &Leaf, golden: Option<&Leaf>, sink: &mut dyn CellSink) {
    let text = shape_text(&target.shape);
    sink.text(&text);
    match golden.map(|golden| &golden.shape) {
        None => sink.text(NOT_MATCHED),
        Some(shape) if *shape == target.shape => sink.text(&text),
        Some(shape) => sink.text(&shape_text(shape)),
    }
}

/// How values that are no finite numbers are kept from being taken for something else.
#[derive(Clone, Copy)]
pub(crate) enum Infinities {
    /// With a leading blank.
    Csv,
    /// With a trailing tab, as Excel shows them.
    Workbook,
}

impl Infinities {
    /// A number.
    pub(crate) fn number(self, value: f64, sink: &mut dyn CellSink) {
        match self {
            _ if value.is_finite() => sink.number(value),
            _ if value.is_nan() => sink.text("Nan"),
            Infinities::Csv => sink.text(if value > 0.0 { " inf" } else { " -inf" }),
            Infinities::Workbook => sink.text(if value > 0.0 { "inf\t" } else { "-inf\t" }),
        }
    }

    /// A metric, or the word for why there is none.
    pub(crate) fn metric(self, metric: Metric, sink: &mut dyn CellSink) {
        match metric {
            Metric::Number(value) => self.number(value, sink),
            Metric::Missing(why) => sink.text(why.as_str()),
        }
    }

    /// A statistic. `null` is what stands for one that is not there.
    pub(crate) fn statistic(self, scalar: &Scalar, null: &str, sink: &mut dyn CellSink) {
        match scalar {
            Scalar::Null => sink.text(null),
            Scalar::Bool(value) => sink.text(python_bool(*value)),
            Scalar::Int(value) => sink.integer((*value).into()),
            Scalar::Large(value) => self.number(**value as f64, sink),
            Scalar::Float(value) => self.number(*value, sink),
            Scalar::Text(text) if text.is_empty() => sink.empty(),
            Scalar::Text(text) => sink.text(text),
        }
    }
}

/// `str` of a bool.
pub(crate) fn python_bool(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}
