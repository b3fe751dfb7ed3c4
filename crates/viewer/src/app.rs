//! What all requests share: the roots, what was found below them, and graphs that are open. No selection of anybody's.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::catalogue::{self, Found, Root, Source};
use crate::convert::{ConvertBody, Converter};
use crate::fault::Fault;
use crate::prepare::{OpenGraph, Workshop};
use crate::store::Patience;
use crate::trend::Trend;
use crate::wire::Conversion;

/// What was found is looked for again after this, when it is asked for.
const FRESH: Duration = Duration::from_secs(2);

/// Everything there is to show.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) roots: Vec<Root>,
    found: Mutex<Option<(Instant, Arc<Found>)>>,
    workshop: Workshop,
    converter: Converter,
    /// Removed with everything in it.
    _directory: tempfile::TempDir,
}

impl App {
    pub(crate) fn new(paths: &[PathBuf]) -> Result<App, Fault> {
        let mut roots = Vec::new();
        for path in paths {
            let shown = path.display().to_string();
            let path = path.canonicalize().map_err(|error| {
                Fault::missing(format!("{shown}: {error}"))
                    .with_hint("give a directory with dumps or results, or one of their files")
            })?;
            roots.push(Root { shown, path });
        }
        let directory = tempfile::Builder::new().prefix("msprobe-view-").tempdir()?;
        let workshop = Workshop::new(directory.path().canonicalize()?);
        Ok(App {
            roots,
            found: Mutex::new(None),
            workshop,
            converter: Converter::default(),
            _directory: directory,
        })
    }

    /// What lies below the roots; looked for again if that was some time ago.
    pub(crate) fn found(&self, fresh: bool) -> Arc<Found> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((when, known)) = &*found
            && (!fresh || when.elapsed() < FRESH)
        {
            return known.clone();
        }
        let now = Arc::new(catalogue::look(&self.roots));
        *found = Some((Instant::now(), now.clone()));
        now
    }

    /// Looks something up, and once more if it may be new.
    fn look_up<T>(&self, id: &str, pick: impl Fn(&Found) -> Option<T>) -> Result<T, Fault> {
        if id.len() != 16 || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(Fault::missing("there is nothing of that name"));
        }
        pick(&self.found(false)).or_else(|| pick(&self.found(true))).ok_or_else(|| {
            Fault::missing("there is nothing of that name any more").with_hint("go back to the list")
        })
    }

    pub(crate) fn source(&self, id: &str) -> Result<Source, Fault> {
        self.look_up(id, |found| found.sources.get(id).cloned())
    }

    /// What an item is called.
    pub(crate) fn title(&self, id: &str) -> String {
        let found = self.found(false);
        let item = found.catalogue.items.iter().find(|item| item.id == id);
        item.map_or_else(String::new, |item| item.title.clone())
    }

    /// A page of a command.
    pub(crate) fn page(&self, id: &str) -> Result<PathBuf, Fault> {
        self.look_up(id, |found| found.pages.get(id).cloned())
    }

    /// The JSON of a command.
    pub(crate) fn report(&self, id: &str) -> Result<PathBuf, Fault> {
        match self.source(id)? {
            Source::Report(path) => Ok(path),
            Source::Graph(_) | Source::Trend(_) => Err(Fault::bad("this has no tables")),
        }
    }

    /// A graph. It may be too early.
    pub(crate) fn graph(&self, id: &str) -> Result<Arc<OpenGraph>, Fault> {
        match self.source(id)? {
            Source::Graph(origin) => {
                let found = self.found(false);
                let error = found
                    .catalogue
                    .items
                    .iter()
                    .find(|item| item.id == id)
                    .and_then(|item| item.error.clone());
                match error {
                    Some(error) if !matches!(origin, crate::prepare::Origin::Store(_)) => {
                        Err(Fault::unreadable(error))
                    }
                    _ => self.workshop.graph(id, &origin),
                }
            }
            Source::Report(_) | Source::Trend(_) => Err(Fault::bad("this is no graph")),
        }
    }

    /// A database of trends.
    pub(crate) fn trend(&self, id: &str, patience: &Patience) -> Result<Trend, Fault> {
        match self.source(id)? {
            Source::Trend(path) => Trend::open(&path, patience),
            Source::Graph(_) | Source::Report(_) => Err(Fault::bad("this is no database of trends")),
        }
    }

    /// Begins to make a graph file of dumps.
    pub(crate) fn convert(&self, asked: ConvertBody) -> Result<Conversion, Fault> {
        self.converter.begin(&self.roots, &self.found(true), asked)
    }

    /// How far that is. What it made is among what is found from then on.
    pub(crate) fn conversion(&self) -> Conversion {
        let now = self.converter.state();
        if let Some(item) = &now.item {
            let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
            if found.as_ref().is_some_and(|(_, known)| !known.sources.contains_key(item)) {
                *found = None;
            }
        }
        now
    }

    /// Where files may be read.
    pub(crate) fn directories(&self) -> Vec<PathBuf> {
        self.roots.iter().map(|root| root.path.clone()).collect()
    }
}
