//! What stands beside a dump: call stacks and the hierarchy of modules.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use msprobe_dump::model::{Construct, read_stacks};
use msprobe_dump::read::{Json, ReadError};

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
    /// Reads stack.json. A file that is not wholly what it should be is refused.
    pub fn read(path: &Path, console: &dyn Console) -> Result<Stacks, CompareError> {
        let mut stacks = Stacks::default();
        // The key "0" tells the new form; it comes first there.
        let (mut is_grouped, mut fault) = (None, None);
        read_stacks(path, |entry| {
            let is_grouped = *is_grouped.get_or_insert(entry.key == "0");
            let what = match entry.frames {
                None => format!("stack info of {} is not a list, please check!", entry.key),
                Some(_) if is_grouped && entry.records.is_none() => {
                    format!("stack info {} is not a pair of lists, please check!", entry.key)
                }
                Some(frames) => {
                    let stack = stack(frames);
                    for record in entry.records() {
                        stacks.insert(record, stack.clone(), console);
                    }
                    return ControlFlow::Continue(());
                }
            };
            fault = Some(CompareError::new(Code::InvalidObjectType, what));
            ControlFlow::Break(())
        })
        .map_err(|error| unreadable(&error))?;
        fault.map_or(Ok(stacks), Err)
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

/// Reads construct.json. A file that ends early is refused.
pub fn read_construct(path: &Path) -> Result<Construct, CompareError> {
    let construct = Construct::read_file(path).map_err(|error| unreadable(&error))?;
    construct.problem().map(unreadable).map_or(Ok(construct), Err)
}

fn unreadable(error: &ReadError) -> CompareError {
    CompareError::new(Code::BrokenJson, format!("Load json file {} failed.", error.path.display()))
        .with_hint(error.to_string())
}
