//! The shape of a value. Its text is made where it is shown.

use std::fmt;
use std::sync::Arc;

/// The shape of a value, and what stands for it where a value has none. Two of them are equal if and only if they
/// read alike.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ValueShape {
    /// Sizes, shown as a list: of a tensor, or those a shape holds. A plain argument has none, like a tensor of one element.
    Sizes(Arc<[u64]>),
    /// Sizes, shown as a tuple: of a slice.
    Tuple(Arc<[u64]>),
    /// Something else stands in their place.
    Other(Arc<str>),
    /// Nothing stands there.
    Unknown,
}

impl ValueShape {
    /// The shape that reads like this text.
    pub(super) fn of_text(text: &str) -> ValueShape {
        let inside = |open, close| text.strip_prefix(open)?.strip_suffix(close);
        let sizes = |inside: &str| -> Option<Arc<[u64]>> {
            let parts = inside.split(", ").filter(|part| !part.is_empty());
            parts.map(|part| part.trim_end_matches(',').parse().ok()).collect()
        };
        let list = || inside('[', ']').and_then(sizes).map(ValueShape::Sizes);
        let tuple = || inside('(', ')').and_then(sizes).map(ValueShape::Tuple);
        // Only what reads exactly so: `[02]` is something else.
        let mut known = [list(), tuple(), Some(ValueShape::Unknown)].into_iter().flatten();
        known.find(|shape| shape.to_string() == text).unwrap_or_else(|| ValueShape::Other(text.into()))
    }

    /// How many elements a tensor of these sizes has, where it has some.
    pub fn elements(&self) -> Option<f64> {
        // Sizes are what a file says: their product may be beyond any integer.
        Some(self.sizes()?.iter().map(|&size| size as f64).product())
    }

    /// The sizes, however they are shown.
    pub fn sizes(&self) -> Option<&[u64]> {
        match self {
            ValueShape::Sizes(sizes) | ValueShape::Tuple(sizes) => Some(sizes),
            ValueShape::Other(_) | ValueShape::Unknown => None,
        }
    }

    /// Whether it is that of a plain argument or of a tensor without dimensions.
    pub fn is_scalar(&self) -> bool {
        matches!(self, ValueShape::Sizes(sizes) if sizes.is_empty())
    }
}

/// As the reference shows it: `[2, 3]`, `(3,)`, `None`.
impl fmt::Display for ValueShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueShape::Sizes(sizes) => {
                f.write_str("[")?;
                write_sizes(sizes, f)?;
                f.write_str("]")
            }
            ValueShape::Tuple(sizes) => {
                f.write_str("(")?;
                write_sizes(sizes, f)?;
                f.write_str(if sizes.len() == 1 { ",)" } else { ")" })
            }
            ValueShape::Other(text) => f.write_str(text),
            ValueShape::Unknown => f.write_str("None"),
        }
    }
}

fn write_sizes(sizes: &[u64], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (index, size) in sizes.iter().enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        fmt::Display::fmt(size, f)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_equal_as_they_read() {
        let sizes = |sizes: &[u64]| ValueShape::Sizes(sizes.into());
        let tuple = |sizes: &[u64]| ValueShape::Tuple(sizes.into());
        for (text, shape) in [
            ("[]", sizes(&[])),
            ("[2]", sizes(&[2])),
            ("[2, 0, 18446744073709551615]", sizes(&[2, 0, u64::MAX])),
            ("()", tuple(&[])),
            ("(3,)", tuple(&[3])),
            ("(3, 4)", tuple(&[3, 4])),
            ("None", ValueShape::Unknown),
        ] {
            assert_eq!((shape.to_string().as_str(), ValueShape::of_text(text)), (text, shape));
        }
        for text in
            ["", "[02]", "[2,3]", "[2, ]", "(3)", "(3, 4,)", "[-1]", "[2", "none", "[18446744073709551616]"]
        {
            assert_eq!(ValueShape::of_text(text), ValueShape::Other(text.into()), "{text}");
        }
        assert!(sizes(&[]).is_scalar() && !tuple(&[]).is_scalar());
    }
}
