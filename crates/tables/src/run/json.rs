//! The verdict for machines. Its members and the columns of its evidence keep the names scripts know.

use msprobe_compare::Mode;
use msprobe_compare::metrics::Metric;
use msprobe_compare::python_text::float_repr;
use msprobe_compare::side::{Leaf, Scalar, Which};
use msprobe_compare::verdict::{
    DifferingRecord, Evidence, Gap, GapKind, Gaps, Inside, Tolerances, Verdict, whole_digits,
};
use msprobe_report::json_number;
use serde_json::{Map, Value, json};

use crate::metrics::{METRIC_HEADERS, in_columns};
use crate::table::{
    COMMON_HEADERS, DIFFERENCE_HEADERS, Difference, STATISTICS_HEADERS, difference, python_bool,
};

/// The members of verdict.json that are about one pair of dumps.
pub(super) fn verdict_json(verdict: &Verdict) -> Value {
    let culprit = verdict.culprit.as_ref();
    let counts = verdict.counts;
    let stack = culprit.and_then(|culprit| culprit.stack.as_ref());
    let asides = verdict
        .asides
        .found()
        .map(|(kind, count, first)| (kind.as_str().to_owned(), json!({"count": count, "first": first})));
    json!({
        "status": verdict.status.as_str(),
        "culprit": culprit.map(|culprit| &culprit.name),
        "direction": culprit.map(|culprit| culprit.direction),
        "evidence": culprit.map(|culprit| evidence_json(&culprit.evidence, verdict.mode)),
        "match_method": culprit.map(|culprit| culprit.method.as_str()),
        "tolerances": tolerances_json(&verdict.tolerances),
        "tolerances_needed": needed_json(verdict),
        "noise_runs": verdict.noise_runs,
        "finding": verdict.finding(),
        "amplifying": verdict.amplifying.iter().map(amplifying_json).collect::<Vec<_>>(),
        "bench_culprit": culprit.and_then(|culprit| culprit.golden_name.as_ref()),
        "changed_before": culprit.and_then(|culprit| culprit.next.as_ref()),
        "inside": culprit.and_then(|culprit| culprit.inside.as_ref()).map(inside_json),
        "error_in": culprit.map(|culprit| json_number(culprit.errors.0)),
        "error_out": culprit.map(|culprit| json_number(culprit.errors.1)),
        "stack": stack.map(|stack| stack.iter().map(|frame| &**frame).collect::<Vec<_>>()),
        "records": {
            "paired": counts.paired,
            "aligned": counts.aligned,
            "only_npu": counts.only_target,
            "only_bench": counts.only_golden,
            "differing": counts.differing,
        },
        "incomplete": gaps_json(&verdict.gaps),
        "asides": asides.collect::<Map<_, _>>(),
    })
}

/// Between which calls of a module the error is made.
fn inside_json(inside: &Inside) -> Value {
    json!({"after": inside.after, "before": inside.before})
}

/// A record that adds to an error nobody makes alone.
fn amplifying_json(record: &DifferingRecord) -> Value {
    json!({
        "name": record.name,
        "error_in": json_number(record.error_in),
        "error_out": json_number(record.error_out),
        "times_tolerated": json_number(record.times_tolerated),
    })
}

/// What was tolerated, by dtype.
pub(super) fn tolerances_json(tolerances: &Tolerances) -> Map<String, Value> {
    tolerances.named().map(|(name, value)| (name.to_owned(), value.into())).collect()
}

/// What would have let everything pass that differs by an amount, by dtype.
fn needed_json(verdict: &Verdict) -> Map<String, Value> {
    let needed = verdict.needed_tolerances.iter();
    needed.map(|(precision, share)| (precision.as_str().to_owned(), json_number(*share))).collect()
}

/// The member `incomplete` of verdict.json: what could not be compared, by kind.
pub(super) fn gaps_json(gaps: &Gaps) -> Value {
    let first = |kind: GapKind| -> Vec<Value> {
        let one = |gap: &Gap| json!({"name": gap.name, "only_on": gap.only.map(Which::as_str), "reason": gap.reason});
        gaps.first(kind).map(one).collect()
    };
    gaps.kinds()
        .map(|kind| (kind.as_str().to_owned(), json!({"count": gaps.count(kind), "first": first(kind)})))
        .collect::<Map<_, _>>()
        .into()
}

/// What shows the culprit, under the headers tables have for it.
fn evidence_json(evidence: &Evidence, mode: Mode) -> Map<String, Value> {
    let mut columns = Map::new();
    let mut add = |header: &str, value: Value| columns.insert(header.to_owned(), value);
    if let Some((target, golden)) = &evidence.argument {
        add("argument", (*target.name).into());
        add("NPU value", argument_json(target));
        add("Bench value", argument_json(golden));
    }
    let (target, golden) = match (&evidence.target, &evidence.golden) {
        (Some(target), Some(golden)) => (target, golden),
        (None, None) => return columns,
        (target, golden) => {
            let name = |leaf: &Option<Leaf>| leaf.as_ref().map_or("N/A".into(), |leaf| (*leaf.name).into());
            add("NPU Name", name(target));
            add("Bench Name", name(golden));
            return columns;
        }
    };
    let (target_shape, golden_shape) = (target.shape.to_string(), golden.shape.to_string());
    let described: [&str; 6] =
        [&target.name, &golden.name, &target.dtype, &golden.dtype, &target_shape, &golden_shape];
    for (header, text) in COMMON_HEADERS.iter().zip(described) {
        add(header, text.into());
    }
    if mode == Mode::Md5 {
        add("NPU MD5", target.md5.as_deref().unwrap_or("N/A").into());
        add("BENCH MD5", golden.md5.as_deref().unwrap_or("N/A").into());
    }
    if !evidence.shows_numbers(mode) {
        return columns;
    }
    if let Some(index) = evidence.first_difference {
        add("First Difference", index.into());
    }
    if let Some(metrics) = &evidence.metrics {
        for (header, metric) in METRIC_HEADERS.iter().zip(in_columns(metrics)) {
            add(
                header,
                match metric {
                    Metric::Number(value) => json_number(value),
                    Metric::Missing(why) => why.as_str().into(),
                },
            );
        }
    } else {
        for index in 0..4 {
            let found = difference(&target.statistics[index], &golden.statistics[index]);
            let Difference::Number(value, percent) = found else { continue };
            add(DIFFERENCE_HEADERS[index], json_number(value));
            if let Some(percent) = percent {
                add(DIFFERENCE_HEADERS[index + 4], format!("{}%", float_repr(percent)).into());
            }
        }
    }
    let statistics = target.statistics.iter().chain(&golden.statistics);
    for (header, statistic) in STATISTICS_HEADERS.iter().zip(statistics) {
        if let Some(value) = statistic_json(statistic) {
            add(header, value);
        }
    }
    columns
}

fn argument_json(leaf: &Leaf) -> Value {
    match &leaf.statistics[0] {
        Scalar::Text(text) => (**text).into(),
        Scalar::Bool(value) => python_bool(*value).into(),
        other => statistic_json(other).unwrap_or_else(|| "None".into()),
    }
}

fn statistic_json(scalar: &Scalar) -> Option<Value> {
    let Some(whole) = whole_digits(scalar) else { return scalar.number().map(json_number) };
    Some(match (i64::try_from(whole), u64::try_from(whole)) {
        (Ok(value), _) => value.into(),
        (_, Ok(value)) => value.into(),
        _ => whole.to_string().into(),
    })
}
