//! The answer in words.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use msprobe_report::answer::{NotCompared, Status};
use msprobe_report::{counted, short_number, some_of};

use super::flow::{self, Layers};
use super::limits::{Judged, LimitOrigin};
use super::tokens::parting;
use super::verdict::{Difference, DifferenceKind, KeySummary, Origin, Verdict};
use super::{ArrayPlace, Row};

/// Names that may stand in a sentence before the rest becomes a number.
const NAMES_IN_SENTENCE: usize = 8;

impl ArrayPlace {
    /// `step 2 rank 0 micro_step 1 id 3`
    pub fn text(&self) -> String {
        format!("step {} rank {} micro_step {} id {}", self.step, self.rank, self.micro_step, self.id)
    }
}

impl Verdict<'_> {
    /// The answer, sentence by sentence. `dirs` are the dump paths of both runs.
    pub(super) fn lines(&self, dirs: [&Path; 2]) -> Vec<String> {
        let mut lines = vec![self.headline(dirs)];
        if let Some(origin) = self.origin {
            lines.extend(self.evidence(origin, dirs));
            lines.extend(self.spread(origin));
            lines.extend(self.layer_step(origin, dirs).map(|next| format!("Next, for the layer: {next}")));
        }
        lines.extend(self.coverage(dirs));
        lines.extend(self.not_compared());
        lines.extend(self.nan_note());
        lines
    }

    /// Where to look, for machines.
    pub(super) fn look_at(&self) -> Option<&'static str> {
        flow::stage(&self.keys[self.origin?.key].key.name).map(|stage| stage.look_at)
    }

    /// The collection that shows more, for machines.
    pub(super) fn layers(&self) -> Option<&'static Layers> {
        flow::stage(&self.keys[self.origin?.key].key.name)?.layers.as_ref()
    }

    fn headline(&self, dirs: [&Path; 2]) -> String {
        let sentence = self.sentence(dirs);
        match self.status {
            Status::Identical | Status::WithinTolerance | Status::Incomplete => {
                format!("{}: {sentence}", self.status.as_str())
            }
            Status::Failed if self.failures() > 0 => format!("nothing could be compared: {sentence}"),
            Status::Failed => format!("nothing to compare: {sentence}"),
            _ => sentence,
        }
    }

    /// The headline without its status.
    pub(super) fn sentence(&self, dirs: [&Path; 2]) -> String {
        let has_pairs =
            |summary: &&KeySummary<'_>| !summary.key.rows.is_empty() || !summary.key.bare.is_empty();
        let keys = self.keys.iter().filter(has_pairs).count();
        let compared = format!("{} in {}", counted(self.compared(), "array"), counted(keys, "key"));
        match self.status {
            Status::Incomplete => {
                let what =
                    if self.tolerated() > 0 { "no difference beyond tolerance" } else { "no difference" };
                format!("{what} in {compared}, but not everything could be compared")
            }
            Status::WithinTolerance => self.tolerated_differences(&compared),
            Status::Failed if self.failures() > 0 => {
                format!("{} could not be read", counted(self.failures(), "pair"))
            }
            Status::Failed => format!(
                "{} and {} have no array of the same key, step, rank and micro step",
                dirs[0].display(),
                dirs[1].display()
            ),
            _ => self.origin.map_or(compared, |origin| self.divergence(origin)),
        }
    }

    /// Arrays that differ within tolerance.
    fn tolerated(&self) -> usize {
        self.keys.iter().map(|summary| summary.tolerated).sum()
    }

    /// `12 of 20 arrays in 4 keys differ by no more than is tolerated; most: old_log_prob, …`
    fn tolerated_differences(&self, compared: &str) -> String {
        let share = |judged: Judged| judged.error / judged.tolerated;
        let judged = self.keys.iter().filter_map(|summary| Some((summary, summary.worst?)));
        let most = judged.max_by(|(_, one), (_, other)| share(*one).total_cmp(&share(*other)));
        let most = most.map_or_else(String::new, |(summary, judged)| {
            format!("; most: {}, {}", summary.key.name, self.amount(judged))
        });
        format!("{} of {compared} differ, none by more than is tolerated{most}", self.tolerated())
    }

    /// `relative error 1.2e-5, tolerated 3e-5 (rounding)`
    pub(super) fn amount(&self, Judged { error, tolerated }: Judged) -> String {
        format!(
            "relative error {}, tolerated {} ({})",
            short_number(error),
            short_number(tolerated),
            self.limits.origin().as_str()
        )
    }

    /// `prompts, responses identical; ref_log_prob differs first at step 2 rank 0 …: look at the reference model`
    fn divergence(&self, origin: Origin) -> String {
        let summary = &self.keys[origin.key];
        let Difference { place, kind, .. } = origin.difference;
        let before = self.identical_before(origin);
        let mut text = if before.is_empty() { String::new() } else { format!("{before}; ") };
        let what = match kind {
            DifferenceKind::Values => "differs",
            DifferenceKind::Shape => "has another shape",
            DifferenceKind::OnlyIn(_) => "is missing in one run",
        };
        let _ = match origin.beside {
            Some(beside) => write!(
                text,
                "{} and {} both differ first at {}",
                summary.key.name,
                self.keys[beside].key.name,
                place.text()
            ),
            None => write!(text, "{} {what} first at {}", summary.key.name, place.text()),
        };
        let look = |key: usize| flow::stage(&self.keys[key].key.name);
        match (look(origin.key), origin.beside.and_then(look)) {
            (Some(one), Some(two)) => {
                let _ = write!(text, ": look at {} and at {}", one.look_at, two.look_at);
            }
            (Some(one), None) => {
                let _ = write!(text, ": look at {}", one.look_at);
            }
            (None, _) => text.push_str(": look at what computes it"),
        }
        let after_update = look(origin.key).is_some_and(|stage| stage.follows_update);
        if after_update && self.first_step.is_some_and(|first| place.step > first) {
            let _ = write!(text, ", or at the update that ended step {}", place.step - 1);
        }
        text
    }

    /// Keys that come before the origin and were the same until then.
    fn identical_before(&self, origin: Origin) -> String {
        let step = origin.difference.place.step;
        let earlier = self.keys[..origin.key].iter();
        let same = earlier.filter(|summary| summary.key.rows.iter().any(|row| row.place.step <= step));
        let (always, later): (Vec<_>, Vec<_>) = same.partition(|summary| summary.first.is_none());
        let (within, equal): (Vec<_>, Vec<_>) = always.into_iter().partition(|summary| summary.tolerated > 0);
        let mut parts = Vec::new();
        for (keys, state) in [(equal, "identical"), (within, "within tolerance")] {
            if !keys.is_empty() {
                parts.push(format!("{} {state}", names(keys.iter().map(|summary| &summary.key.name))));
            }
        }
        parts.extend(later.iter().filter_map(|summary| {
            let first = summary.first?.place.step;
            let state = if summary.tolerated > 0 { "within tolerance" } else { "identical" };
            Some(format!("{} {state} until step {first}", summary.key.name))
        }));
        parts.join(", ")
    }

    pub(super) fn evidence(&self, origin: Origin, dirs: [&Path; 2]) -> Vec<String> {
        let summary = &self.keys[origin.key];
        let mut lines = Vec::new();
        if let DifferenceKind::OnlyIn(run) = origin.difference.kind {
            lines.push(format!("Only {} has it there.", dirs[run].display()));
        }
        let Some(row) = origin.difference.row.and_then(|row| summary.key.rows.get(row)) else {
            return lines;
        };
        lines.push(row_text(row));
        let judged = self.limits.judge(summary.key, row);
        if self.limits.origin() != LimitOrigin::Exact && origin.difference.kind == DifferenceKind::Values {
            lines.push(format!("{} of the arrays' norm.", self.amount(judged)));
        }
        if flow::holds_tokens(&summary.key.name)
            && let Some(parting) = parting(row)
        {
            let text = parting.text();
            let parted =
                summary.key.rows.iter().filter(|other| other.place.step == row.place.step && differs(other));
            lines.push(format!(
                "S{} (lengths {} and {}). {} of this step differ.",
                &text[1..],
                parting.lengths[0],
                parting.lengths[1],
                counted(parted.count(), "array")
            ));
        }
        lines
    }

    /// What else differs at that step, and what only later.
    pub(super) fn spread(&self, origin: Origin) -> Option<String> {
        let step = origin.difference.place.step;
        let others = self.keys.iter().enumerate().filter_map(|(index, summary)| {
            let first = summary.first?;
            let is_other = index != origin.key && Some(index) != origin.beside;
            is_other.then_some((&summary.key.name, first.place.step))
        });
        let (at_once, later): (Vec<_>, Vec<_>) = others.partition(|&(_, at)| at == step);
        let mut parts = Vec::new();
        if !at_once.is_empty() {
            parts.push(format!("At the same step: {}.", names(at_once.iter().map(|(name, _)| name))));
        }
        if let Some(next) = later.iter().map(|&(_, at)| at).min() {
            parts.push(format!("From step {next} on: {}.", names(later.iter().map(|(name, _)| name))));
        }
        (!parts.is_empty()).then(|| parts.join(" "))
    }

    /// The settings that collect the layers behind the origin, and the command that compares them.
    pub(super) fn layer_step(&self, origin: Origin, dirs: [&Path; 2]) -> Option<String> {
        let layers = self.layers()?;
        let step = origin.difference.place.step;
        let paths = dirs.map(|dir| layer_dump(dir, layers, step));
        // Layers of two kinds of devices differ in their last bits too.
        let exact = if self.limits.origin() == LimitOrigin::Exact { " --tolerance 0" } else { "" };
        let command =
            format!("msprobe compare -tp {} -gp {} -o OUT{exact}", paths[0].display(), paths[1].display());
        Some(if paths.iter().all(|path| path.is_dir()) {
            command
        } else {
            format!(
                "run both again with {}: true, step_start: {step}, step_end: {step}; then {command}",
                layers.switch
            )
        })
    }

    /// What only one run has.
    pub(super) fn coverage(&self, dirs: [&Path; 2]) -> Vec<String> {
        let mut lines = Vec::new();
        if let [Some(one), Some(two)] = self.last_steps
            && one != two
        {
            let (longer, shorter) = if one > two { (0, 1) } else { (1, 0) };
            lines.push(format!(
                "{} ends with step {}, {} with step {}: what follows was not compared.",
                dirs[shorter].display(),
                one.min(two),
                dirs[longer].display(),
                one.max(two)
            ));
        }
        for run in [0, 1] {
            let only =
                self.keys.iter().filter(|summary| summary.key.present[run] && !summary.key.present[1 - run]);
            let only = names(only.map(|summary| &summary.key.name));
            if !only.is_empty() {
                lines.push(format!("Only {} has {only}.", dirs[run].display()));
            }
        }
        for (dir, ranks) in dirs.iter().zip(&self.lone_ranks) {
            if !ranks.is_empty() {
                let numbers = names(ranks.iter().map(|rank| format!("rank {rank}")));
                lines.push(format!("Only {} has {numbers}.", dir.display()));
            }
        }
        lines
    }

    /// What was not compared, each kind with the first of it.
    fn not_compared(&self) -> Vec<String> {
        let first_alone = || {
            self.keys.iter().find_map(|summary| {
                let place = summary.key.one_sided.iter().flatten().min()?;
                Some(format!("{} {}", summary.key.name, place.text()))
            })
        };
        let line = |kind: NotCompared| {
            let first = match kind.kind {
                // The earliest of both runs.
                "unpaired" => first_alone()?,
                _ => kind.first.into_iter().next()?.0,
            };
            let end = if kind.kind == "files" { "; the log and summary.json say why" } else { "" };
            Some(format!("{}, the first {first}{end}.", kind.text))
        };
        self.left_out().into_iter().filter_map(line).collect()
    }

    pub(super) fn nan_note(&self) -> Option<String> {
        let with_nan: Vec<String> = self
            .keys
            .iter()
            .filter(|summary| summary.nan_counts != [0, 0])
            .map(|summary| {
                let [one, two] = summary.nan_counts;
                format!("{} ({one} in the first run, {two} in the second)", summary.key.name)
            })
            .collect();
        (!with_nan.is_empty()).then(|| format!("NaN in {}.", names(with_nan)))
    }
}

/// Where the layers of a phase are collected.
fn layer_dump(dir: &Path, layers: &Layers, step: i64) -> PathBuf {
    dir.join(layers.phase).join(format!("step{step}"))
}

/// Whether two arrays differ; NaN against NaN does not.
pub(super) fn differs(row: &Row) -> bool {
    row.first_difference.is_some() || row.shapes[0] != row.shapes[1]
}

fn row_text(row: &Row) -> String {
    let metrics = &row.metrics;
    let mut text = if row.shapes[0] == row.shapes[1] {
        String::new()
    } else {
        format!("Shapes {:?} and {:?}. ", row.shapes[0], row.shapes[1])
    };
    let _ = write!(text, "{} % of the elements are the same", short_number(metrics.same_percentage));
    if let Some(index) = row.first_difference {
        let _ = write!(text, ", the first that is not has index {index}");
    }
    let _ = write!(
        text,
        "; largest absolute error {}, largest relative error {}.",
        short_number(metrics.max_abs_error),
        short_number(metrics.max_relative_error)
    );
    text
}

fn names<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    some_of(names, NAMES_IN_SENTENCE)
}
