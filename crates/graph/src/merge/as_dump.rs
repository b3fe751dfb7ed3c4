//! Merged ranks as a dump again: `step0/rank0/{construct,dump,stack}.json`, with what merging says of each record.

use std::io::{self, Write};
use std::path::PathBuf;

use msprobe_compare::side::Role;
use msprobe_dump::read::Json;
use msprobe_dump::write::JsonText;
use msprobe_report::error::CompareError;
use msprobe_report::paths::{make_directory_in, publish_stamped};

use super::members::Member;
use crate::graph::NodeReader;
use crate::hierarchy::{Hierarchy, NodeIndex};
use crate::run::Options;
use crate::stacks::NodeStack;
use crate::values::NodeValue;

/// Texts are given away when they are longer than this.
const FLUSH_BYTES: usize = 1 << 16;

/// Writes the dump of a merged graph, and gives the files.
pub(super) fn write(
    member: &Member,
    step: Option<u32>,
    options: &Options,
) -> Result<Vec<PathBuf>, CompareError> {
    let relative = format!("step{}/rank{}", step.unwrap_or(0), member.rank);
    let dir = make_directory_in(&options.output, &relative)?;
    let written = |name: &str, write: fn(&Member, &mut dyn Write) -> io::Result<()>| {
        publish_stamped(&dir.join(name), |out| write(member, out))
    };
    Ok(vec![
        written("construct.json", write_construct)?,
        written("dump.json", write_records)?,
        written("stack.json", write_stacks)?,
    ])
}

/// Nodes of calls, in the order of execution.
pub(super) fn calls(hierarchy: &Hierarchy) -> Vec<NodeIndex> {
    hierarchy
        .pre_order(Hierarchy::ROOT)
        .into_iter()
        .filter(|&index| index != Hierarchy::ROOT && !hierarchy.node(index).kind.is_collection())
        .collect()
}

fn write_construct(member: &Member, out: &mut dyn Write) -> io::Result<()> {
    let hierarchy = &member.graph.hierarchy;
    let mut json = JsonText::indented(1);
    json.begin_object();
    for index in calls(hierarchy) {
        let node = hierarchy.node(index);
        json.key(&node.name);
        let above =
            node.parent.map(|parent| hierarchy.node(parent)).filter(|parent| !parent.kind.is_collection());
        match above.filter(|parent| parent.parent.is_some()) {
            Some(parent) => json.string(&parent.name),
            None => json.null(),
        }
        flush(&mut json, out)?;
    }
    json.end_object();
    json.flush_to(out)
}

fn write_records(member: &Member, out: &mut dyn Write) -> io::Result<()> {
    let hierarchy = &member.graph.hierarchy;
    let header = &member.graph.files.header;
    let mut json = JsonText::indented(1);
    json.begin_object();
    let texts = [("task", &header.task), ("level", &header.level), ("framework", &header.framework)];
    for (key, text) in texts {
        json.key(key);
        match text {
            Some(text) => json.string(text),
            None => json.null(),
        }
    }
    json.key("dump_data_dir");
    json.null();
    json.key("is_merged");
    json.bool(true);
    json.key("data");
    json.begin_object();
    let mut reader = NodeReader::default();
    for index in calls(hierarchy) {
        let values = member.values(index, &mut reader);
        let sentences = member.graph.merge_info.get(&index);
        if values.is_empty() && sentences.is_none() {
            continue;
        }
        json.key(&hierarchy.node(index).name);
        write_record(&mut json, &values, sentences);
        flush(&mut json, out)?;
    }
    json.end_object();
    json.end_object();
    json.flush_to(out)
}

fn write_record(json: &mut JsonText, values: &[NodeValue], sentences: Option<&Vec<String>>) {
    let of = |role: Role| values.iter().filter(move |value| value.leaf.role == role);
    let is_positional = |value: &&NodeValue| {
        let place = value.leaf.place.split('.').nth(1).unwrap_or_default();
        !place.is_empty() && place.bytes().all(|byte| byte.is_ascii_digit())
    };
    json.begin_object();
    if of(Role::ParametersGrad).next().is_some() {
        for value in of(Role::ParametersGrad) {
            json.key(&value.leaf.place);
            json.begin_array();
            write_value(json, value);
            json.end_array();
        }
    } else {
        json.key("input_args");
        json.begin_array();
        of(Role::Input).filter(is_positional).for_each(|value| write_value(json, value));
        json.end_array();
        json.key("input_kwargs");
        json.begin_object();
        for value in of(Role::Input).filter(|value| !is_positional(value)) {
            json.key(value.leaf.place.strip_prefix("input.").unwrap_or(&value.leaf.place));
            write_value(json, value);
        }
        json.end_object();
        json.key("output");
        json.begin_array();
        of(Role::Output).for_each(|value| write_value(json, value));
        json.end_array();
        if of(Role::Parameters).next().is_some() {
            json.key("parameters");
            json.begin_object();
            for value in of(Role::Parameters) {
                json.key(value.leaf.place.strip_prefix("parameters.").unwrap_or(&value.leaf.place));
                write_value(json, value);
            }
            json.end_object();
        }
    }
    if let Some(sentences) = sentences {
        json.key("parallel_merge_info");
        json.begin_array();
        for sentence in sentences {
            json.string(sentence);
        }
        json.end_array();
    }
    json.end_object();
}

fn write_value(json: &mut JsonText, value: &NodeValue) {
    let Ok(Json::Map(members)) = Json::parse(&value.written) else {
        json.null();
        return;
    };
    let merged = value.merged.as_ref().map(|merged| merged.statistics).unwrap_or_default();
    json.begin_object();
    for (key, member) in &members {
        json.key(key);
        let statistic = ["Max", "Min", "Mean", "Norm"].iter().position(|name| name == key);
        match statistic.and_then(|at| merged[at]) {
            Some(number) => json.float(number),
            None => write_json(json, member, 0),
        }
    }
    json.end_object();
}

fn write_json(json: &mut JsonText, value: &Json<'_>, depth: usize) {
    match value {
        Json::Null => json.null(),
        Json::Bool(flag) => json.bool(*flag),
        Json::Int(number) => json.int(*number),
        Json::Float(number) => json.float(*number),
        Json::Text(text) => json.string(text),
        // What was read is not nested deeper than a reader allows.
        Json::List(_) | Json::Map(_) if depth > 128 => json.null(),
        Json::List(elements) => {
            json.begin_array();
            for element in elements {
                write_json(json, element, depth + 1);
            }
            json.end_array();
        }
        Json::Map(members) => {
            json.begin_object();
            for (key, member) in members {
                json.key(key);
                write_json(json, member, depth + 1);
            }
            json.end_object();
        }
    }
}

fn write_stacks(member: &Member, out: &mut dyn Write) -> io::Result<()> {
    let hierarchy = &member.graph.hierarchy;
    let mut json = JsonText::indented(1);
    json.begin_object();
    for index in calls(hierarchy) {
        let node = hierarchy.node(index);
        if matches!(node.stack, NodeStack::Empty | NodeStack::NoForward) {
            continue;
        }
        json.key(&node.name);
        json.begin_array();
        node.stack.lines().for_each(|line| json.string(line));
        json.end_array();
        flush(&mut json, out)?;
    }
    json.end_object();
    json.flush_to(out)
}

fn flush(json: &mut JsonText, out: &mut dyn Write) -> io::Result<()> {
    if json.len() > FLUSH_BYTES { json.flush_to(out) } else { Ok(()) }
}
