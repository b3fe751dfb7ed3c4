//! A verdict in words.

use std::fmt::Write;

use super::{Culprit, Evidence, Finding, Status, Verdict};
use crate::matching::MatchMethod;
use crate::table::Mode;

impl Verdict {
    /// One paragraph. `place` says where, such as `step 0, rank 1`; it may be empty.
    pub fn paragraph(&self, place: &str) -> String {
        let counts = self.counts;
        let in_place = if place.is_empty() { String::new() } else { format!(" in {place}") };
        let mut text = match (self.status, &self.culprit) {
            (Status::Identical, _) => {
                format!("Identical{in_place}: all {} records are equal{}.", counts.paired, self.bitwise())
            }
            (Status::WithinTolerance, _) if counts.differing > 0 => format!(
                "All within tolerance{in_place}: no operation introduces an error beyond what is tolerated ({}); rounding \
                 has grown a little beyond it in {} of {} records.",
                self.tolerated(),
                counts.differing,
                counts.paired
            ),
            (Status::WithinTolerance, _) => format!(
                "All within tolerance{in_place}: none of {} records differs by more than is tolerated ({}).",
                counts.paired,
                self.tolerated()
            ),
            (Status::Failed, _) => format!("Nothing could be compared{in_place}: no record has a partner."),
            (status, Some(culprit)) => self.blame(status, culprit, &in_place),
            (_, None) => format!("The runs differ{in_place}."),
        };
        if counts.aligned > 0 {
            let _ = write!(
                text,
                " {} records were paired by their place in the sequence of calls, because call numbers are shifted.",
                counts.aligned
            );
        }
        let one_sided = counts.only_target + counts.only_golden;
        if one_sided > 0 && self.status != Status::Failed {
            let _ = write!(
                text,
                " Records only on the NPU side: {}, only on the bench side: {}.",
                counts.only_target, counts.only_golden
            );
        }
        text
    }

    fn bitwise(&self) -> &'static str {
        if self.mode == Mode::Summary { " in their statistics" } else { "" }
    }

    fn tolerated(&self) -> String {
        let names: Vec<String> = self
            .tolerances
            .named()
            .filter(|(name, _)| matches!(*name, "float32" | "float16" | "bfloat16"))
            .map(|(name, tolerance)| format!("{name} {}", short(tolerance)))
            .collect();
        names.join(", ")
    }

    fn blame(&self, status: Status, culprit: &Culprit, in_place: &str) -> String {
        let name = &culprit.name;
        let (came_in, came_out) = culprit.errors;
        let head = if status == Status::DiffersAtInput {
            format!("Already different at the first input{in_place}: ")
        } else {
            format!("Diverged{in_place}: ")
        };
        let mut text = head;
        let _ = match culprit.finding {
            Finding::Computes => write!(
                text,
                "{name} is the first operation whose inputs agree (largest error {}) and whose outputs do not ({}).",
                short(came_in),
                self.size(came_out)
            ),
            Finding::Saved => {
                write!(text, "{name} is the first saved variable that differs ({}).", self.size(came_out))
            }
            Finding::Argument => write!(
                text,
                "{name} is the first operation whose tensors agree on the way in (largest error {}) and not on the way \
                 out ({}); it was called with another argument.",
                short(came_in),
                self.size(came_out)
            ),
            Finding::Dtype => {
                write!(
                    text,
                    "{name} is the first operation that works in another dtype than on the bench side."
                )
            }
            Finding::Parameters => write!(
                text,
                "the parameters of {name} differ before it is called ({}); look at how they were initialised or loaded.",
                self.size(came_in)
            ),
            Finding::Input => write!(
                text,
                "an input of {name} differs ({}) and no recorded operation made it; look at the data that is fed in.",
                self.size(came_in)
            ),
            Finding::Gradual => write!(
                text,
                "the error grows bit by bit and no single operation introduces it; {name} is the first one far beyond \
                 tolerance ({}).",
                self.size(came_out)
            ),
            Finding::OnlyTarget => {
                write!(text, "{name} is called only on the NPU side, and what follows gets another value.")
            }
            Finding::OnlyGolden => {
                write!(
                    text,
                    "{name} is called only on the bench side; on the NPU side what follows gets another value."
                )
            }
            Finding::ChangedAfter => write!(
                text,
                "the output of {name} agrees, but it has changed when {} gets it: something that was not recorded \
                 writes to it.",
                culprit.next.as_deref().unwrap_or("the next operation")
            ),
            Finding::ChangedBefore => write!(
                text,
                "the gradient {name} gets differs ({}) although the operation it comes from agrees.",
                self.size(came_in)
            ),
        };
        push_evidence(&mut text, culprit);
        if culprit.method == MatchMethod::Aligned
            && let Some(golden) = &culprit.golden_name
        {
            let _ = write!(text, " Its partner on the bench side is {golden}.");
        }
        if let Some(frame) = culprit.stack.as_ref().and_then(|stack| own_frame(stack)) {
            let frame: Vec<&str> = frame.split('\n').map(str::trim).collect();
            let _ = write!(text, " Called at {}.", frame.join(" ").trim_end_matches(['.', ' ', ',']));
        }
        let _ = write!(text, " {} of {} records differ.", self.counts.differing, self.counts.paired);
        text
    }

    fn size(&self, error: f64) -> String {
        if self.mode == Mode::Md5 {
            "checksums differ".to_owned()
        } else if error.is_infinite() {
            "beyond measure".to_owned()
        } else {
            format!("{} of the size of the values", short(error))
        }
    }
}

/// What the row that shows the difference says.
fn push_evidence(text: &mut String, culprit: &Culprit) {
    let of = |key: &str| {
        culprit.evidence.iter().find(|(name, _)| *name == key).map(|(_, value)| match value {
            Evidence::Number(value) => short(*value),
            Evidence::Text(value) => value.clone(),
        })
    };
    if let (Some(argument), Some(target), Some(golden)) = (of("argument"), of("NPU value"), of("Bench value"))
    {
        let _ = write!(text, " Argument {argument}: {target}, bench {golden}.");
    }
    let Some(row) = of("NPU Name") else { return };
    let _ = write!(text, " Evidence: {row}:");
    let mut parts = Vec::new();
    for (label, target, golden) in [
        ("dtype", "NPU Dtype", "Bench Dtype"),
        ("shape", "NPU Tensor Shape", "Bench Tensor Shape"),
        ("checksum", "NPU MD5", "BENCH MD5"),
        ("max", "NPU max", "Bench max"),
        ("min", "NPU min", "Bench min"),
        ("mean", "NPU mean", "Bench mean"),
        ("norm", "NPU l2norm", "Bench l2norm"),
    ] {
        if let (Some(target), Some(golden)) = (of(target), of(golden))
            && target != golden
        {
            parts.push(format!("{label} {target}, bench {golden}"));
        }
    }
    for label in ["Cosine", "MaxAbsErr", "MaxRelativeErr"] {
        // In statistics these are percentages of single figures, which stand here already.
        if let Some(value) = of(label).filter(|value| !value.ends_with('%')) {
            parts.push(format!("{label} {value}"));
        }
    }
    if parts.is_empty() {
        parts.push("missing on the bench side".to_owned());
    }
    let _ = write!(text, " {}.", parts.join("; "));
}

/// The innermost frame that is not of a library.
fn own_frame(stack: &[Box<str>]) -> Option<&str> {
    let library =
        ["site-packages/", "dist-packages/", "msprobe/pytorch/", "msprobe/core/", "msprobe/mindspore/"];
    let of_library = |frame: &str| library.iter().any(|part| frame.contains(part));
    stack
        .iter()
        .map(|frame| &**frame)
        .find(|frame| !of_library(frame))
        .or_else(|| stack.first().map(|frame| &**frame))
}

/// A number for people.
fn short(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { msprobe_report::short_number(value) }
}
