//! The answer of a comparison of key data.

use std::path::Path;

use msprobe_report::answer::{self, Answer, Culprit, Evidence, NotCompared, Scope, Section, Status};
use msprobe_report::{Cell, counted};

use super::summary::brief_key_table;
use super::tokens::{Parting, parting};
use super::verdict::{DifferenceKind, KeySummary, Origin, Verdict};
use super::{ArrayPlace, Row, flow};

impl Verdict<'_> {
    /// The answer, but for the files. `dirs` are the dump paths of both runs.
    pub(super) fn answer(&self, dirs: [&Path; 2]) -> Answer {
        let at = self.origin.map_or_else(answer::StepAndRank::default, |origin| {
            let ArrayPlace { step, rank, .. } = origin.difference.place;
            answer::StepAndRank { step: Some(step), rank: Some(rank) }
        });
        let place = if self.origin.is_some() { Scope::of_two(at).to_string() } else { String::new() };
        let headline = self.status.headline(&place, &self.sentence(dirs));
        Answer {
            culprit: self.origin.map(|origin| self.culprit(origin, dirs)),
            evidence: self.origin.map(|origin| self.measured(origin)).unwrap_or_default(),
            not_compared: self.left_out(),
            next_step: self.next_step(dirs),
            ..Answer::new("rl compare", self.status, headline, Scope::of_two(at))
        }
    }

    /// What people are shown besides.
    pub(super) fn sections(&self, dirs: [&Path; 2]) -> Vec<Section> {
        let mut sections = vec![Section::table("Keys", brief_key_table(self))];
        sections.extend(self.notes(dirs).into_iter().map(|(title, text)| {
            Section::lines(title, text.lines().map(|line| format!("  {line}")).collect())
        }));
        sections
    }

    /// What only one run has, and NaN, under a title each.
    pub(super) fn notes(&self, dirs: [&Path; 2]) -> Vec<(String, String)> {
        let mut notes = Vec::new();
        let coverage = self.coverage(dirs);
        if !coverage.is_empty() {
            notes.push(("Only in one run".to_owned(), coverage.join("\n")));
        }
        notes.extend(self.nan_note().map(|note| ("Not a number".to_owned(), note)));
        notes
    }

    fn culprit(&self, origin: Origin, dirs: [&Path; 2]) -> Culprit {
        let mut facts = vec![("place", origin.difference.place.text())];
        facts.extend(self.evidence(origin, dirs).into_iter().map(|text| ("evidence", text)));
        facts.extend(self.look_at().map(|look_at| ("look at", look_at.to_owned())));
        facts.extend(self.spread(origin).map(|spread| ("spread", spread)));
        Culprit {
            name: self.keys[origin.key].key.name.clone(),
            kind: origin.difference.kind.as_str(),
            direction: None,
            facts,
        }
    }

    /// The row that shows where they parted.
    pub(super) fn row(&self, origin: Origin) -> Option<&Row> {
        self.keys[origin.key].key.rows.get(origin.difference.row?)
    }

    fn measured(&self, origin: Origin) -> Vec<Evidence> {
        let name = &self.keys[origin.key].key.name;
        let place = origin.difference.place.text();
        let sides = |measure, [own, other]: [Cell; 2]| Evidence::of_sides(name, &place, measure, own, other);
        let pair = |measure, measured| Evidence::of_pair(name, &place, measure, measured);
        if let DifferenceKind::OnlyIn(run) = origin.difference.kind {
            return vec![sides("recorded", [Cell::Bool(run == 0), Cell::Bool(run == 1)])];
        }
        let Some(row) = self.row(origin) else { return Vec::new() };
        let metrics = &row.metrics;
        let judged = self.limits.judge(self.keys[origin.key].key, row);
        let mut all = vec![
            sides("dtype", row.dtypes.map(|dtype| Cell::Text(dtype.to_string()))),
            sides("shape", row.shapes.clone().map(Cell::Sizes)),
            sides("nan", row.nan_counts.map(|count| Cell::Int(count.into()))),
            pair("equal_percentage", Cell::Float(metrics.same_percentage)),
            pair("max_abs_error", Cell::Float(metrics.max_abs_error)),
            pair("max_relative_error", Cell::Float(metrics.max_relative_error)),
            pair("relative_error", Cell::Float(judged.error)).tolerating(judged.tolerated),
        ];
        all.extend(row.first_difference.map(|index| pair("first_difference", Cell::Int(index.into()))));
        if flow::holds_tokens(name)
            && let Some(Parting { sample, token, tokens, .. }) = parting(row)
        {
            let text =
                |token: Option<_>| token.map_or(Cell::Empty, |token| Cell::Text(super::tokens::word(token)));
            all.push(pair("first_sample", Cell::Int(sample.into())));
            all.push(pair("first_token", Cell::Int(token as i128)));
            all.push(sides("token", tokens.map(text)));
        }
        all
    }

    /// What stands in the way of saying that everything is the same, by kind.
    pub(super) fn left_out(&self) -> Vec<NotCompared> {
        let named =
            |summary: &KeySummary<'_>, place: &ArrayPlace| format!("{} {}", summary.key.name, place.text());
        let keys = || self.keys.iter();
        let total = |of: &dyn Fn(&KeySummary<'_>) -> usize| keys().map(of).sum::<usize>();
        let [one, two] = [0, 1].map(|run| total(&|summary| summary.key.one_sided[run].len()));
        let unpaired = keys().flat_map(|summary| {
            let runs = ["only in the first run", "only in the second run"].into_iter();
            runs.zip(&summary.key.one_sided).flat_map(move |(reason, places)| {
                places.iter().map(move |place| (named(summary, place), reason.to_owned()))
            })
        });
        let failed = keys().flat_map(|summary| {
            let failures = summary.key.failures.iter();
            failures.map(move |failure| (named(summary, &failure.place), failure.reason.clone()))
        });
        let dtype = keys().flat_map(|summary| {
            let places = summary.other_dtype.iter();
            places.map(move |place| (named(summary, place), "another dtype".to_owned()))
        });
        let other_dtype = total(&|summary| summary.other_dtype.len());
        let entries = match self.unread.len() {
            1 => "1 entry was not read".to_owned(),
            entries => format!("{entries} entries were not read"),
        };
        let alone = format!("Arrays without a partner: {one} of the first run, {two} of the second");
        let same = format!("The same values in another dtype: {}", counted(other_dtype, "pair"));
        let could_not = format!("{} could not be compared", counted(self.failures(), "pair"));
        let unread = self.unread.iter().map(|text| (text.clone(), String::new()));
        [
            NotCompared::of("unpaired", one + two, alone, unpaired),
            NotCompared::of("dtype", other_dtype, same, dtype),
            NotCompared::of("files", self.failures(), could_not, failed),
            NotCompared::of("unread", self.unread.len(), entries, unread),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// How many of a kind were left out.
    pub(super) fn left_out_count(&self, kind: &str) -> usize {
        self.left_out().iter().find(|one| one.kind == kind).map_or(0, |one| one.count)
    }

    fn next_step(&self, dirs: [&Path; 2]) -> Option<String> {
        match (self.origin, self.status) {
            (Some(origin), _) => self.layer_step(origin, dirs).or_else(|| {
                let [target, golden] = &self.row(origin)?.files;
                Some(format!("msprobe diff {} {}", target.display(), golden.display()))
            }),
            (None, Status::Incomplete | Status::Failed) if self.left_out_count("unpaired") > 0 => Some(
                "save the same keys at the same steps and ranks of both runs, and compare again".to_owned(),
            ),
            _ => None,
        }
    }
}
