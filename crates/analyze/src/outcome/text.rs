//! What was found, in words: the headline, what is known of the culprit, how it spread.

use std::fmt::Write;

use msprobe_dump::model::Statistic;
use msprobe_report::answer::Section;
use msprobe_report::{counted, short_number};

use super::{Outcome, Status};
use crate::findings::{Elements, Finding, Hop, OriginKind};
use crate::record::Kinds;
use crate::rules::Rule;
use crate::values::Value;

/// Of a chain longer than this, the middle is left out.
const HOPS: (usize, usize) = (8, 4);
/// Lines of a list before the rest becomes a number.
const LINES: usize = 8;
/// Frames of a call stack.
const FRAMES: usize = 4;
/// Tensors of a record.
const TENSORS: usize = 8;

impl Outcome {
    /// One sentence, with the status before it where it is not plain.
    pub fn headline(&self) -> String {
        let sentence = self.sentence();
        let is_said =
            self.culprit().is_some() || self.status() != Status::Incomplete || self.has_no_records();
        if is_said { sentence } else { format!("incomplete: {sentence}") }
    }

    fn has_no_records(&self) -> bool {
        self.ranks.iter().all(|rank| rank.records == 0) && self.incomplete_steps.is_empty()
    }

    /// The headline without its status.
    pub(super) fn sentence(&self) -> String {
        let ranks = self.ranks.len();
        let has_none = self.harmless().is_empty() && self.absorbed().0 == 0;
        let none = if has_none { "no NaN and no Inf" } else { "no harmful NaN or Inf" };
        if self.has_no_records() {
            return format!("nothing to judge: there are no records of values on {}", counted(ranks, "rank"));
        }
        match (self.culprit(), self.status()) {
            (Some(culprit), _) => {
                let what = match culprit.kind {
                    OriginKind::Produced => "made by",
                    OriginKind::Communication => "made in communication by",
                    OriginKind::Parameter => "in a parameter read by",
                    OriginKind::Input => "given to",
                    OriginKind::MissingRank => "received from a rank without a dump by",
                };
                format!(
                    "{} first {what} {} on rank {}",
                    said(culprit.values),
                    culprit.operation,
                    culprit.rank
                )
            }
            (None, Status::Incomplete) => {
                format!(
                    "{none} in what was measured on {}, but {}",
                    counted(ranks, "rank"),
                    self.gaps().join(", ")
                )
            }
            (None, Status::Warning) => {
                format!("{none} on {}, but values close to the end of their range", counted(ranks, "rank"))
            }
            (None, _) => format!("{none} on {}", counted(ranks, "rank")),
        }
    }

    /// What people are shown besides the answer.
    pub fn sections(&self) -> Vec<Section> {
        let mut sections = Vec::new();
        if !self.clean_steps.is_empty() {
            let steps = counted(self.clean_steps.len(), "step");
            let which = if self.status() == Status::Anomaly { "before it" } else { "besides" };
            let line = format!("In {}; {steps} {which} had none", self.step.display());
            sections.push(Section::lines("", vec![line]));
        }
        if let Some(culprit) = self.culprit() {
            sections.extend(self.how_it_spread(culprit));
        }
        sections.push(self.others());
        sections.push(self.early_warnings());
        sections.extend(self.what_was_excused());
        sections.push(self.what_is_wrong());
        sections
    }

    fn how_it_spread(&self, culprit: &Finding) -> Vec<Section> {
        let mut sections = Vec::new();
        if culprit.chain.len() > 1 {
            let mut lines = Vec::new();
            let (first, last) = HOPS;
            let hops = culprit.chain.len();
            for (number, hop) in culprit.chain.iter().enumerate() {
                if hops > first + last && number == first {
                    lines.push(format!("  … {} more …", hops - first - last));
                }
                if hops <= first + last || number < first || number >= hops - last {
                    lines.push(hop_line(hop));
                }
            }
            sections.push(Section::lines("Spread", lines));
        }
        let arrived = by_ranks(self.spread.iter().map(|spread| {
            let how = match (&spread.via, spread.from_rank) {
                (Some(via), Some(from)) if from != spread.rank => format!("from rank {from} ({via})"),
                _ => "by a way that was not recorded".to_owned(),
            };
            (spread.rank, format!("{}, {how}", spread.operation))
        }));
        sections.push(section("First on the other ranks", &arrived));
        let touched = self.ranks.iter().filter(|rank| rank.anomalies > 0);
        let records = by_ranks(touched.map(|rank| {
            let share = 100.0 * rank.anomalies as f64 / rank.records.max(1) as f64;
            (rank.rank, format!("{} of {} ({share:.1} %)", rank.anomalies, rank.records))
        }));
        sections.push(section("Records that are not finite", &records));
        sections
    }

    fn others(&self) -> Section {
        let others: Vec<String> = self
            .origins
            .iter()
            .skip(1)
            .map(|origin| {
                let (rank, operation) = (origin.rank, &origin.operation);
                format!("  rank {rank}: {operation} ({}): {}", said(origin.values), origin.reason)
            })
            .collect();
        let mut lines = shortened(&others);
        if self.more_origins() > 0 {
            lines.push(format!("  {} more are only counted", self.more_origins()));
        }
        Section::lines("Began independently of that", lines)
    }

    fn early_warnings(&self) -> Section {
        let mut warnings: Vec<String> = Vec::new();
        let mut total = 0;
        for warned in &self.warnings {
            total += warned.range.counts.iter().sum::<u64>();
            warnings
                .extend(warned.sentences.iter().map(|(_, text)| format!("  rank {}: {text}", warned.rank)));
        }
        let title = match &self.as_dtype {
            Some(dtype) => format!("Early warnings ({total}, also for {dtype})"),
            None => format!("Early warnings ({total})"),
        };
        section(&title, &warnings)
    }

    fn what_was_excused(&self) -> Vec<Section> {
        let mut lines = Vec::new();
        for rule in Rule::ALL {
            let of_rule: Vec<_> = self.harmless().iter().filter(|excused| excused.rule == rule).collect();
            let records: usize = of_rule.iter().map(|excused| excused.count).sum();
            let Some((rank, name)) = of_rule.first().and_then(|excused| self.excused_name(excused)) else {
                continue;
            };
            lines.push(format!(
                "  {}: {}, first {name} on rank {rank}",
                rule.as_str(),
                counted(records, "record")
            ));
        }
        let filled: u64 = self.warnings.iter().map(|warned| warned.filled).sum();
        if filled > 0 {
            let tensors = counted(filled as usize, "tensor");
            lines.push(format!("  {}: {tensors} with the lowest number of their dtype", Rule::Mask.as_str()));
        }
        let mut sections = vec![section("Harmless by rule (--no-rule NAME to count it)", &lines)];
        if let (records, Some((rank, name))) = self.absorbed() {
            let records = counted(records, "record");
            let line = format!(
                "Also not finite on the way in, from nobody knows where, and finite on the way out: {records}, first {name} on \
                 rank {rank}"
            );
            sections.push(Section::lines("", vec![line]));
        }
        sections
    }

    /// What was not measured or could not be read, in a few words each.
    fn gaps(&self) -> Vec<String> {
        let mut gaps = Vec::new();
        let unmeasured: u64 = self.ranks.iter().map(|rank| rank.unmeasured).sum();
        if unmeasured > 0 {
            let was = if unmeasured == 1 { "was" } else { "were" };
            gaps.push(format!("{} {was} not measured", counted(unmeasured as usize, "value")));
        }
        if !self.missing_ranks.is_empty() {
            gaps.push(format!("there is no dump of {}", counted(self.missing_ranks.len(), "rank")));
        }
        if !self.unreadable.is_empty() {
            gaps.push(format!("{} could not be read", counted(self.unreadable.len(), "rank")));
        }
        let of = |test: fn(&super::RankSummary) -> bool| self.ranks.iter().filter(|rank| test(rank)).count();
        let damaged = of(|rank| !rank.problems.is_empty());
        if damaged > 0 {
            gaps.push(format!("the dump of {} is damaged", counted(damaged, "rank")));
        }
        let empty = of(|rank| rank.records == 0 && rank.problems.is_empty());
        if empty > 0 {
            gaps.push(format!("the dump of {} has no records", counted(empty, "rank")));
        }
        if !self.left_out.is_empty() {
            let directories = if self.left_out.len() == 1 { "directory is" } else { "directories are" };
            gaps.push(format!("{} {directories} left out", self.left_out.len()));
        }
        if !self.incomplete_steps.is_empty() {
            gaps.push(format!("{} more like this", counted(self.incomplete_steps.len(), "step")));
        }
        gaps
    }

    fn what_is_wrong(&self) -> Section {
        let problems: Vec<String> = self.problems.iter().map(|problem| format!("  {problem}")).collect();
        let mut lines = shortened(&problems);
        if !self.links.unpaired().is_empty() && self.status() == Status::Anomaly {
            lines.push(format!(
                "  {} found no partner on another rank",
                counted(self.links.unpaired().len(), "communication call")
            ));
        }
        Section::lines("Problems", lines)
    }
}

/// What is known of an origin: labels and texts.
pub(super) fn facts(finding: &Finding) -> Vec<(&'static str, String)> {
    let mut facts = vec![("reason", finding.reason.clone())];
    facts.extend(finding.advice.iter().map(|advice| ("why", advice.clone())));
    facts.extend(finding.parameter.iter().map(|parameter| ("parameter", parameter.clone())));
    if !finding.modules.is_empty() {
        facts.push(("module", finding.modules.join(" > ")));
    }
    let values: Vec<String> = finding.inputs.iter().chain(&finding.outputs).map(value_line).collect();
    let more = values.len().saturating_sub(TENSORS);
    let elements = finding.elements.iter().map(elements_line);
    let shown = values.iter().take(TENSORS).cloned();
    let more = (more > 0).then(|| format!("… {more} more tensors"));
    let evidence = shown.chain(more).chain(elements);
    facts.extend(evidence.enumerate().map(|(index, text)| (if index == 0 { "evidence" } else { "" }, text)));
    let frames = frames_to_show(&finding.stack).into_iter().take(FRAMES).map(|frame| one_line(frame));
    facts.extend(frames.enumerate().map(|(index, text)| (if index == 0 { "called at" } else { "" }, text)));
    facts
}

fn value_line(value: &Value) -> String {
    let mut line =
        format!("{:<10} {} {:?}", value.place, value.dtype.trim_start_matches("torch."), value.shape);
    for (statistic, figure) in Statistic::ALL.iter().zip(value.figures) {
        if let Some(figure) = figure {
            let _ = write!(line, "  {} {}", statistic.as_str(), short_number(figure));
        }
    }
    line
}

fn elements_line(elements: &Elements) -> String {
    let counts = &elements.counts;
    let mut parts = Vec::new();
    for (number, name) in [(counts.nan, "NaN"), (counts.positive_inf, "Inf"), (counts.negative_inf, "-Inf")] {
        if number > 0 {
            parts.push(format!("{number} {name}"));
        }
    }
    let first =
        elements.first_bad.as_ref().map_or_else(String::new, |index| format!(", the first at {index:?}"));
    format!("{:<10} {} of {} elements{first}", elements.place, parts.join(", "), counts.elements)
}

fn hop_line(hop: &Hop) -> String {
    let how = match hop.how {
        "spread" => String::new(),
        how => format!("  ({how})"),
    };
    format!("  rank {}  {}{how}", hop.rank, hop.operation)
}

/// The frames of the user's own code, or all but the wrapper's if there are none.
pub(crate) fn frames_to_show(stack: &[String]) -> Vec<&String> {
    let is_of_the_tool = |frame: &str| frame.contains("/msprobe/") || frame.contains("<tool>");
    let is_of_a_library =
        |frame: &str| frame.contains("/site-packages/torch/") || frame.contains("/multiprocessing/");
    let outside: Vec<&String> = stack.iter().filter(|frame| !is_of_the_tool(frame)).collect();
    let own: Vec<&String> = outside.iter().filter(|frame| !is_of_a_library(frame)).copied().collect();
    if own.is_empty() { outside } else { own }
}

fn one_line(frame: &str) -> String {
    frame.split_whitespace().collect::<Vec<&str>>().join(" ")
}

fn section(title: &str, entries: &[String]) -> Section {
    Section::lines(title, shortened(entries))
}

/// The first entries, and how many there are beyond them.
fn shortened(entries: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = entries.iter().take(LINES).cloned().collect();
    if entries.len() > LINES {
        lines.push(format!("  … {} more", entries.len() - LINES));
    }
    lines
}

/// A line per text, with the ranks it holds for before it, in the order in which texts first come.
fn by_ranks(entries: impl Iterator<Item = (u32, String)>) -> Vec<String> {
    let mut lines: Vec<(Vec<u32>, String)> = Vec::new();
    for (rank, text) in entries {
        match lines.iter_mut().find(|(_, known)| *known == text) {
            Some((ranks, _)) => ranks.push(rank),
            None => lines.push((vec![rank], text)),
        }
    }
    let word = |ranks: &[u32]| if ranks.len() == 1 { "rank" } else { "ranks" };
    lines
        .into_iter()
        .map(|(ranks, text)| format!("  {} {}: {text}", word(&ranks), in_ranges(&ranks)))
        .collect()
}

/// `0-32, 34-63`
fn in_ranges(numbers: &[u32]) -> String {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in sorted {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let word = |(first, last): &(u32, u32)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}-{last}"),
    };
    ranges.iter().map(word).collect::<Vec<String>>().join(", ")
}

/// `NaN`, `Inf and -Inf`.
pub(crate) fn said(kinds: Kinds) -> String {
    let words: Vec<&str> = kinds
        .names()
        .into_iter()
        .map(|name| match name {
            "nan" => "NaN",
            "inf" => "Inf",
            _ => "-Inf",
        })
        .collect();
    if words.is_empty() { "a value that is not finite".to_owned() } else { words.join(" and ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_with_the_same_to_tell_share_a_line() {
        let entries = [3, 0, 1, 7, 9, 8].map(|rank| (rank, if rank == 7 { "b" } else { "a" }.to_owned()));
        assert_eq!(by_ranks(entries.into_iter()), ["  ranks 0, 1, 3, 8, 9: a", "  rank 7: b"]);
        assert_eq!(in_ranges(&[0, 1, 2, 3, 5, u32::MAX]), "0-3, 5, 4294967295");
    }
}
