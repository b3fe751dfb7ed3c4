//! What stands beside a dump: call stacks and the hierarchy of modules.

use std::path::Path;
use std::sync::Arc;

use msprobe_dump::read::{Json, Members, ReadError};

use crate::console::Console;
use crate::error::{Code, CompareError};
use crate::python_text::{list_of_texts, python_str};
use crate::side::checks::looks_like_a_formula;
use msprobe_dump::hash::FastMap;

/// Call stacks by record. Records that share one share its memory.
#[derive(Debug, Default)]
pub struct Stacks {
    by_record: FastMap<Box<str>, Arc<Stack>>,
}

/// A call stack.
#[derive(Debug)]
pub struct Stack {
    /// Frames, innermost first.
    pub frames: Arc<[Box<str>]>,
    /// All of it as tables show it.
    pub cell: String,
}

impl Stacks {
    /// Reads stack.json in its old form, `{record: [frame, …]}`, or the new one, `{"0": [[record, …], [frame, …]]}`.
    pub fn read(path: &Path, console: &dyn Console) -> Result<Stacks, CompareError> {
        let mut members = Members::open(path, "").map_err(|error| unreadable(&error))?;
        let mut stacks = Stacks::default();
        // The key "0" tells the new form; it comes first there.
        let mut grouped = None;
        while let Some(member) = members.next_member().map_err(|error| unreadable(&error))? {
            let grouped = *grouped.get_or_insert(&*member.key == "0");
            let Json::List(list) = &member.value else {
                let message = format!("stack info of {} is not a list, please check!", member.key);
                return Err(CompareError::new(Code::InvalidObjectType, message));
            };
            match list.as_slice() {
                [Json::List(records), Json::List(frames)] if grouped => {
                    let stack = stack(frames);
                    for record in records.iter().filter_map(Json::as_str) {
                        stacks.insert(record, stack.clone(), console);
                    }
                }
                _ if grouped => {
                    let message = format!("stack info {} is not a pair of lists, please check!", member.key);
                    return Err(CompareError::new(Code::InvalidObjectType, message));
                }
                frames => stacks.insert(&member.key, stack(frames), console),
            }
        }
        Ok(stacks)
    }

    fn insert(&mut self, record: &str, stack: Arc<Stack>, console: &dyn Console) {
        if stack.frames.iter().any(|frame| looks_like_a_formula(frame)) {
            console.warning(&format!("stack info of {record} contains special characters, please check!"));
        }
        self.by_record.insert(record.into(), stack);
    }

    /// The stack of a record.
    pub fn of(&self, record: &str) -> Option<&Stack> {
        self.by_record.get(record).map(|stack| &**stack)
    }

    /// Whether none were read.
    pub fn is_empty(&self) -> bool {
        self.by_record.is_empty()
    }
}

fn stack(list: &[Json<'_>]) -> Arc<Stack> {
    let frames: Arc<[Box<str>]> = list.iter().map(|text| python_str(text).into()).collect();
    let cell = list_of_texts(frames.iter());
    Arc::new(Stack { frames, cell })
}

/// The module call in which each record was made.
#[derive(Debug, Default)]
pub struct Construct {
    parents: FastMap<Box<str>, Option<Arc<str>>>,
}

impl Construct {
    /// Reads construct.json: `{record: parent or null or [parent, …]}`.
    pub fn read(path: &Path) -> Result<Construct, CompareError> {
        let mut members = Members::open(path, "").map_err(|error| unreadable(&error))?;
        let mut construct = Construct::default();
        while let Some(member) = members.next_member().map_err(|error| unreadable(&error))? {
            let parent = match &member.value {
                Json::Text(parent) => Some(Arc::from(&**parent)),
                Json::List(parents) => parents.first().and_then(Json::as_str).map(Arc::from),
                _ => None,
            };
            construct.parents.insert(member.key.into(), parent);
        }
        Ok(construct)
    }

    /// The module call a record was made in.
    pub fn parent(&self, record: &str) -> Option<&Arc<str>> {
        self.parents.get(record)?.as_ref()
    }

    /// Whether nothing was read.
    pub fn is_empty(&self) -> bool {
        self.parents.is_empty()
    }
}

fn unreadable(error: &ReadError) -> CompareError {
    CompareError::new(Code::BrokenJson, format!("Load json file {} failed.", error.path.display()))
        .with_hint(error.to_string())
}
