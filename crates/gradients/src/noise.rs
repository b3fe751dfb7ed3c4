//! What runs that should agree differ by: how far below 1 the similarities of each parameter come among them.

use std::collections::BTreeMap;

use msprobe_compare::verdict::NOISE_FACTOR;

use super::agreement::Agreement;
use super::measure::Similarities;
use super::verdict::Thresholds;

/// Noise of one rank.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Noise {
    /// Of each parameter, by name.
    parameters: BTreeMap<String, f64>,
    /// Of all parameters together.
    summary: f64,
}

impl Noise {
    /// Takes in what a further run of the second side shows.
    pub(super) fn add(&mut self, run: &Similarities) {
        for (name, agreements) in run.parameters.iter().zip(&run.agreements) {
            let most = self.parameters.entry(name.clone()).or_default();
            *most = most.max(shortfall(agreements));
        }
        self.summary = self.summary.max(shortfall(&run.summary));
    }

    /// What counts as suspicious of a parameter.
    pub(super) fn thresholds_of(&self, parameter: &str, thresholds: Thresholds) -> Thresholds {
        widened(thresholds, self.parameters.get(parameter).copied().unwrap_or_default())
    }

    /// What counts as suspicious of all together.
    pub(super) fn thresholds_of_all(&self, thresholds: Thresholds) -> Thresholds {
        widened(thresholds, self.summary)
    }
}

/// How far a curve comes below 1. What is only estimated counts as far as it is sure.
fn shortfall(agreements: &[Option<Agreement>]) -> f64 {
    let surely = |agreement: Agreement| match agreement.interval() {
        Some((_, highest)) => Some(highest),
        None => agreement.similarity(),
    };
    agreements.iter().flatten().filter_map(|&one| surely(one)).fold(0.0, |most, now| most.max(1.0 - now))
}

/// Nothing is suspicious that noise, times a factor, does too.
fn widened(thresholds: Thresholds, shortfall: f64) -> Thresholds {
    let noise = (NOISE_FACTOR * shortfall).min(1.0);
    Thresholds {
        first: thresholds.first.min(1.0 - noise),
        fall: thresholds.fall.max(noise),
        floor: thresholds.floor.min(1.0 - noise),
        total: thresholds.total.max(noise),
    }
}
