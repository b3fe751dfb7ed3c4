//! What was measured of the value that shows the culprit, number by number.

use msprobe_report::Cell;
use msprobe_report::answer;

use super::Culprit;
use crate::Mode;
use crate::metrics::Metric;
use crate::side::{Leaf, Scalar, ValueShape};

/// Names of the four statistics, in the order in which a value has them.
const STATISTICS: [&str; 4] = ["max", "min", "mean", "norm"];

impl Culprit {
    /// The evidence of an answer.
    pub(super) fn measured(&self, mode: Mode) -> Vec<answer::Evidence> {
        let shown = &self.evidence;
        let mut all = Vec::new();
        if let Some((target, golden)) = &shown.argument {
            let [own, other] = [target, golden].map(|leaf| cell(&leaf.statistics[0]));
            all.push(answer::Evidence::of_sides(&self.name, &target.place, "argument", own, other));
        }
        let Some(value) = shown.target.as_ref().or(shown.golden.as_ref()) else { return all };
        let place = &*value.place;
        let sides =
            |measure, target, golden| answer::Evidence::of_sides(&self.name, place, measure, target, golden);
        let pair = |measure, measured| answer::Evidence::of_pair(&self.name, place, measure, measured);
        let (Some(target), Some(golden)) = (&shown.target, &shown.golden) else {
            let [own, other] = [&shown.target, &shown.golden].map(|side| Cell::Bool(side.is_some()));
            all.push(sides("recorded", own, other));
            return all;
        };
        let both = |of: fn(&Leaf) -> Cell| [of(target), of(golden)];
        let mut add = |measure, [own, other]: [Cell; 2]| all.push(sides(measure, own, other));
        add("dtype", both(|leaf| Cell::Text(leaf.dtype.to_string())));
        add("shape", both(|leaf| sizes(&leaf.shape)));
        if mode == Mode::Md5 {
            add(
                "checksum",
                both(|leaf| leaf.md5.as_ref().map_or(Cell::Empty, |sum| Cell::Text(sum.to_string()))),
            );
        }
        if shown.shows_numbers(mode) {
            for (index, measure) in STATISTICS.into_iter().enumerate() {
                let both = [target, golden].map(|leaf| cell(&leaf.statistics[index]));
                if both != [Cell::Empty, Cell::Empty] {
                    add(measure, both);
                }
            }
        }
        if let Some((error, limit)) = shown.error {
            all.push(pair("relative_error", Cell::Float(error)).tolerating(limit.tolerated));
        }
        if let Some(metrics) = &shown.metrics {
            let named = [
                ("cosine", metrics.cosine),
                ("euclidean_distance", metrics.euclidean),
                ("max_abs_error", metrics.max_abs),
                ("max_relative_error", metrics.max_relative),
                ("within_thousandth", metrics.within_thousandth),
                ("within_five_thousandths", metrics.within_five_thousandths),
            ];
            let known = named.into_iter().filter_map(|(measure, metric): (_, Metric)| {
                metric.number().map(|number| pair(measure, Cell::Float(number)))
            });
            all.extend(known);
        }
        all.extend(shown.first_difference.map(|index| pair("first_difference", Cell::Int(index.into()))));
        all
    }
}

fn cell(scalar: &Scalar) -> Cell {
    match scalar {
        Scalar::Null => Cell::Empty,
        Scalar::Bool(value) => Cell::Bool(*value),
        Scalar::Int(value) => Cell::Int((*value).into()),
        Scalar::Large(value) => Cell::Int(**value),
        Scalar::Float(value) => Cell::Float(*value),
        Scalar::Text(text) => Cell::Text(text.to_string()),
    }
}

/// A shape as numbers, where it has some.
fn sizes(shape: &ValueShape) -> Cell {
    let numbers = shape.sizes().map(|sizes| sizes.iter().map(|&size| usize::try_from(size)).collect());
    match numbers {
        Some(Ok(sizes)) => Cell::Sizes(sizes),
        _ => Cell::Text(shape.to_string()),
    }
}
