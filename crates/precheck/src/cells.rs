//! Numbers as cells of the tables show them: the type of a number decides its digits.

use std::fmt::Write;

use msprobe_tensor::Share;
use msprobe_tensor::digits::{not_finite, push_repr_text};

/// A cell without anything in it, as the reference writes it.
pub(crate) const BLANK: &str = " ";

/// A number with the type it was computed in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// As many digits as it has.
    Whole(u64),
    /// The shortest text that is the same float32.
    Narrow(f32),
    /// A fixed number of decimals.
    Wide(f64),
}

impl Number {
    /// A float32 or float64.
    pub(crate) fn of(value: f64, is_narrow: bool) -> Number {
        if is_narrow { Number::Narrow(value as f32) } else { Number::Wide(value) }
    }

    /// A share; 0 of nothing.
    pub(crate) fn of_share(share: Share) -> Number {
        share.ratio().map_or(Number::Whole(0), Number::Wide)
    }

    /// Its value.
    pub fn value(self) -> f64 {
        match self {
            Number::Whole(value) => value as f64,
            Number::Narrow(value) => f64::from(value),
            Number::Wide(value) => value,
        }
    }

    /// Its text; `precision` decimals of a float64.
    pub fn text(self, precision: usize) -> String {
        let mut text = String::new();
        match self {
            Number::Whole(value) => {
                let _ = write!(text, "{value}");
            }
            Number::Narrow(value) => {
                // What a float32 is shortest written as has the same digits when it is read as a float64.
                let shortest = value.to_string().parse().unwrap_or_else(|_| f64::from(value));
                push_repr_text(&mut text, shortest);
            }
            Number::Wide(value) if value.is_finite() => {
                let _ = write!(text, "{value:.precision$}");
            }
            Number::Wide(value) => text.push_str(not_finite(value)),
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_follow_the_type() {
        assert_eq!(Number::Whole(3).text(14), "3");
        assert_eq!(Number::Narrow(0.000_410_079_96).text(14), "0.00041007996");
        assert_eq!(Number::Narrow(0.0).text(14), "0.0");
        assert_eq!(Number::Narrow(1e-5).text(14), "1e-05");
        assert_eq!(Number::Narrow(f32::NAN).text(14), "nan");
        assert_eq!(Number::Wide(0.25).text(14), "0.25000000000000");
        assert_eq!(Number::Wide(f64::NEG_INFINITY).text(3), "-inf");
        assert_eq!(Number::of_share(Share { part: 0, of: 0 }).text(14), "0");
    }
}
