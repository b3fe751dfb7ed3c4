//! Which values of a record count, and which mean no harm: masks, buffers, memory nobody wrote to, plain numbers.

use super::search::{Search, Values};
use super::{Absorbed, Cause};
use crate::flow::is_buffer;
use crate::record::{BadTensor, Record, Role};
use crate::rules::{Rule, is_mask, sums_up};

impl<'a> Search<'a> {
    /// The values of a record that count.
    pub(super) fn values(&self, record: &'a Record) -> Values<'a> {
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
    pub(super) fn is_excused(&self, tensor: &BadTensor) -> bool {
        let is_harmless = |record| matches!(self.causes.get(record), Some(Cause::Harmless(_)));
        self.unset.contains(&tensor.fingerprint)
            || self.made_by.get(&tensor.fingerprint).is_some_and(is_harmless)
    }

    /// The rule by which nobody looked at something that is not finite: a mask that comes from nowhere, what was in a buffer,
    /// a plain number.
    pub(super) fn excuse_of(&mut self, index: u32, record: &Record) -> Option<Cause> {
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
    pub(super) fn note_masks(&mut self, record: &Record, cause: Option<Cause>) {
        if matches!(cause, None | Some(Cause::Harmless(Rule::Mask))) {
            let masks = record.bad.iter().filter(|tensor| is_mask(tensor.kinds));
            self.told_masks.extend(masks.map(|tensor| tensor.fingerprint));
        }
    }

    /// -Inf that was summed up of finite numbers is no mask, nor is what comes of it.
    pub(super) fn tell_masks_apart(&mut self, record: &Record) {
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
}
