//! Making a graph file of dumps that were found: what `msprobe graph_visualize` does, asked for in the browser. One at a time, on a
//! thread of its own; the file appears below a given path when it is complete.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use msprobe_graph::merge::classes::Classes;
use msprobe_graph::merge::{DEFAULT_ORDER, Strategies, Strategy};
use msprobe_graph::names::Generation;
use msprobe_graph::run::{GraphOutcome, LayerMapping, Options, run};
use msprobe_report::console::{Console, Level};
use msprobe_report::error::CompareError;
use msprobe_report::paths::make_directory_in;
use serde::Deserialize;

use crate::catalogue::{Found, Root, Source, id_of};
use crate::fault::Fault;
use crate::prepare::Origin;
use crate::wire::Conversion;

/// Messages that are kept of one conversion, and how long each may be.
const MOST_MESSAGES: usize = 500;
const LONGEST_MESSAGE: usize = 2000;
/// Letters of the name of a directory.
const LONGEST_NAME: usize = 100;

/// What is asked for.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConvertBody {
    /// Ids of dumps.
    target: String,
    golden: Option<String>,
    /// Name of a directory below the path the target was found under.
    output: String,
    #[serde(default)]
    fuzzy: bool,
    #[serde(default)]
    overflow_check: bool,
    /// A file of layers below the same path; an empty text to go by names alone.
    mapping: Option<String>,
    /// How ranks share the work, of each side.
    #[serde(default)]
    merge: Vec<StrategyBody>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StrategyBody {
    rank_size: u32,
    tp: u32,
    pp: u32,
    #[serde(default = "one")]
    vpp: u32,
    #[serde(default = "one")]
    cp: u32,
    #[serde(default = "one")]
    ep: u32,
    #[serde(default)]
    order: String,
}

fn one() -> u32 {
    1
}

impl From<StrategyBody> for Strategy {
    fn from(body: StrategyBody) -> Strategy {
        let StrategyBody { rank_size, tp, pp, vpp, cp, ep, order } = body;
        let order = if order.is_empty() { DEFAULT_ORDER.to_owned() } else { order };
        Strategy { rank_size, tp, pp, vpp, cp, ep, order }
    }
}

/// The conversion under way, or the last one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Converter(Arc<Mutex<Option<Conversion>>>);

impl Converter {
    fn lock(&self) -> MutexGuard<'_, Option<Conversion>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far it is.
    pub(crate) fn state(&self) -> Conversion {
        self.lock().clone().unwrap_or_default()
    }

    fn change(&self, act: impl FnOnce(&mut Conversion)) {
        if let Some(now) = &mut *self.lock() {
            act(now);
        }
    }

    /// Begins what is asked for.
    pub(crate) fn begin(
        &self,
        roots: &[Root],
        found: &Found,
        asked: ConvertBody,
    ) -> Result<Conversion, Fault> {
        let (root, options) = options(roots, found, asked)?;
        {
            let mut now = self.lock();
            if now.as_ref().is_some_and(|now| now.state == "running") {
                return Err(
                    Fault::conflict("a conversion is under way already").with_hint("wait for its end")
                );
            }
            *now = Some(Conversion { state: "running", ..Conversion::default() });
        }
        let converter = self.clone();
        let work = move || {
            let progress = |percent: u8| converter.change(|now| now.percent = percent.min(99));
            let done = catch_unwind(AssertUnwindSafe(|| run(&options, &converter, &progress)));
            converter.end(&root, done.ok());
        };
        if let Err(error) = std::thread::Builder::new().name("convert".to_owned()).spawn(work) {
            *self.lock() = None;
            return Err(error.into());
        }
        Ok(self.state())
    }

    fn end(&self, root: &Root, done: Option<Result<GraphOutcome, CompareError>>) {
        self.change(|now| match done {
            Some(Ok(outcome)) => {
                now.state = "done";
                now.percent = 100;
                now.headline = Some(outcome.answer().headline);
                let file = outcome.files.first();
                now.item = file.map(|file| id_of(&root.path, file));
                now.path = file.map(|file| root.show(file));
                for (what, why) in &outcome.left_out {
                    push(&mut now.messages, &format!("{what}: {why}"));
                }
            }
            Some(Err(error)) => {
                now.state = "failed";
                (now.error, now.hint) = (Some(error.message), error.hint);
            }
            None => {
                now.state = "failed";
                now.error = Some("the conversion ended by a fault of msprobe".to_owned());
                now.hint = Some("please report it with the dump".to_owned());
            }
        });
    }
}

fn push(messages: &mut Vec<String>, text: &str) {
    if messages.len() < MOST_MESSAGES {
        messages.push(text.chars().take(LONGEST_MESSAGE).collect());
    }
}

impl Console for Converter {
    fn log(&self, level: Level, text: &str) {
        if level >= Level::Warning {
            self.change(|now| push(&mut now.messages, text));
        }
    }
}

/// A dump that was found.
fn dump<'f>(found: &'f Found, id: &str) -> Result<&'f Path, Fault> {
    let Some(Source::Graph(Origin::Dump(path))) = found.sources.get(id) else {
        return Err(Fault::missing("there is no such dump").with_hint("go back to the list"));
    };
    let item = found.catalogue.items.iter().find(|item| item.id == id);
    match item.and_then(|item| item.error.as_ref()) {
        Some(error) => Err(Fault::unreadable(error.clone())),
        None => Ok(path),
    }
}

/// Checks what is asked for, and makes the directory of the result.
fn options(roots: &[Root], found: &Found, asked: ConvertBody) -> Result<(Root, Options), Fault> {
    let target = dump(found, &asked.target)?;
    let golden = asked.golden.as_deref().map(|id| dump(found, id)).transpose()?;
    let root = roots
        .iter()
        .filter(|root| target.starts_with(&root.path))
        .max_by_key(|root| root.path.as_os_str().len());
    let root = root.ok_or_else(|| Fault::missing("there is no such dump"))?;
    let layer_mapping = match asked.mapping.as_deref() {
        None => None,
        Some("") => Some(LayerMapping::Names),
        Some(file) => Some(LayerMapping::File(inside(&root.path, file)?)),
    };
    let sides = if golden.is_some() { 2 } else { 1 };
    let mut merge = asked.merge.into_iter().map(Strategy::from);
    let merge = match (merge.next(), merge.next()) {
        (None, _) => None,
        (Some(target), golden) if usize::from(golden.is_some()) + 1 == sides && merge.next().is_none() => {
            Some(Strategies { target, golden, classes: Classes::default() })
        }
        _ => {
            return Err(Fault::bad("the numbers of ranks are for one side, the dumps for another number")
                .with_hint("to merge ranks, say of each dump how its ranks share the work"));
        }
    };
    let output = directory(root, found, &asked.output)?;
    let options = Options {
        golden: golden.map(Path::to_owned),
        layer_mapping,
        fuzzy: asked.fuzzy,
        overflow_check: asked.overflow_check,
        merge,
        ..Options::new(Generation::Third, target, &output)
    };
    Ok((root.clone(), options))
}

/// The directory of the result: a plain name below the root, and in no dump, which it would change.
fn directory(root: &Root, found: &Found, name: &str) -> Result<PathBuf, Fault> {
    let is_plain = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'_' | b'-' | b'.');
    if name.is_empty() || name.len() > LONGEST_NAME || name.starts_with('.') || !name.bytes().all(is_plain) {
        return Err(Fault::bad("this is no name for a directory")
            .with_hint("use letters, digits, _ - and ., and no . at its beginning"));
    }
    let output = root.path.join(name);
    let is_in_dump = |source: &Source| match source {
        Source::Graph(Origin::Dump(dump)) => output.starts_with(dump),
        _ => false,
    };
    if !root.path.is_dir() || found.sources.values().any(is_in_dump) {
        return Err(Fault::conflict("the result would lie in the dump itself")
            .with_hint("start msprobe view with the directory above the dump"));
    }
    make_directory_in(&root.path, name)
        .map_err(|error| Fault { hint: error.hint, ..Fault::new(StatusCode::FORBIDDEN, error.message) })
}

/// An ordinary file below the root, without links on the way.
fn inside(root: &Path, file: &str) -> Result<PathBuf, Fault> {
    let missing = || {
        Fault::missing(format!("there is no file {file} below {}", root.display()))
            .with_hint("give its path from there, without links and ..")
    };
    let mut path = root.to_owned();
    for part in Path::new(file).components() {
        let Component::Normal(part) = part else { return Err(missing()) };
        path.push(part);
        if std::fs::symlink_metadata(&path).map_err(|_| missing())?.is_symlink() {
            return Err(missing());
        }
    }
    if path.is_file() { Ok(path) } else { Err(missing()) }
}
