//! What a picture or a list of a whole hierarchy needs of each of its nodes, a few bytes of each: how bad it is, what is worst
//! below it. Made once for a hierarchy by one pass over its nodes in order, in the background if there are many.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use msprobe_report::Tone;
use rusqlite::params;
use xxhash_rust::xxh3::xxh3_64;

use super::brief::{counted, is_nothing, tone};
use super::open::{number, real, text};
use super::words::{Kind, Overflow, Verdict, weight};
use super::{Asking, Facts, Scope, Statistics};
use crate::edits::Overlay;
use crate::fault::Fault;
use crate::wire::Side;

/// Hierarchies of fewer nodes are gone through at once.
const FEW: u64 = 30_000;
/// Nodes of all hierarchies that are kept; the least used ones go first.
const MOST_KEPT: usize = 4_000_000;
/// More nodes than any hierarchy has.
const MOST_NODES: usize = 50_000_000;

const NONE: u32 = u32::MAX;
const LEAF: u8 = 1;
const ALONE: u8 = 2;
const TOP: u8 = 4;

/// What is known of one node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    pub(crate) order: i64,
    pub(crate) kind: Kind,
    pub(crate) index: Option<f64>,
    pub(crate) verdict: Option<Verdict>,
    pub(crate) overflow: Option<Overflow>,
    pub(crate) tone: Tone,
    pub(crate) is_leaf: bool,
    pub(crate) is_alone: bool,
    pub(crate) is_root: bool,
    pub(crate) micro_step: i64,
    /// What came in, what went out, and what is tolerated.
    pub(crate) errors: [Option<f64>; 3],
}

/// All nodes of a hierarchy, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Marks {
    facts: Option<Arc<Facts>>,
    statistics: Statistics,
    order: Vec<i64>,
    parent: Vec<u32>,
    index: Vec<f32>,
    verdict: Vec<u8>,
    /// Kind and overflow.
    words: Vec<u8>,
    flags: Vec<u8>,
    micro: Vec<u16>,
    /// Empty where nothing was judged.
    errors: Vec<[f32; 3]>,
    worst: Vec<u32>,
    worst_overflow: Vec<u8>,
}

fn packed(number: Option<f64>) -> f32 {
    number.map_or(f32::NAN, |number| number as f32)
}

impl Marks {
    /// Goes through a hierarchy. `done` counts its nodes.
    pub(crate) fn read(asking: &Asking<'_>, scope: Scope, done: &AtomicU64) -> Result<Marks, Fault> {
        let store = asking.store;
        let (verdicts, statistics) = (store.schema.verdicts, asking.statistics);
        let (verdict, join) = if verdicts {
            ("v.verdict, v.error_in, v.error_out, v.tolerated", "LEFT JOIN msprobe_verdicts v ON v.id = n.id")
        } else {
            ("NULL, NULL, NULL, NULL", "")
        };
        let outputs = if statistics.is_empty() { "NULL" } else { "n.output_data" };
        let sql = format!(
            "SELECT n.node_order, n.node_name, n.node_type, n.up_node, n.precision_index, n.overflow_level, n.micro_step_id, \
             n.matched_node_link, n.modified, {verdict}, {outputs} FROM tb_nodes n {join} \
             WHERE n.step = ?1 AND n.rank = ?2 AND n.data_source = ?3 ORDER BY n.node_order"
        );
        let mut statement = asking.connection.prepare(&sql)?;
        let mut rows = statement.query(params![scope.step, scope.rank, scope.side.source()])?;
        let facts = Some(Arc::new(store.facts.clone()));
        let mut marks = Marks { facts, statistics, ..Marks::default() };
        // Nodes that wait for their parent, which comes behind them.
        let mut waiting: Vec<(u32, u64)> = Vec::new();
        let has_errors = store.facts.has_verdicts;
        while let Some(row) = rows.next()? {
            if marks.order.len() >= MOST_NODES {
                return Err(Fault::unreadable("the graph has more nodes than can be shown"));
            }
            let at = marks.order.len() as u32;
            let bytes = |column: usize| {
                row.get_ref(column).ok().and_then(|value| value.as_bytes().ok().map(<[u8]>::to_vec))
            };
            let name = xxh3_64(&bytes(1).unwrap_or_default());
            let up = bytes(3).unwrap_or_default();
            let kind = Kind::of(&text(row, 2)?);
            let overflow = Overflow::of(&text(row, 5)?);
            let is_alone = is_nothing(&text(row, 7)?);
            let modified = number(row, 8)?.unwrap_or(0) != 0;
            let judged = Verdict::of(&text(row, 9)?);
            let mut flags = if is_alone { ALONE } else { 0 };
            flags |= if up.is_empty() { TOP } else { 0 };
            marks.order.push(number(row, 0)?.unwrap_or(0));
            marks.parent.push(NONE);
            let mut index = real(row, 4)?;
            if !statistics.is_empty() && scope.side == Side::Target {
                index = statistics.index(index, kind.is_collection(), &text(row, 13)?);
            }
            marks.index.push(packed(index));
            marks.words.push(kind as u8 | overflow.map_or(0, |level| level as u8) << 2);
            marks.micro.push(number(row, 6)?.unwrap_or(0).clamp(0, i64::from(u16::MAX)) as u16);
            let verdict = if store.facts.is_comparison {
                counted(judged.filter(|_| !modified), is_alone && !kind.is_collection(), up.is_empty())
            } else {
                None
            };
            marks.verdict.push(verdict.map_or(0, |verdict| verdict as u8));
            if has_errors {
                let is_judged = verdict.is_some_and(|verdict| verdict != Verdict::Unmatched);
                let errors = [real(row, 10)?, real(row, 11)?, real(row, 12)?];
                marks.errors.push(errors.map(|error| packed(error.filter(|_| is_judged))));
            }
            let mut is_leaf = true;
            while let Some(&(child, parent)) = waiting.last() {
                if parent != name {
                    break;
                }
                waiting.pop();
                marks.parent[child as usize] = at;
                is_leaf = false;
            }
            marks.flags.push(flags | if is_leaf { LEAF } else { 0 });
            waiting.push((at, xxh3_64(&up)));
            if at.is_multiple_of(1024) {
                done.store(u64::from(at), Ordering::Relaxed);
            }
        }
        marks.find_worst();
        Ok(marks)
    }

    /// Puts changes by hand in the place of what is stored.
    fn change(&mut self, scope: Scope, asking: &Asking<'_>) -> Result<(), Fault> {
        let mut has_changed = false;
        for (name, state) in asking.overlay.of(scope) {
            let order = asking.connection
                .prepare_cached(
                    "SELECT node_order FROM tb_nodes WHERE step = ?1 AND rank = ?2 AND data_source = ?3 AND node_name = ?4 LIMIT 1",
                )?
                .query_row(params![scope.step, scope.rank, scope.side.source(), name], |row| number(row, 0));
            let Some(at) = order.ok().flatten().and_then(|order| self.place(order)) else { continue };
            let is_collection = self.kind(at).is_collection();
            let index = match scope.side {
                Side::Target => self.statistics.index(state.index, is_collection, &state.outputs),
                Side::Golden => state.index,
            };
            self.index[at] = packed(index);
            let is_alone = state.link.is_empty();
            self.verdict[at] = if is_alone { Verdict::Unmatched as u8 } else { 0 };
            self.flags[at] = self.flags[at] & !ALONE | if is_alone { ALONE } else { 0 };
            if let Some(errors) = self.errors.get_mut(at) {
                *errors = [f32::NAN; 3];
            }
            has_changed = true;
        }
        if has_changed {
            self.find_worst();
        }
        Ok(())
    }

    /// The worst node below each, the first of those that are equally bad. Children come before their parents.
    fn find_worst(&mut self) {
        let nodes = self.order.len();
        let mut worst: Vec<u32> = vec![NONE; nodes];
        let mut worst_overflow = vec![0_u8; nodes];
        for at in 0..nodes {
            let parent = self.parent[at];
            if parent == NONE {
                continue;
            }
            let parent = parent as usize;
            let own = (!self.kind(at).is_collection()).then_some(at as u32);
            for candidate in [Some(worst[at]).filter(|below| *below != NONE), own].into_iter().flatten() {
                let known = worst[parent];
                if known == NONE || self.badness(candidate as usize) > self.badness(known as usize) {
                    worst[parent] = candidate;
                }
            }
            let overflow = worst_overflow[at].max(self.words[at] >> 2);
            worst_overflow[parent] = worst_overflow[parent].max(overflow);
        }
        (self.worst, self.worst_overflow) = (worst, worst_overflow);
    }

    fn badness(&self, at: usize) -> (u8, f32) {
        let index = self.index[at];
        (weight(self.tone(at)), if index.is_nan() { -1.0 } else { index })
    }

    fn kind(&self, at: usize) -> Kind {
        Kind::from_bits(self.words[at])
    }

    fn tone(&self, at: usize) -> Tone {
        let Some(facts) = &self.facts else { return Tone::Plain };
        let index = Some(f64::from(self.index[at])).filter(|index| !index.is_nan());
        let verdict = self.statistics.verdict(Verdict::from_bits(self.verdict[at]));
        tone(facts, verdict, index, Overflow::from_bits(self.words[at] >> 2))
    }

    fn place(&self, order: i64) -> Option<usize> {
        self.order.binary_search(&order).ok()
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// The order of the worst node below one, and how alarming the most alarming is. Nothing if nothing is to be said.
    pub(crate) fn worst_below(&self, order: i64) -> Option<(i64, Option<Overflow>)> {
        let at = self.place(order)?;
        let worst = self.worst[at];
        if worst == NONE {
            return None;
        }
        Some((self.order[worst as usize], Overflow::from_bits(self.worst_overflow[at])))
    }

    /// All nodes, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Mark> + '_ {
        (0..self.order.len()).map(|at| self.mark(at))
    }

    fn mark(&self, at: usize) -> Mark {
        let number = |number: f32| Some(f64::from(number)).filter(|number| !number.is_nan());
        Mark {
            order: self.order[at],
            kind: self.kind(at),
            index: number(self.index[at]),
            verdict: Verdict::from_bits(self.verdict[at]),
            overflow: Overflow::from_bits(self.words[at] >> 2),
            tone: self.tone(at),
            is_leaf: self.flags[at] & LEAF != 0,
            is_alone: self.flags[at] & ALONE != 0,
            is_root: self.flags[at] & TOP != 0,
            micro_step: self.micro[at].into(),
            errors: self.errors.get(at).map_or([None; 3], |errors| errors.map(number)),
        }
    }
}

/// A hierarchy, and by which statistics it is judged.
type Key = (Scope, Statistics);

/// What is known of the marks of a hierarchy.
#[derive(Debug, Clone)]
enum Made {
    /// As stored, and with what was changed by hand since.
    Ready {
        stored: Arc<Marks>,
        marks: Arc<Marks>,
        edition: u64,
        used: u64,
    },
    Underway {
        done: Arc<AtomicU64>,
        total: u64,
    },
    Failed(Fault),
}

/// The marks with what was changed by hand.
fn changed(stored: &Arc<Marks>, scope: Scope, asking: &Asking<'_>) -> Result<Arc<Marks>, Fault> {
    if asking.overlay.of(scope).next().is_none() {
        return Ok(stored.clone());
    }
    let mut marks = Marks::clone(stored);
    marks.change(scope, asking)?;
    Ok(Arc::new(marks))
}

/// Marks of the hierarchies that were asked for.
#[derive(Debug, Default)]
pub(crate) struct MarksCache {
    made: Arc<Mutex<HashMap<Key, Made>>>,
    clock: AtomicU64,
}

impl MarksCache {
    /// The marks of a hierarchy, if they are there already or soon. Otherwise they are made in the background.
    pub(crate) fn get(&self, asking: &Asking<'_>, scope: Scope) -> Result<Option<Arc<Marks>>, Fault> {
        match self.require(asking, scope) {
            Ok(marks) => Ok(Some(marks)),
            Err(fault) if fault.preparing.is_some() => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// The marks of a hierarchy. If there are many nodes, it may be too early.
    pub(crate) fn require(&self, asking: &Asking<'_>, scope: Scope) -> Result<Arc<Marks>, Fault> {
        let edition = asking.overlay.edition();
        let key = (scope, asking.statistics);
        let known = self.lock().get(&key).cloned();
        match known {
            Some(Made::Ready { stored, marks, edition: of, .. }) => {
                let marks = if of == edition { marks } else { changed(&stored, scope, asking)? };
                self.keep(key, stored, marks.clone(), edition);
                return Ok(marks);
            }
            Some(Made::Underway { done, total }) => {
                return Err(Fault::preparing(done.load(Ordering::Relaxed), total));
            }
            Some(Made::Failed(fault)) => return Err(fault),
            None => {}
        }
        let Scope { step, rank, side } = scope;
        let last = asking
            .connection
            .prepare_cached(
                "SELECT max(node_order) FROM tb_nodes WHERE step = ?1 AND rank = ?2 AND data_source = ?3",
            )?
            .query_row(params![step, rank, side.source()], |row| number(row, 0))?;
        let total = u64::try_from(last.unwrap_or(-1).saturating_add(1)).unwrap_or(0);
        if total <= FEW {
            let stored = Arc::new(Marks::read(asking, scope, &AtomicU64::new(0))?);
            let marks = changed(&stored, scope, asking)?;
            self.keep(key, stored, marks.clone(), edition);
            return Ok(marks);
        }
        let done = Arc::new(AtomicU64::new(0));
        self.lock().insert(key, Made::Underway { done: done.clone(), total });
        self.make_behind(asking, scope, done.clone());
        Err(Fault::preparing(0, total))
    }

    /// Makes marks on a thread of their own, with a connection of their own.
    fn make_behind(&self, asking: &Asking<'_>, scope: Scope, done: Arc<AtomicU64>) {
        let path = asking.store.path.clone();
        let generation = asking.store.generation;
        let (made, statistics) = (self.made.clone(), asking.statistics);
        let work = move || {
            let patience = super::Patience::long();
            let read = super::GraphStore::open(&path, generation).and_then(|store| {
                store.ask(&Overlay::default(), &patience, |asking| {
                    Marks::read(&asking.by(statistics)?, scope, &done)
                })
            });
            let now = match read.map(Arc::new) {
                // Of no edition: what was changed is put in when it is asked for.
                Ok(marks) => Made::Ready { stored: marks.clone(), marks, edition: u64::MAX, used: 0 },
                Err(fault) => Made::Failed(fault),
            };
            made.lock().unwrap_or_else(PoisonError::into_inner).insert((scope, statistics), now);
        };
        // Without a thread it stays under way for ever; a machine that has none left has other worries.
        let _ = std::thread::Builder::new().name("marks".to_owned()).spawn(work);
    }

    fn keep(&self, key: Key, stored: Arc<Marks>, marks: Arc<Marks>, edition: u64) {
        let used = self.clock.fetch_add(1, Ordering::Relaxed) + 1;
        let mut made = self.lock();
        made.insert(key, Made::Ready { stored, marks, edition, used });
        let ready = |made: &HashMap<Key, Made>| -> (usize, Option<(u64, Key)>) {
            let mut all = 0;
            let mut oldest: Option<(u64, Key)> = None;
            for (key, made) in made {
                if let Made::Ready { marks, used, .. } = made {
                    all += marks.len();
                    oldest = Some(oldest.map_or((*used, *key), |known| known.min((*used, *key))));
                }
            }
            (all, oldest)
        };
        while let (all, Some((_, oldest))) = ready(&made) {
            if all <= MOST_KEPT || oldest == key {
                break;
            }
            made.remove(&oldest);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Made>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
