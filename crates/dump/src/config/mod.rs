//! `config.json` of a collector: raw text and constructor arguments in, a configuration that the rest of
//! the program trusts out.
//!
//! Rules, their order and their texts are the reference's, because scripts catch the exceptions and people search
//! for the texts. Several checks log the reason and raise a bare exception; [`ConfigError`] keeps the two apart.
//! Whatever depends on the outside (the config file itself, directories, whether an NPU is there) is left to the
//! caller. The framework it is for has its own names of APIs and its own keys; they are given ([`Framework`]).

mod error;
mod flight;
mod gradients;
mod keys;
mod python;
mod ranges;
mod scope;
mod section;
mod seed;
#[cfg(test)]
mod tests;
mod values;

use serde_json::{Map, Value};

use self::error::Refusal;
pub use self::error::{ConfigError, ErrorClass, LogLevel, LogLine};
pub use self::flight::{FlightRecorder, Keeps};
pub use self::gradients::{Bound, GradLevel, GradProbe};
pub use self::ranges::RangeSet;
pub use self::scope::Scope;
use self::section::Section;
pub use self::values::{
    CheckMode, DataMode, DataModes, FileFormat, Level, Online, OverflowNums, SummaryMode, Task,
};
use crate::framework::Framework;
use crate::names::{Rank, Step};
use crate::words::Word;

/// The longest text that is parsed. Two lists of a million numbers fit; parsing takes up to 16 times its size.
const MAX_TEXT_BYTES: usize = 32 << 20;

/// Arguments of the constructor, which win over the file. Untyped, because their types are checked here; `null`
/// where an argument was not given. The caller bounds their depth.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// One of [`Task`].
    pub task: Value,
    /// A string; the empty one counts as not given.
    pub dump_path: Value,
    /// One of [`Level`].
    pub level: Value,
    /// A list of numbers and ranges.
    pub step: Value,
}

/// A configuration that was accepted, and what to log about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The configuration.
    pub config: Config,
    /// Warnings, in order.
    pub log: Vec<LogLine>,
    /// Keys that mean nothing here; the reference is silent about them.
    pub remarks: Vec<LogLine>,
}

/// What to collect.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// What is collected.
    pub task: Task,
    /// The task of the file, whatever the argument said. The reference decides by it whether `save` does anything.
    pub file_task: Task,
    /// Where values are taken.
    pub level: Level,
    /// The directory for everything written; not empty.
    pub dump_path: String,
    /// Ranks that collect; empty for all.
    pub rank: RangeSet,
    /// Steps that are collected; empty for all.
    pub step: RangeSet,
    /// The part of a step that is collected.
    pub scope: Scope,
    /// Substrings of the names to record; empty for all.
    pub list: Vec<String>,
    /// Substrings of the names whose tensors are saved; `None` for tasks other than statistics.
    pub tensor_list: Option<Vec<String>>,
    /// The sides of calls that are recorded.
    pub data_mode: DataModes,
    /// What is computed of each tensor.
    pub summary_mode: SummaryMode,
    /// When overflow checks end.
    pub overflow_nums: OverflowNums,
    /// Which operators overflow checks look at, where the framework tells them apart.
    pub check_mode: Option<CheckMode>,
    /// The format of tensors, where the framework has several.
    pub file_format: Option<FileFormat>,
    /// Whether the framework's `DataLoader` drives start and step.
    pub enable_dataloader: bool,
    /// Whether tensors are written when the step ends rather than at once.
    pub async_dump: bool,
    /// Whether backward records of functions hold the gradients of their inputs rather than what their last autograd
    /// node gives.
    pub input_gradients: bool,
    /// The online checker's transport; `None` for tasks other than tensor.
    pub online: Option<Online>,
    /// The gradient probe's own keys; `None` for other tasks.
    pub grad_probe: Option<GradProbe>,
    /// Whether records stay in memory until something goes wrong; only for statistics.
    pub flight_recorder: Option<FlightRecorder>,
    /// Whether each tensor gets a sketch beside its statistics; only for statistics.
    pub sketch: bool,
    /// What random numbers start from; `None` leaves them alone.
    pub seed: Option<u32>,
    /// Whether the framework uses deterministic algorithms only; `None` leaves it as it is.
    pub is_deterministic: Option<bool>,
}

impl Config {
    /// Resolves the text of a `config.json` and the arguments of the constructor, for a framework.
    ///
    /// Text that cannot be parsed is an error of class [`ErrorClass::Runtime`]: the caller, who knows the file,
    /// names it.
    pub fn from_json(
        file_text: &str,
        overrides: &Overrides,
        framework: &Framework,
    ) -> Result<Resolved, ConfigError> {
        let (mut log, mut remarks) = (Vec::new(), Vec::new());
        match resolve(file_text, overrides, framework, &mut log, &mut remarks) {
            Ok(config) => Ok(Resolved { config, log, remarks }),
            Err(refusal) => Err(ConfigError { remarks, ..refusal.after(log) }),
        }
    }

    /// Whether a step is collected.
    pub fn wants_step(&self, step: Step) -> bool {
        self.step.is_empty() || self.step.contains(step.0)
    }

    /// Whether a step lies behind all that are collected, so that collection is over.
    pub fn ends_before(&self, step: Step) -> bool {
        self.step.max().is_some_and(|last| step.0 > u64::from(last))
    }

    /// Whether a rank collects. A process without a rank is in no list of ranks; level debug has no such filter.
    pub fn wants_rank(&self, rank: Rank) -> bool {
        (self.level == Level::Debug && self.task != Task::GradProbe)
            || self.rank.is_empty()
            || rank.0.is_some_and(|rank| self.rank.contains(u64::from(rank)))
    }
}

/// The keys every task has, with the file's own task and level where it names any.
struct Common {
    task: Option<Task>,
    dump_path: Option<String>,
    rank: RangeSet,
    step: RangeSet,
    level: Option<Level>,
    enable_dataloader: bool,
    async_dump: bool,
    input_gradients: bool,
}

struct Arguments {
    task: Option<Task>,
    dump_path: Option<String>,
    level: Option<Level>,
}

fn resolve(
    text: &str,
    overrides: &Overrides,
    framework: &Framework,
    log: &mut Vec<LogLine>,
    remarks: &mut Vec<LogLine>,
) -> Result<Config, Refusal> {
    let arguments = read_arguments(overrides)?;
    let file = read_object(text)?;
    // Before anything is refused: a misspelt key may be the reason.
    let named = file.get("task").and_then(Value::as_str).and_then(Task::from_word);
    let task = arguments.task.or(named).unwrap_or(Task::Statistics);
    remarks.extend(keys::unknown(&file, task, framework));
    if task == Task::RunUt {
        remarks.push(LogLine::warning(
            "the task run_ut is not in this version; collect with the task tensor on both devices and compare the dumps \
             with `msprobe compare` instead",
        ));
    }
    let common = read_common(&file, log)?;
    let file_task = common.task.unwrap_or(Task::Statistics);
    let task = arguments.task.unwrap_or(file_task);
    let section = Section::read(&file, task)?;
    let step = match &overrides.step {
        Value::Null => common.step,
        step => ranges::parse(step, "step")?,
    };
    let Some(dump_path) = arguments.dump_path.or(common.dump_path) else {
        return Err(Refusal::invalid("The dump_path not found."));
    };
    let mut config = Config {
        task,
        file_task,
        level: arguments.level.or(common.level).unwrap_or(Level::L1),
        dump_path,
        rank: common.rank,
        step,
        scope: Scope::Everything,
        list: Vec::new(),
        tensor_list: section.tensor_list,
        data_mode: section.data_mode,
        summary_mode: section.summary_mode,
        overflow_nums: section.overflow_nums,
        check_mode: section.check_mode,
        file_format: section.file_format,
        enable_dataloader: common.enable_dataloader,
        async_dump: common.async_dump,
        input_gradients: common.input_gradients,
        online: section.online,
        grad_probe: section.grad_probe,
        flight_recorder: section.flight_recorder,
        sketch: section.sketch,
        seed: seed::seed(&file)?,
        is_deterministic: seed::is_deterministic(&file)?,
    };
    flight::couple(&config)?;
    couple(&mut config, framework, &section.scope, section.list, log)?;
    if config.enable_dataloader {
        log.push(LogLine::warning("The enable_dataloader feature will be deprecated in the future."));
    }
    Ok(config)
}

fn read_arguments(overrides: &Overrides) -> Result<Arguments, Refusal> {
    let task = argument_word(&overrides.task, "task")?;
    let dump_path = match &overrides.dump_path {
        Value::Null => None,
        Value::String(path) => Some(path.clone()).filter(|path| !path.is_empty()),
        _ => return Err(Refusal::invalid("dump_path must be a string")),
    };
    let level = argument_word(&overrides.level, "level")?;
    Ok(Arguments { task, dump_path, level })
}

/// Unlike in the file, the empty string is not a way of not giving an argument.
fn argument_word<T: Word>(value: &Value, name: &str) -> Result<Option<T>, Refusal> {
    match value.as_str().and_then(T::find) {
        None if !value.is_null() => {
            Err(Refusal::invalid(format!("{name} must be one of {}", python::repr_all::<T>())))
        }
        word => Ok(word),
    }
}

fn read_object(text: &str) -> Result<Map<String, Value>, Refusal> {
    if text.len() > MAX_TEXT_BYTES {
        let size_bytes = text.len();
        return Err(Refusal::runtime(format!(
            "the configuration is {size_bytes} bytes long, more than {MAX_TEXT_BYTES} are not read"
        )));
    }
    // Some editors put a mark before the text.
    match serde_json::from_str(text.strip_prefix('\u{feff}').unwrap_or(text)) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(other) => Err(section::not_an_object(&other)),
        Err(error) => Err(Refusal::runtime(error.to_string())),
    }
}

fn read_common(file: &Map<String, Value>, log: &mut Vec<LogLine>) -> Result<Common, Refusal> {
    let get = |key: &str| file.get(key).unwrap_or(&Value::Null);
    let rank = ranges::parse(get("rank"), "rank")?;
    let step = ranges::parse(get("step"), "step")?;
    let task = file_word(get("task"), "task")?;
    let dump_path = match get("dump_path") {
        Value::Null => None,
        Value::String(path) => Some(path.clone()).filter(|path| !path.is_empty()),
        _ => return Err(Refusal::logged("dump_path is invalid, it should be a string")),
    };
    let level = file_word(get("level"), "level")?;
    let switch = |key: &str| match file.get(key) {
        None => Ok(false),
        Some(Value::Bool(on)) => Ok(*on),
        Some(_) => Err(Refusal::logged(format!("{key} is invalid, it should be a boolean"))),
    };
    let enable_dataloader = switch("enable_dataloader")?;
    let async_dump = switch("async_dump")?;
    if async_dump {
        log.push(LogLine::warning("async_dump is True, it may cause OOM when dumping large tensor."));
    }
    let input_gradients = switch("input_gradients")?;
    Ok(Common { task, dump_path, rank, step, level, enable_dataloader, async_dump, input_gradients })
}

/// In the file, whatever Python holds for false is no word.
fn file_word<T: Word>(value: &Value, key: &str) -> Result<Option<T>, Refusal> {
    match value.as_str().and_then(T::find) {
        None if python::truthy(value) => {
            Err(Refusal::logged(format!("{key} is invalid, it should be one of {}", python::repr_all::<T>())))
        }
        word => Ok(word),
    }
}

/// What holds between task, level, scope and lists.
fn couple(
    config: &mut Config,
    framework: &Framework,
    scope: &Value,
    mut list: Value,
    log: &mut Vec<LogLine>,
) -> Result<(), Refusal> {
    if config.async_dump && config.task == Task::Tensor {
        if config.level == Level::Debug {
            list = Value::Null;
        } else if !python::truthy(&list) {
            return Err(Refusal::invalid(
                "The parameters async_dump is true in tensor task, the parameters list cannot be empty.",
            ));
        }
    }
    if config.task == Task::Structure && !matches!(config.level, Level::L0 | Level::Mix) {
        log.push(LogLine::warning(
            "When the task is set to structure, the level should be one of ['L0', 'mix']. \
             If not, the default level is mix.",
        ));
        config.level = Level::Mix;
    }
    if config.level == Level::Debug
        && let Some(tensor_list) = config.tensor_list.as_mut().filter(|list| !list.is_empty())
    {
        log.push(LogLine::warning("When level is set to debug, the tensor_list will be invalid."));
        tensor_list.clear();
    }
    if config.level == Level::L2 && config.task != Task::GradProbe {
        one_kernel(config.task, scope, &mut list)?;
    }
    // The reference looks for a collector of the task, and has none for this one. What to do is in the remarks.
    if config.task == Task::RunUt {
        let (name, task) = (&framework.name, config.task);
        return Err(Refusal::value(format!("Processor not found for framework: {name}, task: {task}")));
    }
    if config.task == Task::GradProbe {
        // It has a list of its own, and steps are not divided.
        return Ok(());
    }
    (config.scope, config.list) =
        scope::parse(scope, &list, config.task, config.level, &framework.api_prefixes)?;
    Ok(())
}

/// Level L2 takes the kernels of a single API; for its backward pass, the forward pass has to be caught too.
fn one_kernel(task: Task, scope: &Value, list: &mut Value) -> Result<(), Refusal> {
    if python::truthy(scope) {
        return Err(Refusal::invalid("When level is set to L2, the scope cannot be configured."));
    }
    let Some(names) = list.as_array_mut().filter(|names| names.len() == 1) else {
        return Err(Refusal::invalid(
            "When level is set to L2, the list must be configured as a list with one api name.",
        ));
    };
    if task != Task::Tensor {
        return Err(Refusal::invalid("When level is set to L2, the task must be set to tensor."));
    }
    let forward = names.first().and_then(Value::as_str).and_then(|name| name.strip_suffix("backward"));
    if let Some(stem) = forward {
        let name = format!("{stem}forward");
        names.push(Value::from(name));
    }
    Ok(())
}
