//! The answer of an analysis.

use msprobe_dump::model::Statistic;
use msprobe_dump::names::Step;
use msprobe_report::answer::{Answer, Culprit, Evidence, NotCompared, Scope, Status, StepAndRank};
use msprobe_report::{Cell, counted};

use super::text::facts;
use super::{Outcome, RankSummary};
use crate::findings::{Elements, Finding};
use crate::values::Value;

impl Outcome {
    /// The answer. Both names of the command give the same.
    pub fn answer(&self) -> Answer {
        let status = self.status();
        let step = self
            .step
            .components()
            .rev()
            .take(2)
            .find_map(|part| Step::of_dir(&part.as_os_str().to_string_lossy()));
        let culprit = self.culprit();
        let rank = culprit.map(|culprit| u64::from(culprit.rank));
        let scope = Scope::of_one(StepAndRank::new(step.map(|step| step.0), rank));
        Answer {
            culprit: culprit.map(|culprit| Culprit {
                name: culprit.operation.clone(),
                kind: culprit.kind.as_str(),
                direction: Some(if culprit.is_backward { "backward" } else { "forward" }),
                facts: facts(culprit),
            }),
            evidence: match culprit {
                Some(culprit) => evidence(culprit),
                None => self.close_to_the_end(),
            },
            not_compared: self.left_unmeasured(),
            next_step: self.next_step(),
            files: self.files.clone(),
            ..Answer::new("overflow_check", status, status.headline("", &self.sentence()), scope)
        }
    }

    fn next_step(&self) -> Option<String> {
        match (self.status(), self.culprit()) {
            (Status::Anomaly, Some(culprit)) if culprit.elements.is_empty() => {
                let call = culprit.modules.last().unwrap_or(&culprit.operation);
                Some(format!(
                    "collect again with \"task\": \"tensor\" and \"list\": [\"{call}\"], to see which elements"
                ))
            }
            (Status::Incomplete, _) => {
                Some("collect again what was not measured, all ranks of the step, and look again".to_owned())
            }
            _ => None,
        }
    }

    /// What was not measured or could not be read, by kind.
    fn left_unmeasured(&self) -> Vec<NotCompared> {
        let of = |test: fn(&RankSummary) -> bool| self.ranks.iter().filter(move |rank| test(rank));
        let rank = |rank: &RankSummary| format!("rank {}", rank.rank);
        let unmeasured: u64 = self.ranks.iter().map(|rank| rank.unmeasured).sum();
        let values = counted(unmeasured as usize, "value");
        let first_values = of(|rank| rank.unmeasured > 0).map(|one| {
            (format!("{}: {}", rank(one), one.first_unmeasured.as_deref().unwrap_or_default()), String::new())
        });
        let missing = self.missing_ranks.iter().map(|rank| (format!("rank {rank}"), "no dump".to_owned()));
        let unreadable =
            self.unreadable.iter().map(|rank| (format!("rank {rank}"), "cannot be read".to_owned()));
        let ranks = self.missing_ranks.len() + self.unreadable.len();
        let damaged = of(|rank| !rank.problems.is_empty());
        let empty = of(|rank| rank.records == 0 && rank.problems.is_empty());
        let named = |paths: &[std::path::PathBuf]| -> Vec<(String, String)> {
            paths.iter().map(|path| (path.display().to_string(), String::new())).collect()
        };
        let damages = damaged.clone().count();
        let empties = empty.clone().count();
        [
            NotCompared::of(
                "unmeasured",
                unmeasured as usize,
                format!("{values} of which nobody can say that they are finite"),
                first_values,
            ),
            NotCompared::of(
                "ranks",
                ranks,
                format!("{} without a dump that can be read", counted(ranks, "rank")),
                missing.chain(unreadable),
            ),
            NotCompared::of(
                "damaged",
                damages,
                format!("{} with a damaged dump", counted(damages, "rank")),
                damaged.map(|one| (rank(one), one.problems.first().cloned().unwrap_or_default())),
            ),
            NotCompared::of(
                "empty",
                empties,
                format!("{} with a dump without records", counted(empties, "rank")),
                empty.map(|one| (rank(one), "no records".to_owned())),
            ),
            NotCompared::of(
                "unread",
                self.left_out.len(),
                format!("{} left out", counted(self.left_out.len(), "path")),
                self.left_out.iter().map(|path| (path.clone(), String::new())),
            ),
            NotCompared::of(
                "steps",
                self.incomplete_steps.len(),
                format!("{} more like this", counted(self.incomplete_steps.len(), "step")),
                named(&self.incomplete_steps),
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Values close to the end of their range.
    fn close_to_the_end(&self) -> Vec<Evidence> {
        const SHOWN: usize = 10;
        self.all_warnings()
            .take(SHOWN)
            .map(|(_, warning, operation, _)| {
                let place = format!("{}.{}", warning.role.as_str(), warning.index);
                let value = Cell::Float(warning.value);
                Evidence::of_sides(operation, &place, warning.danger.as_str(), value, Cell::Empty)
                    .tolerating(warning.limit)
            })
            .collect()
    }
}

fn evidence(culprit: &Finding) -> Vec<Evidence> {
    let values = culprit.inputs.iter().chain(&culprit.outputs).flat_map(|value| of_value(culprit, value));
    values.chain(culprit.elements.iter().flat_map(|elements| of_elements(culprit, elements))).collect()
}

fn of_value<'a>(culprit: &'a Finding, value: &'a Value) -> impl Iterator<Item = Evidence> + 'a {
    let one =
        |measure, cell| Evidence::of_sides(&culprit.operation, &value.place, measure, cell, Cell::Empty);
    let sizes: Option<Vec<usize>> = value.shape.iter().map(|size| usize::try_from(*size).ok()).collect();
    let described =
        [one("dtype", Cell::Text(value.dtype.clone())), one("shape", sizes.map_or(Cell::Empty, Cell::Sizes))];
    let figures = Statistic::ALL.iter().zip(value.figures);
    let figures = figures
        .filter_map(move |(statistic, figure)| Some(one(measure_of(*statistic), Cell::Float(figure?))));
    described.into_iter().chain(figures)
}

fn of_elements(culprit: &Finding, elements: &Elements) -> [Evidence; 4] {
    let counts = &elements.counts;
    [
        ("elements", counts.elements),
        ("nan", counts.nan),
        ("positive_inf", counts.positive_inf),
        ("negative_inf", counts.negative_inf),
    ]
    .map(|(measure, number)| {
        let cell = Cell::Int(number.into());
        Evidence::of_sides(&culprit.operation, &elements.place, measure, cell, Cell::Empty)
    })
}

fn measure_of(statistic: Statistic) -> &'static str {
    match statistic {
        Statistic::Max => "max",
        Statistic::Min => "min",
        Statistic::Mean => "mean",
        Statistic::Norm => "norm",
    }
}
