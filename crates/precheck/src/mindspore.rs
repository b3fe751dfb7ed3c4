//! Metrics and rows of the MindSpore check.

use msprobe_dump::python_text::float_repr;
use msprobe_tensor::plain_errors;

use crate::outcome::{Notes, Outcome, Worst};
use crate::status::Status;
use crate::verdict::row::{Decision, shape_text};
use crate::verdict::{Leaf, Sides};

/// Headers of the result.
pub const MINDSPORE_RESULT: [&str; 4] =
    ["API Name", "Forward Test Success", "Backward Test Success", "Message"];

/// Headers of the details.
pub const MINDSPORE_DETAILS: [&str; 9] = [
    "API Name",
    "Bench Dtype",
    "Tested Dtype",
    "Shape",
    "Cosine",
    "MaxAbsErr",
    "MaxRelativeErr",
    "Status",
    "Message",
];

const COSINE: f64 = 0.99;
const MAX_ABS: f64 = 0.001;
/// Stands in for zeros.
const EPSILON: f64 = 1e-8;

const COSINE_TEXT: &str = "cosine similarity is less than threshold: 0.99 ";
const NO_COSINE_TEXT: &str = "two inputs are not valid for computing cosine similarity, skip comparing ";
const MAX_ABS_TEXT: &str = "max absolute difference is greater than threshold: 0.001 ";
const NO_MAX_ABS_TEXT: &str =
    "two inputs are not valid for computing max absolute difference, skip comparing ";

/// What was found of one direction, or why there is nothing.
#[derive(Debug, Clone, Copy)]
pub enum Direction<'l, 'a> {
    /// Nothing was recorded of it.
    Absent,
    /// It could not be run.
    Failed(&'l str),
    /// Outputs of torch and of what is tested.
    Ran(Sides<'l, 'a>),
}

/// Judges an API.
pub fn compare(
    full_name: &str,
    forward: Direction<'_, '_>,
    backward: Direction<'_, '_>,
    notes: Notes,
) -> Outcome {
    let mut gathered = Gathered::default();
    let [forward, backward] =
        [("forward", forward), ("backward", backward)].map(|(word, direction)| match direction {
            Direction::Absent => None,
            Direction::Failed(message) => {
                gathered.message.push_str(message);
                gathered.reason = Some(message.to_owned());
                Some(Status::Skip)
            }
            Direction::Ran(sides) => gathered.direction(full_name, word, sides),
        });
    let cell = |status: Option<Status>| status.map_or(String::new(), |status| status.as_str().to_owned());
    let result = match (forward, backward) {
        // Nothing to say is no row.
        (None, None) => Vec::new(),
        _ => vec![full_name.to_owned(), cell(forward), cell(backward), gathered.message],
    };
    let is_bad = |status: Option<Status>| status == Some(Status::Error);
    Outcome {
        full_name: full_name.to_owned(),
        forward: forward.unwrap_or(Status::None),
        backward: backward.unwrap_or(Status::None),
        result,
        details: gathered.details,
        reason: gathered.reason,
        has_failed: false,
        wants_data_saved: is_bad(forward) || is_bad(backward),
        worst: gathered.worst,
        pictures: Vec::new(),
        notes,
    }
}

#[derive(Default)]
struct Gathered {
    details: Vec<Vec<String>>,
    message: String,
    reason: Option<String>,
    worst: Option<Worst>,
}

impl Gathered {
    /// Pairs by place, and gives the status; none where there is nothing to compare.
    fn direction(&mut self, full_name: &str, word: &str, sides: Sides<'_, '_>) -> Option<Status> {
        let mut status = None;
        for (index, (bench, tested)) in sides.bench.iter().zip(sides.device).enumerate() {
            let name = format!("{full_name}.{word}.output.{index}");
            let judged = judge(bench, tested);
            self.message.push_str(&judged.message);
            let own = if judged.message.is_empty() { Status::Pass } else { Status::Error };
            if own == Status::Error && self.worst.is_none() {
                let text = judged.message.trim().to_owned();
                let decision = judged.decision.clone();
                self.worst = Some(Worst { status: own, row: name.clone(), decision, text });
            }
            status = status.max(Some(own));
            self.details.push(judged.row(name, own));
        }
        status
    }
}

struct Judged {
    dtypes: [String; 2],
    shape: String,
    /// Cosine, largest absolute and largest relative error.
    metrics: Option<[f64; 3]>,
    /// Empty if it is good.
    message: String,
    decision: Option<Decision>,
}

impl Judged {
    fn row(self, name: String, status: Status) -> Vec<String> {
        let [bench, tested] = self.dtypes;
        let mut row = vec![name, bench, tested, self.shape];
        match self.metrics {
            Some(metrics) => row.extend(metrics.map(float_text)),
            None => row.extend([const { String::new() }; 3]),
        }
        row.push(status.as_str().to_owned());
        row.push(self.message);
        row
    }
}

/// As Python shows a number of numpy.
fn float_text(value: f64) -> String {
    if value.is_finite() { float_repr(value) } else { msprobe_tensor::digits::not_finite(value).to_owned() }
}

fn judge(bench: &Leaf<'_>, tested: &Leaf<'_>) -> Judged {
    let shape = match bench {
        Leaf::Tensor(view) => shape_text(view.shape()),
        _ => String::new(),
    };
    let mut judged = Judged {
        dtypes: [bench, tested].map(dtype_text),
        shape,
        metrics: None,
        message: String::new(),
        decision: None,
    };
    let errors = match (bench, tested) {
        (Leaf::Tensor(bench), Leaf::Tensor(tested)) if bench.shape() == tested.shape() => {
            plain_errors(tested, bench, EPSILON)
        }
        _ => None,
    };
    let Some(errors) = errors else {
        judged.message = format!("{NO_COSINE_TEXT}{NO_MAX_ABS_TEXT}");
        return judged;
    };
    let cosine = (EPSILON + errors.dot) / (EPSILON + errors.golden_norm * errors.target_norm);
    judged.metrics = Some([cosine, errors.max_error, errors.max_relative]);
    let mut fail = |text: &str, measure: &str, value: f64, limit: f64| {
        judged.message.push_str(text);
        let decision = Decision {
            measure: measure.to_owned(),
            value: Some(value).filter(|value| value.is_finite()),
            limit,
        };
        judged.decision.get_or_insert(decision);
    };
    // NaN is neither above nor below.
    if !matches!(cosine.partial_cmp(&COSINE), Some(std::cmp::Ordering::Greater)) {
        fail(COSINE_TEXT, "cosine", cosine, COSINE);
    }
    if !matches!(errors.max_error.partial_cmp(&MAX_ABS), Some(std::cmp::Ordering::Less)) {
        fail(MAX_ABS_TEXT, "max_abs_error", errors.max_error, MAX_ABS);
    }
    judged
}

/// `Float32` of a tensor, `int` of a number.
fn dtype_text(leaf: &Leaf<'_>) -> String {
    match leaf {
        Leaf::Tensor(view) => view.dtype().mindspore_name().to_owned(),
        other => other.type_text().trim_start_matches("<class '").trim_end_matches("'>").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use msprobe_tensor::{DType, TensorView};

    use super::*;
    use crate::verdict::Plain;

    fn tensor(values: &[f32]) -> Leaf<'_> {
        Leaf::Tensor(
            TensorView::contiguous(DType::F32, vec![values.len()], bytemuck::cast_slice(values)).unwrap(),
        )
    }

    fn outcome(bench: &[Leaf<'_>], tested: &[Leaf<'_>]) -> Outcome {
        let forward = Direction::Ran(Sides { bench, device: tested });
        compare("Mint.x.0", forward, Direction::Absent, Notes::default())
    }

    #[test]
    fn equal_zero_and_nan() {
        let found = outcome(&[tensor(&[3.0, 4.0])], &[tensor(&[3.0, 4.0])]);
        assert_eq!(found.result, ["Mint.x.0", "pass", "", ""]);
        assert_eq!(found.details[0][3..8], ["(2,)", "1.0", "0.0", "0.0", "pass"]);
        let found = outcome(&[tensor(&[0.0; 8])], &[tensor(&[0.001; 8])]);
        assert_eq!(
            found.details[0][4..],
            ["1.0", "0.0010000000474974513", "100000.00474974513", "error", MAX_ABS_TEXT]
        );
        let found = outcome(&[tensor(&[f32::NAN])], &[tensor(&[f32::NAN])]);
        assert_eq!(found.details[0][4..8], ["nan", "nan", "nan", "error"]);
        assert_eq!(found.result[3], format!("{COSINE_TEXT}{MAX_ABS_TEXT}"));
    }

    #[test]
    fn what_cannot_be_compared_is_an_error() {
        let number = Leaf::Plain { type_text: "<class 'int'>".into(), value: Plain::Int("3".into()) };
        let found = outcome(&[tensor(&[1.0; 8])], &[number]);
        let text = format!("{NO_COSINE_TEXT}{NO_MAX_ABS_TEXT}");
        assert_eq!(
            found.details[0],
            ["Mint.x.0.forward.output.0", "Float32", "int", "(8,)", "", "", "", "error", &text]
        );
        let found = outcome(&[tensor(&[1.0; 8])], &[tensor(&[1.0; 4])]);
        assert_eq!(found.forward, Status::Error);
    }

    #[test]
    fn directions_that_failed_or_are_not_there() {
        let failed = compare("Mint.x.0", Direction::Failed("why"), Direction::Absent, Notes::default());
        assert_eq!(failed.result, ["Mint.x.0", "SKIP", "", "why"]);
        assert!(failed.details.is_empty());
        let nothing = compare("Mint.x.0", Direction::Absent, Direction::Absent, Notes::default());
        assert!(nothing.result.is_empty());
    }
}
