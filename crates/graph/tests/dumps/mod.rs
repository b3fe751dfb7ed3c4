//! Small dumps made of calls, and calls on them.
#![allow(dead_code, reason = "each test uses its part")]

use std::fs;
use std::path::{Path, PathBuf};

use msprobe_graph::merge::{DEFAULT_ORDER, Strategy};
use msprobe_graph::names::Generation;
use msprobe_graph::run::{GraphOutcome, Options, run};
use msprobe_report::console::Remembered;
use msprobe_report::error::CompareError;
use rusqlite::Connection;
use serde_json::{Value, json};

pub(crate) fn tensor(value: f64) -> Value {
    json!({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 2], "Max": value, "Min": -value, "Mean": 0.0,
        "Norm": value, "requires_grad": false})
}

/// A dump of calls, each with its parent, what goes in and what comes out.
pub(crate) fn write_dump(dir: &Path, calls: &[(&str, Option<&str>, f64, f64)]) {
    fs::create_dir_all(dir).unwrap();
    let (mut construct, mut data, mut stack) = (json!({}), json!({}), json!({}));
    for (name, parent, input, output) in calls {
        construct[name] = json!(parent);
        data[name] = json!({"input_args": [tensor(*input)], "input_kwargs": {}, "output": [tensor(*output)]});
        stack[name] = json!([format!("File model.py, line 1, in forward, \n {name}")]);
    }
    let dump = json!({"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": null, "data": data});
    for (file, value) in [("construct.json", construct), ("dump.json", dump), ("stack.json", stack)] {
        fs::write(dir.join(file), value.to_string()).unwrap();
    }
}

pub(crate) const CALLS: [(&str, Option<&str>, f64, f64); 2] = [
    ("Torch.a.0.forward", Some("Module.net.Net.forward.0"), 1.0, 2.0),
    ("Module.net.Net.forward.0", None, 1.0, 2.0),
];

pub(crate) struct Dirs(tempfile::TempDir);

impl Dirs {
    pub(crate) fn new() -> Dirs {
        Dirs(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn options(&self, generation: Generation, compare: bool) -> Options {
        Options {
            golden: compare.then(|| self.path("golden")),
            ..Options::new(generation, &self.path("target"), &self.path("out"))
        }
    }
}

pub(crate) fn call(options: &Options) -> (Result<GraphOutcome, CompareError>, String) {
    let heard = Remembered::default();
    let outcome = run(options, &heard, &|_| {});
    (outcome, heard.said(|_| true).join("\n"))
}

pub(crate) fn rows(path: &Path, sql: &str) -> Vec<Vec<String>> {
    let connection = Connection::open(path).unwrap();
    let mut statement = connection.prepare(sql).unwrap();
    let columns = statement.column_count();
    let row = |row: &rusqlite::Row<'_>| {
        (0..columns)
            .map(|at| {
                Ok(match row.get_ref(at)? {
                    rusqlite::types::ValueRef::Null => "-".to_owned(),
                    rusqlite::types::ValueRef::Integer(number) => number.to_string(),
                    rusqlite::types::ValueRef::Real(number) => number.to_string(),
                    other => other.as_str().unwrap_or("?").to_owned(),
                })
            })
            .collect::<rusqlite::Result<Vec<String>>>()
    };
    statement.query_map([], row).unwrap().map(Result::unwrap).collect()
}

pub(crate) fn strategy(rank_size: u32, tp: u32, pp: u32) -> Strategy {
    Strategy { rank_size, tp, pp, vpp: 1, cp: 1, ep: 1, order: DEFAULT_ORDER.to_owned() }
}
