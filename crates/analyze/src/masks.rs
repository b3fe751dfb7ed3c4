//! Which tensors with -Inf are masks.

use msprobe_dump::hash::FastSet;

use crate::rank::RankDump;
use crate::record::{BadTensor, Role};
use crate::rules::{expects_masks, is_mask, looks_only};

/// Tensors with nothing worse than -Inf that end where -Inf is expected, or where results are finite; not those that
/// make something worse elsewhere.
pub(crate) fn find_masks(dump: &RankDump, order: &[u32]) -> FastSet<u64> {
    let mut ends_well: FastSet<u64> = FastSet::default();
    let mut ends_badly: FastSet<u64> = FastSet::default();
    for &index in order.iter().rev() {
        let Some(record) = dump.records.get(index as usize) else { continue };
        // No gradient is a mask.
        if looks_only(record.function()) || record.is_backward() {
            continue;
        }
        let outputs = record.kinds(Role::Output);
        let is_well = |tensor: &BadTensor| {
            ends_well.contains(&tensor.fingerprint) && !ends_badly.contains(&tensor.fingerprint)
        };
        let well = expects_masks(record)
            || (outputs.is_finite() && record.has_output)
            || (is_mask(outputs) && record.bad_of(Role::Output).all(is_well));
        let badly = !expects_masks(record) && !outputs.is_finite() && !is_mask(outputs);
        for tensor in record.bad_of(Role::Input).filter(|tensor| is_mask(tensor.kinds)) {
            if well {
                ends_well.insert(tensor.fingerprint);
            } else if badly {
                ends_badly.insert(tensor.fingerprint);
            }
        }
    }
    ends_well.retain(|fingerprint| !ends_badly.contains(fingerprint));
    ends_well
}
