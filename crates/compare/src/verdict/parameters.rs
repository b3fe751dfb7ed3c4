//! Gradients of parameters, and whose results they are.

use std::collections::HashSet;

use msprobe_dump::hash::FastMap;

use super::align::{CallName, Pass};
use super::records::{Dumps, Judged};
use crate::side::{Leaf, Role, Scalar, ValueShape};

/// Gradients of parameters are known when the last call that uses them has run backward: they are results of that.
pub(super) fn attach_parameter_gradients(dumps: &Dumps<'_>, judged: &mut [Judged]) {
    let base = |one: &Judged| CallName::of(&dumps.target.records[one.pair.target].name).base;
    let mut backward: FastMap<&str, usize> = FastMap::default();
    for (index, one) in judged.iter().enumerate().filter(|(_, one)| one.pass == Pass::Backward) {
        backward.insert(base(one), index);
    }
    let gradients: Vec<usize> =
        (0..judged.len()).filter(|&index| judged[index].pass == Pass::ParametersGrad).collect();
    let users = modules_with_the_same_parameter(dumps, judged);
    // A parameter of several modules has one gradient, the sum over all of them.
    let mut last_user: FastMap<Fingerprint<'_>, usize> = FastMap::default();
    let fingerprints_of = |index: usize| {
        let record: usize = judged[index].pair.golden;
        dumps.golden.rows_of(record).iter().map(fingerprint)
    };
    for &index in &gradients {
        if let Some(&owner) = backward.get(base(&judged[index])) {
            for fingerprint in fingerprints_of(index) {
                let last = last_user.entry(fingerprint).or_insert(owner);
                *last = (*last).max(owner);
            }
        }
    }
    let mut owners = Vec::new();
    for &index in &gradients {
        let last =
            fingerprints_of(index).filter_map(|fingerprint| last_user.get(&fingerprint)).max().copied();
        // The modules it is shared with may not have a record of it.
        let sharing = users.get(base(&judged[index])).into_iter().flatten();
        let last = sharing.filter_map(|user| backward.get(user)).copied().chain(last).max();
        if let Some(owner) = last {
            owners.push((index, owner));
        }
    }
    for &(index, owner) in &owners {
        let (output, equal) = (judged[index].output, judged[index].equal);
        judged[owner].output = judged[owner].output.or_worse(output);
        judged[owner].equal &= equal;
        // What came into the owner came into the gradient.
        let incoming = judged[owner].incoming();
        judged[index].input = judged[index].input.or_worse(incoming);
    }
    let gone: HashSet<usize> = owners.into_iter().map(|(index, _)| index).collect();
    for index in gone {
        judged[index].attached = true;
    }
}

/// Modules that have a parameter in common with a module, by name; only where there are others.
fn modules_with_the_same_parameter<'a>(
    dumps: &'a Dumps<'_>,
    judged: &[Judged],
) -> FastMap<&'a str, Vec<&'a str>> {
    let mut users: FastMap<Fingerprint<'a>, Vec<&'a str>> = FastMap::default();
    for one in judged.iter().filter(|one| one.pass == Pass::Forward) {
        let module = CallName::of(&dumps.target.records[one.pair.target].name).base;
        for leaf in dumps.golden.rows_of(one.pair.golden) {
            // Parameters that are all alike, such as new biases, say nothing.
            let is_distinct = leaf.statistics[0] != leaf.statistics[1];
            if leaf.role == Role::Parameters && is_distinct {
                let known = users.entry(fingerprint(leaf)).or_default();
                if !known.contains(&module) {
                    known.push(module);
                }
            }
        }
    }
    let mut shared: FastMap<&str, Vec<&str>> = FastMap::default();
    for modules in users.into_values().filter(|modules| modules.len() > 1) {
        for module in &modules {
            shared.entry(*module).or_default().extend(&modules);
        }
    }
    shared
}

/// What a value is recognised by: shape, statistics, checksum.
pub(super) type Fingerprint<'a> = (&'a ValueShape, [u64; 4], Option<&'a str>);

/// The fingerprint of a value.
pub(super) fn fingerprint(leaf: &Leaf) -> Fingerprint<'_> {
    let bits = leaf.statistics.each_ref().map(|scalar| match scalar {
        Scalar::Bool(value) => u64::from(*value),
        other => other.number().map_or(u64::MAX, f64::to_bits),
    });
    (&leaf.shape, bits, leaf.md5.as_deref())
}
