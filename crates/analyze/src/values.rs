//! The tensors of one record as its text describes them: what a reader of a finding wants to see.

use std::io;

use msprobe_dump::read::Json;

use crate::rank::RankDump;
use crate::record::{Kinds, Record, Role, number_in_words};

/// More tensors than that are not listed.
const MAX_TENSORS: usize = 64;
const MAX_DEPTH: usize = 16;

/// A tensor of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// Where in the record: `input.0`, `parameters.weight`, `output.1`.
    pub place: String,
    /// What it is of the record.
    pub role: Role,
    /// `torch.float32`.
    pub dtype: String,
    /// Its sizes.
    pub shape: Vec<i64>,
    /// `Max`, `Min`, `Mean`, `Norm`, where they were recorded.
    pub figures: [Option<f64>; 4],
    /// The name of its file.
    pub data_name: Option<String>,
}

/// What the four figures are called.
pub const FIGURES: [&str; 4] = ["Max", "Min", "Mean", "Norm"];

impl Value {
    /// What it holds that is not finite.
    pub fn kinds(&self) -> Kinds {
        let size = |size: &i64| u64::try_from(*size).ok();
        let elements = self.shape.iter().map(size).try_fold(1_u64, |count, size| count.checked_mul(size?));
        Kinds::of_figures(&self.figures, &self.dtype, elements)
    }
}

/// The tensors of a record, read again from its file.
pub fn values_of(dump: &RankDump, record: &Record) -> io::Result<Vec<Value>> {
    let text = dump.read_again(record)?;
    let json = Json::parse(&text).map_err(|(what, at)| {
        io::Error::other(format!(
            "{} of dump.json: {what} at byte {}",
            record.name,
            record.offset + at as u64
        ))
    })?;
    let mut values = Vec::new();
    let Json::Map(sections) = &json else { return Ok(values) };
    for (key, section) in sections {
        let (role, prefix) = match &**key {
            "input" | "input_args" | "input_kwargs" => (Role::Input, "input"),
            "parameters" => (Role::Parameter, "parameters"),
            "output" => (Role::Output, "output"),
            _ if matches!(section, Json::List(_)) => (Role::Output, &**key),
            _ => continue,
        };
        collect(section, role, prefix.to_owned(), 0, &mut values);
    }
    Ok(values)
}

fn collect(json: &Json<'_>, role: Role, place: String, depth: usize, values: &mut Vec<Value>) {
    if values.len() >= MAX_TENSORS || depth > MAX_DEPTH {
        return;
    }
    match json {
        Json::List(elements) => {
            for (number, element) in elements.iter().enumerate() {
                collect(element, role, format!("{place}.{number}"), depth + 1, values);
            }
        }
        Json::Map(members) => match json.get("dtype").and_then(Json::as_str) {
            Some(dtype) if json.get("shape").is_some() => values.push(Value {
                place,
                role,
                dtype: dtype.to_owned(),
                shape: json.get("shape").and_then(Json::as_list).map_or_else(Vec::new, sizes),
                figures: FIGURES.map(|figure| json.get(figure).and_then(number)),
                data_name: json.get("data_name").and_then(Json::as_str).map(str::to_owned),
            }),
            _ => {
                for (key, member) in members {
                    collect(member, role, format!("{place}.{key}"), depth + 1, values);
                }
            }
        },
        _ => {}
    }
}

fn sizes(shape: &[Json<'_>]) -> Vec<i64> {
    let size = |size: &Json<'_>| match size {
        Json::Int(size) => i64::try_from(*size).ok(),
        _ => None,
    };
    shape.iter().filter_map(size).collect()
}

fn number(json: &Json<'_>) -> Option<f64> {
    match json {
        Json::Int(number) => Some(*number as f64),
        Json::Float(number) => Some(*number),
        // Of bool tensors: any, all.
        Json::Bool(value) => Some(f64::from(u8::from(*value))),
        Json::Text(text) => number_in_words(text),
        _ => None,
    }
}
