//! Statistics of complex tensors, taken over the modulus of each element.

use super::{Number, Statistics};
use crate::TensorView;
use crate::decode::as_c128;
use crate::parallel::{OnChunk, map_chunks};
use crate::view::BLOCK_ELEMENTS;

/// Keeps a sum of moduli in range where the plain sum overflows although the mean does not.
const SCALE: f64 = 1.0 / (1u128 << 64) as f64;

#[derive(Clone, Copy)]
struct Partial {
    sum: f64,
    scaled_sum: f64,
    max: f64,
    min: f64,
    nan: u64,
    infinite: u64,
    zeros: u64,
}

const EMPTY: Partial = Partial {
    sum: 0.0,
    scaled_sum: 0.0,
    max: f64::NEG_INFINITY,
    min: f64::INFINITY,
    nan: 0,
    infinite: 0,
    zeros: 0,
};

pub(super) fn of_complex(view: &TensorView<'_>, on_chunk: OnChunk<'_>) -> Statistics {
    let Some(values) = as_c128(view) else { return Statistics::default() };
    let numel = view.numel();
    let partial = map_chunks(
        numel,
        |range| {
            let mut scratch = Vec::new();
            let mut partial = EMPTY;
            for start in range.clone().step_by(BLOCK_ELEMENTS) {
                let len = BLOCK_ELEMENTS.min(range.end - start);
                for &[re, im] in values.read(start, len, &mut scratch) {
                    add(&mut partial, re.hypot(im));
                }
            }
            on_chunk(range);
            partial
        },
        |a, b| Partial {
            sum: a.sum + b.sum,
            scaled_sum: a.scaled_sum + b.scaled_sum,
            max: a.max.max(b.max),
            min: a.min.min(b.min),
            nan: a.nan + b.nan,
            infinite: a.infinite + b.infinite,
            zeros: a.zeros + b.zeros,
        },
    )
    .unwrap_or(EMPTY);
    let count = numel as f64;
    let overflowed = partial.sum.is_infinite() && partial.infinite == 0;
    let mean = if overflowed { partial.scaled_sum / count / SCALE } else { partial.sum / count };
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

fn add(partial: &mut Partial, modulus: f64) {
    if modulus.is_nan() {
        partial.nan += 1;
        return;
    }
    partial.infinite += u64::from(modulus.is_infinite());
    partial.zeros += u64::from(modulus == 0.0);
    partial.sum += modulus;
    partial.scaled_sum += modulus * SCALE;
    partial.max = partial.max.max(modulus);
    partial.min = partial.min.min(modulus);
}
