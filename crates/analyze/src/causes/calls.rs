//! Communication: what a rank was given by others, or by itself.

use super::search::{Search, Values};
use super::{Cause, Making};
use crate::flow::{Flow, is_buffer};
use crate::links::At;
use crate::record::{BadTensor, Record, Role};

impl Search<'_> {
    /// The cause of a call that ranks make together.
    pub(super) fn cause_of_call(&self, index: u32, record: &Record, values: &Values<'_>) -> Option<Cause> {
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
}
