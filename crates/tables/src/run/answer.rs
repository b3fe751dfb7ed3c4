//! The answer of a whole call, one paragraph of it for logs and scripts, and what people are shown besides.

use std::fmt::Write;

use msprobe_compare::verdict::{DifferingRecord, Status, Verdict};
use msprobe_report::answer::{Answer, Scope, Section, StepAndRank};

use super::outcome::{Outcome, Part};

/// Places that are listed.
const PLACES: usize = 16;
/// The list of the first records that differ is not narrower than this, whatever the terminal.
const NARROWEST: usize = 60;

impl Outcome {
    /// The answer, in a paragraph.
    pub fn paragraph(&self) -> String {
        let Some((part, verdict)) = self.overall() else {
            let unread = self.unread().map_or_else(String::new, |unread| format!(" {unread}."));
            return format!("Nothing could be compared.{unread}");
        };
        let mut text = verdict.paragraph(&self.place(part, &verdict));
        if let Some(differing) = self.differing_places() {
            let _ = write!(text, " {differing}.");
        }
        text
    }

    /// The answer, but for the files.
    pub fn to_answer(&self) -> Answer {
        let all = Scope::of_two(StepAndRank::default());
        let Some((part, verdict)) = self.overall() else {
            let sentence = self.unread().unwrap_or_else(|| "there are no two dumps".to_owned());
            return Answer::new("compare", Status::Failed, Status::Failed.headline("", &sentence), all);
        };
        let is_one = self.parts.len() == 1 || verdict.status.is_difference();
        verdict.answer(if is_one { part.scope } else { all }, &self.place(part, &verdict))
    }

    /// What people are shown besides, for a terminal of a width.
    pub fn sections(&self, width: usize) -> Vec<Section> {
        let Some((_, verdict)) = self.overall() else { return Vec::new() };
        let mut sections = vec![Section::lines("Different beside the numbers", verdict.aside_lines())];
        if !verdict.amplifying.is_empty() {
            sections.push(Section::lines(
                "Records that amplify the error most beyond what is tolerated of them",
                differing_records(&verdict.amplifying, width.max(NARROWEST)),
            ));
        }
        if verdict.status.is_difference() && !verdict.first_differing.is_empty() {
            sections.push(Section::lines(
                differing_records_title(&verdict),
                differing_records(&verdict.first_differing, width.max(NARROWEST)),
            ));
        }
        sections.push(Section::lines("", self.differing_places().into_iter().collect()));
        sections
    }

    /// Where the answer is about; all dumps where none stands out.
    fn place(&self, part: &Part, verdict: &Verdict) -> String {
        match self.parts.len() {
            0 | 1 => part.place(),
            _ if verdict.status.is_difference() => part.place(),
            count => format!("{count} dumps"),
        }
    }

    fn differing_places(&self) -> Option<String> {
        let differing: Vec<&Part> =
            self.parts.iter().filter(|part| part.verdict.status.is_difference()).collect();
        if self.parts.len() < 2 || differing.is_empty() {
            return None;
        }
        let places: Vec<String> = differing.iter().map(|part| part.place()).take(PLACES).collect();
        let more = differing.len().saturating_sub(PLACES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        Some(format!("{} of {} dumps differ: {}{more}", differing.len(), self.parts.len(), places.join("; ")))
    }

    fn unread(&self) -> Option<String> {
        let first = self.failures.first()?;
        Some(format!("{} could not be read, first {first}", self.failures.len()))
    }
}

fn differing_records_title(verdict: &Verdict) -> String {
    let (shown, all) = (verdict.first_differing.len(), verdict.counts.differing);
    let which = if shown < all { format!("the first {shown} of {all}") } else { format!("all {all}") };
    format!("Records that differ ({which}, of {} compared)", verdict.counts.paired)
}

/// A table that fits the width; long names lose their middle.
fn differing_records(records: &[DifferingRecord], width: usize) -> Vec<String> {
    const NUMBERS: usize = 2 + 12 + 12 + 12;
    let names = width.saturating_sub(NUMBERS).max(20);
    let mut lines =
        vec![format!("  {:<names$} {:>11} {:>11} {}", "record", "error in", "error out", "error is")];
    for one in records {
        let how = if one.is_introduced { "introduced" } else { "inherited" };
        lines.push(format!(
            "  {:<names$} {:>11} {:>11} {how}",
            shortened(&one.name, names),
            in_short(one.error_in),
            in_short(one.error_out)
        ));
    }
    lines
}

fn in_short(error: f64) -> String {
    if error == 0.0 {
        "0".to_owned()
    } else if error.is_infinite() {
        "not finite".to_owned()
    } else {
        format!("{error:.1e}")
    }
}

fn shortened(name: &str, width: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= width {
        return name.to_owned();
    }
    let head = width / 3;
    let tail = width - head - 1;
    letters[..head].iter().chain(&['…']).chain(&letters[letters.len() - tail..]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_fits_the_width() {
        let records = vec![DifferingRecord {
            name: format!("Module.{}.Linear.forward.0", "layers.".repeat(20)),
            error_in: 0.0,
            error_out: f64::INFINITY,
            times_tolerated: f64::INFINITY,
            is_introduced: true,
        }];
        for width in [60, 80, 120, 200] {
            let lines = differing_records(&records, width);
            assert!(lines.iter().all(|line| line.chars().count() <= width), "{width}: {lines:?}");
            assert!(lines[1].contains("forward.0") && lines[1].contains("introduced"), "{lines:?}");
        }
    }
}
