//! The four 8-bit float formats, decoded through tables built at compile time.
//!
//! | format | exponent bits, bias | infinities | NaN | negative zero |
//! |---|---|---|---|---|
//! | e4m3fn | 4, 7 | none | S.1111.111 | yes |
//! | e5m2 | 5, 15 | S.11111.00 | S.11111.{01,10,11} | yes |
//! | e4m3fnuz | 4, 8 | none | 0x80 | no |
//! | e5m2fnuz | 5, 16 | none | 0x80 | no |

use crate::DType;

#[derive(Clone, Copy)]
struct Format {
    mantissa_bits: u32,
    bias: i32,
    /// Follows IEEE 754 for the highest exponent (infinities and NaNs).
    ieee: bool,
    /// "fnuz": the pattern of negative zero is the only NaN.
    unsigned_zero: bool,
}

const E4M3FN: Format = Format { mantissa_bits: 3, bias: 7, ieee: false, unsigned_zero: false };
const E5M2: Format = Format { mantissa_bits: 2, bias: 15, ieee: true, unsigned_zero: false };
const E4M3FNUZ: Format = Format { mantissa_bits: 3, bias: 8, ieee: false, unsigned_zero: true };
const E5M2FNUZ: Format = Format { mantissa_bits: 2, bias: 16, ieee: false, unsigned_zero: true };

static TABLES: [[f32; 256]; 4] = [table(E4M3FN), table(E5M2), table(E4M3FNUZ), table(E5M2FNUZ)];

/// The value of every byte in an 8-bit float format, or `None` for other dtypes.
pub(crate) fn decode_table(dtype: DType) -> Option<&'static [f32; 256]> {
    match dtype {
        DType::F8E4M3FN => Some(&TABLES[0]),
        DType::F8E5M2 => Some(&TABLES[1]),
        DType::F8E4M3FNUZ => Some(&TABLES[2]),
        DType::F8E5M2FNUZ => Some(&TABLES[3]),
        _ => None,
    }
}

const fn table(format: Format) -> [f32; 256] {
    let mut values = [0.0f32; 256];
    let mut code = 0;
    while code < 256 {
        values[code] = decode(code as u32, format);
        code += 1;
    }
    values
}

const fn decode(code: u32, format: Format) -> f32 {
    let exponent_bits = 7 - format.mantissa_bits;
    let mantissa = code & ((1 << format.mantissa_bits) - 1);
    let exponent = (code >> format.mantissa_bits) & ((1 << exponent_bits) - 1);
    let highest = (1 << exponent_bits) - 1;
    // NaNs become the ones torch makes of them: checksums are of the widened bits.
    let sign = (code & 0x80) << 24;
    if format.unsigned_zero && code == 0x80 {
        return f32::from_bits(0x7f80_0001);
    }
    if exponent == highest {
        if format.ieee {
            if mantissa != 0 {
                return f32::from_bits(sign | 0x7fc0_0000 | (mantissa << (23 - format.mantissa_bits)));
            }
            return if code & 0x80 == 0 { f32::INFINITY } else { f32::NEG_INFINITY };
        }
        if !format.unsigned_zero && mantissa == (1 << format.mantissa_bits) - 1 {
            return f32::from_bits(sign | 0x7f80_0000 | (mantissa << (23 - format.mantissa_bits)));
        }
    }
    let scale = if exponent == 0 { 1 } else { exponent as i32 } - format.bias - format.mantissa_bits as i32;
    let significand = if exponent == 0 { mantissa } else { mantissa | (1 << format.mantissa_bits) };
    // A power of two in range of f32: its exponent field alone.
    let magnitude = significand as f32 * f32::from_bits(((scale + 127) as u32) << 23);
    if code & 0x80 == 0 { magnitude } else { -magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(dtype: DType, code: u8) -> f32 {
        decode_table(dtype).unwrap()[code as usize]
    }

    #[test]
    fn landmarks() {
        assert_eq!(of(DType::F8E4M3FN, 0x7e), 448.0);
        assert!(of(DType::F8E4M3FN, 0x7f).is_nan());
        assert_eq!(of(DType::F8E4M3FN, 0x01), 2f32.powi(-9));
        assert_eq!(of(DType::F8E5M2, 0x7b), 57344.0);
        assert_eq!(of(DType::F8E5M2, 0xfc), f32::NEG_INFINITY);
        assert_eq!(of(DType::F8E4M3FNUZ, 0x7f), 240.0);
        assert!(of(DType::F8E4M3FNUZ, 0x80).is_nan());
        assert_eq!(of(DType::F8E5M2FNUZ, 0x7f), 57344.0);
        assert!(of(DType::F8E5M2FNUZ, 0x80).is_nan());
        assert!(of(DType::F8E5M2, 0x80).is_sign_negative());
    }
}
