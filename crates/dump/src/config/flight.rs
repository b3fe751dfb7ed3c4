//! The flight recorder's part of the section `statistics`: how much stays in memory, and when it is written.

use std::num::NonZeroU64;

use serde_json::{Map, Value};

use super::error::Refusal;
use super::python;
use super::{Config, Level};

/// The key of the section.
pub(super) const KEY: &str = "flight_recorder";
const MEMBERS: [&str; 5] = ["steps", "records", "dumps", "ignore_masks", "max_memory_mb"];
const DEFAULT_STEPS: NonZeroU64 = NonZeroU64::new(2).unwrap();
const DEFAULT_MEMORY_MB: u64 = 512;
const BYTES_PER_MB: u64 = 1 << 20;

/// How much is held in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeps {
    /// The last steps, the one that runs included.
    Steps(NonZeroU64),
    /// The last records, over the borders of steps.
    Records(NonZeroU64),
}

/// Records are held in memory and written only when something goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlightRecorder {
    /// How much is held.
    pub keeps: Keeps,
    /// How often it is written because something went wrong; after that collection is over.
    pub dumps: NonZeroU64,
    /// Whether tensors with -inf, but neither NaN nor +inf, are taken for masks.
    pub ignore_masks: bool,
    /// Text that is held at most; beyond it the oldest records go.
    pub max_memory_bytes: u64,
}

impl FlightRecorder {
    /// Reads the value of the key; `None` if the recorder is off.
    pub(super) fn read(value: &Value) -> Result<Option<FlightRecorder>, Refusal> {
        let nothing = Map::new();
        let members = match value {
            Value::Null | Value::Bool(false) => return Ok(None),
            Value::Bool(true) => &nothing,
            Value::Object(members) => members,
            other => {
                let found = python::type_name(other);
                return Err(Refusal::invalid(format!(
                    "{KEY} must be true, false or an object such as {{\"steps\": 2}}, currently it is of type {found}"
                )));
            }
        };
        if let Some(key) = members.keys().find(|key| !MEMBERS.contains(&key.as_str())) {
            let known = MEMBERS.join(", ");
            return Err(Refusal::invalid(format!("{KEY} has no key {key:?}, it may have {known}")));
        }
        let keeps = match (count(members, "steps")?, count(members, "records")?) {
            (Some(_), Some(_)) => {
                return Err(Refusal::invalid(format!(
                    "{KEY} keeps either steps or records, only one of the two keys can be given"
                )));
            }
            (None, Some(records)) => Keeps::Records(records),
            (steps, None) => Keeps::Steps(steps.unwrap_or(DEFAULT_STEPS)),
        };
        let ignore_masks = match members.get("ignore_masks") {
            None => true,
            Some(Value::Bool(ignores)) => *ignores,
            Some(_) => return Err(Refusal::invalid(format!("{KEY}.ignore_masks must be true or false"))),
        };
        let memory_mb = count(members, "max_memory_mb")?.map_or(DEFAULT_MEMORY_MB, NonZeroU64::get);
        Ok(Some(FlightRecorder {
            keeps,
            dumps: count(members, "dumps")?.unwrap_or(NonZeroU64::MIN),
            ignore_masks,
            max_memory_bytes: memory_mb.saturating_mul(BYTES_PER_MB),
        }))
    }

    /// Refuses the key in the section of another task.
    pub(super) fn refuse_elsewhere(value: &Value, task: &str) -> Result<(), Refusal> {
        match value {
            Value::Null | Value::Bool(false) => Ok(()),
            _ => Err(Refusal::invalid(format!(
                "{KEY} needs the task statistics and stands in its section, currently the task is {task}"
            ))),
        }
    }
}

/// What holds between the recorder and everything else.
pub(super) fn couple(config: &Config) -> Result<(), Refusal> {
    if config.flight_recorder.is_none() {
        return Ok(());
    }
    if !matches!(config.level, Level::L0 | Level::L1 | Level::Mix) {
        let level = config.level;
        return Err(Refusal::invalid(format!(
            "{KEY} needs one of the levels L0, L1 and mix, currently the level is {level}"
        )));
    }
    if config.tensor_list.as_ref().is_some_and(|list| !list.is_empty()) {
        return Err(Refusal::invalid(format!(
            "{KEY} holds no tensors, so it cannot be combined with tensor_list"
        )));
    }
    Ok(())
}

fn count(members: &Map<String, Value>, key: &str) -> Result<Option<NonZeroU64>, Refusal> {
    match members.get(key) {
        None => Ok(None),
        Some(value) => match value.as_u64().and_then(NonZeroU64::new) {
            Some(number) => Ok(Some(number)),
            None => {
                let found = python::repr(value);
                Err(Refusal::invalid(format!(
                    "{KEY}.{key} must be an integer from 1 on, currently it is {found}"
                )))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{ErrorClass, Overrides, Resolved};
    use super::*;
    use crate::framework::Framework;

    fn resolve(file: &Value) -> Result<Resolved, super::super::ConfigError> {
        Config::from_json(&file.to_string(), &Overrides::default(), &Framework::known())
    }

    fn file(recorder: &Value) -> Value {
        json!({ "task": "statistics", "dump_path": "d", "statistics": { "flight_recorder": recorder } })
    }

    fn accepted(recorder: &Value) -> Option<FlightRecorder> {
        resolve(&file(recorder)).unwrap().config.flight_recorder
    }

    fn refused(file: &Value) -> String {
        let error = resolve(file).unwrap_err();
        assert_eq!((error.class, error.code), (ErrorClass::Msprobe, Some(0)));
        error.message
    }

    #[test]
    fn on_off_and_defaults() {
        assert_eq!(accepted(&json!(null)), None);
        assert_eq!(accepted(&json!(false)), None);
        let on = accepted(&json!(true)).unwrap();
        assert_eq!(accepted(&json!({})), Some(on));
        assert_eq!((on.keeps, on.dumps.get(), on.ignore_masks), (Keeps::Steps(DEFAULT_STEPS), 1, true));
        assert_eq!(on.max_memory_bytes, 512 << 20);
        let full = accepted(&json!({"records": 7, "dumps": 3, "ignore_masks": false, "max_memory_mb": 1}));
        let full = full.unwrap();
        assert_eq!(full.keeps, Keeps::Records(NonZeroU64::new(7).unwrap()));
        assert_eq!((full.dumps.get(), full.ignore_masks, full.max_memory_bytes), (3, false, 1 << 20));
        let huge = accepted(&json!({ "max_memory_mb": u64::MAX })).unwrap();
        assert_eq!(huge.max_memory_bytes, u64::MAX);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (recorder, part) in [
            (json!(1), "must be true, false or an object"),
            (json!([2]), "of type list"),
            (json!("steps"), "of type str"),
            (json!({"steps": 2, "records": 9}), "either steps or records"),
            (json!({"step": 2}), "has no key \"step\", it may have steps, records, dumps"),
            (json!({"steps": 0}), "flight_recorder.steps must be an integer from 1 on, currently it is 0"),
            (json!({"steps": true}), "currently it is True"),
            (json!({"steps": null}), "currently it is None"),
            (json!({"records": -1}), "flight_recorder.records"),
            (json!({"records": 1.5}), "flight_recorder.records"),
            (json!({"dumps": 0}), "flight_recorder.dumps"),
            (json!({"max_memory_mb": "1"}), "flight_recorder.max_memory_mb"),
            (json!({"ignore_masks": 1}), "flight_recorder.ignore_masks must be true or false"),
        ] {
            let message = refused(&file(&recorder));
            assert!(message.contains(part), "{recorder}: {message}");
        }
    }

    #[test]
    fn it_does_not_go_with_everything() {
        let at = |task: &str, level: &str| json!({ "task": task, "level": level, "dump_path": "d", task: { "flight_recorder": true } });
        for task in ["tensor", "overflow_check", "structure"] {
            let message = refused(&at(task, "L1"));
            assert!(message.contains(&format!("currently the task is {task}")), "{message}");
        }
        assert!(refused(&at("statistics", "debug")).contains("L0, L1 and mix"));
        for level in ["L0", "L1", "mix"] {
            assert!(resolve(&at("statistics", level)).is_ok());
        }
        let mut with_tensors = file(&json!(true));
        with_tensors["statistics"]["tensor_list"] = json!(["relu"]);
        assert!(refused(&with_tensors).contains("tensor_list"));
        let mut with_others = file(&json!(true));
        with_others["statistics"]["summary_mode"] = json!("md5");
        with_others["async_dump"] = json!(true);
        with_others["step"] = json!(["0-9"]);
        assert!(resolve(&with_others).is_ok());
    }
}
