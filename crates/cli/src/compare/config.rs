//! compare.json of the older form.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use msprobe_dump::read::Json;
use msprobe_report::error::{Code, CompareError};

/// No such file is longer.
const MOST_BYTES: u64 = 16 << 20;

/// What a compare.json says.
#[derive(Debug, Default, PartialEq)]
pub(super) struct CompareConfig {
    pub(super) npu_path: PathBuf,
    pub(super) bench_path: PathBuf,
    pub(super) stack_path: Option<PathBuf>,
    pub(super) log_rows: Option<bool>,
    /// Present: kernels of a static graph.
    pub(super) rank_id: Option<Vec<i64>>,
    pub(super) step_id: Option<Vec<i64>>,
    /// Single arrays of a static graph.
    pub(super) common: bool,
    pub(super) map_dict: Vec<(String, String)>,
}

/// The text of a compare.json.
pub(crate) fn read_config(path: &Path) -> Result<Vec<u8>, CompareError> {
    let shown = path.display();
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut text));
    read.map_err(|error| {
        CompareError::new(Code::IllegalPath, format!("The file path {shown} does not exist."))
            .with_hint(error.to_string())
    })?;
    if text.len() as u64 > MOST_BYTES {
        let message = format!("{shown} is longer than {MOST_BYTES} bytes");
        return Err(CompareError::new(Code::InvalidFile, message)
            .with_hint("give the compare.json that names both dumps, not a dump"));
    }
    Ok(text)
}

impl CompareConfig {
    pub(super) fn read(path: &Path) -> Result<CompareConfig, CompareError> {
        let shown = path.display();
        let text = read_config(path)?;
        let value = Json::parse_file(&text).map_err(|(what, at)| {
            CompareError::new(Code::InvalidFile, format!("Load json file {shown} failed."))
                .with_hint(format!("{what} at byte {at}"))
        })?;
        if !matches!(value, Json::Map(_)) {
            let message = "input_param should be dict, please check!";
            return Err(CompareError::new(Code::InvalidObjectType, message));
        }
        // The Python function has keys of its own, and people use one file for both.
        let text_of = |key: &str, in_python: &str| {
            let text = |key: &str| value.get(key).and_then(Json::as_str).filter(|text| !text.is_empty());
            text(key).or_else(|| text(in_python)).map(PathBuf::from)
        };
        let path_of = |key: &str, in_python: &str| {
            text_of(key, in_python).ok_or_else(|| {
                let message = format!("Missing {key} in configuration file {shown}, please check!");
                CompareError::new(Code::InvalidPath, message)
                    .with_hint(r#"{"npu_path": "npu/dump.json", "bench_path": "bench/dump.json"}"#)
            })
        };
        Ok(CompareConfig {
            npu_path: path_of("npu_path", "npu_json_path")?,
            bench_path: path_of("bench_path", "bench_json_path")?,
            stack_path: text_of("stack_path", "stack_json_path"),
            log_rows: flag(&value, "is_print_compare_log")?,
            rank_id: numbers(&value, "rank_id")?,
            step_id: numbers(&value, "step_id")?,
            common: flag(&value, "common")?.unwrap_or(false),
            map_dict: pairs(&value)?,
        })
    }
}

fn flag(value: &Json<'_>, key: &str) -> Result<Option<bool>, CompareError> {
    match value.get(key) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::Bool(flag)) => Ok(Some(*flag)),
        Some(_) => {
            let message = format!("Invalid input parameter, {key} which should be only bool type.");
            Err(CompareError::new(Code::InvalidParam, message))
        }
    }
}

fn numbers(value: &Json<'_>, key: &str) -> Result<Option<Vec<i64>>, CompareError> {
    let wrong = || {
        let message = "'rank_id' and 'step_id' should both be lists, please check!";
        CompareError::new(Code::InvalidObjectType, message)
            .with_hint(format!("{key} takes a list such as [0, 1]"))
    };
    match value.get(key) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::List(elements)) => {
            let number = |element: &Json<'_>| match element {
                Json::Int(number) => i64::try_from(*number).map_err(|_| wrong()),
                _ => Err(wrong()),
            };
            elements.iter().map(number).collect::<Result<_, _>>().map(Some)
        }
        Some(_) => Err(wrong()),
    }
}

fn pairs(value: &Json<'_>) -> Result<Vec<(String, String)>, CompareError> {
    match value.get("map_dict") {
        None | Some(Json::Null) => Ok(Vec::new()),
        Some(Json::Map(members)) => Ok(members
            .iter()
            .filter_map(|(key, value)| Some((key.clone().into_owned(), value.as_str()?.to_owned())))
            .collect()),
        Some(_) => {
            let message = "map_dict should be an object of names, please check!";
            Err(CompareError::new(Code::InvalidObjectType, message))
        }
    }
}
