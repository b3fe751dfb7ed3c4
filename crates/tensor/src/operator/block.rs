//! The pass over one block of both sides.

use half::f16;

use super::OperatorLimits;
use super::sums::Sums;
use crate::DType;
use crate::real::Real;

/// What becomes of a golden value in the type of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Casting {
    ToF16,
    /// bfloat16 too, which is looked at as float32.
    ToF32,
    Nothing,
}

impl Casting {
    pub(super) fn to(dtype: DType) -> Casting {
        match dtype {
            DType::F16 => Casting::ToF16,
            DType::F64 => Casting::Nothing,
            _ => Casting::ToF32,
        }
    }

    #[inline(always)]
    fn cast(self, value: f64) -> f64 {
        match self {
            Casting::ToF16 => f16::from_f64(value).to_f64(),
            Casting::ToF32 => f64::from(value as f32),
            Casting::Nothing => value,
        }
    }

    fn largest(self) -> f64 {
        match self {
            Casting::ToF16 => 65504.0,
            Casting::ToF32 => f64::from(f32::MAX),
            Casting::Nothing => f64::MAX,
        }
    }
}

pub(super) fn of_block<W: Real>(
    sums: &mut Sums,
    target: &[W],
    golden: &[W],
    limits: &OperatorLimits,
    casting: Casting,
    epsilon: f64,
) {
    let epsilon = W::from_f64(epsilon);
    let within = [0.01, 0.001, 0.0001].map(W::from_f64);
    let small_value = W::from_f64(limits.small_value);
    let (atol, rtol) = (W::from_f64(limits.small_value_atol), W::from_f64(limits.rtol));
    for (&t, &g) in target.iter().zip(golden) {
        let (wide_t, wide_g) = (t.to_f64(), g.to_f64());
        // The golden value as the target's type holds it.
        let cast =
            if casting == Casting::ToF32 && size_of::<W>() == 4 { wide_g } else { casting.cast(wide_g) };
        let is_finite = wide_t.is_finite() && cast.is_finite();
        if !is_finite && limits.excuses_agreeing && (wide_t == cast || wide_t.is_nan() && cast.is_nan()) {
            sums.agreeing += 1;
            sums.within = sums.within.map(|count| count + 1);
            sums.keep_square(0.0);
            continue;
        }
        sums.unequal += u64::from(t != g);
        sums.dot += wide_t * wide_g;
        sums.target_squares += wide_t * wide_t;
        sums.golden_squares += wide_g * wide_g;
        sums.largest_target = larger(sums.largest_target, wide_t.abs());
        sums.largest_golden = larger(sums.largest_golden, wide_g.abs());
        let magnitude = g.magnitude();
        let error = (t - g).magnitude();
        let wide_error = error.to_f64();
        sums.max_error = larger(sums.max_error, wide_error);
        let relative = error / (magnitude + epsilon);
        for (count, within) in sums.within.iter_mut().zip(within) {
            *count += u64::from(relative < within);
        }
        sums.above += u64::from(wide_t - cast > 0.0);
        sums.below += u64::from(wide_t - cast < 0.0);
        sums.at_magnitude(wide_g, wide_error);
        if let Some(ulp) = limits.ulp {
            // float16 and bfloat16 are counted in float32.
            let in_f32 = ulp.mantissa_bits < 23;
            let exponent = exponent(wide_g, in_f32).max(f64::from(ulp.min_exponent));
            let scale = (f64::from(ulp.mantissa_bits) - exponent).exp2();
            let units = if in_f32 {
                f64::from(((wide_t as f32 - wide_g as f32) * scale as f32).abs())
            } else {
                ((wide_t - wide_g) * scale).abs()
            };
            sums.max_units = larger(sums.max_units, units);
            sums.units += units;
            sums.many_units += u64::from(units > ulp.element_limit);
        }
        if !is_finite {
            sums.non_finite += 1;
            let both_nan = wide_t.is_nan() && cast.is_nan();
            let limit = casting.largest();
            let difference = casting.cast(wide_t.clamp(-limit, limit) - cast.clamp(-limit, limit)).abs();
            let relative = difference / (wide_g.abs() + epsilon.to_f64());
            let far = relative > limits.rtol || relative.is_nan();
            sums.non_finite_far += u64::from(far && !both_nan);
            sums.keep_square(0.0);
        } else if magnitude <= small_value {
            sums.small += 1;
            sums.small_far += u64::from(error > atol);
            sums.keep_square(0.0);
        } else {
            sums.normal += 1;
            sums.normal_far += u64::from(relative > rtol);
            sums.max_relative = larger(sums.max_relative, relative.to_f64());
            sums.relative += relative.to_f64();
            sums.keep_square((error * error).to_f64());
        }
    }
}

/// The larger; NaN wins, as in numpy.
#[inline(always)]
pub(super) fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || b <= a { a } else { b }
}

/// `floor(log2(|value|))` as numpy finds it: what is just below a power of two is rounded up to it.
#[inline(always)]
fn exponent(value: f64, in_f32: bool) -> f64 {
    let magnitude = value.abs();
    if magnitude == 0.0 {
        return 0.0;
    }
    let bits = magnitude.to_bits();
    let (exponent, fraction) = ((bits >> 52) as i64, (bits >> 36) & 0xFFFF);
    if exponent == 0 || exponent == 0x7FF || fraction == 0xFFFF {
        let logarithm = magnitude.log2();
        return if in_f32 { f64::from(logarithm as f32) } else { logarithm }.floor();
    }
    (exponent - 1023) as f64
}
