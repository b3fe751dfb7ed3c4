//! compare.json of the graph command.

use std::path::{Path, PathBuf};

use msprobe_dump::read::Json;
use msprobe_graph::merge::classes::Classes;
use msprobe_graph::merge::{DEFAULT_ORDER, Strategies, Strategy};
use msprobe_report::error::{Code, CompareError};

use crate::compare::read_config;

/// What a compare.json says.
#[derive(Debug, PartialEq)]
pub(super) struct GraphConfig {
    pub(super) npu_path: PathBuf,
    /// Absent: a graph is built, not compared.
    pub(super) bench_path: Option<PathBuf>,
    /// How ranks are merged, as the second generation says it.
    pub(super) merge: Option<Strategies>,
}

const HINT: &str = r#"{"npu_path": "npu/step0", "bench_path": "bench/step0"}"#;

impl GraphConfig {
    pub(super) fn read(path: &Path) -> Result<GraphConfig, CompareError> {
        let text = read_config(path)?;
        let value = Json::parse_file(&text).map_err(|(what, at)| {
            CompareError::new(Code::InvalidFile, format!("Load json file {} failed.", path.display()))
                .with_hint(format!("{what} at byte {at}"))
        })?;
        let wrong = |message: String| CompareError::new(Code::InvalidParam, message).with_hint(HINT);
        let path_of = |key: &str| match value.get(key) {
            None | Some(Json::Null) => Ok(None),
            Some(Json::Text(text)) if text.is_empty() => Ok(None),
            Some(Json::Text(text)) => Ok(Some(PathBuf::from(&**text))),
            Some(_) => Err(wrong(format!("{key} in {} is no path", path.display()))),
        };
        let npu_path =
            path_of("npu_path")?.ok_or_else(|| wrong(format!("Missing npu_path in {}", path.display())))?;
        Ok(GraphConfig { npu_path, bench_path: path_of("bench_path")?, merge: merge_of(&value)? })
    }
}

/// `parallel_merge`, if it says anything about the target.
fn merge_of(value: &Json<'_>) -> Result<Option<Strategies>, CompareError> {
    let Some(merge) = value.get("parallel_merge") else { return Ok(None) };
    let side = |name: &str| match merge.get(name) {
        Some(map @ Json::Map(members)) if !members.is_empty() => strategy_of(name, map).map(Some),
        _ => Ok(None),
    };
    let Some(target) = side("npu")? else { return Ok(None) };
    Ok(Some(Strategies { target, golden: side("bench")?, classes: Classes::default() }))
}

fn strategy_of(side: &str, map: &Json<'_>) -> Result<Strategy, CompareError> {
    let hint = r#""parallel_merge": {"npu": {"rank_size": 8, "tp": 2, "pp": 1}}"#;
    let wrong = |message: String| CompareError::new(Code::InvalidParam, message).with_hint(hint);
    let number = |key: &str, default: Option<u32>| match map.get(key) {
        Some(Json::Int(number)) => u32::try_from(*number).map_err(|_| {
            wrong(format!("{key} of {side} in parallel_merge is {number}, not a number above 0"))
        }),
        Some(_) => Err(wrong(format!("{key} of {side} in parallel_merge is no whole number"))),
        None => default.ok_or_else(|| wrong(format!("{key} of {side} is missing in parallel_merge"))),
    };
    let order = match map.get("order") {
        None | Some(Json::Null) => DEFAULT_ORDER.to_owned(),
        Some(Json::Text(order)) => order.to_string(),
        Some(_) => return Err(wrong(format!("order of {side} in parallel_merge is no text"))),
    };
    Ok(Strategy {
        rank_size: number("rank_size", None)?,
        tp: number("tp", None)?,
        pp: number("pp", None)?,
        vpp: number("vpp", Some(1))?,
        cp: number("cp", Some(1))?,
        ep: number("ep", Some(1))?,
        order,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<GraphConfig, CompareError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("compare.json");
        std::fs::write(&path, text).unwrap();
        GraphConfig::read(&path)
    }

    #[test]
    fn the_golden_side_may_be_absent() {
        let config = read(r#"{"npu_path": "a", "is_print_compare_log": false}"#).unwrap();
        assert_eq!((config.npu_path, config.bench_path, config.merge), ("a".into(), None, None));
    }

    #[test]
    fn merging_is_read_and_checked() {
        let text = r#"{"npu_path": "a", "bench_path": "b", "parallel_merge":
            {"npu": {"rank_size": 4, "tp": 2, "pp": 2, "vpp": 2, "order": "pp-tp-dp"}, "bench": {"rank_size": 1, "tp": 1, "pp": 1}}}"#;
        let merge = read(text).unwrap().merge.unwrap();
        assert_eq!((merge.target.vpp, merge.target.order.as_str()), (2, "pp-tp-dp"));
        assert_eq!(merge.golden.unwrap().rank_size, 1);
        assert_eq!(read(r#"{"npu_path": "a", "parallel_merge": {"npu": {}}}"#).unwrap().merge, None);
        for bad in [
            "[]",
            "{",
            r#"{"bench_path": "b"}"#,
            r#"{"npu_path": 5}"#,
            r#"{"npu_path": "a", "parallel_merge": {"npu": {"rank_size": true, "tp": 1, "pp": 1}}}"#,
            r#"{"npu_path": "a", "parallel_merge": {"npu": {"rank_size": -1, "tp": 1, "pp": 1}}}"#,
            r#"{"npu_path": "a", "parallel_merge": {"npu": {"tp": 1}}}"#,
        ] {
            assert!(read(bad).unwrap_err().hint.is_some(), "{bad}");
        }
    }
}
