//! How far one value of a record is from its partner, as a share of the size of the values, or why nobody can tell.
//!
//! Both sides count alike: swapping them changes nothing.

use msprobe_tensor::PairMetrics;

use super::gaps::GapKind;
use super::tolerance::{Precision, are_of_one_kind};
use crate::Mode;
use crate::metrics::TensorComparison;
use crate::side::{Leaf, Role, Scalar, Which};

/// What is different about two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DifferenceKind {
    /// Nothing, or only numbers by some amount.
    Values,
    /// NaN or infinity on one side only, at other places, or of another sign.
    NotFinite,
    /// Their shapes.
    Shape,
    /// Their checksums.
    Checksum,
    /// One of them is missing.
    Missing,
}

impl DifferenceKind {
    /// The word in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            DifferenceKind::Values => "values",
            DifferenceKind::NotFinite => "nan or inf",
            DifferenceKind::Shape => "shape",
            DifferenceKind::Checksum => "checksum",
            DifferenceKind::Missing => "missing",
        }
    }
}

/// How far two values are apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RowError {
    /// Share of the size of the golden values; 0 if nothing differs, infinite if no number can say it.
    pub error: f64,
    /// How much of it counts: 1, or less where a single element shows it that moves by whole rounding steps.
    pub weight: f64,
    /// What is different.
    pub kind: DifferenceKind,
}

impl RowError {
    /// A result that one side lacks.
    pub(super) const MISSING: RowError = RowError::infinite(DifferenceKind::Missing);

    const fn infinite(kind: DifferenceKind) -> RowError {
        RowError { error: f64::INFINITY, weight: 1.0, kind }
    }

    const fn of_values(error: f64) -> RowError {
        RowError { error, weight: 1.0, kind: DifferenceKind::Values }
    }

    /// What is held against what is tolerated.
    pub(super) fn counted(&self) -> f64 {
        self.error * self.weight
    }
}

impl Default for RowError {
    /// Nothing differs.
    fn default() -> RowError {
        RowError::of_values(0.0)
    }
}

/// Whether an error is more than what came in made of: by a factor, because rounding grows a little everywhere.
pub(super) fn is_introduced(error: f64, incoming: f64) -> bool {
    error > 3.0 * incoming
}

/// Weight of the largest single error against the error of the whole: one rounding step of the largest element is
/// a larger share of it than all rounding steps are of the whole.
const SINGLE_ELEMENT: f64 = 0.25;

/// Mean and norm of so few elements move by rounding steps of one.
const FEW_ELEMENTS: f64 = 8.0;

/// What a comparison of two values gave.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Compared {
    /// How far apart they are, as far as it could be measured.
    pub error: Option<RowError>,
    /// Why they could not be compared, or not fully.
    pub gap: Option<(GapKind, String)>,
}

impl Compared {
    fn measured(error: RowError) -> Compared {
        Compared { error: Some(error), gap: None }
    }

    fn gap(kind: GapKind, reason: impl Into<String>) -> Compared {
        Compared { error: None, gap: Some((kind, reason.into())) }
    }
}

/// By what two values of the same place are compared.
#[derive(Clone, Copy)]
pub(super) struct Measure<'a> {
    pub(super) mode: Mode,
    /// What was measured of their data.
    pub(super) real: Option<&'a TensorComparison>,
    /// A size below which values count as rounding residue.
    pub(super) floor: f64,
    /// Whether they were computed: then a number or a text counts like a tensor.
    pub(super) is_result: bool,
    /// How much each statistic counts.
    pub(super) weights: Weights,
}

/// How much the error of a statistic counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Weights {
    /// Of the largest and the smallest element.
    extremes: f64,
    /// Of mean and norm.
    rest: f64,
    /// Of the largest error of a single element, where data was compared.
    single: f64,
}

impl Weights {
    /// All count alike.
    pub(super) const EQUAL: Weights = Weights { extremes: 1.0, rest: 1.0, single: SINGLE_ELEMENT };

    /// One element of a coarse float type moves by a whole rounding step or not at all, where mean and norm of many hardly
    /// move.
    pub(super) fn of(precision: Precision, leaf: &Leaf) -> Weights {
        if !precision.is_coarse() {
            return Weights::EQUAL;
        }
        let is_small = leaf.shape.elements().is_some_and(|elements| elements <= FEW_ELEMENTS);
        let rest = if is_small { SINGLE_ELEMENT } else { 1.0 };
        Weights { extremes: SINGLE_ELEMENT, rest, single: SINGLE_ELEMENT }
    }

    /// The same where single elements may be quite different.
    pub(super) fn of_the_whole(self) -> Weights {
        Weights { extremes: SINGLE_ELEMENT, single: 0.0, ..self }
    }
}

/// Compares two values of the same place.
pub(super) fn compare_values(target: &Leaf, golden: &Leaf, by: Measure<'_>) -> Compared {
    match (target.is_tensor(), golden.is_tensor()) {
        (true, true) => compare_tensors(target, golden, by),
        (false, false) if by.is_result => Compared { error: scalar_error(target, golden), gap: None },
        (false, false) => Compared::default(),
        (true, false) => Compared::gap(GapKind::Dtype, kinds_differ("a tensor", &golden.dtype)),
        (false, true) => Compared::gap(GapKind::Dtype, kinds_differ(&target.dtype, "a tensor")),
    }
}

fn kinds_differ(target: &str, golden: &str) -> String {
    let plain = |kind: &str| kind.trim_start_matches("<class '").trim_end_matches("'>").to_owned();
    format!("{} on the NPU side, {} on the bench side", plain(target), plain(golden))
}

fn compare_tensors(target: &Leaf, golden: &Leaf, by: Measure<'_>) -> Compared {
    if let Some(reason) = target.unmeasured.as_ref().or(golden.unmeasured.as_ref()) {
        let measured = statistics(target, golden, by).error;
        return Compared { error: measured, gap: Some((GapKind::Unmeasured, reason.to_string())) };
    }
    // A mask of bools and one of numbers to add say the same in other words; no number tells.
    if !are_of_one_kind(target, golden) {
        return Compared::gap(GapKind::Dtype, kinds_differ(&target.dtype, &golden.dtype));
    }
    if target.shape != golden.shape {
        return Compared::measured(RowError::infinite(DifferenceKind::Shape));
    }
    // Shapes without data are compared by now.
    if target.is_meta && golden.is_meta {
        return Compared::measured(RowError::of_values(0.0));
    }
    match by.mode {
        Mode::Summary => statistics_and_sketch(target, golden, by),
        Mode::Md5 => compare_checksums(target, golden, by),
        Mode::All => match by.real {
            Some(TensorComparison { pair: Some(pair), .. }) => {
                let is_exact = [target, golden].iter().all(|leaf| Precision::of(leaf) == Precision::Exact);
                let error = match real_error(pair, larger(size_of(target), size_of(golden)), by) {
                    // Integers are at least one apart, also where a float does not tell them apart.
                    error if is_exact && error == RowError::of_values(SMALLEST) => {
                        RowError::of_values(share(1.0, pair.golden_norm.max(pair.target_norm)))
                    }
                    error => error,
                };
                if error.error == 0.0 { equal_data(target, golden, by) } else { Compared::measured(error) }
            }
            Some(TensorComparison { gap: Some(reason), .. }) => {
                let error = statistics(target, golden, by).error;
                Compared { error, gap: Some((GapKind::Files, reason.clone())) }
            }
            // Nothing to read, because there are no elements.
            _ if target.is_empty() && golden.is_empty() => Compared::measured(RowError::of_values(0.0)),
            _ => Compared {
                error: statistics(target, golden, by).error,
                gap: Some((GapKind::Files, "no tensor file belongs to it".to_owned())),
            },
        },
    }
}

fn compare_checksums(target: &Leaf, golden: &Leaf, by: Measure<'_>) -> Compared {
    let reason = match (target.has_checksum, golden.has_checksum) {
        (true, true) if target.md5 == golden.md5 => return equal_data(target, golden, by),
        (true, true) => return Compared::measured(RowError::infinite(DifferenceKind::Checksum)),
        // There are no elements to have a checksum of.
        (false, false) if target.is_empty() && golden.is_empty() => {
            return Compared::measured(RowError::of_values(0.0));
        }
        (false, false) if target.is_array && golden.is_array => return statistics(target, golden, by),
        (false, false) => "no checksum was recorded",
        _ => "a checksum was recorded on one side only",
    };
    // Equal statistics do not show equal elements; other statistics do show that they differ.
    let error = statistics(target, golden, by).error;
    Compared { error, gap: Some((GapKind::Unmeasured, reason.to_owned())) }
}

/// Elements that were shown to be equal. Statistics that do not belong to them are a difference of the dumps: one of the
/// records is damaged.
fn equal_data(target: &Leaf, golden: &Leaf, by: Measure<'_>) -> Compared {
    let recorded = statistics(target, golden, by);
    match recorded.error {
        Some(error) if error.error > 0.0 => Compared::measured(error),
        Some(_) => recorded,
        // Nothing was recorded that could be wrong.
        None => Compared::measured(RowError::of_values(0.0)),
    }
}

fn larger(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.max(other)),
        (one, other) => one.or(other),
    }
}

/// The error of what differs by less than can be said in numbers: 0 against -0, or an element that is nothing beside the
/// others. Only what is equal has the error 0.
const SMALLEST: f64 = f64::MIN_POSITIVE;

fn real_error(pair: &PairMetrics, size: Option<f64>, by: Measure<'_>) -> RowError {
    if !pair.non_finite_agree {
        return RowError::infinite(DifferenceKind::NotFinite);
    }
    if pair.bits_agree {
        return RowError::of_values(0.0);
    }
    let elements = (pair.count as f64).sqrt();
    let whole = pair.golden_norm.max(pair.target_norm);
    let norm = share(pair.euclidean_distance, whole.max(by.floor * elements));
    let size = size.unwrap_or(whole);
    let single = share(pair.max_abs_error, size.max(by.floor));
    RowError::of_values(norm.max(by.weights.single * single).max(SMALLEST))
}

/// Compares by what was measured at collection. Sketches also see what statistics do not, such as elements that changed
/// places.
fn statistics_and_sketch(target: &Leaf, golden: &Leaf, by: Measure<'_>) -> Compared {
    let mut compared = statistics(target, golden, by);
    let (Some(own), Some(other)) = (&target.sketch, &golden.sketch) else { return compared };
    let sketched = own.compare(other);
    if sketched.same_bits {
        return compared;
    }
    // Less than a sketch can tell is told by the statistics, but is not nothing.
    let share = sketched.relative_error.filter(|share| *share > sketched.resolution).unwrap_or_default();
    let norm = larger(value(&target.statistics[3]), value(&golden.statistics[3])).unwrap_or_default();
    let elements = golden.shape.elements().unwrap_or_default();
    let counted = if norm > 0.0 { share * norm / norm.max(by.floor * elements.sqrt()) } else { share };
    let error = RowError::of_values(counted.max(SMALLEST));
    match &mut compared.error {
        Some(known) if known.counted() >= error.counted() => {}
        known => *known = Some(error),
    }
    compared
}

/// Compares by what was measured at collection.
fn statistics(target: &Leaf, golden: &Leaf, by: Measure<'_>) -> Compared {
    if target.is_empty() && golden.is_empty() {
        return Compared::measured(RowError::of_values(0.0));
    }
    let known = |leaf: &Leaf| leaf.statistics.each_ref().map(|statistic| value(statistic).is_some());
    let (target_knows, golden_knows) = (known(target), known(golden));
    let Some(size) = larger(size_of(target), size_of(golden)) else {
        return Compared::gap(GapKind::Unmeasured, "no statistics were recorded");
    };
    let error = Some(statistics_error(target, golden, size, by));
    let one_sided = (0..4).find(|&index| target_knows[index] != golden_knows[index]);
    let gap = one_sided.map(|index| {
        let name = ["Max", "Min", "Mean", "Norm"][index];
        let which = if target_knows[index] { Which::Target } else { Which::Golden };
        (GapKind::Unmeasured, format!("{name} was recorded only on the {} side", which))
    });
    Compared { error, gap }
}

fn statistics_error(target: &Leaf, golden: &Leaf, size: f64, by: Measure<'_>) -> RowError {
    let mut worst = RowError::of_values(0.0);
    for (index, (one, other)) in target.statistics.iter().zip(&golden.statistics).enumerate() {
        let (Some(one_value), Some(other_value)) = (value(one), value(other)) else { continue };
        let Some(difference) = difference(one, other) else { continue };
        if !one_value.is_finite() || !other_value.is_finite() {
            return RowError::infinite(DifferenceKind::NotFinite);
        }
        let size = match index {
            // The norm has a size of its own, which a floor raises as it raises that of the elements.
            3 => one_value.abs().max(other_value.abs()) * (by.floor / size).max(1.0),
            _ => size.max(by.floor),
        };
        let weight = if index < 2 { by.weights.extremes } else { by.weights.rest };
        let error = RowError { weight, ..RowError::of_values(share(difference, size)) };
        if error.counted() > worst.counted() {
            worst = error;
        }
    }
    worst
}

/// How far two numbers are apart; `None` if they are equal. Whole numbers are taken as they are: beyond 2^53 a float
/// does not tell neighbours apart.
fn difference(one: &Scalar, other: &Scalar) -> Option<f64> {
    if let (Some(one), Some(other)) = (whole(one), whole(other)) {
        return (one != other).then(|| one.abs_diff(other) as f64);
    }
    let (one, other) = (value(one)?, value(other)?);
    (one != other && !(one.is_nan() && other.is_nan())).then(|| (one - other).abs())
}

/// The whole number something is, however it was written.
fn whole(scalar: &Scalar) -> Option<i128> {
    /// Floats below are whole numbers of `i128` if they have no fraction.
    const END: f64 = 1e38;
    match scalar {
        Scalar::Bool(value) => Some(i128::from(*value)),
        Scalar::Float(value) if value.fract() == 0.0 && value.abs() < END => Some(*value as i128),
        other => other.whole(),
    }
}

/// A difference as a share of a size; 0 only if there is none.
fn share(difference: f64, size: f64) -> f64 {
    if difference == 0.0 {
        0.0
    } else if size > 0.0 {
        (difference / size).max(SMALLEST)
    } else {
        1.0
    }
}

/// How far two results are apart that are no tensors. `None` where a difference tells of the machine only.
fn scalar_error(target: &Leaf, golden: &Leaf) -> Option<RowError> {
    if target.digest == golden.digest {
        return Some(RowError::of_values(0.0));
    }
    let (one, other) = (&target.statistics[0], &golden.statistics[0]);
    match (value(one), value(other)) {
        (Some(one_value), Some(other_value)) => {
            let Some(difference) = difference(one, other) else { return Some(RowError::of_values(0.0)) };
            if !one_value.is_finite() || !other_value.is_finite() {
                return Some(RowError::infinite(DifferenceKind::NotFinite));
            }
            Some(RowError::of_values(share(difference, one_value.abs().max(other_value.abs()))))
        }
        _ if texts_are_places(one, other) => None,
        _ => Some(RowError::infinite(DifferenceKind::Values)),
    }
}

/// Masks are added as the lowest number there is; beside it everything else would count as nothing.
const MASKED: f64 = 1e30;

/// Largest magnitude of the elements, as far as it is finite and no mask.
pub(super) fn size_of(leaf: &Leaf) -> Option<f64> {
    let [max, min, mean, _] = &leaf.statistics;
    let known = match (value(max), value(min)) {
        (None, None) => [value(mean)?; 2],
        (max, min) => [max, min].map(Option::unwrap_or_default),
    };
    let largest =
        |below: f64| known.map(f64::abs).into_iter().filter(|size| *size < below).fold(0.0, f64::max);
    let size = largest(MASKED);
    Some(if size > 0.0 { size } else { largest(f64::INFINITY) })
}

fn value(scalar: &Scalar) -> Option<f64> {
    match scalar {
        Scalar::Bool(value) => Some(f64::from(u8::from(*value))),
        other => other.number(),
    }
}

/// Whether two arguments that are no tensors differ in a way that changes what is computed; floats, by more than a share.
pub(super) fn arguments_differ(target: &Leaf, golden: &Leaf, tolerance: f64) -> bool {
    if target.role != Role::Input || target.is_tensor() || golden.is_tensor() {
        return false;
    }
    let (one, other) = (&target.statistics[0], &golden.statistics[0]);
    match (value(one), value(other)) {
        (Some(one_value), Some(other_value)) => difference(one, other).is_some_and(|difference| {
            let is_float = matches!(one, Scalar::Float(_)) || matches!(other, Scalar::Float(_));
            let size = one_value.abs().max(other_value.abs());
            // Written so that NaN against a number is a difference.
            !(is_float && share(difference, size) <= tolerance)
        }),
        _ => (one != other || target.shape != golden.shape) && !texts_are_places(one, other),
    }
}

fn texts_are_places(one: &Scalar, other: &Scalar) -> bool {
    matches!((one, other), (Scalar::Text(one), Scalar::Text(other)) if is_place(one) && is_place(other))
}

/// Whether a text names a device or a dtype, which differ between machines and frameworks by nature.
fn is_place(text: &str) -> bool {
    let device = text.split(':').next().unwrap_or_default();
    matches!(device, "cpu" | "cuda" | "npu" | "meta" | "mps" | "xpu" | "Ascend" | "GPU" | "CPU")
        || text.starts_with("torch.")
        || text.starts_with("mindspore.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::Silent;
    use crate::side::read_side;

    #[test]
    fn sizes_beyond_any_integer_do_not_overflow() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("dump.json");
        let shape = format!("[{0}, {0}, {0}]", u64::MAX);
        let tensor = format!(
            r#"{{"type": "torch.Tensor", "dtype": "torch.bfloat16", "shape": {shape}, "Max": 1.0, "Min": 0.0,
            "Mean": 0.5, "Norm": 2.0}}"#
        );
        let record = format!(r#"{{"input_args": [{tensor}], "output": [{tensor}]}}"#);
        let text = format!(r#"{{"task": "statistics", "data": {{"Torch.add.0.forward": {record}}}}}"#);
        std::fs::write(&path, text).unwrap();
        let side = read_side(&path, Which::Target, &Silent).unwrap();
        let leaf = &side.rows[0];
        assert_eq!(Weights::of(Precision::Brain, leaf).rest, 1.0);
    }
}
