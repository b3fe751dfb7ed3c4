//! Differences of statistics.

use msprobe_compare::python_text::push_float;
use msprobe_compare::side::{Leaf, Scalar};
use msprobe_report::CellSink;

use super::cells::Infinities;

/// How far a statistic is from its partner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Difference {
    /// There are no two numbers.
    None,
    /// It is NaN.
    Nan,
    /// Signed; the relative error in percent is missing where the golden one is zero.
    Number(f64, Option<f64>),
}

/// Target minus golden.
pub fn difference(target: &Scalar, golden: &Scalar) -> Difference {
    let (Some(target), Some(golden)) = (target.number(), golden.number()) else { return Difference::None };
    let difference = target - golden;
    if difference.is_nan() {
        return Difference::Nan;
    }
    Difference::Number(difference, (golden != 0.0).then(|| (difference / golden * 100.0).abs()))
}

/// Whether any statistic is off by more than half of the larger one, by sign.
pub fn needs_double_check(target: &Leaf, golden: &Leaf) -> bool {
    target.statistics.iter().zip(&golden.statistics).any(|(target, golden)| {
        let (Some(target), Some(golden)) = (target.number(), golden.number()) else { return false };
        (target - golden).abs() / (target.max(golden).abs() + 1e-10) > 0.5
    })
}

/// The eight cells of differences.
pub(super) fn difference_cells(target: &Leaf, golden: Option<&Leaf>, sink: &mut dyn CellSink) {
    let differences: [Difference; 4] = std::array::from_fn(|index| match golden {
        Some(golden) => difference(&target.statistics[index], &golden.statistics[index]),
        None => Difference::None,
    });
    for difference in differences {
        match difference {
            Difference::None => sink.text("N/A"),
            Difference::Nan => sink.text("Nan"),
            Difference::Number(value, _) => Infinities::Workbook.number(value, sink),
        }
    }
    let mut text = String::new();
    for difference in differences {
        match difference {
            Difference::None | Difference::Number(_, None) => sink.text("N/A"),
            Difference::Nan => sink.text("Nan"),
            Difference::Number(_, Some(percent)) => {
                text.clear();
                push_float(&mut text, percent);
                text.push('%');
                sink.text(&text);
            }
        }
    }
}
