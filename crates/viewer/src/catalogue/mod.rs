//! What lies below the paths a user named: one item for a run with all its steps and ranks, one for a graph with all its
//! files, one for each answer of a command.
//!
//! Directories are looked through to a depth and a number; links are not followed, and are told. An id is looked up here and is
//! never part of a path.

mod answers;
mod dumps;
mod graphs;
mod scan;
mod tables;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use chrono::{DateTime, Utc};
use msprobe_report::Tone;
use msprobe_report::answer::Status;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_128;

use crate::prepare::Origin;
use crate::wire::{Catalogue, Item, ItemKind, Note};

pub(crate) use self::tables::{gradients, item_tables, key_data};

/// What a user named.
#[derive(Debug, Clone)]
pub(crate) struct Root {
    /// As it was typed.
    pub(crate) shown: String,
    /// With all links followed.
    pub(crate) path: PathBuf,
}

impl Root {
    /// A path below it as the user would write it.
    pub(crate) fn show(&self, path: &Path) -> String {
        match path.strip_prefix(&self.path) {
            Ok(inside) if inside.as_os_str().is_empty() => self.shown.clone(),
            Ok(inside) => Path::new(&self.shown).join(inside).display().to_string(),
            Err(_) => path.display().to_string(),
        }
    }
}

/// What an item is made of.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// Something with nodes.
    Graph(Origin),
    /// The JSON of a command.
    Report(PathBuf),
    /// A database of trends.
    Trend(PathBuf),
}

/// Everything that was found, and where.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) catalogue: Catalogue,
    pub(crate) sources: HashMap<String, Source>,
    /// Html pages of commands, by id.
    pub(crate) pages: HashMap<String, PathBuf>,
}

/// Names a thing in links: the same as long as it lies below the same root.
pub(crate) fn id_of(root: &Path, path: &Path) -> String {
    let inside = path.strip_prefix(root).unwrap_or(path);
    let mut text = root.as_os_str().as_encoded_bytes().to_vec();
    text.push(0);
    text.extend_from_slice(inside.as_os_str().as_encoded_bytes());
    format!("{:016x}", xxh3_128(&text) as u64)
}

/// Something that is being put together.
struct Finding<'r> {
    root: &'r Root,
    found: Found,
}

impl Finding<'_> {
    fn note(&mut self, path: &Path, text: impl Into<String>) {
        const MOST_NOTES: usize = 500;
        if self.found.catalogue.notes.len() < MOST_NOTES {
            self.found.catalogue.notes.push(Note { path: self.shown(path), text: text.into() });
        }
    }

    /// A path as the user would write it.
    fn shown(&self, path: &Path) -> String {
        self.root.show(path)
    }

    fn add(&mut self, path: &Path, source: Source, item: Item) {
        let id = id_of(&self.root.path, path);
        if self.found.sources.insert(id.clone(), source).is_none() {
            self.found.catalogue.items.push(Item { id, ..item });
        }
    }

    /// An item of which nothing is known but where it is.
    fn item(&self, kind: ItemKind, path: &Path) -> Item {
        let metadata = std::fs::symlink_metadata(path).ok();
        let modified = metadata.as_ref().and_then(|metadata| metadata.modified().ok());
        let inside = path.strip_prefix(&self.root.path).ok().filter(|inside| !inside.as_os_str().is_empty());
        let title = inside.map_or_else(
            || path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            |inside| inside.display().to_string(),
        );
        Item {
            id: String::new(),
            kind,
            title,
            path: self.shown(path),
            modified: time_text(modified),
            bytes: metadata.map_or(0, |metadata| metadata.len()),
            steps: Vec::new(),
            ranks: Vec::new(),
            answer: None,
            tone: Tone::Plain,
            cells: Vec::new(),
            report: None,
            error: None,
        }
    }
}

pub(crate) fn time_text(time: Option<SystemTime>) -> String {
    let time = time.unwrap_or(SystemTime::UNIX_EPOCH);
    DateTime::<Utc>::from(time).format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The colour of an answer.
fn tone_of(answer: Option<&Value>) -> Tone {
    let words = answer.and_then(|answer| answer.get("status")).and_then(Value::as_str);
    words.and_then(status_of).map_or(Tone::Plain, Status::tone)
}

pub(crate) fn status_of(word: &str) -> Option<Status> {
    Status::all().find(|status| status.as_str() == word)
}

/// Looks at everything below the roots.
pub(crate) fn look(roots: &[Root]) -> Found {
    let mut found = Found {
        catalogue: Catalogue {
            version: env!("CARGO_PKG_VERSION"),
            roots: roots.iter().map(|root| root.shown.clone()).collect(),
            items: Vec::new(),
            notes: Vec::new(),
        },
        sources: HashMap::new(),
        pages: HashMap::new(),
    };
    for root in roots {
        let mut finding = Finding { root, found };
        scan::scan(&mut finding);
        found = finding.found;
    }
    found.catalogue.items.sort_by(|one, other| {
        one.kind
            .cmp(&other.kind)
            .then_with(|| other.modified.cmp(&one.modified))
            .then_with(|| one.title.cmp(&other.title))
    });
    found
}
