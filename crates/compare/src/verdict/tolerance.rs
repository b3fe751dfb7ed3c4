//! How far two values may be apart: per dtype, as a share of the size of the values.

use std::fmt::Write;

use msprobe_tensor::{DType, DTypeClass};

use crate::error::{Code, CompareError};
use crate::side::{Leaf, Scalar, ValueKind};

/// Classes of dtypes with a tolerance of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Precision {
    /// Integers and bools: equal or not.
    Exact,
    /// float64, complex128.
    Double,
    /// float32, complex64.
    Single,
    /// float16.
    Half,
    /// bfloat16.
    Brain,
    /// The eight-bit floats.
    Eight,
}

impl Precision {
    /// All of them, from the finest.
    pub const ALL: [Precision; 6] = [
        Precision::Exact,
        Precision::Double,
        Precision::Single,
        Precision::Half,
        Precision::Brain,
        Precision::Eight,
    ];

    /// The name in messages and flags.
    pub fn as_str(self) -> &'static str {
        match self {
            Precision::Exact => "integer",
            Precision::Double => "float64",
            Precision::Single => "float32",
            Precision::Half => "float16",
            Precision::Brain => "bfloat16",
            Precision::Eight => "float8",
        }
    }

    /// Whether one rounding step is more than most faults make.
    pub(super) fn is_coarse(self) -> bool {
        self >= Precision::Half
    }

    /// How far two neighbours are apart, as a share of them.
    pub(super) fn rounding_step(self) -> f64 {
        match self {
            Precision::Exact => 0.0,
            Precision::Double => f64::EPSILON,
            Precision::Single => f64::from(f32::EPSILON),
            Precision::Half => 9.765_625e-4,
            Precision::Brain => 7.812_5e-3,
            Precision::Eight => 0.125,
        }
    }

    /// That of a value: of the elements of a tensor, of a plain number.
    pub fn of(leaf: &Leaf) -> Precision {
        match leaf.element {
            Some(dtype) => Precision::of_elements(dtype),
            None if leaf.kind == ValueKind::Plain && matches!(leaf.statistics[0], Scalar::Float(_)) => {
                Precision::Single
            }
            None => Precision::Exact,
        }
    }

    /// That of elements of a dtype.
    pub fn of_elements(dtype: DType) -> Precision {
        match dtype {
            DType::F32 | DType::C64 => Precision::Single,
            DType::BF16 => Precision::Brain,
            DType::F16 => Precision::Half,
            DType::F64 | DType::C128 => Precision::Double,
            eight if eight.is_float8() => Precision::Eight,
            _ => Precision::Exact,
        }
    }
}

/// Whether two tensors can be put next to each other: both are of numbers of the same kind. Dtypes nobody knows are like
/// themselves only.
pub(super) fn are_of_one_kind(target: &Leaf, golden: &Leaf) -> bool {
    let kind = |leaf: &Leaf| {
        leaf.element.map(|dtype| match dtype.class() {
            DTypeClass::Unsigned => DTypeClass::Signed,
            other => other,
        })
    };
    target.has_dtype_of(golden) || kind(target).is_some_and(|known| Some(known) == kind(golden))
}

/// A tolerance for each precision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerances {
    shares: [f64; 6],
    /// Which of them the user asked for.
    asked: [bool; 6],
}

impl Default for Tolerances {
    /// Above what the order of summation does to a value, below what a wrong digit of the format does.
    fn default() -> Tolerances {
        Tolerances { shares: [0.0, 1e-9, 3e-5, 2e-3, 8e-3, 6.25e-2], asked: [false; 6] }
    }
}

impl Tolerances {
    /// That of a precision.
    pub fn of(&self, precision: Precision) -> f64 {
        self.shares[precision as usize]
    }

    /// Whether the user asked for it.
    pub(super) fn is_asked(&self, precision: Precision) -> bool {
        self.asked[precision as usize]
    }

    /// Each with its name.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, f64)> {
        Precision::ALL.into_iter().map(|precision| (precision.as_str(), self.of(precision)))
    }

    /// Changes some: `float32=1e-3,bfloat16=0.02`, or one number for all floats.
    pub fn with(mut self, text: &str) -> Result<Tolerances, CompareError> {
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let wrong = || {
                let mut names = String::new();
                for (name, default) in Tolerances::default().named() {
                    let _ = write!(names, " {name} ({default:e})");
                }
                CompareError::new(Code::InvalidParam, format!("{part:?} is not a tolerance"))
                    .with_hint(format!("write float32=1e-3,bfloat16=0.02 or one number for all floats; names and defaults:{names}"))
            };
            let (name, number) = part.split_once('=').unwrap_or(("", part));
            let value: f64 = number.trim().parse().map_err(|_| wrong())?;
            if !(value >= 0.0 && value.is_finite()) {
                return Err(wrong());
            }
            if name.is_empty() {
                self.shares[1..].fill(value);
                self.asked[1..].fill(true);
                continue;
            }
            let precision = Precision::ALL.into_iter().find(|precision| precision.as_str() == name.trim());
            let precision = precision.ok_or_else(wrong)?;
            self.shares[precision as usize] = value;
            self.asked[precision as usize] = true;
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dtypes_of_both_frameworks_have_a_precision() {
        let of = |name: &str| Precision::of_elements(DType::parse(name).unwrap());
        assert_eq!(of("torch.float32"), Precision::Single);
        assert_eq!(of("Float16"), Precision::Half);
        assert_eq!(of("BFloat16"), Precision::Brain);
        assert_eq!(of("torch.float8_e4m3fn"), Precision::Eight);
        assert_eq!(of("Float8E4M3FN"), Precision::Eight);
        assert_eq!(of("torch.int64"), Precision::Exact);
    }

    #[test]
    fn tolerances_can_be_changed_one_by_one_or_together() {
        let changed = Tolerances::default().with("float32=1e-2").unwrap();
        assert_eq!(changed.of(Precision::Single), 1e-2);
        assert_eq!(changed.of(Precision::Half), 2e-3);
        let all = Tolerances::default().with("0.5").unwrap();
        assert_eq!((all.of(Precision::Exact), all.of(Precision::Brain)), (0.0, 0.5));
        for wrong in ["float33=1", "x", "float32=-1", "float32=nan"] {
            assert!(Tolerances::default().with(wrong).is_err(), "{wrong}");
        }
    }
}
