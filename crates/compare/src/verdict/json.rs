//! A verdict for machines.

use serde_json::{Map, Value, json};

use super::{Evidence, Finding, Gap, GapKind, Gaps, Verdict};
use crate::side::Which;

impl Verdict {
    /// The members of verdict.json that are about one pair of dumps.
    pub fn to_json(&self) -> Map<String, Value> {
        let mut object = Map::new();
        object.insert("status".into(), self.status.word().into());
        let culprit = self.culprit.as_ref();
        let text = |text: Option<&str>| text.map_or(Value::Null, Value::from);
        object.insert("culprit".into(), text(culprit.map(|culprit| &*culprit.name)));
        object.insert("direction".into(), text(culprit.map(|culprit| culprit.direction)));
        object.insert(
            "evidence".into(),
            match culprit {
                Some(culprit) => culprit.evidence.iter().map(|(key, value)| (*key, figure(value))).collect(),
                None => Value::Null,
            },
        );
        object.insert("match_method".into(), text(culprit.map(|culprit| culprit.method.word())));
        let tolerances: Map<String, Value> =
            self.tolerances.named().map(|(name, value)| (name.to_owned(), value.into())).collect();
        object.insert("tolerances".into(), tolerances.into());
        object.insert("finding".into(), text(culprit.map(|culprit| finding(culprit.finding))));
        object
            .insert("bench_culprit".into(), text(culprit.and_then(|culprit| culprit.golden_name.as_deref())));
        object.insert("changed_before".into(), text(culprit.and_then(|culprit| culprit.next.as_deref())));
        object.insert("error_in".into(), culprit.map_or(Value::Null, |culprit| number(culprit.errors.0)));
        object.insert("error_out".into(), culprit.map_or(Value::Null, |culprit| number(culprit.errors.1)));
        object.insert(
            "stack".into(),
            match culprit.and_then(|culprit| culprit.stack.as_ref()) {
                Some(stack) => stack.iter().map(|frame| &**frame).collect(),
                None => Value::Null,
            },
        );
        let counts = self.counts;
        object.insert(
            "records".into(),
            json!({
                "paired": counts.paired,
                "aligned": counts.aligned,
                "only_npu": counts.only_target,
                "only_bench": counts.only_golden,
                "differing": counts.differing,
            }),
        );
        object.insert("incomplete".into(), self.gaps.to_json());
        let asides = self
            .asides
            .found()
            .map(|(kind, count, first)| (kind.as_str().to_owned(), json!({"count": count, "first": first})));
        object.insert("asides".into(), asides.collect::<Map<_, _>>().into());
        object
    }
}

impl Gaps {
    /// The member `incomplete` of verdict.json: what could not be compared, by kind.
    pub fn to_json(&self) -> Value {
        let first = |kind: GapKind| -> Vec<Value> {
            let one = |gap: &Gap| json!({"name": gap.name, "only_on": gap.only.map(Which::word), "reason": gap.reason});
            self.first(kind).map(one).collect()
        };
        self.kinds()
            .map(|kind| (kind.as_str().to_owned(), json!({"count": self.count(kind), "first": first(kind)})))
            .collect::<Map<_, _>>()
            .into()
    }
}

fn figure(value: &Evidence) -> Value {
    match value {
        Evidence::Number(value) => number(*value),
        Evidence::Whole(value) => match (i64::try_from(*value), u64::try_from(*value)) {
            (Ok(value), _) => value.into(),
            (_, Ok(value)) => value.into(),
            _ => value.to_string().into(),
        },
        Evidence::Text(text) => text.as_str().into(),
    }
}

/// A number; JSON has no word for those that are not finite.
fn number(value: f64) -> Value {
    if value.is_finite() { value.into() } else { value.to_string().into() }
}

fn finding(finding: Finding) -> &'static str {
    match finding {
        Finding::Computes => "computes_differently",
        Finding::Saved => "saved_value_differs",
        Finding::Argument => "called_with_another_argument",
        Finding::Dtype => "returns_another_dtype",
        Finding::Parameters => "parameters_differ",
        Finding::Input => "input_differs",
        Finding::Gradual => "grows_gradually",
        Finding::OnlyTarget => "only_on_npu_side",
        Finding::OnlyGolden => "only_on_bench_side",
        Finding::ChangedAfter => "output_changed_later",
        Finding::ChangedBefore => "gradient_changed_before",
    }
}
