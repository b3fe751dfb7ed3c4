//! A graph that is asked questions: one SQLite file with nodes of all steps, ranks and sides, read by its indexes and never as
//! a whole.
//!
//! `.vis.db` files are opened as they are, ours and the reference's; everything else is turned into such a file first
//! (`prepare`). What lies in them is not trusted: see [`open`](self::open).

mod brief;
mod detail;
mod findings;
mod jump;
mod lists;
mod marks;
mod names;
mod open;
mod peers;
mod search;
mod series;
mod statistics;
mod suggest;
mod words;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use msprobe_graph::names::Generation;
use rusqlite::Connection;

pub(crate) use self::brief::{Raw, Wanted, short_label};
pub(crate) use self::detail::values_of;
pub(crate) use self::findings::{FindingKind, FindingsAsked};
pub(crate) use self::lists::PairsAsked;
pub(crate) use self::marks::MarksCache;
pub(crate) use self::names::NamesCache;
use self::open::Schema;
pub(crate) use self::open::{Facts, FileKind, columns, number, open_for_writing, open_to_read, real, text};
pub(crate) use self::search::{FACETS, Needle, SearchAsked};
pub(crate) use self::statistics::Statistics;
pub(crate) use self::words::{Overflow, Verdict};
use crate::edits::Overlay;
use crate::fault::Fault;
use crate::wire::Side;

/// A question is given up after this.
pub(crate) const BUDGET: Duration = Duration::from_secs(10);
/// Connections kept open between questions.
const IDLE_CONNECTIONS: usize = 3;
/// Instructions of SQLite's machine between two looks at the clock.
pub(crate) const LOOK_AFTER: i32 = 20_000;

/// One hierarchy of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Scope {
    pub(crate) step: i64,
    pub(crate) rank: i64,
    pub(crate) side: Side,
}

/// How long a question may take, and whether anybody still waits for the answer.
#[derive(Debug, Clone)]
pub(crate) struct Patience {
    until: Instant,
    is_gone: Arc<AtomicBool>,
}

impl Patience {
    pub(crate) fn new(budget: Duration) -> Patience {
        Patience { until: Instant::now() + budget, is_gone: Arc::default() }
    }

    /// Without an end: for work in the background.
    pub(crate) fn long() -> Patience {
        Patience::new(Duration::from_hours(24))
    }

    /// Whoever drops the guard waits no longer.
    pub(crate) fn guard(&self) -> PatienceGuard {
        PatienceGuard(self.is_gone.clone())
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed) || Instant::now() > self.until
    }
}

/// Ends the patience when it is dropped.
#[derive(Debug)]
pub(crate) struct PatienceGuard(Arc<AtomicBool>);

impl Drop for PatienceGuard {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A graph file that is open.
#[derive(Debug)]
pub(crate) struct GraphStore {
    path: PathBuf,
    /// Like which form of the reference its values are.
    pub(crate) generation: Generation,
    pub(crate) facts: Facts,
    schema: Schema,
    idle: Mutex<Vec<Connection>>,
    pub(crate) marks: MarksCache,
    pub(crate) names: NamesCache,
}

/// A store during one question: with a connection, and what was changed and not yet saved.
#[derive(Clone, Copy)]
pub(crate) struct Asking<'s> {
    pub(crate) store: &'s GraphStore,
    pub(crate) connection: &'s Connection,
    pub(crate) overlay: &'s Overlay,
    pub(crate) patience: &'s Patience,
    /// By which statistics nodes are judged.
    pub(crate) statistics: Statistics,
}

impl GraphStore {
    /// Opens a file and looks at what is true of all of it.
    pub(crate) fn open(path: &Path, generation: Generation) -> Result<GraphStore, Fault> {
        let connection = open_to_read(path, &open::GRAPH)?;
        let schema = Schema::read(&connection)?;
        let facts = Facts::read(&connection, schema)?;
        Ok(GraphStore {
            path: path.to_owned(),
            generation,
            facts,
            schema,
            idle: Mutex::new(vec![connection]),
            marks: MarksCache::default(),
            names: NamesCache::default(),
        })
    }

    /// Asks something, within the patience.
    pub(crate) fn ask<T>(
        &self,
        overlay: &Overlay,
        patience: &Patience,
        question: impl FnOnce(&Asking<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut connection = match self.take_idle() {
            Some(connection) => connection,
            None => open_to_read(&self.path, &open::GRAPH)?,
        };
        let asked = patience.clone();
        connection.progress_handler(LOOK_AFTER, Some(move || asked.is_over()))?;
        let statistics = Statistics::default();
        let answer =
            question(&Asking { store: self, connection: &connection, overlay, patience, statistics });
        connection.progress_handler(LOOK_AFTER, None::<fn() -> bool>)?;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_CONNECTIONS {
            idle.push(connection);
        }
        answer
    }

    fn take_idle(&self) -> Option<Connection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Forgets connections, so that the file can be written by another one.
    pub(crate) fn rest(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// All hierarchies, in order.
    pub(crate) fn scopes(&self) -> impl Iterator<Item = Scope> + '_ {
        let sides: &[Side] =
            if self.facts.is_comparison { &[Side::Target, Side::Golden] } else { &[Side::Target] };
        self.facts.steps.iter().flat_map(move |&step| {
            self.facts
                .ranks
                .iter()
                .flat_map(move |&rank| sides.iter().map(move |&side| Scope { step, rank, side }))
        })
    }
}
