//! Which values of a record are a reason to worry: NaN and Inf, except where they are known to be harmless.
//!
//! The flight recorder asks. Memory that nobody has written yet is not judged (what `empty` returns, what `recv` is
//! about to fill, what `fill_` overwrites), nor is what somebody fills in on purpose; -inf without NaN and +inf is
//! taken for a mask, unless the user says otherwise.

use msprobe_dump::names::{Filling, filling, returns_unwritten_memory};
use msprobe_tensor::{Number, Statistics};

use crate::encoder::Encoded;
use crate::fragment::Fragment;
use crate::notices::GivenHealth;

/// What the figures of a tensor say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Health {
    /// All finite, or not numbers at all.
    #[default]
    Finite,
    /// Some are -inf, none is NaN or +inf: what masks look like.
    Masked,
    /// NaN or +inf.
    Bad,
}

impl Health {
    pub(crate) fn of(stats: &Statistics) -> Health {
        let (Some(Number::Float(max)), Some(Number::Float(min))) = (stats.max, stats.min) else {
            return Health::Finite;
        };
        if max.is_nan() || min.is_nan() || max == f64::INFINITY {
            Health::Bad
        } else if min == f64::NEG_INFINITY {
            Health::Masked
        } else {
            Health::Finite
        }
    }
}

/// Where in the arguments of a call a tensor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// In the first argument: for methods, the tensor they are called on.
    First,
    /// In the argument `out`, which is written and not read.
    Out,
    /// Anywhere else.
    Rest,
}

impl Part {
    /// From the path of a value inside the arguments, as `.0.1` or `.out`.
    pub(crate) fn of(path: &str) -> Part {
        let top = path.strip_prefix('.').unwrap_or(path);
        match top.split_once('.').map_or(top, |(top, _)| top) {
            "0" | "input" | "self" => Part::First,
            "out" => Part::Out,
            _ => Part::Rest,
        }
    }
}

/// The worst of one side of a record, by part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    first: Health,
    out: Health,
    rest: Health,
    /// A number that is no tensor is NaN or infinite.
    odd_number: bool,
    /// A tensor was not measured.
    has_unmeasured: bool,
}

impl Findings {
    pub(crate) fn note_unmeasured(&mut self) {
        self.has_unmeasured = true;
    }

    /// What this says as the input of a call.
    pub(crate) fn given(self) -> GivenHealth {
        if self.overflows() || self.odd_number {
            GivenHealth::NotFinite
        } else if self.has_unmeasured {
            GivenHealth::Unknown
        } else {
            GivenHealth::Finite
        }
    }

    pub(crate) fn note(&mut self, part: Part, health: Health) {
        let known = match part {
            Part::First => &mut self.first,
            Part::Out => &mut self.out,
            Part::Rest => &mut self.rest,
        };
        *known = health.max(*known);
    }

    pub(crate) fn note_number(&mut self, value: f64) {
        self.odd_number |= !value.is_finite();
    }

    /// With those of another side.
    pub(crate) fn and(self, other: Findings) -> Findings {
        Findings {
            first: self.first.max(other.first),
            out: self.out.max(other.out),
            rest: self.rest.max(other.rest),
            odd_number: self.odd_number || other.odd_number,
            has_unmeasured: self.has_unmeasured || other.has_unmeasured,
        }
    }

    pub(crate) fn overflows(self) -> bool {
        self.first.max(self.out).max(self.rest) > Health::Finite
    }

    fn of(self, part: Part) -> Health {
        match part {
            Part::First => self.first,
            Part::Out => self.out,
            Part::Rest => self.rest,
        }
    }
}

/// What is known about a function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Everything counts.
    #[default]
    Ordinary,
    /// Arguments may be buffers to be filled. What they are afterwards is the output, and counts.
    Communication,
    /// Returns memory as it is; arguments say only how much.
    Uninitialised,
    /// Does not read the elements of its first argument: writes them, or makes a tensor of the same shape.
    Ignores,
    /// Fills in a number; its first argument is read or not.
    Fills { reads: bool },
}

impl Rule {
    /// Of a function by its stem: where it lives, and its name.
    pub(crate) fn of(stem: &str) -> Rule {
        let (family, name) = stem.split_once('.').unwrap_or(("", stem));
        let function = name.rsplit('.').next().unwrap_or(name);
        match function {
            _ if family == "Distributed" => Rule::Communication,
            _ if returns_unwritten_memory(function) => Rule::Uninitialised,
            "zeros_like" | "ones_like" | "rand_like" | "randn_like" | "zero_" | "copy_" | "set_"
            | "__setitem__" | "normal_" | "uniform_" | "bernoulli_" | "random_" | "exponential_"
            | "log_normal_" | "cauchy_" | "geometric_" => Rule::Ignores,
            _ => filling(function)
                .map_or(Rule::Ordinary, |filling| Rule::Fills { reads: filling == Filling::Partly }),
        }
    }
}

const EVERYWHERE: &[Part] = &[Part::First, Part::Out, Part::Rest];
const READ: &[Part] = &[Part::First, Part::Rest];
const FIRST: &[Part] = &[Part::First];
const REST: &[Part] = &[Part::Rest];
const NOWHERE: &[Part] = &[];

/// Whether a record is a reason to write.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    /// It is.
    pub(crate) is_raised: bool,
    /// Measurements that an accelerator owes, and that may make it one.
    pub(crate) tickets: Vec<usize>,
}

/// Judges records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Watch {
    ignores_masks: bool,
}

impl Watch {
    pub(crate) fn new(ignores_masks: bool) -> Watch {
        Watch { ignores_masks }
    }

    /// The forward call of a function. Its input is the positional and the named arguments.
    pub(crate) fn call(
        self,
        rule: Rule,
        input: Option<&(Fragment, Fragment)>,
        given: Findings,
        output: Option<&Encoded>,
    ) -> Alarm {
        let is_filled = given.odd_number || given.rest > Health::Finite;
        let (counts_before, counts_after) = match rule {
            Rule::Ordinary => (READ, EVERYWHERE),
            Rule::Communication => (NOWHERE, EVERYWHERE),
            Rule::Uninitialised => (NOWHERE, NOWHERE),
            Rule::Ignores => (REST, EVERYWHERE),
            Rule::Fills { reads } => {
                (if reads { FIRST } else { NOWHERE }, if is_filled { NOWHERE } else { EVERYWHERE })
            }
        };
        let mut alarm = Alarm::default();
        if let Some((args, kwargs)) = input {
            self.add(&mut alarm, given, args, counts_before);
            self.add(&mut alarm, Findings::default(), kwargs, counts_before);
        }
        if let Some(output) = output {
            self.add(&mut alarm, output.findings, &output.fragment, counts_after);
        }
        alarm
    }

    /// Anything else: all of its values.
    pub(crate) fn values<'a>(self, values: impl IntoIterator<Item = &'a Encoded>) -> Alarm {
        let mut alarm = Alarm::default();
        for value in values {
            self.add(&mut alarm, value.findings, &value.fragment, EVERYWHERE);
        }
        alarm
    }

    /// Measurements that have come from an accelerator.
    pub(crate) fn figures(self, stats: &Statistics) -> bool {
        self.is_bad(Health::of(stats))
    }

    fn add(self, alarm: &mut Alarm, findings: Findings, fragment: &Fragment, counts: &[Part]) {
        alarm.is_raised |= counts.iter().any(|&part| self.is_bad(findings.of(part)));
        alarm.tickets.extend(fragment.tickets(counts));
    }

    fn is_bad(self, health: Health) -> bool {
        health == Health::Bad || (health == Health::Masked && !self.ignores_masks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAN: f64 = f64::NAN;
    const INF: f64 = f64::INFINITY;

    fn stats(max: f64, min: f64) -> Statistics {
        let number = |value| Some(Number::Float(value));
        Statistics { max: number(max), min: number(min), ..Statistics::default() }
    }

    #[test]
    fn masks_are_told_from_trouble() {
        for (max, min, health) in [
            (1.0, -1.0, Health::Finite),
            (1.0, -INF, Health::Masked),
            (-INF, -INF, Health::Masked),
            (INF, -INF, Health::Bad),
            (INF, 0.0, Health::Bad),
            (NAN, NAN, Health::Bad),
        ] {
            assert_eq!(Health::of(&stats(max, min)), health);
        }
        assert_eq!(Health::of(&Statistics::default()), Health::Finite);
    }

    #[test]
    fn parts_of_arguments() {
        for (path, part) in [
            (".0", Part::First),
            (".0.12", Part::First),
            (".input", Part::First),
            (".10", Part::Rest),
            (".1.0", Part::Rest),
            (".out.0", Part::Out),
            (".output", Part::Rest),
            ("", Part::Rest),
        ] {
            assert_eq!(Part::of(path), part, "{path}");
        }
    }

    #[test]
    fn functions_are_known_by_name() {
        for (stem, rule) in [
            ("Torch.empty", Rule::Uninitialised),
            ("Distributed.all_gather", Rule::Communication),
            ("Tensor.fill_", Rule::Fills { reads: false }),
            ("Tensor.masked_fill_", Rule::Fills { reads: true }),
            ("Tensor.__setitem__", Rule::Ignores),
            ("Torch.log", Rule::Ordinary),
            ("Custom.Distributed", Rule::Ordinary),
            ("odd", Rule::Ordinary),
        ] {
            assert_eq!(Rule::of(stem), rule, "{stem}");
        }
    }

    fn side(part: Part, health: Health) -> Encoded {
        let mut findings = Findings::default();
        findings.note(part, health);
        Encoded { findings, ..Encoded::default() }
    }

    #[test]
    fn what_counts_depends_on_the_function() {
        let watch = Watch::new(true);
        let given = (Fragment::default(), Fragment::default());
        let raised = |rule, before: &Encoded, after: &Encoded| {
            watch.call(rule, Some(&given), before.findings, Some(after)).is_raised
        };
        let fine = side(Part::Rest, Health::Finite);
        let (first, rest) = (side(Part::First, Health::Bad), side(Part::Rest, Health::Bad));
        let out = side(Part::Out, Health::Bad);
        assert!(raised(Rule::Ordinary, &first, &fine) && raised(Rule::Ordinary, &rest, &fine));
        assert!(!raised(Rule::Ordinary, &out, &fine) && raised(Rule::Ordinary, &fine, &first));
        assert!(!raised(Rule::Communication, &first, &fine) && raised(Rule::Communication, &fine, &first));
        assert!(!raised(Rule::Uninitialised, &first, &first));
        assert!(!raised(Rule::Ignores, &first, &fine) && raised(Rule::Ignores, &fine, &first));
        assert!(raised(Rule::Ignores, &rest, &fine));
        let fills = Rule::Fills { reads: true };
        assert!(raised(fills, &first, &fine) && raised(fills, &fine, &first));
        assert!(!raised(fills, &rest, &first), "by a tensor without dimensions");
        let mut number = side(Part::Rest, Health::Finite);
        number.findings.note_number(-INF);
        assert!(!raised(fills, &number, &first) && raised(Rule::Ordinary, &number, &first));
        assert!(!raised(Rule::Fills { reads: false }, &first, &fine));
    }

    #[test]
    fn masks_can_be_made_to_count() {
        let masked = side(Part::First, Health::Masked);
        assert!(masked.findings.overflows());
        assert!(!Watch::new(true).values([&masked]).is_raised);
        assert!(Watch::new(false).values([&masked]).is_raised);
        assert!(!Watch::new(true).figures(&stats(0.0, -INF)) && Watch::new(false).figures(&stats(0.0, -INF)));
    }
}
