//! How far two arrays may be apart before they count as different.
//!
//! Runs on one kind of machine repeat each other bit by bit, and the first bit that does not is worth a name. Runs on two
//! kinds differ from the first forward pass on: there what is no more than rounding must not be named. Which of both it
//! is, the arrays tell that a model made: if even one of them is the same, so could be the others.

use std::collections::BTreeMap;

use msprobe_compare::verdict::{NOISE_FACTOR, Precision, Tolerances};

use super::{Comparison, KeyComparison, Row, flow};

/// What the user says about differences.
#[derive(Debug, Clone, Default)]
pub struct Judging {
    /// What may differ, by dtype; 0 for runs that should be the same to the last bit.
    pub tolerances: Option<Tolerances>,
    /// Further runs of the second side: how far they are from it is noise.
    pub noise: Vec<std::path::PathBuf>,
}

/// Where a limit comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitOrigin {
    /// The runs repeat each other bit by bit.
    Exact,
    /// The user asked for it.
    Asked,
    /// Further runs of the second side.
    Noise,
    /// What rounding does to a model.
    Rounding,
}

impl LimitOrigin {
    /// The word in reports.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            LimitOrigin::Exact => "exact",
            LimitOrigin::Asked => "asked",
            LimitOrigin::Noise => "noise",
            LimitOrigin::Rounding => "rounding",
        }
    }
}

/// How far the arrays of a pair are apart, and how far they may be; both as shares of their size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Judged {
    pub(super) error: f64,
    pub(super) tolerated: f64,
}

impl Judged {
    pub(super) fn is_tolerated(self) -> bool {
        self.error <= self.tolerated
    }
}

/// Limits of all arrays of two runs.
#[derive(Debug, PartialEq)]
pub(super) struct Limits {
    origin: LimitOrigin,
    tolerances: Tolerances,
    /// Largest error of each key among runs that should agree.
    noise: BTreeMap<String, f64>,
    has_noise: bool,
    /// What one forward pass does, and the step it was seen at.
    rounding: (f64, i64),
    /// Size of one log probability, by step.
    log_probs: BTreeMap<i64, f64>,
}

/// What bfloat16 does to the log probabilities of a model of some dozens of layers.
const COARSE: f64 = 2e-2;
/// The quietest of all arrays that models made shows what rounding does; others may have so many times as much.
const OTHERS: f64 = 10.0;

impl Limits {
    /// `noise` are comparisons of further runs with the second one.
    pub(super) fn new(
        comparison: &Comparison,
        tolerances: Option<Tolerances>,
        noise: &[Comparison],
    ) -> Limits {
        let made = made_by_models(comparison);
        let first_step = made.iter().map(|row| row.place.step).min().unwrap_or_default();
        let repeats = made.len() < 2 || made.iter().any(|row| row.first_difference.is_none());
        let origin = match tolerances {
            Some(_) => LimitOrigin::Asked,
            None if repeats => LimitOrigin::Exact,
            None => LimitOrigin::Rounding,
        };
        let mut limits = Limits {
            origin,
            tolerances: tolerances.unwrap_or_default(),
            noise: BTreeMap::new(),
            has_noise: !noise.is_empty(),
            rounding: (0.0, first_step),
            log_probs: sizes_of_log_probs(comparison),
        };
        let first = made.iter().filter(|row| row.place.step == first_step);
        let quietest = first.map(|row| row.distance / row.norm).fold(f64::INFINITY, f64::min);
        let least = limits.tolerances.of(Precision::Single);
        limits.rounding.0 = (quietest * OTHERS).clamp(least, COARSE);
        for key in noise.iter().flat_map(|run| &run.keys) {
            for row in &key.rows {
                let error = limits.error(key, row);
                let largest = limits.noise.entry(key.name.clone()).or_insert(0.0);
                *largest = largest.max(error);
            }
        }
        limits
    }

    /// Where limits come from that noise does not tell.
    pub(super) fn origin(&self) -> LimitOrigin {
        if self.has_noise { LimitOrigin::Noise } else { self.origin }
    }

    pub(super) fn judge(&self, key: &KeyComparison, row: &Row) -> Judged {
        Judged { error: self.error(key, row), tolerated: self.tolerated(key, row) }
    }

    /// Distance as a share of the size. What is made of differences of log probabilities is measured by those.
    fn error(&self, key: &KeyComparison, row: &Row) -> f64 {
        let elements = row.compared.iter().map(|&size| size as f64).product::<f64>();
        let around = match self.log_probs.get(&row.place.step) {
            Some(size) if matches!(key.name.as_str(), "kl_loss" | "loss") => size * elements.sqrt(),
            _ => 0.0,
        };
        if row.distance == 0.0 { 0.0 } else { row.distance / row.norm.max(around) }
    }

    fn tolerated(&self, key: &KeyComparison, row: &Row) -> f64 {
        if let Some(noise) = self.noise.get(&key.name) {
            return NOISE_FACTOR * noise;
        }
        let [one, two] = row.dtypes.map(Precision::of_elements);
        let precision = one.max(two);
        if one == Precision::Exact || two == Precision::Exact {
            return 0.0;
        }
        match self.origin {
            LimitOrigin::Asked => self.tolerances.of(precision),
            LimitOrigin::Rounding => {
                let (share, first_step) = self.rounding;
                // Each update carries on what the one before it has made of rounding.
                let updates = row.place.step.saturating_sub(first_step).max(0) as f64;
                share.max(self.tolerances.of(precision)) * (1.0 + updates)
            }
            LimitOrigin::Exact | LimitOrigin::Noise => 0.0,
        }
    }
}

/// Arrays of floats that models made, as far as the names of keys tell; else all that are not made of rewards alone.
fn made_by_models(comparison: &Comparison) -> Vec<&Row> {
    let rows = |wanted: &dyn Fn(&str) -> bool| -> Vec<&Row> {
        let is_float =
            |row: &&Row| row.dtypes.iter().all(|&dtype| Precision::of_elements(dtype) != Precision::Exact);
        let tells = |row: &&Row| is_float(row) && row.norm > 0.0 && row.norm.is_finite();
        let keys = comparison.keys.iter().filter(|key| wanted(&key.name));
        keys.flat_map(|key| &key.rows).filter(tells).collect()
    };
    let of_models = rows(&flow::is_made_by_a_model);
    if of_models.is_empty() { rows(&|name| name != "advantages") } else { of_models }
}

/// The size of one log probability of the second run, by step.
fn sizes_of_log_probs(comparison: &Comparison) -> BTreeMap<i64, f64> {
    let mut sizes = BTreeMap::new();
    for key in comparison.keys.iter().filter(|key| key.name.ends_with("log_prob")) {
        for row in key.rows.iter().filter(|row| row.norm.is_finite()) {
            let elements = row.compared.iter().map(|&size| size as f64).product::<f64>().max(1.0);
            let size = sizes.entry(row.place.step).or_insert(0.0_f64);
            *size = size.max(row.norm / elements.sqrt());
        }
    }
    sizes
}
