use super::*;

fn f32s(target: &[f32], golden: &[f32]) -> PairMetrics {
    let view = |values: &[f32]| -> Vec<u8> { bytemuck::cast_slice(values).to_vec() };
    let (t, g) = (view(target), view(golden));
    let t = TensorView::contiguous(DType::F32, vec![target.len()], &t).unwrap();
    let g = TensorView::contiguous(DType::F32, vec![golden.len()], &g).unwrap();
    compare_pair(&t, &g).unwrap().unwrap()
}

#[test]
fn identical() {
    let metrics = f32s(&[1.0, 0.0, -3.0], &[1.0, -0.0, -3.0]);
    assert!(metrics.is_identical());
    assert_eq!(metrics.first_mismatch, None);
    assert!((metrics.cosine() - 1.0).abs() < 1e-15);
    assert_eq!((metrics.max_abs_error, metrics.max_relative_error), (0.0, 0.0));
    assert_eq!(metrics.within_thousandth, 3);
}

#[test]
fn a_golden_zero_is_shifted_by_epsilon() {
    let metrics = f32s(&[1.0, 1.0], &[0.0, 1.0]);
    assert_eq!(metrics.max_relative_error, 4_503_599_627_370_496.0);
    assert_eq!(metrics.within_thousandth, 1);
    assert_eq!(metrics.scaled.unwrap().max_relative_error, 1.0);
}

#[test]
fn non_finite_positions() {
    let metrics = f32s(&[f32::NAN, f32::INFINITY, 2.0], &[f32::NAN, f32::NEG_INFINITY, 1.0]);
    assert!(metrics.nan_positions_agree && metrics.inf_positions_agree);
    assert_eq!(metrics.max_abs_error, 1.0);
    assert_eq!((metrics.first_mismatch, metrics.first_difference), (Some(0), Some(1)));
    assert_eq!(metrics.golden_non_finite, NonFinite { nan: 1, pos_inf: 0, neg_inf: 1 });
    let scaled = metrics.scaled.unwrap();
    assert!(scaled.max_abs_error.is_nan());
    assert_eq!(scaled.within_thousandth, 1, "inf against -inf counts as within: inf <= inf");
    assert!(!f32s(&[f32::NAN], &[1.0]).nan_positions_agree);
    assert!(!f32s(&[f32::INFINITY], &[f32::NAN]).inf_positions_agree);
}

#[test]
fn elements_are_the_same_by_their_bits_or_not() {
    let (nan, infinity) = (f32::NAN, f32::INFINITY);
    let agree = |target: &[f32], golden: &[f32]| {
        let metrics = f32s(target, golden);
        (metrics.first_difference, metrics.bits_agree, metrics.non_finite_agree)
    };
    assert_eq!(agree(&[1.0, nan, infinity], &[1.0, -nan, infinity]), (None, true, true));
    assert_eq!(agree(&[1.0, 0.0, nan], &[1.0, -0.0, nan]), (None, false, true));
    assert_eq!(agree(&[infinity, -infinity], &[-infinity, infinity]), (Some(0), false, false));
    assert_eq!(agree(&[infinity, 1.0], &[infinity, 2.0]), (Some(1), false, true));
    // 8 lanes and a rest.
    let zeros = [0.0f32; 19];
    for index in 0..zeros.len() {
        let mut other = zeros;
        other[index] = -0.0;
        assert_eq!(agree(&zeros, &other), (None, false, true), "{index}");
    }
}

fn complex(target: &[f64], golden: &[f64]) -> PairMetrics {
    let shape = vec![target.len() / 2];
    let t = TensorView::contiguous(DType::C128, shape.clone(), bytemuck::cast_slice(target)).unwrap();
    let g = TensorView::contiguous(DType::C128, shape, bytemuck::cast_slice(golden)).unwrap();
    compare_pair(&t, &g).unwrap().unwrap()
}

#[test]
fn both_parts_of_a_complex_number_count() {
    let (nan, infinity) = (f64::NAN, f64::INFINITY);
    let agree = |target: &[f64], golden: &[f64]| {
        let metrics = complex(target, golden);
        (metrics.first_difference, metrics.bits_agree, metrics.non_finite_agree)
    };
    assert_eq!(agree(&[1.0, 2.0, nan, 3.0], &[1.0, 2.0, nan, 3.0]), (None, true, true));
    assert_eq!(agree(&[1.0, 2.0, nan, 3.0], &[1.0, 2.0, nan, 4.0]), (Some(1), false, false));
    assert_eq!(agree(&[infinity, 2.0], &[-infinity, 2.0]), (Some(0), false, false));
    assert_eq!(agree(&[1.0, 0.0], &[1.0, -0.0]), (None, false, true));
}

#[test]
fn integers_are_equal_as_integers_only() {
    fn first<T: bytemuck::Pod, G: bytemuck::Pod>(
        target: (DType, [T; 3]),
        golden: (DType, [G; 3]),
    ) -> Option<u64> {
        let t = TensorView::contiguous(target.0, vec![3], bytemuck::cast_slice(&target.1)).unwrap();
        let g = TensorView::contiguous(golden.0, vec![3], bytemuck::cast_slice(&golden.1)).unwrap();
        let metrics = compare_pair(&t, &g).unwrap().unwrap();
        assert_eq!(metrics.first_difference.is_none(), metrics.bits_agree);
        metrics.first_difference
    }
    let (large, larger) = (1_u64 << 63, i64::MAX);
    assert_eq!(first((DType::U64, [5, u64::MAX, 7]), (DType::U64, [5, u64::MAX - 1, 7])), Some(1));
    assert_eq!(first((DType::I64, [5, 1_i64 << 53, 7]), (DType::I64, [5, (1_i64 << 53) + 1, 7])), Some(1));
    assert_eq!(first((DType::U64, [5, 6, large]), (DType::I64, [5, 6, larger])), Some(2));
    assert_eq!(first((DType::I64, [5, 6, larger]), (DType::U64, [5, 6, large])), Some(2));
    assert_eq!(first((DType::I64, [5, 6, -1_i64]), (DType::U64, [5, 6, u64::MAX])), Some(2));
    assert_eq!(first((DType::U64, [5, 6, 1_u64 << 62]), (DType::I64, [5, 6, 1_i64 << 62])), None);
}

#[test]
fn cosine_of_zero_vectors() {
    assert_eq!(f32s(&[0.0, 0.0], &[0.0, 0.0]).cosine(), 1.0);
    assert!(f32s(&[0.0, 0.0], &[0.0, 1.0]).cosine().is_nan());
}

#[test]
fn unsigned_integers_wrap_in_the_scaled_family_only() {
    let (target, golden) = ([3u8, 9], [4u8, 9]);
    let t = TensorView::contiguous(DType::U8, vec![2], &target).unwrap();
    let g = TensorView::contiguous(DType::U8, vec![2], &golden).unwrap();
    let metrics = compare_pair(&t, &g).unwrap().unwrap();
    assert_eq!(metrics.max_abs_error, 1.0);
    assert_eq!(metrics.scaled.unwrap().max_abs_error, 255.0);
}

fn scaled(target: (DType, &[u8]), golden: (DType, &[u8])) -> ScaledErrors {
    let numel = target.1.len() / target.0.size_bytes();
    let target = TensorView::contiguous(target.0, vec![numel], target.1).unwrap();
    let golden = TensorView::contiguous(golden.0, vec![numel], golden.1).unwrap();
    compare_pair(&target, &golden).unwrap().unwrap().scaled.unwrap()
}

#[test]
fn two_integer_zeros_have_no_scaled_error() {
    let errors = scaled((DType::U8, &[0, 4]), (DType::U8, &[0, 4]));
    assert_eq!((errors.max_abs_error, errors.max_relative_error), (0.0, 0.0));
    assert_eq!(scaled((DType::C64, &[0; 8]), (DType::C64, &[0; 8])).max_relative_error, 0.0);
}

#[test]
fn wrapped_distances_can_all_be_negative() {
    let errors = scaled((DType::I8, &[0x80]), (DType::I8, &[0]));
    assert_eq!((errors.max_abs_error, errors.max_relative_error), (-128.0, f64::MIN));
}

#[test]
fn scaled_errors_do_not_depend_on_which_side_is_the_integer() {
    let third = half::f16::from_f32(0.333).to_le_bytes();
    let (half, byte) = ((DType::F16, &third[..]), (DType::I8, &[3][..]));
    assert_eq!(scaled(half, byte), scaled(byte, half));
}

#[test]
fn real_parts_alone_are_measured_in_f64() {
    let nan = f32::NAN;
    let (target, golden) = ([1.0f32, 5.0, 2.0, nan, 3.1, 0.0], [1.0f32, -7.0, 9.0, nan, 3.0, 0.0]);
    let t = TensorView::contiguous(DType::C64, vec![3], bytemuck::cast_slice(&target)).unwrap();
    let g = TensorView::contiguous(DType::C64, vec![3], bytemuck::cast_slice(&golden)).unwrap();
    let metrics = compare_real_parts(&t, &g).unwrap().unwrap();
    assert!(metrics.nan_positions_agree && metrics.target_non_finite.nan == 1);
    let error = f64::from(3.1f32) - 3.0;
    assert_eq!((metrics.max_abs_error, metrics.max_relative_error), (error, error / 3.0));
    assert_eq!((metrics.within_thousandth, metrics.first_difference), (2, Some(2)));
    assert!(compare_pair(&t, &g).unwrap().unwrap().max_abs_error > 11.0, "the imaginary parts differ by 12");
}

#[test]
fn widened_pairs_are_measured_in_float32_with_its_own_epsilon() {
    let (target, golden) = ([1.0f32, 0.0, 2.0], [0.0f32, 0.0, 2.0]);
    let t = TensorView::contiguous(DType::F32, vec![3], bytemuck::cast_slice(&target)).unwrap();
    let g = TensorView::contiguous(DType::F32, vec![3], bytemuck::cast_slice(&golden)).unwrap();
    let metrics = compare_pair_widened(&t, &g).unwrap().unwrap();
    assert_eq!(metrics.max_relative_error, 1.0 / f64::from(f32::EPSILON));
    assert_eq!(metrics.within_thousandth, 2);
    let halves = |values: [f32; 3]| values.map(half::f16::from_f32);
    let (target, golden) = (halves(target), halves(golden));
    let t = TensorView::contiguous(DType::F16, vec![3], bytemuck::cast_slice(&target)).unwrap();
    let g = TensorView::contiguous(DType::F16, vec![3], bytemuck::cast_slice(&golden)).unwrap();
    assert_eq!(compare_pair_widened(&t, &g).unwrap().unwrap().max_relative_error, metrics.max_relative_error);
    let (target, golden) = ([1.0f64], [0.0f64]);
    let t = TensorView::contiguous(DType::F64, vec![1], bytemuck::cast_slice(&target)).unwrap();
    let g = TensorView::contiguous(DType::F64, vec![1], bytemuck::cast_slice(&golden)).unwrap();
    assert_eq!(compare_pair_widened(&t, &g).unwrap().unwrap().max_relative_error, 1.0 / f64::EPSILON);
    let short = TensorView::contiguous(DType::F16, vec![0], &[]).unwrap();
    assert!(compare_pair_widened(&short, &g).is_err());
}

#[test]
fn counts_must_agree_and_empty_has_no_metrics() {
    let bytes = [0u8; 8];
    let two = TensorView::contiguous(DType::F32, vec![2], &bytes).unwrap();
    let one = TensorView::contiguous(DType::F32, vec![1], &bytes).unwrap();
    assert_eq!(compare_pair(&two, &one), Err(PairError::CountMismatch { target: 2, golden: 1 }));
    let none = TensorView::contiguous(DType::F32, vec![0], &bytes).unwrap();
    assert_eq!(compare_pair(&none, &none), Ok(None));
}

#[test]
fn same_bits_on_every_level_and_thread_count() {
    let noise = |seed: u32| -> Vec<f32> {
        (0..400_003u32).map(|i| (i.wrapping_mul(2_654_435_761).wrapping_add(seed) as f32).sin()).collect()
    };
    let (target, golden) = (noise(1), noise(2));
    let t = TensorView::contiguous(DType::F32, vec![target.len()], bytemuck::cast_slice(&target)).unwrap();
    let g = TensorView::contiguous(DType::F32, vec![golden.len()], bytemuck::cast_slice(&golden)).unwrap();
    let expected = compare_pair_at(Level::Baseline, &t, &g).unwrap();
    for level in Level::available() {
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert_eq!(pool.install(|| compare_pair_at(level, &t, &g)).unwrap(), expected);
        }
    }
}
