//! The straight answer of a comparison: whether two runs agree, and if not, which operation made the difference.
//!
//! Records of both runs are paired ([`align`]), the values of each pair are measured as a share of their size
//! ([`errors`]), and the first call is looked for whose inputs agree and whose outputs do not ([`origin`]).

mod align;
mod answer;
mod asides;
mod details;
mod errors;
mod gaps;
mod json;
mod origin;
mod records;
mod sequence;
#[cfg(test)]
mod tests;
mod text;
mod tolerance;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use rayon::prelude::*;

pub use self::answer::Noted;
pub use self::asides::{AsideKind, Asides};
pub use self::details::{GoldenOnly, RowDetail, RowOrigin};
pub use self::errors::Kind;
pub use self::gaps::{Allowed, Gap, GapKind, Gaps};
pub use self::tolerance::{Precision, Tolerances};

use self::origin::{Origin, Place, find_origin};
use self::records::{Dumps, Findings, RowPairs, RowsSeen, judge_records, parents, rows_of_pair};
use msprobe_dump::names::RecordName;

use crate::pairing::{MatchMethod, RowPair};
use crate::python_text::float_repr;
use crate::side::{Construct, Leaf, Scalar, Side, Stacks};
use crate::statistics::{DIFFERENCE_HEADERS, Difference, Mode, STATISTICS_HEADERS, difference};
use crate::tensor_pair::{METRIC_HEADERS, MetricCell, TensorComparison};

/// How two runs compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Every value of both runs was compared and is the same.
    Identical,
    /// No value is further apart than tolerated.
    WithinTolerance,
    /// What could be compared agrees; something could not.
    Incomplete,
    /// An operation made a difference.
    Diverged,
    /// What went in was different already.
    DiffersAtInput,
    /// There is no comparison to speak of.
    Failed,
}

impl Status {
    /// The word in verdict.json.
    pub fn word(self) -> &'static str {
        match self {
            Status::Identical => "identical",
            Status::WithinTolerance => "within_tolerance",
            Status::Incomplete => "incomplete",
            Status::Diverged => "diverged",
            Status::DiffersAtInput => "differs_at_input",
            Status::Failed => "failed",
        }
    }

    /// Whether the runs agree.
    pub fn agrees(self) -> bool {
        matches!(self, Status::Identical | Status::WithinTolerance)
    }

    /// Whether an operation or an input differs.
    pub fn is_difference(self) -> bool {
        matches!(self, Status::Diverged | Status::DiffersAtInput)
    }
}

/// How the operation that made the difference was recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// Inputs and parameters agree, outputs do not.
    Computes,
    /// A variable the script saved differs.
    Saved,
    /// It was called with another argument.
    Argument,
    /// Its results have another dtype.
    Dtype,
    /// Its parameters differ before it is called.
    Parameters,
    /// A value from outside differs where it enters.
    Input,
    /// Only the target run makes this call.
    OnlyTarget,
    /// Only the golden run makes this call.
    OnlyGolden,
    /// The first one beyond tolerance; the error grew bit by bit.
    Gradual,
    /// Its result was right and had changed when the next call got it.
    ChangedAfter,
    /// The gradient it got is not the one it was given.
    ChangedBefore,
}

/// The operation that made the difference.
#[derive(Debug, Clone, PartialEq)]
pub struct Culprit {
    /// Its record, without input or output.
    pub name: String,
    /// Its partner on the golden side.
    pub golden_name: Option<String>,
    /// `forward` or `backward`.
    pub direction: &'static str,
    /// How it was recognised.
    pub finding: Finding,
    /// The call that got the changed value, where the change happened between two calls.
    pub next: Option<String>,
    /// How both records were paired.
    pub method: MatchMethod,
    /// Figures of the row that shows it, by column.
    pub evidence: Vec<(&'static str, Evidence)>,
    /// Error of what it got and of what it gave, as shares of the size of the values.
    pub errors: (f64, f64),
    /// What is different about the value that shows it.
    pub kind: Option<Kind>,
    /// The parameter it is about, where it is about one.
    pub parameter: Option<String>,
    /// Module calls around it, outermost first.
    pub modules: Vec<String>,
    /// Tensor files of the value that shows it.
    pub files: Option<(PathBuf, PathBuf)>,
    /// Where it was called, innermost first.
    pub stack: Option<Arc<[Box<str>]>>,
    /// Place among the records of the target.
    pub position: usize,
}

/// One figure of the evidence.
#[derive(Debug, Clone, PartialEq)]
pub enum Evidence {
    /// A number.
    Number(f64),
    /// A whole number that needs all its digits.
    Whole(i128),
    /// Anything else.
    Text(String),
}

/// The answer for one pair of dumps.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// How the runs compare.
    pub status: Status,
    /// What is compared.
    pub mode: Mode,
    /// The operation to look at.
    pub culprit: Option<Culprit>,
    /// Records of the target, of the golden run, and pairs of them.
    pub counts: Counts,
    /// What was tolerated.
    pub tolerances: Tolerances,
    /// What could not be compared.
    pub gaps: Gaps,
    /// What differs without being an error.
    pub asides: Asides,
    /// Whether all numbers that could be compared are the same.
    pub is_equal: bool,
    /// The first records that differ.
    pub noted: Vec<Noted>,
}

impl Verdict {
    /// Nothing to compare.
    pub fn failed(mode: Mode, tolerances: Tolerances) -> Verdict {
        Verdict {
            status: Status::Failed,
            mode,
            culprit: None,
            counts: Counts::default(),
            tolerances,
            gaps: Gaps::default(),
            asides: Asides::default(),
            is_equal: false,
            noted: Vec::new(),
        }
    }
}

/// How much was compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pairs of records.
    pub paired: usize,
    /// Of those, found by their place in the sequence of calls.
    pub aligned: usize,
    /// Records only the target has.
    pub only_target: usize,
    /// Records only the golden run has.
    pub only_golden: usize,
    /// Pairs of records with a value beyond tolerance.
    pub differing: usize,
    /// Pairs of values.
    pub values: usize,
}

impl std::iter::Sum for Counts {
    fn sum<I: Iterator<Item = Counts>>(parts: I) -> Counts {
        parts.fold(Counts::default(), |all, part| Counts {
            paired: all.paired + part.paired,
            aligned: all.aligned + part.aligned,
            only_target: all.only_target + part.only_target,
            only_golden: all.only_golden + part.only_golden,
            differing: all.differing + part.differing,
            values: all.values + part.values,
        })
    }
}

/// Measures real data of pairs of rows, target and golden.
pub type Measure<'a> = dyn Fn(&[(usize, usize)]) -> Vec<TensorComparison> + 'a;

/// What a verdict is made of.
pub struct Input<'a> {
    /// The run in question.
    pub target: &'a Side,
    /// The run it is measured against.
    pub golden: &'a Side,
    /// What is compared.
    pub mode: Mode,
    /// Rows paired by a mapping of the user; others are paired by name here.
    pub mapped: &'a [RowPair],
    /// Real data of pairs of rows.
    pub real: HashMap<(usize, usize), TensorComparison>,
    /// Measures real data of pairs of rows that are not in `real`.
    pub measure: &'a Measure<'a>,
    /// Module calls in which records of the target and of the golden run were made.
    pub constructs: (&'a Construct, &'a Construct),
    /// Call stacks of the target.
    pub stacks: Option<&'a Stacks>,
    /// What is tolerated.
    pub tolerances: Tolerances,
    /// What may be left out of the comparison.
    pub allowed: Allowed,
}

/// The verdict, and what can be said about each row.
pub struct Judgement {
    /// The answer.
    pub verdict: Verdict,
    /// What is known about the rows of the target, where they could be measured.
    pub rows: Vec<Option<RowDetail>>,
    /// Values only the golden run has.
    pub golden_only: Vec<GoldenOnly>,
}

/// Judges two dumps.
pub fn judge(input: Input<'_>) -> Judgement {
    let Input { target, golden, mode, mapped, mut real, measure, constructs, stacks, tolerances, allowed } =
        input;
    let alignment = align::align(target, golden, constructs, &mapped_records(target, golden, mapped));
    let rows: Vec<RowPairs> = if mapped.is_empty() {
        alignment.pairs.par_iter().map(|&pair| rows_of_pair(target, golden, pair)).collect()
    } else {
        let mut rows = rows_as_mapped(target, mapped, target.records.len());
        alignment.pairs.iter().map(|pair| std::mem::take(&mut rows[pair.target])).collect()
    };
    if mode == Mode::All {
        let missing: Vec<(usize, usize)> =
            rows.iter().flatten().copied().filter(|rows| !real.contains_key(rows)).collect();
        let measured = measure(&missing);
        real.extend(missing.into_iter().zip(measured));
    }
    let dumps = Dumps { target, golden, mode, real: &real, tolerances: &tolerances };
    let Findings { judged, rows, gaps, asides } = judge_records(&dumps, &alignment, &rows);
    let parents = parents(target, constructs.0);
    let counts = Counts {
        paired: alignment.pairs.len(),
        aligned: alignment.pairs.iter().filter(|pair| pair.method == MatchMethod::Aligned).count(),
        only_target: alignment.only_target.len(),
        only_golden: alignment.only_golden.len(),
        differing: judged.iter().filter(|one| one.output.differs() || one.incoming().differs()).count(),
        values: judged.iter().map(|one| one.values).sum(),
    };
    let origin = find_origin(&dumps, &alignment, &judged, &parents);
    let is_equal = judged.iter().all(|one| one.output.error == 0.0 && one.incoming().error == 0.0)
        && asides.count(AsideKind::NotJudged) == 0;
    let status = match origin {
        None if counts.paired == 0 => Status::Failed,
        None if gaps.is_blocked(allowed) => Status::Incomplete,
        None if gaps.is_empty() && judged.iter().all(|one| one.equal) => Status::Identical,
        None => Status::WithinTolerance,
        Some(Origin { place: Place::Dtype(_), .. }) => Status::Diverged,
        // Nothing came of another argument.
        Some(Origin { place: Place::Argument(_), .. }) if counts.differing == 0 => Status::DiffersAtInput,
        Some(Origin { place: Place::Input(index), .. }) if origin::is_fed_in(&dumps, &judged, index) => {
            Status::DiffersAtInput
        }
        Some(Origin { place: Place::Parameters(_), .. }) => {
            let differing = judged.iter().filter(|one| one.parameters.differs()).count();
            let modules = judged.iter().filter(|one| has_parameters(target, one.pair.target)).count();
            if differing * 2 > modules.max(2) { Status::DiffersAtInput } else { Status::Diverged }
        }
        Some(_) => Status::Diverged,
    };
    let culprit = origin.map(|origin| make_culprit(&dumps, (&judged, &rows), origin, &parents, stacks));
    let noted = note_differences(target, &judged);
    let golden_only = details::golden_only(golden, &alignment, &rows);
    let rows = details::row_details(&dumps, &alignment, &judged, &rows);
    let verdict = Verdict { status, mode, culprit, counts, tolerances, gaps, asides, is_equal, noted };
    Judgement { verdict, rows, golden_only }
}

fn has_parameters(side: &Side, record: usize) -> bool {
    side.rows_of(record).iter().any(|row| row.role == crate::side::Role::Parameters)
}

/// The golden record most rows of a target record were mapped to, and how.
fn mapped_records(target: &Side, golden: &Side, mapped: &[RowPair]) -> HashMap<usize, (usize, MatchMethod)> {
    let mut votes: HashMap<usize, HashMap<usize, (usize, MatchMethod)>> = HashMap::new();
    for pair in mapped {
        if let Ok(other) = pair.golden {
            let record = target.rows[pair.target].record as usize;
            let partner = golden.rows[other].record as usize;
            let (count, method) =
                votes.entry(record).or_default().entry(partner).or_insert((0, MatchMethod::Exact));
            *count += 1;
            if pair.method != MatchMethod::Exact {
                *method = pair.method;
            }
        }
    }
    let most = |votes: HashMap<usize, (usize, MatchMethod)>| {
        let best = |&(record, (count, _)): &(usize, (usize, MatchMethod))| (count, std::cmp::Reverse(record));
        votes.into_iter().max_by_key(best).map(|(record, (_, method))| (record, method))
    };
    votes.into_iter().filter_map(|(record, votes)| Some((record, most(votes)?))).collect()
}

/// Rows of a pair of records as they were mapped one by one.
fn rows_as_mapped(target: &Side, mapped: &[RowPair], records: usize) -> Vec<RowPairs> {
    let mut rows = vec![RowPairs::new(); records];
    for pair in mapped {
        if let (Ok(other), Some(rows)) = (pair.golden, rows.get_mut(target.rows[pair.target].record as usize))
        {
            rows.push((pair.target, other));
        }
    }
    rows
}

/// So many records that differ are listed.
const NOTED: usize = 10;

fn note_differences(target: &Side, judged: &[records::Judged]) -> Vec<Noted> {
    let mut differing: Vec<&records::Judged> =
        judged.iter().filter(|one| one.output.differs() || one.incoming().differs()).collect();
    // In the order of execution: gradients of parameters stand where their module began, and are known last.
    differing.sort_by_key(|one| one.way);
    differing
        .into_iter()
        .take(NOTED)
        .map(|one| Noted {
            name: target.records[one.pair.target].name.to_string(),
            error_in: one.incoming().error,
            error_out: one.output.error,
            is_introduced: one.introduces(),
        })
        .collect()
}

/// Module calls around a record of the target, outermost first.
fn modules_around(target: &Side, record: usize, parents: &[Option<usize>]) -> Vec<String> {
    let mut modules = Vec::new();
    let mut current = parents.get(record).copied().flatten();
    while let Some(parent) = current.filter(|_| modules.len() < MAX_MODULES) {
        modules.push(target.records[parent].name.to_string());
        current = parents.get(parent).copied().flatten();
    }
    modules.reverse();
    modules
}

/// A file may claim that modules contain each other.
const MAX_MODULES: usize = 100;

/// The parameter a value is about: it belongs to one, or it is the gradient of one.
fn parameter_of(side: &Side, row: usize) -> Option<String> {
    let leaf = &side.rows[row];
    let named = |leaf: &Leaf| {
        let record = &side.records[leaf.record as usize].name;
        let path = RecordName::parse(record).module().map_or("", |module| module.qualified());
        let name = leaf.place.strip_prefix("parameters.").unwrap_or(&leaf.place);
        format!("{path}.{name}").trim_start_matches('.').to_owned()
    };
    if matches!(leaf.role, crate::side::Role::ParametersGrad | crate::side::Role::Parameters) {
        return Some(named(leaf));
    }
    let wanted = records::figures(leaf);
    let is_gradient = |other: &&Leaf| other.role == crate::side::Role::ParametersGrad;
    let has_numbers = leaf.is_tensor() && (leaf.has_checksum || leaf.statistics[0].number().is_some());
    side.rows
        .iter()
        .filter(|_| has_numbers)
        .filter(is_gradient)
        .find(|other| records::figures(other) == wanted)
        .map(named)
}

fn make_culprit(
    dumps: &Dumps<'_>,
    (judged, rows): (&[records::Judged], &records::RowResults),
    origin: Origin,
    parents: &[Option<usize>],
    stacks: Option<&Stacks>,
) -> Culprit {
    let (target, golden) = (dumps.target, dumps.golden);
    let name_of = |index: usize| target.records[judged[index].pair.target].name.to_string();
    let (finding, index, next) = match origin.place {
        Place::Call(index) if judged[index].way == align::Way::Other => (Finding::Saved, Some(index), None),
        Place::Call(index) => (Finding::Computes, Some(index), None),
        Place::Argument(index) => (Finding::Argument, Some(index), None),
        Place::Dtype(index) => (Finding::Dtype, Some(index), None),
        Place::Parameters(index) => (Finding::Parameters, Some(index), None),
        Place::Input(index) => (Finding::Input, Some(index), None),
        Place::Gradual(index) => (Finding::Gradual, Some(index), None),
        Place::OnlyTarget(_) => (Finding::OnlyTarget, None, None),
        Place::OnlyGolden(_) => (Finding::OnlyGolden, None, None),
        Place::Between(producer, consumer) => match judged[consumer].way {
            align::Way::Backward => (Finding::ChangedBefore, Some(consumer), None),
            _ => (Finding::ChangedAfter, Some(producer), Some(name_of(consumer))),
        },
    };
    let (name, golden_name, position) = match (origin.place, index) {
        (_, Some(index)) => {
            let pair = judged[index].pair;
            (name_of(index), Some(golden.records[pair.golden].name.to_string()), pair.target)
        }
        (Place::OnlyGolden(record), None) => {
            let name = golden.records[record].name.to_string();
            (name.clone(), Some(name), record)
        }
        (Place::OnlyTarget(record), None) => (target.records[record].name.to_string(), None, record),
        (_, None) => (String::new(), None, 0),
    };
    let mut evidence = evidence(dumps, origin.evidence);
    if let Some(argument) =
        index.and_then(|index| judged[index].argument).filter(|_| finding == Finding::Argument)
    {
        let (one, other) = (&target.rows[argument.0], &golden.rows[argument.1]);
        evidence.insert(0, ("argument", Evidence::Text(one.name.to_string())));
        evidence.insert(1, ("NPU value", scalar_evidence(one)));
        evidence.insert(2, ("Bench value", scalar_evidence(other)));
    }
    let shown = origin.evidence.unwrap_or(RowsSeen { target: None, golden: None });
    let kind = match shown {
        RowsSeen { target: Some(row), golden: Some(_) } => {
            rows[row].and_then(|result| result.error).map(|(error, _)| error.kind)
        }
        RowsSeen { target: None, golden: None } => None,
        _ => Some(Kind::Missing),
    };
    let parameter = shown
        .target
        .and_then(|row| parameter_of(target, row))
        .or_else(|| shown.golden.and_then(|row| parameter_of(golden, row)));
    let file = |side: &Side, row: Option<usize>| {
        Some(side.tensor_dir().join(&**side.rows[row?].data_name.as_ref()?))
    };
    let files = file(target, shown.target).zip(file(golden, shown.golden));
    let modules = match origin.place {
        Place::OnlyGolden(_) => Vec::new(),
        _ => modules_around(target, position, parents),
    };
    Culprit {
        kind,
        parameter,
        modules,
        files,
        direction: origin::direction(align::CallName::of(&name).way),
        stack: stacks.and_then(|stacks| stacks.of(&name)).map(|stack| stack.frames.clone()),
        method: index.map_or(MatchMethod::Exact, |index| judged[index].pair.method),
        errors: index.map_or((0.0, f64::INFINITY), |index| {
            (judged[index].incoming().error, judged[index].output.error)
        }),
        name,
        golden_name,
        finding,
        next,
        evidence,
        position,
    }
}

fn scalar_evidence(leaf: &Leaf) -> Evidence {
    match &leaf.statistics[0] {
        Scalar::Text(text) => Evidence::Text(text.to_string()),
        Scalar::Bool(value) => Evidence::Text(if *value { "True" } else { "False" }.to_owned()),
        Scalar::Null => Evidence::Text("None".to_owned()),
        other => number_evidence(other).unwrap_or(Evidence::Number(f64::NAN)),
    }
}

/// A number; whole ones with more digits than people are shown, digit by digit.
fn number_evidence(scalar: &Scalar) -> Option<Evidence> {
    const MANY_DIGITS: u128 = 1_000_000;
    match scalar.whole() {
        Some(whole) if whole.unsigned_abs() >= MANY_DIGITS => Some(Evidence::Whole(whole)),
        _ => scalar.number().map(Evidence::Number),
    }
}

/// The figures of a row as tables have them.
fn evidence(dumps: &Dumps<'_>, rows: Option<RowsSeen>) -> Vec<(&'static str, Evidence)> {
    let text = |text: &str| Evidence::Text(text.to_owned());
    let (row, other) = match rows {
        None => return Vec::new(),
        Some(RowsSeen { target: Some(row), golden: Some(other) }) => (row, other),
        Some(RowsSeen { target, golden }) => {
            let name = |side: &Side, row: Option<usize>| {
                row.map_or("N/A".to_owned(), |row| side.rows[row].name.to_string())
            };
            return vec![
                ("NPU Name", Evidence::Text(name(dumps.target, target))),
                ("Bench Name", Evidence::Text(name(dumps.golden, golden))),
            ];
        }
    };
    let (target, golden) = (&dumps.target.rows[row], &dumps.golden.rows[other]);
    let mut figures = vec![("NPU Name", text(&target.name)), ("Bench Name", text(&golden.name))];
    figures.push(("NPU Dtype", text(&target.dtype)));
    figures.push(("Bench Dtype", text(&golden.dtype)));
    figures.push(("NPU Tensor Shape", text(&target.shape)));
    figures.push(("Bench Tensor Shape", text(&golden.shape)));
    if dumps.mode == Mode::Md5 {
        figures.push(("NPU MD5", text(target.md5.as_deref().unwrap_or("N/A"))));
        figures.push(("BENCH MD5", text(golden.md5.as_deref().unwrap_or("N/A"))));
        if target.md5 != golden.md5 {
            return figures;
        }
    }
    if let Some(real) = dumps.real.get(&(row, other)) {
        // Metrics are floats, and may not show what differs.
        let hidden =
            real.pair.filter(|pair| pair.max_abs_error == 0.0).and_then(|pair| pair.first_difference);
        if let Some(index) = hidden {
            figures.push(("First Difference", Evidence::Whole(i128::from(index))));
        }
        for (header, cell) in METRIC_HEADERS.iter().zip(&real.metrics) {
            figures.push((
                header,
                match cell {
                    MetricCell::Number(value) => Evidence::Number(*value),
                    MetricCell::Text(word) => text(word),
                },
            ));
        }
    } else {
        for index in 0..4 {
            let Difference::Number(value, percent) =
                difference(&target.statistics[index], &golden.statistics[index])
            else {
                continue;
            };
            figures.push((DIFFERENCE_HEADERS[index], Evidence::Number(value)));
            if let Some(percent) = percent {
                figures.push((
                    DIFFERENCE_HEADERS[index + 4],
                    Evidence::Text(format!("{}%", float_repr(percent))),
                ));
            }
        }
    }
    for (index, leaf) in [target, golden].into_iter().enumerate() {
        for (header, scalar) in STATISTICS_HEADERS[index * 4..].iter().zip(&leaf.statistics) {
            if let Some(value) = number_evidence(scalar) {
                figures.push((header, value));
            }
        }
    }
    figures
}
