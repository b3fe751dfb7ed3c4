//! An answer for scripts. Every member is always there; `docs/answer.schema.json` is the same in another language.

use serde_json::{Value, json};

use super::{Answer, Culprit, Evidence, NotCompared, StepAndRank};
use crate::json::{cell_as_json, json_number};

/// Grows when members change their meaning, not when there are more of them.
const SCHEMA: u32 = 1;

impl Answer {
    /// The member `answer` of every report. Numbers that are not finite are the strings `NaN`, `Infinity`, `-Infinity`.
    pub fn to_json(&self) -> Value {
        let against =
            self.scope.against.map(|StepAndRank { step, rank }| json!({"step": step, "rank": rank}));
        json!({
            "schema": SCHEMA,
            "command": self.command,
            "status": self.status.as_str(),
            "headline": self.headline,
            "scope": {"step": self.scope.at.step, "rank": self.scope.at.rank, "against": against},
            "culprit": self.culprit.as_ref().map(culprit),
            "evidence": self.evidence.iter().map(evidence).collect::<Vec<Value>>(),
            "not_compared": self.not_compared.iter().map(not_compared).collect::<Vec<Value>>(),
            "next_step": self.next_step,
            "files": self.files.iter().map(|file| file.display().to_string()).collect::<Vec<String>>(),
        })
    }
}

fn culprit(culprit: &Culprit) -> Value {
    let fact = |(label, text): &(&str, String)| json!({"label": label, "text": text});
    json!({
        "name": culprit.name,
        "kind": culprit.kind,
        "direction": culprit.direction,
        "facts": culprit.facts.iter().map(fact).collect::<Vec<Value>>(),
    })
}

fn evidence(evidence: &Evidence) -> Value {
    json!({
        "record": evidence.record,
        "value": (!evidence.value.is_empty()).then_some(&evidence.value),
        "measure": evidence.measure,
        "target": cell_as_json(&evidence.target),
        "golden": cell_as_json(&evidence.golden),
        "measured": cell_as_json(&evidence.measured),
        "tolerated": evidence.tolerated.map(json_number),
    })
}

fn not_compared(kind: &NotCompared) -> Value {
    let one = |(name, reason): &(String, String)| json!({"name": name, "reason": reason});
    json!({
        "kind": kind.kind,
        "count": kind.count,
        "text": kind.text,
        "first": kind.first.iter().map(one).collect::<Vec<Value>>(),
    })
}
