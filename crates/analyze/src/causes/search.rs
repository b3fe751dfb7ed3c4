//! Going through the records of a rank in time, and deciding for each where its values come from.

use msprobe_dump::hash::{FastMap, FastSet};
use msprobe_dump::model::Construct;

use super::{Absorbed, Cause, Making};
use crate::links::Links;
use crate::masks::find_masks;
use crate::rank::RankDump;
use crate::record::{BadTensor, Kinds, Record, Role};
use crate::relatives::{
    SharedParameters, backward_of_gradient, forward_name, in_time, last_backward_of, modules_around,
};
use crate::rules::{Rule, Rules, can_absorb, expects_masks, is_mask, keeps_memory};

/// The search for the causes of one rank, record by record in time.
pub(super) struct Search<'a> {
    pub(super) rank_index: u32,
    pub(super) rank: i64,
    pub(super) ranks: &'a [RankDump],
    pub(super) dump: &'a RankDump,
    pub(super) links: &'a Links,
    pub(super) construct: &'a Construct,
    pub(super) rules: &'a Rules,
    pub(super) by_name: FastMap<&'a str, u32>,
    pub(super) shared: SharedParameters<'a>,
    pub(super) masks: FastSet<u64>,
    /// The last record that had a tensor as an output.
    pub(super) made_by: FastMap<u64, u32>,
    /// Tensors nobody has written to.
    pub(super) unset: FastSet<u64>,
    /// The last record with results that are not finite.
    pub(super) last: Option<u32>,
    /// The first such record inside of a module call.
    pub(super) inside: FastMap<&'a str, u32>,
    /// Parameters known not to be finite, and the first record that read them.
    pub(super) parameters: FastMap<u64, u32>,
    /// Of records with finite results, where their inputs came from: told only if something else came of them.
    pub(super) latent: FastMap<u32, Cause>,
    /// Those of them that got something nobody recorded made, and no rule excuses.
    pub(super) absorbed: Vec<Absorbed>,
    /// Tensors that they got, and the first record that did.
    pub(super) entered: FastMap<u64, u32>,
    /// Tensors that a call replaced, overwrote, left out or only asked about.
    pub(super) replaced: FastSet<u64>,
    /// Masks that are listed, or were made of such.
    pub(super) told_masks: FastSet<u64>,
    pub(super) causes: FastMap<u32, Cause>,
}

/// The values of a record that count.
pub(super) struct Values<'a> {
    pub(super) inputs: Vec<&'a BadTensor>,
    pub(super) parameters: Vec<&'a BadTensor>,
    pub(super) outputs: Vec<&'a BadTensor>,
    /// Whether some inputs were masks.
    pub(super) has_masks: bool,
}

impl<'a> Search<'a> {
    /// A search that has not begun, and the records in time.
    pub(super) fn new(
        rank_index: usize,
        ranks: &'a [RankDump],
        dump: &'a RankDump,
        links: &'a Links,
        construct: &'a Construct,
        rules: &'a Rules,
    ) -> (Search<'a>, Vec<u32>) {
        let mut by_name: FastMap<&str, u32> = FastMap::default();
        by_name.extend(dump.records.iter().zip(0..).map(|(record, index)| (&*record.name, index)));
        let shared = SharedParameters::find(dump);
        let order = in_time(dump, &by_name, &shared);
        let masks = if rules.has(Rule::Mask) { find_masks(dump, &order) } else { FastSet::default() };
        let search = Search {
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
        (search, order)
    }

    /// Decides for one record.
    pub(super) fn look_at(&mut self, index: u32) {
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
    pub(super) fn source_of(&self, record: &Record, values: &Values<'_>) -> Cause {
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
    pub(super) fn settle(&mut self, order: &[u32]) {
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
