//! The operation that made the difference, and what shows it.

use std::path::PathBuf;
use std::sync::Arc;

use msprobe_dump::names::RecordName;

use super::align;
use super::errors::DifferenceKind;
use super::inside::Inside;
use super::limits::Limit;
use super::origin::{self, Cause, Origin};
use super::parameters::fingerprint;
use super::records::{Dumps, Judged, RowResults, RowsSeen};
use crate::Mode;
use crate::metrics::Metrics;
use crate::pairing::MatchMethod;
use crate::side::{Leaf, Role, Scalar, Side, Stacks};

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
    /// Its result was right and had changed when the next call got it.
    ChangedAfter,
    /// The gradient it got is not the one it was given.
    ChangedBefore,
}

impl Finding {
    /// The name in verdict.json.
    pub fn as_str(self) -> &'static str {
        match self {
            Finding::Computes => "computes_differently",
            Finding::Saved => "saved_value_differs",
            Finding::Argument => "called_with_another_argument",
            Finding::Dtype => "returns_another_dtype",
            Finding::Parameters => "parameters_differ",
            Finding::Input => "input_differs",
            Finding::OnlyTarget => "only_on_npu_side",
            Finding::OnlyGolden => "only_on_bench_side",
            Finding::ChangedAfter => "output_changed_later",
            Finding::ChangedBefore => "gradient_changed_before",
        }
    }
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
    /// What shows it.
    pub evidence: Evidence,
    /// Error of what it got and of what it gave, as shares of the size of the values.
    pub errors: (f64, f64),
    /// What is different about the value that shows it.
    pub kind: Option<DifferenceKind>,
    /// The parameter it is about, where it is about one.
    pub parameter: Option<String>,
    /// Where in it the error is made, if it is a module and no call recorded of it makes the error.
    pub inside: Option<Inside>,
    /// Module calls around it, outermost first.
    pub modules: Vec<String>,
    /// Tensor files of the value that shows it.
    pub files: Option<(PathBuf, PathBuf)>,
    /// Where it was called, innermost first.
    pub stack: Option<Arc<[Box<str>]>>,
    /// Place among the records of the target.
    pub position: usize,
}

/// What shows that a record is the culprit: a value as both runs recorded it, and what was measured of the two.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Evidence {
    /// The argument that differs, as the target and the golden run have it, where that is the finding.
    pub argument: Option<(Leaf, Leaf)>,
    /// Whether the value is of the culprit's own record, not of one that is judged with it.
    pub is_of_culprit: bool,
    /// The value of the target; none if only the golden run has it.
    pub target: Option<Leaf>,
    /// The value of the golden run; none if only the target has it.
    pub golden: Option<Leaf>,
    /// Error of the value as a share of its size, and how much of it is tolerated.
    pub error: Option<(f64, Limit)>,
    /// Metrics of their data, where data was compared.
    pub metrics: Option<Metrics>,
    /// The first element that differs, where no metric shows that any does.
    pub first_difference: Option<u64>,
}

impl Evidence {
    fn of(
        dumps: &Dumps<'_>,
        rows: RowsSeen,
        error: Option<(f64, Limit)>,
        argument: Option<(usize, usize)>,
        culprit: &str,
    ) -> Evidence {
        let (target, golden) = (&dumps.target.rows, &dumps.golden.rows);
        let record = |side: &Side, row: usize| &*side.records[side.rows[row].record as usize].name == culprit;
        let (of_target, of_golden) = (|row| record(dumps.target, row), |row| record(dumps.golden, row));
        let real = rows.target.zip(rows.golden).and_then(|rows| dumps.real.get(&rows));
        let pair = real.and_then(|real| real.pair).filter(|pair| pair.max_abs_error == 0.0);
        Evidence {
            argument: argument.map(|(row, other)| (target[row].clone(), golden[other].clone())),
            is_of_culprit: rows.target.map(of_target).or(rows.golden.map(of_golden)).unwrap_or_default(),
            target: rows.target.map(|row| target[row].clone()),
            golden: rows.golden.map(|row| golden[row].clone()),
            error,
            metrics: real.map(|real| real.metrics),
            first_difference: pair.and_then(|pair| pair.first_difference),
        }
    }

    /// Whether numbers tell more of the value than checksums that differ.
    pub fn shows_numbers(&self, mode: Mode) -> bool {
        let checksum = |leaf: &Option<Leaf>| leaf.as_ref().and_then(|leaf| leaf.md5.clone());
        mode != Mode::Md5 || checksum(&self.target) == checksum(&self.golden)
    }
}

/// The whole number that is shown digit by digit, because people are shown fewer of other numbers.
pub fn whole_digits(scalar: &Scalar) -> Option<i128> {
    const MANY_DIGITS: u128 = 1_000_000;
    scalar.whole().filter(|whole| whole.unsigned_abs() >= MANY_DIGITS)
}

/// What is known of the operation an origin names; none if it names none.
pub(super) fn make_culprit(
    dumps: &Dumps<'_>,
    (judged, rows): (&[Judged], &RowResults),
    origin: Origin,
    parents: &[Option<usize>],
    stacks: Option<&Stacks>,
) -> Option<Culprit> {
    let (target, golden) = (dumps.target, dumps.golden);
    let name_of = |index: usize| target.records[judged[index].pair.target].name.to_string();
    let (finding, index, next) = match origin.cause {
        Cause::Call(index) if judged[index].pass == align::Pass::Other => (Finding::Saved, Some(index), None),
        Cause::Call(index) => (Finding::Computes, Some(index), None),
        Cause::Argument(index) => (Finding::Argument, Some(index), None),
        Cause::Dtype(index) => (Finding::Dtype, Some(index), None),
        Cause::Parameters(index) => (Finding::Parameters, Some(index), None),
        Cause::Input(index) => (Finding::Input, Some(index), None),
        Cause::Gradual(_) => return None,
        Cause::OnlyTarget(_) => (Finding::OnlyTarget, None, None),
        Cause::OnlyGolden(_) => (Finding::OnlyGolden, None, None),
        Cause::Between(producer, consumer) => match judged[consumer].pass {
            align::Pass::Backward => (Finding::ChangedBefore, Some(consumer), None),
            _ => (Finding::ChangedAfter, Some(producer), Some(name_of(consumer))),
        },
    };
    let (name, golden_name, position) = match (origin.cause, index) {
        (_, Some(index)) => {
            let pair = judged[index].pair;
            (name_of(index), Some(golden.records[pair.golden].name.to_string()), pair.target)
        }
        (Cause::OnlyGolden(record), None) => {
            let name = golden.records[record].name.to_string();
            (name.clone(), Some(name), record)
        }
        (Cause::OnlyTarget(record), None) => (target.records[record].name.to_string(), None, record),
        (_, None) => (String::new(), None, 0),
    };
    let argument = index.and_then(|index| judged[index].argument).filter(|_| finding == Finding::Argument);
    let shown = origin.evidence.unwrap_or(RowsSeen { target: None, golden: None });
    let error = match shown {
        RowsSeen { target: Some(row), golden: Some(_) } => rows[row].and_then(|result| result.error),
        _ => None,
    };
    let kind = match shown {
        RowsSeen { target: Some(_), golden: Some(_) } => error.map(|(error, _)| error.kind),
        RowsSeen { target: None, golden: None } => None,
        _ => Some(DifferenceKind::Missing),
    };
    let parameter = shown
        .target
        .and_then(|row| parameter_of(target, row))
        .or_else(|| shown.golden.and_then(|row| parameter_of(golden, row)));
    let file = |side: &Side, row: Option<usize>| {
        Some(side.tensor_dir().join(&**side.rows[row?].data_name.as_ref()?))
    };
    let files = file(target, shown.target).zip(file(golden, shown.golden));
    let modules = match origin.cause {
        Cause::OnlyGolden(_) => Vec::new(),
        _ => modules_around(target, position, parents),
    };
    let measured = error.map(|(error, limit)| (error.error, limit));
    let evidence = Evidence::of(dumps, shown, measured, argument, &name);
    Some(Culprit {
        kind,
        parameter,
        inside: Inside::of(target, judged, origin, parents),
        modules,
        files,
        direction: origin::direction(align::CallName::of(&name).pass),
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
    })
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
    if matches!(leaf.role, Role::ParametersGrad | Role::Parameters) {
        return Some(named(leaf));
    }
    let wanted = fingerprint(leaf);
    let is_gradient = |other: &&Leaf| other.role == Role::ParametersGrad;
    let has_numbers = leaf.is_tensor() && (leaf.has_checksum || leaf.statistics[0].number().is_some());
    side.rows
        .iter()
        .filter(|_| has_numbers)
        .filter(is_gradient)
        .find(|other| fingerprint(other) == wanted)
        .map(named)
}
