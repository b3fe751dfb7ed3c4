use super::*;
use crate::simd::Level;

fn of(values: &[f32]) -> Statistics {
    let view = TensorView::contiguous(DType::F32, vec![values.len()], bytemuck::cast_slice(values)).unwrap();
    statistics(&view)
}

#[test]
fn nan_makes_all_four_nan_and_is_counted() {
    let stats = of(&[1.0, f32::NAN, f32::INFINITY, 0.0, -0.0]);
    for number in [stats.max, stats.min, stats.mean, stats.norm] {
        assert!(number.unwrap().as_f64().is_nan());
    }
    assert_eq!((stats.nan_count, stats.pos_inf_count, stats.zero_count), (1, 1, 2));
}

#[test]
fn infinities_of_one_sign_keep_the_other_end_finite() {
    let stats = of(&[1.0, f32::NEG_INFINITY, 3.0]);
    assert_eq!(stats.max, Some(Number::Float(3.0)));
    assert_eq!(stats.min, Some(Number::Float(f64::NEG_INFINITY)));
    assert_eq!(stats.mean, Some(Number::Float(f64::NEG_INFINITY)));
    assert_eq!(stats.norm, Some(Number::Float(f64::INFINITY)));
}

#[test]
fn a_scalar_stands_for_all_four() {
    let value = [-2.5f32];
    let view = TensorView::contiguous(DType::F32, vec![], bytemuck::cast_slice(&value)).unwrap();
    let stats = statistics(&view);
    assert_eq!(stats.norm, Some(Number::Float(-2.5)));
    assert_eq!(stats.mean, Some(Number::Float(-2.5)));
    let value = [7i64];
    let view = TensorView::contiguous(DType::I64, vec![], bytemuck::cast_slice(&value)).unwrap();
    assert_eq!(statistics(&view).norm, Some(Number::Int(7)));
}

#[test]
fn f64_norm_survives_squares_out_of_range() {
    for magnitude in [3e200f64, 3e-200] {
        let values = [magnitude, magnitude, -magnitude, magnitude];
        let view = TensorView::contiguous(DType::F64, vec![4], bytemuck::cast_slice(&values)).unwrap();
        let norm = statistics(&view).norm.unwrap().as_f64();
        assert!((norm / (2.0 * magnitude) - 1.0).abs() < 1e-15, "{norm}");
    }
    let values = [f64::MAX, f64::MAX];
    let view = TensorView::contiguous(DType::F64, vec![2], bytemuck::cast_slice(&values)).unwrap();
    assert_eq!(statistics(&view).mean, Some(Number::Float(f64::MAX)));
}

#[test]
fn integers_are_exact() {
    let values = [i64::MAX, i64::MAX, i64::MIN, 1];
    let view = TensorView::contiguous(DType::I64, vec![4], bytemuck::cast_slice(&values)).unwrap();
    let stats = statistics(&view);
    assert_eq!(stats.max, Some(Number::Int(i64::MAX.into())));
    assert_eq!(stats.min, Some(Number::Int(i64::MIN.into())));
    assert_eq!(stats.mean, Some(Number::Float((i64::MAX as f64) / 4.0)));
    let values = [u64::MAX; 3];
    let view = TensorView::contiguous(DType::U64, vec![3], bytemuck::cast_slice(&values)).unwrap();
    assert_eq!(statistics(&view).max, Some(Number::Int(u64::MAX.into())));
}

#[test]
fn same_bits_on_every_level_and_thread_count() {
    let values: Vec<f32> =
        (0..700_001u32).map(|i| (i.wrapping_mul(2_654_435_761) as f32).sin() * 1e3).collect();
    let view = TensorView::contiguous(DType::F32, vec![values.len()], bytemuck::cast_slice(&values)).unwrap();
    let expected = statistics_at(Level::Baseline, &view);
    for level in Level::available() {
        for threads in [1, 2, 3, 7] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert_eq!(pool.install(|| statistics_at(level, &view)), expected, "{level:?} {threads}");
        }
    }
}
