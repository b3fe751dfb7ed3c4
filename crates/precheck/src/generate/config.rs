//! What is asked of a script, as the configuration says it.

use std::path::{Path, PathBuf};

use msprobe_dump::read::Json;
use msprobe_report::error::CompareError;

use super::{Framework, refused, small_text, unreadable};
use crate::names::is_injection;

const MOST_ITERATIONS: i128 = 1000;
const LONGEST_NAME: usize = 30;

/// Which run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the documentation")]
pub enum Propagation {
    Forward,
    Backward,
}

impl Propagation {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Propagation::Forward => "forward",
            Propagation::Backward => "backward",
        }
    }
}

/// Where inputs come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the documentation")]
pub enum DataMode {
    Random,
    Real,
}

impl DataMode {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            DataMode::Random => "random_data",
            DataMode::Real => "real_data",
        }
    }
}

/// A configuration that was checked.
#[derive(Debug, Clone)]
pub struct Config {
    /// The dump, if the operator is to be taken from one.
    pub dump_json_path: Option<PathBuf>,
    /// `Torch.exp.0`
    pub api_name: String,
    /// Where the operator goes, or comes from.
    pub extract_api_path: PathBuf,
    /// Which run.
    pub propagation: Propagation,
    /// Where inputs come from.
    pub data_mode: DataMode,
    /// Of random inputs.
    pub random_seed: i64,
    /// How often.
    pub iter_times: i64,
}

impl Config {
    /// Reads and checks a file.
    pub fn read(path: &Path, framework: Framework) -> Result<Config, CompareError> {
        let text = small_text(path)?;
        let json = Json::parse_file(text.as_bytes())
            .map_err(|(what, at)| unreadable(path, &format!("{what} at byte {at}")))?;
        if !matches!(json, Json::Map(_)) {
            return Err(unreadable(path, &"not an object"));
        }
        let text = |key: &str| json.get(key).and_then(Json::as_str).filter(|text| !text.is_empty());
        let dump_json_path = text("dump_json_path").map(PathBuf::from);
        if let Some(dump) = dump_json_path.as_ref().filter(|dump| !dump.exists()) {
            return Err(unreadable(dump, &"the file does not exist"));
        }
        let api_name = text("api_name").ok_or_else(|| refused("api_name is missing"))?.to_owned();
        check_name(&api_name)?;
        let extract_api_path =
            text("extract_api_path").ok_or_else(|| refused("extract_api_path is missing"))?.into();
        let propagation = match json.get("propagation") {
            None | Some(Json::Null) => Propagation::Forward,
            Some(value) => match value.as_str() {
                Some("forward") => Propagation::Forward,
                Some("backward") => Propagation::Backward,
                _ => {
                    return Err(refused(
                        "propagation is invalid, it should be one of ['forward', 'backward']",
                    ));
                }
            },
        };
        let data_mode = match json.get("data_mode").and_then(Json::as_str) {
            Some("random_data") => DataMode::Random,
            Some("real_data") => DataMode::Real,
            _ => {
                return Err(refused(
                    "data_mode is invalid, it should be one of ['random_data', 'real_data']",
                ));
            }
        };
        let random_seed = match json.get("random_seed") {
            Some(Json::Int(seed)) => i64::try_from(*seed).ok(),
            _ => None,
        }
        .ok_or_else(|| refused("random_seed is invalid, it should be an int"))?;
        let iter_times = iterations(json.get("iter_times"), framework)?;
        Ok(Config {
            dump_json_path,
            api_name,
            extract_api_path,
            propagation,
            data_mode,
            random_seed,
            iter_times,
        })
    }
}

/// Three segments or four, which become the name of a file.
pub(super) fn check_name(name: &str) -> Result<(), CompareError> {
    if name.chars().count() > LONGEST_NAME {
        return Err(refused(format!("API name {name} is too long!")));
    }
    let is_part = |part: &str| {
        !part.is_empty() && part.chars().all(|character| character.is_alphanumeric() || character == '_')
    };
    let parts = name.split('.').count();
    if is_injection(name) || !(3..=4).contains(&parts) || !name.split('.').all(is_part) {
        return Err(refused(format!("API name {name} is invalid, it should be like Torch.exp.0")));
    }
    Ok(())
}

fn iterations(value: Option<&Json<'_>>, framework: Framework) -> Result<i64, CompareError> {
    let texts = match framework {
        Framework::PyTorch => [
            "iter_times should be an integer bigger than zero!",
            "iter_times should not be greater than 1000!",
        ],
        Framework::MindSpore => ["iter_times should be range from 1 to 1000."; 2],
    };
    match value {
        Some(Json::Int(times)) if *times > MOST_ITERATIONS => Err(refused(texts[1])),
        Some(Json::Int(times)) if *times >= 1 => Ok(*times as i64),
        _ => Err(refused(texts[0])),
    }
}
