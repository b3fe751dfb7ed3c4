//! A `.npy` file and the figures of its elements in one pass over memory.

use std::io::{self, Write};

use super::npy::{self, write_header};
use crate::decode::{Decoded, as_f64, rounded_to_f32};
use crate::parallel::{CHUNK_ELEMENTS, on_this_thread};
use crate::real::Real;
use crate::simd::Level;
use crate::stats::float::{Partial, finish_sums, of_chunk};
use crate::stats::{Arithmetic, FourStatistics, Statistics, statistics};
use crate::{DType, DTypeClass, TensorView};

/// What a file keeps of the elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// Each as the nearest float32, which is what is measured too; of complex numbers the real part.
    Float32,
    /// All of it, measured in this arithmetic.
    Own(Arithmetic),
}

/// Writes a tensor that has elements, and measures it meanwhile. Uses this thread only.
pub fn write(out: &mut impl Write, view: &TensorView<'_>, stored: Stored) -> io::Result<FourStatistics> {
    let dtype = view.dtype();
    let undecodable = || io::Error::new(io::ErrorKind::InvalidInput, format!("cannot decode {dtype}"));
    let (written, arithmetic) = match stored {
        Stored::Float32 => (DType::F32, Arithmetic::Float32),
        Stored::Own(arithmetic) => (dtype, arithmetic),
    };
    let is_integer = matches!(dtype.class(), DTypeClass::Signed | DTypeClass::Unsigned);
    let stats = if arithmetic == Arithmetic::Own && is_integer {
        npy::write(out, view)?;
        on_this_thread(|| statistics(view))
    } else {
        write_header(out, written, view.shape())?;
        if arithmetic == Arithmetic::Own && dtype == DType::F64 {
            let values = as_f64(view).ok_or_else(undecodable)?;
            write_elements(out, view, &values, written)?
        } else {
            let values = rounded_to_f32(view).ok_or_else(undecodable)?;
            write_elements(out, view, &values, written)?
        }
    };
    Ok(FourStatistics::new(&stats, dtype, arithmetic))
}

/// Measures a chunk, then writes it while it is in cache: as `values`, unless the view is of the dtype to write.
fn write_elements<W: Real>(
    out: &mut impl Write,
    view: &TensorView<'_>,
    values: &Decoded<'_, W>,
    written: DType,
) -> io::Result<Statistics> {
    let converts = written != view.dtype();
    let level = Level::detected();
    let (mut scratch, mut converted) = (Vec::new(), Vec::new());
    let mut sums: Option<Partial> = None;
    for start in (0..view.numel()).step_by(CHUNK_ELEMENTS) {
        let chunk = start..view.numel().min(start + CHUNK_ELEMENTS);
        converted.clear();
        let part = of_chunk(level, values, chunk.clone(), &mut scratch, |block| {
            if converts {
                converted.extend_from_slice(block);
            }
        });
        if converts {
            out.write_all(bytemuck::cast_slice(&converted))?;
        } else {
            view.try_for_each_bytes(chunk, |bytes| out.write_all(bytes))?;
        }
        sums = match (sums, part) {
            (Some(sums), Some(part)) => Some(sums.merge(part)),
            (sums, part) => sums.or(part),
        };
    }
    Ok(sums.map_or_else(Statistics::default, |sums| finish_sums(view.numel(), sums, values)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Endian;

    fn written(view: &TensorView<'_>, stored: Stored) -> (Vec<u8>, FourStatistics) {
        let mut file = Vec::new();
        let figures = write(&mut file, view, stored).unwrap();
        (file, figures)
    }

    fn bytes_of<T: bytemuck::Pod>(values: &[T]) -> Vec<u8> {
        bytemuck::cast_slice(values).to_vec()
    }

    fn figures_of(values: &[f32]) -> [f64; 4] {
        let bytes = bytes_of(values);
        let view = TensorView::contiguous(DType::F32, vec![values.len()], &bytes).unwrap();
        let figures = written(&view, Stored::Float32).1;
        [figures.max, figures.min, figures.mean, figures.norm]
    }

    #[test]
    fn every_dtype_is_kept_as_the_nearest_float32() {
        let tokens = bytes_of(&[16_777_217i64, -9_007_199_791_611_905, 7]);
        let view = TensorView::contiguous(DType::I64, vec![3], &tokens).unwrap();
        let (file, figures) = written(&view, Stored::Float32);
        // The second is just above the middle of two float32: by way of f64 it would become the other one.
        let expected = [16_777_216f32, -9_007_200_328_482_816.0, 7.0];
        assert!(file.ends_with(&bytes_of(&expected)));
        assert_eq!((figures.max, figures.min), (16_777_216.0, -9_007_200_328_482_816.0));
        let huge = bytes_of(&[1e300f64, 0.1]);
        let view = TensorView::contiguous(DType::F64, vec![2], &huge).unwrap();
        let (file, figures) = written(&view, Stored::Float32);
        assert!(file.ends_with(&bytes_of(&[f32::INFINITY, 0.1])));
        assert_eq!((figures.max, figures.min), (f64::INFINITY, f64::from(0.1f32)));
        let pairs = bytes_of(&[1.5f32, 9.0, -2.0, 9.0]);
        let view = TensorView::contiguous(DType::C64, vec![2], &pairs).unwrap();
        assert!(written(&view, Stored::Float32).0.ends_with(&bytes_of(&[1.5f32, -2.0])));
    }

    #[test]
    fn all_dtypes_in_all_forms_are_what_plain_writing_gives() {
        let bytes: Vec<u8> = (0..=255).collect();
        for dtype in DType::all() {
            let view = TensorView::contiguous(dtype, vec![256 / dtype.size_bytes()], &bytes).unwrap();
            let mut plain = Vec::new();
            npy::write(&mut plain, &view).unwrap();
            for arithmetic in [Arithmetic::Float32, Arithmetic::Own] {
                assert_eq!(written(&view, Stored::Own(arithmetic)).0, plain, "{dtype}");
            }
            let (file, _) = written(&view, Stored::Float32);
            let index = npy::parse(&file).unwrap();
            let layout = index.entries[0].layout.as_ref().unwrap();
            assert_eq!((layout.dtype, &layout.shape[..]), (DType::F32, view.shape()), "{dtype}");
        }
    }

    #[test]
    fn figures_are_those_of_statistics_however_long_the_tensor() {
        let values: Vec<f32> = (0..200_000i32).map(|i| (i * 7919 % 10_007) as f32 / 1e3 - 4.0).collect();
        let bytes = bytes_of(&values);
        let view =
            TensorView::new(DType::F32, vec![400, 500], vec![1, 400], &bytes, 0, Endian::Little).unwrap();
        let stats = statistics(&TensorView::contiguous(DType::F32, vec![200_000], &bytes).unwrap());
        let (file, figures) = written(&view, Stored::Float32);
        let mut plain = Vec::new();
        npy::write(&mut plain, &view).unwrap();
        assert_eq!(file, plain);
        for (ours, theirs) in [
            (figures.max, stats.max),
            (figures.min, stats.min),
            (figures.mean, stats.mean),
            (figures.norm, stats.norm),
        ] {
            let theirs = theirs.unwrap().as_f64();
            assert!((ours - theirs).abs() <= 1e-7 * theirs.abs(), "{ours} {theirs}");
        }
    }

    #[test]
    fn sums_have_the_range_of_float32() {
        let inf = f64::INFINITY;
        assert_eq!(figures_of(&[3e30, 3e30])[2..], [f64::from(3e30f32), inf]);
        assert_eq!(figures_of(&[3e38, 3e38])[2..], [inf, inf]);
        assert_eq!(figures_of(&[-3e38, -3e38])[2..], [-inf, inf]);
        assert_eq!(figures_of(&[1e-30, 1e-30])[3], 0.0);
        assert_eq!(figures_of(&[-1e30]), [-1e30f32, -1e30, -1e30, 1e30].map(f64::from));
        assert_eq!(figures_of(&[-3.0, -4.0]), [-3.0, -4.0, -3.5, 5.0]);
        assert!(figures_of(&[1.0, f32::NAN, f32::INFINITY]).iter().all(|figure| figure.is_nan()));
        let [max, min, mean, norm] = figures_of(&[f32::INFINITY, f32::NEG_INFINITY]);
        assert!(max == inf && min == -inf && mean.is_nan() && norm == inf);
    }

    #[test]
    fn half_precision_is_rounded_to_itself_and_own_arithmetic_is_exact() {
        let halves = bytes_of(&[half::f16::from_f32(60_000.0), half::f16::from_f32(59_968.0)]);
        let view = TensorView::contiguous(DType::F16, vec![2], &halves).unwrap();
        let figures = written(&view, Stored::Float32).1;
        assert_eq!((figures.mean, figures.norm), (59_968.0, f64::INFINITY));
        let wide = bytes_of(&[0.1f64, 0.3]);
        let view = TensorView::contiguous(DType::F64, vec![2], &wide).unwrap();
        assert_eq!(written(&view, Stored::Own(Arithmetic::Own)).1.mean, 0.2);
        let tokens = bytes_of(&[16_777_217i64, 7, 9]);
        let view = TensorView::contiguous(DType::I64, vec![3], &tokens).unwrap();
        let figures = written(&view, Stored::Own(Arithmetic::Own)).1;
        assert_eq!((figures.max, figures.mean, figures.norm), (16_777_217.0, 5_592_411.0, 16_777_218.0));
        assert_eq!(written(&view, Stored::Own(Arithmetic::Float32)).1.max, 16_777_216.0);
        let scalar = bytes_of(&[-2i32]);
        let view = TensorView::contiguous(DType::I32, vec![], &scalar).unwrap();
        assert_eq!(written(&view, Stored::Own(Arithmetic::Own)).1.norm, 2.0);
    }
}
