//! The section of a task: the keys that mean something for it, checked in the order the reference checks them.

use std::net::Ipv4Addr;
use std::num::NonZeroU64;

use serde_json::{Map, Value};

use super::error::Refusal;
use super::flight::{self, FlightRecorder};
use super::gradients::GradProbe;
use super::python;
use super::values::{CheckMode, DataMode, DataModes, FileFormat, Online, OverflowNums, SummaryMode, Task};
use crate::words::Word;

/// A section after its own checks. `scope` and `list` stay as they are: some tasks do not check them, and what is
/// wrong with them is then found when the scope is built.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) scope: Value,
    pub(super) list: Value,
    pub(super) tensor_list: Option<Vec<String>>,
    pub(super) data_mode: DataModes,
    pub(super) summary_mode: SummaryMode,
    pub(super) overflow_nums: OverflowNums,
    pub(super) check_mode: Option<CheckMode>,
    pub(super) file_format: Option<FileFormat>,
    pub(super) online: Option<Online>,
    pub(super) grad_probe: Option<GradProbe>,
    pub(super) flight_recorder: Option<FlightRecorder>,
    pub(super) sketch: bool,
}

/// The keys of a section. A missing one is `null`.
struct Keys<'a>(Option<&'a Map<String, Value>>);

impl Keys<'_> {
    fn get(&self, key: &str) -> &Value {
        self.0.and_then(|members| members.get(key)).unwrap_or(&Value::Null)
    }
}

impl Section {
    /// Reads the section of `task` from the whole file.
    pub(super) fn read(file: &Map<String, Value>, task: Task) -> Result<Section, Refusal> {
        let keys = match file.get(task.as_str()) {
            None => Keys(None),
            Some(Value::Object(members)) => Keys(Some(members)),
            Some(other) => return Err(not_an_object(other)),
        };
        let checked = matches!(task, Task::Statistics | Task::Tensor);
        if checked {
            string_list(keys.get("scope"), "scope")?;
            string_list(keys.get("list"), "list")?;
        }
        let mut section = Section {
            scope: keys.get("scope").clone(),
            list: keys.get("list").clone(),
            tensor_list: None,
            data_mode: if checked { data_modes(&keys)? } else { lenient_data_modes(&keys)? },
            summary_mode: summary_mode(&keys, checked)?,
            overflow_nums: OverflowNums::default(),
            check_mode: None,
            file_format: None,
            online: None,
            grad_probe: None,
            flight_recorder: None,
            sketch: false,
        };
        let recorder = keys.get(flight::KEY);
        if task != Task::Statistics {
            FlightRecorder::refuse_elsewhere(recorder, task.as_str())?;
        }
        match task {
            Task::Statistics => {
                section.tensor_list = Some(string_list(keys.get("tensor_list"), "tensor_list")?);
                section.flight_recorder = FlightRecorder::read(recorder)?;
                section.sketch = switch(keys.get("sketch"), "sketch")?;
            }
            Task::Tensor => {
                section.file_format = optional_word(&keys, "file_format")?;
                section.online = Some(online(&keys)?);
            }
            Task::OverflowCheck => {
                section.overflow_nums = overflow_nums(keys.get("overflow_nums"))?;
                section.check_mode = optional_word(&keys, "check_mode")?;
            }
            Task::GradProbe => section.grad_probe = Some(GradProbe::read(keys.0)?),
            // Their own keys belong to their own chapters.
            Task::FreeBenchmark | Task::RunUt | Task::Structure => {}
        }
        Ok(section)
    }
}

/// What Python says when a value is used as a dict.
pub(super) fn not_an_object(value: &Value) -> Refusal {
    Refusal::attribute(format!("'{}' object has no attribute 'get'", python::type_name(value)))
}

fn string_list(value: &Value, key: &str) -> Result<Vec<String>, Refusal> {
    let wrong = || Refusal::logged(format!("{key} is invalid, it should be a list[str]"));
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => {
            items.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        }
        _ => Err(wrong()),
    }
}

fn switch(value: &Value, key: &str) -> Result<bool, Refusal> {
    match value {
        Value::Null => Ok(false),
        Value::Bool(on) => Ok(*on),
        _ => Err(Refusal::logged(format!("{key} is invalid, it should be a boolean"))),
    }
}

fn data_modes(keys: &Keys<'_>) -> Result<DataModes, Refusal> {
    let value = keys.get("data_mode");
    let items = match value {
        Value::Null => return Ok(DataModes::default()),
        Value::Array(items) => items,
        _ => return Err(not_a_mode()),
    };
    if items.len() > 1 && items.iter().any(|item| item == DataMode::All.as_str()) {
        return Err(Refusal::logged("'all' cannot be combined with other options in data_mode."));
    }
    let most = DataMode::ALL.len() - 1;
    if items.len() > most {
        // The misspelt key is what the reference prints.
        let what = format!("The number of elements in the data_made cannot exceed {most}.");
        return Err(Refusal::logged(what));
    }
    let members = items.iter().map(|item| {
        let word = item.as_str().ok_or_else(not_a_mode)?;
        DataMode::from_word(word).ok_or_else(|| {
            Refusal::logged(format!(
                "The element '{word}' of data_mode {} is not in {}.",
                python::repr(value),
                python::repr_all::<DataMode>()
            ))
        })
    });
    members.collect::<Result<Vec<_>, _>>().map(DataModes::new)
}

/// For tasks that do not check their `data_mode`: known members count, others are ignored.
fn lenient_data_modes(keys: &Keys<'_>) -> Result<DataModes, Refusal> {
    let mut members = Vec::new();
    let mut add = |word: &str| match DataMode::from_word(word) {
        Some(mode) if !members.contains(&mode) => members.push(mode),
        _ => {}
    };
    match keys.get("data_mode") {
        Value::String(word) => add(word),
        Value::Array(items) => items.iter().filter_map(Value::as_str).for_each(add),
        other if python::truthy(other) => return Err(not_a_mode()),
        _ => {}
    }
    Ok(DataModes::new(members))
}

fn not_a_mode() -> Refusal {
    Refusal::logged("data_mode is invalid, it should be a list[str]")
}

fn summary_mode(keys: &Keys<'_>, checked: bool) -> Result<SummaryMode, Refusal> {
    let value = keys.get("summary_mode");
    match value.as_str().and_then(SummaryMode::from_word) {
        Some(mode) => Ok(mode),
        None if checked && python::truthy(value) => Err(Refusal::logged(format!(
            "summary_mode is invalid, summary_mode is not in {}.",
            python::repr_all::<SummaryMode>()
        ))),
        None => Ok(SummaryMode::Statistics),
    }
}

/// A word, or nothing; unlike elsewhere, the empty string is not nothing.
fn optional_word<T: Word>(keys: &Keys<'_>, key: &str) -> Result<Option<T>, Refusal> {
    let value = keys.get(key);
    match value.as_str().and_then(T::find) {
        None if !value.is_null() => Err(Refusal::plain(format!("{key} is invalid"))),
        word => Ok(word),
    }
}

fn overflow_nums(value: &Value) -> Result<OverflowNums, Refusal> {
    let number = match value {
        Value::Null => return Ok(OverflowNums::default()),
        Value::Number(number) if !number.is_f64() => number,
        // The reference misspells the key here, and only here.
        _ => return Err(Refusal::plain("overflow_num is invalid")),
    };
    if number.as_i64() == Some(-1) {
        return Ok(OverflowNums::Unlimited);
    }
    number
        .as_u64()
        .and_then(NonZeroU64::new)
        .map(OverflowNums::Times)
        .ok_or_else(|| Refusal::plain("overflow_nums should be -1 or positive integer"))
}

fn online(keys: &Keys<'_>) -> Result<Online, Refusal> {
    let switch = keys.get("online_run_ut");
    let recompute = keys.get("online_run_ut_recompute");
    let host = keys.get("host");
    let port = keys.get("port").as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
    let text = |key, missing: &str| match keys.get(key) {
        Value::Null => missing.to_owned(),
        value => value.as_str().unwrap_or_default().to_owned(),
    };
    let online = Online {
        enabled: python::truthy(switch),
        nfs_path: text("nfs_path", ""),
        host: text("host", ""),
        port,
        tls_path: text("tls_path", "./"),
        recompute: recompute.as_bool().unwrap_or(false),
    };
    if !online.enabled {
        return Ok(online);
    }
    let refuse =
        |key, value, end: &str| Err(Refusal::plain(format!("{key}: {} is invalid{end}", python::str(value))));
    if !switch.is_boolean() {
        return refuse("online_run_ut", switch, ".");
    }
    if !recompute.is_boolean() && !recompute.is_null() {
        return refuse("online_run_ut_recompute", recompute, ".");
    }
    if !online.nfs_path.is_empty() {
        return Ok(online);
    }
    if online.host.parse::<Ipv4Addr>().is_err() {
        return refuse("host", host, ".");
    }
    if online.port.is_none() {
        let default = Value::from(-1);
        let port = Some(keys.get("port")).filter(|port| !port.is_null()).unwrap_or(&default);
        return refuse("port", port, ", port range 0-65535.");
    }
    Ok(online)
}
