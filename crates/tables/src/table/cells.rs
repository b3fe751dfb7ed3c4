//! Values as cells.

use std::borrow::Cow;

use msprobe_compare::metrics::Metric;
use msprobe_compare::python_text::list_of_texts;
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

/// The cells of the checksums of a row.
pub(crate) fn checksum_cells(target: &Leaf, golden: Option<&Leaf>, sink: &mut dyn CellSink) {
    for leaf in [Some(target), golden] {
        sink.text(leaf.and_then(|leaf| leaf.md5.as_deref()).unwrap_or(NOT_MATCHED));
    }
}

/// The cell with the names of both tensor files.
pub(crate) fn data_name_cell(target: &Leaf, golden: Option<&Leaf>, sink: &mut dyn CellSink) {
    let name = |leaf: &Leaf| leaf.data_name.as_deref().unwrap_or("-1").to_owned();
    sink.text(&list_of_texts([name(target), golden.map_or(NOT_MATCHED.to_owned(), name)]));
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

    /// The statistics of both sides of a row.
    pub(crate) fn statistics(
        self,
        target: &[Scalar; 4],
        golden: Option<&[Scalar; 4]>,
        sink: &mut dyn CellSink,
    ) {
        let null = if golden.is_some() { "None" } else { NOT_MATCHED };
        for statistic in target {
            self.statistic(statistic, null, sink);
        }
        match golden {
            Some(golden) => golden.iter().for_each(|statistic| self.statistic(statistic, null, sink)),
            None => (0..4).for_each(|_| sink.text(NOT_MATCHED)),
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
