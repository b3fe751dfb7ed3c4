//! Statistics of complex tensors, taken over the modulus of each element.

use super::{Number, Statistics};
use crate::TensorView;
use crate::decode::{Decoded, as_c128};
use crate::parallel::{OnChunk, reduce_blocks};

#[derive(Clone, Copy)]
struct Partial {
    sum: f64,
    max: f64,
    min: f64,
    nan: u64,
    infinite: u64,
    zeros: u64,
}

const EMPTY: Partial =
    Partial { sum: 0.0, max: f64::NEG_INFINITY, min: f64::INFINITY, nan: 0, infinite: 0, zeros: 0 };

/// Brings a sum of any number of finite moduli into the range of f64.
const SHRINK: f64 = 1.0 / (1u128 << 64) as f64;

pub(super) fn of_complex(view: &TensorView<'_>, on_chunk: OnChunk<'_>) -> Statistics {
    let Some(values) = as_c128(view) else { return Statistics::default() };
    let numel = view.numel();
    let partial = measure(numel, &values, 1.0, on_chunk);
    let mut mean = partial.sum / numel as f64;
    if partial.infinite == 0 && mean.is_infinite() {
        // Only the sum overflowed: the rare second pass.
        mean = (measure(numel, &values, SHRINK, &|_| {}).sum / numel as f64 / SHRINK).min(partial.max);
    }
    let or_nan = |value: f64| Some(Number::Float(if partial.nan > 0 { f64::NAN } else { value }));
    Statistics {
        max: or_nan(partial.max),
        min: or_nan(partial.min),
        mean: or_nan(mean),
        norm: None,
        count: numel as u64,
        nan_count: partial.nan,
        pos_inf_count: partial.infinite,
        neg_inf_count: 0,
        zero_count: partial.zeros,
    }
}

/// Measures all moduli; the sum is of moduli times `factor`.
fn measure(numel: usize, values: &Decoded<'_, [f64; 2]>, factor: f64, on_chunk: OnChunk<'_>) -> Partial {
    let of_block = |block: &[[f64; 2]]| {
        let mut partial = EMPTY;
        for &[re, im] in block {
            add(&mut partial, re.hypot(im), factor);
        }
        partial
    };
    let merge = |a: Partial, b: Partial| Partial {
        sum: a.sum + b.sum,
        max: a.max.max(b.max),
        min: a.min.min(b.min),
        nan: a.nan + b.nan,
        infinite: a.infinite + b.infinite,
        zeros: a.zeros + b.zeros,
    };
    reduce_blocks(numel, values, on_chunk, of_block, merge).unwrap_or(EMPTY)
}

fn add(partial: &mut Partial, modulus: f64, factor: f64) {
    if modulus.is_nan() {
        partial.nan += 1;
        return;
    }
    partial.infinite += u64::from(modulus.is_infinite());
    partial.zeros += u64::from(modulus == 0.0);
    partial.sum += modulus * factor;
    partial.max = partial.max.max(modulus);
    partial.min = partial.min.min(modulus);
}
