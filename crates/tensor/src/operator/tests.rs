use proptest::prelude::*;

use super::*;

const LIMITS: OperatorLimits = OperatorLimits {
    small_value: 1e-3,
    small_value_atol: 1e-6,
    rtol: 1e-3,
    excuses_agreeing: false,
    ulp: Some(UlpLimits { element_limit: 1.0, min_exponent: -126, mantissa_bits: 23 }),
};

fn measured(target: &[f32], golden: &[f64]) -> OperatorErrors {
    let target =
        TensorView::contiguous(DType::F32, vec![target.len()], bytemuck::cast_slice(target)).unwrap();
    let golden =
        TensorView::contiguous(DType::F64, vec![golden.len()], bytemuck::cast_slice(golden)).unwrap();
    operator_errors(&target, &golden, &LIMITS).unwrap().unwrap()
}

#[test]
fn nothing_and_different_counts() {
    let view =
        |bytes: &'static [u8]| TensorView::contiguous(DType::F32, vec![bytes.len() / 4], bytes).unwrap();
    assert_eq!(operator_errors(&view(&[]), &view(&[]), &LIMITS), Ok(None));
    assert!(operator_errors(&view(&[0; 8]), &view(&[0; 4]), &LIMITS).is_err());
}

#[test]
fn squares_out_of_range_still_have_a_cosine() {
    for scale in [1e-200, 1e200] {
        let side = [scale, -2.0 * scale, 3.0 * scale];
        let view = TensorView::contiguous(DType::F64, vec![3], bytemuck::cast_slice(&side)).unwrap();
        let errors = operator_errors(&view, &view, &LIMITS).unwrap().unwrap();
        assert!((errors.cosine - 1.0).abs() < 1e-12, "{errors:?}");
    }
}

#[test]
fn infinities_agree_by_sign_and_nan_with_nan() {
    let inf = f64::INFINITY;
    let errors = measured(
        &[1.0, f32::INFINITY, f32::INFINITY, f32::NAN, f32::INFINITY, 3.0],
        &[1.0, inf, -inf, f64::NAN, 2.0, inf],
    );
    assert_eq!(errors.non_finite_far, Share { part: 2, of: 5 });
    assert_eq!(errors.normal_far, Share { part: 0, of: 1 });
    assert!(errors.max_error.is_nan() && errors.cosine.is_nan() && !errors.are_finite);
}

#[test]
fn a_magnitude_holds_its_largest_error() {
    let errors = measured(&[0.5, 0.0, 3.0, 2.0], &[0.5, 0.0, 2.0, 2.5]);
    let expected = [(None, 1, 0.0), (Some(-1), 1, 0.0), (Some(1), 2, 1.0)]
        .map(|(exponent, count, max_error)| Magnitude { exponent, count, max_error });
    assert_eq!(errors.magnitudes, expected);
}

proptest! {
    #[test]
    fn one_pass_is_what_many_passes_find(
        pairs in prop::collection::vec((-1e3f32..1e3, -0.01f64..0.01), 1..700)
    ) {
        let target: Vec<f32> = pairs.iter().map(|pair| pair.0).collect();
        let golden: Vec<f64> = pairs.iter().map(|(t, e)| f64::from(*t) * (1.0 + e)).collect();
        let errors = measured(&target, &golden);
        let both = || target.iter().map(|&t| f64::from(t)).zip(golden.iter().copied());
        let count = |test: &dyn Fn(f64, f64) -> bool| both().filter(|&(t, g)| test(t, g)).count() as u64;
        let relative = |t: f64, g: f64| (t - g).abs() / (g.abs() + f64::EPSILON);
        prop_assert_eq!(errors.unequal.part, count(&|t, g| t != g));
        prop_assert_eq!(errors.within[1].part, count(&|t, g| relative(t, g) < 0.001));
        prop_assert_eq!(errors.small_far.of, count(&|_, g| g.abs() <= 1e-3));
        prop_assert_eq!(errors.normal_far.part, count(&|t, g| g.abs() > 1e-3 && relative(t, g) > 1e-3));
        let max = both().map(|(t, g)| (t - g).abs()).fold(0.0, f64::max);
        prop_assert_eq!(errors.max_error, max);
        let units = |g: f64| 2f64.powf(23.0 - if g == 0.0 { 0.0 } else { g.abs().log2().floor().max(-126.0) });
        let far = count(&|t, g| ((t - g) * units(g)).abs() > 1.0);
        prop_assert_eq!(errors.ulp.unwrap().above_limit.part, far);
        let (above, below) = (count(&|t, g| t > f64::from(g as f32)), count(&|t, g| t < f64::from(g as f32)));
        prop_assert_eq!(errors.balance, above.abs_diff(below) as f64 / pairs.len() as f64);
    }
}
