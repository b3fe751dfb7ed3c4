//! Which record belongs to which: forward to backward, gradients to modules, modules to what is inside; and when each was
//! complete.

use msprobe_dump::hash::FastMap;

use crate::context::Construct;
use crate::rank::RankDump;
use crate::record::Record;

/// The records that are not finite, in the order in which they were complete. The gradients of parameters stand where
/// the module was called and are from the end of its backward.
pub(crate) fn in_time(dump: &RankDump, by_name: &FastMap<&str, u32>) -> Vec<u32> {
    let last_backward = dump
        .records
        .iter()
        .rposition(|record| record.name.contains(".backward"))
        .map_or(0, |index| index as u32);
    let mut order: Vec<(u32, bool, u32)> = Vec::new();
    for (record, index) in dump.records.iter().zip(0_u32..) {
        if record.bad.is_empty() {
            continue;
        }
        if record.is_parameter_gradient() {
            let backward = backward_of_gradient(record, by_name).unwrap_or(last_backward);
            order.push((backward.max(index), true, index));
        } else {
            order.push((index, false, index));
        }
    }
    order.sort_unstable();
    order.into_iter().map(|(_, _, index)| index).collect()
}

/// `Module.fc.Linear.backward.1` of `Module.fc.Linear.parameters_grad`: the last one, if it has no number itself.
pub(crate) fn backward_of_gradient(record: &Record, by_name: &FastMap<&str, u32>) -> Option<u32> {
    let (module, number) = record.name.split_once(".parameters_grad")?;
    let backward = |number: &str| by_name.get(&*format!("{module}.backward.{number}")).copied();
    match number.strip_prefix('.') {
        Some(number) => backward(number),
        None => (0_u32..).map_while(|number| backward(&number.to_string())).last(),
    }
}

/// The name of the forward call of a backward one.
pub(crate) fn forward_name(name: &str) -> Option<String> {
    let at = name.rfind(".backward")?;
    Some(format!("{}.forward{}", &name[..at], &name[at + ".backward".len()..]))
}

/// Modules a record is inside of, outermost first. For backward, those around its forward: what was running when a
/// gradient came by says little about where it belongs.
pub(crate) fn modules_around(construct: &Construct, record: &Record) -> Vec<String> {
    match forward_name(&record.name) {
        Some(forward) => {
            let around = construct.ancestors(&forward);
            around.iter().map(|name| name.replace(".forward", ".backward")).collect()
        }
        None => construct.ancestors(&record.name).into_iter().map(str::to_owned).collect(),
    }
}
