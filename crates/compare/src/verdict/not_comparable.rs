//! Backward records of functions that both sides compute in ways of their own.
//!
//! What is recorded of a function's backward is what its last autograd node got and gave. Another implementation has other
//! nodes: more or fewer values, in another order, of other shapes. They say nothing about each other; the modules around
//! them and the gradients that follow do.

use msprobe_dump::names::is_of_module;

use super::align::{CallName, Pass, RecordPair};
use super::asides::{AsideKind, Asides};
use super::gaps::{Gap, GapKind, Gaps};
use super::records::{Dumps, Judged};
use crate::side::{Role, Side};

/// Whether a pair is of the backward of a function whose values have other shapes or dtypes on each side.
pub(super) fn is_made_in_another_way(dumps: &Dumps<'_>, pair: RecordPair, rows: &[(usize, usize)]) -> bool {
    let name = &dumps.target.records[pair.target].name;
    if CallName::of(name).pass != Pass::Backward || is_of_module(name) {
        return false;
    }
    let is_of_another_form = |&(row, other): &(usize, usize)| {
        let (target, golden) = (&dumps.target.rows[row], &dumps.golden.rows[other]);
        let has_another_form = target.shape != golden.shape || !target.has_dtype_of(golden);
        target.is_tensor() && golden.is_tensor() && has_another_form
    };
    let counts = |side: &Side, record: usize| {
        let of = |role: Role| {
            side.rows_of(record).iter().filter(|leaf| leaf.is_tensor() && leaf.role == role).count()
        };
        (of(Role::Input), of(Role::Output))
    };
    let (target, golden) = (counts(dumps.target, pair.target), counts(dumps.golden, pair.golden));
    // One side without any results lost them: that is for the comparison to say.
    let both_have_results = target.1 > 0 && golden.1 > 0;
    both_have_results && (target != golden || rows.iter().any(is_of_another_form))
}

/// Counts these records: told by the way where gradients after them were compared, else as something that was not.
pub(super) fn tell_what_is_made_in_another_way(
    dumps: &Dumps<'_>,
    judged: &[Judged],
    gaps: &mut Gaps,
    asides: &mut Asides,
) {
    let is_judged_gradient = |one: &Judged| {
        matches!(one.pass, Pass::Backward | Pass::ParametersGrad) && !one.is_not_comparable && one.values > 0
    };
    // Gradients of parameters stand where their module began, and come last.
    let has_parameters = judged.iter().any(|one| one.pass == Pass::ParametersGrad && one.values > 0);
    let last_gradient = judged.iter().rposition(is_judged_gradient);
    for (index, one) in judged.iter().enumerate().filter(|(_, one)| one.is_not_comparable) {
        let name = || dumps.target.records[one.pair.target].name.to_string();
        if has_parameters || last_gradient.is_some_and(|last| last > index) {
            asides.add(AsideKind::OtherBackward, name);
        } else {
            gaps.add(GapKind::Unmeasured, || Gap {
                kind: GapKind::Unmeasured,
                name: name(),
                only: None,
                reason: "both sides compute this backward in ways of their own, and no gradient after it was compared"
                    .to_owned(),
            });
        }
    }
}

/// Whether an error in the backward of a function shows in any gradient after it, or there is none that could show it.
pub(super) fn is_confirmed(dumps: &Dumps<'_>, judged: &[Judged], index: usize) -> bool {
    let one = &judged[index];
    if one.pass != Pass::Backward || is_of_module(&dumps.target.records[one.pair.target].name) {
        return true;
    }
    let is_gradient = |other: &Judged| {
        matches!(other.pass, Pass::Backward | Pass::ParametersGrad) && !other.is_not_comparable
    };
    let parameters = judged.iter().filter(|other| other.pass == Pass::ParametersGrad);
    let mut after =
        judged[index + 1..].iter().chain(parameters).filter(|other| is_gradient(other)).peekable();
    after.peek().is_none() || after.any(|other| other.output.differs() || other.incoming().differs())
}
