//! What comparing two stored nodes gives. Nothing is measured here: values go back to the form dumps have, and the code that
//! compares graphs does the rest.

use msprobe_compare::side::{Role, ValueReader};
use msprobe_dump::write::JsonText;
use msprobe_graph::compare::{Comparer, NodeResult};
use msprobe_graph::names::Generation;
use msprobe_graph::values::{BATCH_P2P, NodeValue, SharedValues, Showing, read_values};
use msprobe_tables::metrics::METRIC_HEADERS;
use msprobe_tables::table::DIFFERENCE_HEADERS;
use serde_json::{Map, Value};

use crate::store::values_of;

/// What comparing appends to values, beside the metrics.
const JUDGED: [&str; 3] = ["Requires_grad Consistent", "Result", "Err_message"];

type Named = Vec<(String, Map<String, Value>)>;

/// The values of a stored node.
pub(super) struct StoredValues {
    inputs: Named,
    outputs: Named,
}

impl StoredValues {
    pub(super) fn new(inputs: &str, outputs: &str) -> StoredValues {
        StoredValues { inputs: values_of(inputs), outputs: values_of(outputs) }
    }

    /// The record as a dump would have it.
    fn record(&self, name: &str) -> String {
        let mut json = JsonText::on_one_line();
        json.begin_object();
        if is_gradients(name) {
            for (at, (_, members)) in self.inputs.iter().enumerate() {
                json.key(&at.to_string());
                json.begin_array();
                write_value(&mut json, members);
                json.end_array();
            }
        } else {
            let is_parameter = |key: &str| key.contains(".parameters.");
            json.key("input_args");
            write_list(&mut json, self.inputs.iter().filter(|(key, _)| !is_parameter(key)));
            json.key("output");
            write_list(&mut json, self.outputs.iter());
            json.key("parameters");
            json.begin_object();
            for (key, members) in self.inputs.iter().filter(|(key, _)| is_parameter(key)) {
                json.key(key.rsplit_once(".parameters.").map_or(key.as_str(), |(_, name)| name));
                write_value(&mut json, members);
            }
            json.end_object();
        }
        json.end_object();
        json.finish()
    }

    fn read(&self, name: &str) -> SharedValues {
        let record = self.record(name);
        SharedValues::new(
            read_values(&mut ValueReader::default(), name, record.as_bytes()).unwrap_or_default(),
        )
    }

    /// Takes away what an earlier comparison appended.
    pub(super) fn without_metrics(mut self) -> StoredValues {
        for (_, members) in self.inputs.iter_mut().chain(&mut self.outputs) {
            members.retain(|key, _| {
                let key = key.as_str();
                !(DIFFERENCE_HEADERS.contains(&key) || METRIC_HEADERS.contains(&key) || JUDGED.contains(&key))
            });
        }
        self
    }

    /// Both texts, as stores have them.
    pub(super) fn texts(&self) -> (String, String) {
        (text_of(&self.inputs), text_of(&self.outputs))
    }
}

fn is_gradients(name: &str) -> bool {
    msprobe_graph::names::module_of_gradients(name, Generation::Third).is_some()
}

fn write_list<'v>(json: &mut JsonText, values: impl Iterator<Item = &'v (String, Map<String, Value>)>) {
    json.begin_array();
    values.for_each(|(_, members)| write_value(json, members));
    json.end_array();
}

/// A value: numbers and lists are texts in stores.
fn write_value(json: &mut JsonText, members: &Map<String, Value>) {
    if members.len() == 1 && members.get("value").and_then(Value::as_str) == Some("null") {
        return json.null();
    }
    json.begin_object();
    for (key, value) in members {
        let Value::String(text) = value else { continue };
        json.key(key);
        match key.as_str() {
            "Max" | "Min" | "Mean" | "Norm" | "value" | "requires_grad" | "shape" | "group_ranks" => {
                json.raw(&literal(text));
            }
            _ => json.string(text),
        }
    }
    json.end_object();
}

/// What Python wrote as text, as JSON: `True`, `nan`, `[2, 3]`, `1.5`; anything else stays a text.
fn literal(text: &str) -> String {
    match text {
        "True" => return "true".to_owned(),
        "False" => return "false".to_owned(),
        "null" => return "null".to_owned(),
        "nan" => return "NaN".to_owned(),
        "inf" => return "Infinity".to_owned(),
        "-inf" => return "-Infinity".to_owned(),
        _ => {}
    }
    match serde_json::from_str(text) {
        Ok(Value::Number(_) | Value::Array(_)) => text.to_owned(),
        _ => Value::String(text.to_owned()).to_string(),
    }
}

fn text_of(values: &Named) -> String {
    let mut json = JsonText::on_one_line();
    json.begin_object();
    for (name, members) in values {
        json.key(name);
        json.begin_object();
        for (key, value) in members {
            json.key(key);
            match value {
                Value::String(text) => json.string(text),
                other => json.raw(&other.to_string()),
            }
        }
        json.end_object();
    }
    json.end_object();
    json.finish()
}

/// Compares two nodes and puts what came of it behind the values of the target.
pub(super) fn compare(
    comparer: &Comparer,
    name: &str,
    target: StoredValues,
    golden_name: &str,
    golden: &StoredValues,
) -> (StoredValues, NodeResult) {
    let mut target = target.without_metrics();
    let (own, other) = (target.read(name), golden.read(golden_name));
    let result = comparer.compare(name, &own, &other.iter().map(|value| &value.leaf));
    let showing = Showing {
        generation: comparer.generation,
        checksums: comparer.task.has_checksums(),
        is_batch_p2p: name.contains(BATCH_P2P),
    };
    let roles: [&[Role]; 2] = [&[Role::Input, Role::Parameters, Role::ParametersGrad], &[Role::Output]];
    for (roles, stored) in roles.into_iter().zip([&mut target.inputs, &mut target.outputs]) {
        append(showing, stored, &own, roles, &result);
    }
    (target, result)
}

/// Values in the order of the record, and values in the order of the store, are the same ones, kind by kind.
fn append(showing: Showing, stored: &mut Named, values: &[NodeValue], roles: &[Role], result: &NodeResult) {
    let of_role = |role: Role| values.iter().enumerate().filter(move |(_, value)| value.leaf.role == role);
    for &role in roles {
        let is_parameter = role == Role::Parameters;
        let places: Vec<usize> = of_role(role).map(|(at, _)| at).collect();
        let mut members: Vec<&mut Map<String, Value>> = stored
            .iter_mut()
            .filter(|(key, _)| roles.len() == 1 || key.contains(".parameters.") == is_parameter)
            .map(|(_, members)| members)
            .collect();
        if places.len() != members.len() {
            continue;
        }
        for (place, members) in places.into_iter().zip(&mut members) {
            let is_null = members.len() == 1 && members.contains_key("value");
            let is_group = values[place].leaf.kind == msprobe_compare::side::ValueKind::Group;
            if is_null || is_group {
                continue;
            }
            for (key, extra) in result.extras.get(place).into_iter().flatten() {
                let mut text = String::new();
                showing.push_extra(&mut text, extra);
                members.insert((*key).to_owned(), Value::String(text));
            }
        }
    }
}
