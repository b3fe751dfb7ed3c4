//! Numbers in digits: the shortest that read back to the same value, as Python's `repr` lays them out.

/// A finite number like `repr(float)`: `1.0`, `1e-05`, `1e+16`; others as `nan`, `inf`, `-inf`.
pub fn push_repr(out: &mut Vec<u8>, value: f64) {
    if !value.is_finite() {
        out.extend_from_slice(not_finite(value).as_bytes());
        return;
    }
    let mut buffer = zmij::Buffer::new();
    let shortest = buffer.format_finite(value).as_bytes();
    if (1e-4..1e16).contains(&value.abs()) && !shortest.contains(&b'e') {
        // Both write these as plain digits with a point.
        out.extend_from_slice(shortest);
        return;
    }
    lay_out(out, shortest);
}

/// The same, behind a text.
pub fn push_repr_text(out: &mut String, value: f64) {
    if !value.is_finite() {
        out.push_str(not_finite(value));
        return;
    }
    let mut buffer = zmij::Buffer::new();
    let shortest = buffer.format_finite(value);
    if (1e-4..1e16).contains(&value.abs()) && !shortest.contains('e') {
        out.push_str(shortest);
        return;
    }
    let mut laid_out = Vec::with_capacity(32);
    lay_out(&mut laid_out, shortest.as_bytes());
    out.extend(laid_out.into_iter().map(char::from));
}

/// The name of what has no digits.
pub fn not_finite(value: f64) -> &'static str {
    if value.is_nan() {
        "nan"
    } else if value > 0.0 {
        "inf"
    } else {
        "-inf"
    }
}

/// A whole number.
pub fn push_integer(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Takes digits and exponent out of any decimal form and writes them as Python does.
fn lay_out(out: &mut Vec<u8>, text: &[u8]) {
    let (mantissa, exponent) = match text.iter().position(|&byte| byte == b'e') {
        Some(at) => (&text[..at], parse_exponent(&text[at + 1..])),
        None => (text, 0),
    };
    let mut digits = [0u8; 32];
    let mut count = 0;
    // Place of the point, counted from the first digit kept.
    let mut point = None;
    let mut skipped = 0;
    for &byte in mantissa {
        match byte {
            b'-' => out.push(b'-'),
            b'.' => point = Some(count as i32),
            b'0' if count == 0 => skipped += i32::from(point.is_some()),
            _ if count < digits.len() => {
                digits[count] = byte;
                count += 1;
            }
            _ => {}
        }
    }
    let point = match point {
        // Zeros between the point and the first digit move the point to the left.
        Some(at) if at <= 0 => -skipped,
        Some(at) => at,
        None => count as i32,
    } + exponent;
    while count > 0 && digits[count - 1] == b'0' {
        count -= 1;
    }
    let digits = &digits[..count];
    if digits.is_empty() {
        out.extend_from_slice(b"0.0");
    } else if (-3..=16).contains(&point) {
        push_fixed(out, digits, point);
    } else {
        out.push(digits[0]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        let exponent = point - 1;
        out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
        if exponent.abs() < 10 {
            out.push(b'0');
        }
        push_integer(out, exponent.abs());
    }
}

fn push_fixed(out: &mut Vec<u8>, digits: &[u8], point: i32) {
    let zeros = |out: &mut Vec<u8>, count: usize| out.resize(out.len() + count, b'0');
    if point <= 0 {
        out.extend_from_slice(b"0.");
        zeros(out, point.unsigned_abs() as usize);
        out.extend_from_slice(digits);
        return;
    }
    let point = point as usize;
    let whole = point.min(digits.len());
    out.extend_from_slice(&digits[..whole]);
    zeros(out, point - whole);
    out.push(b'.');
    out.extend_from_slice(if whole < digits.len() { &digits[whole..] } else { b"0" });
}

fn parse_exponent(text: &[u8]) -> i32 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repr(value: f64) -> String {
        let mut out = Vec::new();
        push_repr(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn looks_like_python() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-1.5, "-1.5"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e-4, "0.0001"),
            (1.25e-4, "0.000125"),
            (9.999e-5, "9.999e-05"),
            (1e-5, "1e-05"),
            (-1.5e-7, "-1.5e-07"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (123_456_789_012_345_680.0, "1.2345678901234568e+17"),
            (9_007_199_254_740_992.0, "9007199254740992.0"),
            (1e22, "1e+22"),
            (1.797_693_134_862_315_7e308, "1.7976931348623157e+308"),
            (5e-324, "5e-324"),
            (1e100, "1e+100"),
            (0.001, "0.001"),
            (100.0, "100.0"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(repr(value), text);
        }
    }

    #[test]
    fn any_form_is_laid_out_the_same() {
        for text in ["12.5e-7", "0.00000125", "1.25e-6", "0.0125e-4"] {
            let mut out = Vec::new();
            lay_out(&mut out, text.as_bytes());
            assert_eq!(out, b"1.25e-06", "{text}");
        }
        for text in ["1.5e3", "1500", "1500.0", "15e2"] {
            let mut out = Vec::new();
            lay_out(&mut out, text.as_bytes());
            assert_eq!(out, b"1500.0", "{text}");
        }
    }

    #[test]
    fn reads_back_to_the_same_value() {
        let mut state = 7u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let value = f64::from_bits(state);
            if value.is_finite() {
                assert_eq!(repr(value).parse::<f64>().unwrap().to_bits(), value.to_bits());
            }
        }
    }
}
