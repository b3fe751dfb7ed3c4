//! What a gradient has to say, in one pass over its memory: figures, zeros, how many elements lie at or below some
//! bounds, the direction of each element or a sketch of all, and a checksum.
//!
//! Blocks are measured while they are in L1. Counts and directions do not depend on the order of elements, sums are
//! kept as those of [`statistics`](super::statistics): the same bits on any number of threads and any CPU.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::float::{Partial, finish_sums, of_chunk};
use super::sketch::{Sketch, sketch_at, statistics_and_sketch_at};
use super::{Arithmetic, FourStatistics, Statistics};
use crate::decode::{Decoded, as_f32, as_f64};
use crate::parallel::{CHUNK_ELEMENTS, map_chunks};
use crate::real::Real;
use crate::simd::{Level, Row, Vector, by_level, split_rows};
use crate::{DType, DTypeClass, TensorView};

/// Bounds that are counted together, in registers.
const BOUNDS_AT_ONCE: usize = 4;

/// What was found out about a gradient.
#[derive(Debug, Clone, PartialEq)]
pub struct GradientFigures {
    /// Largest element, as float32. NaN if one element is, or if there is none.
    pub max: f32,
    /// Smallest element, as float32. NaN if one element is, or if there is none.
    pub min: f32,
    /// L2 norm, computed as frameworks do in the gradient's dtype, as float32.
    pub norm: f32,
    /// Number of elements.
    pub count: u64,
    /// Elements equal to zero.
    pub zeros: u64,
    /// Elements at or below each bound. NaN is above all of them.
    pub at_most: Vec<u64>,
    /// Elements that are NaN or infinite.
    pub not_finite: u64,
    /// CRC-32 (zlib's polynomial) of the elements as little-endian float32 in row-major order, if it was asked for.
    pub crc32: Option<u32>,
    /// The sketch, if it was asked for.
    pub sketch: Option<Sketch>,
}

/// What to do besides the figures.
#[derive(Debug, Default)]
pub struct GradientWork<'a> {
    /// What elements are compared with, ascending.
    pub bounds: &'a [f32],
    /// Whether to compute the checksum.
    pub crc32: bool,
    /// Where to put the direction of each element in row-major order: 1 if it is greater than zero, else 0. As many
    /// bytes as there are elements; others are left alone.
    pub directions: Option<&'a mut [u8]>,
    /// Whether to make a sketch. Where nothing else is asked for, the same pass serves.
    pub sketch: bool,
}

/// Measures a gradient. `None` if it is complex: there is no largest one of such numbers. Large ones use the threads
/// of the current rayon pool.
pub fn measure_gradient(view: &TensorView<'_>, work: GradientWork<'_>) -> Option<GradientFigures> {
    measure_at(Level::detected(), view, work)
}

fn measure_at(level: Level, view: &TensorView<'_>, mut work: GradientWork<'_>) -> Option<GradientFigures> {
    if std::mem::take(&mut work.sketch) {
        return with_sketch(level, view, work);
    }
    // Memory prefers its own order, where no other is asked for.
    let any_order = !work.crc32 && work.directions.is_none();
    let ordered = if any_order { view.in_memory_order() } else { view.clone() };
    match as_f32(&ordered) {
        Some(values) => Some(measure(level, view, &values, work)),
        None => as_f64(&ordered).map(|values| measure(level, view, &values, work)),
    }
}

/// The figures and a sketch, which is told of the elements by themselves where they are counted or written besides.
fn with_sketch(level: Level, view: &TensorView<'_>, work: GradientWork<'_>) -> Option<GradientFigures> {
    let is_alone = work.bounds.is_empty() && !work.crc32 && work.directions.is_none();
    if is_alone && view.dtype().class() == DTypeClass::Float && view.numel() > 0 {
        let (stats, sketch) = statistics_and_sketch_at(level, view);
        return Some(GradientFigures { sketch: Some(sketch), ..figures_of(&stats, view.dtype()) });
    }
    let figures = measure_at(level, view, work)?;
    Some(GradientFigures { sketch: Some(sketch_at(level, view)), ..figures })
}

/// What statistics say, as frameworks would have it.
fn figures_of(stats: &Statistics, dtype: DType) -> GradientFigures {
    // A framework has the norm of float64 in float64, and of everything else in float32.
    let arithmetic = if dtype == DType::F64 { Arithmetic::Own } else { Arithmetic::Float32 };
    let FourStatistics { max, min, norm, .. } = FourStatistics::new(stats, dtype, arithmetic);
    GradientFigures {
        max: max as f32,
        min: min as f32,
        norm: norm as f32,
        count: stats.count,
        zeros: stats.zero_count,
        at_most: Vec::new(),
        not_finite: stats.nan_count + stats.pos_inf_count + stats.neg_inf_count,
        crc32: None,
        sketch: None,
    }
}

struct Part {
    sums: Option<Partial>,
    at_most: Vec<u64>,
    crc32: crc32fast::Hasher,
}

impl Part {
    fn merge(mut self, other: Part) -> Part {
        self.sums = match (self.sums, other.sums) {
            (Some(a), Some(b)) => Some(a.merge(b)),
            (a, b) => a.or(b),
        };
        for (count, more) in self.at_most.iter_mut().zip(other.at_most) {
            *count += more;
        }
        self.crc32.combine(&other.crc32);
        self
    }
}

fn measure<W: Real>(
    level: Level,
    view: &TensorView<'_>,
    values: &Decoded<'_, W>,
    work: GradientWork<'_>,
) -> GradientFigures {
    let GradientWork { bounds, crc32, directions, sketch: _ } = work;
    let wide: Vec<W> = bounds.iter().map(|&bound| W::from_f64(f64::from(bound))).collect();
    // Each chunk has a piece of its own, so that threads can write side by side.
    let pieces: Vec<Mutex<&mut [u8]>> =
        directions.map_or_else(Vec::new, |all| all.chunks_mut(CHUNK_ELEMENTS).map(Mutex::new).collect());
    let of_range = |range: Range<usize>| {
        let mut piece = pieces.get(range.start / CHUNK_ELEMENTS).map(lock);
        let mut at_most = vec![0; wide.len()];
        let mut hasher = crc32fast::Hasher::new();
        let (mut scratch, mut single) = (Vec::new(), Vec::new());
        let mut at = 0;
        let sums = of_chunk(level, values, range, &mut scratch, |block| {
            count_at_most(level, block, &wide, &mut at_most);
            let place = piece.as_mut().and_then(|piece| piece.get_mut(at..at + block.len()));
            if let Some(place) = place {
                directions_of(level, block, place);
            }
            if crc32 {
                hasher.update(float32_bytes(block, &mut single));
            }
            at += block.len();
        });
        Part { sums, at_most, crc32: hasher }
    };
    let whole = map_chunks(view.numel(), of_range, Part::merge);
    let Some((whole, sums)) = whole.and_then(|whole| whole.sums.map(|sums| (whole, sums))) else {
        return GradientFigures {
            max: f32::NAN,
            min: f32::NAN,
            norm: 0.0,
            count: view.numel() as u64,
            zeros: 0,
            at_most: vec![0; bounds.len()],
            not_finite: 0,
            crc32: crc32.then_some(0),
            sketch: None,
        };
    };
    let stats = finish_sums(view.numel(), sums, values);
    GradientFigures {
        at_most: whole.at_most,
        crc32: crc32.then(|| whole.crc32.finalize()),
        ..figures_of(&stats, view.dtype())
    }
}

fn lock<'a, 'b>(piece: &'a Mutex<&'b mut [u8]>) -> std::sync::MutexGuard<'a, &'b mut [u8]> {
    piece.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The elements as float32; `single` is used unless they are that already.
fn float32_bytes<'a, W: Real>(block: &'a [W], single: &'a mut Vec<f32>) -> &'a [u8] {
    if size_of::<W>() == size_of::<f32>() {
        return bytemuck::cast_slice(block);
    }
    single.clear();
    single.extend(block.iter().map(|value| value.to_f64() as f32));
    bytemuck::cast_slice(single)
}

/// Adds the number of elements at or below each bound.
fn count_at_most<W: Real>(level: Level, block: &[W], bounds: &[W], counts: &mut [u64]) {
    let (rows, rest) = split_rows(block);
    for (bounds, counts) in bounds.chunks(BOUNDS_AT_ONCE).zip(counts.chunks_mut(BOUNDS_AT_ONCE)) {
        let mut some = [W::NEG_INFINITY; BOUNDS_AT_ONCE];
        some[..bounds.len()].copy_from_slice(bounds);
        let of_rows = rows_at_most(level, rows, some);
        let of_rest = at_most::<Row<W, 1>, W>(rest, some);
        for (count, (rows, rest)) in counts.iter_mut().zip(of_rows.into_iter().zip(of_rest)) {
            *count += rows + rest;
        }
    }
}

by_level! {
    fn rows_at_most<W: Real>(rows: &[W], bounds: [W; BOUNDS_AT_ONCE]) -> [u64; BOUNDS_AT_ONCE] = at_most on W
}

#[inline(always)]
fn at_most<V: Vector<Scalar = W>, W: Real>(rows: &[W], bounds: [W; BOUNDS_AT_ONCE]) -> [u64; BOUNDS_AT_ONCE] {
    let bounds = bounds.map(V::splat);
    let mut counts = [V::no_count(); BOUNDS_AT_ONCE];
    for row in rows.chunks_exact(V::LANES) {
        let row = V::load(row);
        for (count, &bound) in counts.iter_mut().zip(&bounds) {
            *count = V::count_le(*count, row, bound);
        }
    }
    counts.map(V::total)
}

by_level! { fn directions_of<W: Real>(block: &[W], out: &mut [u8]) -> () = directions }

/// A plain loop: compilers pack the results of comparisons well by themselves.
#[inline(always)]
fn directions<W: Real>(block: &[W], out: &mut [u8]) {
    for (out, &value) in out.iter_mut().zip(block) {
        *out = u8::from(value > W::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Endian;
    use crate::stats::statistics;

    const NAN: f32 = f32::NAN;
    const INF: f32 = f32::INFINITY;

    fn view_of<T: bytemuck::Pod>(dtype: DType, values: &[T]) -> TensorView<'_> {
        TensorView::contiguous(dtype, vec![values.len()], bytemuck::cast_slice(values)).unwrap()
    }

    fn measured(view: &TensorView<'_>, bounds: &[f32]) -> (GradientFigures, Vec<u8>) {
        let mut directions = vec![9; view.numel()];
        let work = GradientWork { bounds, crc32: true, directions: Some(&mut directions), sketch: false };
        (measure_gradient(view, work).unwrap(), directions)
    }

    #[test]
    fn values_on_bounds_belong_below_and_nan_above() {
        let values = [-2.0f32, -1.0, 0.0, -0.0, 1.0, 1.000_000_1, 2.0];
        let (figures, directions) = measured(&view_of(DType::F32, &values), &[-1.0, 0.0, 1.0]);
        assert_eq!((figures.at_most, figures.zeros, figures.count), (vec![2, 4, 5], 2, 7));
        assert_eq!(directions, [0, 0, 0, 0, 1, 1, 1]);
        assert_eq!((figures.max, figures.min), (2.0, -2.0));
        assert_eq!(figures.crc32, Some(crc32fast::hash(bytemuck::cast_slice(&values))));
        let (figures, directions) =
            measured(&view_of(DType::F32, &[NAN, -5.0, INF, 0.0, -INF]), &[-1.0, 0.0, 1.0]);
        assert_eq!((figures.at_most, directions), (vec![2, 3, 3], vec![0, 0, 1, 0, 0]));
        assert!(figures.max.is_nan() && figures.min.is_nan() && figures.norm.is_nan());
        assert_eq!(figures.not_finite, 3);
    }

    #[test]
    fn float64_is_compared_by_value_and_shown_as_float32() {
        let values = [1e300f64, -1e-300, 0.1, 1.0];
        let (figures, _) = measured(&view_of(DType::F64, &values), &[-1.0, 0.0, 0.1, 1.0]);
        // 0.1 as float32 is above 0.1 as float64.
        assert_eq!(figures.at_most, [0, 1, 2, 3]);
        assert_eq!((figures.max, figures.norm), (INF, INF));
        assert!(figures.min == 0.0 && figures.min.is_sign_negative());
        let single: Vec<u8> = values.iter().flat_map(|&value| (value as f32).to_le_bytes()).collect();
        assert_eq!(figures.crc32, Some(crc32fast::hash(&single)));
        // Tiny squares are nothing to float32, but something to float64.
        let (figures, _) = measured(&view_of(DType::F64, &[3e-30f64, 4e-30]), &[]);
        assert_eq!(figures.norm, 5e-30);
        let (figures, _) = measured(&view_of(DType::F32, &[3e-30f32, 4e-30]), &[]);
        assert_eq!(figures.norm, 0.0);
    }

    #[test]
    fn half_precision_keeps_its_range() {
        let halves = [300.0f32, 300.0].map(half::f16::from_f32);
        assert_eq!(measured(&view_of(DType::F16, &halves), &[]).0.norm, 424.25);
        let large = [0.1f32, 3e38].map(half::bf16::from_f32);
        let (figures, directions) = measured(&view_of(DType::BF16, &large), &[1.0]);
        assert_eq!((figures.norm, figures.at_most, directions), (INF, vec![1], vec![1, 1]));
    }

    #[test]
    fn nothing_and_complex_numbers_have_no_figures() {
        let (figures, _) = measured(&view_of::<f32>(DType::F32, &[]), &[0.0]);
        assert!(figures.max.is_nan() && figures.min.is_nan());
        assert_eq!((figures.norm, figures.at_most, figures.crc32), (0.0, vec![0], Some(0)));
        assert_eq!(measure_gradient(&view_of(DType::C64, &[[1f32, 2.0]]), GradientWork::default()), None);
        let scalar = [-0.25f32];
        let view = TensorView::contiguous(DType::F32, vec![], bytemuck::cast_slice(&scalar)).unwrap();
        let (figures, _) = measured(&view, &[]);
        assert_eq!((figures.max, figures.norm), (-0.25, 0.25));
    }

    #[test]
    fn layouts_levels_and_threads_change_nothing() {
        let values: Vec<f32> = (0..600_000u32)
            .map(|i| match i.wrapping_mul(2_654_435_761) >> 8 {
                hash if hash % 11 == 0 => 0.0,
                hash => (hash as f32 / 8_388_608.0 - 1.0) * 3.0,
            })
            .collect();
        let bounds = [-1.5f32, -1.0, -0.1, 0.0, 0.25, 2.0];
        let shape = vec![600, 1000];
        let storage: &[u8] = bytemuck::cast_slice(&values);
        let plain = TensorView::contiguous(DType::F32, shape.clone(), storage).unwrap();
        let mut moved = vec![0f32; values.len()];
        for (at, &value) in values.iter().enumerate() {
            moved[at % 1000 * 600 + at / 1000] = value;
        }
        let storage: &[u8] = bytemuck::cast_slice(&moved);
        let strided = TensorView::new(DType::F32, shape, vec![1, 600], storage, 0, Endian::Little).unwrap();
        let expected: Vec<u8> = values.iter().map(|&value| u8::from(value > 0.0)).collect();
        let counts: Vec<u64> =
            bounds.iter().map(|bound| values.iter().filter(|&value| value <= bound).count() as u64).collect();
        let stats = statistics(&plain);
        for level in Level::available() {
            for threads in [1, 3] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                for view in [&plain, &strided] {
                    let mut directions = vec![9; values.len()];
                    let work = GradientWork {
                        bounds: &bounds,
                        crc32: true,
                        directions: Some(&mut directions),
                        sketch: true,
                    };
                    let figures = pool.install(|| measure_at(level, view, work)).unwrap();
                    assert_eq!(figures.sketch, Some(sketch_at(level, &plain)));
                    let alone = GradientWork { sketch: true, ..GradientWork::default() };
                    let alone = pool.install(|| measure_at(level, view, alone)).unwrap();
                    assert_eq!(
                        alone,
                        GradientFigures { at_most: vec![], crc32: None, ..figures.clone() },
                        "one pass or two"
                    );
                    assert_eq!(directions, expected, "{level:?} {threads}");
                    assert_eq!(figures.at_most, counts);
                    assert_eq!(figures.crc32, Some(crate::crc32(&plain)));
                    assert_eq!(figures.zeros, stats.zero_count);
                    assert_eq!(f64::from(figures.norm), f64::from(stats.norm.unwrap().as_f64() as f32));
                }
            }
        }
    }
}
