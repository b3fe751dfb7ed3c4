//! A sketch: a few numbers that say how far apart two tensors are, without the tensors.
//!
//! It is linear: the sketch of a difference is the difference of the sketches. Each element, known by its place in
//! row-major order, gets a sign and falls into one of 64 buckets; 16 components are dense combinations of the buckets,
//! so that the mean of their squares estimates the squared norm with 16 degrees of freedom, for noise everywhere as for
//! a single wrong element or a wrong channel. Eight sums for eighths of the elements in row-major order and eight for
//! eighths of the columns say where an error sits, and a hash of the bytes whether there is one at all.
//!
//! All of it depends on the elements in row-major order, on the number of columns, and on nothing else: neither strides,
//! threads nor instructions. With another number of columns, components differ in their last bits. The definition, all of which is part of version 1 of the text form (`Sketch::to_string`):
//!
//! - Elements that are not finite, or whose magnitude is 1e30 or more (masks), count as zero. Complex numbers are two
//!   elements each, bools are 0 and 1.
//! - Element `i` lies in lane `i % 8` of strip `i / strip`, where a strip is the largest power of two of which a tensor has
//!   more than 16, but at least 8 and at most 1024 elements. Its sign is that of place `i % 2048` in a fixed table times that
//!   of its lane in its strip.
//! - A strip has a random number `h = mix(strip)`: lane `l` has the sign of bit `8 + l` and falls into bucket
//!   `(h + l) % 64`. So neighbours never share a bucket, and elements of one column do so by chance only.
//! - Eighth `p` of the rows begins at `p * count / 8`, rounded down to a multiple of eight. Columns are the last
//!   dimensions, as many as make at least 512 elements; their eighths are told apart if that is a multiple of 64, and not all.
//! - The hash is a sum modulo 2^64 over pairs of 32-bit words of the little-endian bytes: `(a + k) * (b + k')` with keys
//!   that repeat every 2048 bytes, times an odd number of these 2048 bytes.

mod difference;
mod hash;
mod kernel;
mod plan;
#[cfg(test)]
mod tests;
mod text;

pub use difference::{Eighths, SketchDifference, SketchPart};
pub(crate) use plan::{SIGN_PERIOD, is_negative};
pub use plan::{SketchCuts, SketchSums, sketch_cuts, sketch_tables, sketch_width};
pub use text::{SketchText, SketchTextError};

use super::{Statistics, float, statistics_at};
use crate::decode::{as_f32, as_f64};
use crate::real::Real;
use crate::simd::Level;
use crate::{DType, DTypeClass, TensorView};
use hash::ByteHash;
use plan::Plan;

/// Numbers of which the squared norm is estimated.
pub(crate) const COMPONENTS: usize = 16;
/// Parts that rows and columns are cut into.
pub(crate) const EIGHTHS: usize = 8;

/// Bits after the point of a component.
const COMPONENT_BITS: i32 = 27;
/// Bits after the point of the sum of an eighth, and of the norm.
const EIGHTH_BITS: i32 = 23;

/// The sketch of one tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sketch {
    /// Of the little-endian bytes in row-major order.
    hash: u64,
    content: Content,
}

/// What is known beside the hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Content {
    /// Nothing: there are no elements, or just one.
    Nothing,
    /// All elements count as zero.
    Zero,
    Sums(Sums),
}

/// Sums as integers: numbers are these times a power of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Sums {
    /// All numbers are below 2^exponent in magnitude.
    exponent: i16,
    /// In units of 2^(exponent - 23); below 2^24.
    norm: u32,
    /// In units of 2^(exponent - 27); 28 bits with the sign.
    components: [i32; COMPONENTS],
    /// Sums of eighths of the elements, in units of 2^(exponent - 23); 24 bits with the sign.
    rows: Option<[i32; EIGHTHS]>,
    columns: Option<Columns>,
}

/// Sums of eighths of the columns, as of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Columns {
    /// How many columns there are, in units of 64; the largest number stands for all above.
    width: u16,
    sums: [i32; EIGHTHS],
}

/// Statistics and sketch together, touching row-major memory once. Statistics are those of [`super::statistics`].
pub fn statistics_and_sketch(view: &TensorView<'_>) -> (Statistics, Sketch) {
    statistics_and_sketch_at(Level::detected(), view)
}

pub(super) fn statistics_and_sketch_at(level: Level, view: &TensorView<'_>) -> (Statistics, Sketch) {
    let together = match view.dtype() {
        // A pass in row-major order serves both.
        dtype if dtype.class() != DTypeClass::Float || view.as_bytes().is_none() => None,
        DType::F64 => as_f64(view).and_then(|values| float_statistics(level, view, &values)),
        _ => as_f32(view).and_then(|values| float_statistics(level, view, &values)),
    };
    together.unwrap_or_else(|| (statistics_at(level, view, &|_| {}), sketch_at(level, view)))
}

fn float_statistics<W: Real>(
    level: Level,
    view: &TensorView<'_>,
    values: &crate::decode::Decoded<'_, W>,
) -> Option<(Statistics, Sketch)> {
    let plan = Plan::new(view.shape())?;
    let measured = kernel::measure(level, view, &plan, values)?;
    let stats = float::finish_sums(view.numel(), measured.partial, values);
    Some((stats, Sketch::new(&measured.sums, measured.hash)))
}

/// The sketch of a tensor, in a pass of its own.
pub fn sketch(view: &TensorView<'_>) -> Sketch {
    sketch_at(Level::detected(), view)
}

pub(super) fn sketch_at(level: Level, view: &TensorView<'_>) -> Sketch {
    let elements = view.components();
    let measured = Plan::new(elements.shape()).and_then(|plan| {
        let measured = match elements.dtype() {
            dtype if dtype.class() == DTypeClass::Float && dtype != DType::F64 => {
                kernel::measure(level, &elements, &plan, &as_f32(&elements)?)
            }
            _ => kernel::measure(level, &elements, &plan, &as_f64(&elements)?),
        };
        measured.map(|measured| Sketch::new(&measured.sums, measured.hash))
    });
    measured.unwrap_or_else(|| {
        let mut hash = ByteHash::EMPTY;
        view.for_each_bytes(0..view.numel(), |bytes| hash.add(level, 0, bytes));
        Sketch::of_hash(hash.finish())
    })
}

impl Sketch {
    /// The sketch of a tensor of two elements or more, from what was summed elsewhere as the definition says.
    pub fn new(sums: &SketchSums, hash: u64) -> Sketch {
        let norm = sums.squares.sqrt();
        let components = sums.components();
        let eighths = [sums.rows, sums.columns.map(|(_, columns)| columns)];
        // Bits of magnitudes are ordered as these, with NaN above all.
        let largest = components
            .iter()
            .chain(eighths.iter().flatten().flatten())
            .fold(norm.to_bits(), |largest, number| largest.max(number.abs().to_bits()));
        let is_measured = f64::from_bits(largest).is_finite();
        if !is_measured || norm < f64::MIN_POSITIVE {
            return Sketch { hash, content: if is_measured { Content::Zero } else { Content::Nothing } };
        }
        // Of a normal number: all are below this power of two.
        let exponent = (largest >> 52) as i32 - 1022;
        let fixed = |bits: i32| {
            let scale = power_of_two(bits - exponent);
            let most = (1 << bits) - 1;
            // Rounded half away from zero, without a call.
            move |number: f64| ((number * scale + 0.5f64.copysign(number)) as i32).clamp(-most, most)
        };
        let sums = Sums {
            exponent: exponent as i16,
            norm: fixed(EIGHTH_BITS)(norm) as u32,
            components: components.map(fixed(COMPONENT_BITS)),
            rows: sums.rows.map(|rows| rows.map(fixed(EIGHTH_BITS))),
            columns: sums
                .columns
                .map(|(width, columns)| Columns { width, sums: columns.map(fixed(EIGHTH_BITS)) }),
        };
        Sketch { hash, content: Content::Sums(sums) }
    }

    /// The sketch of a tensor of one element or none.
    pub fn of_hash(hash: u64) -> Sketch {
        Sketch { hash, content: Content::Nothing }
    }

    /// The hash of the little-endian bytes in row-major order.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The norm of the elements that count; `None` for a tensor of fewer than two elements.
    pub fn norm(&self) -> Option<f64> {
        match &self.content {
            Content::Nothing => None,
            Content::Zero => Some(0.0),
            Content::Sums(sums) => {
                Some(f64::from(sums.norm) * power_of_two(i32::from(sums.exponent) - EIGHTH_BITS))
            }
        }
    }
}

/// 2^`exponent`, for exponents that an `f64` has.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent.clamp(-1022, 1023) + 1023) as u64) << 52)
}
