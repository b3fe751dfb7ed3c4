//! Counts of elements at the edges of their dtype, against a naive oracle.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its helpers too")]

#[allow(dead_code, reason = "the oracle knows more than this property asks")]
mod oracle;

use msprobe_tensor::{Bounds, Extremes, extremes};
use oracle::tensors::{Tensor, any_dtype, any_recipe, large_recipe};
use oracle::{Value, seeds_beside_the_test};
use proptest::prelude::*;

/// One element after the other.
fn naive(tensor: &Tensor, bounds: Bounds) -> Extremes {
    let normal = oracle::float_format(tensor.dtype).map_or(0.0, |(_, _, bias, _)| 2f64.powi(1 - bias));
    let mut counts = Extremes::default();
    for value in oracle::decode_all(tensor.dtype, &tensor.row_major()) {
        let number = match value {
            Value::Int(value) => value as f64,
            Value::Real(value) => value,
            Value::Complex(re, im) => re.hypot(im),
        };
        if !number.is_finite() && counts.first_bad.is_none() {
            counts.first_bad = Some(counts.elements);
        }
        counts.elements += 1;
        if number.is_nan() {
            counts.nan += 1;
        } else if number == f64::INFINITY {
            counts.positive_inf += 1;
        } else if number == f64::NEG_INFINITY {
            counts.negative_inf += 1;
        } else if number == 0.0 {
            counts.zero += 1;
        } else if number.abs() < normal {
            counts.subnormal += 1;
        }
        counts.beyond += u64::from(number.is_finite() && number.abs() > bounds.above);
        counts.beneath += u64::from(number != 0.0 && number.abs() <= bounds.below);
    }
    counts
}

/// A bound that often is the magnitude of an element, or just beside one.
fn bound_of(tensor: &Tensor, pick: usize, nudge: u8) -> f64 {
    let values = oracle::decode_all(tensor.dtype, &tensor.row_major());
    let Some(value) = values.get(pick % values.len().max(1)) else { return 1.0 };
    let (re, im) = value.parts();
    let magnitude = re.hypot(im);
    match nudge % 4 {
        0 => magnitude,
        1 => magnitude.next_up(),
        2 => magnitude.next_down(),
        _ => magnitude * 0.9,
    }
}

/// 0 bounds nothing from below; the naive count must not see zeros there either.
fn bounds_of(tensor: &Tensor, picks: [usize; 2], nudge: u8) -> Bounds {
    let sane = |bound: f64, instead: f64| if bound.is_nan() { instead } else { bound.max(0.0) };
    Bounds {
        above: sane(bound_of(tensor, picks[0], nudge), f64::INFINITY),
        below: sane(bound_of(tensor, picks[1], nudge / 4), 0.0),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: seeds_beside_the_test(), ..ProptestConfig::default() })]

    #[test]
    fn counts_are_those_of_the_oracle(
        recipe in any_recipe(any_dtype(), 5000), picks in any::<[usize; 2]>(), nudge in any::<u8>(),
    ) {
        let tensor = recipe.build();
        let bounds = bounds_of(&tensor, picks, nudge);
        prop_assert_eq!(extremes(&tensor.view(), bounds), naive(&tensor, bounds));
        prop_assert_eq!(extremes(&tensor.view(), Bounds::NONE), naive(&tensor, Bounds::NONE));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: seeds_beside_the_test(), ..ProptestConfig::default() })]

    #[test]
    fn many_threads_count_the_same(
        recipe in large_recipe(any_dtype()), picks in any::<[usize; 2]>(), nudge in any::<u8>(),
    ) {
        let tensor = recipe.build();
        let bounds = bounds_of(&tensor, picks, nudge);
        let expected = naive(&tensor, bounds);
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            prop_assert_eq!(pool.install(|| extremes(&tensor.view(), bounds)), expected);
        }
    }
}
