//! Everything that standards of single operators ask of an output and of the same output computed more precisely: one
//! pass over both.

mod block;
mod sums;

use crate::decode::{Decoded, as_f32, as_f64};
use crate::parallel::{blocks, map_chunks};
use crate::real::Real;
use crate::view::BLOCK_ELEMENTS;
use crate::{DType, PairError, TensorView};

use self::block::{Casting, larger, of_block};
use self::sums::Sums;
pub use self::sums::{Magnitude, OperatorErrors, Share, UlpErrors};

/// What a standard counts as small, and how far errors may go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OperatorLimits {
    /// A finite golden value up to this is small.
    pub small_value: f64,
    /// An absolute error of a small value above this is counted.
    pub small_value_atol: f64,
    /// A relative error of a value that is not small above this is counted, and one of a clipped infinity.
    pub rtol: f64,
    /// Leaves out what is NaN, or the same infinity, on both sides.
    pub excuses_agreeing: bool,
    /// How units in the last place are counted, where they are.
    pub ulp: Option<UlpLimits>,
}

/// How errors are counted in units in the last place of the target's type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UlpLimits {
    /// More of them are too many.
    pub element_limit: f64,
    /// Values below two to the power of this have the units of that.
    pub min_exponent: i32,
    /// Bits of the type behind the point.
    pub mantissa_bits: i32,
}

/// Measures a floating-point `target` against `golden`, of as many elements; complex numbers as pairs of real ones.
/// `Ok(None)` if there are none.
pub fn operator_errors(
    target: &TensorView<'_>,
    golden: &TensorView<'_>,
    limits: &OperatorLimits,
) -> Result<Option<OperatorErrors>, PairError> {
    let (target, golden) = (&target.components(), &golden.components());
    let numel = target.numel();
    if numel != golden.numel() {
        return Err(PairError::CountMismatch { target: numel, golden: golden.numel() });
    }
    let casting = Casting::to(target.dtype());
    // float16 and bfloat16 are errors of float32 too: the reference shows bfloat16 as such.
    let epsilon = match (target.dtype(), golden.dtype()) {
        (DType::BF16, _) => 1.0 / 256.0,
        (_, DType::F64) => f64::EPSILON,
        (_, DType::F16) => 1.0 / 1024.0,
        _ => f64::from(f32::EPSILON),
    };
    let sums = match (as_f32(target), as_f32(golden)) {
        (Some(t), Some(g)) => pass::<f32>(&t, &g, numel, limits, casting, epsilon),
        _ => match (as_f64(target), as_f64(golden)) {
            (Some(t), Some(g)) => pass::<f64>(&t, &g, numel, limits, casting, epsilon),
            _ => None,
        },
    };
    let Some(sums) = sums else { return Ok(None) };
    let is_narrow = target.dtype() != DType::F64 && golden.dtype() != DType::F64;
    let mut errors = sums.finish(numel, is_narrow, target.dtype());
    if !errors.cosine.is_finite() && errors.are_finite {
        errors.cosine = scaled_cosine(target, golden, &errors);
    }
    Ok(Some(errors))
}

/// Of values so large or so small that their squares are not numbers any more: both sides divided by their largest.
fn scaled_cosine(target: &TensorView<'_>, golden: &TensorView<'_>, errors: &OperatorErrors) -> f64 {
    let (Some(t), Some(g)) = (as_f64(target), as_f64(golden)) else { return f64::NAN };
    let sums = map_chunks(
        target.numel(),
        |range| {
            let (mut t_scratch, mut g_scratch) = (Vec::new(), Vec::new());
            blocks(range).fold([0.0; 3], |mut sums: [f64; 3], (start, len)| {
                let (t, g) = (t.read(start, len, &mut t_scratch), g.read(start, len, &mut g_scratch));
                for (t, g) in t.iter().zip(g) {
                    let (t, g) = (t / errors.largest_target, g / errors.largest_golden);
                    sums[0] += t * g;
                    sums[1] += t * t;
                    sums[2] += g * g;
                }
                sums
            })
        },
        |a, b| [a[0] + b[0], a[1] + b[1], a[2] + b[2]],
    );
    sums.map_or(f64::NAN, |[dot, t, g]| dot / (t.sqrt() * g.sqrt()))
}

/// Distances of two tensors of any type in float64, as simple as they come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlainErrors {
    /// The scalar product.
    pub dot: f64,
    /// Norm of the target.
    pub target_norm: f64,
    /// Norm of the golden side.
    pub golden_norm: f64,
    /// The largest absolute error; NaN if there is one.
    pub max_error: f64,
    /// The largest error relative to the golden value; NaN if there is one.
    pub max_relative: f64,
}

/// Measures two tensors of as many elements. `zero` stands in for golden zeros that errors are divided by. `None` if there
/// are no elements, not as many, or complex ones.
pub fn plain_errors(target: &TensorView<'_>, golden: &TensorView<'_>, zero: f64) -> Option<PlainErrors> {
    if target.numel() != golden.numel() {
        return None;
    }
    let (t, g) = (as_f64(target)?, as_f64(golden)?);
    let [dot, t, g, max_error, max_relative] = map_chunks(
        target.numel(),
        |range| {
            let (mut t_scratch, mut g_scratch) = (Vec::new(), Vec::new());
            blocks(range).fold([0.0; 5], |mut sums: [f64; 5], (start, len)| {
                let (t, g) = (t.read(start, len, &mut t_scratch), g.read(start, len, &mut g_scratch));
                for (&t, &g) in t.iter().zip(g) {
                    let error = (g - t).abs();
                    let divisor = if g == 0.0 { zero } else { g.abs() };
                    sums[0] += t * g;
                    sums[1] += t * t;
                    sums[2] += g * g;
                    sums[3] = larger(sums[3], error);
                    sums[4] = larger(sums[4], error / divisor);
                }
                sums
            })
        },
        |a, b| [a[0] + b[0], a[1] + b[1], a[2] + b[2], larger(a[3], b[3]), larger(a[4], b[4])],
    )?;
    Some(PlainErrors { dot, target_norm: t.sqrt(), golden_norm: g.sqrt(), max_error, max_relative })
}

fn pass<W: Real>(
    target: &Decoded<'_, W>,
    golden: &Decoded<'_, W>,
    numel: usize,
    limits: &OperatorLimits,
    casting: Casting,
    epsilon: f64,
) -> Option<Sums> {
    // Of few elements numpy's order of adding shows in the digits that are told.
    let keeps_squares = numel <= BLOCK_ELEMENTS && size_of::<W>() == size_of::<f32>();
    map_chunks(
        numel,
        |range| {
            let (mut t_scratch, mut g_scratch) = (Vec::new(), Vec::new());
            let mut sums = Sums::new(keeps_squares);
            for (start, len) in blocks(range) {
                let t = target.read(start, len, &mut t_scratch);
                let g = golden.read(start, len, &mut g_scratch);
                of_block(&mut sums, t, g, limits, casting, epsilon);
            }
            sums
        },
        |all, more| all.merge(&more),
    )
}

#[cfg(test)]
mod tests;
