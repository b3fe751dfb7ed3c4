//! A verdict as the answer of a command, and its words: what is the matter, the culprit with what is known of it, what to do
//! next.

use msprobe_report::Cell;
use msprobe_report::answer::{self, Answer, NotCompared, Scope};

use super::errors::DifferenceKind;
use super::{Counts, Culprit, Finding, GapKind, Gaps, Status, Verdict};
use crate::Mode;

/// A record that differs, for the list of the first ones.
#[derive(Debug, Clone, PartialEq)]
pub struct DifferingRecord {
    /// The record.
    pub name: String,
    /// Error of what went in.
    pub error_in: f64,
    /// Error of what came out.
    pub error_out: f64,
    /// Error of what came out, in multiples of what is tolerated.
    pub times_tolerated: f64,
    /// Whether the error was made here.
    pub is_introduced: bool,
}

/// How a difference that no single record makes is called in verdict.json.
const GRADUALLY: &str = "grows_gradually";

impl Verdict {
    /// How the difference was recognised; an identifier.
    pub fn finding(&self) -> Option<&'static str> {
        let gradual = (!self.amplifying.is_empty()).then_some(GRADUALLY);
        self.culprit.as_ref().map(|culprit| culprit.finding.as_str()).or(gradual)
    }

    /// The answer. `place` says where in words, such as `step 0, rank 1`; it may be empty.
    pub fn answer(&self, scope: Scope, place: &str) -> Answer {
        let culprit = self.culprit.as_ref().map(|culprit| answer::Culprit {
            name: culprit.name.clone(),
            kind: culprit.finding.as_str(),
            direction: Some(culprit.direction),
            facts: self.facts(culprit),
        });
        Answer {
            culprit,
            evidence: match &self.culprit {
                Some(culprit) => culprit.measured(self.mode),
                None => self.amplifying.iter().flat_map(DifferingRecord::measured).collect(),
            },
            not_compared: self.gaps.not_compared(),
            next_step: self.next_step(),
            ..Answer::new("compare", self.status, self.headline(place), scope)
        }
    }

    /// One sentence. `place` says where, such as `step 0, rank 1`; it may be empty.
    pub fn headline(&self, place: &str) -> String {
        let Counts { paired, values, .. } = self.counts;
        let sentence = match (self.status, &self.culprit) {
            (Status::Identical, _) => {
                let how = if self.mode == Mode::Summary { " in their statistics" } else { "" };
                format!("all {paired} records with {values} values are equal{how}")
            }
            (Status::WithinTolerance, _) => format!("{}{}", self.tolerated_differences(), self.left_out()),
            (Status::Incomplete, _) => {
                let rest = match (self.is_equal, self.asides.is_empty()) {
                    (true, true) => "equal",
                    (true, false) => "equal in numbers",
                    (false, _) => "within tolerance",
                };
                format!(
                    "{} not compared; the rest of {paired} records with {values} values is {rest}",
                    count(self.gaps.total(), "thing was", "things were")
                )
            }
            (Status::Failed, _) => "no record has a partner".to_owned(),
            (_, Some(culprit)) => culprit.accusation(),
            (_, None) => match self.amplifying.first() {
                Some(most) => format!(
                    "the error grows bit by bit and no single record makes it; {} amplifies it most",
                    most.name
                ),
                None => "the runs differ".to_owned(),
            },
        };
        self.status.headline(place, &sentence)
    }

    /// Why runs that are not identical agree. It speaks of what was compared only.
    fn tolerated_differences(&self) -> String {
        let Counts { paired, differing, .. } = self.counts;
        match (self.is_equal, self.gaps.is_empty(), self.asides.is_empty()) {
            (true, true, _) => format!("all numbers of {paired} records are equal, something else is not"),
            (true, false, true) => format!("what was compared of {paired} records is equal"),
            (true, false, false) => {
                format!("all numbers that were compared of {paired} records are equal, something else is not")
            }
            _ if differing > 0 => format!(
                "no operation introduces an error; rounding has grown beyond the tolerance in {differing} of \
                 {paired} records"
            ),
            _ => format!("none of {paired} records differs by more than is tolerated"),
        }
    }

    /// What was allowed not to be compared.
    fn left_out(&self) -> String {
        match self.gaps.total() {
            0 => String::new(),
            total => format!("; {} not compared, as allowed", count(total, "thing was", "things were")),
        }
    }

    /// What is known of the culprit: labels and texts.
    pub fn facts(&self, culprit: &Culprit) -> Vec<(&'static str, String)> {
        let mut facts = Vec::new();
        let mut add = |label: &'static str, text: &str| facts.push((label, text.to_owned()));
        add("error", &self.error_in_and_out(culprit));
        if let Some(advice) = culprit.advice() {
            add("look at", &advice);
        }
        if let Some(parameter) = &culprit.parameter {
            add("parameter", parameter);
        }
        if !culprit.modules.is_empty() {
            add("module", &culprit.modules.join(" > "));
        }
        for evidence in culprit.evidence_texts(self.mode) {
            add("evidence", &evidence);
        }
        if let Some(golden) = culprit.golden_name.as_ref().filter(|golden| **golden != culprit.name) {
            add("partner", &format!("{golden} on the bench side"));
        }
        if let Some(frame) = culprit.frame() {
            add("called at", &frame);
        }
        facts
    }

    /// What differs beside the numbers.
    pub fn aside_lines(&self) -> Vec<String> {
        self.asides
            .found()
            .map(|(kind, number, first)| format!("  {}, first {first}", kind.describe(number)))
            .collect()
    }

    fn error_in_and_out(&self, culprit: &Culprit) -> String {
        let (came_in, came_out) = culprit.errors;
        let (came_in, came_out) = (self.amount(came_in, None), self.amount(came_out, culprit.kind));
        match culprit.finding {
            Finding::Parameters | Finding::Input | Finding::ChangedBefore => {
                format!("what goes in: {came_in}")
            }
            Finding::OnlyTarget => "the bench side does not make this call".to_owned(),
            Finding::OnlyGolden => "the NPU side does not make this call".to_owned(),
            Finding::Dtype => "the dtype of a result differs".to_owned(),
            Finding::Saved => format!("what was saved: {came_out}"),
            Finding::ChangedAfter => format!(
                "its output agrees, and differs when {} gets it",
                culprit.next.as_deref().unwrap_or("the next operation")
            ),
            Finding::Argument if came_in == came_out => format!("tensors that go in and come out: {came_in}"),
            Finding::Computes | Finding::Argument => {
                format!("what goes in: {came_in} -> what comes out: {came_out}")
            }
        }
    }

    /// An error in plain words.
    pub(super) fn amount(&self, error: f64, kind: Option<DifferenceKind>) -> String {
        match kind {
            _ if error == 0.0 => "equal".to_owned(),
            Some(DifferenceKind::Shape) => "another shape".to_owned(),
            Some(DifferenceKind::NotFinite) => "NaN or Inf on one side only".to_owned(),
            Some(DifferenceKind::Missing) => "a result is missing on one side".to_owned(),
            Some(DifferenceKind::Checksum) => "checksums differ".to_owned(),
            // Of what went in the kind is not known; nothing else is infinite as often.
            None if self.mode == Mode::Md5 && error.is_infinite() => "checksums differ".to_owned(),
            _ => relative_error(error),
        }
    }

    /// What to do now.
    pub fn next_step(&self) -> Option<String> {
        let culprit = self.culprit.as_ref();
        match self.status {
            Status::Incomplete => {
                let kinds: Vec<&str> = self.gaps.kinds().map(GapKind::as_str).collect();
                Some(format!("if this is expected: --allow-incomplete {}", kinds.join(",")))
            }
            Status::Diverged if !self.amplifying.is_empty() => Some(
                "measure what is noise: collect the bench side again with other threads, kernels or last bits, \
                 and compare with --noise"
                    .to_owned(),
            ),
            Status::Diverged | Status::DiffersAtInput => {
                let culprit = culprit?;
                if let Some((target, golden)) = &culprit.files {
                    return Some(format!("msprobe diff {} {}", target.display(), golden.display()));
                }
                let call = culprit.modules.last().unwrap_or(&culprit.name);
                Some(format!(
                    "collect both runs again with \"task\": \"tensor\" and \"list\": [\"{call}\"], and compare"
                ))
            }
            _ => None,
        }
    }
}

impl DifferingRecord {
    /// The evidence of an answer.
    fn measured(&self) -> [answer::Evidence; 2] {
        let pair = |measure, error| answer::Evidence::of_pair(&self.name, "", measure, Cell::Float(error));
        let tolerated = self.error_out / self.times_tolerated;
        let given = pair("error_out", self.error_out);
        let given = if tolerated.is_finite() { given.tolerating(tolerated) } else { given };
        [pair("error_in", self.error_in), given]
    }
}

impl Culprit {
    fn accusation(&self) -> String {
        let name = &self.name;
        match self.finding {
            Finding::Computes => {
                let inside = self.inside.as_ref();
                let inside =
                    inside.map_or_else(String::new, |inside| format!("; it goes wrong inside, {inside}"));
                format!("{name} gets the same and gives something else{inside}")
            }
            Finding::Saved => format!("{name} is the first saved variable that differs"),
            Finding::Argument => format!("{name} was called with another argument"),
            Finding::Dtype => format!("{name} works in another dtype"),
            Finding::Parameters => format!("the parameters of {name} differ before it is called"),
            Finding::Input => match &self.parameter {
                Some(parameter) => format!("the gradient of {parameter} differs when {name} gets it"),
                None => format!("an input of {name} differs, and no recorded operation made it"),
            },
            Finding::OnlyTarget => format!("{name} is called only on the NPU side"),
            Finding::OnlyGolden => format!("{name} is called only on the bench side"),
            Finding::ChangedAfter => {
                format!("the output of {name} is changed by something that was not recorded")
            }
            Finding::ChangedBefore => format!("the gradient {name} gets differs, its origin agrees"),
        }
    }

    fn advice(&self) -> Option<String> {
        match self.finding {
            Finding::Parameters => Some("how the parameters were initialised or loaded".to_owned()),
            Finding::Input if self.parameter.is_some() => Some(
                "what happens to gradients between backward and this call: an all-reduce, scaling, clipping"
                    .to_owned(),
            ),
            Finding::Input => Some("the data that is fed in".to_owned()),
            Finding::ChangedAfter => Some("in-place writes between the two calls".to_owned()),
            _ => None,
        }
    }

    /// The innermost frame that is neither of the framework nor of the tool.
    pub(super) fn frame(&self) -> Option<String> {
        let stack = self.stack.as_ref()?;
        let frame = stack.iter().find(|frame| !is_of_the_framework(frame)).or_else(|| stack.first())?;
        let line = frame.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(line.trim_end_matches(['.', ' ', ',']).to_owned())
    }
}

/// Whether a frame is of PyTorch, MindSpore, Python itself or msprobe.
fn is_of_the_framework(frame: &str) -> bool {
    const PARTS: [&str; 8] = [
        "-packages/torch/",
        "-packages/torch_npu/",
        "-packages/mindspore/",
        "-packages/msprobe/",
        "msprobe/pytorch/",
        "msprobe/core/",
        "msprobe/mindspore/",
        "<frozen ",
    ];
    let of_python = frame.contains("/lib/python") && !frame.contains("-packages/");
    of_python || PARTS.iter().any(|part| frame.contains(part))
}

/// `relative error 0.30 %`.
pub(super) fn relative_error(error: f64) -> String {
    if error == 0.0 {
        return "equal".to_owned();
    }
    if error.is_infinite() {
        return "no number can say how much".to_owned();
    }
    let percent = error * 100.0;
    if (0.001..1000.0).contains(&percent) {
        // Two significant digits.
        let decimals = (1 - percent.log10().floor() as i32).clamp(0, 5) as usize;
        format!("relative error {percent:.decimals$} %")
    } else {
        format!("relative error {error:.1e}")
    }
}

fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

impl Gaps {
    /// What could not be compared, by kind.
    fn not_compared(&self) -> Vec<NotCompared> {
        let of_kind = |kind: GapKind| {
            let first = self.first(kind).map(|gap| (gap.name.clone(), gap.reason.clone()));
            NotCompared::of(kind.as_str(), self.count(kind), kind.describe(self.count(kind)), first)
        };
        self.kinds().filter_map(of_kind).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_said_as_percentages_where_people_can_read_them() {
        assert_eq!(relative_error(0.002_966_98), "relative error 0.30 %");
        assert_eq!(relative_error(0.5), "relative error 50 %");
        assert_eq!(relative_error(3e-5), "relative error 0.0030 %");
        assert_eq!(relative_error(1.2e-7), "relative error 1.2e-7");
        assert_eq!(relative_error(40.0), "relative error 4.0e1");
        assert_eq!(relative_error(0.0), "equal");
    }

    #[test]
    fn frames_of_libraries_that_use_the_framework_are_shown() {
        let torch = "File \"/v/lib/python3.11/site-packages/torch/nn/modules/linear.py\", line 1, in forward";
        let model =
            "File \"/v/lib/python3.11/site-packages/transformers/models/llama/modeling_llama.py\", line 2";
        let python = "File \"/usr/lib/python3.11/contextlib.py\", line 81, in inner";
        assert!(is_of_the_framework(torch) && is_of_the_framework(python));
        assert!(!is_of_the_framework(model) && !is_of_the_framework("File \"train.py\", line 3"));
    }
}
