//! The values of a node, and how files show them.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use msprobe_compare::metrics::round_decimals;
use msprobe_compare::side::{Leaf, Role, ValueKind, ValueReader, WrittenValue};
use msprobe_dump::hash::FastMap;
use msprobe_dump::python_text::{push_float, push_repr};
use msprobe_dump::read::Json;
use msprobe_dump::write::JsonText;
use msprobe_tables::newest::dtype_shown;

use crate::names::Generation;

/// So many decimals are shown.
const DECIMALS: u32 = 6;
/// Floats of longer texts are not shortened.
const LONGEST_FLOAT: usize = 50;
/// Decimals, or digits before them, beyond this are no number to the reference.
const MOST_DIGITS: usize = 20;
/// The call that makes several sends and receives at once.
pub const BATCH_P2P: &str = "batch_isend_irecv";

/// A value of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeValue {
    /// What it is; its name is its key in files.
    pub leaf: Leaf,
    /// What the dump says of it, as JSON.
    pub written: Box<[u8]>,
    /// What merging made of it.
    pub merged: Option<Box<Merged>>,
}

/// What merging ranks changed about a value.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Merged {
    /// Max, Min, Mean, Norm, where they changed.
    pub statistics: [Option<f64>; 4],
    /// The sizes of the whole tensor, where they are known. Files of the reference show those of one rank; ours stand beside.
    pub whole_shape: Option<Vec<u64>>,
    /// How the parts of ranks stand in it, where that is not one behind the other.
    pub note: Option<Box<str>>,
}

impl NodeValue {
    /// Whether it is shown among the results.
    pub fn is_output(&self) -> bool {
        self.leaf.role == Role::Output
    }

    /// Gives it another key.
    pub fn rename(&mut self, name: &str) {
        self.leaf.name = name.into();
    }
}

/// The values of a record.
pub fn read_values(reader: &mut ValueReader, name: &str, text: &[u8]) -> Result<Vec<NodeValue>, String> {
    let read = reader.read(name, text).map_err(|(what, at)| format!("{what} at byte {at} of the record"))?;
    let value = |WrittenValue { leaf, written }| NodeValue { leaf, written, merged: None };
    Ok(read.values.into_iter().map(value).collect())
}

/// What is shown behind the members of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Extra {
    /// Words.
    Text(Cow<'static, str>),
    /// A number.
    Float(f64),
    /// A whole number.
    Whole(i128),
}

/// How values are shown.
#[derive(Debug, Clone, Copy)]
pub struct Showing {
    /// Like which form of the reference.
    pub generation: Generation,
    /// Whether checksums are shown.
    pub checksums: bool,
    /// Whether they are of a batch of sends and receives.
    pub is_batch_p2p: bool,
}

/// What stands behind the members of each value.
pub type Extras = [Vec<(&'static str, Extra)>];

/// So many names are compared one by one.
const FEW: usize = 16;

/// The values shown, of one kind: those of a name that comes again count once.
pub(crate) fn shown<'l>(leaves: impl Iterator<Item = &'l Leaf>, outputs: bool) -> Vec<usize> {
    let mut names: Vec<&str> = Vec::new();
    let mut places: FastMap<&str, usize> = FastMap::default();
    let mut order = Vec::new();
    for (index, leaf) in leaves.enumerate().filter(|(_, leaf)| (leaf.role == Role::Output) == outputs) {
        let name = &*leaf.name;
        let known = if names.len() < FEW {
            names.iter().position(|known| *known == name)
        } else {
            places.get(name).copied()
        };
        match known {
            Some(place) => order[place] = index,
            None => {
                names.push(name);
                order.push(index);
                match names.len() {
                    ..FEW => {}
                    FEW => places.extend(names.iter().enumerate().map(|(place, &name)| (name, place))),
                    more => _ = places.insert(name, more - 1),
                }
            }
        }
    }
    order
}

impl Showing {
    /// Writes the arguments, or the results, as an object. A key that comes again counts as its last value.
    pub fn write(self, json: &mut JsonText, values: &[NodeValue], extras: &Extras, outputs: bool) {
        let order = shown(values.iter().map(|value| &value.leaf), outputs);
        let mut text = String::new();
        json.begin_object();
        for index in order {
            json.key(&values[index].leaf.name);
            self.write_value(json, &values[index], extras.get(index).map_or(&[], Vec::as_slice), &mut text);
        }
        json.end_object();
    }

    fn write_value(
        self,
        json: &mut JsonText,
        value: &NodeValue,
        extra: &[(&'static str, Extra)],
        text: &mut String,
    ) {
        let members = self.members(value);
        let is_null = members.as_ref().is_none_or(|members| {
            members.iter().any(|(key, member)| {
                key == "Max"
                    && match member {
                        Json::Null => true,
                        Json::Text(text) => cleaned(text) == "null",
                        _ => false,
                    }
            })
        });
        json.begin_object();
        if is_null {
            json.key("value");
            json.string("null");
        } else {
            for (key, member) in members.iter().flatten() {
                json.key(key);
                text.clear();
                self.push_member(text, member);
                json.string(text);
            }
            // A group of ranks is no number.
            for (key, extra) in extra.iter().filter(|_| value.leaf.kind != ValueKind::Group) {
                json.key(key);
                text.clear();
                self.push_extra(text, extra);
                json.string(text);
            }
        }
        json.end_object();
    }

    /// What stands behind the members, as text.
    pub fn push_extra(self, text: &mut String, extra: &Extra) {
        match extra {
            Extra::Text(words) => text.push_str(&cleaned(words)),
            Extra::Float(number) => self.push_float(text, *number),
            // Writing to a string does not fail.
            Extra::Whole(number) => _ = write!(text, "{number}"),
        }
    }

    /// The members, in the order the reference gives them; nothing for `null`, of which everything is.
    fn members<'v>(self, value: &'v NodeValue) -> Option<Vec<(Cow<'v, str>, Json<'v>)>> {
        let Ok(Json::Map(written)) = Json::parse(&value.written) else { return None };
        let mut members: Vec<(Cow<'v, str>, Json<'v>)> = Vec::with_capacity(written.len() + 6);
        for (key, member) in written {
            match members.iter_mut().find(|(known, _)| *known == key) {
                Some(known) => known.1 = member,
                None => members.push((key, member)),
            }
        }
        let leaf = &value.leaf;
        let text = |text: &'v str| Json::Text(Cow::Borrowed(text));
        set(&mut members, "data_name", text(leaf.data_name.as_deref().unwrap_or("-1")));
        if self.generation == Generation::Third && !members.iter().any(|(key, _)| key == "requires_grad") {
            members.push(("requires_grad".into(), Json::Null));
        }
        for statistic in ["Max", "Min", "Mean", "Norm"] {
            if !members.iter().any(|(key, _)| key == statistic) {
                members.push((statistic.into(), Json::Null));
            }
        }
        if !matches!(leaf.kind, ValueKind::Tensor | ValueKind::None) {
            let dtype = match self.generation {
                Generation::First => &*leaf.dtype,
                Generation::Third => dtype_shown(leaf),
            };
            set(&mut members, "dtype", text(dtype));
            set(&mut members, "shape", Json::Text(Cow::Owned(leaf.shape.to_string())));
            if matches!(leaf.kind, ValueKind::Plain | ValueKind::Ellipsis) {
                let content = members
                    .iter()
                    .find(|(key, _)| key == "value")
                    .map_or(Json::Null, |(_, value)| value.clone());
                for statistic in ["Max", "Min", "Mean", "Norm"] {
                    set(&mut members, statistic, content.clone());
                }
            }
        }
        if self.checksums {
            let md5 = leaf.md5.as_deref().map_or(Json::Null, text);
            set(&mut members, "md5", md5);
        }
        if let Some(merged) = &value.merged {
            for (statistic, number) in ["Max", "Min", "Mean", "Norm"].into_iter().zip(merged.statistics) {
                if let Some(number) = number {
                    set(&mut members, statistic, Json::Float(number));
                }
            }
        }
        let is_group = leaf.kind == ValueKind::Group;
        members.retain(|(key, _)| !self.is_hidden(key, is_group));
        Some(members)
    }

    fn is_hidden(self, key: &str, is_group: bool) -> bool {
        match key {
            "full_op_name" => true,
            "requires_grad" if self.generation == Generation::First => true,
            "state" if self.generation == Generation::Third => true,
            "md5" if !self.checksums => true,
            "op" | "peer" | "tag" | "group_id" if self.is_batch_p2p => true,
            "type" | "group_ranks" | "group_id" | "data_name" => false,
            _ => is_group,
        }
    }

    fn push_member(self, text: &mut String, member: &Json<'_>) {
        match member {
            Json::Text(words) => text.push_str(&cleaned(words)),
            Json::Null => text.push_str("null"),
            Json::Float(number) => self.push_float(text, *number),
            other => push_repr(text, other),
        }
    }

    /// A float as text. In the first generation it has six decimals, or six digits and an exponent.
    fn push_float(self, text: &mut String, number: f64) {
        if self.generation == Generation::Third {
            return push_float(text, number);
        }
        // Python writes others without an exponent.
        let has_exponent = number != 0.0 && !(1e-4..1e16).contains(&number.abs());
        if !has_exponent || !number.is_finite() {
            return push_float(text, round_decimals(number, DECIMALS));
        }
        let start = text.len();
        push_float(text, number);
        if text.len() - start < LONGEST_FLOAT {
            text.truncate(start);
            push_with_exponent(text, number);
        } else {
            text.truncate(start);
            push_float(text, round_decimals(number, DECIMALS));
        }
    }
}

fn set<'v>(members: &mut Vec<(Cow<'v, str>, Json<'v>)>, key: &'static str, value: Json<'v>) {
    match members.iter_mut().find(|(known, _)| known == key) {
        Some(known) => known.1 = value,
        None => members.push((key.into(), value)),
    }
}

/// `1.230000e-05`, as Python's `%.6e`.
fn push_with_exponent(text: &mut String, number: f64) {
    let written = format!("{number:.6e}");
    let Some((digits, exponent)) = written.split_once('e') else { return text.push_str(&written) };
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    let _ = write!(text, "{digits}e{sign}{exponent:0>2}");
}

/// A text without what the page of the reference stumbles over; a long decimal number is rounded.
fn cleaned(text: &str) -> Cow<'_, str> {
    if text.bytes().any(|byte| matches!(byte, b'\'' | b'N')) {
        let cleaned = text.replace('\'', "").replace("None", "null");
        return rounded(&cleaned).unwrap_or(cleaned).into();
    }
    rounded(text).map_or(Cow::Borrowed(text), Cow::Owned)
}

/// `12.345679%` of `12.3456789%`; nothing for what is no plain number, or is short enough.
fn rounded(text: &str) -> Option<String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    let (whole, decimals) = number.split_once('.')?;
    let are_digits = |part: &str| {
        (1..=MOST_DIGITS).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    if !are_digits(whole) || !are_digits(decimals) || decimals.len() <= DECIMALS as usize {
        return None;
    }
    let percent = if number.len() < text.len() { "%" } else { "" };
    Some(format!("{:.6}{percent}", number.parse::<f64>().ok()?))
}

/// A whole node's values, shared where nothing changes them.
pub type SharedValues = Arc<Vec<NodeValue>>;

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Showing = Showing { generation: Generation::First, checksums: false, is_batch_p2p: false };

    fn shown(record: &str, showing: Showing) -> String {
        let values =
            read_values(&mut ValueReader::default(), "Torch.a.0.forward", record.as_bytes()).unwrap();
        let mut json = JsonText::on_one_line();
        json.begin_object();
        for (key, outputs) in [("in", false), ("out", true)] {
            json.key(key);
            showing.write(&mut json, &values, &[], outputs);
        }
        json.end_object();
        json.finish()
    }

    #[test]
    fn numbers_are_shortened_as_the_reference_does() {
        let shown = |showing: Showing, number| {
            let mut text = String::new();
            showing.push_float(&mut text, number);
            text
        };
        let first = |number| shown(FIRST, number);
        let third = |number| shown(Showing { generation: Generation::Third, ..FIRST }, number);
        assert_eq!(
            [first(0.667_524_278_163_909_9), first(1.0), first(-2e-5), first(1e16)],
            ["0.667524", "1.0", "-2.000000e-05", "1.000000e+16"]
        );
        assert_eq!(
            [first(f64::NAN), first(f64::NEG_INFINITY), first(0.000_123_45)],
            ["nan", "-inf", "0.000123"]
        );
        assert_eq!([third(0.667_524_278_163_909_9), third(1.5e-7)], ["0.6675242781639099", "1.5e-07"]);
        assert_eq!(cleaned("12.3456789%"), "12.345679%");
        assert_eq!(cleaned("1.5%"), "1.5%");
        assert_eq!(cleaned("<class 'NoneType'>"), "<class nullType>");
        assert_eq!(cleaned("123456789012345678901.1234567"), "123456789012345678901.1234567");
    }

    #[test]
    fn values_are_shown_member_by_member() {
        let record = r#"{"input_args": [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 3], "Max": 1.25,
            "Min": -1, "Mean": NaN, "Norm": 2.0, "requires_grad": true, "md5": "abcd"}, null, {"type": "int", "value": 3}],
            "input_kwargs": {"k": {"type": "str", "value": "it's None"}, "g": {"type": "torch.ProcessGroup",
            "group_ranks": [0, 1], "group_id": "x", "more": 1}, "s": {"type": "slice", "value": [1, null, 2]}},
            "output": [[]]}"#;
        assert_eq!(
            shown(record, FIRST),
            concat!(
                r#"{"in": {"Torch.a.0.forward.input.0": {"type": "torch.Tensor", "dtype": "torch.float32", "#,
                r#""shape": "[2, 3]", "Max": "1.25", "Min": "-1", "Mean": "nan", "Norm": "2.0", "data_name": "-1"}, "#,
                r#""Torch.a.0.forward.input.1": {"value": "null"}, "#,
                r#""Torch.a.0.forward.input.2": {"type": "int", "value": "3", "data_name": "-1", "Max": "3", "#,
                r#""Min": "3", "Mean": "3", "Norm": "3", "dtype": "<class int>", "shape": "[]"}, "#,
                r#""Torch.a.0.forward.input.k": {"type": "str", "value": "its null", "data_name": "-1", "#,
                r#""Max": "its null", "Min": "its null", "Mean": "its null", "Norm": "its null", "#,
                r#""dtype": "<class str>", "shape": "[]"}, "#,
                r#""Torch.a.0.forward.input.g": {"type": "torch.ProcessGroup", "group_ranks": "[0, 1]", "#,
                r#""group_id": "x", "data_name": "-1"}, "Torch.a.0.forward.input.s": {"value": "null"}}, "out": {}}"#,
            )
        );
        let third = Showing { generation: Generation::Third, checksums: true, is_batch_p2p: false };
        assert!(
            shown(record, third).contains(r#""requires_grad": "True", "md5": "abcd", "data_name": "-1""#)
        );
    }
}
