//! How much error of a value is tolerated, and where that limit comes from: a model of rounding, what the user said, or what
//! runs show that should agree.

use msprobe_dump::hash::FastMap;
use msprobe_dump::names::RecordName;

use super::align::{CallName, Pass};
use super::errors::Weights;
use super::functions::{chooses, jumps};
use super::records::RowResults;
use super::tolerance::{Precision, Tolerances};
use crate::side::{Leaf, Role, Side};

/// Where a limit comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitOrigin {
    /// The built-in model of rounding, by dtype.
    Rounding,
    /// The user said so.
    Asked,
    /// Runs that should agree differ by this much there, widened by [`NOISE_FACTOR`].
    Noise,
}

impl LimitOrigin {
    /// The word in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            LimitOrigin::Rounding => "rounding",
            LimitOrigin::Asked => "asked",
            LimitOrigin::Noise => "noise",
        }
    }
}

/// What is tolerated of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// Share of the size of the values.
    pub tolerated: f64,
    /// Where it comes from.
    pub origin: LimitOrigin,
}

/// Noise was measured a few times at most; what another run shows can be so many times as much.
pub const NOISE_FACTOR: f64 = 3.0;

/// The share of values of one kind whose noise is within what the kind is said to have.
const POOLED_SHARE: f64 = 0.95;

/// Limits of the values of a golden run.
pub(super) struct Limits<'a> {
    pub(super) tolerances: &'a Tolerances,
    noise: Option<&'a Noise>,
}

impl<'a> Limits<'a> {
    pub(super) fn new(tolerances: &'a Tolerances, noise: Option<&'a Noise>) -> Limits<'a> {
        Limits { tolerances, noise }
    }

    /// What may count of the error of a golden row, whose elements are sums of so many terms. An error of which only a
    /// part counts may be as many times larger.
    pub(super) fn of(
        &self,
        golden_row: usize,
        precision: Precision,
        conditioning: Conditioning,
        terms: f64,
    ) -> Limit {
        if self.tolerances.is_asked(precision) {
            return Limit { tolerated: self.tolerances.of(precision), origin: LimitOrigin::Asked };
        }
        match self.noise.and_then(|noise| noise.of(golden_row)) {
            Some(noise) if precision != Precision::Exact => Limit {
                tolerated: (NOISE_FACTOR * noise).max(precision.rounding_step()),
                origin: LimitOrigin::Noise,
            },
            _ => Limit {
                tolerated: conditioning
                    .tolerated(self.tolerances.of(precision) * widened_by_terms(terms, precision), precision),
                origin: LimitOrigin::Rounding,
            },
        }
    }
}

/// Rounding of a sum grows with the root of the number of its terms. Up to [`USUAL_TERMS`] that is within the tolerance of
/// the dtype; a million terms nobody adds one after the other, so it ends there. Coarse types are summed in float32, where
/// this is far below their own step.
fn widened_by_terms(terms: f64, precision: Precision) -> f64 {
    if precision.is_coarse() { 1.0 } else { (terms / USUAL_TERMS).sqrt().clamp(1.0, 4.0) }
}

/// Terms of the sums the tolerances by dtype are made for: rows of the widest matrix products.
const USUAL_TERMS: f64 = 65_536.0;

/// What an operation makes of rounding in what it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conditioning {
    /// It keeps it as it is.
    Good,
    /// Gradients: sums of terms that cancel, of values that were rounded on the way forward.
    Backward,
    /// It decides by thresholds: the share of elements that pass one is that of the rounding, and those are wrong entirely.
    Jumps,
    /// Gradients of which elements went the other way at a threshold.
    AfterJump,
}

impl Conditioning {
    pub(super) fn of(pass: Pass, operation: &str, role: Role, after_jump: bool) -> Conditioning {
        let is_result = matches!(role, Role::Output | Role::ParametersGrad);
        match pass {
            Pass::Backward if is_result && jumps(operation) => Conditioning::Jumps,
            Pass::Forward if is_result && chooses(operation) => Conditioning::Jumps,
            Pass::Backward | Pass::ParametersGrad if after_jump => Conditioning::AfterJump,
            Pass::Backward | Pass::ParametersGrad => Conditioning::Backward,
            Pass::Forward | Pass::Other => Conditioning::Good,
        }
    }

    fn tolerated(self, share: f64, precision: Precision) -> f64 {
        match self {
            Conditioning::Jumps => 1.5 * share.sqrt(),
            Conditioning::AfterJump if precision.is_coarse() => 0.5 * share.sqrt(),
            Conditioning::Backward if precision.is_coarse() => 3.0 * share,
            Conditioning::Good | Conditioning::Backward | Conditioning::AfterJump => share,
        }
    }

    /// How much each statistic counts. Among gradients of coarse types single elements tell nothing.
    pub(super) fn weights(self, precision: Precision, leaf: &Leaf) -> Weights {
        let weights = Weights::of(precision, leaf);
        match self {
            Conditioning::Jumps => weights.of_the_whole(),
            Conditioning::Backward | Conditioning::AfterJump if precision.is_coarse() => {
                weights.of_the_whole()
            }
            Conditioning::Good | Conditioning::Backward | Conditioning::AfterJump => weights,
        }
    }
}

/// Values whose noise is alike: of one operation, precision, pass and role, about as many calls after the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct KindOfValue<'a> {
    operation: &'a str,
    precision: Precision,
    pass: Pass,
    role: Role,
    magnitude_of_depth: u32,
}

/// By how much runs differ that should agree.
#[derive(Debug, Clone, Default)]
pub(super) struct Noise {
    /// What is taken for the noise of each row of the golden run.
    of_rows: Vec<Option<f64>>,
}

impl Noise {
    /// Of runs that were compared with the golden one; each gives the errors of its own rows.
    pub(super) fn measured(golden: &Side, runs: &[RowResults]) -> Noise {
        let mut largest: Vec<Option<f64>> = vec![None; golden.rows.len()];
        for result in runs.iter().flatten().flatten() {
            // What cannot be said in numbers is no noise: such a run does not agree.
            if let Some((error, _)) = result.error.filter(|(error, _)| error.error.is_finite()) {
                let known = &mut largest[result.golden];
                *known = Some(known.unwrap_or(0.0).max(error.counted()));
            }
        }
        let mut pools: FastMap<KindOfValue<'_>, Vec<f64>> = FastMap::default();
        let kinds: Vec<Option<KindOfValue<'_>>> =
            (0..golden.rows.len()).map(|row| kind_of(golden, row)).collect();
        for (kind, noise) in kinds.iter().zip(&largest) {
            if let (Some(kind), Some(noise)) = (kind, noise) {
                pools.entry(*kind).or_default().push(*noise);
            }
        }
        let pools: FastMap<KindOfValue<'_>, f64> =
            pools.into_iter().map(|(kind, noises)| (kind, high_quantile(noises))).collect();
        let of_row = |(kind, own): (&Option<KindOfValue<'_>>, Option<f64>)| {
            let pooled = kind.and_then(|kind| pools.get(&kind).copied());
            match (own, pooled) {
                (Some(own), Some(pooled)) => Some(own.max(pooled)),
                (own, pooled) => own.or(pooled),
            }
        };
        Noise { of_rows: kinds.iter().zip(largest).map(of_row).collect() }
    }

    fn of(&self, golden_row: usize) -> Option<f64> {
        self.of_rows.get(golden_row).copied().flatten()
    }
}

fn kind_of(side: &Side, row: usize) -> Option<KindOfValue<'_>> {
    let leaf = &side.rows[row];
    let precision = Precision::of(leaf);
    if precision == Precision::Exact {
        return None;
    }
    let name = &side.records[leaf.record as usize].name;
    Some(KindOfValue {
        operation: RecordName::parse(name).operation(),
        precision,
        pass: CallName::of(name).pass,
        role: leaf.role,
        magnitude_of_depth: (leaf.record + 1).ilog2(),
    })
}

/// The value that a share of all does not exceed.
fn high_quantile(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = (values.len() as f64 * POOLED_SHARE).ceil() as usize;
    values.get(place.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_sums_may_be_further_apart_but_not_without_end() {
        let tolerances = Tolerances::default();
        let limits = Limits::new(&tolerances, None);
        let of = |precision, terms| limits.of(0, precision, Conditioning::Good, terms).tolerated;
        let usual = tolerances.of(Precision::Single);
        assert_eq!(of(Precision::Single, 0.0), usual);
        assert_eq!(of(Precision::Single, USUAL_TERMS), usual);
        assert_eq!(of(Precision::Single, 4.0 * USUAL_TERMS), 2.0 * usual);
        assert_eq!(of(Precision::Single, f64::INFINITY), 4.0 * usual);
        assert_eq!(of(Precision::Brain, f64::INFINITY), tolerances.of(Precision::Brain));
    }

    #[test]
    fn one_outlier_among_many_is_no_quantile_and_among_few_it_is() {
        let mut many = vec![1.0; 39];
        many.push(100.0);
        assert_eq!(high_quantile(many), 1.0);
        assert_eq!(high_quantile(vec![0.0, 3.0, 1.0]), 3.0);
        assert_eq!(high_quantile(Vec::new()), 0.0);
    }
}
