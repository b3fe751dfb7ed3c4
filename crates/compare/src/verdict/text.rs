//! A verdict as one paragraph, and the numbers that show it in words.

use std::fmt::Write;

use super::{Culprit, Evidence, Status, Verdict};
use crate::pairing::MatchMethod;

impl Verdict {
    /// One paragraph. `place` says where, such as `step 0, rank 1`; it may be empty.
    pub fn paragraph(&self, place: &str) -> String {
        let mut text = format!("{}.", self.headline(place));
        if let Some(culprit) = &self.culprit {
            self.push_culprit(&mut text, culprit);
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

impl Culprit {
    /// What the value that shows the difference says, a text each.
    pub(super) fn evidence_texts(&self) -> Vec<String> {
        let of = |key: &str| {
            self.evidence.iter().find(|(name, _)| *name == key).map(|(_, value)| match value {
                Evidence::Number(value) => short(*value),
                Evidence::Whole(value) => value.to_string(),
                Evidence::Text(value) => value.clone(),
            })
        };
        let mut texts = Vec::new();
        if let (Some(argument), Some(target), Some(golden)) =
            (of("argument"), of("NPU value"), of("Bench value"))
        {
            texts.push(format!("argument {argument}: {target}, bench {golden}"));
        }
        let Some(row) = of("NPU Name").filter(|name| name != "N/A").or_else(|| of("Bench Name")) else {
            return texts;
        };
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
        if let Some(index) = of("First Difference") {
            parts.push(format!("element {index} is the first that differs"));
        }
        for label in ["Cosine", "MaxAbsErr", "MaxRelativeErr"] {
            // In statistics these are percentages of single numbers, which stand here already.
            if let Some(value) = of(label).filter(|value| !value.ends_with('%')) {
                parts.push(format!("{label} {value}"));
            }
        }
        if parts.is_empty() {
            let missing = |key: &str| of(key).as_deref() == Some("N/A");
            parts.push(match (missing("NPU Name"), missing("Bench Name")) {
                (true, _) => "missing on the NPU side".to_owned(),
                (_, true) => "missing on the bench side".to_owned(),
                _ => "equal in the numbers of the table".to_owned(),
            });
        }
        let place = row.strip_prefix(&self.name).map_or(&*row, |place| place.trim_start_matches('.'));
        texts.push(format!("{place}: {}", parts.join("; ")));
        texts
    }
}

/// A number for people.
fn short(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { msprobe_report::short_number(value) }
}
