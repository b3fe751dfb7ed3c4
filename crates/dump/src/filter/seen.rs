//! What a step has shown that `scope` and `list` could have meant: if nothing is what they name, the nearest names are
//! told instead of leaving an empty dump without a word.

use std::fmt;

use crate::hash::FastMap;
use crate::nearness::distance;

/// Different functions and modules that are remembered of a step; later ones are not offered.
const MAX_STEMS: usize = 4096;
/// Names that are offered for one that was not seen.
const OFFERED: usize = 3;
/// Elements of `list` that are told of one by one.
const TOLD: usize = 3;

/// A part of the filters that nothing in the step so far is named by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmatched {
    /// `list`, `tensor_list` or `scope`.
    pub key: &'static str,
    /// What stands there: the element of the list, the first record of the scope.
    pub wanted: String,
    /// Further elements of the list that are told of no more.
    pub further: usize,
    /// Names of the step that are nearest to it, the nearest first.
    pub nearest: Vec<String>,
    /// Whether only names inside a scope were asked.
    pub in_scope: bool,
}

impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unmatched { key, wanted, further, nearest, in_scope } = self;
        let place = if *in_scope { "inside the scope" } else { "in this step so far" };
        match *key {
            "scope" => write!(f, "scope has not opened: {place} there was no {wanted:?}")?,
            _ => write!(f, "{key} has {wanted:?}, which is in no name {place}")?,
        }
        if *further > 0 {
            write!(f, ", and {further} more of its elements are in none")?;
        }
        match nearest.as_slice() {
            [] => write!(f, "; no call was seen at all"),
            names => write!(f, "; the nearest names seen are {}", names.join(", ")),
        }
    }
}

/// Everything seen in a step, as far as it can still be of use.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    /// The first record of the scope, until it was seen in this step.
    scope: Option<Wanted>,
    has_scope: bool,
    /// The elements of the list, each until it was seen in this step.
    list: Vec<Wanted>,
    /// The elements of `tensor_list`, likewise.
    saved: Vec<Wanted>,
    /// By what a name is without its call number.
    stems: FastMap<Box<str>, Latest>,
}

#[derive(Debug, Clone)]
struct Wanted {
    name: Box<str>,
    is_seen: bool,
    /// It is told once in a run.
    is_told: bool,
}

impl Wanted {
    fn new(name: &str) -> Wanted {
        Wanted { name: name.into(), is_seen: false, is_told: false }
    }
}

/// The last call of a stem.
#[derive(Debug, Clone, Copy)]
struct Latest {
    /// Its number, where names have one, and what follows the number.
    index: Option<u64>,
    tail: &'static str,
    was_in_scope: bool,
}

impl Seen {
    pub(super) fn new(scope: Option<&str>, list: &[Box<str>], tensor_list: &[Box<str>]) -> Seen {
        // Records of parameters' gradients have no call that could be noted.
        let saved = tensor_list.iter().filter(|name| !name.contains("parameters_grad"));
        Seen {
            scope: scope.map(Wanted::new),
            has_scope: scope.is_some(),
            list: list.iter().map(|name| Wanted::new(name)).collect(),
            saved: saved.map(|name| Wanted::new(name)).collect(),
            stems: FastMap::default(),
        }
    }

    /// A name was seen, inside or outside of the scope; `matches` says whether an element of the list is meant by it.
    pub(super) fn note(&mut self, name: &str, in_scope: bool, matches: impl Fn(&str) -> bool) {
        let mut is_done = true;
        if let Some(scope) = &mut self.scope {
            scope.is_seen |= in_scope;
            is_done &= scope.is_seen || scope.is_told;
        }
        for wanted in self.list.iter_mut().chain(&mut self.saved) {
            wanted.is_seen |= in_scope && !wanted.is_seen && matches(&wanted.name);
            is_done &= wanted.is_seen || wanted.is_told;
        }
        // Nothing will be asked any more, so nothing need be remembered.
        if !is_done {
            self.remember(name, in_scope);
        }
    }

    fn remember(&mut self, name: &str, in_scope: bool) {
        let (stem, index, tail) = split(name);
        if let Some(latest) = self.stems.get_mut(stem) {
            let was_in_scope = latest.was_in_scope | in_scope;
            *latest = Latest { index, tail, was_in_scope };
        } else if self.stems.len() < MAX_STEMS {
            self.stems.insert(stem.into(), Latest { index, tail, was_in_scope: in_scope });
        }
    }

    /// What nothing was seen of; each is answered once.
    pub(super) fn take_unmatched(&mut self) -> Vec<Unmatched> {
        let mut found = Vec::new();
        if let Some(scope) = self.scope.as_mut().filter(|scope| !scope.is_seen) {
            if !std::mem::replace(&mut scope.is_told, true) {
                let wanted = scope.name.clone();
                found.push(self.unmatched("scope", &wanted, 0));
            }
            // Nothing was inside the scope, so the list had nothing to match.
            return found;
        }
        for (key, missing) in
            [("list", take_missing(&mut self.list)), ("tensor_list", take_missing(&mut self.saved))]
        {
            let further = missing.len().saturating_sub(TOLD);
            for (position, wanted) in missing.iter().take(TOLD).enumerate() {
                let is_last = position + 1 == TOLD;
                found.push(self.unmatched(key, wanted, if is_last { further } else { 0 }));
            }
        }
        found
    }

    fn unmatched(&self, key: &'static str, wanted: &str, further: usize) -> Unmatched {
        let in_scope = key != "scope" && self.has_scope;
        let (wanted_stem, _, _) = split(wanted);
        let asked = self.stems.iter().filter(|(_, latest)| latest.was_in_scope || !in_scope);
        let mut near: Vec<_> = asked
            .map(|(stem, latest)| {
                // An element of a list is part of a name, a scope has the whole of one.
                let part = if key == "scope" { 0 } else { distance(wanted, stem, true) };
                (part, distance(wanted_stem, stem, false), stem, latest)
            })
            .collect();
        near.sort_unstable_by_key(|(part, whole, stem, _)| (*part, *whole, *stem));
        let nearest = near.into_iter().take(OFFERED).map(|(_, _, stem, latest)| match latest.index {
            Some(index) if latest.tail.is_empty() => format!("{stem}.{index}"),
            Some(index) => format!("{stem}.{index}.{}", latest.tail),
            None => stem.to_string(),
        });
        Unmatched { key, wanted: wanted.to_owned(), further, nearest: nearest.collect(), in_scope }
    }

    /// A new step.
    pub(super) fn reset(&mut self) {
        self.stems.clear();
        for wanted in self.scope.iter_mut().chain(&mut self.list).chain(&mut self.saved) {
            wanted.is_seen = false;
        }
    }
}

/// Those of which nothing was seen, and which have not been told.
fn take_missing(list: &mut [Wanted]) -> Vec<Box<str>> {
    let missing = list.iter_mut().filter(|wanted| !wanted.is_seen && !wanted.is_told);
    missing
        .map(|wanted| {
            wanted.is_told = true;
            wanted.name.clone()
        })
        .collect()
}

/// A name without its call number, the number, and what follows it: `Torch.add.0.forward` has something behind the
/// number, `Module.fc.Linear.forward.0` has not.
fn split(name: &str) -> (&str, Option<u64>, &'static str) {
    let (head, tail) = match name.rsplit_once('.') {
        Some((head, "forward")) => (head, "forward"),
        Some((head, "backward")) => (head, "backward"),
        _ => (name, ""),
    };
    match head.rsplit_once('.').and_then(|(stem, index)| Some((stem, index.parse().ok()?))) {
        Some((stem, index)) => (stem, Some(index), tail),
        None => (name, None, ""),
    }
}
