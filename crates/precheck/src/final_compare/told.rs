//! What is told of a final compare.

use msprobe_report::answer::{Answer, Culprit, NotCompared, Scope, Section, Status as AnswerStatus};
use msprobe_report::counted;

use crate::status::Status;
use crate::verdict::BOTH_NONE;

/// Operators that are named.
const NAMED: usize = 20;

/// Counts and names while rows are judged.
#[derive(Default)]
pub(super) struct Told {
    /// Rows that only the tested side has.
    pub(super) absent: Vec<String>,
    /// Processing ended at a row that the reference has twice.
    pub(super) was_aborted: bool,
    passed: usize,
    failed: Vec<String>,
    skipped_apis: usize,
    skipped_rows: Vec<(String, String)>,
    /// Name and message of the rows that failed.
    bad_rows: Vec<(String, String)>,
}

impl Told {
    pub(super) fn skipped(&mut self, row: &str, message: String) {
        if message.trim() != BOTH_NONE {
            self.skipped_rows.push((row.to_owned(), message));
        }
    }

    pub(super) fn row(&mut self, row: &str, status: Status, message: &str) {
        match status {
            Status::Error | Status::Warning => {
                self.bad_rows
                    .push((row.to_owned(), message.split_whitespace().collect::<Vec<_>>().join(" ")));
            }
            Status::Skip => self.skipped(row, message.trim().to_owned()),
            Status::None | Status::Pass => {}
        }
    }

    pub(super) fn api(&mut self, name: &str, status: Status) {
        match status {
            Status::Error | Status::Warning => self.failed.push(name.to_owned()),
            Status::Pass => self.passed += 1,
            Status::Skip | Status::None => self.skipped_apis += 1,
        }
    }

    pub(super) fn answer(self) -> (Answer, Vec<Section>) {
        let compared = self.passed + self.failed.len();
        let total = compared + self.skipped_apis;
        let is_partial = self.skipped_apis > 0
            || !self.skipped_rows.is_empty()
            || !self.absent.is_empty()
            || self.was_aborted;
        let status = if compared == 0 {
            AnswerStatus::Failed
        } else if !self.failed.is_empty() {
            AnswerStatus::Diverged
        } else if is_partial {
            AnswerStatus::Incomplete
        } else {
            AnswerStatus::WithinTolerance
        };
        let operators = counted(total, "operator");
        let sentence = match self.failed.len() {
            0 if compared == 0 => format!("none of {operators} could be compared"),
            0 => format!("{} of {operators} passed, none failed", self.passed),
            failed => format!("{failed} of {operators} failed, {} passed", self.passed),
        };
        let mut answer =
            Answer::new("api_precision_compare", status, status.headline("", &sentence), Scope::default());
        answer.culprit = self.failed.first().map(|name| Culprit {
            name: name.clone(),
            kind: "operator",
            direction: None,
            facts: self
                .bad_rows
                .iter()
                .find(|(row, _)| row.starts_with(&format!("{name}.")))
                .map(|(row, message)| ("row", format!("{row}: {message}")))
                .into_iter()
                .collect(),
        });
        let skipped = self.skipped_rows.len();
        let absent = self.absent.len();
        answer.not_compared = [
            NotCompared::of("row", skipped, format!("{} skipped", counted(skipped, "row")), self.skipped_rows),
            NotCompared::of(
                "only_target",
                absent,
                format!("{} only in the file of -npu", counted(absent, "row")),
                self.absent.into_iter().map(|name| (name, String::new())),
            ),
            NotCompared::of(
                "aborted",
                usize::from(self.was_aborted),
                "every row from the first one that the file of -gpu has twice; --strict leaves out that row alone",
                [],
            ),
        ]
        .into_iter()
        .flatten()
        .collect();
        answer.next_step = match answer.culprit.as_ref().map(|culprit| culprit.name.clone()) {
            Some(name) => Some(format!(
                "`msprobe op_generate --from DETAILS.csv --api {name} -api_info dump.json` with the details given as \
                 -npu writes a script that runs this operator alone"
            )),
            None if compared == 0 => Some("check that both files come from the same dump".to_owned()),
            None => None,
        };
        let lines = |rows: &[(String, String)]| {
            rows.iter()
                .take(NAMED)
                .map(|(row, message)| format!("  {row}: {message}"))
                .collect::<Vec<String>>()
        };
        let sections = vec![Section::lines("Failed", lines(&self.bad_rows))];
        (answer, sections)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status_with_skipped(message: &str) -> AnswerStatus {
        let mut told = Told::default();
        told.api("Torch.mul.0", Status::Pass);
        told.row("Torch.mul.0.backward.output.1", Status::Skip, message);
        told.answer().0.status
    }

    #[test]
    fn an_output_neither_side_has_lacks_nothing() {
        assert_eq!(status_with_skipped(BOTH_NONE), AnswerStatus::WithinTolerance);
        assert_eq!(status_with_skipped("no benchmark"), AnswerStatus::Incomplete);
    }
}
