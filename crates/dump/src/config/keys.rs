//! Which keys a `config.json` can have, and what to say about the others: a misspelt key is a wish that nobody hears.

use serde_json::{Map, Value};

use super::error::LogLine;
use super::flight;
use super::values::Task;
use crate::framework::Framework;
use crate::nearness::meant;
use crate::words::Word;

/// Keys of the file itself, beside the sections of tasks.
const COMMON: [&str; 10] = [
    "task",
    "dump_path",
    "rank",
    "step",
    "level",
    "enable_dataloader",
    "async_dump",
    "input_gradients",
    "seed",
    "is_deterministic",
];
const FILTERS: [&str; 4] = ["scope", "list", "data_mode", "summary_mode"];
const ONLINE: [&str; 6] =
    ["online_run_ut", "nfs_path", "host", "port", "tls_path", "online_run_ut_recompute"];

/// Keys that files for newer versions have. They do nothing here, like those of other frameworks.
const NEWER: [&str; 9] = [
    "extra_info",
    "risk_level",
    "dump_enable",
    "custom_op_namespaces",
    "slice",
    "request_id",
    "bench_path",
    "diff_nums",
    "acc_check",
];

/// Lines about keys at most; a file that is something else altogether has any number of them.
const MAX_LINES: usize = 8;

/// A warning for each key that means nothing, at the top and in the section of the task.
pub(super) fn unknown(file: &Map<String, Value>, task: Task, framework: &Framework) -> Vec<LogLine> {
    let is_section = |key: &str| Task::find(key).is_some();
    let top = file.keys().filter(|key| !COMMON.contains(&key.as_str()) && !is_section(key));
    let mut texts: Vec<String> = top.map(|key| at_the_top(key, task, framework)).collect();
    if let Some(Value::Object(members)) = file.get(task.as_str()) {
        let known = of_section(task);
        // Where it means nothing it is refused, which says more.
        let is_unknown = |key: &&String| !known.contains(&key.as_str()) && *key != flight::KEY;
        let unknown = members.keys().filter(is_unknown);
        texts.extend(unknown.map(|key| in_section(key, task, &known, framework)));
    }
    let further = texts.len().saturating_sub(MAX_LINES);
    texts.truncate(MAX_LINES);
    if further > 0 {
        texts.push(format!("{further} more keys of the configuration mean nothing and are ignored"));
    }
    texts.into_iter().map(LogLine::warning).collect()
}

/// The keys that mean something in a task's section.
fn of_section(task: Task) -> Vec<&'static str> {
    let own: &[&str] = match task {
        Task::Statistics => &["tensor_list", flight::KEY, "sketch"],
        Task::Tensor => &["file_format"],
        Task::OverflowCheck => &["overflow_nums", "check_mode"],
        Task::GradProbe => return vec!["grad_level", "param_list", "bounds", "compact_direction", "sketch"],
        Task::Structure => &[],
        // Refused before their keys matter.
        Task::FreeBenchmark => &[
            "fuzz_device",
            "pert_mode",
            "handler_type",
            "fuzz_level",
            "fuzz_stage",
            "if_preheat",
            "preheat_step",
            "max_sample",
        ],
        Task::RunUt => {
            &["white_list", "black_list", "error_data_path", "is_online", "rank_list", "save_error_data"]
        }
    };
    let online: &[&str] = if matches!(task, Task::Tensor | Task::RunUt) { &ONLINE } else { &[] };
    FILTERS.iter().chain(own).chain(online).copied().collect()
}

fn at_the_top(key: &str, task: Task, framework: &Framework) -> String {
    let section = of_section(task);
    if section.contains(&key) {
        return format!(
            "{key:?} is ignored where it stands: it belongs into the section {:?}",
            task.as_str()
        );
    }
    let sections = Task::ALL.iter().map(|task| task.as_str());
    said(key, "the configuration", COMMON.into_iter().chain(sections), framework)
}

fn in_section(key: &str, task: Task, known: &[&'static str], framework: &Framework) -> String {
    if COMMON.contains(&key) {
        return format!(
            "{key:?} is ignored where it stands: it belongs to the top of the configuration, not into the section {:?}",
            task.as_str()
        );
    }
    said(key, &format!("the section {:?}", task.as_str()), known.iter().copied(), framework)
}

fn said<'a>(key: &str, place: &str, known: impl Iterator<Item = &'a str>, framework: &Framework) -> String {
    let foreign = framework.foreign_keys.iter().find(|(name, _)| name == key).map(|(_, of)| of.as_str());
    if let Some(of) = foreign.or(NEWER.contains(&key).then_some("newer versions")) {
        return format!("{key:?} in {place} is ignored: it is a key of {of}");
    }
    match meant(key, known) {
        Some(near) => format!("{key:?} in {place} is no key and is ignored, did you mean {near:?}?"),
        None => format!("{key:?} in {place} is no key and is ignored"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Config, ConfigError, Overrides, Resolved};
    use super::*;

    fn remarks(file: &Value, task: &str) -> Vec<String> {
        let overrides = Overrides { task: json!(task), ..Overrides::default() };
        let remarks = match Config::from_json(&file.to_string(), &overrides, &Framework::known()) {
            Ok(Resolved { remarks, .. }) | Err(ConfigError { remarks, .. }) => remarks,
        };
        remarks.into_iter().map(|line| line.to_string()).collect()
    }

    #[test]
    fn known_keys_are_silent() {
        let filters = json!({ "scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics" });
        let file = json!({
            "task": "statistics", "dump_path": "d", "rank": [], "step": [], "level": "L1", "seed": 1234,
            "is_deterministic": false, "enable_dataloader": false, "async_dump": false, "input_gradients": true,
            "statistics": { "scope": [], "list": [], "tensor_list": [], "flight_recorder": false },
            "tensor": filters, "overflow_check": { "overflow_nums": 3, "check_mode": "all" },
            "grad_probe": { "grad_level": "L1", "param_list": [], "bounds": [-1, 0, 1], "compact_direction": false, "sketch": false },
            "run_ut": { "white_list": [] }, "free_benchmark": {}, "structure": {},
        });
        for task in ["statistics", "tensor", "overflow_check", "grad_probe", "structure"] {
            assert_eq!(remarks(&file, task), [""; 0], "{task}");
        }
    }

    #[test]
    fn others_are_named_with_what_was_meant() {
        let file = json!({
            "dump_path": "d", "dump_pth": "e", "steps": [1], "foo": 1, "list": ["relu"], "extra_info": true,
            "statistics": { "summary": "md5", "level": "L0", "device": "ascend", "data_modes": ["all"], "zzz": 1 },
        });
        assert_eq!(
            remarks(&file, "statistics"),
            [
                "[WARNING] \"dump_pth\" in the configuration is no key and is ignored, did you mean \"dump_path\"?",
                "[WARNING] \"steps\" in the configuration is no key and is ignored, did you mean \"step\"?",
                "[WARNING] \"foo\" in the configuration is no key and is ignored",
                "[WARNING] \"list\" is ignored where it stands: it belongs into the section \"statistics\"",
                "[WARNING] \"extra_info\" in the configuration is ignored: it is a key of newer versions",
                "[WARNING] \"summary\" in the section \"statistics\" is no key and is ignored",
                "[WARNING] \"level\" is ignored where it stands: it belongs to the top of the configuration, not into \
                 the section \"statistics\"",
                "[WARNING] \"device\" in the section \"statistics\" is ignored: it is a key of MindSpore's static \
                 graphs",
                "[WARNING] 2 more keys of the configuration mean nothing and are ignored",
            ]
        );
    }

    #[test]
    fn also_when_the_configuration_is_refused() {
        let file = json!({ "dump_pth": "e" });
        assert_eq!(
            remarks(&file, "statistics"),
            [
                "[WARNING] \"dump_pth\" in the configuration is no key and is ignored, did you mean \"dump_path\"?"
            ]
        );
    }

    #[test]
    fn only_the_section_in_use_is_looked_at() {
        let file = json!({ "dump_path": "d", "tensor": { "lst": [] } });
        assert_eq!(remarks(&file, "statistics"), [""; 0]);
        assert_eq!(
            remarks(&file, "tensor"),
            ["[WARNING] \"lst\" in the section \"tensor\" is no key and is ignored, did you mean \"list\"?"]
        );
    }
}
