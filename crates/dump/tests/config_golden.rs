//! What the reference made of 47 configurations, replayed: class, code, text, effective values and log.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its helpers too")]

mod golden;

use msprobe_dump::config::{Config, ConfigError, OverflowNums, Overrides, Resolved};
use serde_json::{Value, json};

/// What `str()` of a coded exception starts with; python/msprobe/core/common/exceptions.py has them all.
fn prefix(class: &str, code: Option<u8>) -> &'static str {
    match (class, code) {
        ("MsprobeException", Some(0)) => "[msprobe] 无效参数：",
        ("ScopeException", Some(0)) => "[msprobe] Invalid api_list: ",
        ("ScopeException", Some(1)) => "[msprobe] Invalid scope: ",
        ("ScopeException", Some(2)) => "[msprobe] Scope and api_list conflict: ",
        (_, None) => "",
        _ => panic!("{class} has no code {code:?}"),
    }
}

fn overrides(kwargs: &Value) -> Overrides {
    let known = ["task", "dump_path", "level", "step"];
    assert!(kwargs.as_object().unwrap().keys().all(|key| known.contains(&key.as_str())), "{kwargs}");
    let [task, dump_path, level, step] = known.map(|key| kwargs[key].clone());
    Overrides { task, dump_path, level, step }
}

fn effective(config: &Config) -> Value {
    json!({
        "task": config.task.as_str(),
        "level": config.level.as_str(),
        "dump_path": config.dump_path,
        "rank": config.rank.iter().collect::<Vec<_>>(),
        "step": config.step.iter().collect::<Vec<_>>(),
        "scope": config.scope.names(),
        "list": config.list,
        "data_mode": config.data_mode.members().iter().map(|mode| mode.as_str()).collect::<Vec<_>>(),
        "summary_mode": config.summary_mode.as_str(),
        "overflow_nums": match config.overflow_nums {
            OverflowNums::Unlimited => json!(-1),
            OverflowNums::Times(times) => json!(times.get()),
        },
        "async_dump": config.async_dump,
        "tensor_list": config.tensor_list,
    })
}

/// The outcome in the form of the recorded cases.
fn outcome(result: Result<Resolved, ConfigError>) -> Value {
    let lines =
        |log: &[msprobe_dump::config::LogLine]| log.iter().map(ToString::to_string).collect::<Vec<_>>();
    match result {
        Ok(resolved) => json!({ "ok": effective(&resolved.config), "log": lines(&resolved.log) }),
        Err(error) => {
            let class = error.class.python_name();
            let mut outcome = json!({
                "exception": class,
                "message": format!("{}{}", prefix(class, error.code), error.message),
                "log": lines(&error.log),
            });
            if let Some(code) = error.code {
                outcome["code"] = json!(code);
            }
            outcome
        }
    }
}

#[test]
fn every_recorded_configuration_has_the_recorded_outcome() {
    let cases = golden::json("config_validation/cases.json");
    let cases = cases.as_array().unwrap();
    assert_eq!(cases.len(), 47);
    for case in cases {
        let mut expected = case.as_object().unwrap().clone();
        let name = expected.remove("name").unwrap();
        let text = expected.remove("config").unwrap().to_string();
        let kwargs = expected.remove("kwargs").unwrap();
        let outcome = outcome(Config::from_json(&text, &overrides(&kwargs), &golden::framework()));
        assert_eq!(outcome, Value::Object(expected), "{name}");
    }
}
