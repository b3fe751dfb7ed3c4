//! Recorded cases: inputs, and what the reference made of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use msprobe_graph::names::Generation;
use msprobe_graph::run::{Options, run};
use msprobe_report::console::Silent;
use rusqlite::types::Value as Sql;
use serde_json::{Map, Value};

pub(crate) struct Case {
    dir: PathBuf,
}

/// Files by name without the time.
pub(crate) type Files = BTreeMap<String, Value>;

impl Case {
    pub(crate) fn new(name: &str) -> Case {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/graph").join(name);
        assert!(dir.is_dir(), "{}", dir.display());
        Case { dir }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn run(&self, generation: Generation, compare: bool, change: impl Fn(&mut Options)) -> Files {
        let out = tempfile::tempdir().unwrap();
        let mut options = Options {
            golden: compare.then(|| self.dir.join("bench_dump")),
            ..Options::new(generation, &self.dir.join("npu_dump"), out.path())
        };
        change(&mut options);
        let outcome = run(&options, &Silent, &|_| {}).unwrap();
        assert!(outcome.is_all_read(), "{:?}", outcome.left_out);
        read_files(out.path())
    }

    pub(crate) fn expected(&self, out: &str) -> Files {
        read_files(&self.dir.join(out))
    }
}

fn read_files(dir: &Path) -> Files {
    let mut files = Files::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let is_database = path.extension().is_some_and(|extension| extension == "db");
        // Where the file itself was recorded too, its rendering says the same.
        let value = if is_database {
            tables(&path)
        } else {
            serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap()
        };
        let name = name.strip_suffix(".json").unwrap_or(&name);
        // The time is the last part of the stem.
        let (stem, rest) = name.split_once('.').unwrap();
        let stem = stem.rsplit_once('_').unwrap().0;
        files.insert(format!("{stem}.{rest}"), value);
    }
    files
}

/// The tables of a file, columns that hold JSON taken apart as the recording has them.
fn tables(path: &Path) -> Value {
    let connection =
        rusqlite::Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let mut tables = Map::new();
    let mut schema = connection
        .prepare("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'msprobe_%' ORDER BY type DESC, name")
        .unwrap();
    let schema: Vec<Value> =
        schema.query_map([], |row| row.get::<_, String>(0)).unwrap().map(|sql| sql.unwrap().into()).collect();
    tables.insert("schema".to_owned(), schema.into());
    for table in ["tb_config", "tb_nodes", "tb_stack"] {
        let mut statement = connection.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let rows = statement
            .query_map([], |row| {
                let mut object = Map::new();
                for (at, column) in columns.iter().enumerate() {
                    object.insert(column.clone(), cell(row.get::<_, Sql>(at)?));
                }
                Ok(Value::Object(object))
            })
            .unwrap();
        tables.insert(table.to_owned(), rows.map(Result::unwrap).collect());
    }
    Value::Object(tables)
}

fn cell(value: Sql) -> Value {
    match value {
        Sql::Null => Value::Null,
        Sql::Integer(number) => number.into(),
        Sql::Real(number) => number.into(),
        Sql::Text(text) if text.starts_with(['[', '{']) || text == "null" => {
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        }
        Sql::Text(text) => text.into(),
        Sql::Blob(_) => unreachable!("no column holds bytes"),
    }
}

pub(crate) fn assert_same_vis(ours: &Files, expected: &Files) {
    assert_eq!(ours.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (name, value) in expected {
        same(name, &ours[name], value);
    }
}

pub(crate) fn assert_same_db(ours: &Files, expected: &Files) {
    assert_eq!(ours.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (name, value) in expected {
        let squeezed = |tables: &Value| -> Vec<String> {
            let text = |sql: &Value| sql.as_str().unwrap().split_whitespace().collect::<String>();
            let mut sqls: Vec<String> = tables["schema"].as_array().unwrap().iter().map(text).collect();
            sqls.sort();
            sqls
        };
        assert_eq!(squeezed(&ours[name]), squeezed(value), "{name}: schema");
        for table in ["tb_config", "tb_nodes", "tb_stack"] {
            same(&format!("{name}.{table}"), &ours[name][table], &value[table]);
        }
    }
}

/// Equal values, with members in the same order.
fn same(at: &str, ours: &Value, expected: &Value) {
    match (ours, expected) {
        (Value::Object(one), Value::Object(two)) => {
            let keys = |map: &Map<String, Value>| map.keys().cloned().collect::<Vec<_>>();
            assert_eq!(keys(one), keys(two), "{at}: keys");
            for (key, value) in two {
                same(&format!("{at}/{key}"), &one[key], value);
            }
        }
        (Value::Array(one), Value::Array(two)) => {
            assert_eq!(one.len(), two.len(), "{at}: ours {ours} expected {expected}");
            for (index, (one, two)) in one.iter().zip(two).enumerate() {
                same(&format!("{at}/{index}"), one, two);
            }
        }
        (Value::Number(one), Value::Number(two)) => {
            let (one, two) = (one.as_f64().unwrap(), two.as_f64().unwrap());
            assert!((one - two).abs() <= 1e-12, "{at}: {one} and {two}");
        }
        _ => assert_eq!(ours, expected, "{at}"),
    }
}
