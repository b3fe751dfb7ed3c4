//! Values as cells.

use msprobe_report::CellSink;

use msprobe_compare::side::Scalar;

/// A number; what is not finite as the text Excel shows.
pub(crate) fn float_cell(value: f64, sink: &mut dyn CellSink) {
    if value.is_finite() {
        sink.number(value);
    } else if value.is_nan() {
        sink.text("nan\t");
    } else {
        sink.text(if value > 0.0 { "inf\t" } else { "-inf\t" });
    }
}

/// A statistic. `null` is what stands for one that is not there.
pub(crate) fn scalar_cell(scalar: &Scalar, null: &str, sink: &mut dyn CellSink) {
    match scalar {
        Scalar::Null => sink.text(null),
        Scalar::Bool(value) => sink.text(if *value { "True" } else { "False" }),
        Scalar::Int(value) => sink.integer((*value).into()),
        Scalar::Large(value) => float_cell(**value as f64, sink),
        Scalar::Float(value) if value.is_nan() => sink.text("Nan"),
        Scalar::Float(value) => float_cell(*value, sink),
        Scalar::Text(text) if text.is_empty() => sink.empty(),
        Scalar::Text(text) => sink.text(text),
    }
}
