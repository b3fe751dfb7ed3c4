//! Making and taking apart pairs by hand.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};

use msprobe_compare::Mode;
use msprobe_graph::compare::{Comparer, Index, Task};
use msprobe_graph::names::{Generation, forward_twin, split_call, without_counts};

use super::metrics::{StoredValues, compare};
use super::{Change, Edit, NodeState};
use crate::fault::Fault;
use crate::store::{Asking, Raw, Scope, Wanted, short_label};
use crate::wire::Side;

/// Nodes one act may touch.
const MOST_TOUCHED: usize = 200_000;

/// Somebody who makes pairs, with what was decided in this act already.
pub(crate) struct Matcher<'a> {
    asking: &'a Asking<'a>,
    step: i64,
    rank: i64,
    /// Files of tensors are read below these only.
    roots: &'a [PathBuf],
    changes: BTreeMap<(Side, String), Change>,
    comparers: HashMap<[PathBuf; 2], Comparer>,
}

impl<'a> Matcher<'a> {
    pub(crate) fn new(
        asking: &'a Asking<'a>,
        step: i64,
        rank: i64,
        roots: &'a [PathBuf],
    ) -> Result<Matcher<'a>, Fault> {
        if !asking.store.facts.is_comparison {
            return Err(Fault::conflict("nothing can be matched: there is one side only"));
        }
        Ok(Matcher { asking, step, rank, roots, changes: BTreeMap::new(), comparers: HashMap::new() })
    }

    fn scope(&self, side: Side) -> Scope {
        Scope { step: self.step, rank: self.rank, side }
    }

    /// Makes a pair of two nodes, of their twins in the other direction, and of what is in them if that is asked for.
    pub(crate) fn match_pair(mut self, target: &str, golden: &str, descendants: bool) -> Result<Edit, Fault> {
        let own = self.asking.named(self.scope(Side::Target), target)?;
        let other = self.asking.named(self.scope(Side::Golden), golden)?;
        self.check_fit(&own, &other)?;
        if descendants && self.asking.store.facts.task == Task::Values(Mode::All).as_str() {
            return Err(Fault::conflict("where real data is compared, one pair is matched at a time")
                .with_hint("match without what is inside"));
        }
        self.pair(&own, &other)?;
        let mut pairs = 1;
        let mut failed = 0;
        let mut open = VecDeque::from([(own.name.clone(), other.name.clone())]);
        // A file may say that nodes are inside of one another.
        let mut seen: HashSet<String> = HashSet::new();
        if let Some((own, other)) = self.twins(target, golden)? {
            self.pair(&own, &other)?;
            pairs += 1;
            open.push_back((own.name, other.name));
        }
        while let Some((own, other)) = open.pop_front().filter(|_| descendants) {
            if !seen.insert(own.clone()) {
                continue;
            }
            for (own, other) in self.pairs_inside(&own, &other)? {
                match (own, other) {
                    (own, Some(other)) if self.check_fit(&own, &other).is_ok() => {
                        self.pair(&own, &other)?;
                        pairs += 1;
                        open.push_back((own.name, other.name));
                    }
                    // Pairs inside that were there already are left, and gone into.
                    (own, Some(other)) if own.partner.as_deref() == Some(other.name.as_str()) => {
                        open.push_back((own.name, other.name));
                    }
                    _ => failed += 1,
                }
                self.check_size()?;
            }
        }
        let text = format!("{target} is matched with {golden}");
        Ok(self.finish(pairs, failed, text))
    }

    /// Takes a pair apart, its twins, and what is in it if that is asked for.
    pub(crate) fn unmatch(mut self, target: &str, descendants: bool) -> Result<Edit, Fault> {
        let own = self.asking.named(self.scope(Side::Target), target)?;
        if own.partner.is_none() {
            return Err(Fault::conflict(format!("{target} has no partner")));
        }
        let mut names = vec![own.name.clone()];
        if self.asking.store.generation == Generation::Third
            && let Some(twin) = self.twin(Side::Target, target)?
        {
            names.push(twin.name);
        }
        let mut seen: HashSet<String> = names.iter().cloned().collect();
        let mut at = 0;
        while let Some(name) = names.get(at).cloned().filter(|_| descendants) {
            let inside = self.children(Side::Target, &name)?.into_iter().map(|raw| raw.name);
            names.extend(inside.filter(|name| seen.insert(name.clone())));
            at += 1;
            if names.len() > MOST_TOUCHED || self.asking.patience.is_over() {
                return Err(too_many());
            }
        }
        let mut pairs = 0;
        for name in names {
            let raw = self.asking.named(self.scope(Side::Target), &name)?;
            if let Some(partner) = self.partner_of(&raw) {
                self.part(&name, &partner)?;
                pairs += 1;
            }
            self.check_size()?;
        }
        Ok(self.finish(pairs, 0, format!("{target} has no partner any more")))
    }

    /// Makes the pairs of a file of pairs. What does not fit is counted.
    pub(crate) fn match_all<'n>(
        mut self,
        wanted: impl Iterator<Item = (&'n str, &'n str)>,
    ) -> Result<Edit, Fault> {
        let (mut pairs, mut failed) = (0, 0);
        for (target, golden) in wanted {
            let own = self.asking.raw(self.scope(Side::Target), Wanted::Name(target))?;
            let other = self.asking.raw(self.scope(Side::Golden), Wanted::Name(golden))?;
            match (own, other) {
                (Some(own), Some(other)) if self.check_fit(&own, &other).is_ok() => {
                    self.pair(&own, &other)?;
                    pairs += 1;
                }
                _ => failed += 1,
            }
            self.check_size()?;
        }
        let all = pairs + failed;
        Ok(self.finish(pairs, failed, format!("{pairs} of {all} pairs of the file were made")))
    }

    fn finish(self, pairs: u64, failed: u64, text: String) -> Edit {
        Edit { changes: self.changes.into_values().collect(), pairs, failed, text }
    }

    fn check_size(&self) -> Result<(), Fault> {
        if self.changes.len() > MOST_TOUCHED || self.asking.patience.is_over() {
            Err(too_many())
        } else {
            Ok(())
        }
    }

    /// The partner a node has, with what this act decided.
    fn partner_of(&self, raw: &Raw) -> Option<String> {
        match self.changes.get(&(Side::Target, raw.name.clone())) {
            Some(change) => change.after.link.last().cloned(),
            None => raw.partner.clone(),
        }
    }

    fn check_fit(&self, own: &Raw, other: &Raw) -> Result<(), Fault> {
        let refused = |what: String| Err(Fault::conflict(what));
        if own.kind != other.kind {
            return refused(format!(
                "{} is a {}, {} is a {}",
                own.name,
                own.kind.as_str(),
                other.name,
                other.kind.as_str()
            ));
        }
        for (side, raw) in [(Side::Target, own), (Side::Golden, other)] {
            let changed = self.changes.get(&(side, raw.name.clone()));
            let has_partner = changed.map_or(raw.partner.is_some(), |change| !change.after.link.is_empty());
            if has_partner {
                return Err(Fault::conflict(format!("{} has a partner already", raw.name))
                    .with_hint("unmatch it first"));
            }
        }
        Ok(())
    }

    /// The call in the other direction.
    fn twin(&self, side: Side, name: &str) -> Result<Option<Raw>, Fault> {
        let twin = forward_twin(name).or_else(|| match split_call(name, "forward") {
            Some((stem, number)) => Some(format!("{stem}.backward.{number}")),
            None => name.strip_suffix(".forward").map(|stem| format!("{stem}.backward")),
        });
        match twin {
            Some(twin) => self.asking.raw(self.scope(side), Wanted::Name(&twin)),
            None => Ok(None),
        }
    }

    /// Both twins, if they can be a pair. The first generation knows none.
    fn twins(&self, target: &str, golden: &str) -> Result<Option<(Raw, Raw)>, Fault> {
        if self.asking.store.generation != Generation::Third {
            return Ok(None);
        }
        let twins = (self.twin(Side::Target, target)?, self.twin(Side::Golden, golden)?);
        let (Some(own), Some(other)) = twins else { return Ok(None) };
        Ok(self.check_fit(&own, &other).is_ok().then_some((own, other)))
    }

    fn children(&self, side: Side, name: &str) -> Result<Vec<Raw>, Fault> {
        let scope = self.scope(side);
        let source = side.source();
        self.asking.raws(
            scope,
            "n.step = ?1 AND n.rank = ?2 AND n.data_source = ?3 AND n.up_node = ?4 ORDER BY n.node_order",
            rusqlite::params![scope.step, scope.rank, source, name],
        )
    }

    /// What is in two nodes, put together by short names in order.
    fn pairs_inside(&self, target: &str, golden: &str) -> Result<Vec<(Raw, Option<Raw>)>, Fault> {
        let key = |raw: &Raw| {
            let label = short_label(&raw.name, raw.parent.as_deref());
            (raw.kind.as_str(), without_counts(&label, self.asking.store.generation))
        };
        let mut others: HashMap<(&'static str, String), VecDeque<Raw>> = HashMap::new();
        for raw in self.children(Side::Golden, golden)? {
            others.entry(key(&raw)).or_default().push_back(raw);
        }
        let own = self.children(Side::Target, target)?.into_iter();
        Ok(own
            .map(|raw| {
                let other = others.get_mut(&key(&raw)).and_then(VecDeque::pop_front);
                (raw, other)
            })
            .collect())
    }

    /// How a node stands before this act.
    fn state(&self, side: Side, raw: &Raw) -> Result<NodeState, Fault> {
        let scope = self.scope(side);
        if let Some(state) = self.asking.overlay.get(scope, &raw.name) {
            return Ok(state.clone());
        }
        let stored = self.asking.stored(scope, &raw.name)?;
        Ok(NodeState {
            link: serde_json::from_str(&stored.link).unwrap_or_default(),
            index: raw.index,
            checksums_agree: None,
            inputs: stored.inputs,
            outputs: stored.outputs,
            modified: raw.modified,
        })
    }

    fn change(&mut self, side: Side, raw: &Raw, change: impl FnOnce(&mut NodeState)) -> Result<(), Fault> {
        let key = (side, raw.name.clone());
        if !self.changes.contains_key(&key) {
            let before = self.state(side, raw)?;
            let (scope, name) = (self.scope(side), raw.name.clone());
            self.changes.insert(key.clone(), Change { scope, name, after: before.clone(), before });
        }
        if let Some(made) = self.changes.get_mut(&key) {
            made.after.modified = true;
            change(&mut made.after);
        }
        Ok(())
    }

    fn pair(&mut self, own: &Raw, other: &Raw) -> Result<(), Fault> {
        let to_golden = self.asking.path_to(self.scope(Side::Golden), &other.name)?.path;
        let to_target = self.asking.path_to(self.scope(Side::Target), &own.name)?.path;
        let ours = self.asking.stored(self.scope(Side::Target), &own.name)?;
        let theirs = self.asking.stored(self.scope(Side::Golden), &other.name)?;
        let dirs = [ours.data_dir.clone(), theirs.data_dir.clone()]
            .map(|dir| PathBuf::from(dir.unwrap_or_default()));
        let values = StoredValues::new(&ours.inputs, &ours.outputs);
        let partner = StoredValues::new(&theirs.inputs, &theirs.outputs);
        let comparer = self.comparer(dirs)?;
        let (values, result) = compare(comparer, &own.name, values, &other.name, &partner);
        let (inputs, outputs) = values.texts();
        self.change(Side::Target, own, |state| {
            state.link = to_golden;
            state.index = result.index.map(Index::number);
            state.checksums_agree = result.checksums_agree;
            (state.inputs, state.outputs) = (inputs, outputs);
        })?;
        self.change(Side::Golden, other, |state| state.link = to_target)
    }

    fn part(&mut self, target: &str, golden: &str) -> Result<(), Fault> {
        let own = self.asking.named(self.scope(Side::Target), target)?;
        let stored = self.asking.stored(self.scope(Side::Target), target)?;
        let (inputs, outputs) = StoredValues::new(&stored.inputs, &stored.outputs).without_metrics().texts();
        self.change(Side::Target, &own, |state| {
            state.link = Vec::new();
            (state.index, state.checksums_agree) = (None, None);
            (state.inputs, state.outputs) = (inputs, outputs);
        })?;
        // A partner that is not there any more has nothing to lose.
        if let Some(other) = self.asking.raw(self.scope(Side::Golden), Wanted::Name(golden))? {
            self.change(Side::Golden, &other, |state| state.link = Vec::new())?;
        }
        Ok(())
    }

    /// Compares as the file was compared. Files of tensors have to lie below what the user named.
    fn comparer(&mut self, dirs: [PathBuf; 2]) -> Result<&Comparer, Fault> {
        let store = self.asking.store;
        let task = Task::of(&store.facts.task).unwrap_or(Task::Structure);
        let dirs = if task == Task::Values(Mode::All) {
            let is_inside = |dir: &Path| {
                dir.canonicalize().is_ok_and(|dir| self.roots.iter().any(|root| dir.starts_with(root)))
            };
            if let Some(outside) = dirs.iter().find(|dir| !is_inside(dir)) {
                return Err(Fault::conflict(format!(
                    "the tensor files in {} are not below PATH",
                    outside.display()
                ))
                .with_hint("give msprobe view the directories of both dumps too"));
            }
            dirs
        } else {
            [PathBuf::new(), PathBuf::new()]
        };
        let generation = store.generation;
        Ok(self.comparers.entry(dirs.clone()).or_insert_with(|| Comparer::of_stored(task, generation, dirs)))
    }
}

fn too_many() -> Fault {
    Fault::bad(format!(
        "more than {MOST_TOUCHED} nodes, or more than there is time for, would be changed at once"
    ))
    .with_hint("match smaller parts one by one")
}
