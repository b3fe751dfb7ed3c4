//! Whatever has nodes becomes a store: a `.vis.db` is one, `.vis` files are read into one, a dump is built into one, once and in
//! the background, in a directory of our own.

mod outline;
mod vis;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use msprobe_graph::names::Generation;
use msprobe_graph::run::{Options, run};
use msprobe_report::console::Silent;

pub(crate) use self::outline::outline;
use crate::edits::Journal;
use crate::fault::Fault;
use crate::store::GraphStore;

/// Where a graph comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A store.
    Store(PathBuf),
    /// A file for each step and rank.
    Vis(BTreeMap<(i64, i64), PathBuf>),
    /// A dump.
    Dump(PathBuf),
}

impl Origin {
    /// What has to stay as it is while it is shown: sizes and times of its files.
    fn stamp(&self) -> Vec<(u64, Option<std::time::SystemTime>)> {
        let files: Vec<&Path> = match self {
            Origin::Store(path) => vec![path],
            Origin::Vis(files) => files.values().map(PathBuf::as_path).collect(),
            Origin::Dump(_) => Vec::new(),
        };
        let stamp = |path: &&Path| match std::fs::symlink_metadata(path) {
            Ok(metadata) => (metadata.len(), metadata.modified().ok()),
            Err(_) => (0, None),
        };
        files.iter().map(stamp).collect()
    }
}

/// A graph that can be asked.
#[derive(Debug)]
pub(crate) struct OpenGraph {
    pub(crate) store: GraphStore,
    pub(crate) journal: Mutex<Journal>,
    pub(crate) origin: Origin,
    /// Whether somebody reads its names already.
    pub(crate) are_names_asked: AtomicBool,
    stamp: Mutex<Vec<(u64, Option<std::time::SystemTime>)>>,
}

impl OpenGraph {
    fn new(store: GraphStore, origin: Origin) -> OpenGraph {
        let stamp = Mutex::new(origin.stamp());
        OpenGraph { store, journal: Mutex::default(), origin, are_names_asked: AtomicBool::new(false), stamp }
    }

    pub(crate) fn journal(&self) -> std::sync::MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody else changed the files since.
    fn is_stale(&self) -> bool {
        *self.stamp.lock().unwrap_or_else(PoisonError::into_inner) != self.origin.stamp()
    }

    /// We changed them ourselves.
    pub(crate) fn stamp_again(&self) {
        *self.stamp.lock().unwrap_or_else(PoisonError::into_inner) = self.origin.stamp();
    }
}

#[derive(Debug, Clone)]
enum State {
    Underway { done: Arc<AtomicU64>, total: u64 },
    Ready(Arc<OpenGraph>),
    Failed(Fault, Origin),
}

/// Graphs that were asked for.
#[derive(Debug)]
pub(crate) struct Workshop {
    directory: PathBuf,
    graphs: Arc<Mutex<BTreeMap<String, State>>>,
}

impl Workshop {
    /// Files of its own go into this directory.
    pub(crate) fn new(directory: PathBuf) -> Workshop {
        Workshop { directory, graphs: Arc::default() }
    }

    /// The graph of an item. It may be too early.
    pub(crate) fn graph(&self, id: &str, origin: &Origin) -> Result<Arc<OpenGraph>, Fault> {
        let known = self.lock().get(id).cloned();
        match known {
            Some(State::Ready(graph)) => {
                let is_edited = || graph.journal().unsaved().next().is_some();
                if graph.origin == *origin && (!graph.is_stale() || is_edited()) {
                    return Ok(graph);
                }
            }
            Some(State::Underway { done, total }) => {
                return Err(Fault::preparing(done.load(Ordering::Relaxed), total));
            }
            Some(State::Failed(fault, of)) if of == *origin && !matches!(origin, Origin::Store(_)) => {
                return Err(fault);
            }
            _ => {}
        }
        if let Origin::Store(path) = origin {
            let graph = Arc::new(OpenGraph::new(GraphStore::open(path, Generation::Third)?, origin.clone()));
            self.lock().insert(id.to_owned(), State::Ready(graph.clone()));
            return Ok(graph);
        }
        self.begin(id, origin)
    }

    /// Makes a store on a thread of its own. What is made soon is waited for.
    fn begin(&self, id: &str, origin: &Origin) -> Result<Arc<OpenGraph>, Fault> {
        let total = match origin {
            Origin::Vis(files) => files.values().filter_map(|path| Some(path.metadata().ok()?.len())).sum(),
            _ => 100,
        };
        let done = Arc::new(AtomicU64::new(0));
        {
            let mut graphs = self.lock();
            if let Some(State::Underway { done, total }) = graphs.get(id) {
                return Err(Fault::preparing(done.load(Ordering::Relaxed), *total));
            }
            graphs.insert(id.to_owned(), State::Underway { done: done.clone(), total });
        }
        let (graphs, name, origin, directory) =
            (self.graphs.clone(), id.to_owned(), origin.clone(), self.directory.join(id));
        let (tell, hear) = std::sync::mpsc::sync_channel(1);
        let work = move || {
            let made = make(&origin, &directory, &done);
            let state = match made {
                Ok(store) => State::Ready(Arc::new(OpenGraph::new(store, origin))),
                Err(fault) => State::Failed(fault, origin),
            };
            graphs.lock().unwrap_or_else(PoisonError::into_inner).insert(name, state);
            // Nobody may wait any more.
            let _ = tell.try_send(());
        };
        std::thread::Builder::new().name("prepare".to_owned()).spawn(work)?;
        let _ = hear.recv_timeout(std::time::Duration::from_millis(400));
        match self.lock().get(id) {
            Some(State::Ready(graph)) => Ok(graph.clone()),
            Some(State::Failed(fault, _)) => Err(fault.clone()),
            _ => Err(Fault::preparing(0, total)),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, State>> {
        self.graphs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn make(origin: &Origin, directory: &Path, done: &AtomicU64) -> Result<GraphStore, Fault> {
    // What is left of an earlier one that went stale.
    let _ = std::fs::remove_dir_all(directory);
    std::fs::create_dir_all(directory)?;
    match origin {
        Origin::Store(path) => GraphStore::open(path, Generation::Third),
        Origin::Vis(files) => {
            let path = directory.join("graph.vis.db");
            vis::import(files, &path, done)?;
            GraphStore::open(&path, Generation::First)
        }
        Origin::Dump(path) => {
            let options =
                Options { overflow_check: true, ..Options::new(Generation::Third, path, directory) };
            let outcome = run(&options, &Silent, &|percent| done.store(percent.into(), Ordering::Relaxed))?;
            let file = outcome
                .files
                .first()
                .ok_or_else(|| Fault::unreadable("no graph could be built of the dump"))?;
            GraphStore::open(file, Generation::Third)
        }
    }
}
