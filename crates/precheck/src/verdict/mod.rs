//! The verdict of one API from its outputs and gradients on both sides.

mod leaf;
pub(crate) mod row;
mod tensor;

use msprobe_tensor::{TensorView, statistics};

pub use self::leaf::{Leaf, Plain};
pub use self::row::{DETAILS, Decision, RESULT};
use self::row::{Judged, Metric};
use crate::cells::Number;
use crate::names::Call;
use crate::outcome::{Notes, Outcome, Picture, Worst};
use crate::status::Status;

/// The message of an output that neither side has: there is nothing to compare.
pub(crate) const BOTH_NONE: &str = "Bench output is None, skip this test.";

/// Shares of zeros further apart than this are an error of a dropout, from so many elements on.
const ZERO_SHARE: f64 = 0.1;
const ZERO_ELEMENTS: usize = 100;

/// How outcomes are made.
#[derive(Debug, Clone, Copy)]
pub struct Judging {
    /// Decimals of float64 numbers.
    pub precision: usize,
    /// Without the mistakes of the reference's verdicts.
    pub is_strict: bool,
}

impl Default for Judging {
    fn default() -> Judging {
        Judging { precision: 14, is_strict: false }
    }
}

/// The device gave fewer outputs than the bench; the reference fails with this text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("list index out of range")]
pub struct TooFewOutputs;

/// Outputs of both sides.
#[derive(Debug, Clone, Copy)]
pub struct Sides<'l, 'a> {
    /// In raised precision on the CPU.
    pub bench: &'l [Leaf<'a>],
    /// As the device computed it.
    pub device: &'l [Leaf<'a>],
}

/// Judges an API: its outputs, and its gradients if there are any; `backward_message` tells why there are none.
pub fn compare(
    full_name: &str,
    forward: Sides<'_, '_>,
    backward: Option<Sides<'_, '_>>,
    backward_message: &str,
    judging: Judging,
    notes: Notes,
) -> Result<Outcome, TooFewOutputs> {
    let call = Call::parse(full_name);
    let name = call.as_ref().map_or(full_name, |call| call.name.as_str());
    let mut gathered = Gathered { details: Vec::new(), worst: None, pictures: Vec::new(), judging };
    let is_dropout = name.contains("dropout");
    let mut judge_all = |sides: Sides<'_, '_>, direction: &str| -> Result<Status, TooFewOutputs> {
        if is_dropout {
            return Ok(dropout(sides));
        }
        let outputs = pair(name, sides, judging)?;
        let status = status_of(&outputs, judging.is_strict);
        for (index, judged) in outputs.iter().enumerate() {
            gathered.add(format!("{full_name}.{direction}.output.{index}"), judged);
        }
        Ok(status)
    };
    let forward = judge_all(forward, "forward")?;
    let backward = match backward {
        _ if !backward_message.is_empty() => {
            let skipped = Judged::new(Status::Skip, backward_message);
            gathered.add(format!("{full_name}.backward.output.0"), &skipped);
            Status::Skip
        }
        None => Status::None,
        Some(sides) => judge_all(sides, "backward")?,
    };
    let mut result = vec![full_name.to_owned(), forward.as_str().to_owned(), backward.as_str().to_owned()];
    if forward == Status::Skip {
        result.push(gathered.details.first().and_then(|row| row.last()).cloned().unwrap_or_default());
    } else if backward == Status::Skip {
        result.push(backward_message.to_owned());
    }
    Ok(Outcome {
        full_name: full_name.to_owned(),
        forward,
        backward,
        result,
        details: gathered.details,
        reason: (backward == Status::Skip).then(|| backward_message.to_owned()),
        has_failed: false,
        wants_data_saved: forward != Status::Pass || !matches!(backward, Status::Pass | Status::None),
        worst: gathered.worst,
        pictures: gathered.pictures,
        notes,
    })
}

/// An API that was not run, or that raised. `has_failed`: it took its process along.
pub fn skip(full_name: &str, message: &str, has_failed: bool, notes: Notes) -> Outcome {
    let row = Judged::new(Status::Skip, message).row(format!("{full_name}.forward.output.0"), 0);
    let skip = Status::Skip.as_str().to_owned();
    Outcome {
        full_name: full_name.to_owned(),
        forward: Status::Skip,
        backward: Status::Skip,
        result: vec![full_name.to_owned(), skip.clone(), skip, message.to_owned()],
        details: vec![row],
        reason: Some(message.to_owned()),
        has_failed,
        wants_data_saved: false,
        worst: None,
        pictures: Vec::new(),
        notes,
    }
}

/// The rows of an API while they are made.
struct Gathered {
    details: Vec<Vec<String>>,
    worst: Option<Worst>,
    pictures: Vec<Picture>,
    judging: Judging,
}

impl Gathered {
    fn add(&mut self, name: String, judged: &Judged) {
        if matches!(judged.status, Status::Error | Status::Warning) {
            if self.worst.as_ref().is_none_or(|worst| worst.status < judged.status) {
                let row = name.clone();
                let decision = judged.decision.clone();
                let text = judged.message.trim().lines().last().unwrap_or_default().to_owned();
                self.worst = Some(Worst { status: judged.status, row, decision, text });
            }
            if !judged.magnitudes.is_empty() {
                self.pictures.push(Picture::of(name.clone(), judged.status, &judged.magnitudes));
            }
        }
        self.details.push(judged.row(name, self.judging.precision));
    }
}

/// Pairs outputs by their place and judges them. What only the device has is left out, as in the reference.
fn pair(name: &str, sides: Sides<'_, '_>, judging: Judging) -> Result<Vec<Judged>, TooFewOutputs> {
    let Sides { bench, device } = sides;
    if bench.len() > device.len() && !judging.is_strict {
        return Err(TooFewOutputs);
    }
    let mut outputs: Vec<Judged> = bench
        .iter()
        .zip(device)
        .map(|(bench, device)| judge(name, bench, device, judging.is_strict))
        .collect();
    if judging.is_strict && bench.len() != device.len() {
        outputs.push(Judged::new(Status::Error, "bench and npu output structure is different."));
    }
    Ok(outputs)
}

fn judge(name: &str, bench: &Leaf<'_>, device: &Leaf<'_>, is_strict: bool) -> Judged {
    if bench.type_text() != device.type_text() {
        return Judged::new(Status::Error, "bench and npu output type is different.");
    }
    match (bench, device) {
        (Leaf::Tensor(bench), Leaf::Tensor(device)) => tensor::judge(name, bench, device, is_strict),
        (Leaf::Plain { type_text, value: bench }, Leaf::Plain { value: device, .. }) => {
            let mut judged = Judged::new(if bench == device { Status::Pass } else { Status::Error }, "");
            judged.bench_dtype = Some(type_text.clone());
            judged.device_dtype = Some(type_text.clone());
            if bench == device {
                judged.set(Metric::ErrorRate, Number::Whole(0));
            }
            judged
        }
        (Leaf::None, Leaf::None) => Judged::new(Status::Skip, BOTH_NONE),
        (Leaf::Other { keys: Some(bench), .. }, Leaf::Other { keys: Some(device), .. }) => {
            let is_same = bench.len() == device.len() && bench.iter().all(|key| device.contains(key));
            if is_same {
                // The values of the dict are handed on as a list, which nothing compares.
                Judged::new(Status::Error, "Unexpected output type in compare_core: <class 'list'>")
            } else {
                Judged::new(Status::Error, "bench and npu output dict keys are different.")
            }
        }
        (other, _) => Judged::new(
            Status::Error,
            format!("Unexpected output type in compare_core: {}", other.type_text()),
        ),
    }
}

/// The status of a direction: of the reference, the last one that is no pass; strictly, the worst.
fn status_of(outputs: &[Judged], is_strict: bool) -> Status {
    let mut bad = outputs.iter().map(|judged| judged.status).filter(|status| *status >= Status::Warning);
    if !is_strict {
        return bad.next_back().unwrap_or(Status::Pass);
    }
    let is_skipped = || !outputs.is_empty() && outputs.iter().all(|judged| judged.status == Status::Skip);
    bad.max().unwrap_or_else(|| if is_skipped() { Status::Skip } else { Status::Pass })
}

/// A dropout is judged by how much it drops.
fn dropout(sides: Sides<'_, '_>) -> Status {
    let tensor = |leaves: &[Leaf<'_>]| match leaves.first() {
        Some(Leaf::Tensor(view)) => Some((zeros(view), view.numel())),
        _ => None,
    };
    let (Some((bench, count)), Some((device, _))) = (tensor(sides.bench), tensor(sides.device)) else {
        return Status::Pass;
    };
    let share = bench.abs_diff(device) as f64 / count.max(1) as f64;
    if count >= ZERO_ELEMENTS && share >= ZERO_SHARE { Status::Error } else { Status::Pass }
}

fn zeros(view: &TensorView<'_>) -> u64 {
    statistics(view).zero_count
}

#[cfg(test)]
mod tests;
