//! Why the values of a record are not finite: they were made there, or they came from another record.
//!
//! A dump does not say which tensor went where. A tensor that appears again has the same dtype, shape and statistics,
//! and that is what is followed; where it leads nowhere, the last record that was not finite is taken for the
//! source, since that is how such values spread.

use msprobe_dump::hash::{FastMap, FastSet};
use msprobe_dump::model::Construct;

use crate::flow::{Flow, is_buffer};
use crate::links::{At, Links};
use crate::masks::find_masks;
use crate::rank::RankDump;
use crate::record::{BadTensor, Kinds, Record, Role};
use crate::relatives::{
    SharedParameters, backward_of_gradient, forward_name, in_time, last_backward_of, modules_around,
};
use crate::rules::{Rule, Rules, can_absorb, expects_masks, is_mask, keeps_memory, sums_up};

/// Where the values of a record that are not finite come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Its inputs are finite, its outputs are not: it made them.
    Made(Making),
    /// It was given them, and nothing recorded made them: data, parameters, operations nobody watched.
    Entered,
    /// It read a parameter that was not finite before.
    Parameter,
    /// They came from this rank of the job, or from one nobody knows, of which there is no dump, or none of the call.
    Missing(Option<i64>),
    /// Another rank gave them in a communication.
    Arrived(At),
    /// An earlier record of the same rank. `sure`: it had this very tensor as an output.
    Spread {
        /// Which one.
        from: u32,
        /// Whether that is known.
        sure: bool,
    },
    /// A module: a record inside of it.
    Inside(u32),
    /// They mean no harm.
    Harmless(Rule),
}

/// How a record came to make them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Making {
    /// From finite inputs.
    Computed,
    /// From finite inputs of all ranks, in a communication.
    InCommunication,
    /// From a mask that hides all elements of a row.
    FullyMasked,
    /// From memory that was never written to.
    FromUninitialized,
    /// From a number that is not finite, given on purpose, and went on from there.
    FromArgument,
}

impl Cause {
    /// Whether nothing before it is to blame.
    pub fn is_origin(self) -> bool {
        matches!(self, Cause::Made(_) | Cause::Entered | Cause::Parameter | Cause::Missing(_))
    }
}

/// The causes of one rank.
#[derive(Debug, Default)]
pub struct Causes {
    /// By record; only those whose values are not finite.
    by_record: FastMap<u32, Cause>,
    /// The same records in the order in which their results were there.
    order: Vec<u32>,
    /// Records that got something nobody recorded made, gave only finite values, and of which nothing else came.
    absorbed: Vec<Absorbed>,
}

/// A record that got something nobody recorded made, and gave only finite values.
#[derive(Debug, Clone, Copy)]
struct Absorbed {
    record: u32,
    /// The first record that got the same.
    first: Option<u32>,
}

impl Causes {
    /// The cause of a record.
    pub fn of(&self, record: u32) -> Option<Cause> {
        self.by_record.get(&record).copied()
    }

    /// Says what became known of a record later.
    pub(crate) fn set(&mut self, record: u32, cause: Cause) {
        if self.by_record.insert(record, cause).is_none() {
            let place = self.order.partition_point(|known| *known < record);
            self.order.insert(place, record);
        }
    }

    /// Records that got something nobody recorded made, gave only finite values, and are not told of otherwise.
    pub fn absorbed(&self) -> impl Iterator<Item = u32> {
        let records = self.absorbed.iter().map(|absorbed| absorbed.record);
        records.filter(|record| !self.by_record.contains_key(record))
    }

    /// Takes what is absorbed for what it is: values that entered.
    pub(crate) fn tell_absorbed(&mut self) {
        for Absorbed { record, first } in self.absorbed.clone() {
            if self.of(record).is_none() {
                self.set(record, first.map_or(Cause::Entered, |from| Cause::Spread { from, sure: true }));
            }
        }
    }

    /// Records with a cause, in time.
    pub fn in_order(&self) -> impl Iterator<Item = (u32, Cause)> {
        self.order.iter().filter_map(|record| Some((*record, self.of(*record)?)))
    }

    /// Finds them for one rank.
    pub fn find(
        rank_index: usize,
        ranks: &[RankDump],
        links: &Links,
        construct: &Construct,
        rules: &Rules,
    ) -> Causes {
        let Some(dump) = ranks.get(rank_index) else { return Causes::default() };
        if dump.records.iter().all(|record| record.bad.is_empty() && !record.has_bad_number) {
            return Causes::default();
        }
        let mut by_name: FastMap<&str, u32> = FastMap::default();
        by_name.extend(dump.records.iter().zip(0..).map(|(record, index)| (&*record.name, index)));
        let shared = SharedParameters::find(dump);
        let order = in_time(dump, &by_name, &shared);
        let masks = if rules.has(Rule::Mask) { find_masks(dump, &order) } else { FastSet::default() };
        let mut search = Search {
            rank_index: rank_index as u32,
            rank: i64::from(dump.dir.rank),
            ranks,
            dump,
            links,
            construct,
            rules,
            by_name,
            shared,
            masks,
            made_by: FastMap::default(),
            unset: FastSet::default(),
            last: None,
            inside: FastMap::default(),
            parameters: FastMap::default(),
            latent: FastMap::default(),
            absorbed: Vec::new(),
            entered: FastMap::default(),
            replaced: FastSet::default(),
            told_masks: FastSet::default(),
            causes: FastMap::default(),
        };
        for &record in &order {
            search.look_at(record);
        }
        search.settle(&order);
        let causes = search.causes;
        let order = order.into_iter().filter(|record| causes.contains_key(record)).collect();
        Causes { by_record: causes, order, absorbed: search.absorbed }
    }
}

struct Search<'a> {
    rank_index: u32,
    rank: i64,
    ranks: &'a [RankDump],
    dump: &'a RankDump,
    links: &'a Links,
    construct: &'a Construct,
    rules: &'a Rules,
    by_name: FastMap<&'a str, u32>,
    shared: SharedParameters<'a>,
    masks: FastSet<u64>,
    /// The last record that had a tensor as an output.
    made_by: FastMap<u64, u32>,
    /// Tensors nobody has written to.
    unset: FastSet<u64>,
    /// The last record with results that are not finite.
    last: Option<u32>,
    /// The first such record inside of a module call.
    inside: FastMap<&'a str, u32>,
    /// Parameters known not to be finite, and the first record that read them.
    parameters: FastMap<u64, u32>,
    /// Of records with finite results, where their inputs came from: told only if something else came of them.
    latent: FastMap<u32, Cause>,
    /// Those of them that got something nobody recorded made, and no rule excuses.
    absorbed: Vec<Absorbed>,
    /// Tensors that they got, and the first record that did.
    entered: FastMap<u64, u32>,
    /// Tensors that a call replaced, overwrote, left out or only asked about.
    replaced: FastSet<u64>,
    /// Masks that are listed, or were made of such.
    told_masks: FastSet<u64>,
    causes: FastMap<u32, Cause>,
}

/// The values of a record that count.
struct Values<'a> {
    inputs: Vec<&'a BadTensor>,
    parameters: Vec<&'a BadTensor>,
    outputs: Vec<&'a BadTensor>,
    /// Whether some inputs were masks.
    has_masks: bool,
}

impl<'a> Search<'a> {
    fn values(&self, record: &'a Record) -> Values<'a> {
        let ignores_buffers = self.rules.has(Rule::ReceiveBuffer);
        let is_harmless =
            |tensor: &BadTensor| is_mask(tensor.kinds) && self.masks.contains(&tensor.fingerprint);
        let of = |role| record.bad_of(role).filter(|tensor| !is_harmless(tensor));
        Values {
            inputs: of(Role::Input)
                .filter(|tensor| !(ignores_buffers && is_buffer(record, self.rank, tensor)))
                .collect(),
            // What is trained is no mask.
            parameters: record
                .bad_of(Role::Parameter)
                .filter(|tensor| tensor.requires_grad || !is_harmless(tensor))
                .collect(),
            outputs: of(Role::Output).collect(),
            has_masks: record.bad_of(Role::Input).any(is_harmless),
        }
    }

    /// Whether a value that is not finite was never written, or made by a record that means no harm.
    fn is_excused(&self, tensor: &BadTensor) -> bool {
        let is_harmless = |record| matches!(self.causes.get(record), Some(Cause::Harmless(_)));
        self.unset.contains(&tensor.fingerprint)
            || self.made_by.get(&tensor.fingerprint).is_some_and(is_harmless)
    }

    fn look_at(&mut self, index: u32) {
        let Some(record) = self.dump.records.get(index as usize) else { return };
        self.tell_masks_apart(record);
        let values = self.values(record);
        let cause = if record.communication.is_some() {
            self.cause_of_call(index, record, &values)
        } else if record.function() == "__setitem__" && values.outputs.is_empty() {
            self.cause_of_write(index, record, &values)
        } else if values.outputs.is_empty() && record.has_output {
            self.cause_with_finite_results(index, record, &values)
        } else {
            self.cause_of(index, record, &values)
        };
        let cause = cause.or_else(|| self.excuse_of(index, record));
        self.note_masks(record, cause);
        let Some(cause) = cause else { return };
        self.causes.insert(index, cause);
        if cause == Cause::Harmless(Rule::Uninitialized) {
            self.unset.extend(values.outputs.iter().map(|tensor| tensor.fingerprint));
            return;
        }
        for tensor in &values.outputs {
            self.unset.remove(&tensor.fingerprint);
            self.made_by.insert(tensor.fingerprint, index);
        }
        if !matches!(cause, Cause::Harmless(_)) && !values.outputs.is_empty() {
            self.last = Some(index);
            for module in modules_around(self.construct, record) {
                if let Some(&module) = self.by_name.get(&*module) {
                    let name = &*self.dump.records[module as usize].name;
                    self.inside.entry(name).or_insert(index);
                }
            }
        }
    }

    /// What comes out is finite, or a mask.
    fn cause_with_finite_results(
        &mut self,
        index: u32,
        record: &'a Record,
        values: &Values<'_>,
    ) -> Option<Cause> {
        if !values.parameters.is_empty() {
            return Some(self.cause_of_parameters(index, values));
        }
        if values.inputs.is_empty() {
            let makes_mask = !values.has_masks && !record.kinds(Role::Output).is_finite();
            return makes_mask.then_some(Cause::Harmless(Rule::Mask));
        }
        let source = self.source_of(record, values);
        self.latent.insert(index, source);
        let given: Vec<&BadTensor> =
            values.inputs.iter().copied().filter(|tensor| !self.is_excused(tensor)).collect();
        // What was made here is told where it was made.
        if source != Cause::Entered || given.is_empty() {
            return None;
        }
        let is_replaced = |tensor: &&BadTensor| {
            can_absorb(record.function(), tensor.kinds)
                || (record.is_module() && self.replaced.contains(&tensor.fingerprint))
        };
        if self.rules.has(Rule::Absorbed) && given.iter().all(is_replaced) {
            self.replaced.extend(given.iter().map(|tensor| tensor.fingerprint));
            return Some(Cause::Harmless(Rule::Absorbed));
        }
        let first = given.iter().find_map(|tensor| self.entered.get(&tensor.fingerprint)).copied();
        self.absorbed.push(Absorbed { record: index, first });
        for tensor in given {
            self.entered.entry(tensor.fingerprint).or_insert(index);
        }
        None
    }

    /// Of a module whose results are finite though its parameters are not.
    fn cause_of_parameters(&mut self, index: u32, values: &Values<'_>) -> Cause {
        let made = values.parameters.iter().find_map(|tensor| self.made_by.get(&tensor.fingerprint));
        let read = values.parameters.iter().find_map(|tensor| self.parameters.get(&tensor.fingerprint));
        if let Some(&from) = made.or(read) {
            return Cause::Spread { from, sure: true };
        }
        let is_new = self.are_new_parameters(index, values);
        match self.last.filter(|_| !is_new) {
            Some(from) => Cause::Spread { from, sure: false },
            None => Cause::Parameter,
        }
    }

    /// The rule by which nobody looked at something that is not finite: a mask that comes from nowhere, what was in a buffer,
    /// a plain number.
    fn excuse_of(&mut self, index: u32, record: &Record) -> Option<Cause> {
        let is_mask = |tensor: &&BadTensor| is_mask(tensor.kinds) && self.masks.contains(&tensor.fingerprint);
        let is_new = |tensor: &BadTensor| !self.told_masks.contains(&tensor.fingerprint);
        let given = || record.bad.iter().filter(|tensor| tensor.role != Role::Output).filter(is_mask);
        let is_from_nowhere = match given().next() {
            Some(_) => given().any(is_new),
            None => record.bad_of(Role::Output).filter(is_mask).any(is_new),
        };
        if is_from_nowhere {
            return Some(Cause::Harmless(Rule::Mask));
        }
        let is_in_buffer = |tensor: &BadTensor| is_buffer(record, self.rank, tensor) && !is_mask(&tensor);
        if self.rules.has(Rule::ReceiveBuffer) && record.bad_of(Role::Input).any(is_in_buffer) {
            return Some(Cause::Harmless(Rule::ReceiveBuffer));
        }
        if !record.has_bad_number || !record.kinds(Role::Output).is_finite() {
            return None;
        }
        if self.rules.has(Rule::Argument) {
            return Some(Cause::Harmless(Rule::Argument));
        }
        self.absorbed.push(Absorbed { record: index, first: None });
        None
    }

    /// A mask is listed once; what is made of it, not again.
    fn note_masks(&mut self, record: &Record, cause: Option<Cause>) {
        if matches!(cause, None | Some(Cause::Harmless(Rule::Mask))) {
            let masks = record.bad.iter().filter(|tensor| is_mask(tensor.kinds));
            self.told_masks.extend(masks.map(|tensor| tensor.fingerprint));
        }
    }

    /// -Inf that was summed up of finite numbers is no mask, nor is what comes of it.
    fn tell_masks_apart(&mut self, record: &Record) {
        let is_real = |tensor: &&BadTensor| {
            !self.masks.contains(&tensor.fingerprint) && !self.unset.contains(&tensor.fingerprint)
        };
        let has_real =
            record.communication.is_none() && record.bad_of(Role::Input).any(|tensor| is_real(&tensor));
        if has_real || (sums_up(record.function()) && record.kinds(Role::Input).is_finite()) {
            for tensor in record.bad_of(Role::Output) {
                self.masks.remove(&tensor.fingerprint);
            }
        }
    }

    /// Writing into a tensor has no output: where it went shows only when that is read.
    fn cause_of_write(&mut self, index: u32, record: &Record, values: &Values<'_>) -> Option<Cause> {
        let cause = if !values.inputs.is_empty() {
            self.source_of(record, values)
        } else if record.has_bad_number && self.rules.has(Rule::ExplicitFill) {
            Cause::Harmless(Rule::ExplicitFill)
        } else if record.has_bad_number {
            Cause::Made(Making::FromArgument)
        } else {
            return None;
        };
        // A number filled in on purpose is nobody's source until somebody is known to have read it.
        if !matches!(cause, Cause::Harmless(_)) {
            self.last = Some(index);
        }
        Some(cause)
    }

    fn cause_of_call(&self, index: u32, record: &Record, values: &Values<'_>) -> Option<Cause> {
        if !values.inputs.is_empty() {
            return Some(self.source_of(record, values));
        }
        if values.outputs.is_empty() {
            return None;
        }
        let at = At { rank: self.rank_index, record: index };
        let mut missing = None;
        let (mut is_alone, mut all_known) = (true, record.has_input);
        for exchange in self.links.of(at) {
            // A batch is many messages: this one may be finite.
            if let Some(item) = exchange.item_of(at)
                && !values.outputs.iter().any(|tensor| tensor.batch_item == Some(item))
            {
                continue;
            }
            is_alone &= exchange.members.len() < 2;
            for &other in exchange.members.iter().filter(|other| other.rank != self.rank_index) {
                match self.gives_bad(other, exchange.item_of(other)) {
                    Some(true) => return Some(Cause::Arrived(other)),
                    Some(false) => {}
                    None => all_known = false,
                }
            }
            let flow = record.communication.as_deref().map(|call| Flow::of(record.function(), call));
            let can_give = |rank: &&i64| {
                flow.is_none_or(|flow| !matches!(flow, Flow::FromRoot(_)) || flow.gives(**rank))
            };
            missing = missing.or(exchange.missing.iter().find(can_give).copied());
        }
        // Of a call that only one rank is known to have made, nobody knows what went in.
        if is_alone || missing.is_some() {
            return Some(Cause::Missing(missing));
        }
        Some(if all_known { Cause::Made(Making::InCommunication) } else { self.cause_without_inputs(at) })
    }

    /// Nobody recorded what went into a call: its own rank or another one had such values before it.
    fn cause_without_inputs(&self, at: At) -> Cause {
        if let Some(from) = self.last {
            return Cause::Spread { from, sure: false };
        }
        let was_bad = |other: &&At| {
            let records = self.ranks.get(other.rank as usize).map_or(&[][..], |dump| &dump.records);
            records.iter().take(other.record as usize).any(|record| !record.kinds(Role::Output).is_finite())
        };
        let others = self.links.of(at).flat_map(|exchange| &exchange.members);
        let other = others.filter(|other| other.rank != self.rank_index).find(was_bad);
        other.map_or(Cause::Missing(None), |other| Cause::Arrived(*other))
    }

    /// Whether what another rank put into a call was not finite; nothing if that was not recorded.
    fn gives_bad(&self, at: At, item: Option<u16>) -> Option<bool> {
        let dump = self.ranks.get(at.rank as usize)?;
        let record = dump.records.get(at.record as usize)?;
        let rank = i64::from(dump.dir.rank);
        let call = record.communication.as_deref()?;
        if !Flow::of(record.function(), call).gives(rank) {
            return Some(false);
        }
        if !record.has_input {
            return None;
        }
        let is_given = |tensor: &BadTensor| {
            !is_buffer(record, rank, tensor) && (item.is_none() || tensor.batch_item == item)
        };
        Some(record.bad_of(Role::Input).any(is_given))
    }

    fn cause_of(&mut self, index: u32, record: &'a Record, values: &Values<'_>) -> Option<Cause> {
        if !values.parameters.is_empty() && !record.is_backward() {
            if let Some(reader) = self.reader_of(record, values) {
                self.causes.insert(reader, Cause::Parameter);
                return Some(Cause::Inside(reader));
            }
            let made = |tensor: &&BadTensor| self.made_by.get(&tensor.fingerprint).copied();
            if let Some(from) = values.parameters.iter().find_map(made) {
                return Some(Cause::Spread { from, sure: true });
            }
            if self.are_new_parameters(index, values) {
                return Some(Cause::Parameter);
            }
        }
        if !values.inputs.is_empty() || !values.parameters.is_empty() {
            let only_unset = values.parameters.is_empty()
                && values.inputs.iter().all(|tensor| {
                    self.unset.contains(&tensor.fingerprint)
                        && !self.made_by.contains_key(&tensor.fingerprint)
                });
            if only_unset && keeps_memory(record.function()) {
                return Some(Cause::Harmless(Rule::Uninitialized));
            }
            if only_unset {
                return Some(Cause::Made(Making::FromUninitialized));
            }
            return Some(self.source_of(record, values));
        }
        if values.outputs.is_empty() {
            return None;
        }
        if let Some(rule) = self.rules.excuse(record) {
            return Some(Cause::Harmless(rule));
        }
        if let Some(from) = self.forward_to_blame(record) {
            if let Some(cause) = self.latent.remove(&from) {
                self.causes.insert(from, cause);
            }
            return Some(Cause::Spread { from, sure: true });
        }
        if let Some(&inner) = self.inside.get(&*record.name) {
            return Some(Cause::Inside(inner));
        }
        if record.is_recompute
            && let Some(&from) =
                values.outputs.iter().find_map(|tensor| self.made_by.get(&tensor.fingerprint))
        {
            return Some(Cause::Spread { from, sure: true });
        }
        if values.has_masks && expects_masks(record) {
            let outputs = values.outputs.iter().fold(Kinds::NONE, |kinds, tensor| kinds | tensor.kinds);
            let hides = is_mask(outputs) && self.rules.has(Rule::Mask);
            return Some(if hides { Cause::Harmless(Rule::Mask) } else { Cause::Made(Making::FullyMasked) });
        }
        // Whether its inputs were finite nobody knows; values that are not are more often spread than made.
        match self.last.filter(|_| !record.has_input) {
            Some(from) => Some(Cause::Spread { from, sure: false }),
            None => Some(Cause::Made(Making::Computed)),
        }
    }

    /// The call inside of a module that read a parameter of the module nobody is known to have made.
    fn reader_of(&self, record: &Record, values: &Values<'_>) -> Option<u32> {
        let inner = *self.inside.get(&*record.name)?;
        let is_own = |tensor: &BadTensor| {
            values.parameters.iter().any(|parameter| parameter.fingerprint == tensor.fingerprint)
        };
        let has_read = self.dump.records.get(inner as usize)?.bad_of(Role::Input).any(is_own);
        let is_unexplained = matches!(self.causes.get(&inner), Some(Cause::Entered | Cause::Parameter));
        (has_read && is_unexplained).then_some(inner)
    }

    /// Parameters of which it was not known, before anything that could have changed them in this step.
    fn are_new_parameters(&mut self, index: u32, values: &Values<'_>) -> bool {
        let mut is_new = false;
        for tensor in &values.parameters {
            is_new |= !self.parameters.contains_key(&tensor.fingerprint);
            self.parameters.entry(tensor.fingerprint).or_insert(index);
        }
        let is_after_backward = self
            .last
            .is_some_and(|last| self.dump.records.get(last as usize).is_some_and(Record::is_backward));
        is_new && !is_after_backward
    }

    /// The record that gave it its inputs.
    fn source_of(&self, record: &Record, values: &Values<'_>) -> Cause {
        let made = |tensor: &&BadTensor| self.made_by.get(&tensor.fingerprint).copied();
        if let Some(from) = values.inputs.iter().find_map(made) {
            return Cause::Spread { from, sure: true };
        }
        if let Some(&inner) = self.inside.get(&*record.name) {
            return Cause::Inside(inner);
        }
        if !values.parameters.is_empty() && values.inputs.is_empty() {
            return Cause::Parameter;
        }
        match self.last {
            Some(from) => Cause::Spread { from, sure: false },
            None => Cause::Entered,
        }
    }

    /// For a backward with finite gradients: its forward, if that had anything that was not finite; backward uses what
    /// forward kept. For the gradients of parameters: the backward of their module, or anything before.
    fn forward_to_blame(&self, record: &Record) -> Option<u32> {
        let is_to_blame = |index: &u32| {
            self.causes.get(index).is_some_and(|cause| !matches!(cause, Cause::Harmless(_)))
                || self.dump.records.get(*index as usize).is_some_and(|record| {
                    let values = self.values(record);
                    !values.inputs.is_empty() || !values.parameters.is_empty()
                })
        };
        if record.is_parameter_gradient() {
            let backward = backward_of_gradient(record, &self.by_name).filter(is_to_blame);
            // A gradient is the sum of what all modules give that have the parameter.
            let partners = self.shared.partners(record).iter();
            let of_partner = partners
                .filter_map(|module| last_backward_of(module, &self.by_name))
                .find(|backward| is_to_blame(backward));
            return backward.or(of_partner).or(self.last);
        }
        let forward = self.by_name.get(&*forward_name(&record.name)?).copied();
        forward.filter(is_to_blame)
    }

    /// Whether following causes on this rank from one record gets to another.
    fn leads_to(&self, from: u32, to: u32) -> bool {
        let mut at = from;
        for _ in 0..self.causes.len() {
            if at == to {
                return true;
            }
            at = match self.causes.get(&at) {
                Some(Cause::Spread { from, .. } | Cause::Inside(from)) => *from,
                _ => return false,
            };
        }
        true
    }

    /// What can only be said when everything was seen.
    fn settle(&mut self, order: &[u32]) {
        // A module's backward may stand before the records inside of it.
        for &index in order {
            let Some(record) = self.dump.records.get(index as usize) else { continue };
            if self.causes.get(&index) == Some(&Cause::Made(Making::Computed))
                && let Some(&inner) = self.inside.get(&*record.name)
                && !self.leads_to(inner, index)
            {
                self.causes.insert(index, Cause::Inside(inner));
            }
        }
        // A number given on purpose does harm if it goes on.
        let goes_on: Vec<u32> = self
            .causes
            .values()
            .filter_map(|cause| match cause {
                Cause::Spread { from, sure: true } => Some(*from),
                _ => None,
            })
            .filter(|from| self.causes.get(from) == Some(&Cause::Harmless(Rule::ExplicitFill)))
            .collect();
        for from in goes_on {
            self.causes.insert(from, Cause::Made(Making::FromArgument));
        }
    }
}
