//! The file of the analysis, as the reference writes it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use msprobe_dump::hash::FastMap;
use msprobe_dump::model::{Construct, find_stacks};
use msprobe_dump::read::Json;
use msprobe_dump::write::JsonText;
use msprobe_report::console::Console;
use msprobe_report::output::{make_directory, publish_numbered};

use super::Findings;
use crate::rank::RankDump;
use crate::record::Record;

/// Writes `anomaly_analyze_{time_ns}.json` into the directory `output`, which is made if need be, and returns its path.
/// What cannot be read of the dumps any more is left out with a warning.
pub fn write(
    findings: &Findings,
    ranks: &[RankDump],
    output: &Path,
    time_ns: u128,
    console: &dyn Console,
) -> io::Result<PathBuf> {
    let mut text = JsonText::indented(2);
    text.begin_object();
    for (dump, records) in by_rank(findings, ranks) {
        let context = Context::read(dump, &records, console);
        text.key(&format!("rank_{}", dump.dir.rank));
        text.begin_array();
        for record in records {
            put_record(&mut text, dump, record, &context, console);
        }
        text.end_array();
    }
    text.end_object();
    make_directory(output)?;
    let path = output.join(format!("anomaly_analyze_{time_ns}.json"));
    let text = text.finish();
    publish_numbered(&path, |file| file.write_all(text.as_bytes()))
}

/// The records found, by their rank, in the order in which the ranks come first.
fn by_rank<'a>(findings: &Findings, ranks: &'a [RankDump]) -> Vec<(&'a RankDump, Vec<&'a Record>)> {
    let mut places: FastMap<usize, usize> = FastMap::default();
    let mut found: Vec<(&RankDump, Vec<&Record>)> = Vec::new();
    for anomaly in &findings.anomalies {
        let Some(dump) = ranks.get(anomaly.rank_index) else { continue };
        let Some(record) = dump.records.get(anomaly.record) else { continue };
        let place = *places.entry(anomaly.rank_index).or_insert(found.len());
        if place == found.len() {
            found.push((dump, Vec::new()));
        }
        found[place].1.push(record);
    }
    found
}

/// What stands beside the dump of one rank.
struct Context {
    construct: Construct,
    stacks: HashMap<String, Vec<String>>,
}

impl Context {
    fn read(dump: &RankDump, records: &[&Record], console: &dyn Console) -> Context {
        let names: HashSet<&str> = records.iter().map(|record| &*record.name).collect();
        let warn = |what: &str, error: &dyn std::fmt::Display| {
            console.warning(&format!("rank {}: {what}: {error}", dump.dir.rank));
        };
        let construct = Construct::read(&dump.dir.path).unwrap_or_else(|error| {
            warn("the modules around an anomaly are not known", &error);
            Construct::default()
        });
        if let Some(error) = construct.problem() {
            warn("the modules around an anomaly may not all be known", error);
        }
        let stacks = find_stacks(&dump.dir.path, &names).unwrap_or_else(|error| {
            warn("the call stack of an anomaly is not known", &error);
            HashMap::new()
        });
        Context { construct, stacks }
    }
}

fn put_record(
    text: &mut JsonText,
    dump: &RankDump,
    record: &Record,
    context: &Context,
    console: &dyn Console,
) {
    text.begin_object();
    text.key("op_name");
    text.string(&record.name);
    text.key("data_info");
    let bytes = dump.read_again(record).unwrap_or_else(|error| {
        console.warning(&format!("rank {}: {} cannot be read again: {error}", dump.dir.rank, record.name));
        b"{}".to_vec()
    });
    let data = Json::parse(&bytes).unwrap_or_else(|(what, _)| {
        console.warning(&format!("rank {}: {} cannot be read again: {what}", dump.dir.rank, record.name));
        Json::Null
    });
    put_data(text, &record.name, &data);
    text.key("construct_info");
    text.begin_array();
    for name in context.construct.ancestors(&record.name).into_iter().chain([&*record.name]) {
        text.string(name);
    }
    text.end_array();
    text.key("stack_info");
    match context.stacks.get(&*record.name) {
        Some(frames) => {
            text.begin_array();
            for frame in frames {
                text.string(frame);
            }
            text.end_array();
        }
        None => put(text, &Json::Map(Vec::new())),
    }
    text.end_object();
}

/// The sections of a record that its direction has.
fn put_data(text: &mut JsonText, name: &str, data: &Json<'_>) {
    let (list, map) = (Json::List(Vec::new()), Json::Map(Vec::new()));
    let sections: &[(&str, &Json<'_>)] = if name.contains("forward") {
        &[("input_args", &list), ("input_kwargs", &map), ("output", &map)]
    } else {
        &[("input", &list), ("output", &map)]
    };
    text.begin_object();
    for (key, absent) in sections {
        text.key(key);
        put(text, data.get(key).unwrap_or(absent));
    }
    text.end_object();
}

fn put(text: &mut JsonText, value: &Json<'_>) {
    match value {
        Json::Null => text.null(),
        Json::Bool(value) => text.bool(*value),
        Json::Int(value) => text.int(*value),
        Json::Float(value) => text.float(*value),
        Json::Text(value) => text.string(value),
        Json::List(items) => {
            text.begin_array();
            for item in items {
                put(text, item);
            }
            text.end_array();
        }
        Json::Map(members) => put_map(text, members),
    }
}

/// A repeated key counts as it does for Python: its last value, at the place of the first.
fn put_map(text: &mut JsonText, members: &[(Cow<'_, str>, Json<'_>)]) {
    let mut last: FastMap<&str, &Json<'_>> = members.iter().map(|(key, value)| (&**key, value)).collect();
    text.begin_object();
    for (key, _) in members {
        if let Some(value) = last.remove(&**key) {
            text.key(key);
            put(text, value);
        }
    }
    text.end_object();
}

#[cfg(test)]
mod tests {
    use msprobe_report::console::Remembered;

    use super::*;
    use crate::phases::find;
    use crate::rank::RankDir;

    const BAD: &str = "{\"Max\": NaN}";

    /// The text written for one record of rank 3 with these files, and the warnings.
    fn written(name: &str, record: &str, files: &[(&str, &str)]) -> (String, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("dump.json"), format!("{{\"data\": {{\"{name}\": {record}}}}}"))
            .unwrap();
        for (file, text) in files {
            std::fs::write(dir.path().join(file), text).unwrap();
        }
        let place = RankDir { rank: 3, path: dir.path().to_owned() };
        let ranks = [RankDump::read(place, &mut (), &|_| ()).unwrap()];
        let console = Remembered::default();
        let path = write(&find(&ranks), &ranks, dir.path(), 0, &console).unwrap();
        (std::fs::read_to_string(path).unwrap(), console.said(|_| true))
    }

    #[test]
    fn values_are_written_as_python_does() {
        let output = "[{\"Max\": Infinity, \"Min\": -Infinity, \"Mean\": 1e-7, \"Norm\": 1E+22, \"n\": 12345678901234567890123, \
                      \"x\": 0.10, \"é\": \"\\u00e9\\t☃\", \"e\": [], \"m\": {}, \"x\": 2, \"b\": [true, null]}]";
        let (text, warnings) = written(
            "Torch.a.0.backward",
            &format!("{{\"input\": [], \"input_args\": [1], \"output\": {output}}}"),
            &[
                ("construct.json", "{\"Torch.a.0.backward\": \"M\"}"),
                ("stack.json", "{\"Torch.a.0.backward\": [\"f\"]}"),
            ],
        );
        let expected = "{
  \"rank_3\": [
    {
      \"op_name\": \"Torch.a.0.backward\",
      \"data_info\": {
        \"input\": [],
        \"output\": [
          {
            \"Max\": Infinity,
            \"Min\": -Infinity,
            \"Mean\": 1e-07,
            \"Norm\": 1e+22,
            \"n\": 12345678901234567890123,
            \"x\": 2,
            \"\\u00e9\": \"\\u00e9\\t\\u2603\",
            \"e\": [],
            \"m\": {},
            \"b\": [
              true,
              null
            ]
          }
        ]
      },
      \"construct_info\": [
        \"M\",
        \"Torch.a.0.backward\"
      ],
      \"stack_info\": [
        \"f\"
      ]
    }
  ]
}";
        assert_eq!(text, expected);
        assert!(warnings.is_empty(), "{warnings:?}");
    }

    #[test]
    fn what_is_absent_is_empty() {
        let (text, warnings) = written("Torch.a.0.forward", &format!("{{\"output\": [{BAD}]}}"), &[]);
        let text = text.split_whitespace().collect::<String>();
        assert!(text.contains("\"input_args\":[],\"input_kwargs\":{},\"output\":[{\"Max\":NaN}]"), "{text}");
        assert!(text.contains("\"construct_info\":[\"Torch.a.0.forward\"],\"stack_info\":{}"), "{text}");
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[0].contains("construct.json") && warnings[1].contains("stack.json"), "{warnings:?}");
    }

    #[test]
    fn broken_files_are_warnings() {
        let files = [("construct.json", "{\"Torch.a.0.backward\": \"M\", \"x"), ("stack.json", "[]")];
        let (text, warnings) = written("Torch.a.0.backward", &format!("{{\"output\": [{BAD}]}}"), &files);
        assert!(text.contains("\"M\"") && text.contains("\"stack_info\": {}"), "{text}");
        assert_eq!(warnings.len(), 2, "{warnings:?}");
    }
}
