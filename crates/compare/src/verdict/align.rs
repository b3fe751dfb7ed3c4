//! Which record of the golden run is the same call as a record of the target run.
//!
//! Names say so as long as both runs make the same calls. One more call of an API on one side shifts the numbers of
//! all that follow; the calls of such an API are aligned by their place among all calls instead.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{Hash, Hasher};

use msprobe_dump::hash::{FastHasher, FastMap, FastSet};
use msprobe_dump::names::{Direction, ModulePass, RecordName, is_of_module, segments};

use super::AskedRecords;
use super::errors::{self, Measure, Weights};
use super::sequence::common_course;
use super::tolerance::Precision;
use crate::Mode;
use crate::pairing::MatchMethod;
use crate::side::{Construct, Leaf, Record, Role, Side};

/// What a record is of: `Tensor.mul` or `Module.fc.Linear`, which call, and which pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CallName<'a> {
    pub(super) base: &'a str,
    pub(super) number: Option<u64>,
    pub(super) pass: Pass,
}

/// The pass a record belongs to, in the order of execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Pass {
    Forward,
    Backward,
    ParametersGrad,
    /// A saved variable, or a name of no known form.
    Other,
}

impl<'a> CallName<'a> {
    pub(super) fn of(name: &'a str) -> CallName<'a> {
        let call = |base, number, direction| match direction {
            Direction::Forward => CallName { base, number: Some(number), pass: Pass::Forward },
            Direction::Backward => CallName { base, number: Some(number), pass: Pass::Backward },
        };
        match RecordName::parse(name) {
            RecordName::Api(api) => call(api.stem(), api.index(), api.direction()),
            RecordName::Module(module) => match module.pass() {
                ModulePass::Forward(index) => call(module.stem(), index, Direction::Forward),
                ModulePass::Backward(index) => call(module.stem(), index, Direction::Backward),
                ModulePass::ParametersGrad(_) => {
                    CallName { base: module.stem(), number: None, pass: Pass::ParametersGrad }
                }
            },
            RecordName::Saved(_) | RecordName::Other(_) => {
                CallName { base: name, number: None, pass: Pass::Other }
            }
        }
    }
}

/// A record of the target and its partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordPair {
    pub(super) target: usize,
    pub(super) golden: usize,
    pub(super) method: MatchMethod,
}

/// All records of both sides, paired where they can be.
#[derive(Debug, Default)]
pub(super) struct Alignment {
    /// In the order of the target.
    pub(super) pairs: Vec<RecordPair>,
    pub(super) only_target: Vec<usize>,
    pub(super) only_golden: Vec<usize>,
}

/// Pairs the records of two runs. What was asked for comes first.
pub(super) fn align(
    target: &Side,
    golden: &Side,
    constructs: (&Construct, &Construct),
    asked: &AskedRecords,
) -> Alignment {
    let target_calls = Calls::of(target, constructs.0);
    let golden_calls = Calls::of(golden, constructs.1);
    let by_name = golden.records_by_name();
    let shifted = shifted_bases(&target_calls, &golden_calls);
    let mut aligned = if shifted.is_empty() || !asked.is_empty() {
        HashMap::new()
    } else {
        align_shifted(&target_calls, &golden_calls, &shifted)
    };
    let mut shifted = shifted;
    if asked.is_empty() {
        follow_values(target, golden, (&target_calls, &golden_calls), &mut shifted, &mut aligned);
    }
    let unwrapped = pair_without_wrappers(target, golden);
    let mut taken = vec![false; golden.records.len()];
    let mut partners = vec![None; target.records.len()];
    let mut take = |record: usize, found: Option<(usize, MatchMethod)>| {
        if let Some((partner, method)) = found
            && !std::mem::replace(&mut taken[partner], true)
        {
            partners[record] = Some(RecordPair { target: record, golden: partner, method });
        }
    };
    let same_name = |record: usize| by_name.get(&*target.records[record].name).copied();
    for record in 0..target.records.len() {
        if let Some(&Some((partner, method))) = asked.get(&record) {
            let method = if same_name(record) == Some(partner) { MatchMethod::Exact } else { method };
            take(record, Some((partner, method)));
        }
    }
    for (record, name) in target_calls.names.iter().enumerate() {
        if asked.contains_key(&record) {
            continue;
        }
        let same_name = same_name(record);
        let partner = if shifted.contains(name.base) {
            let partner = match name.pass {
                Pass::Forward => aligned.get(&record).copied(),
                _ => target_calls
                    .forward_of(*name)
                    .and_then(|forward| aligned.get(&forward))
                    .and_then(|&forward| golden_calls.same_call(forward, name.pass)),
            };
            partner.map(|partner| {
                let method =
                    if same_name == Some(partner) { MatchMethod::Exact } else { MatchMethod::Aligned };
                (partner, method)
            })
        } else {
            let without_wrappers = || Some((*unwrapped.get(&record)?, MatchMethod::Unwrapped));
            same_name.map(|partner| (partner, MatchMethod::Exact)).or_else(without_wrappers)
        };
        take(record, partner);
    }
    Alignment {
        only_target: (0..partners.len()).filter(|&record| partners[record].is_none()).collect(),
        only_golden: (0..taken.len()).filter(|&record| !taken[record]).collect(),
        pairs: partners.into_iter().flatten().collect(),
    }
}

/// Parts of module names that come from what a framework puts around a model.
const WRAPPERS: [&str; 5] =
    ["module", "_fsdp_wrapped_module", "_orig_mod", "_checkpoint_wrapped_module", "_forward_module"];

/// The parts of a module's name without those of wrappers.
fn parts_without_wrappers(name: &str) -> impl Iterator<Item = &str> {
    let mut before = "";
    segments(name).filter(move |part| {
        // Adapters stand as two parts.
        let is_adapter = *part == "base_model" || *part == "model" && before == "base_model";
        before = part;
        !WRAPPERS.contains(part) && !is_adapter
    })
}

/// Partners of module records whose names differ by wrappers only, as far as they are unmistakable.
fn pair_without_wrappers(target: &Side, golden: &Side) -> HashMap<usize, usize> {
    let bare_names = |side: &Side, other: &FastMap<&str, usize>| {
        let mut names: HashMap<String, Option<usize>> = HashMap::new();
        for (index, record) in side.records.iter().enumerate() {
            if is_of_module(&record.name) && !other.contains_key(&*record.name) {
                let bare = parts_without_wrappers(&record.name).collect::<Vec<_>>().join(".");
                names.entry(bare).and_modify(|known| *known = None).or_insert(Some(index));
            }
        }
        names
    };
    let goldens = bare_names(golden, &target.records_by_name());
    if goldens.is_empty() {
        return HashMap::new();
    }
    bare_names(target, &golden.records_by_name())
        .into_iter()
        .filter_map(|(bare, record)| Some((record?, (*goldens.get(&bare)?)?)))
        .collect()
}

/// The records of a side as calls.
struct Calls<'a> {
    names: Vec<CallName<'a>>,
    by_name: FastMap<CallName<'a>, usize>,
    /// Forward calls of each API or module.
    counts: FastMap<&'a str, usize>,
    /// What a forward call is apart from its number: API, where it was made, shapes.
    tokens: Vec<u64>,
}

impl<'a> Calls<'a> {
    fn of(side: &'a Side, construct: &Construct) -> Calls<'a> {
        let names: Vec<CallName<'a>> = side.records.iter().map(|record| CallName::of(&record.name)).collect();
        let mut counts = FastMap::default();
        for name in names.iter().filter(|name| name.pass == Pass::Forward) {
            *counts.entry(name.base).or_default() += 1;
        }
        let tokens = side
            .records
            .iter()
            .zip(&names)
            .map(|(record, name)| token(side, record, *name, construct))
            .collect();
        let by_name = names.iter().enumerate().map(|(record, name)| (*name, record)).collect();
        Calls { names, by_name, counts, tokens }
    }

    fn forward_of(&self, name: CallName<'a>) -> Option<usize> {
        let number = if name.pass == Pass::ParametersGrad { Some(0) } else { name.number };
        self.by_name.get(&CallName { number, pass: Pass::Forward, ..name }).copied()
    }

    fn same_call(&self, forward: usize, pass: Pass) -> Option<usize> {
        let name = self.names.get(forward)?;
        let number = if pass == Pass::ParametersGrad { None } else { name.number };
        self.by_name.get(&CallName { number, pass, ..*name }).copied()
    }
}

fn token(side: &Side, record: &Record, name: CallName<'_>, construct: &Construct) -> u64 {
    let mut hasher = FastHasher::default();
    name.base.hash(&mut hasher);
    if let Some(parent) = construct.parent(&record.name) {
        parts_without_wrappers(CallName::of(parent).base).for_each(|part| part.hash(&mut hasher));
    }
    for row in side.rows[record.rows.clone()].iter().filter(|row| row.role == Role::Output) {
        row.shape.hash(&mut hasher);
    }
    hasher.finish()
}

/// APIs and modules whose calls cannot be paired by number: their number differs, or what has the same number was
/// made elsewhere.
fn shifted_bases<'a>(target: &Calls<'a>, golden: &Calls<'_>) -> HashSet<&'a str> {
    let mut shifted: HashSet<&str> = target
        .counts
        .iter()
        .filter(|(base, count)| golden.counts.get(*base).is_some_and(|other| other != *count))
        .map(|(base, _)| *base)
        .collect();
    // Other records of a module have no results either, and would pass for a call that has lost them.
    let forward = golden.names.iter().zip(&golden.tokens).filter(|(name, _)| name.pass == Pass::Forward);
    let golden_tokens: FastSet<u64> = forward.map(|(_, token)| *token).collect();
    for (record, name) in target.names.iter().enumerate().filter(|(_, name)| name.pass == Pass::Forward) {
        // The same call with other shapes is a finding, not a shift: only what exists elsewhere was shifted.
        if let Some(&other) = golden.by_name.get(name)
            && golden.tokens[other] != target.tokens[record]
            && golden_tokens.contains(&target.tokens[record])
        {
            shifted.insert(name.base);
        }
    }
    shifted
}

/// Forward calls of shifted bases, by their place among all forward calls; what is left over of a base, in order.
fn align_shifted(target: &Calls<'_>, golden: &Calls<'_>, shifted: &HashSet<&str>) -> HashMap<usize, usize> {
    let forward = |calls: &Calls<'_>| -> Vec<usize> {
        (0..calls.names.len()).filter(|&record| calls.names[record].pass == Pass::Forward).collect()
    };
    let (targets, goldens) = (forward(target), forward(golden));
    let tokens = |calls: &Calls<'_>, records: &[usize]| -> Vec<u64> {
        records.iter().map(|&record| calls.tokens[record]).collect()
    };
    let course = common_course(&tokens(target, &targets), &tokens(golden, &goldens));
    let mut aligned: HashMap<usize, usize> = course
        .into_iter()
        .map(|(record, other)| (targets[record], goldens[other]))
        .filter(|(record, _)| shifted.contains(target.names[*record].base))
        .collect();
    let taken: HashSet<usize> = aligned.values().copied().collect();
    let mut left: HashMap<u64, VecDeque<usize>> = HashMap::new();
    for other in goldens.into_iter().filter(|other| !taken.contains(other)) {
        left.entry(golden.tokens[other]).or_default().push_back(other);
    }
    for record in targets {
        if shifted.contains(target.names[record].base)
            && !aligned.contains_key(&record)
            && let Some(other) = left.get_mut(&target.tokens[record]).and_then(VecDeque::pop_front)
        {
            aligned.insert(record, other);
        }
    }
    aligned
}

/// How many calls before and after a call its partner is looked for.
const REACH: usize = 32;

/// Calls made in another order have the numbers of one another. Where the arguments of a pair differ, its partner is
/// the call whose arguments agree, if there is one among those that are left over in the same way.
fn follow_values<'a>(
    target: &'a Side,
    golden: &Side,
    calls: (&Calls<'a>, &Calls<'_>),
    shifted: &mut HashSet<&'a str>,
    aligned: &mut HashMap<usize, usize>,
) {
    let (targets, goldens) = calls;
    let mut wrong: HashMap<&'a str, Vec<(usize, usize)>> = HashMap::new();
    let mut partners: HashMap<&'a str, Vec<(usize, usize)>> = HashMap::new();
    for (record, name) in targets.names.iter().enumerate() {
        if name.pass != Pass::Forward || is_of_module(name.base) {
            continue;
        }
        let partner = if shifted.contains(name.base) {
            aligned.get(&record).copied()
        } else {
            goldens.by_name.get(name).copied()
        };
        if let Some(partner) = partner {
            partners.entry(name.base).or_default().push((record, partner));
            if !arguments_agree(target, record, golden, partner) {
                wrong.entry(name.base).or_default().push((record, partner));
            }
        }
    }
    for (base, pairs) in wrong.into_iter().filter(|(_, pairs)| pairs.len() > 1) {
        let mut free: Vec<Option<usize>> = pairs.iter().map(|&(_, partner)| Some(partner)).collect();
        let mut found: Vec<Option<usize>> = vec![None; pairs.len()];
        for (place, &(record, _)) in pairs.iter().enumerate() {
            let near = place.saturating_sub(REACH)..(place + REACH + 1).min(pairs.len());
            let agrees = |other: usize| {
                free[other].is_some_and(|partner| {
                    targets.tokens[record] == goldens.tokens[partner]
                        && arguments_agree(target, record, golden, partner)
                })
            };
            if let Some(other) = near.into_iter().find(|&other| agrees(other)) {
                found[place] = free[other].take();
            }
        }
        if found.iter().all(Option::is_none) {
            continue;
        }
        // What found no better partner takes what is left, in order.
        let mut left = free.into_iter().flatten();
        let repaired: HashMap<usize, usize> = pairs
            .iter()
            .zip(found)
            .filter_map(|(&(record, _), partner)| Some((record, partner.or_else(|| left.next())?)))
            .collect();
        for (record, partner) in partners.remove(base).unwrap_or_default() {
            aligned.insert(record, repaired.get(&record).copied().unwrap_or(partner));
        }
        shifted.insert(base);
    }
}

/// Whether the tensors two calls get are the same by what was measured of them, up to rounding.
fn arguments_agree(target: &Side, record: usize, golden: &Side, partner: usize) -> bool {
    fn tensors(side: &Side, record: usize) -> impl Iterator<Item = &Leaf> {
        side.rows_of(record).iter().filter(|leaf| leaf.role == Role::Input && leaf.is_tensor())
    }
    let agree = |(target, golden): (&Leaf, &Leaf)| {
        let has_statistics = target.statistics[0].number().is_some();
        let mode = if has_statistics { Mode::Summary } else { Mode::Md5 };
        let precision = Precision::of(golden);
        let weights = Weights::of(precision, golden);
        let by = Measure { mode, real: None, floor: 0.0, is_result: false, weights };
        let compared = errors::compare_values(target, golden, by);
        // One rounding step of a coarse type is more than what others have in all.
        compared.error.is_none_or(|error| error.counted() < SAME.max(precision.rounding_step()))
    };
    tensors(target, record).count() == tensors(golden, partner).count()
        && tensors(target, record).zip(tensors(golden, partner)).all(agree)
}

/// Below this two values count as the same when partners are looked for.
const SAME: f64 = 1e-3;
