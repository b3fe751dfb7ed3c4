//! Where a difference begins: the first call, in the order of execution, that gets what it should and does not give
//! what it should.

use std::collections::HashMap;

use super::align::{Alignment, CallName, Pass};
use super::errors::is_introduced;
use super::functions::forgets_offsets;
use super::not_comparable::is_confirmed;
use super::parameters::{Fingerprint, fingerprint};
use super::records::{Dumps, Judged, RowsSeen, Worst};
use super::tolerance::Precision;
use crate::side::{Leaf, Role, Side};

/// Where a difference begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Origin {
    pub(super) cause: Cause,
    /// The row that shows it.
    pub(super) evidence: Option<RowsSeen>,
}

/// The record a difference begins at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// A call both runs make; what goes in agrees, what comes out does not.
    Call(usize),
    /// As [`Cause::Call`]; an argument that is no tensor differs.
    Argument(usize),
    /// As [`Cause::Call`]; only the dtype of a result differs.
    Dtype(usize),
    /// The parameters of a module differ before anything else does.
    Parameters(usize),
    /// A value from outside differs where it enters.
    Input(usize),
    /// A call only the target makes (index of its record there).
    OnlyTarget(usize),
    /// A call only the golden run makes.
    OnlyGolden(usize),
    /// No call in particular; the first one far beyond tolerance.
    Gradual(usize),
    /// A value that was right when the first call gave it and wrong when the second one got it (pairs of both).
    Between(usize, usize),
}

/// Finds where the difference begins. `judged` is in the order of the dump; `parents` are of the target's records.
pub(super) fn find_origin(
    dumps: &Dumps<'_>,
    alignment: &Alignment,
    judged: &[Judged],
    parents: &[Option<usize>],
) -> Option<Origin> {
    let candidate = first_candidate(dumps, judged, parents);
    let dtype = judged.iter().position(|one| one.dtype.is_some()).map(|first| {
        let index = innermost(first, parents, judged, |one| one.dtype.is_some());
        (index, Origin { cause: Cause::Dtype(index), evidence: judged[index].dtype.map(RowsSeen::both) })
    });
    let value = value_origin(dumps, alignment, judged, parents, candidate);
    match (value, dtype) {
        // Another float type is the reason for the error it brings.
        (Some((index, _)), Some((other, origin))) if other <= index => Some(origin),
        (Some((_, origin)), _) => Some(origin),
        (None, Some((_, origin))) => Some(origin),
        (None, None) => None,
    }
}

/// Where values begin to differ, and the place of that among the judged records.
fn value_origin(
    dumps: &Dumps<'_>,
    alignment: &Alignment,
    judged: &[Judged],
    parents: &[Option<usize>],
    candidate: Option<usize>,
) -> Option<(usize, Origin)> {
    let input = first_unexplained_input(judged).filter(|&input| {
        candidate.is_none_or(|candidate| input_comes_first(judged, input, candidate, parents))
    });
    // What goes on between the parts of a module is its own doing.
    let whole = input
        .filter(|&input| !judged[input].parameters.differs())
        .and_then(|input| introducing_whole(judged, input, parents));
    if let (Some(input), None) = (input, whole)
        && let Some(origin) = explain_input(dumps, alignment, judged, input)
    {
        return Some((input, origin));
    }
    if let Some(index) = whole.or(candidate) {
        let origin = trace_back(judged, index, parents);
        let origin = forward_of_backward(dumps, judged, origin).unwrap_or(origin);
        let one = &judged[origin];
        let cause = if one.argument.is_some() { Cause::Argument(origin) } else { Cause::Call(origin) };
        return Some((origin, Origin { cause, evidence: one.output.rows }));
    }
    // Nobody in particular: rounding that grew on the way. A little beyond tolerance is no finding.
    let far = |worst: Worst| worst.times_tolerated > GRADUAL;
    if let Some(index) = judged.iter().position(|one| !one.attached && far(one.output)) {
        let one = &judged[index];
        // So much more than what came in, be that beyond tolerance already, was made here.
        if one.incoming().counted * 10.0 < one.output.counted {
            return Some((index, Origin { cause: Cause::Call(index), evidence: one.output.rows }));
        }
        return Some((index, Origin { cause: Cause::Gradual(index), evidence: judged[index].output.rows }));
    }
    // Nothing came of it, but what went in is not the same.
    let counts = |one: &Judged| {
        one.incoming().error.is_infinite() || !forgets_offsets(&dumps.target.records[one.pair.target].name)
    };
    if let Some(index) = judged.iter().position(|one| far(one.incoming()) && counts(one)) {
        let one = &judged[index];
        let (cause, worst) = if far(one.input) {
            (Cause::Input(index), one.input)
        } else {
            (Cause::Parameters(index), one.parameters)
        };
        return Some((index, Origin { cause, evidence: worst.rows }));
    }
    let index = judged.iter().position(|one| one.argument.is_some())?;
    Some((index, Origin { cause: Cause::Argument(index), evidence: None }))
}

/// So many times what is tolerated is too much even if it came bit by bit.
const GRADUAL: f64 = 10.0;

/// The first record that gets something different which no call before it gave, and that makes a difference.
fn first_unexplained_input(judged: &[Judged]) -> Option<usize> {
    let mut given: f64 = 0.0;
    for (index, one) in judged.iter().enumerate().filter(|(_, one)| !one.attached) {
        let incoming = one.incoming();
        if one.output.differs()
            && incoming.differs()
            && (is_introduced(incoming.counted, given.max(one.ambient))
                || incoming.error.is_infinite() && given.is_finite())
        {
            return Some(index);
        }
        given = given.max(one.output.counted);
    }
    None
}

/// The first call that introduces an error, and of those it was made of the first one, down to the innermost.
fn first_candidate(dumps: &Dumps<'_>, judged: &[Judged], parents: &[Option<usize>]) -> Option<usize> {
    let first =
        (0..judged.len()).find(|&index| judged[index].introduces() && is_confirmed(dumps, judged, index))?;
    // Another argument before that explains it, even if at first the error is within tolerance.
    let argued = judged[..first].iter().position(Judged::argument_has_an_effect);
    Some(innermost(argued.unwrap_or(first), parents, judged, Judged::introduces))
}

fn innermost(
    start: usize,
    parents: &[Option<usize>],
    judged: &[Judged],
    wanted: impl Fn(&Judged) -> bool,
) -> usize {
    let mut current = start;
    // Bounded: a file may claim that modules contain each other.
    for _ in 0..MAX_NESTING {
        let outer = judged[current].pair.target;
        let is_part = |one: &Judged| wanted(one) && is_inside(one.pair.target, outer, parents);
        match (0..judged.len()).find(|&index| index != current && is_part(&judged[index])) {
            Some(inner) => current = inner,
            None => break,
        }
    }
    current
}

/// Modules are not nested more deeply than this.
const MAX_NESTING: usize = 1000;

fn is_inside(record: usize, outer: usize, parents: &[Option<usize>]) -> bool {
    let mut current = parents.get(record).copied().flatten();
    for _ in 0..MAX_NESTING {
        match current {
            Some(parent) if parent == outer => return true,
            Some(parent) => current = parents.get(parent).copied().flatten(),
            None => return false,
        }
    }
    false
}

/// Whether a differing input is earlier than, and not caused by, the call that introduces an error.
fn input_comes_first(judged: &[Judged], input: usize, candidate: usize, parents: &[Option<usize>]) -> bool {
    let (part, whole) = (judged[input].pair.target, judged[candidate].pair.target);
    if is_inside(part, whole, parents) {
        // What a part of a module gets from another part is the module's own doing; its parameters are not.
        return judged[input].parameters.differs();
    }
    input < candidate && !is_inside(whole, part, parents)
}

/// The innermost module around a record that introduces an error.
fn introducing_whole(judged: &[Judged], part: usize, parents: &[Option<usize>]) -> Option<usize> {
    let mut record = judged[part].pair.target;
    for _ in 0..MAX_NESTING {
        record = parents.get(record).copied().flatten()?;
        if let Some(whole) = judged.iter().position(|one| one.pair.target == record && one.introduces()) {
            return Some(whole);
        }
    }
    None
}

/// The forward call of a backward one, if it gives something else already, be it within tolerance.
fn forward_of_backward(dumps: &Dumps<'_>, judged: &[Judged], backward: usize) -> Option<usize> {
    let name = |one: &Judged| CallName::of(&dumps.target.records[one.pair.target].name);
    let call = name(&judged[backward]);
    if call.pass != Pass::Backward {
        return None;
    }
    let forward = CallName { pass: Pass::Forward, ..call };
    let introduces = |one: &Judged| {
        one.output.times_tolerated > 0.1
            && one.output.counted > 10.0 * one.incoming().counted
            && name(one) == forward
    };
    judged.iter().position(introduces)
}

/// Where a value that differs on the way in comes from.
fn explain_input(
    dumps: &Dumps<'_>,
    alignment: &Alignment,
    judged: &[Judged],
    index: usize,
) -> Option<Origin> {
    let one = &judged[index];
    if one.parameters.differs() && !one.input.differs() {
        return Some(Origin { cause: Cause::Parameters(index), evidence: one.parameters.rows });
    }
    let evidence = one.input.rows;
    let RowsSeen { target: Some(row), golden: Some(other) } = evidence? else { return None };
    let in_target = Producers::before(dumps.target, one.pair.target);
    let in_golden = Producers::before(dumps.golden, one.pair.golden);
    let target_source = in_target.of(&dumps.target.rows[row]);
    let golden_source = in_golden.of(&dumps.golden.rows[other]);
    if let Some(source) = target_source
        && alignment.only_target.contains(&source)
    {
        return Some(Origin { cause: Cause::OnlyTarget(source), evidence });
    }
    let Some(source) = golden_source else {
        return Some(Origin { cause: Cause::Input(index), evidence });
    };
    if alignment.only_golden.contains(&source) {
        return Some(Origin { cause: Cause::OnlyGolden(source), evidence });
    }
    let producer = judged.iter().position(|other| other.pair.golden == source)?;
    let between = judged[producer].pair.target..one.pair.target;
    if let Some(&extra) = alignment.only_target.iter().rfind(|&&record| between.contains(&record)) {
        return Some(Origin { cause: Cause::OnlyTarget(extra), evidence });
    }
    Some(Origin { cause: Cause::Between(producer, index), evidence })
}

/// A call that only makes an error larger leads back to the one that made it.
fn trace_back(judged: &[Judged], index: usize, parents: &[Option<usize>]) -> usize {
    let incoming = judged[index].incoming().counted;
    if incoming * 10.0 < judged[index].output.counted {
        return index;
    }
    let introduces_it = |one: &Judged| {
        let output: Worst = one.output;
        !one.attached
            && output.counted >= incoming * 0.3
            && one.incoming().counted * 10.0 < output.counted
            && is_introduced(output.counted, one.ambient)
    };
    match judged[..index].iter().position(introduces_it) {
        Some(first) => innermost(first, parents, judged, introduces_it),
        None => index,
    }
}

/// Records by the values they gave: what was computed once and used later is recognised by its fingerprint.
struct Producers<'a> {
    records: HashMap<Fingerprint<'a>, usize>,
}

impl<'a> Producers<'a> {
    fn before(side: &'a Side, record: usize) -> Producers<'a> {
        let mut records = HashMap::new();
        for index in 0..record.min(side.records.len()) {
            for leaf in side.rows_of(index) {
                // What a call returned; else what it was given, if nobody is known to have made it.
                let fingerprint = fingerprint(leaf);
                if leaf.is_tensor() && leaf.role == Role::Output {
                    records.insert(fingerprint, index);
                } else if leaf.is_tensor() && leaf.role == Role::Input {
                    records.entry(fingerprint).or_insert(index);
                }
            }
        }
        Producers { records }
    }

    fn of(&self, leaf: &'a Leaf) -> Option<usize> {
        self.records.get(&fingerprint(leaf)).copied()
    }
}

/// Whether a value from outside is data that is fed in: numbers of things, or what comes before all computation.
pub(super) fn is_fed_in(dumps: &Dumps<'_>, judged: &[Judged], index: usize) -> bool {
    let is_float = |leaf: &Leaf| leaf.is_tensor() && Precision::of(leaf) != Precision::Exact;
    let computes = |one: &Judged| {
        let rows = dumps.target.rows_of(one.pair.target);
        rows.iter().any(|leaf| leaf.role == Role::Input && is_float(leaf)) && !one.incoming().differs()
    };
    let row = judged[index].input.rows.and_then(|rows| rows.target);
    let counts = row.is_some_and(|row| !is_float(&dumps.target.rows[row]));
    counts || !judged[..index].iter().any(computes)
}

/// Which way a call goes, for those who read the verdict.
pub(super) fn direction(pass: Pass) -> &'static str {
    match pass {
        Pass::Backward | Pass::ParametersGrad => "backward",
        _ => "forward",
    }
}
