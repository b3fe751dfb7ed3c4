//! Blocks of a view as numbers of one working type, whatever the dtype in memory.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use crate::float8::decode_table;
use crate::view::{Blocks, Element};
use crate::{DType, TensorView};

/// Reads a view block by block as values of type `W`. Memory that already holds `W` is not copied.
pub(crate) struct Decoded<'a, W> {
    direct: Option<Blocks<'a, W>>,
    fill: Fill<'a, W>,
}

/// Appends the elements `start..start + len`, converted.
type Fill<'a, W> = Box<dyn Fn(usize, usize, &mut Vec<W>) + Send + Sync + 'a>;

impl<'a, W: Element> Decoded<'a, W> {
    fn direct(view: &TensorView<'a>) -> Self {
        Decoded { direct: Some(Blocks::new(view)), fill: Box::new(|_, _, _| {}) }
    }

    fn converted<T: Element>(
        view: &TensorView<'a>,
        convert: impl Fn(&[T], &mut Vec<W>) + Send + Sync + 'a,
    ) -> Self {
        let blocks = Blocks::<T>::new(view);
        Decoded {
            direct: None,
            fill: Box::new(move |start, len, out| {
                let mut raw = Vec::new();
                convert(blocks.read(start, len, &mut raw), out);
            }),
        }
    }

    /// Elements `start..start + len` in logical order; `scratch` is used unless they lie ready in memory.
    pub(crate) fn read<'s>(&self, start: usize, len: usize, scratch: &'s mut Vec<W>) -> &'s [W]
    where
        'a: 's,
    {
        if let Some(blocks) = &self.direct {
            return blocks.read(start, len, scratch);
        }
        scratch.clear();
        scratch.reserve(len);
        (self.fill)(start, len, scratch);
        scratch
    }
}

fn each<T: Copy, W>(convert: impl Fn(T) -> W + Send + Sync) -> impl Fn(&[T], &mut Vec<W>) + Send + Sync {
    move |source, out| out.extend(source.iter().map(|&value| convert(value)))
}

fn half_to_f32(source: &[f16], out: &mut Vec<f32>) {
    let filled = out.len();
    out.resize(filled + source.len(), 0.0);
    source.convert_to_f32_slice(&mut out[filled..]);
}

/// bfloat16 is the upper half of a float32; the conversion is a shift.
#[inline(always)]
fn bf16_to_f32(value: bf16) -> f32 {
    f32::from_bits(u32::from(value.to_bits()) << 16)
}

/// The view as `f32`, for dtypes whose every value `f32` holds exactly; `None` for the others.
pub(crate) fn as_f32<'a>(view: &TensorView<'a>) -> Option<Decoded<'a, f32>> {
    Some(match view.dtype() {
        DType::F32 => Decoded::direct(view),
        DType::F16 => Decoded::converted(view, half_to_f32),
        DType::BF16 => Decoded::converted(view, each(bf16_to_f32)),
        DType::F8E4M3FN | DType::F8E5M2 | DType::F8E4M3FNUZ | DType::F8E5M2FNUZ => {
            let table = decode_table(view.dtype())?;
            Decoded::converted(view, each(move |code: u8| table[code as usize]))
        }
        DType::Bool => Decoded::converted(view, each(|byte: u8| f32::from(u8::from(byte != 0)))),
        DType::U8 => Decoded::converted(view, each(|value: u8| f32::from(value))),
        DType::I8 => Decoded::converted(view, each(|value: i8| f32::from(value))),
        DType::U16 => Decoded::converted(view, each(|value: u16| f32::from(value))),
        DType::I16 => Decoded::converted(view, each(|value: i16| f32::from(value))),
        DType::U32 | DType::U64 | DType::I32 | DType::I64 | DType::F64 | DType::C64 | DType::C128 => {
            return None;
        }
    })
}

/// The view as `f32`, rounded to nearest where it must be; of complex numbers the real parts.
pub(crate) fn rounded_to_f32<'a>(view: &TensorView<'a>) -> Option<Decoded<'a, f32>> {
    Some(match view.dtype() {
        DType::U32 => Decoded::converted(view, each(|value: u32| value as f32)),
        DType::I32 => Decoded::converted(view, each(|value: i32| value as f32)),
        // Not by way of f64, which would round twice.
        DType::U64 => Decoded::converted(view, each(|value: u64| value as f32)),
        DType::I64 => Decoded::converted(view, each(|value: i64| value as f32)),
        DType::F64 => Decoded::converted(view, each(|value: f64| value as f32)),
        DType::C64 | DType::C128 => return rounded_to_f32(&view.real_part()?),
        _ => return as_f32(view),
    })
}

/// The view as `f64` (64-bit integers round to nearest); `None` for complex dtypes.
pub(crate) fn as_f64<'a>(view: &TensorView<'a>) -> Option<Decoded<'a, f64>> {
    Some(match view.dtype() {
        DType::F64 => Decoded::direct(view),
        DType::F32 => Decoded::converted(view, each(|value: f32| f64::from(value))),
        DType::U32 => Decoded::converted(view, each(|value: u32| f64::from(value))),
        DType::I32 => Decoded::converted(view, each(|value: i32| f64::from(value))),
        DType::U64 => Decoded::converted(view, each(|value: u64| value as f64)),
        DType::I64 => Decoded::converted(view, each(|value: i64| value as f64)),
        DType::C64 | DType::C128 => return None,
        DType::Bool
        | DType::U8
        | DType::U16
        | DType::I8
        | DType::I16
        | DType::F16
        | DType::BF16
        | DType::F8E4M3FN
        | DType::F8E5M2
        | DType::F8E4M3FNUZ
        | DType::F8E5M2FNUZ => {
            let narrow = as_f32(view)?;
            Decoded {
                direct: None,
                fill: Box::new(move |start, len, out| {
                    let mut values = Vec::new();
                    out.extend(narrow.read(start, len, &mut values).iter().map(|&value| f64::from(value)));
                }),
            }
        }
    })
}

/// A complex or real view as `[re, im]` pairs.
pub(crate) fn as_c128<'a>(view: &TensorView<'a>) -> Option<Decoded<'a, [f64; 2]>> {
    Some(match view.dtype() {
        DType::C128 => Decoded::direct(view),
        DType::C64 => Decoded::converted(view, each(|value: [f32; 2]| value.map(f64::from))),
        _ => {
            let real = as_f64(view)?;
            Decoded {
                direct: None,
                fill: Box::new(move |start, len, out| {
                    let mut values = Vec::new();
                    out.extend(real.read(start, len, &mut values).iter().map(|&value| [value, 0.0]));
                }),
            }
        }
    })
}

/// An integer type tensors can have.
pub(crate) trait Integer: Element + Ord {
    const DTYPE: DType;
    fn from_i128(value: i128) -> Self;
    fn to_i128(self) -> i128;
    fn to_f64(self) -> f64;
    /// `|self - other|` as numpy computes it: modulo the type's range.
    fn wrapping_distance(self, other: Self) -> Self;
    fn wrapping_magnitude(self) -> Self;
}

macro_rules! integers {
    ($($type:ident, $dtype:ident, |$value:ident| $magnitude:expr;)*) => { $(
        impl Integer for $type {
            const DTYPE: DType = DType::$dtype;
            #[inline(always)]
            fn from_i128(value: i128) -> Self { value as $type }
            #[inline(always)]
            fn to_i128(self) -> i128 { self as i128 }
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn wrapping_distance(self, other: Self) -> Self { self.wrapping_sub(other).wrapping_magnitude() }
            #[inline(always)]
            fn wrapping_magnitude(self) -> Self { let $value = self; $magnitude }
        }
    )* };
}

integers! {
    u8, U8, |v| v;
    u16, U16, |v| v;
    u32, U32, |v| v;
    u64, U64, |v| v;
    i8, I8, |v| v.wrapping_abs();
    i16, I16, |v| v.wrapping_abs();
    i32, I32, |v| v.wrapping_abs();
    i64, I64, |v| v.wrapping_abs();
}

/// An integer (or bool) view as integers of a type that holds all its values; `None` for other dtypes.
pub(crate) fn as_integer<'a, I: Integer>(view: &TensorView<'a>) -> Option<Decoded<'a, I>> {
    if view.dtype() == I::DTYPE {
        return Some(Decoded::direct(view));
    }
    Some(match view.dtype() {
        DType::Bool => Decoded::converted(view, each(|byte: u8| I::from_i128(i128::from(byte != 0)))),
        DType::U8 => Decoded::converted(view, each(|value: u8| I::from_i128(value.into()))),
        DType::U16 => Decoded::converted(view, each(|value: u16| I::from_i128(value.into()))),
        DType::U32 => Decoded::converted(view, each(|value: u32| I::from_i128(value.into()))),
        DType::U64 => Decoded::converted(view, each(|value: u64| I::from_i128(value.into()))),
        DType::I8 => Decoded::converted(view, each(|value: i8| I::from_i128(value.into()))),
        DType::I16 => Decoded::converted(view, each(|value: i16| I::from_i128(value.into()))),
        DType::I32 => Decoded::converted(view, each(|value: i32| I::from_i128(value.into()))),
        DType::I64 => Decoded::converted(view, each(|value: i64| I::from_i128(value.into()))),
        _ => return None,
    })
}
