//! The verdict of each row: three grades, and the reasons for them.

use msprobe_compare::metrics::TensorComparison;
use msprobe_compare::side::{Leaf, Role, Scalar};
use msprobe_dump::names::is_of_module;

use super::leaf::{Shown, differences};
use super::{Mode, NewestTable};
use crate::names::function_of;

/// Calls whose results are not defined, or are what they were given: nothing about them is judged.
const NOT_JUDGED: [&str; 9] = [
    "empty",
    "empty_like",
    "numpy",
    "to",
    "__setitem__",
    "empty_with_format",
    "new_empty_strided",
    "new_empty",
    "empty_strided",
];
/// Calls that are given the memory for their results: what that holds before says nothing.
const INPUTS_NOT_JUDGED: [&str; 4] =
    ["_reduce_scatter_base", "_all_gather_base", "all_to_all_single", "batch_isend_irecv"];

/// How bad a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Nothing to say.
    Pass,
    /// Worth a look.
    Warning,
    /// Wrong.
    Error,
}

impl Grade {
    /// The word of the `Result` column.
    pub fn as_str(self) -> &'static str {
        match self {
            Grade::Pass => "pass",
            Grade::Warning => "warning",
            Grade::Error => "error",
        }
    }
}

/// A rule that a row breaks, in the order in which reasons are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    NotFinite,
    NormError,
    ThousandthRatio,
    RequiresGrad,
    ScalarParameters,
    Dtype,
    Shape,
    NormGrowth,
    Cosine,
    Checksum,
    OneSideOnly,
}

const RULES: [(Rule, Grade, &str); 11] = [
    (Rule::NotFinite, Grade::Error, "There is nan/inf/-inf in the maximum or minimum value of NPU."),
    (Rule::NormError, Grade::Error, "The NormRelativeErr of output is greater than 0.5."),
    (
        Rule::ThousandthRatio,
        Grade::Error,
        "The input/parameters of One Thousandth Err Ratio > 0.9 while the output < 0.6.",
    ),
    (Rule::RequiresGrad, Grade::Error, "The Required_Grad of NPU and Bench are inconsistent"),
    (Rule::ScalarParameters, Grade::Error, "The scalar parameters of NPU and Bench are inconsistent."),
    (Rule::Dtype, Grade::Error, "The dtype of NPU and Bench are inconsistent."),
    (Rule::Shape, Grade::Error, "The shape of NPU and Bench are inconsistent."),
    (Rule::NormGrowth, Grade::Warning, "The norm relative error of output is 10 times that of input."),
    (
        Rule::Cosine,
        Grade::Warning,
        "The input/parameters of Cosine > 0.9, and input/parameters - output > 0.1",
    ),
    (Rule::Checksum, Grade::Error, "The CRC-32 value of NPU differs from that of the bench."),
    (Rule::OneSideOnly, Grade::Warning, "The parameter of NPU does not match the bench."),
];

/// What is to be said about a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Verdict {
    /// One bit per rule.
    broken: u16,
}

impl Verdict {
    fn add(&mut self, rule: Rule) {
        self.broken |= 1 << rule as u16;
    }

    fn breaks(self, rule: Rule) -> bool {
        self.broken & (1 << rule as u16) != 0
    }

    /// The worst of what is to be said.
    pub fn grade(self) -> Grade {
        self.rules().map(|(_, grade, _)| *grade).max().unwrap_or(Grade::Pass)
    }

    fn rules(self) -> impl Iterator<Item = &'static (Rule, Grade, &'static str)> {
        RULES.iter().filter(move |(rule, ..)| self.breaks(*rule))
    }

    /// The reasons, in order.
    pub fn messages(self) -> impl Iterator<Item = String> {
        self.rules().map(|(_, grade, reason)| format!("{}: {reason}", grade.as_str()))
    }

    /// The reasons as the `Err_message` column has them: a JSON list.
    pub fn json(self) -> String {
        // None of them needs escaping.
        let quoted: Vec<String> = self.messages().map(|message| format!("\"{message}\"")).collect();
        format!("[{}]", quoted.join(", "))
    }
}

/// A row of a call that is judged.
#[derive(Clone, Copy)]
pub struct JudgedRow<'a> {
    /// The value of the target.
    pub target: &'a Leaf,
    /// Its partner.
    pub golden: Option<&'a Leaf>,
    /// What their real data gave.
    pub tensor: Option<&'a TensorComparison>,
}

/// How the rows of a call are judged.
#[derive(Debug, Clone, Copy)]
pub struct Judging {
    /// What is compared.
    pub mode: Mode,
    /// Whether the two sides were written under different frameworks.
    pub across_frameworks: bool,
    /// Where the rows are shown.
    pub place: JudgedIn,
}

/// Where rows are shown: some rules differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JudgedIn {
    /// In a table: a row without a partner says so by itself.
    Table,
    /// In a graph: a value its call has on the target side only is wrong.
    Graph {
        /// Whether ranks were merged, so that shapes say nothing.
        is_merged: bool,
    },
}

/// Parts of names of weights that frameworks fuse, and may keep in another dtype then.
const FUSED: [&str; 2] = ["qkv", "gate_up"];

/// Judges all rows, record by record.
pub(super) fn judge(table: &NewestTable<'_>, across_frameworks: bool) -> Vec<Verdict> {
    let mut verdicts = Vec::with_capacity(table.pairs.len());
    let how = Judging { mode: table.mode, across_frameworks, place: JudgedIn::Table };
    let record_of = |row: usize| table.target.rows[table.pairs[row].target].record;
    while verdicts.len() < table.pairs.len() {
        let start = verdicts.len();
        let record = record_of(start);
        let end =
            (start + 1..table.pairs.len()).find(|&row| record_of(row) != record).unwrap_or(table.pairs.len());
        let name = table.target.records.get(record as usize).map_or("", |record| &*record.name);
        let rows: Vec<JudgedRow<'_>> = (start..end)
            .map(|row| {
                let (target, golden) = table.leaves(&table.pairs[row]);
                JudgedRow { target, golden, tensor: table.tensors.get(row) }
            })
            .collect();
        verdicts.extend(judge_call(name, &rows, how));
    }
    verdicts
}

/// Judges the rows of one call, which is called so on the target side.
pub fn judge_call(name: &str, rows: &[JudgedRow<'_>], how: Judging) -> Vec<Verdict> {
    let mut verdicts = vec![Verdict::default(); rows.len()];
    let exempt = Exempt::of(name);
    if exempt != Exempt::Everything {
        Call { name, rows, how, exempt }.judge(&mut verdicts);
    }
    verdicts
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exempt {
    Nothing,
    Inputs,
    Everything,
}

impl Exempt {
    fn of(record: &str) -> Exempt {
        let name = function_of(record);
        // A module may be called anything.
        if is_of_module(record) {
            Exempt::Nothing
        } else if NOT_JUDGED.contains(&name) {
            Exempt::Everything
        } else if INPUTS_NOT_JUDGED.contains(&name) {
            Exempt::Inputs
        } else {
            Exempt::Nothing
        }
    }
}

/// The rows of one record.
struct Call<'a> {
    name: &'a str,
    rows: &'a [JudgedRow<'a>],
    how: Judging,
    exempt: Exempt,
}

impl Call<'_> {
    fn judge(&self, verdicts: &mut [Verdict]) {
        if self.how.mode == Mode::Md5 {
            for (row, verdict) in self.rows.iter().zip(verdicts) {
                judge_checksums(row, verdict);
            }
            return;
        }
        let norms: Vec<Option<f64>> = self
            .rows
            .iter()
            .zip(verdicts.iter_mut())
            .map(|(row, verdict)| self.judge_row(row, verdict))
            .collect();
        if self.exempt == Exempt::Inputs {
            return;
        }
        match self.how.mode {
            Mode::Summary => self.judge_norms(&norms, verdicts),
            _ => self.judge_metrics(verdicts),
        }
    }

    fn inputs(&self) -> impl Iterator<Item = usize> {
        (0..self.rows.len()).filter(|&index| is_input(&self.rows[index]))
    }

    /// What counts for the inputs of a call that has none: in graphs, that they agree.
    fn without_inputs(&self, agree: f64) -> Option<f64> {
        let has_none = self.how.place != JudgedIn::Table && self.inputs().next().is_none();
        has_none.then_some(agree)
    }

    /// What concerns all results is said of the first one.
    fn outputs(&self) -> impl Iterator<Item = usize> {
        (0..self.rows.len()).filter(|&index| self.rows[index].target.role == Role::Output)
    }

    /// Rules that look at one row; gives the relative error of its norm.
    fn judge_row(&self, row: &JudgedRow<'_>, verdict: &mut Verdict) -> Option<f64> {
        let target = row.target;
        let Some(golden) = row.golden else {
            if self.how.place != JudgedIn::Table {
                for rule in [Rule::RequiresGrad, Rule::Dtype, Rule::Shape] {
                    verdict.add(rule);
                }
            }
            return None;
        };
        let (shown_target, shown_golden) = (Shown::of(self.name, target), Shown::of(self.name, golden));
        let is_input = is_input(row);
        if is_not_finite(target) && !is_not_finite(golden) && !(is_input && self.exempt == Exempt::Inputs) {
            verdict.add(Rule::NotFinite);
        }
        if let (Some(target), Some(golden)) = (target.requires_grad, golden.requires_grad)
            && target != golden
        {
            verdict.add(Rule::RequiresGrad);
        }
        let differences = differences(&shown_target, Some(&shown_golden));
        if is_input && self.exempt != Exempt::Inputs && shown_target.is_plain && shown_golden.is_plain {
            // The four statistics of a scalar are its value.
            if target.shape.is_scalar() && golden.shape.is_scalar() && differs(differences[0]) {
                verdict.add(Rule::ScalarParameters);
            }
        }
        let may_change_dtype =
            self.how.place != JudgedIn::Table && FUSED.iter().any(|part| golden.name.contains(part));
        if !may_change_dtype && !self.same_dtype(shown_target.dtype, shown_golden.dtype) {
            verdict.add(Rule::Dtype);
        }
        let has_whole_shape = self.how.place != JudgedIn::Graph { is_merged: true };
        if has_whole_shape && target.shape != golden.shape {
            verdict.add(Rule::Shape);
        }
        differences[3].relative()
    }

    fn same_dtype(&self, target: &str, golden: &str) -> bool {
        let bare = |dtype: &str| dtype.strip_prefix("torch.").unwrap_or(dtype).to_ascii_lowercase();
        target == golden || self.how.across_frameworks && bare(target) == bare(golden)
    }

    fn judge_norms(&self, norms: &[Option<f64>], verdicts: &mut [Verdict]) {
        let input = self.inputs().filter_map(|index| norms[index]).reduce(f64::max);
        let Some(input) = input.or_else(|| self.without_inputs(0.0)) else { return };
        for index in self.outputs() {
            if input < 0.1 && norms[index].is_some_and(|norm| norm > 0.5) {
                verdicts[index].add(Rule::NormError);
            }
        }
        let Some(output) = self.outputs().filter_map(|index| norms[index]).reduce(f64::max) else { return };
        let grows = if input == 0.0 { output > 0.1 } else { output / input > 10.0 };
        if let Some(first) = self.outputs().next().filter(|_| grows) {
            verdicts[first].add(Rule::NormGrowth);
        }
    }

    fn judge_metrics(&self, verdicts: &mut [Verdict]) {
        let smallest = |of: fn(&TensorComparison) -> Option<f64>, rows: &mut dyn Iterator<Item = usize>| {
            rows.filter_map(|index| of(self.rows[index].tensor?)).reduce(f64::min)
        };
        let ratio: fn(&TensorComparison) -> Option<f64> =
            |comparison| comparison.metrics.within_thousandth.number();
        let cosine: fn(&TensorComparison) -> Option<f64> = |comparison| comparison.metrics.cosine.number();
        let input = |of| smallest(of, &mut self.inputs()).or_else(|| self.without_inputs(1.0));
        let ratios = (input(ratio), smallest(ratio, &mut self.outputs()));
        let cosines = (input(cosine), smallest(cosine, &mut self.outputs()));
        let Some(first) = self.outputs().next() else { return };
        // The message promises 0.6; the rule has always been 0.1.
        if let (Some(input), Some(output)) = ratios
            && input > 0.9
            && output < 0.1
        {
            verdicts[first].add(Rule::ThousandthRatio);
        }
        if let (Some(input), Some(output)) = cosines
            && input > 0.9
            && input - output > 0.1
        {
            verdicts[first].add(Rule::Cosine);
        }
    }
}

fn is_input(row: &JudgedRow<'_>) -> bool {
    matches!(row.target.role, Role::Input | Role::Parameters)
}

fn judge_checksums(row: &JudgedRow<'_>, verdict: &mut Verdict) {
    let present = |text: Option<&str>| text.is_some_and(|text| !text.is_empty() && text != "N/A");
    let (target, golden) = (row.target.md5.as_deref(), row.golden.and_then(|golden| golden.md5.as_deref()));
    match (present(target), present(golden)) {
        (true, true) if target != golden => verdict.add(Rule::Checksum),
        (true, false) | (false, true) => verdict.add(Rule::OneSideOnly),
        _ => {}
    }
}

fn differs(difference: super::Difference) -> bool {
    use super::Difference;
    match difference {
        Difference::Equal | Difference::Missing => false,
        Difference::Number { difference, .. } => difference != 0.0,
        Difference::Unequal | Difference::Nan | Difference::Infinite { .. } => true,
    }
}

/// Whether the largest or smallest value is NaN or an infinity, as a number or in words. Words that are arguments
/// are not meant.
fn is_not_finite(leaf: &Leaf) -> bool {
    leaf.statistics.iter().take(2).any(|statistic| match statistic {
        Scalar::Float(value) => !value.is_finite(),
        Scalar::Text(text) => {
            leaf.is_tensor()
                && ["nan", "inf", "-inf"].iter().any(|word| text.trim().eq_ignore_ascii_case(word))
        }
        _ => false,
    })
}
