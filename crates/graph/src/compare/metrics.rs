//! What is shown behind the members of each value, in both generations.

use std::borrow::Cow;

use msprobe_compare::Mode;
use msprobe_compare::metrics::{Metric, TensorComparison};
use msprobe_compare::python_text::push_float;
use msprobe_compare::side::Scalar;
use msprobe_tables::metrics::{METRIC_HEADERS, in_columns};
use msprobe_tables::newest::{JudgedIn, JudgedRow, Judging, judge_call};
use msprobe_tables::table::{DIFFERENCE_HEADERS, Difference, difference};

use super::index::{best, by_statistics, by_tensors, is_not_judged};
use super::{Comparer, Index, NodeResult, ValuePair};
use crate::names::Generation;
use crate::values::Extra;

type Fields = Vec<(&'static str, Extra)>;

impl Comparer {
    pub(super) fn first(&self, name: &str, mode: Mode, pairs: &[ValuePair<'_>], result: &mut NodeResult) {
        let (differences, tensors) = self.measure(mode, pairs, result);
        for (at, pair) in pairs.iter().enumerate() {
            result.extras[pair.place] = match mode {
                Mode::Md5 => vec![("Result", Extra::Text(checksum_word(pair).into()))],
                _ if pair.target.leaf.statistics[0] == Scalar::Null => Vec::new(),
                Mode::Summary => statistics_fields(pair, differences[at].as_ref()),
                Mode::All => tensor_fields(tensors[at].as_ref()),
            };
        }
        let index = match mode {
            Mode::Md5 => {
                let agree = pairs.iter().all(|pair| checksum_word(pair) == "pass");
                result.checksums_agree = Some(agree);
                Index::Whole(u8::from(agree))
            }
            Mode::Summary => by_statistics(pairs, &differences),
            Mode::All => by_tensors(pairs, &tensors),
        };
        let best = best(mode, Generation::First);
        result.index = Some(if is_not_judged(name) { best } else { index });
    }

    pub(super) fn third(&self, name: &str, mode: Mode, pairs: &[ValuePair<'_>], result: &mut NodeResult) {
        let (differences, tensors) = self.measure(mode, pairs, result);
        let rows: Vec<JudgedRow<'_>> = pairs
            .iter()
            .zip(&tensors)
            .map(|(pair, tensor)| JudgedRow {
                target: &pair.target.leaf,
                golden: pair.golden,
                tensor: tensor.as_ref(),
            })
            .collect();
        let place = JudgedIn::Graph { is_merged: self.is_merged };
        let how = Judging { mode, across_frameworks: self.across_frameworks, place };
        let verdicts = judge_call(name, &rows, how);
        for (at, pair) in pairs.iter().enumerate() {
            if pair.target.leaf.statistics[0] == Scalar::Null && mode != Mode::Md5 {
                continue;
            }
            let mut fields = match mode {
                Mode::Md5 => Vec::new(),
                Mode::Summary => statistics_fields(pair, differences[at].as_ref()),
                Mode::All => tensor_fields(tensors[at].as_ref()),
            };
            let agree =
                pair.golden.is_some_and(|golden| golden.requires_grad == pair.target.leaf.requires_grad);
            let agree = if agree { "True" } else { "False" };
            fields.push(("Requires_grad Consistent", Extra::Text(agree.into())));
            let grade = ("Result", Extra::Text(verdicts[at].grade().as_str().into()));
            // What checksums say comes first.
            fields.insert(if mode == Mode::Md5 { 0 } else { fields.len() }, grade);
            fields.push(("Err_message", Extra::Text(verdicts[at].json().into())));
            result.extras[pair.place] = fields;
        }
        result.grade = verdicts.iter().map(|verdict| verdict.grade()).max();
        result.index = result.grade.map(Index::of_grade);
    }

    fn measure(
        &self,
        mode: Mode,
        pairs: &[ValuePair<'_>],
        result: &mut NodeResult,
    ) -> (Vec<Option<[Difference; 4]>>, Vec<Option<TensorComparison>>) {
        let differences = |pair: &ValuePair<'_>| {
            let golden = &pair.golden?.statistics;
            let target = &pair.target.leaf.statistics;
            Some(std::array::from_fn(|at| difference(&target[at], &golden[at])))
        };
        match mode {
            Mode::Summary => (pairs.iter().map(differences).collect(), vec![None; pairs.len()]),
            Mode::Md5 => (Vec::new(), vec![None; pairs.len()]),
            Mode::All => {
                let measure = |pair: &ValuePair<'_>| {
                    let (tensor, failure) = self.files.measure(&pair.target.leaf, pair.golden);
                    result.failures.extend(failure);
                    Some(tensor)
                };
                (Vec::new(), pairs.iter().map(measure).collect())
            }
        }
    }
}

/// Whether the checksums of a pair are the same.
fn checksum_word(pair: &ValuePair<'_>) -> &'static str {
    match pair.golden {
        Some(golden) if golden.md5 == pair.target.leaf.md5 => "pass",
        Some(_) => "Different",
        None => "Nan",
    }
}

fn statistics_fields(pair: &ValuePair<'_>, differences: Option<&[Difference; 4]>) -> Fields {
    let Some(differences) = differences else {
        return DIFFERENCE_HEADERS.into_iter().map(|header| (header, Extra::Text(" ".into()))).collect();
    };
    let golden = pair.golden.map(|golden| &golden.statistics);
    let (first, relative) = DIFFERENCE_HEADERS.split_at(4);
    let mut fields: Fields = Vec::with_capacity(8);
    for (at, &header) in first.iter().enumerate() {
        let whole = || pair.target.leaf.statistics[at].whole()?.checked_sub(golden?[at].whole()?);
        let shown = match differences[at] {
            Difference::None => Extra::Text("N/A".into()),
            Difference::Nan => Extra::Text("Nan".into()),
            Difference::Number(f64::INFINITY, _) => Extra::Text("inf\t".into()),
            Difference::Number(f64::NEG_INFINITY, _) => Extra::Text("-inf\t".into()),
            Difference::Number(number, _) => whole().map_or(Extra::Float(number), Extra::Whole),
        };
        fields.push((header, shown));
    }
    for (at, &header) in relative.iter().enumerate() {
        let shown: Cow<'static, str> = match differences[at] {
            Difference::None | Difference::Number(_, None) => "N/A".into(),
            Difference::Nan => "Nan".into(),
            // Most values agree, and most of what is shown is this.
            Difference::Number(_, Some(0.0)) => "0.0%".into(),
            Difference::Number(_, Some(percent)) => {
                let mut text = String::new();
                push_float(&mut text, percent);
                text.push('%');
                text.into()
            }
        };
        fields.push((header, Extra::Text(shown)));
    }
    fields
}

fn tensor_fields(tensor: Option<&TensorComparison>) -> Fields {
    let metrics = tensor.map(|tensor| in_columns(&tensor.metrics));
    let shown = |at: usize| match metrics.map(|metrics| metrics[at]) {
        Some(Metric::Number(number)) => Extra::Float(number),
        Some(Metric::Missing(why)) => Extra::Text(why.as_str().into()),
        None => Extra::Text(" ".into()),
    };
    METRIC_HEADERS.into_iter().enumerate().map(|(at, header)| (header, shown(at))).collect()
}
