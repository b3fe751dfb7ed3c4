//! What the kernels must compute, written as plainly as possible: one element at a time, decoded from its
//! bytes here, nothing shared with the crate under test.

pub(crate) mod pair;
pub(crate) mod statistics;
pub(crate) mod tensors;

use msprobe_tensor::DType;
use proptest::test_runner::{FailurePersistence, FileFailurePersistence};

/// Half the distance from 1 to the next `f64`: the relative error of one rounded operation.
pub(crate) const ROUNDING: f64 = f64::EPSILON / 2.0;

/// Where properties keep the seeds that failed: in a file beside the test, to be committed. The default looks for a
/// `lib.rs`, which tests outside of `src` do not have.
#[allow(clippy::unnecessary_wraps, reason = "the type of the field it is for")]
pub(crate) fn seeds_beside_the_test() -> Option<Box<dyn FailurePersistence>> {
    Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions")))
}

/// One element. Bools are the integers 0 and 1; every real dtype fits into `f64` exactly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value {
    Int(i128),
    Real(f64),
    Complex(f64, f64),
}

impl Value {
    /// Real and imaginary part.
    pub(crate) fn parts(self) -> (f64, f64) {
        match self {
            Value::Int(value) => (value as f64, 0.0),
            Value::Real(value) => (value, 0.0),
            Value::Complex(re, im) => (re, im),
        }
    }
}

/// How a small float format uses its highest exponent.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Special {
    /// As IEEE 754: infinities and NaNs.
    Ieee,
    /// Only all ones is NaN, no infinities ("fn").
    AllOnes,
    /// The pattern of negative zero is NaN, no infinities ("fnuz").
    NegativeZero,
}

/// Exponent bits, mantissa bits, exponent bias and special values of a float dtype (of a component, if complex).
pub(crate) fn float_format(dtype: DType) -> Option<(u32, u32, i32, Special)> {
    Some(match dtype {
        DType::F16 => (5, 10, 15, Special::Ieee),
        DType::BF16 => (8, 7, 127, Special::Ieee),
        DType::F32 | DType::C64 => (8, 23, 127, Special::Ieee),
        DType::F64 | DType::C128 => (11, 52, 1023, Special::Ieee),
        DType::F8E4M3FN => (4, 3, 7, Special::AllOnes),
        DType::F8E5M2 => (5, 2, 15, Special::Ieee),
        DType::F8E4M3FNUZ => (4, 3, 8, Special::NegativeZero),
        DType::F8E5M2FNUZ => (5, 2, 16, Special::NegativeZero),
        _ => return None,
    })
}

/// The value of a bit pattern, by the definition of the format.
fn float(bits: u64, dtype: DType) -> f64 {
    let (exponent_bits, mantissa_bits, bias, special) = float_format(dtype).unwrap();
    let ones = |count: u32| (1u64 << count) - 1;
    let mantissa = bits & ones(mantissa_bits);
    let exponent = (bits >> mantissa_bits) & ones(exponent_bits);
    let negative = bits >> (mantissa_bits + exponent_bits) == 1;
    let sign = if negative { -1.0 } else { 1.0 };
    match special {
        // Kept as it is: libm's modulus of infinity and a signalling NaN is NaN, of a quiet one infinity.
        Special::Ieee if exponent_bits == 11 && f64::from_bits(bits).is_nan() => return f64::from_bits(bits),
        Special::Ieee if exponent == ones(exponent_bits) => {
            return if mantissa == 0 { sign * f64::INFINITY } else { f64::NAN };
        }
        Special::AllOnes if exponent == ones(exponent_bits) && mantissa == ones(mantissa_bits) => {
            return f64::NAN;
        }
        Special::NegativeZero if negative && exponent == 0 && mantissa == 0 => return f64::NAN,
        _ => {}
    }
    let (significand, exponent) =
        if exponent == 0 { (mantissa, 1) } else { (mantissa | (1 << mantissa_bits), exponent as i32) };
    sign * times_power_of_two(significand as f64, exponent - bias - mantissa_bits as i32)
}

/// `value * 2^exponent`, in steps none of which leaves the range of `f64` before the result does.
pub(crate) fn times_power_of_two(mut value: f64, mut exponent: i32) -> f64 {
    while exponent != 0 {
        let step = exponent.clamp(-500, 500);
        value *= 2f64.powi(step);
        exponent -= step;
    }
    value
}

fn unsigned(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// One element from its little-endian bytes.
pub(crate) fn decode(dtype: DType, bytes: &[u8]) -> Value {
    assert_eq!(bytes.len(), dtype.size_bytes());
    match dtype {
        DType::Bool => Value::Int(i128::from(bytes[0] != 0)),
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => Value::Int(unsigned(bytes).into()),
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
            let bits = 8 * bytes.len() as u32;
            let value = i128::from(unsigned(bytes));
            Value::Int(if value >> (bits - 1) == 1 { value - (1 << bits) } else { value })
        }
        DType::C64 | DType::C128 => {
            let (re, im) = bytes.split_at(bytes.len() / 2);
            Value::Complex(float(unsigned(re), dtype), float(unsigned(im), dtype))
        }
        _ => Value::Real(float(unsigned(bytes), dtype)),
    }
}

/// All elements of row-major little-endian bytes.
pub(crate) fn decode_all(dtype: DType, bytes: &[u8]) -> Vec<Value> {
    bytes.chunks(dtype.size_bytes()).map(|element| decode(dtype, element)).collect()
}

/// Equal, or both NaN.
pub(crate) fn same(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan())
}

/// The larger of all; NaN if any is, as in numpy.
pub(crate) fn numpy_max(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(f64::NEG_INFINITY, |a, b| if b > a || b.is_nan() { b } else { a })
}

/// A sum as good as if computed in twice the precision (Neumaier), and the sum of magnitudes.
pub(crate) fn compensated_sum(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let (mut sum, mut lost, mut magnitudes) = (0.0f64, 0.0f64, 0.0f64);
    for value in values {
        let next = sum + value;
        let (large, small) = if sum.abs() >= value.abs() { (sum, value) } else { (value, sum) };
        lost += (large - next) + small;
        sum = next;
        magnitudes += value.abs();
    }
    (sum + lost, magnitudes)
}

/// CRC-32 as zlib defines it, bit by bit.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

/// The bytes a dump's checksum covers: bfloat16 and float8 as float32, everything else as it is.
pub(crate) fn checksummed_bytes(dtype: DType, bytes: &[u8]) -> Vec<u8> {
    match dtype {
        // A bfloat16 is the upper half of the float32, payloads of NaNs included.
        DType::BF16 => bytes.chunks(2).flat_map(|half| [0, 0, half[0], half[1]]).collect(),
        _ if dtype.is_float8() => bytes
            .iter()
            .flat_map(|&code| match float(code.into(), dtype) {
                value if value.is_nan() => torch_nan(dtype, code).to_le_bytes(),
                value => (value as f32).to_le_bytes(),
            })
            .collect(),
        _ => bytes.to_vec(),
    }
}

/// The float32 bits torch gives to each NaN code of a float8 format.
fn torch_nan(dtype: DType, code: u8) -> u32 {
    match (dtype, code) {
        (DType::F8E4M3FN, 0x7f) => 0x7ff0_0000,
        (DType::F8E4M3FN, 0xff) => 0xfff0_0000,
        (DType::F8E5M2, 0x7d | 0x7f) => 0x7fe0_0000,
        (DType::F8E5M2, 0x7e) => 0x7fc0_0000,
        (DType::F8E5M2, 0xfd | 0xff) => 0xffe0_0000,
        (DType::F8E5M2, 0xfe) => 0xffc0_0000,
        (DType::F8E4M3FNUZ | DType::F8E5M2FNUZ, 0x80) => 0x7f80_0001,
        _ => unreachable!("{code:#x} is no NaN of {dtype}"),
    }
}
