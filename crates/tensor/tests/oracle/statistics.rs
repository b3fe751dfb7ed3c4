//! Statistics by definition.

use msprobe_tensor::{DType, DTypeClass, Number, Statistics};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::{ROUNDING, Value, compensated_sum, same, times_power_of_two};

type Outcome = Result<(), TestCaseError>;

/// Checks statistics against the elements they were taken of.
pub(crate) fn check(actual: &Statistics, dtype: DType, is_scalar: bool, values: &[Value]) -> Outcome {
    prop_assert_eq!(actual.count, values.len() as u64);
    if values.is_empty() {
        return check_equal(actual, &Statistics::default());
    }
    match dtype.class() {
        DTypeClass::Bool => check_bool(actual, values),
        DTypeClass::Unsigned | DTypeClass::Signed => check_integer(actual, is_scalar, values),
        DTypeClass::Float => check_float(actual, is_scalar, values),
        DTypeClass::Complex => check_complex(actual, values),
    }
}

fn check_equal(actual: &Statistics, expected: &Statistics) -> Outcome {
    prop_assert_eq!(actual, expected);
    Ok(())
}

fn integers(values: &[Value]) -> Vec<i128> {
    let integer = |value: &Value| match value {
        Value::Int(value) => *value,
        other => panic!("{other:?} is no integer"),
    };
    values.iter().map(integer).collect()
}

fn count<T>(values: &[T], test: impl Fn(&T) -> bool) -> u64 {
    values.iter().filter(|value| test(value)).count() as u64
}

fn check_bool(actual: &Statistics, values: &[Value]) -> Outcome {
    let values = integers(values);
    let expected = Statistics {
        max: Some(Number::Bool(values.contains(&1))),
        min: Some(Number::Bool(!values.contains(&0))),
        count: values.len() as u64,
        zero_count: count(&values, |&value| value == 0),
        ..Statistics::default()
    };
    check_equal(actual, &expected)
}

fn check_integer(actual: &Statistics, is_scalar: bool, values: &[Value]) -> Outcome {
    let values = integers(values);
    let (max, min) = (*values.iter().max().unwrap(), *values.iter().min().unwrap());
    let exact = Statistics {
        max: Some(Number::Int(max)),
        min: Some(Number::Int(min)),
        mean: if is_scalar { Some(Number::Int(max)) } else { actual.mean },
        norm: if is_scalar { Some(Number::Int(max)) } else { actual.norm },
        count: values.len() as u64,
        zero_count: count(&values, |&value| value == 0),
        ..Statistics::default()
    };
    check_equal(actual, &exact)?;
    if is_scalar {
        return Ok(());
    }
    // The sum is exact; it is rounded once, and once more when divided.
    let mean = values.iter().sum::<i128>() as f64 / values.len() as f64;
    check_near("mean", float(actual.mean)?, mean, 2.0 * ROUNDING * mean.abs())?;
    let (squares, _) = compensated_sum(values.iter().map(|&value| (value as f64).powi(2)));
    let norm = squares.sqrt();
    check_near("norm", float(actual.norm)?, norm, relative_norm_error(values.len()) * norm)
}

fn float(number: Option<Number>) -> Result<f64, TestCaseError> {
    match number {
        Some(Number::Float(value)) => Ok(value),
        other => Err(TestCaseError::fail(format!("{other:?} where a float belongs"))),
    }
}

fn check_near(what: &str, actual: f64, expected: f64, tolerance: f64) -> Outcome {
    prop_assert!(
        (actual - expected).abs() <= tolerance,
        "{what} {actual:?} instead of {expected:?} ± {tolerance:?}"
    );
    Ok(())
}

fn check_same(what: &str, actual: Option<Number>, expected: f64) -> Outcome {
    let actual = float(actual)?;
    prop_assert!(same(actual, expected), "{what} {actual:?} instead of {expected:?}");
    Ok(())
}

/// Each square and the sum of n of them, in any order, are rounded; the root halves the error. 64-bit integers
/// are rounded before they are squared.
fn relative_norm_error(n: usize) -> f64 {
    (n as f64 / 2.0 + 4.0) * ROUNDING
}

fn check_float(actual: &Statistics, is_scalar: bool, values: &[Value]) -> Outcome {
    let values: Vec<f64> = values.iter().map(|value| value.parts().0).collect();
    check_counts(actual, &values)?;
    check_extremes(actual, &values)?;
    if is_scalar {
        for number in [actual.max, actual.min, actual.mean, actual.norm] {
            let number = float(number)?;
            prop_assert!(number.to_bits() == values[0].to_bits() || (number.is_nan() && values[0].is_nan()));
        }
        return Ok(());
    }
    check_mean(actual, &values)?;
    if values.iter().any(|value| value.is_nan()) {
        check_same("norm", actual.norm, f64::NAN)
    } else if values.iter().any(|value| value.is_infinite()) {
        check_same("norm", actual.norm, f64::INFINITY)
    } else {
        check_finite_norm(float(actual.norm)?, &values)
    }
}

fn check_complex(actual: &Statistics, values: &[Value]) -> Outcome {
    let moduli: Vec<f64> = values.iter().map(|value| value.parts().0.hypot(value.parts().1)).collect();
    check_counts(actual, &moduli)?;
    check_extremes(actual, &moduli)?;
    prop_assert_eq!(actual.norm, None);
    check_mean(actual, &moduli)
}

fn check_counts(actual: &Statistics, values: &[f64]) -> Outcome {
    prop_assert_eq!(actual.nan_count, count(values, |value| value.is_nan()));
    prop_assert_eq!(actual.pos_inf_count, count(values, |&value| value == f64::INFINITY));
    prop_assert_eq!(actual.neg_inf_count, count(values, |&value| value == f64::NEG_INFINITY));
    prop_assert_eq!(actual.zero_count, count(values, |&value| value == 0.0));
    Ok(())
}

fn check_extremes(actual: &Statistics, values: &[f64]) -> Outcome {
    check_same("max", actual.max, super::numpy_max(values.iter().copied()))?;
    check_same("min", actual.min, -super::numpy_max(values.iter().map(|value| -value)))
}

fn check_mean(actual: &Statistics, values: &[f64]) -> Outcome {
    let has = |wanted: f64| values.iter().any(|&value| same(value, wanted));
    match (has(f64::NAN), has(f64::INFINITY), has(f64::NEG_INFINITY)) {
        (true, _, _) | (_, true, true) => check_same("mean", actual.mean, f64::NAN),
        (_, true, _) => check_same("mean", actual.mean, f64::INFINITY),
        (_, _, true) => check_same("mean", actual.mean, f64::NEG_INFINITY),
        _ => check_finite_mean(float(actual.mean)?, values),
    }
}

/// The exponent that brings the largest magnitude near 1, so that the oracle neither over- nor underflows.
fn common_exponent(values: &[f64]) -> i32 {
    let largest = values.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
    if largest == 0.0 { 0 } else { largest.log2().floor() as i32 }
}

/// The step between neighbouring subnormals: what a result so small can be off by whatever is done.
fn smallest_step(exponent: i32) -> f64 {
    times_power_of_two(1.0, -1074 - exponent)
}

fn check_finite_mean(actual: f64, values: &[f64]) -> Outcome {
    let exponent = common_exponent(values);
    let scaled = |value: f64| times_power_of_two(value, -exponent);
    let n = values.len() as f64;
    let (sum, magnitudes) = compensated_sum(values.iter().map(|&value| scaled(value)));
    // n roundings of partial sums, none of which exceeds the sum of magnitudes, and a division.
    let tolerance = (n + 2.0) * ROUNDING * magnitudes / n + smallest_step(exponent);
    check_near("mean", scaled(actual), sum / n, tolerance)
}

fn check_finite_norm(actual: f64, values: &[f64]) -> Outcome {
    let exponent = common_exponent(values);
    let scaled = |value: f64| times_power_of_two(value, -exponent);
    let (squares, _) = compensated_sum(values.iter().map(|&value| scaled(value).powi(2)));
    let norm = squares.sqrt();
    let tolerance = relative_norm_error(values.len()) * norm + smallest_step(exponent);
    let largest = scaled(f64::MAX);
    if actual.is_infinite() || norm > largest + tolerance {
        // Too large for f64, or so close to it that rounding decides.
        prop_assert!(actual == f64::INFINITY && norm >= largest - tolerance, "norm {actual:?}");
        return Ok(());
    }
    check_near("norm", scaled(actual), norm, tolerance)
}
