//! Opening a file that anybody may have written, and what is true of all of it.
//!
//! Tables have to be tables: a view, a virtual table or a computed column under a name we ask for could run anything. Functions
//! are not called from the schema, texts have a length, damaged cells are looked for, and nothing is written while reading.

use std::fmt::Write;
use std::path::Path;

use msprobe_report::Tone;
use msprobe_report::answer::Status;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row};
use serde_json::Value;

use crate::fault::Fault;
use crate::wire::{Colour, RankAnswer};

/// No text or row is longer: values of one node are.
const LONGEST_BYTES: i32 = 48 << 20;
/// Memory for pages, for each connection.
const CACHE_KIB: i32 = 6144;
/// Steps, ranks, colours, help texts and answers that are shown.
const MOST_LISTED: usize = 100_000;

const NODE_COLUMNS: [&str; 21] = [
    "id",
    "graph_id",
    "node_order",
    "node_name",
    "node_type",
    "up_node",
    "sub_nodes",
    "precision_index",
    "overflow_level",
    "micro_step_id",
    "matched_node_link",
    "stack_id",
    "parallel_merge_info",
    "matched_distributed",
    "modified",
    "input_data",
    "output_data",
    "data_source",
    "dump_data_dir",
    "step",
    "rank",
];

/// Whether a file begins as a store does.
fn is_store(path: &Path) -> bool {
    use std::io::Read;
    let mut head = [0; 16];
    let opened = msprobe_tensor::files::open_regular(path, msprobe_tensor::files::Links::Refuse);
    opened.is_ok_and(|mut file| file.read_exact(&mut head).is_ok()) && &head == b"SQLite format 3\0"
}

fn protect(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, LONGEST_BYTES)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.busy_timeout(std::time::Duration::from_secs(2))?;
    connection.execute_batch(&format!(
        "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA cache_size = -{CACHE_KIB}; PRAGMA temp_store = FILE;"
    ))
}

/// What a file is meant to be, for who is told that it is none.
pub(crate) struct FileKind {
    pub(crate) what: &'static str,
    pub(crate) hint: &'static str,
}

pub(super) const GRAPH: FileKind =
    FileKind { what: "a graph file", hint: "make it again with msprobe graph_visualize" };

/// Opens a file to read. One in a directory nobody may write to is taken as it lies there, whatever its journal.
pub(crate) fn open_to_read(path: &Path, kind: &FileKind) -> Result<Connection, Fault> {
    if !is_store(path) {
        return Err(
            Fault::unreadable(format!("{} is not {}", path.display(), kind.what)).with_hint(kind.hint)
        );
    }
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags)?;
    protect(&connection)?;
    let is_readable = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
    let connection = match is_readable {
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::CannotOpen) => {
            let uri = format!("file:{}?immutable=1", uri_path(path));
            let connection = Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)?;
            protect(&connection)?;
            connection
        }
        other => {
            other?;
            connection
        }
    };
    connection.execute_batch("PRAGMA query_only = ON;")?;
    Ok(connection)
}

/// Opens a store to save pairs in it.
pub(crate) fn open_for_writing(path: &Path) -> Result<Connection, Fault> {
    if !is_store(path) {
        return Err(
            Fault::unreadable(format!("{} is not {}", path.display(), GRAPH.what)).with_hint(GRAPH.hint)
        );
    }
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags)?;
    protect(&connection)?;
    Schema::read(&connection)?;
    let triggers: i64 =
        connection
            .query_row("SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'", [], |row| row.get(0))?;
    if triggers > 0 {
        return Err(Fault::unreadable("the file has triggers, so nothing is written to it")
            .with_hint("make the graph again with msprobe graph_visualize"));
    }
    Ok(connection)
}

/// A path inside a file: URI.
fn uri_path(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let mut text = String::new();
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'_' | b'-') {
            text.push(byte.into());
        } else {
            // Writing to a string does not fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// Which tables there are.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Schema {
    pub(crate) verdicts: bool,
    pub(crate) answers: bool,
    pub(crate) shapes: bool,
}

impl Schema {
    pub(super) fn read(connection: &Connection) -> Result<Schema, Fault> {
        let refused = |what: String| {
            Err(Fault::unreadable(format!("this is no graph file: {what}"))
                .with_hint("make it again with msprobe graph_visualize"))
        };
        let nodes = columns(connection, "tb_nodes")?;
        for needed in NODE_COLUMNS {
            if !nodes.iter().any(|column| column == needed) {
                return refused(format!("the table tb_nodes has no column {needed}"));
            }
        }
        for (table, needed) in [
            ("tb_stack", &["id", "stack_info"][..]),
            (
                "tb_config",
                &[
                    "graph_type",
                    "task",
                    "tool_tip",
                    "micro_steps",
                    "overflow_check",
                    "node_colors",
                    "rank_list",
                    "step_list",
                ],
            ),
        ] {
            let found = columns(connection, table)?;
            if let Some(missing) = needed.iter().find(|needed| !found.iter().any(|column| column == *needed))
            {
                return refused(format!("the table {table} has no column {missing}"));
            }
        }
        let has = |table: &str, needed: &[&str]| -> Result<bool, Fault> {
            let found = columns(connection, table)?;
            Ok(needed.iter().all(|needed| found.iter().any(|column| column == needed)))
        };
        Ok(Schema {
            verdicts: has(
                msprobe_graph::store::db::VERDICTS,
                &["id", "verdict", "error_in", "error_out", "tolerated", "orphan"],
            )?,
            answers: has(
                msprobe_graph::store::db::ANSWERS,
                &["step", "rank", "status", "headline", "culprit", "culprit_node", "answer"],
            )?,
            shapes: has(msprobe_graph::store::db::SHAPES, &["id", "value", "shape", "note"])?,
        })
    }
}

/// Columns of a table that is one; none if there is no table.
pub(crate) fn columns(connection: &Connection, table: &str) -> Result<Vec<String>, Fault> {
    let mut statement = connection.prepare("SELECT type, sql FROM sqlite_schema WHERE name = ?1")?;
    let mut rows = statement.query([table])?;
    let Some(row) = rows.next()? else { return Ok(Vec::new()) };
    let (kind, sql) = (text(row, 0)?, text(row, 1)?);
    let begins = sql.split_whitespace().take(2).collect::<Vec<_>>().join(" ").to_ascii_uppercase();
    if kind != "table" || begins != "CREATE TABLE" {
        return Err(Fault::unreadable(format!("{table} in the file is no plain table")));
    }
    let mut statement = connection.prepare("SELECT name, hidden FROM pragma_table_xinfo(?1)")?;
    let mut rows = statement.query([table])?;
    let mut names = Vec::new();
    while let Some(row) = rows.next()? {
        if number(row, 1)? != Some(0) {
            return Err(Fault::unreadable(format!("{table} in the file has columns that are computed")));
        }
        names.push(text(row, 0)?);
    }
    Ok(names)
}

/// A text, whatever was stored.
pub(crate) fn text(row: &Row<'_>, at: usize) -> rusqlite::Result<String> {
    Ok(match row.get_ref(at)? {
        ValueRef::Null => String::new(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    })
}

/// A text, or nothing for NULL and for the empty one.
pub(super) fn some_text(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<String>> {
    Ok(Some(text(row, at)?).filter(|text| !text.is_empty()))
}

/// A whole number, whatever was stored.
pub(crate) fn number(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<i64>> {
    Ok(match row.get_ref(at)? {
        ValueRef::Integer(number) => Some(number),
        ValueRef::Real(number) if number.is_finite() => Some(number as i64),
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).ok().and_then(|text| text.trim().parse().ok()),
        _ => None,
    })
}

/// A number, whatever was stored.
pub(crate) fn real(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<f64>> {
    Ok(match row.get_ref(at)? {
        ValueRef::Integer(number) => Some(number as f64),
        ValueRef::Real(number) => Some(number),
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).ok().and_then(|text| text.trim().parse().ok()),
        _ => None,
    })
}

/// What is true of all nodes.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) is_comparison: bool,
    pub(crate) task: String,
    pub(crate) tool_tips: serde_json::Map<String, Value>,
    pub(crate) colours: Vec<Colour>,
    pub(crate) micro_steps: i64,
    pub(crate) overflow_check: bool,
    pub(crate) has_verdicts: bool,
    pub(crate) steps: Vec<i64>,
    pub(crate) ranks: Vec<i64>,
    pub(crate) answers: Vec<RankAnswer>,
    /// The worst answer of all, whole.
    pub(crate) worst_answer: Option<Value>,
    pub(crate) nodes: u64,
}

impl Facts {
    pub(super) fn read(connection: &Connection, schema: Schema) -> Result<Facts, Fault> {
        let mut statement = connection.prepare(
            "SELECT graph_type, task, tool_tip, micro_steps, overflow_check, node_colors, rank_list, step_list FROM tb_config LIMIT 1",
        )?;
        let mut rows = statement.query([])?;
        let Some(row) = rows.next()? else {
            return Err(Fault::unreadable("the file has no row in tb_config: it is not finished")
                .with_hint("wait for the program that writes it, or make it again"));
        };
        let tips = match serde_json::from_str(&text(row, 2)?) {
            Ok(Value::Object(tips)) => tips.into_iter().take(MOST_LISTED).collect(),
            _ => serde_json::Map::new(),
        };
        let mut facts = Facts {
            is_comparison: text(row, 0)? == "compare",
            task: text(row, 1)?,
            tool_tips: tips,
            colours: colours(&text(row, 5)?),
            micro_steps: number(row, 3)?.unwrap_or(1).max(1),
            overflow_check: number(row, 4)?.unwrap_or(0) != 0,
            has_verdicts: false,
            ranks: numbers(&text(row, 6)?),
            steps: numbers(&text(row, 7)?),
            answers: Vec::new(),
            worst_answer: None,
            nodes: 0,
        };
        if schema.answers {
            facts.read_answers(connection)?;
        }
        facts.has_verdicts = schema.verdicts && !facts.answers.is_empty();
        // As many as the largest number of a row: nothing is counted one by one.
        facts.nodes = connection
            .query_row("SELECT max(rowid) FROM tb_nodes", [], |row| number(row, 0))?
            .and_then(|rows| u64::try_from(rows).ok())
            .unwrap_or(0);
        Ok(facts)
    }

    fn read_answers(&mut self, connection: &Connection) -> Result<(), Fault> {
        let mut statement = connection.prepare(
            "SELECT step, rank, status, headline, culprit, culprit_node, answer FROM msprobe_answers ORDER BY step, rank",
        )?;
        let mut rows = statement.query([])?;
        let mut worst: Option<(Status, Value)> = None;
        while let Some(row) = rows.next()? {
            if self.answers.len() >= MOST_LISTED {
                break;
            }
            let (step, rank) = (number(row, 0)?.unwrap_or(0), number(row, 1)?.unwrap_or(0));
            let words = text(row, 2)?;
            let status = Status::all().find(|status| status.as_str() == words);
            // `NPU_0_0_` stands before the name.
            let place = format!("NPU_{step}_{rank}_");
            let node = some_text(row, 5)?.map(|node| node.strip_prefix(&place).unwrap_or(&node).to_owned());
            self.answers.push(RankAnswer {
                step,
                rank,
                status: words,
                tone: status.map_or(Tone::Plain, Status::tone),
                headline: text(row, 3)?,
                culprit: some_text(row, 4)?,
                node,
            });
            if let Some(status) = status
                && worst.as_ref().is_none_or(|(known, _)| status > *known)
                && let Ok(answer) = serde_json::from_str(&text(row, 6)?)
            {
                worst = Some((status, answer));
            }
        }
        self.worst_answer = worst.map(|(_, answer)| answer);
        Ok(())
    }

    /// How bad an index is: by the colours of the file, from the first to the last.
    pub(crate) fn tone_of_index(&self, index: f64) -> Tone {
        let ranges: Vec<&Colour> = self.colours.iter().filter(|colour| colour.range.len() == 2).collect();
        let holds = |colour: &&Colour| {
            let [from, to] = colour.range[..] else { return false };
            if from == to { index == from } else { index >= from && (index < to || to >= 1.0 && index <= to) }
        };
        match ranges.iter().position(holds) {
            Some(0) => Tone::Good,
            Some(at) if at + 1 == ranges.len() => Tone::Bad,
            Some(_) => Tone::Warning,
            None if index.is_nan() => Tone::Unknown,
            // Beyond what the file has colours for.
            None => Tone::Bad,
        }
    }
}

fn numbers(list: &str) -> Vec<i64> {
    let Ok(Value::Array(numbers)) = serde_json::from_str(list) else { return Vec::new() };
    let whole = |number: &Value| number.as_i64().or_else(|| number.as_str()?.parse().ok());
    numbers.iter().take(MOST_LISTED).filter_map(whole).collect()
}

fn colours(text: &str) -> Vec<Colour> {
    let Ok(Value::Object(colours)) = serde_json::from_str(text) else { return Vec::new() };
    let colour = |(hex, about): (String, Value)| {
        let bounds = about.get("value").and_then(Value::as_array);
        let range: Vec<f64> = bounds.into_iter().flatten().filter_map(Value::as_f64).collect();
        let is_hex =
            hex.len() == 7 && hex.starts_with('#') && hex[1..].bytes().all(|byte| byte.is_ascii_hexdigit());
        let description = about.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
        (is_hex && matches!(range.len(), 0 | 2)).then_some(Colour { hex, range, description })
    };
    colours.into_iter().take(64).filter_map(colour).collect()
}
