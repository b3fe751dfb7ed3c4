//! A script of one operator that runs by itself. What it is to run stands in JSON beside it: nothing that was recorded becomes
//! code.

mod config;
mod extract;

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use msprobe_report::console::Console;
use msprobe_report::error::{Code, CompareError};
use msprobe_report::output::{make_directory, save};
use serde_json::{Map, Value, json};

pub use self::config::{Config, DataMode, Propagation};
use self::extract::{Extracted, check};
use crate::names::Call;
use crate::standards::Standard;

const PYTORCH: &str = include_str!("scripts/pytorch.py");
const MINDSPORE: &str = include_str!("scripts/mindspore.py");

/// What the script calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framework {
    /// `torch`
    PyTorch,
    /// `mindspore`
    MindSpore,
}

fn refused(text: impl Into<String>) -> CompareError {
    CompareError::new(Code::InvalidParam, text)
}

fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> CompareError {
    CompareError::new(Code::IllegalPath, format!("{}: {error}", path.display()))
}

/// Writes a script as a configuration asks for it; gives its path.
pub fn from_config(
    config: &Path,
    output: &Path,
    framework: Framework,
    console: &dyn Console,
) -> Result<PathBuf, CompareError> {
    let config = Config::read(config, framework)?;
    if !output.is_dir() {
        return Err(unreadable(output, &"the directory does not exist"));
    }
    let extracted = match &config.dump_json_path {
        Some(dump) => {
            let extracted = Extracted::from_dump(dump, &config.api_name, framework)?;
            if extracted.is_empty() {
                console
                    .warning(&format!("Warning: The api '{}' does not exist in the file.", config.api_name));
                let path = &config.extract_api_path;
                return Err(unreadable(
                    path,
                    &"nothing was written, because the dump does not have that API",
                )
                .with_hint("take a name from dump.json without .forward: Torch.exp.0"));
            }
            extracted.write(&config.extract_api_path)?;
            extracted
        }
        None => Extracted::read(&config.extract_api_path)?,
    };
    write_script(&config, &extracted, output, framework)
}

/// Where an operator of a check comes from.
#[derive(Debug, Clone)]
pub struct FromResult {
    /// The details, or the result, of a check.
    pub table: PathBuf,
    /// `Torch.exp.0`
    pub api: String,
    /// The dump that was checked.
    pub dump: PathBuf,
    /// Where the script goes.
    pub output: PathBuf,
    /// Forward or backward; by default what failed.
    pub propagation: Option<Propagation>,
    /// Inputs as they were recorded, where they were.
    pub is_real: bool,
}

/// Writes a script of an operator that a table has; gives its path.
pub fn from_result(
    from: &FromResult,
    framework: Framework,
    console: &dyn Console,
) -> Result<PathBuf, CompareError> {
    let table = crate::csv_file::Table::read(&from.table).map_err(|error| unreadable(&from.table, &error))?;
    let prefix = format!("{}.", from.api);
    let status_column = table.column("Status");
    let rows = (0..table.len()).filter(|&row| {
        let name = table.cell(row, 0);
        *name == *from.api || name.starts_with(&prefix)
    });
    let rows: Vec<usize> = rows.collect();
    if rows.is_empty() {
        return Err(refused(format!("{} has no row of {}", from.table.display(), from.api))
            .with_hint("give the name as it stands in the first column, without .forward.output.0"));
    }
    let is_bad = |row: usize, column: usize| matches!(&*table.cell(row, column), "error" | "Warning");
    let fails_backward = match status_column {
        Some(column) => {
            let bad = |direction: &str| {
                let start = format!("{prefix}{direction}.");
                rows.iter().any(|&row| table.cell(row, 0).starts_with(&start) && is_bad(row, column))
            };
            bad("backward") && !bad("forward")
        }
        None => rows.iter().any(|&row| is_bad(row, 2) && !is_bad(row, 1)),
    };
    let propagation =
        from.propagation.unwrap_or(if fails_backward { Propagation::Backward } else { Propagation::Forward });
    let extracted = Extracted::from_dump(&from.dump, &from.api, framework)?;
    if extracted.is_empty() {
        return Err(refused(format!("{} does not have {}", from.dump.display(), from.api))
            .with_hint("give the dump.json that was checked with -api_info"));
    }
    make_directory(&from.output).map_err(|error| unreadable(&from.output, &error))?;
    let config = Config {
        dump_json_path: Some(from.dump.clone()),
        api_name: from.api.clone(),
        extract_api_path: PathBuf::new(),
        propagation,
        data_mode: if from.is_real { DataMode::Real } else { DataMode::Random },
        random_seed: (Call::seed(&from.api) % (1 << 32)) as i64,
        iter_times: 1,
    };
    console.info(&format!("{} {}", from.api, propagation.as_str()));
    write_script(&config, &extracted, &from.output, framework)
}

/// Writes the script and what it is to run.
fn write_script(
    config: &Config,
    extracted: &Extracted,
    output: &Path,
    framework: Framework,
) -> Result<PathBuf, CompareError> {
    let call =
        Call::parse(&config.api_name).ok_or_else(|| refused("Invalid forward API data in json_content!"))?;
    let (forward, backward) = check(extracted, config.propagation, framework)?;
    let mut settings = Map::new();
    settings.insert("api_name".into(), json!(config.api_name));
    settings.insert("kind".into(), json!(call.kind));
    settings.insert("name".into(), json!(call.name));
    settings.insert("propagation".into(), json!(config.propagation.as_str()));
    settings.insert("data_mode".into(), json!(config.data_mode.as_str()));
    settings.insert("random_seed".into(), json!(config.random_seed));
    let times = if config.data_mode == DataMode::Real { 1 } else { config.iter_times };
    settings.insert("iter_times".into(), json!(times));
    settings.insert("standard".into(), json!(standard(&call.name)));
    let mut text = Value::Object(settings).to_string();
    // Entries as they were recorded: NaN is known to Python's reader, and to no other.
    text.pop();
    let _ = write!(text, ", \"forward\": {forward}");
    let _ = write!(text, ", \"backward\": {}", backward.unwrap_or("null"));
    if let Some(real) = &extracted.real_data_path {
        let _ = write!(text, ", \"real_data_path\": {}", Value::from(real.as_str()));
    }
    text.push_str("}\n");
    let script = match framework {
        Framework::PyTorch => PYTORCH,
        Framework::MindSpore => MINDSPORE,
    };
    let stem = format!("{}.{}", config.api_name, config.propagation.as_str());
    let path = output.join(format!("{stem}.py"));
    let write = |path: &Path, text: &str| -> Result<(), CompareError> {
        let written: io::Result<()> = save(path, |file| file.write_all(text.as_bytes()));
        written.map_err(|error| unreadable(path, &error))
    };
    write(&output.join(format!("{stem}.json")), &text)?;
    write(&path, script)?;
    Ok(path)
}

/// The standard of a script; it never is the one of sums.
fn standard(name: &str) -> &'static str {
    match Standard::of(name) {
        Standard::AccumulativeErrorCompare => Standard::Benchmark.as_str(),
        standard => standard.as_str(),
    }
}

/// The text of a file, no larger than what a person would call a file of one operator.
pub(crate) fn small_text(path: &Path) -> Result<String, CompareError> {
    const MOST: u64 = 1 << 30;
    let size = fs::metadata(path).map_err(|error| unreadable(path, &error))?.len();
    if size > MOST {
        return Err(unreadable(path, &"it is larger than 1 GiB"));
    }
    fs::read_to_string(path).map_err(|error| unreadable(path, &error))
}

#[cfg(test)]
mod tests;
