//! Metrics of a pair by definition, in numpy's arithmetic.

use std::ops::{Add, Div, Mul, Sub};

use half::f16;
use msprobe_tensor::{DType, DTypeClass, NonFinite, PairMetrics, ScaledErrors};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::{ROUNDING, Value, compensated_sum, numpy_max, same};

type Outcome = Result<(), TestCaseError>;

/// A float type numpy computes in.
trait Float: Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> {
    const LARGEST: f64;
    fn new(value: f64) -> Self;
    fn get(self) -> f64;
}

impl Float for f16 {
    const LARGEST: f64 = 65504.0;
    fn new(value: f64) -> f16 {
        f16::from_f64(value)
    }
    fn get(self) -> f64 {
        self.to_f64()
    }
}

impl Float for f32 {
    const LARGEST: f64 = f32::MAX as f64;
    fn new(value: f64) -> f32 {
        value as f32
    }
    fn get(self) -> f64 {
        self.into()
    }
}

impl Float for f64 {
    const LARGEST: f64 = f64::MAX;
    fn new(value: f64) -> f64 {
        value
    }
    fn get(self) -> f64 {
        self
    }
}

/// bfloat16 and float8 come to numpy as float32.
fn numpy_dtype(dtype: DType) -> DType {
    if dtype == DType::BF16 || dtype.is_float8() { DType::F32 } else { dtype }
}

/// numpy's `can_cast(from, to, "safe")`.
fn can_cast(from: DType, to: DType) -> bool {
    use DTypeClass::{Bool, Complex, Float, Signed, Unsigned};
    let (size, room) = (from.size_bytes(), to.size_bytes());
    // The widest integer each float type counts as safe for: float64 takes 64-bit ones although it rounds them.
    let integer_room = |component: usize| if component == 8 { 8 } else { component / 2 };
    match (from.class(), to.class()) {
        (Bool, _) => true,
        (Unsigned, Unsigned) | (Signed, Signed) | (Float, Float) | (Complex, Complex) => size <= room,
        (Unsigned, Signed) => size < room,
        (Unsigned | Signed, Float) => size <= integer_room(room),
        (Unsigned | Signed, Complex) => size <= integer_room(room / 2),
        (Float, Complex) => size <= room / 2,
        _ => false,
    }
}

/// numpy's `result_type`: the first type both sides can be cast to without loss.
fn result_type(a: DType, b: DType) -> DType {
    use DType as D;
    let types = [
        D::Bool,
        D::U8,
        D::I8,
        D::U16,
        D::I16,
        D::U32,
        D::I32,
        D::U64,
        D::I64,
        D::F16,
        D::F32,
        D::F64,
        D::C64,
        D::C128,
    ];
    types.into_iter().find(|&to| can_cast(numpy_dtype(a), to) && can_cast(numpy_dtype(b), to)).unwrap()
}

/// Checks metrics against the elements of both sides.
pub(crate) fn check(
    actual: &PairMetrics,
    dtypes: (DType, DType),
    are_scalars: bool,
    target: &[Value],
    golden: &[Value],
) -> Outcome {
    let arithmetic = result_type(dtypes.0, dtypes.1);
    check_equality(actual, arithmetic, target, golden)?;
    check_non_finite(actual, arithmetic, target, golden)?;

    // Dump comparison: positions that are not finite on either side are zero on both.
    let finite = |value: &Value| value.parts().0.is_finite() && value.parts().1.is_finite();
    let cleaned: Vec<(Value, Value)> = target
        .iter()
        .zip(golden)
        .map(|(t, g)| if finite(t) && finite(g) { (*t, *g) } else { (Value::Real(0.0), Value::Real(0.0)) })
        .collect();
    check_distances(actual, &cleaned)?;
    check_relative(actual, arithmetic, dtypes.1, &cleaned)?;

    // Key-data comparison: everything as it is.
    let bools = dtypes == (DType::Bool, DType::Bool);
    prop_assert_eq!(actual.scaled.is_none(), bools);
    let Some(scaled) = actual.scaled else { return Ok(()) };
    let errors: Vec<Scaled> =
        target.iter().zip(golden).map(|(t, g)| scaled_errors(dtypes, are_scalars, *t, *g)).collect();
    check_scaled(&scaled, &errors)
}

fn check_equality(actual: &PairMetrics, arithmetic: DType, target: &[Value], golden: &[Value]) -> Outcome {
    let equal = |(t, g): (&Value, &Value)| match (t, g) {
        (Value::Int(t), Value::Int(g)) if arithmetic.class() != DTypeClass::Float => t == g,
        _ => t.parts() == g.parts(),
    };
    let equal: Vec<bool> = target.iter().zip(golden).map(equal).collect();
    prop_assert_eq!(actual.count, equal.len() as u64);
    prop_assert_eq!(actual.equal_count, equal.iter().filter(|&&equal| equal).count() as u64);
    prop_assert_eq!(actual.first_mismatch, equal.iter().position(|&equal| !equal).map(|index| index as u64));
    prop_assert_eq!(actual.is_identical(), !equal.contains(&false));
    Ok(())
}

fn is_nan(value: &Value) -> bool {
    value.parts().0.is_nan() || value.parts().1.is_nan()
}

fn is_infinite(value: &Value) -> bool {
    value.parts().0.is_infinite() || value.parts().1.is_infinite()
}

fn check_non_finite(actual: &PairMetrics, arithmetic: DType, target: &[Value], golden: &[Value]) -> Outcome {
    let complex = arithmetic.class() == DTypeClass::Complex;
    // A complex number counts once: as NaN if a part is, or else as +Inf, which is what all infinities are then.
    let counts = |values: &[Value]| {
        let mut counts = NonFinite::default();
        for value in values {
            if is_nan(value) {
                counts.nan += 1;
            } else if !complex && *value == Value::Real(f64::NEG_INFINITY) {
                counts.neg_inf += 1;
            } else if is_infinite(value) {
                counts.pos_inf += 1;
            }
        }
        counts
    };
    prop_assert_eq!(actual.target_non_finite, counts(target));
    prop_assert_eq!(actual.golden_non_finite, counts(golden));
    let agree = |test: fn(&Value) -> bool| target.iter().zip(golden).all(|(t, g)| test(t) == test(g));
    prop_assert_eq!(actual.nan_positions_agree, agree(is_nan));
    prop_assert_eq!(actual.inf_positions_agree, agree(is_infinite));
    Ok(())
}

/// The modulus of a difference.
fn distance(t: Value, g: Value) -> f64 {
    let ((t_re, t_im), (g_re, g_im)) = (t.parts(), g.parts());
    modulus((t_re - g_re, t_im - g_im))
}

fn modulus((re, im): (f64, f64)) -> f64 {
    if im == 0.0 { re.abs() } else { re.hypot(im) }
}

fn check_distances(actual: &PairMetrics, pairs: &[(Value, Value)]) -> Outcome {
    let product = |a: Value, b: Value| a.parts().0 * b.parts().0 + a.parts().1 * b.parts().1;
    let n = pairs.len() as f64;
    let (dot, magnitudes) = compensated_sum(pairs.iter().map(|&(t, g)| product(t, g)));
    let parts =
        pairs.iter().map(|&(t, g)| (t.parts().0 * g.parts().0).abs() + (t.parts().1 * g.parts().1).abs());
    let (_, part_magnitudes) = compensated_sum(parts);
    if magnitudes < f64::MAX / 2.0 {
        let tolerance = (n + 3.0) * ROUNDING * part_magnitudes;
        let off = (actual.dot - dot).abs();
        prop_assert!(off <= tolerance, "dot {} instead of {dot} ± {tolerance}", actual.dot);
    }
    check_root("target norm", actual.target_norm, pairs.iter().map(|&(t, _)| product(t, t)))?;
    check_root("golden norm", actual.golden_norm, pairs.iter().map(|&(_, g)| product(g, g)))?;
    let squares = pairs.iter().map(|&(t, g)| distance(t, g).powi(2));
    check_root("distance", actual.euclidean_distance, squares)?;
    let largest = numpy_max(pairs.iter().map(|&(t, g)| distance(t, g)));
    prop_assert_eq!(actual.max_abs_error, largest);
    Ok(())
}

/// The root of a sum of squares in `f64`, which may underflow to zero and overflow to infinity.
fn check_root(what: &str, actual: f64, squares: impl ExactSizeIterator<Item = f64>) -> Outcome {
    let n = squares.len() as f64;
    let (sum, magnitudes) = compensated_sum(squares);
    if magnitudes > f64::MAX * (1.0 - 1e-9) {
        prop_assert!(actual > 1e154, "{what} {actual} does not overflow");
        return Ok(());
    }
    // Roundings of the sum, halved by the root, and those of the squares.
    let tolerance = (n / 2.0 + 4.0) * ROUNDING * sum.sqrt();
    let off = (actual - sum.sqrt()).abs();
    prop_assert!(off <= tolerance, "{what} {actual} instead of {} ± {tolerance}", sum.sqrt());
    Ok(())
}

fn check_relative(
    actual: &PairMetrics,
    arithmetic: DType,
    golden: DType,
    pairs: &[(Value, Value)],
) -> Outcome {
    let golden_is_float = golden.class() == DTypeClass::Float;
    // The error, and whether it is below each limit.
    let relative = |&(t, g): &(Value, Value)| match arithmetic {
        DType::C64 | DType::C128 => {
            let size = modulus(g.parts());
            let error = distance(t, g) / if size == 0.0 { f64::EPSILON } else { size };
            (error, [0.001, 0.005, 0.01].map(|limit| error < limit))
        }
        DType::F16 if golden_is_float => relative_error::<f16>(t, g),
        DType::F32 if golden_is_float => relative_error::<f32>(t, g),
        _ => relative_error::<f64>(t, g),
    };
    let errors: Vec<(f64, [bool; 3])> = pairs.iter().map(relative).collect();
    let largest = numpy_max(errors.iter().map(|error| error.0));
    prop_assert!(
        same(actual.max_relative_error, largest),
        "relative {} instead of {largest}",
        actual.max_relative_error
    );
    let below = |limit: usize| errors.iter().filter(|error| error.1[limit]).count() as u64;
    prop_assert_eq!(actual.within_thousandth, below(0));
    prop_assert_eq!(actual.within_five_thousandths, below(1));
    prop_assert_eq!(actual.within_hundredth, below(2));
    Ok(())
}

fn relative_error<F: Float>(t: Value, g: Value) -> (f64, [bool; 3]) {
    let (mut t, mut g) = (F::new(t.parts().0), F::new(g.parts().0));
    if g.get() == 0.0 {
        t = t + F::new(f64::EPSILON);
        g = g + F::new(f64::EPSILON);
    }
    let error = ((t - g) / g).get().abs();
    (error, [0.001, 0.005, 0.01].map(|limit| error < F::new(limit).get()))
}

/// Of one pair of elements: distance, distance over the larger magnitude, within a thousandth, a hundredth.
type Scaled = (f64, f64, [bool; 2]);

fn scaled_errors(dtypes: (DType, DType), are_scalars: bool, t: Value, g: Value) -> Scaled {
    let arithmetic = result_type(dtypes.0, dtypes.1);
    match (arithmetic.class(), arithmetic) {
        (DTypeClass::Complex, _) => scaled_complex(dtypes, are_scalars, t, g),
        (_, DType::F16) => scaled_float::<f16>(are_scalars, t, g),
        (_, DType::F32) => scaled_float::<f32>(are_scalars, t, g),
        (_, DType::F64) => scaled_float::<f64>(are_scalars, t, g),
        _ => scaled_integer(arithmetic, t, g),
    }
}

/// Parts and moduli of complex64 are float32.
fn scaled_complex(dtypes: (DType, DType), are_scalars: bool, t: Value, g: Value) -> Scaled {
    let in_type =
        |dtype: DType, value: f64| if dtype == DType::C64 { f64::from(value as f32) } else { value };
    let both = result_type(dtypes.0, dtypes.1);
    let ((t_re, t_im), (g_re, g_im)) = (t.parts(), g.parts());
    let difference = (in_type(both, t_re - g_re), in_type(both, t_im - g_im));
    let distance = in_type(both, modulus(difference));
    let larger = numpy_max([in_type(dtypes.0, modulus(t.parts())), in_type(dtypes.1, modulus(g.parts()))]);
    let of_limits = if are_scalars { DType::C128 } else { both };
    let within =
        [0.001, 0.01].map(|limit| distance <= in_type(of_limits, in_type(of_limits, limit) * larger));
    let largest = if both == DType::C64 { f64::from(f32::MAX) } else { f64::MAX };
    (distance, nan_to_num(in_type(both, distance / larger), largest), within)
}

/// numpy's `nan_to_num(value, nan=0)`.
fn nan_to_num(value: f64, largest: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value.clamp(-largest, largest) }
}

fn scaled_float<F: Float>(are_scalars: bool, t: Value, g: Value) -> Scaled {
    let (t, g) = (F::new(t.parts().0), F::new(g.parts().0));
    let distance = F::new((t - g).get().abs());
    let larger = F::new(numpy_max([t.get().abs(), g.get().abs()]));
    let within = [0.001, 0.01].map(|limit| {
        // A number times a Python float is a float64 in numpy 1.
        let limit = if are_scalars { limit * larger.get() } else { (F::new(limit) * larger).get() };
        distance.get() <= limit
    });
    (distance.get(), nan_to_num((distance / larger).get(), F::LARGEST), within)
}

fn scaled_integer(dtype: DType, t: Value, g: Value) -> Scaled {
    let (Value::Int(t), Value::Int(g)) = (t, g) else { panic!("{t:?} and {g:?} are no integers") };
    let modulus = 1i128 << (8 * dtype.size_bytes());
    let wrap = |value: i128| {
        let value = value.rem_euclid(modulus);
        let negative = dtype.class() == DTypeClass::Signed && value >= modulus / 2;
        if negative { value - modulus } else { value }
    };
    let distance = wrap(wrap(t - g).abs()) as f64;
    let larger = wrap(t.abs()).max(wrap(g.abs())) as f64;
    let within = [0.001, 0.01].map(|limit| distance <= limit * larger);
    (distance, nan_to_num(distance / larger, f64::MAX), within)
}

fn check_scaled(actual: &ScaledErrors, errors: &[Scaled]) -> Outcome {
    let absolute = numpy_max(errors.iter().map(|error| error.0));
    let relative = numpy_max(errors.iter().map(|error| error.1));
    let (got_absolute, got_relative) = (actual.max_abs_error, actual.max_relative_error);
    prop_assert!(same(got_absolute, absolute), "scaled absolute {got_absolute} instead of {absolute}");
    prop_assert!(same(got_relative, relative), "scaled relative {got_relative} instead of {relative}");
    let within = |limit: usize| errors.iter().filter(|error| error.2[limit]).count() as u64;
    prop_assert_eq!(actual.within_thousandth, within(0));
    prop_assert_eq!(actual.within_hundredth, within(1));
    Ok(())
}
