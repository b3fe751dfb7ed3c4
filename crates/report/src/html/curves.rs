//! Curves of a page: many named series over the same steps, as JSON in blocks.

use std::io;
use std::ops::Range;

use serde_json::json;

use super::data::{DataWriter, piece};
use crate::Tone;
use crate::number::{not_finite, push_integer, push_repr};
use crate::ordered::{in_order, rows_per_piece};
use crate::sheet_json::push_string;

/// Cells of a curve that are not values: its name, note, tone, flags and limits.
const OTHER_CELLS: usize = 5;

/// Curves over the same steps.
pub struct Curves<'a> {
    /// Shown on its tab.
    pub title: String,
    /// What the curves run over, such as `step`.
    pub x_label: String,
    /// Where the values of all curves stand, going up.
    pub xs: Vec<i64>,
    /// The curves, in the order in which they are shown.
    pub series: &'a dyn CurveSeries,
}

/// Curves that are asked for one by one, from several threads.
pub trait CurveSeries: Sync {
    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What a curve is called.
    fn name(&self, index: usize) -> &str;

    /// A line about a curve, shown below its name.
    fn note(&self, index: usize) -> String;

    /// How a curve is coloured.
    fn tone(&self, index: usize) -> Tone;

    /// A value for each of the `xs`; NaN where there is none.
    fn values(&self, index: usize) -> Vec<f64>;

    /// Which of the `xs` are marked, by their place.
    fn flagged(&self, index: usize) -> Vec<usize>;

    /// Levels a curve is held against, each over the places it holds for.
    fn limits(&self, index: usize) -> Vec<Limit> {
        let _ = index;
        Vec::new()
    }
}

/// A level that is drawn as a line from one place to another; where both are the same, as a short one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// The first of the `xs` it holds for, by its place.
    pub from: usize,
    /// The last one.
    pub to: usize,
    /// The level.
    pub value: f64,
}

impl Curves<'_> {
    /// A description, and the curves in as many pieces as needed.
    pub(super) fn write_data(&self, out: &mut DataWriter<'_>) -> io::Result<()> {
        let described = json!({
            "name": self.title,
            "count": self.series.len(),
            "xLabel": self.x_label,
            "xs": self.xs,
        });
        out.view("curves", &described)?;
        let number = out.number();
        in_order(
            0..self.series.len(),
            rows_per_piece(self.xs.len() + OTHER_CELLS),
            |range| piece(number, &self.block(range)),
            |piece| out.append(&piece),
        )
    }

    /// `[[name,note,tone,[value,…],[flagged,…],[[from,to,level],…]],…]`.
    fn block(&self, range: Range<usize>) -> Vec<u8> {
        let mut json = vec![b'['];
        for index in range {
            if json.len() > 1 {
                json.push(b',');
            }
            json.push(b'[');
            push_string(&mut json, self.series.name(index));
            json.push(b',');
            push_string(&mut json, &self.series.note(index));
            json.push(b',');
            push_string(&mut json, self.series.tone(index).as_str());
            json.extend_from_slice(b",[");
            let values = self.series.values(index);
            // One too many would have no place on the axis.
            for (place, &value) in values.iter().take(self.xs.len()).enumerate() {
                if place > 0 {
                    json.push(b',');
                }
                push_value(&mut json, value);
            }
            json.extend_from_slice(b"],[");
            let flagged = self.series.flagged(index);
            for (place, flag) in flagged.into_iter().filter(|&flag| flag < self.xs.len()).enumerate() {
                if place > 0 {
                    json.push(b',');
                }
                push_integer(&mut json, flag);
            }
            json.extend_from_slice(b"],[");
            let limits = self.series.limits(index);
            let drawn =
                |limit: &Limit| limit.value.is_finite() && limit.from <= limit.to && limit.to < self.xs.len();
            for (place, limit) in limits.into_iter().filter(drawn).enumerate() {
                json.extend_from_slice(if place > 0 { b",[" } else { b"[" });
                push_integer(&mut json, limit.from);
                json.push(b',');
                push_integer(&mut json, limit.to);
                json.push(b',');
                push_value(&mut json, limit.value);
                json.push(b']');
            }
            json.extend_from_slice(b"]]");
        }
        json.push(b']');
        json
    }
}

/// Missing values are `null`; infinities are words, to be read but not drawn.
fn push_value(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        out.extend_from_slice(b"null");
    } else if value.is_infinite() {
        push_string(out, not_finite(value));
    } else {
        push_repr(out, value);
    }
}
