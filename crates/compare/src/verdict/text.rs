//! A verdict as one paragraph, and the numbers that show it in words.

use std::fmt::Write;

use msprobe_tensor::{Eighths, Sketch};

use super::{Culprit, DifferingRecord, Evidence, Status, Verdict, whole_digits};
use crate::Mode;
use crate::metrics::{Metric, Metrics};
use crate::pairing::MatchMethod;
use crate::side::{Leaf, Scalar};

impl Verdict {
    /// One paragraph. `place` says where, such as `step 0, rank 1`; it may be empty.
    pub fn paragraph(&self, place: &str) -> String {
        let mut text = format!("{}.", self.headline(place));
        if let Some(culprit) = &self.culprit {
            self.push_culprit(&mut text, culprit);
        } else if !self.amplifying.is_empty() {
            let most: Vec<String> = self.amplifying.iter().map(DifferingRecord::in_and_out).collect();
            let _ = write!(text, " Error in and out, times tolerated: {}.", most.join("; "));
        } else if self.status == Status::WithinTolerance {
            let _ = write!(text, " Tolerated: {}.", self.tolerated());
        }
        if self.counts.aligned > 0 {
            let _ = write!(
                text,
                " {} records were paired by their place in the sequence of calls, because call numbers are shifted.",
                self.counts.aligned
            );
        }
        if self.status != Status::Failed {
            for kind in self.gaps.kinds() {
                let names: Vec<String> = self
                    .gaps
                    .first(kind)
                    .take(3)
                    .map(|gap| format!("{} ({})", gap.name, gap.reason))
                    .collect();
                let more = if self.gaps.count(kind) > names.len() { ", …" } else { "" };
                let _ =
                    write!(text, " {}: {}{more}.", kind.describe(self.gaps.count(kind)), names.join(", "));
            }
            for (kind, count, first) in self.asides.found() {
                let _ = write!(text, " {}, first {first}.", kind.describe(count));
            }
        }
        text
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

    fn push_culprit(&self, text: &mut String, culprit: &Culprit) {
        for (label, fact) in self.facts(culprit) {
            let (first, rest) = label.split_at(1);
            let colon = if label.ends_with(" at") { "" } else { ":" };
            let _ = write!(text, " {}{rest}{colon} {fact}.", first.to_uppercase());
        }
        if culprit.method == MatchMethod::Aligned && culprit.golden_name.as_deref() == Some(&culprit.name) {
            text.push_str(" Paired by its place in the sequence of calls.");
        }
        let _ = write!(text, " {} of {} records differ.", self.counts.differing, self.counts.paired);
    }
}

impl DifferingRecord {
    /// `Torch.add.0.forward 1.2e-5 -> 3.4e-4 (20 x)`.
    pub fn in_and_out(&self) -> String {
        let DifferingRecord { name, error_in, error_out, times_tolerated, .. } = self;
        format!("{name} {} -> {} ({} x)", short(*error_in), short(*error_out), short(*times_tolerated))
    }
}

impl Culprit {
    /// What the value that shows the difference says, a text each.
    pub(super) fn evidence_texts(&self, mode: Mode) -> Vec<String> {
        let evidence = &self.evidence;
        let mut texts = Vec::new();
        if let Some((target, golden)) = &evidence.argument {
            let [own, other] = [target, golden].map(|leaf| argument_text(&leaf.statistics[0]));
            texts.push(format!("argument {}: {own}, bench {other}", target.name));
        }
        let Some(value) = evidence.target.as_ref().or(evidence.golden.as_ref()) else { return texts };
        let parts = match (&evidence.target, &evidence.golden) {
            (Some(target), Some(golden)) => evidence.differences(target, golden, mode),
            (None, _) => vec!["missing on the NPU side".to_owned()],
            (_, None) => vec!["missing on the bench side".to_owned()],
        };
        let place: &str = if evidence.is_of_culprit { &value.place } else { &value.name };
        texts.push(format!("{place}: {}", parts.join("; ")));
        texts
    }
}

impl Evidence {
    fn differences(&self, target: &Leaf, golden: &Leaf, mode: Mode) -> Vec<String> {
        let mut parts = Vec::new();
        let mut add = |label: &str, target: &str, golden: &str| {
            if target != golden {
                parts.push(format!("{label} {target}, bench {golden}"));
            }
        };
        add("dtype", &target.dtype, &golden.dtype);
        add("shape", &target.shape.to_string(), &golden.shape.to_string());
        if mode == Mode::Md5 {
            let checksum = |leaf: &Leaf| leaf.md5.as_deref().unwrap_or("N/A").to_owned();
            add("checksum", &checksum(target), &checksum(golden));
        }
        if self.shows_numbers(mode) {
            let statistics = target.statistics.iter().zip(&golden.statistics);
            for (label, (target, golden)) in ["max", "min", "mean", "norm"].into_iter().zip(statistics) {
                if let (Some(target), Some(golden)) = (number_text(target), number_text(golden)) {
                    add(label, &target, &golden);
                }
            }
        }
        if let (Some(own), Some(other)) = (&target.sketch, &golden.sketch) {
            parts.extend(sketch_text(own, other));
        }
        if let Some(index) = self.first_difference {
            parts.push(format!("element {index} is the first that differs"));
        }
        if let Some(Metrics { cosine, max_abs, max_relative, .. }) = self.metrics {
            for (label, metric) in
                [("Cosine", cosine), ("MaxAbsErr", max_abs), ("MaxRelativeErr", max_relative)]
            {
                let text = match metric {
                    Metric::Number(value) => short(value),
                    Metric::Missing(why) => why.as_str().to_owned(),
                };
                parts.push(format!("{label} {text}"));
            }
        }
        if parts.is_empty() {
            parts.push("equal in the numbers of the table".to_owned());
        }
        parts
    }
}

/// What the sketches of two values say that their statistics do not.
fn sketch_text(target: &Sketch, golden: &Sketch) -> Option<String> {
    let found = target.compare(golden);
    let share = found.relative_error.filter(|share| *share > found.resolution)?;
    let (low, high) = found.interval;
    let mut text =
        format!("sketch {} of the norm apart (95 %: {} to {})", short(share), short(low), short(high));
    let part = |eighths: Option<Eighths>, of: &str| {
        eighths.map(|Eighths { first, last }| {
            if first == last {
                format!("eighth {} of the {of}", first + 1)
            } else {
                format!("eighths {} to {} of the {of}", first + 1, last + 1)
            }
        })
    };
    let places = found.part.map(|found| [part(found.rows, "rows"), part(found.columns, "columns")]);
    let places: Vec<String> = places.into_iter().flatten().flatten().collect();
    if !places.is_empty() {
        let _ = write!(text, ", in {}", places.join(" and "));
    }
    Some(text)
}

fn argument_text(value: &Scalar) -> String {
    match value {
        Scalar::Text(text) => text.to_string(),
        Scalar::Bool(value) => if *value { "True" } else { "False" }.to_owned(),
        other => number_text(other).unwrap_or_else(|| "None".to_owned()),
    }
}

/// A number for people; whole ones with more digits than they are shown, digit by digit.
fn number_text(scalar: &Scalar) -> Option<String> {
    match whole_digits(scalar) {
        Some(whole) => Some(whole.to_string()),
        None => scalar.number().map(short),
    }
}

/// A number for people.
fn short(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { msprobe_report::short_number(value) }
}
