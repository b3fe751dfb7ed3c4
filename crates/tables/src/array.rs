//! Single arrays as their tables show them: shape and statistics in numpy's words.

use half::f16;
use msprobe_report::Cell;
use msprobe_tensor::{DType, Number, TensorView, statistics};

use msprobe_compare::python_text::float_repr;

/// `str` of a tuple of sizes.
pub(crate) fn shape_text(shape: &[usize]) -> String {
    match shape {
        [one] => format!("({one},)"),
        sizes => format!("({})", sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// Maximum, minimum, mean and L2 norm in the dtype numpy gives them; empty cells where there are none.
pub(crate) fn statistics_cells(view: &TensorView<'_>) -> [Cell; 4] {
    let dtype = view.dtype();
    let mut stats = statistics(view);
    if dtype == DType::Bool && stats.count > 0 {
        let ones = stats.count - stats.zero_count;
        stats.mean = Some(Number::Float(ones as f64 / stats.count as f64));
        stats.norm = Some(Number::Float((ones as f64).sqrt()));
    }
    if view.shape().is_empty() {
        // A scalar's mean and norm are numbers of their own here, not the scalar once more.
        let value = stats.max.map(Number::as_f64);
        stats.mean = value.map(Number::Float);
        stats.norm = value.map(|value| Number::Float(value.abs()));
    }
    [stats.max, stats.min, stats.mean, stats.norm].map(|number| match number {
        None => Cell::Empty,
        Some(Number::Bool(value)) => Cell::Bool(value),
        Some(Number::Int(value)) => Cell::Int(value),
        Some(Number::Float(value)) => Cell::Float(in_dtype(value, dtype)),
    })
}

fn in_dtype(value: f64, dtype: DType) -> f64 {
    match dtype {
        DType::F16 => f16::from_f64(value).to_f64(),
        DType::F32 | DType::C64 => f64::from(value as f32),
        _ => value,
    }
}

/// `str` of a number of that dtype: the shortest digits that tell it from its neighbours.
pub(crate) fn number_text(value: f64, dtype: DType) -> String {
    let shortest: Option<f64> = match dtype {
        DType::F16 => (0..5)
            .filter_map(|decimals| format!("{value:.decimals$e}").parse::<f64>().ok())
            .find(|short| f16::from_f64(*short) == f16::from_f64(value)),
        DType::F32 | DType::C64 => (value as f32).to_string().parse().ok(),
        _ => None,
    };
    float_repr(shortest.unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_tuples() {
        assert_eq!([shape_text(&[]), shape_text(&[3]), shape_text(&[2, 3])], ["()", "(3,)", "(2, 3)"]);
    }

    #[test]
    fn numbers_have_as_few_digits_as_their_dtype_needs() {
        assert_eq!(number_text(in_dtype(-0.173_8, DType::F16), DType::F16), "-0.1738");
        assert_eq!(number_text(in_dtype(6.1e-5, DType::F16), DType::F16), "6.1e-05");
        assert_eq!(number_text(in_dtype(65504.0, DType::F16), DType::F16), "65500.0");
        assert_eq!(number_text(in_dtype(0.1, DType::F32), DType::F32), "0.1");
        assert_eq!(number_text(0.1, DType::I64), "0.1");
        assert_eq!(number_text(f64::INFINITY, DType::F16), "inf");
    }

    #[test]
    fn statistics_of_bools_and_scalars() {
        let bools = TensorView::contiguous(DType::Bool, vec![4], &[1, 0, 0, 0]).unwrap();
        let expected = [Cell::Bool(true), Cell::Bool(false), Cell::Float(0.25), Cell::Float(1.0)];
        assert_eq!(statistics_cells(&bools), expected);
        let bytes = (-2f32).to_le_bytes();
        let scalar = TensorView::contiguous(DType::F32, vec![], &bytes).unwrap();
        let negative = Cell::Float(-2.0);
        assert_eq!(
            statistics_cells(&scalar),
            [negative.clone(), negative.clone(), negative, Cell::Float(2.0)]
        );
        let none = TensorView::contiguous(DType::F32, vec![0], &[]).unwrap();
        assert_eq!(statistics_cells(&none), [Cell::Empty, Cell::Empty, Cell::Empty, Cell::Empty]);
    }
}
