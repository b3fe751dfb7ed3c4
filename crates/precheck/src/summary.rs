//! The end of a check: a paragraph, and a page with every API, pictures of the errors, and the way to one of them alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use msprobe_report::answer::{
    Answer, Culprit, Evidence, Exit, Habit, NotCompared, Scope, Section, Status as AnswerStatus,
};
use msprobe_report::output::publish_numbered;
use msprobe_report::{
    Block, Cell, CellSink, CurveSeries, Curves, Page, PageTable, SheetRows, Tone, counted, write_page,
};

use crate::outcome::{Outcome, Picture};
use crate::status::Status;
use crate::tables::Tables;

/// Operators that are named in the paragraph.
const NAMED: usize = 20;

/// What of an outcome is kept until the end: not its rows.
#[derive(Debug, Clone)]
struct Told {
    full_name: String,
    forward: Status,
    backward: Status,
    status: Status,
    has_failed: bool,
    reason: String,
    worst: String,
    measure: Option<crate::verdict::Decision>,
    inputs: String,
    place: String,
    seconds: Option<f64>,
}

/// Gathers outcomes while a check runs.
#[derive(Debug, Default)]
pub struct Summary {
    told: Vec<Told>,
    pictures: Vec<Picture>,
}

/// How a check ended.
#[derive(Debug, Clone, Copy)]
pub struct End<'a> {
    /// `run_ut`, `multi_run_ut`
    pub command: &'static str,
    /// The dump.
    pub api_info: &'a Path,
    /// What it ran on.
    pub device: &'a str,
    /// The user ended it.
    pub was_interrupted: bool,
}

impl Summary {
    /// One more outcome.
    pub fn add(&mut self, outcome: &Outcome) {
        self.pictures.extend(outcome.pictures.iter().cloned());
        let worst = outcome.worst.as_ref();
        self.told.push(Told {
            full_name: outcome.full_name.clone(),
            forward: outcome.forward,
            backward: outcome.backward,
            status: outcome.status(),
            has_failed: outcome.has_failed,
            reason: outcome.reason.clone().unwrap_or_default(),
            worst: worst.map_or_else(String::new, |worst| format!("{}: {}", worst.row, worst.text)),
            measure: worst.and_then(|worst| worst.decision.clone()),
            inputs: outcome.notes.inputs.join(", "),
            place: outcome.notes.place.clone().unwrap_or_default(),
            seconds: outcome.notes.seconds,
        });
    }

    /// Writes the page and makes the answer.
    pub fn finish(&self, tables: &Tables, end: &End<'_>) -> io::Result<(Answer, Vec<Section>)> {
        let (mut answer, sections) = self.answer(tables, end);
        answer.output = Some(tables.output().to_owned());
        answer.files = vec![tables.result_path().to_owned(), tables.details_path().to_owned()];
        let path = tables.output().join(format!("accuracy_checking_report_{}.html", tables.stamp()));
        let page = publish_numbered(&path, |file| self.write_page(&answer, file))?;
        answer.files.push(page);
        Ok((answer, sections))
    }

    /// How the command ends: as scripts of the reference know it, unless something was not looked at.
    pub fn exit(answer: &Answer, was_interrupted: bool) -> Exit {
        answer.status.exit_by_habit(Habit::Precheck, !was_interrupted)
    }

    fn answer(&self, tables: &Tables, end: &End<'_>) -> (Answer, Vec<Section>) {
        let earlier = tables.done().values().map(|(forward, backward)| *forward.max(backward));
        let statuses: Vec<Status> = earlier.chain(self.told.iter().map(|told| told.status)).collect();
        let count = |wanted: Status| statuses.iter().filter(|status| **status == wanted).count();
        // Forward passed and backward not run is a pass with a reason, not a skip.
        let passed_in_part = self.told.iter().filter(|told| is_half(told)).count()
            + tables
                .done()
                .values()
                .filter(|(forward, backward)| {
                    forward != backward && *backward == Status::Skip && *forward == Status::Pass
                })
                .count();
        let (failed, warned) = (count(Status::Error), count(Status::Warning));
        let skipped = count(Status::Skip) - passed_in_part.min(count(Status::Skip));
        let passed = count(Status::Pass) + count(Status::None) + passed_in_part;
        let ran = failed + warned + passed;
        let status = if ran == 0 && failed == 0 {
            AnswerStatus::Failed
        } else if failed > 0 {
            AnswerStatus::Anomaly
        } else if end.was_interrupted || skipped > 0 {
            AnswerStatus::Incomplete
        } else if warned > 0 {
            AnswerStatus::Warning
        } else {
            AnswerStatus::Clean
        };
        let mut sentence = format!(
            "{} checked on {}: {passed} passed, {failed} failed, {warned} doubtful, {skipped} skipped",
            counted(statuses.len(), "operator"),
            end.device
        );
        if !tables.done().is_empty() {
            let _ = write!(sentence, " ({} of them in an earlier run)", tables.done().len());
        }
        if end.was_interrupted {
            sentence.push_str("; it was interrupted");
        }
        let mut answer = Answer::new(end.command, status, status.headline("", &sentence), Scope::default());
        let bad: Vec<&Told> = self.told.iter().filter(|told| told.status >= Status::Warning).collect();
        let worst = bad.iter().map(|told| told.status).max();
        let first = bad.iter().find(|told| Some(told.status) == worst).copied();
        answer.culprit = first.map(|told| Culprit {
            name: told.full_name.clone(),
            kind: "operator",
            direction: None,
            facts: facts(told),
        });
        answer.evidence = bad.iter().take(NAMED).filter_map(|told| evidence(told)).collect();
        answer.not_compared = self.left_out();
        answer.next_step = next_step(first, tables, end);
        let lines = |wanted: Status| -> Vec<String> {
            let named = bad.iter().filter(|told| told.status == wanted);
            let mut lines: Vec<String> = named.clone().take(NAMED).map(|told| line(told)).collect();
            let more = named.count().saturating_sub(NAMED);
            if more > 0 {
                lines.push(format!("  and {more} more, see {}", tables.result_path().display()));
            }
            lines
        };
        let sections = vec![
            Section::lines("Failed", lines(Status::Error)),
            Section::lines("Doubtful", lines(Status::Warning)),
        ];
        (answer, sections)
    }

    /// What did not run, by reason, the most frequent first.
    fn left_out(&self) -> Vec<NotCompared> {
        let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for told in self.told.iter().filter(|told| told.forward == Status::Skip && !told.has_failed) {
            reasons.entry(&told.reason).or_default().push(&told.full_name);
        }
        let mut reasons: Vec<(&str, Vec<&str>)> = reasons.into_iter().collect();
        reasons.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
        let skipped = reasons.into_iter().filter_map(|(reason, names)| {
            let reason = if reason.is_empty() { "it raised without a text" } else { reason };
            let text = format!("{} skipped: {reason}", counted(names.len(), "operator"));
            let first = names.iter().map(|name| ((*name).to_owned(), String::new()));
            NotCompared::of("operator", names.len(), text, first)
        });
        let halves: Vec<&Told> = self.told.iter().filter(|told| is_half(told)).collect();
        let half = NotCompared::of(
            "backward",
            halves.len(),
            format!("{} forward only", counted(halves.len(), "operator")),
            halves.iter().map(|told| (told.full_name.clone(), told.reason.clone())),
        );
        skipped.chain(half).collect()
    }

    fn write_page(&self, answer: &Answer, file: &mut File) -> io::Result<()> {
        let title = "Operators checked one by one".to_owned();
        let mut order: Vec<&Told> = self.told.iter().collect();
        order.sort_by_key(|told| std::cmp::Reverse(told.status));
        let details = answer.files.get(1).cloned().unwrap_or_default();
        let rows = Rows { told: order, details };
        let pictures = Pictures::of(&self.pictures);
        let mut table = PageTable::new("Operators", HEADERS.map(str::to_owned).to_vec(), &rows);
        table.detail_columns = vec![6, 7, 8, 10];
        let mut blocks = vec![Block::Answer(answer.block(&title, [])), Block::Table(table)];
        if !self.pictures.is_empty() {
            blocks.push(Block::Curves(Curves {
                title: "Largest error by magnitude".to_owned(),
                x_label: "values of at least 2 to the power of".to_owned(),
                xs: pictures.exponents.clone(),
                series: &pictures,
            }));
        }
        write_page(&Page { title, blocks }, BufWriter::new(file))
    }
}

/// Its forward run is good and its backward one was left out.
fn is_half(told: &Told) -> bool {
    !told.has_failed && told.forward == Status::Pass && told.backward == Status::Skip
}

fn facts(told: &Told) -> Vec<(&'static str, String)> {
    [("worst", &told.worst), ("inputs", &told.inputs), ("place", &told.place), ("reason", &told.reason)]
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(label, text)| (label, text.clone()))
        .collect()
}

fn evidence(told: &Told) -> Option<Evidence> {
    let decision = told.measure.as_ref()?;
    // The list of what can be measured is closed; a name that came from elsewhere is not repeated.
    let measure = [
        "cosine",
        "max_abs_error",
        "within_hundredth",
        "within_thousandth",
        "within_ten_thousandth",
        "error_rate",
    ]
    .into_iter()
    .find(|known| *known == decision.measure)?;
    let value = decision.value.map_or(Cell::Empty, Cell::Float);
    Some(Evidence::of_pair(&told.full_name, "", measure, value).tolerating(decision.limit))
}

fn line(told: &Told) -> String {
    let mut text = format!("  {}", told.full_name);
    match &told.measure {
        Some(decision) => {
            let value = decision.value.map_or_else(|| "none".to_owned(), |value| format!("{value:.6}"));
            let _ = write!(text, "  {} {value} (limit {})", decision.measure, decision.limit);
        }
        None if told.has_failed => {
            let _ = write!(text, "  {}", told.reason);
        }
        None => {
            let _ = write!(text, "  {}", told.worst);
        }
    }
    for part in [&told.inputs, &told.place] {
        if !part.is_empty() {
            let _ = write!(text, "  {part}");
        }
    }
    text
}

fn next_step(first: Option<&Told>, tables: &Tables, end: &End<'_>) -> Option<String> {
    if end.was_interrupted {
        return Some(format!("go on with -csv_path {}", tables.result_path().display()));
    }
    let told = first?;
    Some(reproducer(tables.details_path(), &told.full_name, Some(end.api_info)))
}

/// The command that makes a script of one operator.
fn reproducer(details: &Path, full_name: &str, api_info: Option<&Path>) -> String {
    let dump = api_info.map_or_else(String::new, |path| format!(" -api_info {}", path.display()));
    format!(
        "`msprobe op_generate --from {} --api {full_name}{dump}` writes a script that runs it alone",
        details.display()
    )
}

const HEADERS: [&str; 11] = [
    "operator",
    "status",
    "forward",
    "backward",
    "measure",
    "value",
    "worst output",
    "inputs",
    "place",
    "seconds",
    "reproducer",
];

struct Rows<'a> {
    told: Vec<&'a Told>,
    details: PathBuf,
}

impl SheetRows for Rows<'_> {
    fn len(&self) -> usize {
        self.told.len()
    }

    fn cells(&self, row: usize, sink: &mut dyn CellSink) {
        let Some(told) = self.told.get(row) else { return };
        let status = if told.has_failed { "crashed" } else { told.status.as_str() };
        for text in [&told.full_name, status, told.forward.as_str(), told.backward.as_str()] {
            sink.text(text.trim());
        }
        match &told.measure {
            Some(decision) => {
                sink.text(&decision.measure);
                match decision.value {
                    Some(value) if value.is_finite() => sink.number(value),
                    _ => sink.text("nan"),
                }
            }
            None => {
                sink.empty();
                sink.empty();
            }
        }
        let worst = if told.worst.is_empty() { &told.reason } else { &told.worst };
        for text in [worst, &told.inputs, &told.place] {
            sink.text(text);
        }
        match told.seconds {
            Some(seconds) => sink.number(seconds),
            None => sink.empty(),
        }
        sink.text(&reproducer(&self.details, &told.full_name, None));
    }

    fn tone(&self, row: usize) -> Tone {
        match self.told.get(row).map(|told| told.status) {
            Some(Status::Error) => Tone::Bad,
            Some(Status::Warning) => Tone::Warning,
            Some(Status::Skip) => Tone::Unknown,
            _ => Tone::Plain,
        }
    }
}

/// A curve per output that is not good: the largest error of values of each magnitude.
struct Pictures<'a> {
    exponents: Vec<i64>,
    pictures: &'a [Picture],
}

impl<'a> Pictures<'a> {
    fn of(pictures: &'a [Picture]) -> Pictures<'a> {
        let exponents = pictures.iter().flat_map(|picture| picture.bins.iter().filter_map(|bin| bin.0));
        let (lowest, highest) = (exponents.clone().min().unwrap_or(0), exponents.max().unwrap_or(0));
        Pictures { exponents: (i64::from(lowest)..=i64::from(highest)).collect(), pictures }
    }
}

impl CurveSeries for Pictures<'_> {
    fn len(&self) -> usize {
        self.pictures.len()
    }

    fn name(&self, index: usize) -> &str {
        self.pictures.get(index).map_or("", |picture| &picture.row)
    }

    fn note(&self, index: usize) -> String {
        let Some(picture) = self.pictures.get(index) else { return String::new() };
        let elements: u64 = picture.bins.iter().map(|bin| bin.1).sum();
        let zeros = picture.bins.iter().find(|bin| bin.0.is_none());
        let zeros = zeros.map_or_else(String::new, |(_, count, error)| {
            format!(", {count} zeros with an error of {error} at most")
        });
        format!("{elements} elements{zeros}")
    }

    fn tone(&self, index: usize) -> Tone {
        match self.pictures.get(index).map(|picture| picture.status) {
            Some(Status::Error) => Tone::Bad,
            _ => Tone::Warning,
        }
    }

    fn values(&self, index: usize) -> Vec<f64> {
        let bins = self.pictures.get(index).map(|picture| picture.bins.as_slice()).unwrap_or_default();
        let value = |exponent: &i64| {
            let bin = bins.iter().find(|bin| bin.0.map(i64::from) == Some(*exponent));
            bin.and_then(|bin| bin.2.parse().ok()).unwrap_or(f64::NAN)
        };
        self.exponents.iter().map(value).collect()
    }

    fn flagged(&self, _: usize) -> Vec<usize> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use msprobe_tensor::{DType, TensorView};

    use super::*;
    use crate::outcome::Notes;
    use crate::plan::Checker;
    use crate::verdict::{Judging, Leaf, Sides, compare, skip};

    fn outcome(name: &str, bench: &[f64], device: &[f32]) -> Outcome {
        let view = |dtype, bytes: &[u8], len: usize| {
            TensorView::contiguous(dtype, vec![len], Box::leak(bytes.to_vec().into_boxed_slice())).unwrap()
        };
        let bench = [Leaf::Tensor(view(DType::F64, bytemuck::cast_slice(bench), bench.len()))];
        let device = [Leaf::Tensor(view(DType::F32, bytemuck::cast_slice(device), device.len()))];
        let notes = Notes {
            inputs: vec!["float32(2,)".into()],
            place: Some("train.py:7".into()),
            seconds: Some(0.5),
        };
        compare(name, Sides { bench: &bench, device: &device }, None, "", Judging::default(), notes).unwrap()
    }

    #[test]
    fn the_end_names_what_failed_and_how_to_run_it_alone() {
        let dir = tempfile::tempdir().unwrap();
        let tables = Tables::open(dir.path(), Checker::PyTorch, None, Some("20250101000000")).unwrap();
        let mut summary = Summary::default();
        for outcome in [
            outcome("Torch.exp.0", &[1.0, 2.0], &[1.0, 2.0]),
            outcome("Torch.tanh.0", &[1.0, 2.0], &[-1.0, 2.0]),
            skip("Torch.to.0", "API to in black list or not in white list. SKIP.", false, Notes::default()),
            skip("Torch.crash.0", "the process ended with signal 11", true, Notes::default()),
        ] {
            summary.add(&outcome);
            tables.add(&outcome).unwrap();
        }
        let end = End {
            command: "run_ut",
            api_info: Path::new("dump.json"),
            device: "cpu",
            was_interrupted: false,
        };
        let (answer, sections) = summary.finish(&tables, &end).unwrap();
        assert_eq!(answer.status, AnswerStatus::Anomaly);
        assert!(
            answer
                .headline
                .ends_with("4 operators checked on cpu: 1 passed, 2 failed, 0 doubtful, 1 skipped"),
            "{}",
            answer.headline
        );
        let text = answer.text(&sections);
        for part in [
            "Torch.tanh.0  cosine 0.600000 (limit 0.99)  float32(2,)  train.py:7",
            "signal 11",
            "black list",
            "op_generate --from",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(Summary::exit(&answer, false), Exit::Ok);
        assert_eq!(Summary::exit(&answer, true), Exit::Differs);
        let page = fs::read_to_string(&answer.files[2]).unwrap();
        assert!(
            page.contains("Largest error by magnitude") && page.contains("Torch.tanh.0.forward.output.0")
        );
    }

    #[test]
    fn nothing_wrong_is_clean_and_nothing_checked_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let tables = Tables::open(dir.path(), Checker::PyTorch, None, Some("20250101000000")).unwrap();
        let end = End {
            command: "run_ut",
            api_info: Path::new("dump.json"),
            device: "cpu",
            was_interrupted: false,
        };
        let mut summary = Summary::default();
        assert_eq!(summary.finish(&tables, &end).unwrap().0.status, AnswerStatus::Failed);
        summary.add(&outcome("Torch.exp.0", &[1.0, 2.0], &[1.0, 2.0]));
        assert_eq!(summary.finish(&tables, &end).unwrap().0.status, AnswerStatus::Clean);
    }
}
