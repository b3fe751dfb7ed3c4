//! What the answers of commands rest on, as tables and matrices.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use msprobe_report::Tone;
use msprobe_tensor::files::{Links, open_regular};
use serde_json::{Map, Value};

use super::answers::members_of;
use super::scan::Entries;
use crate::fault::Fault;
use crate::wire::{ItemTable, ItemTables, Matrix, MatrixCell, Num};

/// Rows of one table.
const MOST_ROWS: usize = 5000;
/// Cells of one matrix.
const MOST_CELLS: usize = 400_000;
/// Tables of one item.
const MOST_TABLES: usize = 24;

/// The lists in the JSON of a command, and the csv files beside it that its answer names.
pub(crate) fn item_tables(path: &Path) -> Result<ItemTables, Fault> {
    let wanted = [
        "answer", "evidence", "dumps", "failures", "keys", "tokens", "left_out", "ranks", "births", "spread",
        "harmless", "warnings",
    ];
    let members = members_of(path, &wanted).map_err(Fault::unreadable)?;
    let mut tables = Vec::new();
    if let Some(Value::Object(answer)) = members.get("answer") {
        for key in ["evidence", "not_compared"] {
            add_list(&mut tables, key, answer.get(key));
        }
    }
    for key in wanted.into_iter().skip(1) {
        add_list(&mut tables, key, members.get(key));
    }
    for csv in csv_files(path, members.get("answer")) {
        if tables.len() >= MOST_TABLES {
            break;
        }
        if let Ok(table) = csv_table(&csv) {
            tables.push(table);
        }
    }
    Ok(ItemTables { tables })
}

/// A list of objects as a table.
fn add_list(tables: &mut Vec<ItemTable>, name: &str, list: Option<&Value>) {
    let Some(rows) = list.and_then(Value::as_array).filter(|rows| !rows.is_empty()) else { return };
    let mut headers: Vec<String> = Vec::new();
    for key in rows.iter().take(MOST_ROWS).filter_map(Value::as_object).flat_map(Map::keys) {
        if !headers.contains(key) && headers.len() < 40 {
            headers.push(key.clone());
        }
    }
    let plain = |value: Option<&Value>| match value {
        None | Some(Value::Null) => Value::Null,
        Some(value @ (Value::String(_) | Value::Number(_))) => value.clone(),
        Some(other) => Value::String(other.to_string()),
    };
    let row = |row: &Value| match row.as_object() {
        Some(members) => headers.iter().map(|header| plain(members.get(header))).collect(),
        None => vec![plain(Some(row))],
    };
    let tone = |row: &Value| {
        let status = row.get("status").and_then(Value::as_str).and_then(super::status_of);
        let state = row.get("state").and_then(Value::as_str);
        match (status, state) {
            (Some(status), _) => status.tone(),
            (None, Some("identical" | "tolerated")) => Tone::Good,
            (None, Some(_)) => Tone::Warning,
            _ => Tone::Plain,
        }
    };
    let shown = &rows[..rows.len().min(MOST_ROWS)];
    tables.push(ItemTable {
        name: name.to_owned(),
        rows: shown.iter().map(row).collect(),
        tones: shown.iter().map(|row| tone(row).as_str()).collect(),
        headers: if headers.is_empty() { vec![name.to_owned()] } else { headers },
        is_cut: rows.len() > MOST_ROWS,
    });
}

/// Csv files of the command, in the same directory.
fn csv_files(path: &Path, answer: Option<&Value>) -> Vec<PathBuf> {
    let Some(directory) = path.parent() else { return Vec::new() };
    let files = answer.and_then(|answer| answer.get("files")).and_then(Value::as_array);
    let names =
        files.into_iter().flatten().filter_map(Value::as_str).filter_map(|file| Path::new(file).file_name());
    names.filter(|name| name.to_string_lossy().ends_with(".csv")).map(|name| directory.join(name)).collect()
}

fn read_csv(path: &Path) -> Result<csv::Reader<impl std::io::Read>, Fault> {
    let file = open_regular(path, Links::Refuse)?;
    Ok(csv::ReaderBuilder::new().flexible(true).from_reader(std::io::BufReader::new(file)))
}

fn csv_table(path: &Path) -> Result<ItemTable, Fault> {
    let mut reader = read_csv(path)?;
    let unreadable = |error: csv::Error| Fault::unreadable(error.to_string());
    let headers: Vec<String> = reader
        .headers()
        .map_err(unreadable)?
        .iter()
        .map(|header| header.trim_start_matches('\u{feff}').to_owned())
        .collect();
    let (mut rows, mut is_cut) = (Vec::new(), false);
    for record in reader.records() {
        if rows.len() >= MOST_ROWS {
            is_cut = true;
            break;
        }
        let record = record.map_err(unreadable)?;
        let cell = |text: &str| match text.parse::<f64>() {
            Ok(number) if number.is_finite() => serde_json::json!(number),
            _ if text.is_empty() => Value::Null,
            _ => Value::String(text.to_owned()),
        };
        rows.push(record.iter().take(headers.len()).map(cell).collect::<Vec<Value>>());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(ItemTable { name, tones: vec![Tone::Plain.as_str(); rows.len()], headers, rows, is_cut })
}

/// The similarity of gradients, parameters by steps: `similarities.csv` of all ranks beside the verdict.
pub(crate) fn gradients(path: &Path) -> Result<Matrix, Fault> {
    let members = members_of(path, &["thresholds"]).map_err(Fault::unreadable)?;
    let threshold =
        |key: &str| members.get("thresholds").and_then(|all| all.get(key)).and_then(Value::as_f64);
    let (first, floor) = (threshold("first"), threshold("floor"));
    let limit = floor.or(first);
    let directory = path.parent().ok_or_else(|| Fault::missing("it is in no directory"))?;
    let mut files = Vec::new();
    let mut left = 10_000;
    let entries = Entries::read(directory, &mut left)?;
    files.extend(
        entries
            .files
            .iter()
            .filter(|file| file.ends_with("similarities.csv"))
            .map(|file| (String::new(), file.clone())),
    );
    for inside in &entries.directories {
        let file = inside.join("similarities.csv");
        if std::fs::symlink_metadata(&file).is_ok_and(|metadata| metadata.is_file()) {
            let rank = inside.file_name().unwrap_or_default().to_string_lossy().into_owned();
            files.push((rank, file));
        }
    }
    if files.is_empty() {
        return Err(Fault::missing("there is no similarities.csv beside the verdict")
            .with_hint("compare the gradients again with msprobe grad compare"));
    }
    let has_ranks = files.len() > 1;
    let mut rows: Vec<String> = Vec::new();
    let mut columns: BTreeSet<i64> = BTreeSet::new();
    let mut numbers: Vec<(usize, i64, f64)> = Vec::new();
    for (rank, file) in files {
        let mut reader = read_csv(&file)?;
        let unreadable = |error: csv::Error| Fault::unreadable(error.to_string());
        let steps: Vec<Option<i64>> =
            reader.headers().map_err(unreadable)?.iter().skip(1).map(|step| step.parse().ok()).collect();
        columns.extend(steps.iter().flatten());
        for record in reader.records() {
            let record = record.map_err(unreadable)?;
            let name = record.get(0).unwrap_or_default();
            rows.push(if has_ranks { format!("{rank} {name}") } else { name.to_owned() });
            for (step, cell) in steps.iter().zip(record.iter().skip(1)) {
                if let (Some(step), Ok(number)) = (step, cell.parse())
                    && numbers.len() < MOST_CELLS
                {
                    numbers.push((rows.len() - 1, *step, number));
                }
            }
        }
    }
    let columns: Vec<i64> = columns.into_iter().collect();
    let cell = |(row, step, number): (usize, i64, f64)| MatrixCell {
        row,
        column: columns.binary_search(&step).unwrap_or(0),
        number: Some(Num(number)),
        tone: match limit {
            Some(limit) if number < limit => Tone::Bad,
            Some(limit) if number < f64::midpoint(limit, 1.0) => Tone::Warning,
            _ => Tone::Good,
        },
        text: format!("{}, step {step}: similarity {number}", rows.get(row).map_or("", String::as_str)),
    };
    let cells = numbers.into_iter().map(cell).collect();
    Ok(Matrix { columns: columns.iter().map(i64::to_string).collect(), cells, limit: limit.map(Num), rows })
}

/// Key data, keys by steps: the smallest share of equal elements, by `KEY.csv` or `KEY.json` where they were asked for; else
/// what the summary says of the first difference.
pub(crate) fn key_data(path: &Path) -> Result<Matrix, Fault> {
    let members = members_of(path, &["keys"]).map_err(Fault::unreadable)?;
    let keys: Vec<&Map<String, Value>> = members
        .get("keys")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .collect();
    let directory = path.parent().ok_or_else(|| Fault::missing("it is in no directory"))?;
    let text = |key: &Map<String, Value>, member: &str| {
        key.get(member).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let number = |value: Option<&Value>| value.and_then(Value::as_f64);
    let mut rows = Vec::new();
    let mut found: Vec<(usize, i64, Option<f64>, Tone, String)> = Vec::new();
    for key in keys.iter().take(MOST_ROWS) {
        let (name, state) = (text(key, "key"), text(key, "state"));
        let row = rows.len();
        let is_same = matches!(state.as_str(), "identical" | "tolerated");
        let mut steps: BTreeMap<i64, f64> = BTreeMap::new();
        // A key is a name in the directory of results, and nothing else.
        if !name.is_empty() && !name.contains('/') && name != ".." {
            read_steps(&directory.join(format!("{name}.csv")), &mut steps);
        }
        if steps.is_empty() {
            let share = number(key.get("least_same_percentage"));
            let step = number(key.get("step")).unwrap_or(0.0) as i64;
            let tone = if is_same { Tone::Good } else { Tone::Bad };
            found.push((row, step, share, tone, format!("{name}: {state}")));
        }
        for (step, share) in steps {
            let tone = if share >= 100.0 || is_same { Tone::Good } else { Tone::Bad };
            found.push((row, step, Some(share), tone, format!("{name}, step {step}: {share} % equal")));
        }
        rows.push(name);
    }
    let columns: Vec<i64> =
        found.iter().map(|(_, step, ..)| *step).collect::<BTreeSet<i64>>().into_iter().collect();
    let cells = found.into_iter().take(MOST_CELLS).map(|(row, step, share, tone, text)| MatrixCell {
        row,
        column: columns.binary_search(&step).unwrap_or(0),
        number: share.map(Num),
        tone,
        text,
    });
    Ok(Matrix {
        cells: cells.collect(),
        rows,
        columns: columns.iter().map(i64::to_string).collect(),
        limit: Some(Num(100.0)),
    })
}

/// The smallest share of equal elements of each step of a key.
fn read_steps(path: &Path, steps: &mut BTreeMap<i64, f64>) {
    let Ok(mut reader) = read_csv(path) else { return };
    for record in reader.records().take(1_000_000) {
        let Ok(record) = record else { return };
        let (step, share) = (record.get(0).and_then(|step| step.parse().ok()), record.get(6));
        if let (Some(step), Some(share)) = (step, share.and_then(|share| share.parse::<f64>().ok())) {
            let known = steps.entry(step).or_insert(share);
            *known = known.min(share);
        }
    }
}
