//! The answer for scripts.

use msprobe_dump::model::Statistic;
use msprobe_report::json_number;
use serde_json::{Value as JsonValue, json};

use super::Outcome;
use crate::findings::{Elements, Finding};
use crate::range::{Danger, Warning};
use crate::values::Value;

/// Grows when members change their meaning.
const SCHEMA: u32 = 1;

impl Outcome {
    /// The answer as JSON text. Numbers that are not finite are strings.
    pub fn json(&self) -> String {
        let origins: Vec<JsonValue> = self.origins.iter().map(finding).collect();
        let paths = |paths: &[std::path::PathBuf]| -> Vec<String> {
            paths.iter().map(|path| path.display().to_string()).collect()
        };
        let harmless: Vec<JsonValue> = self
            .harmless()
            .iter()
            .filter_map(|excused| {
                let (rank, operation) = self.excused_name(excused)?;
                let rule = excused.rule.as_str();
                Some(json!({"rule": rule, "rank": rank, "operation": operation, "count": excused.count}))
            })
            .collect();
        let document = json!({
            "schema": SCHEMA,
            "status": self.status().as_str(),
            "summary": self.headline(),
            "step": self.step.display().to_string(),
            "clean_steps": paths(&self.clean_steps),
            "incomplete_steps": paths(&self.incomplete_steps),
            "complete": self.is_complete(),
            "unmeasured": self.ranks.iter().map(|rank| rank.unmeasured).sum::<u64>(),
            "culprit": origins.first(),
            "births": origins,
            "more_births": self.more_origins(),
            "spread": self.spread,
            "harmless": harmless,
            "absorbed": self.absorbed().0,
            "warnings": self.all_warnings().map(warning).collect::<Vec<JsonValue>>(),
            "warning_counts": self.warning_counts(),
            "mask_filled_tensors": self.warnings.iter().map(|warned| warned.filled).sum::<u64>(),
            "as_dtype": self.as_dtype,
            "ranks": self.ranks,
            "unreadable_ranks": self.unreadable,
            "missing_ranks": self.missing_ranks,
            "left_out": self.left_out,
            "communications": self.links.len(),
            "unpaired_calls": self.links.unpaired().len(),
            "problems": self.problems,
            "files": paths(&self.files),
            "answer": self.answer().to_json(),
        });
        format!("{document:#}\n")
    }

    fn warning_counts(&self) -> JsonValue {
        let counts = Danger::ALL.iter().enumerate().map(|(index, danger)| {
            let count: u64 = self.warnings.iter().filter_map(|warned| warned.range.counts.get(index)).sum();
            (danger.as_str().to_owned(), json!(count))
        });
        JsonValue::Object(counts.collect())
    }
}

fn finding(finding: &Finding) -> JsonValue {
    json!({
        "rank": finding.rank,
        "operation": finding.operation,
        "kind": finding.kind.as_str(),
        "phase": if finding.is_backward { "backward" } else { "forward" },
        "values": finding.values.names(),
        "reason": finding.reason,
        "advice": finding.advice,
        "parameter": finding.parameter,
        "modules": finding.modules,
        "stack": finding.stack,
        "inputs": finding.inputs.iter().map(value).collect::<Vec<JsonValue>>(),
        "outputs": finding.outputs.iter().map(value).collect::<Vec<JsonValue>>(),
        "chain": finding.chain,
        "elements": finding.elements.iter().map(elements).collect::<Vec<JsonValue>>(),
    })
}

fn value(value: &Value) -> JsonValue {
    let mut object = json!({
        "place": value.place,
        "type": value.role.as_str(),
        "dtype": value.dtype,
        "shape": value.shape,
    });
    for (statistic, figure) in Statistic::ALL.iter().zip(value.figures) {
        object[statistic.as_str()] = figure.map_or(JsonValue::Null, json_number);
    }
    object
}

fn elements(elements: &Elements) -> JsonValue {
    let counts = &elements.counts;
    json!({
        "place": elements.place,
        "elements": counts.elements,
        "nan": counts.nan,
        "inf": counts.positive_inf,
        "-inf": counts.negative_inf,
        "first_bad": elements.first_bad,
    })
}

fn warning((rank, warning, operation, sentence): (u32, &Warning, &str, &str)) -> JsonValue {
    json!({
        "rank": rank,
        "operation": operation,
        "danger": warning.danger.as_str(),
        "type": warning.role.as_str(),
        "index": warning.index,
        "dtype": warning.dtype.to_string(),
        "value": json_number(warning.value),
        "limit": json_number(warning.limit),
        "share": warning.share,
        "text": sentence,
    })
}
