//! Which APIs of a dump are checked, and what is decided before any of them runs.

mod filter;
mod mindspore;
mod parts;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use msprobe_dump::model::{Damage, DumpFile, find_stacks};
use msprobe_dump::read::{ReadError, ReadErrorKind};

pub use self::mindspore::MINDSPORE_TENSOR;
use crate::names::{Call, is_injection};

/// Where files of tensors are, beside dump.json.
const TENSORS: &str = "dump_tensor_data";
/// APIs whose outputs have no content that could be compared.
const NEVER: [&str; 7] =
    ["to", "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_with_format"];

/// Why a dump cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The file cannot be read.
    #[error("{0}")]
    Read(#[from] ReadError),
    /// A name that no dump has.
    #[error("[msprobe] Unexpected name in json: {0}")]
    Name(String),
    /// It is no dump.
    #[error("[msprobe] Invalid dump.json format: {0}")]
    NoDump(String),
    /// It is no dump that the MindSpore check can use.
    #[error("[msprobe] Api Accuracy Checker parse json failed: {0}")]
    MindSpore(String),
    /// Pieces cannot be made of it.
    #[error("Invalid input file, '{0}' field is missing")]
    Missing(&'static str),
    /// A name that a sheet would take for a formula.
    #[error("api name contains special characters, please check!")]
    Injection,
}

/// Which framework the check is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checker {
    /// The rules of the PyTorch check.
    PyTorch,
    /// The rules of the MindSpore check.
    MindSpore,
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Choice {
    /// Whose rules.
    pub checker: Checker,
    /// Leave out what has the same arguments as an earlier one.
    pub is_filtered: bool,
    /// If not empty, only these.
    pub white_list: Vec<String>,
    /// Never these.
    pub black_list: Vec<String>,
}

/// Where the text of an entry stands in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    offset: u64,
    len: usize,
}

#[derive(Debug, Clone)]
struct Entry {
    full_name: String,
    forward: Option<Place>,
    /// What only the arguments tell of the backward run.
    has_out: bool,
    backward: Option<Place>,
}

/// The APIs of a dump.
#[derive(Debug)]
pub struct Plan {
    path: PathBuf,
    choice: Choice,
    entries: Vec<Entry>,
    /// Backward entries in their order, with those that have no forward.
    backward: Vec<(String, Place)>,
    data_dir: Option<PathBuf>,
    framework: String,
    notes: Vec<(&'static str, String)>,
    /// Lines of code by forward record, read when the first is asked for.
    stacks: OnceLock<HashMap<String, Vec<String>>>,
}

/// One API that is to be checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// `Torch.exp.0`
    pub full_name: String,
    /// `Torch`
    pub kind: String,
    /// `exp`
    pub name: String,
    /// The forward entry as it stands in the dump.
    pub forward: Option<String>,
    /// The backward entry.
    pub backward: Option<String>,
    /// Why it is not run at all.
    pub skip: Option<String>,
    /// Why its backward is not run.
    pub backward_message: String,
    /// Lines of code, innermost first.
    pub stack: Vec<String>,
}

impl Plan {
    /// Reads a dump once; entries are read again when they are run.
    pub fn read(path: &Path, choice: Choice) -> Result<Plan, PlanError> {
        let mut file = DumpFile::open(path)?;
        let mut plan = Plan {
            path: path.to_owned(),
            choice,
            entries: Vec::new(),
            backward: Vec::new(),
            data_dir: None,
            framework: String::new(),
            notes: Vec::new(),
            stacks: OnceLock::new(),
        };
        let mut gatherer = Gatherer::default();
        let checker = plan.choice.checker;
        while let Some(record) = file.next_record(|record| {
            let name = record.name.to_owned();
            let offset = record.offset;
            let text = record.skip()?;
            let place = Place { offset, len: text.len() };
            let arguments =
                (checker == Checker::PyTorch && name.ends_with("forward")).then(|| filter::read(text));
            Ok((name, place, arguments))
        })? {
            let (name, place, arguments) = record;
            gatherer.add(&mut plan, &name, place, arguments)?;
        }
        check_damage(&file, path)?;
        gatherer.finish(&mut plan);
        let directory = path.parent().map_or_else(PathBuf::new, Path::to_owned);
        let header = file.header();
        match checker {
            Checker::PyTorch => {
                "pytorch".clone_into(&mut plan.framework);
                let says = header.dump_data_dir.as_deref().unwrap_or("null");
                if !matches!(says, "null" | "\"\"" | "false" | "0" | "[]" | "{}") {
                    plan.data_dir = Some(directory.join(TENSORS));
                }
                if plan.entries.is_empty() && plan.backward.is_empty() {
                    plan.notes.push((
                        "warning",
                        format!("data field is empty, no api is checked: {}", path.display()),
                    ));
                }
            }
            Checker::MindSpore => mindspore::check_header(&mut plan, &file, &directory)?,
        }
        Ok(plan)
    }

    /// How many APIs there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Where files of tensors are; none where inputs are made from statistics.
    pub fn data_dir(&self) -> Option<&Path> {
        self.data_dir.as_deref()
    }

    /// What the dump was made with.
    pub fn framework(&self) -> &str {
        &self.framework
    }

    /// What is to be logged: a logger's method and a text.
    pub fn notes(&self) -> &[(&'static str, String)] {
        &self.notes
    }

    /// Full names in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.full_name.as_str())
    }

    /// All that is known of one of them.
    pub fn case(&self, position: usize) -> io::Result<Option<Case>> {
        let Some(entry) = self.entries.get(position) else { return Ok(None) };
        let call = match self.choice.checker {
            Checker::PyTorch => Call::parse(&entry.full_name),
            Checker::MindSpore => mindspore::call(&entry.full_name),
        };
        let skip = match self.choice.checker {
            Checker::PyTorch => self.skip(&entry.full_name, call.as_ref()),
            Checker::MindSpore => None,
        };
        let (kind, name) = call.map_or_else(Default::default, |call| (call.kind, call.name));
        let backward_message = match self.choice.checker {
            Checker::PyTorch => backward_message(&name, entry.has_out),
            Checker::MindSpore => String::new(),
        };
        Ok(Some(Case {
            full_name: entry.full_name.clone(),
            forward: self.text(entry.forward)?,
            backward: self.text(entry.backward)?,
            skip,
            backward_message,
            stack: self.stack(&entry.full_name),
            kind,
            name,
        }))
    }

    /// Why an API of PyTorch is not run.
    fn skip(&self, full_name: &str, call: Option<&Call>) -> Option<String> {
        let unsupported = || Some(format!("API {full_name} not support for run ut. SKIP."));
        let Some(call) = call else { return unsupported() };
        if matches!(call.kind.as_str(), "Distributed" | "MindSpeed") {
            return unsupported();
        }
        let (white, black) = (&self.choice.white_list, &self.choice.black_list);
        let is_listed = |list: &[String]| list.contains(&call.name);
        let is_wanted = white.is_empty() || is_listed(white);
        (is_listed(black) || NEVER.contains(&call.name.as_str()) || !is_wanted)
            .then(|| format!("API {} in black list or not in white list. SKIP.", call.name))
    }

    fn text(&self, place: Option<Place>) -> io::Result<Option<String>> {
        let Some(place) = place else { return Ok(None) };
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(place.offset))?;
        let mut text = Vec::new();
        file.take(place.len as u64).read_to_end(&mut text)?;
        Ok(Some(String::from_utf8_lossy(&text).into_owned()))
    }

    /// The lines that called an API; none where there is no stack.json.
    fn stack(&self, full_name: &str) -> Vec<String> {
        let stacks = self.stacks.get_or_init(|| {
            let directory = match self.path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent,
                _ => Path::new("."),
            };
            let names: Vec<String> = self.names().map(|name| format!("{name}.forward")).collect();
            let wanted: HashSet<&str> = names.iter().map(String::as_str).collect();
            find_stacks(directory, &wanted).unwrap_or_default()
        });
        stacks.get(&format!("{full_name}.forward")).cloned().unwrap_or_default()
    }
}

/// Why a backward run is left out, by what was recorded of the forward one.
fn backward_message(name: &str, has_out: bool) -> String {
    let mut message = String::new();
    if has_out {
        message.push_str(
            "function with out=... arguments don't support automatic differentiation, skip backward.",
        );
    }
    match name {
        "repeat_interleave" => message.push_str("This API does not have backward input data, skip backward."),
        "masked_select" => message.push_str("This API does not support backward ut, skip backward."),
        _ => {}
    }
    message
}

fn check_damage(file: &DumpFile, path: &Path) -> Result<(), PlanError> {
    for damage in file.damage() {
        match damage {
            Damage::NoData | Damage::NoRecords => {
                return Err(PlanError::NoDump(
                    "something wrong with dump, no data found in dump.json".to_owned(),
                ));
            }
            Damage::Ends { what, offset } => {
                let (path, kind) = (path.to_owned(), ReadErrorKind::Syntax { what, offset: *offset });
                return Err(ReadError { path, kind }.into());
            }
            Damage::Record { .. } | Damage::Tasks(..) => {}
        }
    }
    Ok(())
}

/// Puts entries together while they are read.
#[derive(Default)]
struct Gatherer {
    by_name: HashMap<String, usize>,
    kept: HashMap<String, Vec<filter::Key>>,
    dropped: HashSet<String>,
}

impl Gatherer {
    fn add(
        &mut self,
        plan: &mut Plan,
        key: &str,
        place: Place,
        arguments: Option<filter::Arguments>,
    ) -> Result<(), PlanError> {
        match plan.choice.checker {
            Checker::PyTorch => self.add_pytorch(plan, key, place, arguments.unwrap_or_default()),
            Checker::MindSpore => {
                if let Some((name, is_backward)) = mindspore::checked(key) {
                    let index = *self.by_name.entry(name.clone()).or_insert_with(|| {
                        let entry = Entry { full_name: name, forward: None, has_out: false, backward: None };
                        plan.entries.push(entry);
                        plan.entries.len() - 1
                    });
                    if let Some(entry) = plan.entries.get_mut(index) {
                        *(if is_backward { &mut entry.backward } else { &mut entry.forward }) = Some(place);
                    }
                }
                Ok(())
            }
        }
    }

    fn add_pytorch(
        &mut self,
        plan: &mut Plan,
        key: &str,
        place: Place,
        arguments: filter::Arguments,
    ) -> Result<(), PlanError> {
        if key.contains("Module") {
            return Ok(());
        }
        let unexpected = || {
            let path = plan.path.display();
            PlanError::Name(format!("{key} in file {path}"))
        };
        let stem = |direction: &str| key.strip_suffix(direction).and_then(|stem| stem.strip_suffix('.'));
        if key.contains("forward") {
            let full_name = stem("forward").ok_or_else(unexpected)?.to_owned();
            if is_injection(&full_name) {
                return Err(PlanError::Injection);
            }
            let has_out = arguments.has_out;
            if plan.choice.is_filtered && !self.keeps(&full_name, arguments) {
                self.dropped.insert(full_name);
                return Ok(());
            }
            let entry = Entry { full_name: full_name.clone(), forward: Some(place), has_out, backward: None };
            match self.by_name.get(&full_name).and_then(|index| plan.entries.get_mut(*index)) {
                // A key that is there twice counts as Python reads it: the last one.
                Some(before) => *before = entry,
                None => {
                    self.by_name.insert(full_name, plan.entries.len());
                    plan.entries.push(entry);
                }
            }
            return Ok(());
        }
        let full_name = stem("backward").filter(|_| key.contains("backward")).ok_or_else(unexpected)?;
        plan.backward.push((full_name.to_owned(), place));
        Ok(())
    }

    /// Whether no earlier call of the API had the same arguments.
    fn keeps(&mut self, full_name: &str, arguments: filter::Arguments) -> bool {
        let stem = full_name.rsplit_once('.').map_or(full_name, |(stem, _)| stem);
        let kept = self.kept.entry(stem.to_owned()).or_default();
        if kept.contains(&arguments.key) {
            return false;
        }
        kept.push(arguments.key);
        true
    }

    fn finish(self, plan: &mut Plan) {
        for (name, place) in &plan.backward {
            if let Some(entry) = self.by_name.get(name).and_then(|index| plan.entries.get_mut(*index)) {
                entry.backward = Some(*place);
            }
        }
        if plan.choice.is_filtered && !self.dropped.is_empty() {
            let text = format!(
                "{} with the arguments of an earlier call are left out",
                msprobe_report::counted(self.dropped.len(), "API")
            );
            plan.notes.push(("info", text));
        }
    }
}

#[cfg(test)]
mod tests;
