//! Gradients of parameters, and whose results they are.

use std::collections::HashSet;

use msprobe_dump::hash::FastMap;
use msprobe_dump::names::is_of_module;

use super::align::{CallName, Pass};
use super::records::{Dumps, Judged};
use crate::side::{Leaf, Role, Scalar, Side, ValueShape};

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

/// Gradients that come into the modules of a run: what gradients of biases and of the weights of normalisations are sums of.
pub(super) struct SummedGradients<'a> {
    /// By module: squared norms of all calls, and elements of one.
    incoming: FastMap<&'a str, (f64, f64)>,
}

impl<'a> SummedGradients<'a> {
    pub(super) fn of(side: &'a Side) -> SummedGradients<'a> {
        let mut incoming: FastMap<&str, (f64, f64)> = FastMap::default();
        for (index, record) in side.records.iter().enumerate() {
            let call = CallName::of(&record.name);
            if call.pass != Pass::Backward || !is_of_module(&record.name) {
                continue;
            }
            if let Some((norm, count)) = largest_input(side.rows_of(index)) {
                let (squares, elements) = incoming.entry(call.base).or_default();
                *squares += norm * norm;
                *elements = elements.max(count);
            }
        }
        SummedGradients { incoming }
    }

    /// What a sum over all tokens has for its size if its terms do not cancel. Where they do, as in the bias of a key
    /// projection, what is left is rounding, and counts beside this.
    pub(super) fn natural_size(&self, record: &str, gradient: &Leaf) -> f64 {
        let incoming = self.incoming.get(CallName::of(record).base).copied();
        incoming.map_or(0.0, |incoming| size_of_sum(incoming, gradient))
    }

    /// How many terms each element of a gradient is a sum of: one for each token, or place of a convolution.
    pub(super) fn terms(&self, record: &str, gradient: &Leaf) -> f64 {
        let incoming = self.incoming.get(CallName::of(record).base);
        let first = gradient.shape.sizes().and_then(|sizes| sizes.first().copied());
        match (incoming, first) {
            (Some((_, elements)), Some(first)) if first > 0 => (elements / first as f64).max(1.0),
            _ => 1.0,
        }
    }
}

/// About how many terms each element of a result of a call is a sum of, at least one: those of a reduction, or the inner
/// dimension of a product, which the sizes of both factors and of the result tell.
pub(super) fn terms_of_sum(values: &[Leaf], result: &Leaf) -> f64 {
    let Some(made) = result.shape.elements().filter(|count| *count > 0.0) else { return 1.0 };
    let mut largest = [0.0_f64; 2];
    for leaf in values.iter().filter(|leaf| matches!(leaf.role, Role::Input | Role::Parameters)) {
        let count = leaf.shape.elements().filter(|_| leaf.is_tensor()).unwrap_or_default();
        if count > largest[0] {
            largest = [count, largest[0]];
        } else if count > largest[1] {
            largest[1] = count;
        }
    }
    let [first, second] = largest;
    (first / made).max((first * second / made).sqrt()).max(1.0)
}

/// As [`SummedGradients::natural_size`], of the backward of one call.
pub(super) fn natural_size_of_sum(values: &[Leaf], gradient: &Leaf) -> f64 {
    if gradient.shape.sizes().is_none_or(|sizes| sizes.len() != 1) {
        return 0.0;
    }
    largest_input(values).map_or(0.0, |(norm, count)| size_of_sum((norm * norm, count), gradient))
}

/// Norm and number of elements of the largest tensor that goes in.
fn largest_input(values: &[Leaf]) -> Option<(f64, f64)> {
    values
        .iter()
        .filter(|leaf| leaf.role == Role::Input)
        .filter_map(|leaf| Some((leaf.statistics[3].number()?, leaf.shape.elements()?)))
        .filter(|(norm, _)| norm.is_finite())
        .max_by(|one, other| one.1.total_cmp(&other.1))
}

fn size_of_sum((squares, elements): (f64, f64), gradient: &Leaf) -> f64 {
    let Some(sizes) = gradient.shape.sizes().filter(|sizes| sizes.len() == 1) else { return 0.0 };
    let count = sizes[0] as f64;
    let is_sum_over_tokens = count > 0.0 && elements > count && elements % count == 0.0;
    if is_sum_over_tokens { (squares / count).sqrt() } else { 0.0 }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::Silent;
    use crate::side::{Which, read_side};

    /// About how many terms the result of a call with these shapes is a sum of.
    fn terms(inputs: &[&str], output: &str) -> f64 {
        let tensor = |shape: &str| {
            format!(
                r#"{{"type": "torch.Tensor", "dtype": "torch.float32", "shape": {shape}, "Max": 1.0, "Min": 0.0, "Mean": 0.5, "Norm": 2.0}}"#
            )
        };
        let inputs: Vec<String> = inputs.iter().map(|shape| tensor(shape)).collect();
        let text = format!(
            r#"{{"task": "statistics", "data": {{"Torch.f.0.forward": {{"input_args": [{}], "output": [{}]}}}}}}"#,
            inputs.join(", "),
            tensor(output)
        );
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("dump.json");
        std::fs::write(&path, text).unwrap();
        let side = read_side(&path, Which::Golden, &Silent).unwrap();
        terms_of_sum(&side.rows, side.rows.last().unwrap())
    }

    #[test]
    fn shapes_tell_how_long_sums_are() {
        assert_eq!(terms(&["[6, 500]", "[40, 500]", "[40]"], "[6, 40]"), 500.0);
        assert_eq!(terms(&["[2, 3, 500]", "[500, 7]"], "[2, 3, 7]"), 500.0);
        assert_eq!(terms(&["[1000, 30]"], "[]"), 30_000.0);
        assert_eq!(terms(&["[1000, 30]"], "[1000, 30]"), 1.0);
        assert_eq!(terms(&[], "[0]"), 1.0);
    }
}
