//! Which record belongs to which: forward to backward, gradients to modules, modules to what is inside; and when each was
//! complete.

use msprobe_dump::hash::FastMap;
use msprobe_dump::model::Construct;
use msprobe_dump::names::{Direction, ModuleName, ModulePass, RecordName};

use crate::rank::RankDump;
use crate::record::Record;

/// Modules that have a parameter in common, such as the embedding and the head of a language model.
#[derive(Debug, Default)]
pub(crate) struct SharedParameters<'a>(FastMap<&'a str, Vec<&'a str>>);

impl<'a> SharedParameters<'a> {
    /// Finds them by the figures of their parameters. Only asked for where the gradient of a parameter is not finite.
    pub(crate) fn find(dump: &'a RankDump) -> SharedParameters<'a> {
        let mut shared = SharedParameters::default();
        if !dump.records.iter().any(|record| record.is_parameter_gradient() && !record.bad.is_empty()) {
            return shared;
        }
        let mut owners: FastMap<u64, Vec<&str>> = FastMap::default();
        for record in dump.records.iter().filter(|record| !record.parameters.is_empty()) {
            let Some(module) = record.parts().module().map(|module| module.stem()) else { continue };
            for fingerprint in &record.parameters {
                let owners = owners.entry(*fingerprint).or_default();
                if !owners.contains(&module) {
                    owners.push(module);
                }
            }
        }
        for owners in owners.values().filter(|owners| owners.len() > 1) {
            for module in owners {
                let others = owners.iter().filter(|other| *other != module);
                shared.0.entry(module).or_default().extend(others);
            }
        }
        shared
    }

    /// The other modules with a parameter of the module whose gradients these are.
    pub(crate) fn partners(&self, gradients: &Record) -> &[&'a str] {
        self.0.get(gradients.parts().stem()).map_or(&[], Vec::as_slice)
    }
}

/// The records with something that is not finite, in the order in which they were complete. The gradients of parameters stand where
/// the module was called and are from the end of its backward; those of a parameter that several modules have, from the
/// end of the last one's.
pub(crate) fn in_time(
    dump: &RankDump,
    by_name: &FastMap<&str, u32>,
    shared: &SharedParameters<'_>,
) -> Vec<u32> {
    let last_backward = dump
        .records
        .iter()
        .rposition(|record| record.is_backward() && !record.is_parameter_gradient())
        .map_or(0, |index| index as u32);
    let mut order: Vec<(u32, bool, u32)> = Vec::new();
    for (record, index) in dump.records.iter().zip(0_u32..) {
        if record.bad.is_empty() && !record.has_bad_number {
            continue;
        }
        if record.is_parameter_gradient() {
            let own = backward_of_gradient(record, by_name).unwrap_or(last_backward);
            // A module without a backward of its own, such as an embedding, gives its share at some time before the end.
            let of_partner = |module: &&str| last_backward_of(module, by_name).unwrap_or(last_backward);
            let complete = shared.partners(record).iter().map(of_partner).fold(own, u32::max);
            order.push((complete.max(index), true, index));
        } else {
            order.push((index, false, index));
        }
    }
    order.sort_unstable();
    order.into_iter().map(|(_, _, index)| index).collect()
}

/// `Module.fc.Linear.backward.1` of `Module.fc.Linear.parameters_grad`: the last one, if it has no number itself.
pub(crate) fn backward_of_gradient(record: &Record, by_name: &FastMap<&str, u32>) -> Option<u32> {
    let gradients = record.parts().module()?;
    match gradients.pass() {
        ModulePass::ParametersGrad(Some(index)) => {
            by_name.get(&*gradients.with_pass(ModulePass::Backward(index)).to_string()).copied()
        }
        ModulePass::ParametersGrad(None) => last_backward_of(gradients.stem(), by_name),
        ModulePass::Forward(_) | ModulePass::Backward(_) => None,
    }
}

/// The backward of the last call of a module.
pub(crate) fn last_backward_of(module: &str, by_name: &FastMap<&str, u32>) -> Option<u32> {
    let backward =
        |index: u64| by_name.get(&*ModuleName::new(module, ModulePass::Backward(index)).to_string()).copied();
    (0..).map_while(backward).last()
}

/// The forward call a backward one, or the gradients of parameters, belong to.
pub(crate) fn forward_of<'a>(dump: &'a RankDump, record: &Record) -> Option<&'a Record> {
    let name = record.parts();
    if name.is_parameter_gradient() {
        return dump.records.iter().find(|known| {
            let known = known.parts();
            known.stem() == name.stem() && known.direction() == Some(Direction::Forward)
        });
    }
    let forward = forward_name(&record.name)?;
    dump.records.iter().find(|known| *known.name == *forward)
}

/// The name of the forward call of a backward one.
pub(crate) fn forward_name(name: &str) -> Option<String> {
    RecordName::parse(name).forward().map(|forward| forward.to_string())
}

/// Modules a record is inside of, outermost first. For backward, those around its forward: what was running when a
/// gradient came by says little about where it belongs.
pub(crate) fn modules_around(construct: &Construct, record: &Record) -> Vec<String> {
    let backward = |name: &&str| match RecordName::parse(name).module().map(|module| (module, module.pass()))
    {
        Some((module, ModulePass::Forward(index))) => {
            module.with_pass(ModulePass::Backward(index)).to_string()
        }
        _ => (*name).to_owned(),
    };
    match forward_name(&record.name) {
        Some(forward) => construct.ancestors(&forward).iter().map(backward).collect(),
        None => construct.ancestors(&record.name).into_iter().map(str::to_owned).collect(),
    }
}
