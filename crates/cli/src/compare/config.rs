//! compare.json of the older form.

use std::path::{Path, PathBuf};

use msprobe_compare::error::{Code, CompareError};
use msprobe_dump::read::Json;

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

impl CompareConfig {
    pub(super) fn read(path: &Path) -> Result<CompareConfig, CompareError> {
        let shown = path.display();
        let text = std::fs::read(path).map_err(|error| {
            CompareError::new(Code::IllegalPath, format!("The file path {shown} does not exist."))
                .with_hint(error.to_string())
        })?;
        let value = Json::parse(&text).map_err(|(what, at)| {
            CompareError::new(Code::InvalidFile, format!("Load json file {shown} failed."))
                .with_hint(format!("{what} at byte {at}"))
        })?;
        if !matches!(value, Json::Map(_)) {
            let message = "input_param should be dict, please check!";
            return Err(CompareError::new(Code::InvalidObjectType, message));
        }
        let path_of = |key: &str| match value.get(key).and_then(Json::as_str) {
            Some(text) if !text.is_empty() => Ok(PathBuf::from(text)),
            _ => {
                let message = format!("Missing {key} in configuration file {shown}, please check!");
                Err(CompareError::new(Code::InvalidPath, message))
            }
        };
        Ok(CompareConfig {
            npu_path: path_of("npu_path")?,
            bench_path: path_of("bench_path")?,
            stack_path: value.get("stack_path").and_then(Json::as_str).map(PathBuf::from),
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
