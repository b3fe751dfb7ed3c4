//! By which precision values are judged: coarse rounding on the way is in everything that follows.

use super::errors;
use super::records::{Dumps, RowPairs};
use super::tolerance::Precision;
use crate::side::{Leaf, Role};

/// By what rows are judged, as it is known up to a record.
pub(super) struct Scale {
    pub(super) gradient_floor: f64,
    /// Coarsest float type the golden run has used so far: its rounding is in everything that follows.
    pub(super) coarsest: Precision,
    /// Whether one run as a whole has another float type, which then is no finding.
    pub(super) other_precision: bool,
}

impl Scale {
    pub(super) fn new(dumps: &Dumps<'_>, rows: &[RowPairs]) -> Scale {
        Scale {
            gradient_floor: gradient_floor(dumps),
            coarsest: Precision::Exact,
            other_precision: runs_have_other_precision(dumps, rows),
        }
    }

    /// The precision by which a pair of values is judged.
    pub(super) fn precision(&mut self, target: &Leaf, golden: &Leaf) -> Precision {
        let Some(shared) = self.shared_precision(target, golden) else {
            return Precision::of(golden).max(Precision::of(target));
        };
        self.coarsest = self.coarsest.max(shared);
        self.coarsest
    }

    /// The float type whose rounding is in both values. Another one of one call is a finding by itself, and no reason to
    /// tolerate more from there on.
    fn shared_precision(&self, target: &Leaf, golden: &Leaf) -> Option<Precision> {
        let (own, other) = (Precision::of(golden), Precision::of(target));
        let are_floats = own != Precision::Exact && other != Precision::Exact;
        are_floats.then(|| if self.other_precision { own.max(other) } else { own.min(other) })
    }
}

pub(super) fn other_float(target: &Leaf, golden: &Leaf) -> bool {
    let (own, other) = (Precision::of(golden), Precision::of(target));
    own != other && own != Precision::Exact && other != Precision::Exact
}

fn runs_have_other_precision(dumps: &Dumps<'_>, rows: &[RowPairs]) -> bool {
    let (mut floats, mut other) = (0_usize, 0_usize);
    for &(row, partner) in rows.iter().flatten() {
        let (target, golden) = (&dumps.target.rows[row], &dumps.golden.rows[partner]);
        if target.is_tensor() && Precision::of(golden) != Precision::Exact {
            floats += 1;
            other += usize::from(other_float(target, golden));
        }
    }
    other * 4 > floats
}

/// Gradients below this are what is left of larger ones that cancel: their digits mean nothing.
fn gradient_floor(dumps: &Dumps<'_>) -> f64 {
    let rows = dumps.golden.rows.iter().chain(&dumps.target.rows);
    let gradients = rows.filter(|row| row.role == Role::ParametersGrad);
    1e-4 * gradients.filter_map(errors::size_of).fold(0.0, f64::max)
}
